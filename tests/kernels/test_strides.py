"""Sums at a stride against Python's integers."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from negvec import kernels

from . import as_words, ids, thorough

MODULUS = 2**256


def rows_of(limbs: np.ndarray) -> list[int]:
    return [int.from_bytes(row.tobytes(), "little") for row in limbs]


def sums_of(drawn: list[bytes]) -> list[int]:
    sums = [0]
    for id in drawn:
        sums.append((sums[-1] + int.from_bytes(id, "little")) % MODULUS)
    return sums


def limbs_of(drawn: list[bytes], stride: int) -> np.ndarray:
    limbs = np.zeros((len(drawn) // stride + 1, 4), np.uint64)
    kernels.strides.accumulate(as_words(drawn), 0, stride, np.zeros(4, np.uint64), limbs[1:])
    return limbs


@thorough
@given(st.lists(ids(), max_size=30), st.integers(1, 12), st.lists(st.integers(0, 30), max_size=4))
def test_the_sum_of_every_stride_th_item_whatever_pieces_they_come_in(
    drawn: list[bytes], stride: int, cuts: list[int]
) -> None:
    sums, words = sums_of(drawn), as_words(drawn)
    total, found = np.zeros(4, np.uint64), [0]
    edges = [0, *sorted(min(cut, len(drawn)) for cut in cuts), len(drawn)]
    for start, stop in pairwise(edges):
        limbs = np.full((len(drawn) + 1, 4), 7, np.uint64)
        rows = kernels.strides.accumulate(words[start:stop], start, stride, total, limbs)
        found += rows_of(limbs[:rows])
        assert rows_of(total.reshape(1, 4)) == [sums[stop]]
    assert found == sums[::stride]


@thorough
@given(st.lists(ids(), max_size=30), st.integers(1, 40), st.data())
def test_the_sum_of_a_range(drawn: list[bytes], stride: int, data: st.DataObject) -> None:
    n, sums = len(drawn), sums_of(drawn)
    ends = st.tuples(st.integers(0, n), st.integers(0, n)).map(sorted)
    ranges = data.draw(st.lists(ends, max_size=30))
    lo, hi = (np.array([ends[k] for ends in ranges], np.int64) for k in range(2))
    found = np.full((len(ranges), 4), 7, np.uint64)
    kernels.strides.range_sums(as_words(drawn), limbs_of(drawn, stride), stride, lo, hi, found)
    assert rows_of(found) == [(sums[stop] - sums[start]) % MODULUS for start, stop in ranges]
