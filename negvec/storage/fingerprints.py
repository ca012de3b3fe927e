"""Fingerprints of many ranges (specification, section Fingerprint Algorithm), from whatever gives their sums."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from negvec import kernels
from negvec.storage.arguments import as_ranges
from negvec.storage.seam import Bytes, Indices, Words
from negvec.threads import shares, together

RANGES_A_THREAD = 2048  # some 50 microseconds of work, what handing it over costs

RangeSums = Callable[[Indices, Indices, Words], None]
"""Writes the sums of the ids of ranges [lo, hi), (m,) and (m,) int64, to (m, 4) uint64."""


def fingerprints(size: int, lo: Any, hi: Any, range_sums: RangeSums) -> Bytes:
    """The fingerprints of half-open index pairs into `size` items, (m, 16) uint8; in threads where there are many."""
    lo, hi = as_ranges(lo, hi, size)
    sums, hashes = np.empty((len(lo), 4), np.uint64), np.empty((len(lo), 2), np.uint64)

    def fill(rows: slice) -> None:
        range_sums(lo[rows], hi[rows], sums[rows])
        kernels.sha256.fingerprints(sums[rows], lo[rows], hi[rows], hashes[rows])

    if len(lo) < 2 * RANGES_A_THREAD:
        fill(slice(0, len(lo)))
    else:
        together(*(partial(fill, rows) for rows in shares(len(lo), RANGES_A_THREAD)))
    return hashes.view(np.uint8).reshape(-1, 16)
