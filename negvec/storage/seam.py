"""The seam between the protocol and what keeps the items: whoever implements `Storage` can be reconciled.

Every method takes and gives arrays, a row for each bound, range or item, so that a round costs a handful of calls
whatever it asks. Ranges are half-open index pairs `[lo, hi)` into the sorted items.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

Indices = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
Bytes = npt.NDArray[np.uint8]


class Bounds(NamedTuple):
    """Bounds as columns (specification, section Bound).

    Attributes
    ----------
    created_at : ndarray of uint64, shape (m,)
        Timestamps; 2**64 - 1 is infinity.
    ids : ndarray of uint8, shape (m, 32)
        Id prefixes, zero-padded.
    lengths : ndarray of uint8, shape (m,)
        Bytes of each prefix, 0 to 32.
    """

    created_at: Words
    ids: Bytes
    lengths: Bytes


class IdLists(NamedTuple):
    """The ids of some ranges: range j has its ids at rows `first[j]`, `first[j] + 1`, ... of `ids`.

    Attributes
    ----------
    ids : ndarray of uint8, shape (k, 32)
        Perhaps a view of the storage itself, never to be written to.
    first : ndarray of int64, shape (m,)
    """

    ids: Bytes
    first: Indices


@runtime_checkable
class Storage(Protocol):
    """A sealed set of items, sorted by (created_at, id as unsigned bytes), each there once."""

    def __len__(self) -> int:
        """Number of items."""
        ...

    def items(self, lo: int, hi: int) -> npt.NDArray[np.void]:
        """The items of one range, a copy of dtype `negvec.ITEM`, shape (hi - lo,)."""
        ...

    def id_lists(self, lo: Any, hi: Any) -> IdLists:
        """The ids of many ranges, (m,) and (m,) int64."""
        ...

    def lower_bounds(self, created_at: Any, ids: Any) -> Indices:
        """For each bound, (m,) uint64 and zero-padded (m, 32) uint8, the index of the first item not less than it."""
        ...

    def minimal_bounds(self, index: Any) -> Bounds:
        """The shortest bound between items `index - 1` and `index`, for each index of 1 .. n - 1."""
        ...

    def fingerprints(self, lo: Any, hi: Any) -> Bytes:
        """The fingerprints of many ranges, (m,) and (m,) int64, as (m, 16) uint8."""
        ...
