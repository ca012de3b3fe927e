"""The default storage: sorted columns, and the cumulative sums of their ids, so that any fingerprint costs O(1)."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np

from negvec import kernels
from negvec.errors import DamagedStorage
from negvec.items import Timestamps, as_columns, from_events, from_structured
from negvec.storage.pieces import Piece, in_order, pieces_of
from negvec.storage.seam import Indices, Words
from negvec.storage.vector import Vector, frozen
from negvec.storage.window import Progress
from negvec.threads import together

_ITEMS_FOR_TWO_THREADS = 50_000  # below, starting a thread costs what it saves


class PrefixSumVector(Vector):
    """The default storage: as `Vector`, with the cumulative sums of the ids, so that any fingerprint costs O(1).

    Row j of the (n // stride + 1, 4) uint64 limb matrix is the sum of the first `stride * j` ids mod 2^256.

    Parameters
    ----------
    stride : int, default 1
        Every how many items a sum is kept. An item takes 40 + 32 / stride bytes: 72 at stride 1, 42 at 16. What lies
        between is walked, so that a fingerprint costs O(stride).

    Raises
    ------
    ValueError
        The stride is less than 1.
    """

    def __init__(self, stride: int = 1) -> None:
        super().__init__()
        self._stride = _checked(stride)
        self._limbs: Words = np.zeros((1, 4), np.uint64)

    @property
    def stride(self) -> int:
        """Every how many items a sum is kept."""
        return self._stride

    def seal(self, *, stride: int | None = None) -> None:
        """Sort, drop what is there twice, and freeze; from now on the storage can be reconciled.

        Parameters
        ----------
        stride : int, optional
            Every how many items a sum is kept, instead of what the storage was made with.

        Raises
        ------
        SealError
            It is sealed already.
        ValueError
            The stride is less than 1.
        """
        if stride is not None:
            self._require_unsealed()
            self._stride = _checked(stride)
        super().seal()

    def _keep(self, created_at: Timestamps, words: Words, copy: bool) -> None:
        limbs = np.empty((len(words) // self._stride + 1, 4), np.uint64)

        def accumulate() -> Words:
            limbs[0] = 0
            if self._stride == 1:
                kernels.sums.accumulate(words, 0, len(words), limbs)
            else:
                kernels.strides.accumulate(words, 0, self._stride, np.zeros(4, np.uint64), limbs[1:])
            return limbs

        if copy and len(words) >= _ITEMS_FOR_TWO_THREADS:
            kept, _ = together(partial(frozen, words, copy), accumulate)
        else:
            accumulate()
            kept = frozen(words, copy)
        limbs.flags.writeable = False
        self._limbs = limbs
        super()._keep(frozen(created_at, copy), kept, copy=False)

    @property
    def nbytes(self) -> int:
        """Bytes of memory that the sealed items and their sums take."""
        return super().nbytes + self._limbs.nbytes

    def fingerprint(self, lo: int, hi: int) -> bytes:
        """The fingerprint of one range [lo, hi), 16 bytes; about a microsecond at stride 1."""
        indexed = self._stride == 1 and self._created_at is not None
        if indexed and type(lo) is int and type(hi) is int and 0 <= lo <= hi < len(self._limbs):
            first, second = kernels.sha256.fingerprint(self._limbs, lo, hi)
            return int(first | second << 64).to_bytes(16, "little")
        return super().fingerprint(lo, hi)  # says what is wrong, or takes other integer types

    def verify(self, progress: Progress | None = None) -> None:
        """Check that items are in order, each there once, and that the sums are theirs: one pass.

        Only memory that was written to from outside, or a damaged file, can fail it.

        Parameters
        ----------
        progress : callable, optional
            Called now and then with the number of items checked, and that of all.

        Raises
        ------
        DamagedStorage
            Something is wrong; the message says what.
        """
        self._verify_pieces(pieces_of(self), self._limb_rows, progress)

    def _verify_pieces(
        self, pieces: Iterable[Piece], limb_rows: Callable[[int, int], Words], progress: Progress | None
    ) -> None:
        """Check pieces of all items, and the sums [first, last) that `limb_rows` gives of them."""
        count, total, checked = len(self), np.zeros(4, np.uint64), 1
        if limb_rows(0, 1).any():
            raise DamagedStorage("the sum of no items is not zero")
        for start, created_at, words in in_order(pieces):
            stop = start + len(created_at)
            sums = np.empty((len(words) // self._stride + 1, 4), np.uint64)
            rows = kernels.strides.accumulate(words, start, self._stride, total, sums)
            if not np.array_equal(sums[:rows], limb_rows(checked, checked + rows)):
                raise DamagedStorage(f"a sum of ids is wrong, between items {start} and {stop}")
            checked += rows
            if progress is not None:
                progress(stop, count)

    def _limb_rows(self, first: int, last: int) -> Words:
        return self._limbs[first:last]

    def _range_sums(self, lo: Indices, hi: Indices, sums: Words) -> None:
        if self._stride == 1:
            kernels.sums.subtract(self._limbs, lo, hi, sums)
        else:
            kernels.strides.range_sums(self._id_words, self._limbs, self._stride, lo, hi, sums)


def _checked(stride: int) -> int:
    checked = operator.index(stride)
    if not 1 <= checked < 2**31:
        raise ValueError(f"stride is 1 or more, and less than 2**31, not {stride}")
    return checked


def seal(created_at: Any, ids: Any = None, *, copy: bool = True, stride: int = 1) -> PrefixSumVector:
    """Build the default storage from columns of items.

    Parameters
    ----------
    created_at : array_like of int, shape (n,)
        Timestamps, 0 to 2**64 - 2, any integer dtype. Or, with `ids` left out, a structured array with the fields
        `created_at` and `id` (dtype `negvec.ITEM`), or a list of Nostr events as dicts.
    ids : array_like, optional
        (n, 32) uint8, or (n,) `V32`, or a list of bytes or of hex.
    copy : bool, default True
        False keeps the given arrays themselves where they are sorted, contiguous and of the right dtype: less memory
        and time, for callers who will not write to them again.
    stride : int, default 1
        Keep the cumulative sum of every so many items only, and walk the rest: see `PrefixSumVector`.

    Returns
    -------
    PrefixSumVector
        Sealed. Its attribute `repeats` tells how many items were there twice and dropped.

    Raises
    ------
    ValueError, TypeError
        Something that is no item; the message names its row.
    """
    if ids is not None:
        columns = as_columns(created_at, ids)
    elif isinstance(created_at, np.ndarray):
        columns = from_structured(created_at)
    else:
        columns = from_events(created_at)
    storage = PrefixSumVector(stride)
    storage._freeze(*columns, copy)
    return storage
