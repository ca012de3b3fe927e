"""Limb sums against Python's big integers."""

from __future__ import annotations

from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from negvec import kernels

from . import Words, as_number, as_words, ids, thorough

MODULUS = 2**256
LARGEST_ID = b"\xff" * 32
ONE = (1).to_bytes(32, "little")

some_ids = st.lists(st.one_of(ids(), st.binary(min_size=32, max_size=32)), max_size=12)


def limb_matrix(id_list: list[bytes]) -> Words:
    limbs = np.zeros((len(id_list) + 1, 4), np.uint64)
    kernels.sums.accumulate(as_words(id_list), 0, len(id_list), limbs)
    return limbs


def numbers(limbs: Words) -> list[int]:
    return [as_number(row.tobytes()) for row in limbs]


def running_sums(id_list: list[bytes]) -> list[int]:
    return [total % MODULUS for total in accumulate(map(as_number, id_list), initial=0)]


def all_ranges(n: int) -> tuple[np.ndarray, np.ndarray]:
    pairs = np.array([(lo, hi) for lo in range(n + 1) for hi in range(lo, n + 1)], np.int64)
    return np.ascontiguousarray(pairs[:, 0]), np.ascontiguousarray(pairs[:, 1])


@thorough
@given(some_ids)
def test_row_k_of_the_limb_matrix_is_the_sum_of_the_first_k_ids(id_list: list[bytes]) -> None:
    assert numbers(limb_matrix(id_list)) == running_sums(id_list)


@thorough
@given(some_ids, st.data())
def test_accumulation_goes_on_from_any_row_and_touches_no_other(id_list: list[bytes], data: st.DataObject) -> None:
    stop = data.draw(st.integers(0, len(id_list)))
    start = data.draw(st.integers(0, stop))
    whole = limb_matrix(id_list)
    limbs = np.full_like(whole, 7)
    limbs[start] = whole[start]
    kernels.sums.accumulate(as_words(id_list), start, stop, limbs)
    assert (limbs[start : stop + 1] == whole[start : stop + 1]).all()
    assert (limbs[:start] == 7).all()
    assert (limbs[stop + 1 :] == 7).all()


@thorough
@given(some_ids)
def test_every_range_has_the_sum_of_its_ids_walked_or_subtracted(id_list: list[bytes]) -> None:
    lo, hi = all_ranges(len(id_list))
    expected = [sum(map(as_number, id_list[a:b])) % MODULUS for a, b in zip(lo, hi, strict=True)]
    walked, subtracted = np.empty((len(lo), 4), np.uint64), np.empty((len(lo), 4), np.uint64)
    kernels.sums.walk(as_words(id_list), lo, hi, walked)
    kernels.sums.subtract(limb_matrix(id_list), lo, hi, subtracted)
    assert numbers(walked) == expected
    assert numbers(subtracted) == expected


@pytest.mark.parametrize("bits", range(1, 257))
def test_a_carry_runs_through_as_many_bits_as_it_must(bits: int) -> None:
    ones = (2**bits - 1).to_bytes(32, "little")
    for id_list in ([ones, ONE], [ONE, ones], [ones, ones, ONE, ONE], [LARGEST_ID, ones, ONE]):
        assert numbers(limb_matrix(id_list)) == running_sums(id_list)


@pytest.mark.parametrize("limb", range(4))
def test_a_carry_into_a_full_limb_is_carried_on(limb: int) -> None:
    """The limb is all ones in one summand and zero in the other, so that only the carry from below overflows it."""
    full = ((2**64 - 1) << 64 * limb).to_bytes(32, "little")
    below = (2 ** (64 * limb) - 1).to_bytes(32, "little")
    for id_list in ([full, below, ONE], [below, ONE, full], [below, full, ONE], [full, full, below, below, ONE]):
        assert numbers(limb_matrix(id_list)) == running_sums(id_list)


def test_sums_wrap_past_2_to_the_256_again_and_again() -> None:
    id_list = [LARGEST_ID] * 1000 + [ONE] * 1001
    sums = numbers(limb_matrix(id_list))
    assert sums == running_sums(id_list)
    assert sums[1000] == MODULUS - 1000
    assert sums[2000:] == [0, 1]


def test_a_difference_borrows_through_every_limb() -> None:
    """The sum of all is less than that of the first half, limb by limb."""
    id_list = [LARGEST_ID, ONE, (2**64).to_bytes(32, "little"), (2**128 - 1).to_bytes(32, "little"), LARGEST_ID]
    lo, hi = all_ranges(len(id_list))
    sums = np.empty((len(lo), 4), np.uint64)
    kernels.sums.subtract(limb_matrix(id_list), lo, hi, sums)
    assert numbers(sums) == [sum(map(as_number, id_list[a:b])) % MODULUS for a, b in zip(lo, hi, strict=True)]


def test_no_ranges_and_no_ids_are_fine() -> None:
    none = np.empty(0, np.int64)
    kernels.sums.walk(as_words([]), none, none, np.empty((0, 4), np.uint64))
    kernels.sums.subtract(limb_matrix([]), none, none, np.empty((0, 4), np.uint64))
    lo, hi = all_ranges(0)
    sums = np.full((1, 4), 7, np.uint64)
    kernels.sums.subtract(limb_matrix([]), lo, hi, sums)
    assert numbers(sums) == [0]
