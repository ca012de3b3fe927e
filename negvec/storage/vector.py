"""Sealed storages in memory: sorted columns.

Items are inserted in any order and number, then sealed: sorted where they are not, freed of repeats and frozen. The
columns stay apart (created_at, ids), so that the ids of a range lie together and go into a message in one copy.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import numpy.typing as npt

from negvec import kernels
from negvec.errors import SealError
from negvec.items import ID_SIZE, INFINITY, ITEM, Ids, Timestamps, as_columns, from_events, from_structured
from negvec.storage.arguments import as_bounds, as_indices, as_ranges, as_words
from negvec.storage.fingerprints import fingerprints
from negvec.storage.pieces import Piece
from negvec.storage.seam import Bounds, Bytes, IdLists, Indices, Words
from negvec.storage.sorting import gathered, rows_in_order
from negvec.storage.window import Windowed

MOST_ITEMS = 2**32 - 1  # rows are sorted in one word with the bits that tell items apart


class Vector(Windowed):
    """Sorted items; a fingerprint walks its range. The plain truth that every other storage is tested against.

    Attributes
    ----------
    repeats : int
        How many items `seal` dropped because they were there twice.

    Examples
    --------
    >>> storage = Vector()
    >>> storage.insert(1700000000, "5b" * 32)
    >>> storage.seal()
    >>> len(storage)
    1
    """

    def __init__(self) -> None:
        self._single_at: list[int] = []
        self._single_ids: list[bytes] = []
        self._batches: list[tuple[Timestamps, Ids]] = []
        self._created_at: Timestamps | None = None  # None until the seal
        self._ids: Ids = np.empty((0, ID_SIZE), np.uint8)
        self._id_words: Words = np.empty((0, 4), np.uint64)
        self._sealing = threading.Lock()
        self.repeats = 0

    # ---- before the seal

    def insert(self, created_at: Any, ids: Any) -> None:
        """Add one item, or columns of items.

        Parameters
        ----------
        created_at : int, or array_like of int, shape (n,)
        ids : bytes or 64 hex digits; or what `negvec.seal` takes for n ids

        Raises
        ------
        SealError
            The storage is sealed.
        ValueError, TypeError
            Something that is no item.
        """
        self._require_unsealed()
        if isinstance(ids, (bytes, str)):
            self._insert_one(created_at, ids)
            return
        timestamps, checked = as_columns(created_at, ids)
        self._batches.append((timestamps.copy(), checked.copy()))

    def _insert_one(self, created_at: Any, item_id: bytes | str) -> None:
        if type(created_at) is int and 0 <= created_at < INFINITY:
            try:
                data = bytes.fromhex(item_id) if isinstance(item_id, str) else item_id
            except ValueError:
                data = b""
            if len(data) == ID_SIZE and len(item_id) in (ID_SIZE, 2 * ID_SIZE):
                self._single_at.append(created_at)
                self._single_ids.append(data)
                return
        self._batches.append(as_columns([created_at], [item_id]))  # says what is wrong, or takes other integer types

    def insert_items(self, items: npt.NDArray[np.void]) -> None:
        """Add a structured array of items, such as one of dtype `negvec.ITEM`; errors as `insert`."""
        self._require_unsealed()
        created_at, ids = from_structured(items)
        self._batches.append((created_at.copy(), ids.copy()))

    def insert_events(self, events: Any) -> None:
        """Add Nostr events (NIP-01) given as dicts; errors as `insert`."""
        self._require_unsealed()
        self._batches.append(from_events(events))

    def seal(self) -> None:
        """Sort, drop what is there twice, and freeze; from now on the storage can be reconciled.

        Raises
        ------
        SealError
            It is sealed already.
        """
        with self._sealing:
            self._require_unsealed()
            batches = list(self._batches)
            if self._single_at:
                batches.append(as_columns(self._single_at, self._single_ids))
            if len(batches) != 1:
                columns = [(np.empty(0, np.uint64), np.empty((0, ID_SIZE), np.uint8)), *batches]
                batches = [(np.concatenate([c[0] for c in columns]), np.concatenate([c[1] for c in columns]))]
            self._freeze(*batches[0], copy=False)
            self._batches, self._single_at, self._single_ids = [], [], []  # only now: a seal may be interrupted

    def _require_unsealed(self) -> None:
        if self._created_at is not None:
            raise SealError("this storage is sealed; start a new one to add items")

    def _freeze(self, created_at: Timestamps, ids: Ids, copy: bool = True) -> None:
        """Take over checked columns; `copy` unless nobody else will write to them."""
        n = len(created_at)
        if n > MOST_ITEMS:
            raise ValueError(f"{n} items are more than one storage can sort ({MOST_ITEMS})")
        words = as_words(ids)
        created_at = np.require(created_at, np.uint64, ["C", "A"])
        places = rows_in_order(created_at, words)
        if len(places):
            self.repeats = n - len(places)
            created_at, words = gathered(created_at, words, places)
            copy = False
        self._keep(created_at, words, copy)

    def _keep(self, created_at: Timestamps, words: Words, copy: bool) -> None:
        """Keep columns that are sorted and free of repeats; the storage is sealed with the last assignment."""
        self._id_words = frozen(words, copy)
        self._ids = self._id_words.view(np.uint8).reshape(-1, ID_SIZE)
        self._created_at = frozen(created_at, copy)

    # ---- after the seal: the seam (negvec.storage.seam.Storage)

    @property
    def created_at(self) -> Timestamps:
        """All timestamps, (n,) uint64, ascending; read-only."""
        if self._created_at is None:
            raise SealError("this storage is not sealed; call seal() when all items are in")
        return self._created_at

    @property
    def ids(self) -> Ids:
        """All ids, (n, 32) uint8, in the order of the items; read-only."""
        self.created_at  # noqa: B018 - raises SealError before the seal
        return self._ids

    def __len__(self) -> int:
        return len(self.created_at)

    def __repr__(self) -> str:
        state = "not sealed" if self._created_at is None else f"{len(self)} items"
        return f"<{type(self).__name__}: {state}>"

    @property
    def nbytes(self) -> int:
        """Bytes of memory that the sealed items take."""
        return self.created_at.nbytes + self._id_words.nbytes

    def items(self, lo: int, hi: int) -> npt.NDArray[np.void]:
        """The items of one range as a structured array of dtype `negvec.ITEM`, shape (hi - lo,); a copy."""
        if not 0 <= lo <= hi <= len(self):
            raise ValueError(f"[{lo}, {hi}) is no range of {len(self)} items")
        items = np.empty(hi - lo, ITEM)
        items["created_at"] = self.created_at[lo:hi]
        items["id"] = self._ids[lo:hi]
        return items

    def id_lists(self, lo: Any, hi: Any) -> IdLists:
        """The ids of many ranges; see `negvec.storage.seam.IdLists`. No id is copied."""
        lo, hi = as_ranges(lo, hi, len(self))
        return IdLists(self.ids, lo)

    def lower_bounds(self, created_at: Any, ids: Any) -> Indices:
        """For each bound the index of the first item not less than it.

        Parameters
        ----------
        created_at : array_like of uint64, shape (m,)
        ids : array_like of uint8, shape (m, 32)
            Id prefixes, zero-padded.

        Returns
        -------
        ndarray of int64, shape (m,)
        """
        timestamps, prefixes = as_bounds(created_at, ids)
        index = np.empty(len(timestamps), np.int64)
        kernels.search.lower_bounds(self.created_at, self._id_words, timestamps, prefixes, index)
        return index

    def minimal_bounds(self, index: Any) -> Bounds:
        """The shortest bound between items `index - 1` and `index`, for each index of 1 .. n - 1; shape (m,) int64."""
        index = as_indices(index)
        m = len(index)
        timestamps, words, lengths = (
            np.empty(m, np.uint64),
            np.empty((m, 4), np.uint64),
            np.empty(m, np.uint8),
        )
        bad = kernels.search.minimal_bounds(self.created_at, self._id_words, index, timestamps, words, lengths)
        if bad >= 0:
            raise ValueError(f"row {bad}: item {index[bad]} of {len(self)} has no item before it")
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
        return fingerprints(len(self), lo, hi, self._range_sums)

    def fingerprint(self, lo: int, hi: int) -> bytes:
        """The fingerprint of one range [lo, hi), 16 bytes. Many at once are much cheaper: see `fingerprints`."""
        digest: bytes = self.fingerprints(lo, hi)[0].tobytes()
        return digest

    def _piece(self, lo: int, hi: int) -> Piece:
        return self.created_at[lo:hi], self._id_words[lo:hi]

    def _range_sums(self, lo: Indices, hi: Indices, sums: Words) -> None:
        kernels.sums.walk(self._id_words, lo, hi, sums)


def frozen(array: npt.NDArray[Any], copy: bool) -> npt.NDArray[Any]:
    """Return the array read-only, or a copy of it."""
    kept = array.copy() if copy else array.view()
    kept.flags.writeable = False
    return kept
