"""What is planned for a write, against Python's own lists and bisect."""

from __future__ import annotations

import bisect
import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from negvec import kernels
from negvec.kernels.blocks import FIRST_AT, TABLE_WORDS
from negvec.kernels.plans import FIRST, GROUP_WORDS, IN_PLACE, LAST, PIECES, SPLICE_WORDS

from . import thorough, timestamps

Group = tuple[int, int, int]  # blocks before it that no group has, its blocks, and its pieces

groups = st.lists(
    st.one_of(
        st.tuples(st.integers(0, 3), st.integers(1, 3), st.integers(0, 4)),
        st.tuples(st.integers(0, 3), st.just(1), st.just(IN_PLACE)),
    ),
    max_size=12,
)


@thorough
@given(groups, st.integers(0, 3))
def test_spliced_blocks_are_those_of_the_groups_one_by_one(given: list[Group], more: int) -> None:
    rows = np.zeros((len(given), GROUP_WORDS), np.int64)
    expected: list[str] = []
    fresh: list[str] = []
    old = 0
    for row, (gap, width, pieces) in zip(rows, given, strict=True):
        expected += [f"old {k}" for k in range(old, old + gap)]
        old += gap
        row[FIRST], row[LAST], row[PIECES] = old, old + width, pieces
        if pieces == IN_PLACE:
            expected += [f"old {old}"]
        else:
            new = [f"new {len(fresh) + k}" for k in range(pieces)]
            expected += new
            fresh += new
        old += width
    expected += [f"old {k}" for k in range(old, old + more)]

    found = np.empty((len(rows), SPLICE_WORDS), np.int64)
    count = kernels.plans.splices(rows, len(rows), found)
    splices = found[:count].tolist()
    blocks = [f"old {k}" for k in range(old + more)]
    for first, last, start, stop in reversed(splices):
        blocks[first:last] = fresh[start:stop]
    assert blocks == expected
    assert all(before[1] < after[0] for before, after in itertools.pairwise(splices)), "those meet"


@thorough
@given(st.lists(timestamps, max_size=12), st.lists(timestamps, min_size=1, max_size=5), st.integers(0, 3))
def test_items_scatter_over_the_blocks_that_begin_between_them(first: list[int], at: list[int], more: int) -> None:
    first.sort()
    table = np.zeros((len(first) + more, TABLE_WORDS), np.uint64)
    table[: len(first), FIRST_AT] = first
    found = kernels.plans.scatter(table, len(first), np.array(at, np.uint64))
    assert found == bisect.bisect_right(first, max(at)) - bisect.bisect_left(first, min(at))
