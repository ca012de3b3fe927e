"""Versions of a `LiveIndex` made from versions: items written into blocks (see `negvec.kernels.blocks`).

Each function is given a clock. Blocks, list and table that are stamped with it are the writer's own, and changed in
place; all others are left as they are, but for the room behind the last item, which no reader of a version looks at.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from negvec import kernels
from negvec.items import Timestamps
from negvec.storage.seam import Indices, Words
from negvec.storage.snapshot import Version

Flags = npt.NDArray[np.uint8]

_NO_ADDRESSES: Indices = np.empty(0, np.int64)


class Changes(NamedTuple):
    """What a write changed.

    Attributes
    ----------
    added : int
        Items that are there now, and were not before.
    removed : int
        Items that were there before, and are not now.
    """

    added: int
    removed: int


def empty(clock: int) -> Version:
    """A version without items."""
    return Version([], np.empty((16, kernels.blocks.TABLE_WORDS), np.uint64), 0, 0, clock)


def appended(version: Version, clock: int, created_at: Timestamps, words: Words, places: Words) -> Version:
    """With items that follow the last, as they lie, or in the order of the rows `places` if there are any."""
    blocks, table, rows, size, stamp = version
    added, capacity = len(places) if len(places) else len(created_at), kernels.blocks.CAPACITY
    room = capacity - (size - int(table[rows - 1, kernels.blocks.START])) if rows else 0
    fresh = _fresh(-(-max(added - room, 0) // capacity))
    if fresh:
        if stamp != clock:
            blocks = blocks[:rows]
        if stamp != clock or len(table) < rows + len(fresh):
            table = np.empty(((rows + len(fresh)) * 5 // 4 + 16, kernels.blocks.TABLE_WORDS), np.uint64)
            table[:rows] = version.table[:rows]
        del blocks[rows:]  # there are more only if a write was broken off
        blocks += fresh
        stamp = clock
    kernels.edits.append(table, rows, size, clock, created_at, words, places, _addresses(fresh))
    return Version(blocks, table, rows + len(fresh), size + added, stamp)


def edit(
    version: Version, clock: int, created_at: Timestamps, words: Words, add: Flags, publish: Callable[[Version], Any]
) -> Changes:
    """Add and remove sorted items anywhere, each there once; there is a block at least.

    What they make of the version is published, if they change anything, even where an interrupt comes at the end: by a
    function of C, which an interrupt comes before or after.
    """
    old = version.table, version.rows, version.size
    changes, groups, found = _planned(version, clock, created_at, words, add)
    added, removed, count, new, rows, reshaped = found.tolist()
    if not count:
        return Changes(0, 0)
    fresh = _fresh(new)
    table, blocks = version.table, version.blocks
    if reshaped or version.stamp != clock:
        table = np.empty((rows * 9 // 8 + 16, kernels.blocks.TABLE_WORDS), np.uint64)
    if fresh or table is not version.table:
        blocks = _spliced(blocks, version.rows, groups[:count], fresh)
    changed = Version(blocks, table, rows, version.size + added - removed, clock)
    done = np.zeros(1, np.int64)
    try:
        kernels.edits.edit(
            *(*old, clock, created_at, words, add, changes, groups, count, _addresses(fresh), table, done)
        )
    finally:
        if done[0]:
            publish(changed)
    return Changes(added, removed)


def absent(version: Version, created_at: Timestamps, words: Words) -> Indices:
    """Which of sorted items, each there once, a version does not have; there is a block at least."""
    nobodys = 0  # clocks begin with 1
    changes, _, found = _planned(version, nobodys, created_at, words, np.ones(len(created_at), np.uint8))
    return changes[: found[kernels.plans.ADDED], kernels.plans.ITEM]


def _planned(
    version: Version, clock: int, created_at: Timestamps, words: Words, add: Flags
) -> tuple[Indices, Indices, Indices]:
    """The changes, groups and totals of `kernels.plans.plan`."""
    plans, m = kernels.plans, len(created_at)
    changes = np.empty((m, plans.CHANGE_WORDS), np.int64)
    groups = np.empty((m, plans.GROUP_WORDS), np.int64)
    found = np.empty(plans.FOUND_WORDS, np.int64)
    plans.plan(version.table, version.rows, version.size, clock, created_at, words, add, changes, groups, found)
    return changes, groups, found


def _fresh(count: int) -> list[Words]:
    return [np.empty(kernels.blocks.BLOCK_WORDS, np.uint64) for _ in range(count)]


def _addresses(blocks: list[Words]) -> Indices:
    if not blocks:
        return _NO_ADDRESSES
    # NumPy's own ways to an address make a dict or an object for each: five times as long as this, or as a block takes.
    memory: Any = blocks
    start_of = map(ctypes.addressof, map(ctypes.c_char.from_buffer, memory))
    return np.fromiter(start_of, np.int64, len(blocks))


def _spliced(blocks: list[Words], rows: int, groups: Indices, fresh: list[Words]) -> list[Words]:
    """A new list of the first `rows` blocks, in which the fresh ones stand for those of their groups."""
    splices = np.empty((len(groups), kernels.plans.SPLICE_WORDS), np.int64)
    count = kernels.plans.splices(groups, len(groups), splices)
    kept: list[Words] = []
    at = 0
    for first, last, start, stop in splices[:count].tolist():
        kept += blocks[at:first]
        kept += fresh[start:stop]
        at = last
    kept += blocks[at:rows]
    return kept
