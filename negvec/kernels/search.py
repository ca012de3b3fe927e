"""Where bounds fall in a sorted set, and the shortest bounds that part neighbours.

A bound is a timestamp and an id prefix, zero-padded to 32 bytes; it compares with items as if it were one.
"""

from __future__ import annotations

import numpy as np

from negvec.kernels._jit import (
    INT,
    INTS,
    OUT_BYTES,
    OUT_INTS,
    OUT_WORD_ROWS,
    OUT_WORDS,
    VOID,
    WORD_ROWS,
    WORDS,
    Column,
    Word,
    device,
    kernel,
)
from negvec.kernels.words import byte_swap, id_before


@kernel(VOID, WORDS, WORD_ROWS, WORDS, WORD_ROWS, OUT_INTS)
def lower_bounds(created_at: Column, ids: Column, bound_at: Column, bound_ids: Column, out: Column) -> None:
    """For each bound the index of the first item not less than it.

    Bounds may come in any order; where they ascend, as in a message, the search gallops on from the bound before:
    O(log gap) a bound instead of O(log n).
    """
    n = len(created_at)
    low, before_at = 0, np.uint64(0)
    for m in range(len(bound_at)):
        at = bound_at[m]
        word0, word1 = byte_swap(bound_ids[m, 0]), byte_swap(bound_ids[m, 1])
        word2, word3 = byte_swap(bound_ids[m, 2]), byte_swap(bound_ids[m, 3])
        if at < before_at or (
            low > 0
            and not (
                created_at[low - 1] < at
                or (created_at[low - 1] == at and id_before(ids, low - 1, word0, word1, word2, word3))
            )
        ):
            low = 0
        before_at = at
        step, high = 1, low
        while high < n and (
            created_at[high] < at or (created_at[high] == at and id_before(ids, high, word0, word1, word2, word3))
        ):
            low = high + 1
            high += step
            step *= 2
        high = min(high, n)
        while low < high:
            middle = (low + high) >> 1
            if created_at[middle] < at or (
                created_at[middle] == at and id_before(ids, middle, word0, word1, word2, word3)
            ):
                low = middle + 1
            else:
                high = middle
        out[m] = low


@kernel(INT, INTS, INTS, INT)
def first_bad_range(lo: Column, hi: Column, size: int) -> int:
    """The first row where [lo, hi) is no range of `size` items, or -1."""
    for m in range(len(lo)):
        if not 0 <= lo[m] <= hi[m] <= size:
            return m
    return -1


@device
def _zero_bytes(word: Word) -> int:
    """How many of the lowest bytes of a word that is not 0 are zero."""
    count = 0
    while word & np.uint64(0xFF) == np.uint64(0):
        word >>= np.uint64(8)
        count += 1
    return count


@kernel(INT, WORDS, WORD_ROWS, INTS, OUT_WORDS, OUT_WORD_ROWS, OUT_BYTES)
def minimal_bounds(
    created_at: Column, ids: Column, index: Column, bound_at: Column, bound_ids: Column, lengths: Column
) -> int:
    """The shortest bound between items `index - 1` and `index`, for each index in 1 .. n - 1.

    Specification, section Bound: no id prefix where the timestamps differ, else the common prefix and one byte more.
    Returns the first row of `index` that has no two neighbours, or -1.
    """
    for m in range(len(index)):
        row = index[m]
        if not 0 < row < len(created_at):
            return m
        bound_at[m] = created_at[row]
        length = 0
        if created_at[row] == created_at[row - 1]:
            length = 32
            for k in range(4):
                differing = ids[row, k] ^ ids[row - 1, k]
                if differing != np.uint64(0):
                    length = 8 * k + _zero_bytes(differing) + 1
                    break
        lengths[m] = length
        for k in range(4):
            kept = min(max(length - 8 * k, 0), 8)
            mask = ~np.uint64(0) if kept == 8 else (np.uint64(1) << np.uint64(8 * kept)) - np.uint64(1)
            bound_ids[m, k] = ids[row, k] & mask
    return -1
