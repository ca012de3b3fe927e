"""Going through all items of any storage, a piece at a time, and seeing that they are what sealed items must be.

A piece is two columns of a few megabytes, which stay in the second-level cache while they are checked, summed and
written. Saving, verifying and opening a file in parts all go this way, so that none of them grows with the set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np

from negvec import kernels
from negvec.errors import DamagedStorage
from negvec.items import INFINITY, Timestamps
from negvec.storage.seam import Storage, Words

ITEMS_AT_ONCE = 1 << 16  # 2.5 MiB

Piece = tuple[Timestamps, Words]
"""The created_at and the ids, as words, of items that follow one another."""


def pieces_of(storage: Storage) -> Iterator[Piece]:
    """All items of a storage, in order: its columns where they are at hand, or else copies of its items."""
    count = len(storage)
    piece: Callable[[int, int], Piece] | None = getattr(storage, "_piece", None)
    for start in range(0, count, ITEMS_AT_ONCE):
        stop = min(start + ITEMS_AT_ONCE, count)
        yield piece(start, stop) if piece else copied(storage, start, stop)


def copied(storage: Storage, lo: int, hi: int) -> Piece:
    """A piece of a storage of which there is known no more than the seam."""
    items = storage.items(lo, hi)
    return np.ascontiguousarray(items["created_at"]), np.ascontiguousarray(items["id"]).view("<u8")


def in_order(pieces: Iterable[Piece]) -> Iterator[tuple[int, Timestamps, Words]]:
    """Pass pieces on, each with the index of its first item, for as long as they are sorted and free of repeats.

    Raises
    ------
    DamagedStorage
        At the first item that is not greater than the one before it, or whose timestamp is infinity.
    """
    start, before = 0, (-1, b"")
    for created_at, words in pieces:
        found = np.zeros(2, np.int64)
        kernels.checks.inspect(created_at, words, 0, len(created_at), found)
        if found.any() or _key(created_at, words, 0) <= before or created_at[-1] == INFINITY:
            _refuse(start, before, created_at, words)
        yield start, created_at, words
        start, before = start + len(created_at), _key(created_at, words, -1)


def _key(created_at: Timestamps, words: Words, row: int) -> tuple[int, bytes]:
    return int(created_at[row]), words[row].tobytes()


def _refuse(start: int, before: tuple[int, bytes], created_at: Timestamps, words: Words) -> None:
    for row in range(len(created_at)):
        key = _key(created_at, words, row)
        if key <= before:
            fault = "is there twice" if key == before else "is out of order: it is less than the one before it"
            raise DamagedStorage(f"item {start + row} {fault}")
        if key[0] == INFINITY:
            raise DamagedStorage(f"item {start + row} has the timestamp 2**64 - 1, which is reserved as infinity")
        before = key
