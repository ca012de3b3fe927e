"""Cumulative sums of every stride-th item only: less memory, and a short walk to what lies between.

Row j of a strided limb matrix, (n // stride + 1, 4), is the sum of the first `stride * j` ids mod 2^256. The sum of the
first k is the row nearest to k, and at most `stride` ids added or taken away.
"""

from __future__ import annotations

import numpy as np

from negvec.kernels._jit import INT, INTS, OUT_WORD_ROWS, OUT_WORDS, VOID, WORD_ROWS, Column, device, kernel
from negvec.kernels.addresses import address_of, prefetch
from negvec.kernels.sums import Sum, minus, nothing, plus

ID_SIZE = 32  # bytes of an id, and of a row
LINE_SIZE = 64  # bytes that memory is read by
AHEAD = 16  # ranges, a power of two; so long before it is read, memory is sent for
LINES = 4  # of ids, at most: eight ids, the longest way at stride 16


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
def _look_up(ids: Column, limbs: Column, stride: int, index: int, rows: Column, place: int) -> None:
    """Find the row nearest to an index, keep it for later, and send for it and for the ids between the two."""
    row = min((index + (stride >> 1)) // stride, len(limbs) - 1)
    rows[place] = row
    prefetch(address_of(limbs) + ID_SIZE * row)
    first, size = min(index, row * stride), ID_SIZE * abs(index - row * stride)
    for line in range(LINES):
        if line * LINE_SIZE < size:
            prefetch(address_of(ids) + ID_SIZE * first + line * LINE_SIZE)


@device
def _sum_before(ids: Column, limbs: Column, stride: int, index: int, row: int) -> Sum:
    at = row * stride
    walked = nothing()
    for item in range(min(at, index), max(at, index)):
        walked = plus(walked, (ids[item, 0], ids[item, 1], ids[item, 2], ids[item, 3]))
    total = (limbs[row, 0], limbs[row, 1], limbs[row, 2], limbs[row, 3])
    return plus(total, walked) if at <= index else minus(total, walked)


@kernel(VOID, WORD_ROWS, WORD_ROWS, INT, INTS, INTS, OUT_WORD_ROWS)
def range_sums(ids: Column, limbs: Column, stride: int, lo: Column, hi: Column, sums: Column) -> None:
    """The sum of every range [lo, hi): O(stride) a range, whatever its width.

    Rows are looked up some ranges before they are read, and kept meanwhile in a ring.
    """
    ring = 2 * AHEAD - 1
    low, high = np.empty(2 * AHEAD, np.int64), np.empty(2 * AHEAD, np.int64)
    last, total = np.int64(-1), nothing()
    for coming in range(len(lo) + AHEAD):
        if coming < len(lo):
            if coming == 0 or lo[coming] != hi[coming - 1]:
                _look_up(ids, limbs, stride, lo[coming], low, coming & ring)
            _look_up(ids, limbs, stride, hi[coming], high, coming & ring)
        m = coming - AHEAD
        if m >= 0:
            # Ranges often meet, and then the sum is there already.
            start = total if lo[m] == last else _sum_before(ids, limbs, stride, lo[m], low[m & ring])
            last = hi[m]
            total = _sum_before(ids, limbs, stride, last, high[m & ring])
            sums[m, 0], sums[m, 1], sums[m, 2], sums[m, 3] = minus(total, start)
