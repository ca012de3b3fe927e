"""What a `LiveIndex` holds at one moment: sorted items in blocks, and a table of them (see `negvec.kernels.blocks`).

A snapshot is made of what the index has at that time, without a copy; whoever writes later leaves that as it is.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from negvec import kernels
from negvec.items import ID_SIZE, ITEM, Ids, Timestamps
from negvec.storage.arguments import as_bounds, as_indices, as_ranges
from negvec.storage.fingerprints import fingerprints
from negvec.storage.seam import Bounds, Bytes, IdLists, Indices, Words
from negvec.storage.window import Windowed


class Version(NamedTuple):
    """A set of items in blocks.

    Attributes
    ----------
    blocks : list of ndarray
        The blocks; there may be more of them than `rows`. The list is there to keep them alive.
    table : ndarray of uint64, shape (m, 8)
        A row for each block, and room for more.
    rows : int
        How many blocks there are.
    size : int
        How many items they hold.
    stamp : int
        When the list and the table were made: a writer may change them only if no snapshot has been taken since.
    """

    blocks: list[Words]
    table: Words
    rows: int
    size: int
    stamp: int

    @property
    def nbytes(self) -> int:
        """Bytes of the blocks and of the table."""
        return 8 * self.rows * kernels.blocks.BLOCK_WORDS + self.table.nbytes

    def settled(self) -> Version:
        """The version itself: its items are sorted."""
        return self


class Contents(Protocol):
    """A version, or what can be made into one: see `negvec.storage.arrivals.Unsorted`."""

    @property
    def size(self) -> int:
        """How many items it has."""

    def settled(self) -> Version:
        """The version that has them."""


class Snapshot(Windowed):
    """An immutable storage (`negvec.Storage`): what a `LiveIndex` held when its `snapshot()` was called.

    It never changes, whatever happens to the index, and any number of sessions and threads may use it at once. Its
    answers equal those of a `PrefixSumVector` of the same items; a fingerprint costs O(1). Memory that the index or
    other snapshots do not use as well is freed with the last reference to it.
    """

    def __init__(self, contents: Contents) -> None:
        self._contents = contents
        self._size = contents.size
        self._index: tuple[Words, Indices, npt.NDArray[np.uint32]] | None = None

    def __len__(self) -> int:
        return self._size

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self._size} items>"

    @property
    def nbytes(self) -> int:
        """Bytes of memory that the items take, with their sums; most are shared with the index and its snapshots."""
        return 8 * self._version.rows * (kernels.blocks.BLOCK_WORDS + kernels.blocks.TABLE_WORDS)

    @property
    def created_at(self) -> Timestamps:
        """All timestamps, (n,) uint64, ascending; a copy, read-only."""
        return _read_only(self._timestamps(*self._all()))

    @property
    def ids(self) -> Ids:
        """All ids, (n, 32) uint8, in the order of the items; a copy, read-only."""
        return _read_only(self._id_words(*self._all()).view(np.uint8))

    def items(self, lo: int, hi: int) -> npt.NDArray[np.void]:
        """The items of one range as a structured array of dtype `negvec.ITEM`, shape (hi - lo,); a copy."""
        if not 0 <= lo <= hi <= self._size:
            raise ValueError(f"[{lo}, {hi}) is no range of {self._size} items")
        one = np.array([lo], np.int64), np.array([hi], np.int64)
        items = np.empty(hi - lo, ITEM)
        items["created_at"] = self._timestamps(*one)
        items["id"] = self._id_words(*one).view(np.uint8)
        return items

    def id_lists(self, lo: Any, hi: Any) -> IdLists:
        """The ids of many ranges; see `negvec.storage.seam.IdLists`. A copy for each range they are in."""
        lo, hi = as_ranges(lo, hi, self._size)
        first = np.cumsum(hi - lo) - (hi - lo)
        return IdLists(_read_only(self._id_words(lo, hi).view(np.uint8)), first)

    def lower_bounds(self, created_at: Any, ids: Any) -> Indices:
        """For each bound the index of the first item not less than it.

        Parameters
        ----------
        created_at : array_like of int, shape (m,)
            2**64 - 1 is infinity.
        ids : ndarray of uint8, shape (m, 32)
            Zero-padded prefixes.

        Returns
        -------
        ndarray of int64, shape (m,)
        """
        timestamps, words = as_bounds(created_at, ids)
        out = np.empty(len(timestamps), np.int64)
        version = self._version
        kernels.blocks.lower_bounds(version.table, version.rows, version.size, timestamps, words, out)
        return out

    def minimal_bounds(self, index: Any) -> Bounds:
        """The shortest bound between items `index - 1` and `index` (specification, section Bound).

        Parameters
        ----------
        index : array_like of int, shape (m,)
            1 .. n - 1.

        Returns
        -------
        Bounds
        """
        index = as_indices(index)
        m = len(index)
        created_at, ids = np.empty(2 * m, np.uint64), np.empty((2 * m, 4), np.uint64)
        bad = kernels.blocks.neighbours(*self._indexed, index, created_at, ids)
        if bad >= 0:
            raise ValueError(f"row {bad}: item {index[bad]} of {self._size} has no item before it")
        timestamps, words, lengths = np.empty(m, np.uint64), np.empty((m, 4), np.uint64), np.empty(m, np.uint8)
        kernels.search.minimal_bounds(created_at, ids, np.arange(1, 2 * m, 2), timestamps, words, lengths)
        return Bounds(timestamps, words.view(np.uint8).reshape(-1, ID_SIZE), lengths)

    def fingerprints(self, lo: Any, hi: Any) -> Bytes:
        """Fingerprints of many ranges (specification, section Fingerprint Algorithm).

        Parameters
        ----------
        lo, hi : array_like of int, shape (m,)
            Half-open index pairs into the sorted items.

        Returns
        -------
        ndarray of uint8, shape (m, 16)
        """
        return fingerprints(self._size, lo, hi, partial(kernels.blocks.range_sums, *self._indexed))

    def fingerprint(self, lo: int, hi: int) -> bytes:
        """The fingerprint of one range [lo, hi), 16 bytes. Many at once are much cheaper: see `fingerprints`."""
        digest: bytes = self.fingerprints(lo, hi)[0].tobytes()
        return digest

    # ---- columns

    @property
    def _version(self) -> Version:
        """What keeps the memory alive at which its table points; sorted, if it is not yet, for all who have it."""
        self._contents = version = self._contents.settled()
        return version

    @property
    def _indexed(self) -> tuple[Words, Indices, npt.NDArray[np.uint32]]:
        """The table, and what finds an item's row in it; made when first asked for, 10 us a million items.

        (Not a `functools.cached_property`: up to Python 3.11 that is made under one lock for all snapshots, and a
        thread that sorts the items of one may be in need of another's.)
        """
        if self._index is None:
            _, table, rows, size, _ = self._version
            starts, guide = np.empty(rows + 1, np.int64), np.empty(size // kernels.blocks.HALF + 1, np.uint32)
            kernels.blocks.index_rows(table, rows, size, starts, guide)
            self._index = table, starts, guide
        return self._index

    def _all(self) -> tuple[Indices, Indices]:
        return np.zeros(1, np.int64), np.full(1, self._size)

    def _timestamps(self, lo: Indices, hi: Indices) -> Timestamps:
        found = np.empty(int((hi - lo).sum()), np.uint64)
        kernels.blocks.gather_timestamps(*self._indexed, lo, hi, found)
        return found

    def _id_words(self, lo: Indices, hi: Indices) -> Words:
        found = np.empty((int((hi - lo).sum()), 4), np.uint64)
        kernels.blocks.gather_ids(*self._indexed, lo, hi, found)
        return found


def _read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    array.flags.writeable = False
    return array
