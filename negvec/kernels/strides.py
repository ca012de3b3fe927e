"""Cumulative sums of every stride-th item only: less memory, and a short walk to what lies between.

Row j of a strided limb matrix, (n // stride + 1, 4), is the sum of the first `stride * j` ids mod 2^256. The sum of the
first k is the row nearest to k, and at most `stride` ids added or taken away.
"""

from __future__ import annotations

import numpy as np

from negvec.kernels._jit import INT, INTS, OUT_WORD_ROWS, OUT_WORDS, VOID, WORD_ROWS, Column, device, kernel
from negvec.kernels.addresses import address_of, prefetch
from negvec.kernels.sums import Sum, minus, plus

AHEAD = 8  # ranges; so long before it is read, memory is sent for


@kernel(INT, WORD_ROWS, INT, INT, OUT_WORDS, OUT_WORD_ROWS)
def accumulate(ids: Column, start: int, stride: int, total: Column, limbs: Column) -> int:
    """Go on with a strided limb matrix by ids, the first of which is item `start`; one pass.

    `total`, (4,), is the sum of all items before, and then of all up to the last. Rows for multiples of the stride in
    start + 1 .. start + len(ids) are written from limbs[0] on; returns their number.
    """
    rows = 0
    until = stride - start % stride  # ids up to the next row
    whole = (total[0], total[1], total[2], total[3])
    for row in range(len(ids)):
        whole = plus(whole, (ids[row, 0], ids[row, 1], ids[row, 2], ids[row, 3]))
        until -= 1
        if until == 0:
            for k in range(4):
                limbs[rows, k] = whole[k]
            rows += 1
            until = stride
    for k in range(4):
        total[k] = whole[k]
    return rows


@device
def _nearest(rows: int, stride: int, index: int) -> int:
    return min((index + stride // 2) // stride, rows - 1)


@device
def _fetch(ids: Column, limbs: Column, stride: int, index: int) -> None:
    row = _nearest(len(limbs), stride, index)
    prefetch(address_of(limbs) + 32 * row)
    first = address_of(ids) + 32 * min(index, row * stride)
    prefetch(first)
    prefetch(first + 64)


@device
def _sum_before(ids: Column, limbs: Column, stride: int, index: int) -> Sum:
    row = _nearest(len(limbs), stride, index)
    total = (limbs[row, 0], limbs[row, 1], limbs[row, 2], limbs[row, 3])
    for item in range(row * stride, index):
        total = plus(total, (ids[item, 0], ids[item, 1], ids[item, 2], ids[item, 3]))
    for item in range(index, row * stride):
        total = minus(total, (ids[item, 0], ids[item, 1], ids[item, 2], ids[item, 3]))
    return total


@kernel(VOID, WORD_ROWS, WORD_ROWS, INT, INTS, INTS, OUT_WORD_ROWS)
def range_sums(ids: Column, limbs: Column, stride: int, lo: Column, hi: Column, sums: Column) -> None:
    """The sum of every range [lo, hi): O(stride) a range, whatever its width."""
    last, total = np.int64(0), (limbs[0, 0], limbs[0, 1], limbs[0, 2], limbs[0, 3])
    for m in range(len(lo)):
        if m + AHEAD < len(lo):
            _fetch(ids, limbs, stride, lo[m + AHEAD])
            _fetch(ids, limbs, stride, hi[m + AHEAD])
        start = total if lo[m] == last else _sum_before(ids, limbs, stride, lo[m])  # ranges often meet
        last = hi[m]
        total = _sum_before(ids, limbs, stride, last)
        sums[m, 0], sums[m, 1], sums[m, 2], sums[m, 3] = minus(total, start)
