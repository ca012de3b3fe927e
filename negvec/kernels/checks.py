"""Whether items are sorted and each there once, and dropping those that are there twice: one pass each."""

from __future__ import annotations

import numpy as np

from negvec.kernels._jit import INT, OUT_INTS, OUT_WORD_ROWS, OUT_WORDS, VOID, WORD_ROWS, WORDS, Column, kernel
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


@kernel(INT, WORDS, WORD_ROWS, OUT_WORDS, OUT_WORD_ROWS)
def drop_repeats(created_at: Column, ids: Column, kept_at: Column, kept_ids: Column) -> int:
    """Copy sorted items without those equal to the one before; returns how many were kept. In place works too."""
    kept = 0
    for row in range(len(created_at)):
        if kept > 0 and created_at[row] == kept_at[kept - 1]:
            same = True
            for k in range(4):
                same = same and ids[row, k] == kept_ids[kept - 1, k]
            if same:
                continue
        kept_at[kept] = created_at[row]
        for k in range(4):
            kept_ids[kept, k] = ids[row, k]
        kept += 1
    return kept
