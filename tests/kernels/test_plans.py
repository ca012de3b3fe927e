"""What takes the place of what in a list of blocks, against Python's own lists."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from negvec import kernels
from negvec.kernels.plans import FIRST, GROUP_WORDS, IN_PLACE, LAST, PIECES, SPLICE_WORDS

from . import thorough

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
