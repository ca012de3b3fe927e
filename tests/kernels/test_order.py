"""Sorting against `sorted()`, whose tuples of int and bytes have the order that items have."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from negvec import kernels
from negvec.kernels.order import SHORT_RUN

from . import EDGES, LARGEST, Item, as_columns, as_items, items, thorough

SIZES = [1, 2, SHORT_RUN - 1, SHORT_RUN, SHORT_RUN + 1, 2 * SHORT_RUN, 500, 5000]
Timestamps = Callable[[np.random.Generator, int], list[int]]


def inspect(rows: list[Item], start: int = 0, stop: int | None = None) -> tuple[bool, int]:
    """Whether a row is less than the one before, and, where none is, how many are equal to it."""
    found = np.zeros(2, np.int64)
    kernels.checks.inspect(*as_columns(rows), start, len(rows) if stop is None else stop, found)
    return bool(found[0]), int(found[1])


def expected_inspection(rows: list[Item], start: int, stop: int) -> tuple[bool, int]:
    pairs = [(rows[row - 1], rows[row]) for row in range(start, stop) if row > 0]
    descends = any(after < before for before, after in pairs)
    return descends, 0 if descends else sum(before == after for before, after in pairs)


def arrange(rows: list[Item]) -> list[int]:
    """The rows of the items in order, each item once."""
    created_at, words = as_columns(rows)
    before = created_at.copy(), words.copy()
    places, spare = np.empty((2, len(rows)), np.uint64)
    kept = kernels.order.arrange(created_at, words, places, spare)
    assert (created_at == before[0]).all(), "the given timestamps were changed"
    assert (words == before[1]).all(), "the given ids were changed"
    arranged: list[int] = places[:kept].tolist()
    return arranged


def gather(rows: list[Item], places: list[int]) -> list[Item]:
    to_at, to_words = np.empty(len(places), np.uint64), np.empty((len(places), 4), np.uint64)
    kernels.order.gather(*as_columns(rows), np.array(places, np.uint64), to_at, to_words)
    return as_items(to_at, to_words)


def sort(rows: list[Item]) -> list[Item]:
    """The items in order, each of them once."""
    return gather(rows, arrange(rows))


# ---- inspect


@thorough
@given(st.lists(items, max_size=12), st.booleans(), st.data())
def test_inspection_finds_a_descent_or_counts_the_repeats(
    rows: list[Item], in_order: bool, data: st.DataObject
) -> None:
    rows = sorted(rows) if in_order else rows
    stop = data.draw(st.integers(0, len(rows)))
    start = data.draw(st.integers(0, stop))
    assert inspect(rows, start, stop) == expected_inspection(rows, start, stop)


@pytest.mark.parametrize("byte", range(32))
def test_a_descent_in_any_single_byte_of_the_id_is_seen(byte: int) -> None:
    """The byte decides although all later ones say the opposite: ids compare as unsigned bytes from the first on."""
    less = bytes([5] * byte + [0x7F] + [0xFF] * (31 - byte))
    greater = bytes([5] * byte + [0x80] + [0x00] * (31 - byte))
    assert inspect([(7, less), (7, greater)]) == (False, 0)
    assert inspect([(7, greater), (7, less)]) == (True, 0)


@pytest.mark.parametrize("place", [1, 2, 50, 98, 99])
def test_a_descent_is_seen_wherever_it_stands(place: int) -> None:
    rows = [(10 * i + 5, bytes(32)) for i in range(100)]
    assert not inspect(rows)[0]
    rows[place] = (10 * place - 6, bytes(32))
    assert inspect(rows)[0]
    assert not inspect(rows, 0, place)[0]


def test_timestamps_are_unsigned() -> None:
    assert inspect([(2**63 - 1, bytes(32)), (2**63, bytes(32)), (LARGEST, bytes(32))]) == (False, 0)
    assert inspect([(2**63, bytes(32)), (2**63 - 1, bytes(32))]) == (True, 0)
    assert sort([(LARGEST, bytes(32)), (0, bytes(32)), (2**63, bytes(32))])[0] == (0, bytes(32))


def test_one_row_or_none_is_in_order() -> None:
    assert inspect([]) == (False, 0)
    assert inspect([(0, bytes(32))]) == (False, 0)  # the smallest item there is, with no row before it


# ---- sort


@thorough
@given(st.lists(items, min_size=1, max_size=3 * SHORT_RUN))
def test_sorting_gives_what_sorted_gives(rows: list[Item]) -> None:
    assert sort(rows) == sorted(set(rows))


@thorough
@given(st.lists(st.sampled_from(EDGES), min_size=1, max_size=40))
@example([0, LARGEST])
@example([LARGEST, 0, 2**63, 1])
def test_timestamps_sort_over_their_whole_range(created_at: list[int]) -> None:
    rows = [(at, bytes([255 - i]) * 32) for i, at in enumerate(created_at)]
    assert sort(rows) == sorted(set(rows))


def all_equal(random: np.random.Generator, n: int) -> list[int]:
    return [1_700_000_000] * n


def ascending(random: np.random.Generator, n: int) -> list[int]:
    return [1_700_000_000 + i // 3 for i in range(n)]


def descending(random: np.random.Generator, n: int) -> list[int]:
    return ascending(random, n)[::-1]


def nearly_ascending(random: np.random.Generator, n: int) -> list[int]:
    created_at = ascending(random, n)
    for i, j in random.integers(0, n, (3, 2)):
        created_at[i], created_at[j] = created_at[j], created_at[i]
    return created_at


def two_values(random: np.random.Generator, n: int) -> list[int]:
    return [[0, LARGEST][k] for k in random.integers(0, 2, n)]


def anywhere(random: np.random.Generator, n: int) -> list[int]:
    created_at: list[int] = random.integers(0, LARGEST, n, np.uint64, endpoint=True).tolist()
    return created_at


def outliers(random: np.random.Generator, n: int) -> list[int]:
    """Nearly all in one corner of their span, so that the bits which tell most items apart are the last."""
    return [[0, LARGEST][i % 2] if i < 3 else int(at) for i, at in enumerate(2**40 + random.integers(0, 9 * n, n))]


def powers(random: np.random.Generator, n: int) -> list[int]:
    """Whatever bits are looked at, most items tie in them."""
    return [1 << int(k) for k in random.integers(0, 64, n)]


def long_and_short_runs(random: np.random.Generator, n: int) -> list[int]:
    created_at: list[int] = (random.integers(0, n, n) ** 2 // (3 * n)).tolist()
    return created_at


@pytest.mark.parametrize("shared", [0, 1, 7, 8, 16, 24, 30])
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize(
    "timestamps",
    [all_equal, ascending, descending, nearly_ascending, two_values, anywhere, outliers, powers, long_and_short_runs],
)
def test_runs_of_equal_timestamps_sort_by_id_however_long_and_however_much_the_ids_share(
    timestamps: Timestamps, n: int, shared: int
) -> None:
    """Ids agree in their first `shared` bytes, or, a third of them, in 8, 16 or 24; some items are there twice."""
    random = np.random.default_rng([n, shared])
    ids = random.integers(0, 256, (n, 32), np.uint8)
    ids[:, :shared] = 0x5B
    for agreeing in (8, 16, 24, 32):
        left, right = random.integers(0, n, (2, n // 9 + 1))
        ids[left, :agreeing] = ids[right, :agreeing]
    rows = list(zip(timestamps(random, n), [row.tobytes() for row in ids], strict=True))
    rows += [rows[i] for i in random.integers(0, n, n // 10)]
    assert sort(rows) == sorted(set(rows))


@pytest.mark.parametrize("agreeing", [8, 16, 24])
def test_a_long_run_that_ties_in_pairs_is_sorted_to_the_last_word(agreeing: int) -> None:
    """After each eight bytes the run falls into pairs that still tie, and other pairs do from the next eight on."""
    random = np.random.default_rng(agreeing)
    stems = [random.bytes(agreeing) for _ in range(200)]
    ids = [stem + bytes([255 - twin] * (32 - agreeing)) for stem in stems for twin in (0, 1)]
    rows = [(7, ids[i]) for i in random.permutation(len(ids))]
    assert sort(rows) == sorted(set(rows))


@pytest.mark.parametrize("byte", range(32))
def test_any_single_byte_of_the_id_decides_in_short_and_in_long_runs(byte: int) -> None:
    for n in (SHORT_RUN, SHORT_RUN + 1, 256):
        rows = [(7, bytes([9] * byte + [97 * i % 256] + [255 - 97 * i % 256] * (31 - byte))) for i in range(n)]
        assert sort(rows) == sorted(set(rows))


# ---- items that are there twice


@pytest.mark.parametrize("count", [2, 3])
def test_few_items_of_a_second_sort_by_id_in_whatever_order_they_come(count: int) -> None:
    """Their first words, of eight bytes, tell most of them apart; the least, the largest and equal ones among them."""
    ids = [bytes(32), bytes(31) + b"\1", b"\xff" * 32, b"\xff" * 31 + b"\xfe", b"\0" * 7 + b"\1" * 25, b"\1" * 32]
    for chosen in itertools.product(ids, repeat=count):
        rows = [(1, ids[0]), *((2, item_id) for item_id in chosen), (3, ids[0])]
        assert sort(rows) == sorted(set(rows))


@thorough
@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from([bytes(32), bytes(31) + b"\1", b"\1" * 32]))))
def test_what_is_there_twice_is_kept_once(rows: list[Item]) -> None:
    assert sort(rows) == sorted(set(rows))


@pytest.mark.parametrize("word", range(4))
def test_an_id_that_differs_in_one_word_and_one_under_another_timestamp_are_no_repeats(word: int) -> None:
    other = bytes(8 * word) + b"\1" + bytes(31 - 8 * word)
    rows = [(7, bytes(32)), (7, other), (8, other)]
    assert sort(rows) == rows


@pytest.mark.parametrize("n", SIZES)
def test_one_item_however_often_it_is_there_is_kept_once(n: int) -> None:
    assert sort([(7, b"\5" * 32)] * n) == [(7, b"\5" * 32)]
    assert sort([(9, b"\5" * 32), *[(7, b"\5" * 32)] * n, (8, bytes(32))]) == [
        (7, b"\5" * 32),
        (8, bytes(32)),
        (9, b"\5" * 32),
    ]


# ---- gather


@thorough
@given(st.lists(items, min_size=1, max_size=300), st.data())
def test_gathering_takes_the_items_of_the_rows_in_their_order(rows: list[Item], data: st.DataObject) -> None:
    places = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=300))
    assert gather(rows, places) == [rows[place] for place in places]


@pytest.mark.parametrize("word", range(4))
@pytest.mark.parametrize("apart", [1, 2])
@pytest.mark.parametrize("n", SIZES)
def test_neighbours_whose_next_words_are_as_near_as_can_be_are_told_apart(word: int, apart: int, n: int) -> None:
    """The last id of one value and the first of the next, many times over; told apart by what follows."""
    random = np.random.default_rng([word, n])
    rows = []
    for k, upper in enumerate(random.integers(0, 2, n).tolist()):
        words = [7] * 5
        words[word] += apart * upper
        words[word + 1] = 0 if upper else 2**64 - 1
        words[4] ^= k % (n // 2 + 1) if word < 3 else 0
        rows.append((words[0], b"".join(number.to_bytes(8, "big") for number in words[1:])))
    assert sort(rows) == sorted(set(rows))


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("seed", range(12))
def test_words_of_few_values_sort(n: int, seed: int) -> None:
    """Each word of its own kind: one value, a few, neighbours, both ends, runs, anything."""
    random = np.random.default_rng([n, seed])
    ends = np.array([0, 1, 2**64 - 2, 2**64 - 1], np.uint64)
    kinds = (
        lambda: np.full(n, random.integers(0, 2**63), np.uint64),
        lambda: random.choice(random.integers(0, 2**63, 4).astype(np.uint64), n),
        lambda: random.integers(0, 3, n).astype(np.uint64) + np.uint64(2**40),
        lambda: random.choice(ends, n),
        lambda: np.arange(n, dtype=np.uint64) // np.uint64(random.integers(1, 100)),
        lambda: random.integers(0, 2**64 - 1, n, np.uint64, endpoint=True),
    )
    words = np.stack([kinds[k]() for k in random.integers(0, len(kinds), 5)], axis=1)
    words[:, 0] = np.minimum(words[:, 0], LARGEST)
    rows = [(row[0], b"".join(number.to_bytes(8, "big") for number in row[1:])) for row in words.tolist()]
    assert sort(rows) == sorted(set(rows))
