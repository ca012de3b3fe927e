"""Pairs of sets are those that the recorded runs of the reference were made of, and the same every time."""

from __future__ import annotations

import doctest

import numpy as np
import pytest
import vectors

from negvec import workloads
from negvec.workloads import SHAPES, Pair, Side, pair

SIZES = (20_000, 200_000)
RECORDS = {(run["shape"], run["n"]): run for run in vectors.shapes() if run["n"] in SIZES}


def difference(ours: Side, theirs: Side) -> list[bytes]:
    """The ids of one side that the other lacks."""
    lacking = {id.tobytes() for id in theirs.ids}
    return [id for id in map(bytes, ours.ids) if id not in lacking]


def assert_equal(one: Pair, other: tuple[vectors.Side, vectors.Side]) -> None:
    for side, expected in zip(one, other, strict=True):
        assert side.created_at.dtype == np.uint64
        assert side.ids.dtype == np.uint8
        np.testing.assert_array_equal(side.created_at, expected[0])
        np.testing.assert_array_equal(side.ids, expected[1])


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("shape", ["contiguous", "identical", "scattered", "clustered"])
def test_a_pair_is_the_one_that_the_reference_reconciled(shape: str, n: int) -> None:
    ours, theirs = pair(shape, n)
    record = RECORDS[shape, n]
    assert (len(ours.created_at), len(theirs.created_at)) == (record["client_size"], record["server_size"])
    assert vectors.digest(difference(ours, theirs)) == record["have_sha256"]
    assert vectors.digest(difference(theirs, ours)) == record["need_sha256"]


@pytest.mark.parametrize("salt", [0, 1, 2**64 - 1])
@pytest.mark.parametrize("n", [0, 1, 2, 7, workloads._BLOCK - 1, workloads._BLOCK, 2 * workloads._BLOCK + 3])
@pytest.mark.parametrize("shape", SHAPES)
def test_blocks_and_wrapping_salts_follow_the_same_rule(shape: str, n: int, salt: int) -> None:
    assert_equal(pair(shape, n, salt), vectors.shape_items(shape, n, np.uint64(salt)))


@pytest.mark.parametrize("shape", SHAPES)
def test_items_come_sorted_and_another_salt_gives_other_ids(shape: str) -> None:
    one, other = pair(shape, 1000), pair(shape, 1000, salt=8000)
    for side in (*one, *other):
        assert (np.diff(side.created_at.astype(np.int64)) >= 0).all()
    assert not set(map(bytes, one.ours.ids)) & set(map(bytes, other.ours.ids))


@pytest.mark.parametrize("shape", SHAPES)
def test_the_sides_share_no_memory(shape: str) -> None:
    ours, theirs = pair(shape, 100)
    assert not np.shares_memory(ours.ids, theirs.ids)
    assert not np.shares_memory(ours.created_at, theirs.created_at)


def test_every_shape_is_described() -> None:
    assert set(workloads.DESCRIPTIONS) == set(SHAPES)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("Contiguous", 10), "no shape 'Contiguous'; the shapes are contiguous, "),
        (("identical", -1), "not -1"),
        (("identical", 10, -1), "not -1"),
        (("identical", 10, 2**64), "not 18446744073709551616"),
    ],
)
def test_what_is_no_pair_is_refused(arguments: tuple[str, int], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        pair(*arguments)


def test_the_example_in_the_docstring_is_right() -> None:
    assert doctest.testmod(workloads).failed == 0
