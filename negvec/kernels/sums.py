"""Sums of ids mod 2^256, as rows of four little-endian uint64 limbs with carries resolved.

Ids are (n, 4) uint64 views of their (n, 32) bytes. Sums are additive: with row k of a limb matrix the sum of the first
k ids, any range's sum is one subtraction.
"""

from __future__ import annotations

import numpy as np

from negvec.kernels._jit import INT, INTS, OUT_WORD_ROWS, VOID, WORD_ROWS, Column, Word, device, kernel
from negvec.kernels.addresses import Address, word_at

Sum = tuple[Word, Word, Word, Word]


@device
def _add(
    s0: Word,
    s1: Word,
    s2: Word,
    s3: Word,
    x0: Word,
    x1: Word,
    x2: Word,
    x3: Word,
) -> tuple[Word, Word, Word, Word]:
    r0 = s0 + x0
    carry = np.uint64(r0 < x0)
    half = s1 + x1
    r1 = half + carry
    carry = np.uint64(half < x1) | np.uint64(r1 < carry)
    half = s2 + x2
    r2 = half + carry
    carry = np.uint64(half < x2) | np.uint64(r2 < carry)
    return r0, r1, r2, s3 + x3 + carry


@device
def nothing() -> Sum:
    """The sum of no ids."""
    return np.uint64(0), np.uint64(0), np.uint64(0), np.uint64(0)


@device
def plus(left: Sum, right: Sum) -> Sum:
    """left + right mod 2^256."""
    return _add(left[0], left[1], left[2], left[3], right[0], right[1], right[2], right[3])


@device
def minus(left: Sum, right: Sum) -> Sum:
    """left - right mod 2^256: the sum with the complement of `right`, and 1."""
    more = _add(left[0], left[1], left[2], left[3], np.uint64(1), np.uint64(0), np.uint64(0), np.uint64(0))
    return _add(more[0], more[1], more[2], more[3], ~right[0], ~right[1], ~right[2], ~right[3])


@device
def sum_at(address: Address) -> Sum:
    """An id, or a row of sums, in a block."""
    return word_at(address), word_at(address + 8), word_at(address + 16), word_at(address + 24)


@kernel(VOID, WORD_ROWS, INT, INT, OUT_WORD_ROWS)
def accumulate(ids: Column, start: int, stop: int, limbs: Column) -> None:
    """Fill rows `start + 1 .. stop` of the (n + 1, 4) limb matrix, going on from row `start`; one pass."""
    s0, s1, s2, s3 = limbs[start, 0], limbs[start, 1], limbs[start, 2], limbs[start, 3]
    for row in range(start, stop):
        s0, s1, s2, s3 = _add(s0, s1, s2, s3, ids[row, 0], ids[row, 1], ids[row, 2], ids[row, 3])
        limbs[row + 1, 0] = s0
        limbs[row + 1, 1] = s1
        limbs[row + 1, 2] = s2
        limbs[row + 1, 3] = s3


@kernel(VOID, WORD_ROWS, INTS, INTS, OUT_WORD_ROWS)
def walk(ids: Column, lo: Column, hi: Column, sums: Column) -> None:
    """Sum the ids of every range [lo, hi), one by one: O(width) a range."""
    for m in range(len(lo)):
        s0 = s1 = s2 = s3 = np.uint64(0)
        for row in range(lo[m], hi[m]):
            s0, s1, s2, s3 = _add(s0, s1, s2, s3, ids[row, 0], ids[row, 1], ids[row, 2], ids[row, 3])
        sums[m, 0] = s0
        sums[m, 1] = s1
        sums[m, 2] = s2
        sums[m, 3] = s3


@kernel(VOID, WORD_ROWS, INTS, INTS, OUT_WORD_ROWS)
def subtract(limbs: Column, lo: Column, hi: Column, sums: Column) -> None:
    """The sum of every range [lo, hi) as `limbs[hi] - limbs[lo]`: O(1) a range, whatever its width."""
    for m in range(len(lo)):
        low, high = lo[m], hi[m]
        borrow = np.uint64(0)
        for k in range(4):
            minuend, subtrahend = limbs[high, k], limbs[low, k]
            difference = minuend - subtrahend
            sums[m, k] = difference - borrow
            borrow = np.uint64(minuend < subtrahend) | np.uint64(difference < borrow)
