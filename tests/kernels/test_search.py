"""Searches against `bisect`, and minimal bounds against the rule of the specification."""

from __future__ import annotations

from bisect import bisect_left

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from negvec import kernels

from . import LARGEST, Item, Words, as_columns, as_ids, ids, items, thorough, timestamps

INFINITY = LARGEST + 1
Columns = tuple[Words, Words]

sets = st.lists(items, max_size=30, unique=True).map(sorted)


def padded(bound: Item) -> Item:
    return bound[0], bound[1].ljust(32, b"\0")


def lower_bounds(columns: Columns, bounds: list[Item]) -> list[int]:
    out = np.full(len(bounds), -7, np.int64)
    kernels.search.lower_bounds(*columns, *as_columns([padded(bound) for bound in bounds]), out)
    indices: list[int] = out.tolist()
    return indices


def minimal_bounds(rows: list[Item], index: list[int]) -> list[tuple[int, bytes, int]]:
    """The kernel's bounds, (timestamp, padded prefix, length)."""
    created_at, words, lengths = np.empty(len(index), np.uint64), np.empty((len(index), 4), np.uint64), bytearray(index)
    length_bytes = np.frombuffer(lengths, np.uint8)
    bad = kernels.search.minimal_bounds(*as_columns(rows), np.array(index, np.int64), created_at, words, length_bytes)
    assert bad == -1
    return list(zip(created_at.tolist(), as_ids(words), lengths, strict=True))


def minimal_bound(before: Item, item: Item) -> tuple[int, bytes, int]:
    """Specification, section Bound: no prefix where the timestamps differ, else the common one and a byte more."""
    length = 0
    if before[0] == item[0]:
        length = 1 + next(k for k in range(32) if before[1][k] != item[1][k])
    return item[0], item[1][:length].ljust(32, b"\0"), length


# ---- lower_bounds


@thorough
@given(sets, st.data())
def test_a_bound_falls_before_the_first_item_that_is_not_less(rows: list[Item], data: st.DataObject) -> None:
    """In any order of the bounds; some are items, some prefixes of them, some infinity."""
    bound = st.tuples(timestamps, st.one_of(ids(), st.binary(max_size=32))) | st.just((INFINITY, b""))
    if rows:
        prefix = st.tuples(st.sampled_from(rows), st.integers(0, 32)).map(lambda b: (b[0][0], b[0][1][: b[1]]))
        bound |= prefix
    bounds = data.draw(st.lists(bound, max_size=20))
    columns = as_columns(rows)
    for order in (bounds, sorted(bounds), sorted(bounds, reverse=True)):
        assert lower_bounds(columns, order) == [bisect_left(rows, padded(bound)) for bound in order]


def spread_set(n: int) -> list[Item]:
    """Timestamps with runs of equal ones, ids that share long prefixes."""
    random = np.random.default_rng(n)
    stems = [random.bytes(length) for length in (0, 8, 15, 31)]
    drawn = {(int(at), (stems[at % 4] + random.bytes(32))[:32]) for at in random.integers(0, n // 3 + 1, n)}
    return sorted(drawn)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 15, 16, 17, 1000])
def test_bounds_fall_right_in_every_order(n: int) -> None:
    rows = spread_set(n)
    columns = as_columns(rows)
    random = np.random.default_rng(1)
    before = [(at, (int.from_bytes(id, "big") - 1).to_bytes(32, "big")) for at, id in rows if any(id)]
    after = [(at, (int.from_bytes(id, "big") + 1).to_bytes(32, "big")) for at, id in rows if id != b"\xff" * 32]
    ends = [(0, b""), (INFINITY, b""), (INFINITY, b""), (LARGEST, b"\xff" * 32), (n + 1, b"")]
    bounds = sorted([*rows, *before, *after, *ends])
    index = [bisect_left(rows, padded(bound)) for bound in bounds]
    assert lower_bounds(columns, bounds) == index
    assert lower_bounds(columns, bounds[::-1]) == index[::-1]
    for _ in range(5):
        shuffled = random.permutation(len(bounds))
        assert lower_bounds(columns, [bounds[i] for i in shuffled]) == [index[i] for i in shuffled]


def test_every_gap_between_ascending_bounds_is_crossed() -> None:
    """The search gallops from bound to bound: every start and every width of a step over 70 items."""
    rows = [(i, bytes(32)) for i in range(70)]
    columns = as_columns(rows)
    for start in range(71):
        for stop in range(start, 72):
            bounds = [(start, b""), (stop, b""), (stop, b""), (stop, b"\1")]
            found = lower_bounds(columns, bounds)
            assert found == [min(start, 70), min(stop, 70), min(stop, 70), min(stop + 1, 70)]


@pytest.mark.parametrize(
    "bound", [(INFINITY, b""), (101, b""), (100, b"\x80" + bytes(30) + b"\1"), (100, b"\xff" * 32)]
)
def test_a_bound_beyond_all_items_falls_behind_them(bound: Item) -> None:
    rows = [(100, b"\x80" + bytes(31))]
    assert lower_bounds(as_columns(rows), [bound]) == [1]
    assert lower_bounds(as_columns(rows), [bound] * 3) == [1, 1, 1]


def test_the_same_bound_again_and_again_falls_at_the_same_place() -> None:
    rows = [(i // 3, bytes([i]) * 32) for i in range(60)]
    bounds = [(7, bytes([22]) * 32)] * 5 + [(7, bytes([21]) * 32)] * 5 + [(7, bytes([22]) * 32)] * 5
    assert lower_bounds(as_columns(rows), bounds) == [22] * 5 + [21] * 5 + [22] * 5


@pytest.mark.parametrize("byte", range(32))
def test_ids_compare_as_unsigned_bytes_in_every_place(byte: int) -> None:
    row = bytes([5] * byte + [0x80] + [0] * (31 - byte))
    columns = as_columns([(7, row)])
    less, equal, greater = ([5] * byte + [last] for last in (0x7F, 0x80, 0x81))
    assert lower_bounds(columns, [(7, bytes(less + [0xFF] * (31 - byte)))]) == [0]
    assert lower_bounds(columns, [(7, bytes(equal))]) == [0]  # the zero-padded prefix is the item itself
    assert lower_bounds(columns, [(7, bytes(greater))]) == [1]


def test_no_bounds_are_fine() -> None:
    assert lower_bounds(as_columns([(1, bytes(32))]), []) == []


# ---- minimal_bounds


@thorough
@given(sets)
def test_a_minimal_bound_is_the_specifications(rows: list[Item]) -> None:
    index = list(range(1, len(rows)))
    assert minimal_bounds(rows, index) == [minimal_bound(rows[i - 1], rows[i]) for i in index]


@thorough
@given(sets)
def test_a_minimal_bound_parts_its_neighbours_and_a_shorter_one_does_not(rows: list[Item]) -> None:
    for i, (at, prefix, length) in enumerate(minimal_bounds(rows, list(range(1, len(rows)))), start=1):
        assert rows[i - 1] < (at, prefix) <= rows[i]
        if length:
            assert not rows[i - 1] < padded((at, prefix[: length - 1]))


@pytest.mark.parametrize("common", range(32))
def test_a_prefix_is_one_byte_longer_than_what_neighbours_share(common: int) -> None:
    """The byte that decides may differ in its lowest bit or in its highest alone."""
    for less, greater in ((0, 1), (0x7F, 0x80), (0, 0x80), (0xFE, 0xFF)):
        before = bytes([5] * common + [less] + [0xFF] * (31 - common))
        item = bytes([5] * common + [greater] + [0xFF] * (31 - common))
        bounds = minimal_bounds([(7, before), (7, item), (9, before), (9, item)], [1, 2, 3, 3])
        prefix = item[: common + 1].ljust(32, b"\0")
        assert bounds == [(7, prefix, common + 1), (9, bytes(32), 0), *[(9, prefix, common + 1)] * 2]


@pytest.mark.parametrize("index", [0, -1, 3, 4, -(2**63), 2**63 - 1])
def test_the_first_row_without_two_neighbours_is_told(index: int) -> None:
    rows = [(i, bytes(32)) for i in range(3)]
    created_at, words, lengths = np.empty(4, np.uint64), np.empty((4, 4), np.uint64), np.empty(4, np.uint8)
    indices = np.array([1, 2, index, index], np.int64)
    assert kernels.search.minimal_bounds(*as_columns(rows), indices, created_at, words, lengths) == 2
    assert kernels.search.minimal_bounds(*as_columns([]), indices, created_at, words, lengths) == 0


@pytest.mark.parametrize(
    ("lo", "hi"), [(-1, 2), (0, 4), (2, 1), (4, 4), (-1, -1), (-(2**63), 0), (0, 2**63 - 1), (2**63 - 1, -(2**63))]
)
def test_the_first_row_that_is_no_range_is_told(lo: int, hi: int) -> None:
    los, his = np.array([0, 3, lo, 1, lo], np.int64), np.array([3, 3, hi, 2, hi], np.int64)
    assert kernels.search.first_bad_range(los, his, 3) == 2
    assert kernels.search.first_bad_range(los[:2], his[:2], 3) == -1
