"""Whether items are sorted and each there once: one pass."""

from __future__ import annotations

import numpy as np

from negvec.kernels._jit import INT, OUT_INTS, VOID, WORD_ROWS, WORDS, Column, kernel
from negvec.kernels.words import compare_ids


@kernel(VOID, WORDS, WORD_ROWS, INT, INT, OUT_INTS)
def inspect(created_at: Column, ids: Column, start: int, stop: int, found: Column) -> None:
    """Check rows `start .. stop` each against the row before it, in one pass that ends at the first descent.

    found[0] becomes 1 where a row is less than the one before it; else found[1] the number of rows that equal it.
    """
    repeats = 0
    previous = created_at[start - 1] if start > 0 else np.uint64(0)
    for row in range(start, stop):
        at = created_at[row]
        if at <= previous and row > 0:
            order = -1 if at < previous else -compare_ids(ids, row - 1, row)
            if order < 0:
                found[0] = 1
                return
            repeats += order == 0
        previous = at
    found[1] = repeats
