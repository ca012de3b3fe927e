"""What every storage checks of the columns that it is asked with, before they reach a kernel.

Kernels trust their arguments: an index out of range would be read from memory that is not the storage's.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from negvec import kernels
from negvec.items import ID_SIZE, Timestamps
from negvec.storage.seam import Indices, Words


def as_indices(column: Any) -> Indices:
    """Check a column of indices, or a single one, as (m,) int64; anything but whole numbers is refused."""
    given = np.asarray(column)
    if given.dtype != np.int64:
        if given.dtype.kind not in "iu" and given.size:
            raise TypeError(f"an index is an integer of 64 bits, not {given.dtype}")
        if given.dtype.kind == "u" and given.size and given.max() > np.iinfo(np.int64).max:
            raise ValueError(f"row {int(given.argmax())}: index {given.max()} is out of range")
        given = given.astype(np.int64)
    if given.ndim > 1:
        raise ValueError(f"columns of indices have the shapes (m,), not {given.shape}")
    return np.ascontiguousarray(given)  # one of no dimension becomes a row


def as_ranges(lo: Any, hi: Any, size: int) -> tuple[Indices, Indices]:
    """Check columns of half-open index pairs into `size` items."""
    lo, hi = as_indices(lo), as_indices(hi)
    if lo.shape != hi.shape:
        raise ValueError(f"lo and hi are of the shapes {lo.shape} and {hi.shape}, not both (m,)")
    bad = kernels.search.first_bad_range(lo, hi, size)
    if bad >= 0:
        raise ValueError(f"row {bad}: [{lo[bad]}, {hi[bad]}) is no range of {size} items")
    return lo, hi


def as_bounds(created_at: Any, ids: Any) -> tuple[Timestamps, Words]:
    """Check columns of bounds, infinity among them: (m,) uint64, and the (m, 32) prefixes as (m, 4) words."""
    timestamps, prefixes = np.asarray(created_at), np.asarray(ids)
    if timestamps.dtype != np.uint64:
        if timestamps.dtype.kind not in "iu" and timestamps.size:
            raise TypeError(f"a bound's timestamp is an integer of 64 bits, not {timestamps.dtype}")
        if timestamps.size and timestamps.min() < 0:
            raise ValueError(f"row {int(timestamps.argmin())}: a bound's timestamp is negative: {timestamps.min()}")
        timestamps = timestamps.astype(np.uint64)
    if timestamps.ndim != 1:
        raise ValueError(f"timestamps have one dimension, not shape {timestamps.shape}")
    if prefixes.dtype != np.uint8 or prefixes.shape != (len(timestamps), ID_SIZE):
        raise ValueError(
            f"{len(timestamps)} bounds have id prefixes of shape ({len(timestamps)}, {ID_SIZE}) and dtype uint8, "
            f"not {prefixes.shape} and {prefixes.dtype}"
        )
    return np.ascontiguousarray(timestamps), as_words(np.ascontiguousarray(prefixes))


def as_words(ids: Any) -> Words:
    """(n, 32) uint8 as (n, 4) little-endian uint64; a view where memory is aligned."""
    return np.require(ids.view("<u8").reshape(-1, 4), requirements=["C", "A"])
