"""A view of a stretch of any storage: a storage of its own, without a copy."""

from __future__ import annotations

import operator
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from negvec import kernels
from negvec.errors import DamagedStorage
from negvec.items import ID_SIZE, INFINITY, Ids, Timestamps
from negvec.storage.arguments import as_indices, as_ranges
from negvec.storage.pieces import Piece, copied, in_order, pieces_of
from negvec.storage.seam import Bounds, Bytes, IdLists, Indices

if TYPE_CHECKING:
    from negvec.storage.seam import Storage

Progress = Callable[[int, int], None]  # told how many items of how many are done


class Windowed:
    """What every storage of ours can do besides the seam: show a window of itself, go into a file, and be verified.

    A storage of your own has all of it by inheriting from this class.
    """

    def window(self: Storage, since: int | None = None, until: int | None = None) -> Window:
        """The items with since <= created_at <= until, as in a filter of NIP-01; O(log n), without a copy.

        Parameters
        ----------
        since, until : int, optional
            Timestamps, both inclusive; None leaves that end open.

        Returns
        -------
        Window
            Empty where `since` is greater than `until`.

        Raises
        ------
        ValueError
            A timestamp is negative.
        """
        lower, upper = _timestamp(since, 0), _timestamp(until, INFINITY)
        return _between(self, (lower, b""), (upper + 1, b""))

    def between(self: Storage, lower: tuple[int, bytes], upper: tuple[int, bytes]) -> Window:
        """The items from one bound on (inclusive) up to another (exclusive); O(log n), without a copy.

        Parameters
        ----------
        lower, upper : tuple of int and bytes
            A timestamp, 2**64 - 1 for infinity, and an id prefix of 0 to 32 bytes (specification, section Bound).

        Returns
        -------
        Window

        Raises
        ------
        ValueError
            A timestamp is negative, or a prefix too long.
        """
        for _, prefix in (lower, upper):
            if len(prefix) > ID_SIZE:
                raise ValueError(f"an id prefix has up to {ID_SIZE} bytes, not {len(prefix)}")
        return _between(self, (_timestamp(lower[0], 0), lower[1]), (_timestamp(upper[0], 0), upper[1]))

    def save(
        self: Storage, path: str | os.PathLike[str], *, stride: int | None = None, progress: Progress | None = None
    ) -> None:
        """Write the items and their sums to a file, which `negvec.open` maps; see `negvec.storage.sealed_file`.

        The file is written beside its place, `path` and `.tmp`, and moved there when it is whole: whatever happens,
        there is the old file or the new one. An error leaves nothing else behind; only a process that is killed can
        leave the unfinished file. Memory does not grow with the storage.

        Parameters
        ----------
        path : str or path-like
            An existing file is replaced.
        stride : int, optional
            Every how many items a sum is kept; by default as this storage does, or 1.
        progress : callable, optional
            Called now and then with the number of items written, and that of all.

        Raises
        ------
        OSError
            The file can't be written. (Windows does not replace a file that is open: close it first.)
        DamagedStorage
            The items are not in order, or one is there twice: this storage is broken, and nothing is written.
        ValueError
            The path is that of a device or pipe, or the stride is none.
        """
        from negvec.storage.sealed_file import save  # here, since few programs save

        save(self, path, stride, progress)

    def verify(self: Storage, progress: Progress | None = None) -> None:
        """Check that items are in order, each there once, and that each one's fingerprint is that of its id.

        Sums are additive: where those of single items are right, those of all ranges are. One pass.

        Parameters
        ----------
        progress : callable, optional
            Called now and then with the number of items checked, and that of all.

        Raises
        ------
        DamagedStorage
            Something is wrong; the message says what.
        """
        count = len(self)
        for start, created_at, words in in_order(pieces_of(self)):
            stop = start + len(created_at)
            lo, expected = np.arange(start, stop), np.empty((len(words), 2), np.uint64)
            kernels.sha256.fingerprints(words, lo, lo + 1, expected)
            if not np.array_equal(self.fingerprints(lo, lo + 1).view("<u8"), expected):
                raise DamagedStorage(f"a sum of ids is wrong, between items {start} and {stop}")
            if progress is not None:
                progress(stop, count)


def _timestamp(given: int | None, default: int) -> int:
    if given is None:
        return default
    timestamp = operator.index(given)
    if timestamp < 0:
        raise ValueError(f"a timestamp is not negative: {timestamp}")
    return min(timestamp, INFINITY)


def _between(storage: Storage, lower: tuple[int, bytes], upper: tuple[int, bytes]) -> Window:
    bounds = [lower, upper]
    created_at = np.array([min(at, INFINITY) for at, _ in bounds], np.uint64)
    prefixes = np.frombuffer(b"".join(prefix.ljust(ID_SIZE, b"\0") for _, prefix in bounds), np.uint8)
    lo, hi = storage.lower_bounds(created_at, prefixes.reshape(2, ID_SIZE)).tolist()
    return Window(storage, lo, max(lo, hi))


class Window(Windowed):
    """The items [lo, hi) of another storage, as a storage of its own (`negvec.Storage`); it keeps the other alive.

    Its answers are those of a sealed storage with these items only. The other storage must not change; a `LiveIndex`
    gives windows of a snapshot.

    Parameters
    ----------
    storage : Storage
    lo, hi : int
        A half-open index pair.

    Raises
    ------
    ValueError
        That is no range of the storage.
    """

    def __init__(self, storage: Storage, lo: int, hi: int) -> None:
        if not 0 <= lo <= hi <= len(storage):
            raise ValueError(f"[{lo}, {hi}) is no range of {len(storage)} items")
        self._storage: Storage = storage
        self._lo, self._size = lo, hi - lo
        if isinstance(storage, Window):  # windows of windows do not pile up
            self._storage, self._lo = storage._storage, storage._lo + lo

    def __len__(self) -> int:
        return self._size

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self._size} items of {self._storage!r}>"

    @property
    def stride(self) -> int:
        """Every how many items the other storage keeps a sum."""
        return getattr(self._storage, "stride", 1)

    @property
    def created_at(self) -> Timestamps:
        """All timestamps, (n,) uint64, ascending; a copy."""
        return np.ascontiguousarray(self.items(0, self._size)["created_at"])

    @property
    def ids(self) -> Ids:
        """All ids, (n, 32) uint8, in the order of the items; a copy."""
        return np.ascontiguousarray(self.items(0, self._size)["id"])

    def items(self, lo: int, hi: int) -> npt.NDArray[np.void]:
        """The items of one range as a structured array of dtype `negvec.ITEM`, shape (hi - lo,); a copy."""
        if not 0 <= lo <= hi <= self._size:
            raise ValueError(f"[{lo}, {hi}) is no range of {self._size} items")
        return self._storage.items(self._lo + lo, self._lo + hi)

    def _piece(self, lo: int, hi: int) -> Piece:
        piece: Callable[[int, int], Piece] | None = getattr(self._storage, "_piece", None)
        if piece is None:
            return copied(self, lo, hi)
        return piece(self._lo + lo, self._lo + hi)

    def id_lists(self, lo: Any, hi: Any) -> IdLists:
        """The ids of many ranges; see `negvec.storage.seam.IdLists`."""
        lo, hi = as_ranges(lo, hi, self._size)
        return self._storage.id_lists(lo + self._lo, hi + self._lo)

    def lower_bounds(self, created_at: Any, ids: Any) -> Indices:
        """For each bound the index of the first item not less than it; see `Storage.lower_bounds`."""
        return np.clip(self._storage.lower_bounds(created_at, ids) - self._lo, 0, self._size)

    def minimal_bounds(self, index: Any) -> Bounds:
        """The shortest bound between items `index - 1` and `index`, for each index of 1 .. n - 1; shape (m,) int64."""
        index = as_indices(index)
        outside = (index < 1) | (index >= self._size)
        if outside.any():
            bad = int(np.argmax(outside))
            raise ValueError(f"row {bad}: item {index[bad]} of {self._size} has no item before it")
        return self._storage.minimal_bounds(index + self._lo)

    def fingerprints(self, lo: Any, hi: Any) -> Bytes:
        """Fingerprints of many ranges, (m,) and (m,) int64, as (m, 16) uint8; see `Storage.fingerprints`."""
        lo, hi = as_ranges(lo, hi, self._size)
        return self._storage.fingerprints(lo + self._lo, hi + self._lo)

    def fingerprint(self, lo: int, hi: int) -> bytes:
        """The fingerprint of one range [lo, hi), 16 bytes. Many at once are much cheaper: see `fingerprints`."""
        digest: bytes = self.fingerprints(lo, hi)[0].tobytes()
        return digest
