"""One suite for every storage: what the protocol asks of it, against the same answers in Python's lists and integers.

A storage class is tested by adding its factory to STORAGES, and, if items are inserted into it and it is then sealed,
the class itself to INSERTED.
"""

from __future__ import annotations

import os
import random
import tempfile
from bisect import bisect_left
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from hashlib import sha256
from itertools import accumulate
from threading import Barrier
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import negvec
from negvec import kernels
from negvec.storage import Windowed
from negvec.storage.vector import as_words

Item = tuple[int, bytes]
Factory = Callable[[Any, Any], negvec.Storage]

LARGEST = 2**64 - 2
INFINITY = 2**64 - 1
MODULUS = 2**256


def inserted_into(kind: type[negvec.Vector]) -> Factory:
    def sealed(created_at: Any, ids: Any) -> negvec.Storage:
        storage = kind()
        storage.insert(created_at, ids)
        storage.seal()
        return storage

    return sealed


def grown(created_at: Any, ids: Any) -> negvec.LiveIndex:
    """A live index that has been filled in pieces, in no order, and has had items that are gone."""
    live = negvec.LiveIndex()
    created_at, ids = np.asarray(created_at, np.uint64), np.asarray(ids)
    pieces = np.array_split(np.random.default_rng(len(ids)).permutation(len(ids)), 7)
    for piece in pieces:
        live.insert(created_at[piece], ids[piece])
        live.snapshot()
    live.erase(created_at[pieces[3]], ids[pieces[3]])
    live.insert(created_at[pieces[3]], ids[pieces[3]])
    return live


def mapped(stride: int, resident: int | None = None) -> Factory:
    """Sealed, saved to a file, and opened again."""

    def sealed(created_at: Any, ids: Any) -> negvec.Storage:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "items.negvec")
            negvec.seal(created_at, ids).save(path, stride=stride)
            storage = negvec.open(path, resident=resident)
            storage.verify()
        return storage

    return sealed


def windowed(created_at: Any, ids: Any) -> negvec.Storage:
    """A window of more items: those just before the first and just after the last, where there can be such."""
    inside = negvec.seal(created_at, ids)
    if not len(inside):
        return grown(*columns([(5, bytes(32)), (7, bytes(32))])).between((6, b""), (7, b""))
    first, last = (as_number(inside.items(k, k + 1)[0]) for k in (0, len(inside) - 1))
    outside = [as_item(number) for number in (first - 1, last + 1) if 0 <= number < INFINITY << 256]
    storage = negvec.seal(*map(np.concatenate, zip((inside.created_at, inside.ids), columns(outside), strict=True)))
    return storage.between(as_item(first), as_item(last + 1))


class Own(Windowed):
    """A storage of somebody's own: the six methods of the seam, and what `Windowed` makes of them."""

    def __init__(self, created_at: Any, ids: Any) -> None:
        self.kept = inserted_into(negvec.Vector)(created_at, ids)

    def __len__(self) -> int:
        return len(self.kept)

    def items(self, lo: int, hi: int) -> Any:
        return self.kept.items(lo, hi)

    def id_lists(self, lo: Any, hi: Any) -> Any:
        return self.kept.id_lists(lo, hi)

    def lower_bounds(self, created_at: Any, ids: Any) -> Any:
        return self.kept.lower_bounds(created_at, ids)

    def minimal_bounds(self, index: Any) -> Any:
        return self.kept.minimal_bounds(index)

    def fingerprints(self, lo: Any, hi: Any) -> Any:
        return self.kept.fingerprints(lo, hi)


def as_number(item: Any) -> int:
    return int(item["created_at"]) << 256 | int.from_bytes(item["id"].tobytes(), "big")


def as_item(number: int) -> Item:
    return number >> 256, (number & (1 << 256) - 1).to_bytes(32, "big")


def strided(stride: int) -> Factory:
    return lambda created_at, ids: negvec.seal(created_at, ids, stride=stride)


STORAGES: dict[str, Factory] = {
    "Vector": inserted_into(negvec.Vector),
    "PrefixSumVector": inserted_into(negvec.PrefixSumVector),
    "seal": negvec.seal,
    "stride 2": strided(2),
    "stride 16": strided(16),
    "stride 1000": strided(1000),
    "LiveIndex": grown,
    "Snapshot": lambda created_at, ids: grown(created_at, ids).snapshot(),
    "mapped": mapped(1),
    "mapped, stride 7": mapped(7),
    "mapped, little of it resident": mapped(1, resident=1),
    "mapped, stride 7, little of it resident": mapped(7, resident=1),
    "window": windowed,
    "window of everything": lambda created_at, ids: negvec.seal(created_at, ids).window(),
    "window of one's own": lambda created_at, ids: Own(created_at, ids).window(),
    "window of a file": lambda created_at, ids: mapped(16, resident=1)(created_at, ids).window(),  # type: ignore[attr-defined]
    "window of a snapshot": lambda created_at, ids: grown(created_at, ids).window(),
}
INSERTED = [negvec.Vector, negvec.PrefixSumVector]

every_storage = pytest.mark.parametrize("sealed", STORAGES.values(), ids=STORAGES.keys())
every_insertion = pytest.mark.parametrize("kind", INSERTED)


# ---- the truth


class Truth:
    """The set that a storage holds, in Python's own types, and its answers to all that a storage is asked."""

    def __init__(self, items: list[Item]) -> None:
        self.items = sorted(set(items))
        self.sums = [0, *accumulate(int.from_bytes(id, "little") for _, id in self.items)]

    def fingerprint(self, lo: int, hi: int) -> bytes:
        total = (self.sums[hi] - self.sums[lo]) % MODULUS
        return sha256(total.to_bytes(32, "little") + varint(hi - lo)).digest()[:16]

    def lower_bound(self, created_at: int, prefix: bytes) -> int:
        return bisect_left(self.items, (created_at, prefix.ljust(32, b"\0")))

    def minimal_bound(self, index: int) -> tuple[int, bytes, int]:
        """Specification, section Bound; the prefix zero-padded, and its length."""
        (before_at, before), (created_at, id) = self.items[index - 1], self.items[index]
        length = 0
        if created_at == before_at:
            length = 1 + next(k for k in range(32) if before[k] != id[k])
        return created_at, id[:length].ljust(32, b"\0"), length


def varint(number: int) -> bytes:
    digits = [number & 0x7F]
    while number := number >> 7:
        digits.append(number & 0x7F | 0x80)
    return bytes(reversed(digits))


def columns(items: list[Item]) -> tuple[Any, Any]:
    created_at = np.array([created_at for created_at, _ in items], np.uint64)
    return created_at, matrix([id for _, id in items])


def matrix(ids: list[bytes]) -> Any:
    return np.frombuffer(bytearray(b"".join(ids)), np.uint8).reshape(-1, 32)


def rows(found: Any) -> list[bytes]:
    return [row.tobytes() for row in found]


def items_of(storage: negvec.Storage, lo: int, hi: int) -> list[Item]:
    items = storage.items(lo, hi)
    assert items.dtype == negvec.ITEM
    return list(zip(items["created_at"].tolist(), rows(items["id"]), strict=True))


def ids_of(storage: negvec.Storage, lo: list[int], hi: list[int]) -> list[list[bytes]]:
    listed = storage.id_lists(np.array(lo, np.int64), np.array(hi, np.int64))
    assert listed.ids.dtype == np.uint8
    assert listed.ids.shape[1:] == (32,)
    assert listed.first.dtype == np.int64
    return [rows(listed.ids[at : at + b - a]) for at, a, b in zip(listed.first.tolist(), lo, hi, strict=True)]


def fingerprints_of(storage: negvec.Storage, lo: Any, hi: Any) -> list[bytes]:
    found = storage.fingerprints(lo, hi)
    assert found.dtype == np.uint8
    assert found.shape == (len(lo), 16)
    return rows(found)


def lower_bounds_of(storage: negvec.Storage, bounds: list[Item]) -> list[int]:
    found = storage.lower_bounds(*columns([(at, prefix.ljust(32, b"\0")) for at, prefix in bounds]))
    assert found.dtype == np.int64
    indices: list[int] = found.tolist()
    return indices


def minimal_bounds_of(storage: negvec.Storage, index: list[int]) -> list[tuple[int, bytes, int]]:
    bounds = storage.minimal_bounds(np.array(index, np.int64))
    assert [column.dtype for column in bounds] == [np.uint64, np.uint8, np.uint8]
    return list(zip(bounds.created_at.tolist(), rows(bounds.ids), bounds.lengths.tolist(), strict=True))


def assert_holds(storage: negvec.Storage, truth: Truth) -> None:
    """Every answer that there is, of a small set: all ranges, all items as bounds, all neighbours."""
    n = len(truth.items)
    ranges = [(lo, hi) for lo in range(n + 1) for hi in range(lo, n + 1)]
    lo, hi = [lo for lo, _ in ranges], [hi for _, hi in ranges]
    assert len(storage) == n
    assert items_of(storage, 0, n) == truth.items
    assert ids_of(storage, lo, hi) == [[id for _, id in truth.items[a:b]] for a, b in ranges]
    assert fingerprints_of(storage, lo, hi) == [truth.fingerprint(a, b) for a, b in ranges]
    bounds = [*truth.items, *((at, id[:5]) for at, id in truth.items), (0, b""), (INFINITY, b"")]
    assert lower_bounds_of(storage, bounds) == [truth.lower_bound(*bound) for bound in bounds]
    assert minimal_bounds_of(storage, list(range(1, n))) == [truth.minimal_bound(index) for index in range(1, n)]


def some_items(n: int, seed: int = 0) -> list[Item]:
    """Runs of equal timestamps, ids that share prefixes of every length, ids that begin or end in zeros."""
    draw = random.Random(seed)
    stems = [draw.randbytes(length).ljust(32, b"\0") for length in (0, 1, 8, 15, 24, 31, 32)]
    items: set[Item] = set()
    while len(items) < n:
        stem, kept = draw.choice(stems), draw.choice((0, 1, 8, 15, 24, 31))
        id = (stem[:kept] + draw.randbytes(draw.choice((1, 2, 32)))).ljust(32, b"\0")[:32]
        items.add((draw.choice((draw.randrange(n), draw.randrange(3), draw.randrange(LARGEST))), id))
    shuffled = sorted(items)
    draw.shuffle(shuffled)
    return shuffled


timestamps = st.one_of(st.integers(0, 3), st.sampled_from([2**53 + 1, 2**63, LARGEST]), st.integers(0, LARGEST))
ids = st.one_of(
    st.sampled_from([bytes(32), bytes(31) + b"\1", b"\1" + bytes(31), b"\xff" * 32]),
    st.binary(max_size=3).map(lambda start: start.ljust(32, b"\0")),
    st.binary(min_size=32, max_size=32),
)
small_sets = st.lists(st.tuples(timestamps, ids), max_size=12)


# ---- what a sealed storage answers


@every_storage
@given(small_sets)
def test_a_storage_holds_what_was_put_in(sealed: Factory, items: list[Item]) -> None:
    assert_holds(sealed(*columns(items)), Truth(items))


@every_storage
def test_all_ranges_of_200_items_agree_with_the_truth(sealed: Factory) -> None:
    items = some_items(200)
    assert_holds(sealed(*columns(items)), Truth(items))


@lru_cache
def large_set() -> tuple[Any, Any, Truth]:
    created_at, ids = columns(some_items(50_000))
    return created_at, ids, Truth(list(zip(created_at.tolist(), rows(ids), strict=True)))


@every_storage
def test_a_set_of_50_000_agrees_on_random_ranges_all_neighbours_and_both_ends(sealed: Factory) -> None:
    created_at, ids, truth = large_set()
    storage, n = sealed(created_at, ids), 50_000
    draw = random.Random(1)
    ranges = [(min(pair), max(pair)) for pair in ((draw.randint(0, n), draw.randint(0, n)) for _ in range(2000))]
    ranges += [(k, k) for k in range(n + 1)] + [(k, k + 1) for k in range(n)] + [(k, k + 2) for k in range(n - 1)]
    near_ends = [*range(20), *range(n - 20, n + 1), *draw.sample(range(n), 200)]
    ranges += [(0, k) for k in near_ends] + [(k, n) for k in near_ends]
    draw.shuffle(ranges)
    lo, hi = np.array(ranges, np.int64).T
    assert fingerprints_of(storage, lo, hi) == [truth.fingerprint(a, b) for a, b in ranges]


@every_storage
def test_a_set_of_50_000_agrees_on_its_items_and_bounds(sealed: Factory) -> None:
    created_at, ids, truth = large_set()
    storage, n = sealed(created_at, ids), 50_000
    assert items_of(storage, 0, n) == truth.items
    assert minimal_bounds_of(storage, list(range(1, n))) == [truth.minimal_bound(index) for index in range(1, n)]
    assert lower_bounds_of(storage, truth.items) == list(range(n))
    found = storage.lower_bounds(*storage.minimal_bounds(np.arange(1, n))[:2])
    assert found.tolist() == list(range(1, n)), "a minimal bound does not fall where it was made"


@every_storage
def test_sums_that_wrap_past_2_to_the_256_agree(sealed: Factory) -> None:
    """All ids are close below 2^256, so that any two wrap, and a range's sum is often less than that before it."""
    items = [(i, (MODULUS - 1 - i * i).to_bytes(32, "little")) for i in range(60)]
    items += [(60 + i, (2 ** (64 * (i % 4 + 1)) - 1).to_bytes(32, "little")) for i in range(20)]
    assert_holds(sealed(*columns(items)), Truth(items))


@every_storage
def test_every_storage_is_sound(sealed: Factory) -> None:
    told: list[tuple[int, int]] = []
    sealed(*columns(some_items(300))).verify(lambda *done: told.append(done))  # type: ignore[attr-defined]
    assert told == [(300, 300)]
    sealed([], np.empty((0, 32), np.uint8)).verify()  # type: ignore[attr-defined]


@every_storage
def test_bounds_may_come_in_any_order(sealed: Factory) -> None:
    truth = Truth(some_items(300))
    storage = sealed(*columns(truth.items))
    bounds = [*truth.items, *((at, id[: at % 32]) for at, id in truth.items), *[(INFINITY, b"")] * 3, (0, b"")]
    for order in (sorted(bounds), sorted(bounds, reverse=True), random.Random(2).sample(bounds, len(bounds))):
        assert lower_bounds_of(storage, order) == [truth.lower_bound(*bound) for bound in order]


@every_storage
@pytest.mark.parametrize("items", [[], [(0, bytes(32))], [(LARGEST, b"\xff" * 32)]], ids=["none", "least", "greatest"])
def test_a_set_of_one_item_or_none_is_a_set(sealed: Factory, items: list[Item]) -> None:
    assert_holds(sealed(*columns(items)), Truth(items))


@every_storage
def test_the_whole_range_of_timestamps_is_kept_and_compared_unsigned(sealed: Factory) -> None:
    items = [
        (at, b"\x5b" * 32) for at in (0, 1, 2**31, 2**32, 2**53, 2**53 + 1, 2**63 - 1, 2**63, LARGEST - 1, LARGEST)
    ]
    storage = sealed(*columns(items[::-1]))
    assert_holds(storage, Truth(items))
    assert lower_bounds_of(storage, [(LARGEST, b"\xff" * 32), (INFINITY, b"")]) == [10, 10]


@every_storage
def test_asking_for_nothing_gives_nothing(sealed: Factory) -> None:
    storage, none = sealed(*columns(some_items(5))), np.empty(0, np.int64)
    assert storage.fingerprints(none, none).shape == (0, 16)
    assert storage.fingerprints([], []).shape == (0, 16)
    assert storage.lower_bounds(np.empty(0, np.uint64), np.empty((0, 32), np.uint8)).shape == (0,)
    assert [len(column) for column in storage.minimal_bounds(none)] == [0, 0, 0]
    assert len(storage.id_lists(none, none).first) == 0
    assert [len(storage.items(at, at)) for at in (0, 5)] == [0, 0]


@every_storage
def test_indices_may_be_of_any_integer_dtype_strided_or_lists(sealed: Factory) -> None:
    truth = Truth(some_items(9))
    storage = sealed(*columns(truth.items))
    lo, hi = [0, 3, 9, 4], [9, 5, 9, 5]
    expected = [truth.fingerprint(a, b) for a, b in zip(lo, hi, strict=True)]
    for dtype in ("i1", "u1", ">i2", "<u4", "i8", "u8", ">i8"):
        assert rows(storage.fingerprints(np.array(lo, dtype), np.array(hi, dtype))) == expected
        assert rows(storage.fingerprints(np.repeat(np.array(lo, dtype), 2)[::2], tuple(hi))) == expected
        bounds = storage.minimal_bounds(np.array([8, 1], dtype))
        assert bounds.created_at.tolist() == [truth.items[8][0], truth.items[1][0]]
    assert rows(storage.fingerprints(0, 9)) == [truth.fingerprint(0, 9)]
    created_at, ids = columns(truth.items)
    for form in (np.asfortranarray(ids), np.repeat(ids, 2, axis=0)[::2], np.repeat(ids, 2, axis=1)[:, ::2]):
        assert storage.lower_bounds(created_at.astype(">u8"), form).tolist() == list(range(9))
    at_an_odd_address = np.frombuffer(b"?" + ids.tobytes(), np.uint8, offset=1).reshape(-1, 32)
    assert storage.lower_bounds(created_at, at_an_odd_address).tolist() == list(range(9))


@every_storage
def test_every_storage_is_what_the_protocol_takes(sealed: Factory) -> None:
    storage = sealed(*columns(some_items(40)))
    assert isinstance(storage, negvec.Storage)
    result = negvec.reconcile(storage, sealed(*columns(some_items(40)[3:])))
    assert sorted(rows(result.have)) == sorted(id for _, id in some_items(40)[:3])


@every_storage
def test_a_sealed_storage_does_not_change_under_its_readers(sealed: Factory) -> None:
    truth = Truth(some_items(50))
    storage = sealed(*columns(truth.items))
    items, bounds = storage.items(0, 50), storage.minimal_bounds([1, 2])
    fingerprints = storage.fingerprints([0], [50])
    for column in (items["created_at"], items["id"], *bounds, fingerprints):
        column[...] = 77  # what is given away is a copy
    with pytest.raises(ValueError, match="read-only"):
        storage.id_lists([0], [50]).ids[0] = 77
    assert_holds(storage, truth)


# ---- out of range

BAD_RANGES = [(-1, 3), (0, 6), (6, 6), (3, 2), (-3, -1), (5, 0), (-(2**63), 0), (0, 2**63 - 1), (2**62, 2**62 + 1)]


@every_storage
@pytest.mark.parametrize(("lo", "hi"), BAD_RANGES)
@pytest.mark.parametrize("row", [0, 1, 17, 39])
def test_a_range_that_is_none_is_refused_with_its_row(sealed: Factory, lo: int, hi: int, row: int) -> None:
    storage = sealed(*columns(some_items(5)))
    los, his = np.zeros(40, np.int64), np.full(40, 5)
    los[row], his[row] = lo, hi
    with pytest.raises(ValueError, match=rf"^row {row}: \[{lo}, {hi}\) is no range of 5 items"):
        storage.fingerprints(los, his)


@every_storage
@pytest.mark.parametrize(("lo", "hi"), BAD_RANGES)
def test_items_of_a_range_that_is_none_are_refused(sealed: Factory, lo: int, hi: int) -> None:
    with pytest.raises(ValueError, match=rf"\[{lo}, {hi}\) is no range of 5 items"):
        sealed(*columns(some_items(5))).items(lo, hi)


@every_storage
@pytest.mark.parametrize("index", [0, -1, 5, 6, -(2**63), 2**63 - 1])
@pytest.mark.parametrize("row", [0, 1, 17])
def test_a_bound_without_two_neighbours_is_refused_with_its_row(sealed: Factory, index: int, row: int) -> None:
    indices = np.full(18, 4)
    indices[row] = index
    with pytest.raises(ValueError, match=rf"^row {row}: item {index} of 5 "):
        sealed(*columns(some_items(5))).minimal_bounds(indices)


@every_storage
def test_one_fingerprint_is_a_batch_of_one(sealed: Factory) -> None:
    random = np.random.default_rng(8)
    storage = sealed(random.integers(0, 99, 300, np.uint64), random.integers(0, 256, (300, 32), np.uint8))
    for lo, hi in [(0, 0), (0, 300), (300, 300), *np.sort(random.integers(0, 301, (50, 2)), axis=1).tolist()]:
        expected = storage.fingerprints(lo, hi)[0].tobytes()
        assert storage.fingerprint(lo, hi) == storage.fingerprint(np.int64(lo), np.uint16(hi)) == expected
    for lo, hi in [(-1, 2), (2, 1), (0, 301)]:
        with pytest.raises(ValueError, match="no range"):
            storage.fingerprint(lo, hi)


@every_storage
def test_id_lists_of_a_range_that_is_none_are_refused_with_its_row(sealed: Factory) -> None:
    storage = sealed(*columns(some_items(5)))
    for lo, hi in BAD_RANGES:
        with pytest.raises(ValueError, match=rf"^row 1: \[{lo}, {hi}\) is no range of 5 items"):
            storage.id_lists([0, lo], [5, hi])
    with pytest.raises(ValueError, match="shapes"):
        storage.id_lists([0, 1], [5])


@every_storage
def test_lo_and_hi_of_different_shapes_are_refused(sealed: Factory) -> None:
    storage = sealed(*columns(some_items(5)))
    for lo, hi in (
        ([0, 1], [5]),
        ([], [5]),
        ([[0]], [[5]]),
        (0, [1, 2]),
        (np.zeros((2, 2), int), np.ones((2, 2), int)),
    ):
        with pytest.raises(ValueError, match="shapes"):
            storage.fingerprints(lo, hi)


@every_storage
def test_bounds_whose_columns_do_not_match_are_refused(sealed: Factory) -> None:
    """By an error that says so, not by one that the kernel or a view of words has for it."""
    storage = sealed(*columns(some_items(5)))
    for shape in ((1, 32), (0, 32), (3, 32), (2, 16), (4, 16), (2, 8), (1, 64), (2, 33)):
        with pytest.raises(ValueError, match=r"timestamps|bytes|shape"):
            storage.lower_bounds(np.zeros(2, np.uint64), np.zeros(shape, np.uint8))


@every_storage
def test_an_index_that_is_no_integer_of_64_bits_is_refused(sealed: Factory) -> None:
    storage = sealed(*columns(some_items(5)))
    for index in (1.5, 1.0, "1", 2**64, np.array([1.5])):
        with pytest.raises((ValueError, TypeError)):
            storage.fingerprints([0], [index])
        with pytest.raises((ValueError, TypeError)):
            storage.minimal_bounds([index])


@every_storage
def test_a_bound_whose_timestamp_is_none_is_refused(sealed: Factory) -> None:
    storage, prefix = sealed(*columns(some_items(5))), np.zeros((1, 32), np.uint8)
    for created_at in (np.array([-1]), [-1], [2**64], [1.5], np.array([1.5])):
        with pytest.raises((ValueError, TypeError)):
            storage.lower_bounds(created_at, prefix)


# ---- insert and seal


def one_by_one(storage: negvec.Vector, items: list[Item]) -> None:
    for created_at, id in items:
        storage.insert(created_at, id)


def one_by_one_as_hex(storage: negvec.Vector, items: list[Item]) -> None:
    for row, (created_at, id) in enumerate(items):
        storage.insert(np.uint64(created_at), id.hex() if row % 2 else id.hex().upper())


def in_a_batch(storage: negvec.Vector, items: list[Item]) -> None:
    storage.insert(*columns(items))


def as_lists(storage: negvec.Vector, items: list[Item]) -> None:
    storage.insert([created_at for created_at, _ in items], [id.hex() for _, id in items])


def as_records(storage: negvec.Vector, items: list[Item]) -> None:
    records = np.empty(len(items), negvec.ITEM)
    records["created_at"], records["id"] = columns(items)
    storage.insert_items(records)


def as_events(storage: negvec.Vector, items: list[Item]) -> None:
    storage.insert_events({"id": id.hex(), "created_at": created_at, "kind": 1} for created_at, id in items)


WAYS_IN = [one_by_one, one_by_one_as_hex, in_a_batch, as_lists, as_records, as_events]


@every_insertion
@pytest.mark.parametrize("way", WAYS_IN)
def test_items_go_in_by_every_way(kind: type[negvec.Vector], way: Callable[[negvec.Vector, list[Item]], None]) -> None:
    items = some_items(70)
    storage = kind()
    way(storage, items)
    storage.seal()
    assert_holds(storage, Truth(items))
    assert storage.repeats == 0


@every_insertion
@given(parts=st.lists(st.tuples(st.sampled_from(WAYS_IN), small_sets), max_size=6))
def test_the_ways_in_mix_and_what_comes_twice_is_kept_once(kind: type[negvec.Vector], parts: Any) -> None:
    storage, inserted = kind(), []
    for way, items in parts:
        way(storage, items)
        inserted += items
    storage.seal()
    assert items_of(storage, 0, len(storage)) == sorted(set(inserted))
    assert storage.repeats == len(inserted) - len(set(inserted))


@every_insertion
@pytest.mark.parametrize("in_order", [False, True])
def test_repeats_are_dropped_and_counted(kind: type[negvec.Vector], in_order: bool) -> None:
    items = some_items(100)
    inserted = items + items[:30] + items[:10] * 2
    storage = kind()
    storage.insert(*columns(sorted(inserted) if in_order else inserted))
    storage.seal()
    assert storage.repeats == 50
    assert_holds(storage, Truth(items))


def test_the_stride_of_a_seal_is_that_of_the_storage_or_the_given_one() -> None:
    items = some_items(100)
    for made, asked, expected in ((1, None, 1), (16, None, 16), (1, 16, 16), (16, 3, 3)):
        storage = negvec.PrefixSumVector(made)
        storage.insert(*columns(items))
        for none in (0, -1, 2**31):
            with pytest.raises(ValueError, match="stride"):
                storage.seal(stride=none)
        storage.seal(stride=asked)
        assert (storage.stride, storage.nbytes) == (expected, 40 * 100 + 32 * (100 // expected + 1))
        assert_holds(storage, Truth(items))
        with pytest.raises(negvec.SealError):
            storage.seal(stride=5)
        assert storage.stride == expected


def test_the_same_id_under_two_timestamps_and_two_ids_under_one_are_two_items() -> None:
    a, b = b"a" * 32, b"b" * 32
    storage = negvec.seal([2, 1, 1, 2], [a, a, b, b])
    assert (len(storage), storage.repeats) == (4, 0)
    storage = negvec.seal([5] * 1000, [a] * 1000)
    assert (len(storage), storage.repeats) == (1, 999)


@every_insertion
def test_a_refused_insert_leaves_nothing_behind(kind: type[negvec.Vector]) -> None:
    storage = kind()
    storage.insert(1, bytes(32))
    with pytest.raises(ValueError, match=r"^row 1: "):
        storage.insert([5, 6], [bytes(32), bytes(31)])
    with pytest.raises(ValueError, match=r"^row 0: "):
        storage.insert(INFINITY, bytes(32))
    with pytest.raises(ValueError, match=r"^row 0: "):
        storage.insert(7, "5b" * 31)
    with pytest.raises(TypeError, match=r"^row 1: "):
        storage.insert_events([{"id": "5b" * 32, "created_at": 1}, {"id": "5b" * 32, "created_at": 1.5}])
    storage.insert(2, b"\1" * 32)
    storage.seal()
    assert items_of(storage, 0, 2) == [(1, bytes(32)), (2, b"\1" * 32)]


@every_insertion
@pytest.mark.parametrize(
    ("created_at", "id", "error", "reason"),
    [
        (INFINITY, bytes(32), ValueError, "infinity"),
        (-1, bytes(32), ValueError, "negative"),
        (2**64, bytes(32), ValueError, "over 64 bits"),
        (1.0, bytes(32), TypeError, "float"),
        (True, bytes(32), TypeError, "bool"),
        ("1", bytes(32), TypeError, "str"),
        (None, bytes(32), TypeError, "NoneType"),
        ([1], bytes(32), TypeError, "list"),
        (1, bytes(31), ValueError, "32 bytes, not 31"),
        (1, bytes(33), ValueError, "32 bytes, not 33"),
        (1, b"5b" * 32, ValueError, "32 bytes, not 64"),
        (1, "5b" * 16, ValueError, "64 hex digits, not 32"),
        (1, "5" * 63, ValueError, "64 hex digits, not 63"),
        (1, "5b" * 31 + "5g", ValueError, "64 hex digits"),
        (1, "5b " * 21 + "5", ValueError, "64 hex digits"),
        (1, "5b" * 32 + " ", ValueError, "64 hex digits, not 65"),
    ],
)
def test_one_bad_item_is_refused(
    kind: type[negvec.Vector], created_at: Any, id: Any, error: type[Exception], reason: str
) -> None:
    with pytest.raises(error, match=f"^row 0: .*{reason}"):
        kind().insert(created_at, id)


@every_insertion
@pytest.mark.parametrize("id", [None, 5, bytearray(32), memoryview(bytes(32)), np.void(bytes(32))], ids=repr)
def test_one_item_whose_id_is_neither_bytes_nor_hex_is_refused(kind: type[negvec.Vector], id: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        kind().insert(1, id)


@every_insertion
def test_records_that_are_no_structured_array_are_refused(kind: type[negvec.Vector]) -> None:
    for items in (None, 5, "items", [], {}, [(1, bytes(32))], [{"created_at": 1, "id": "5b" * 32}]):
        with pytest.raises((ValueError, TypeError)):
            kind().insert_items(items)  # type: ignore[arg-type]


@every_insertion
def test_numbers_are_no_events(kind: type[negvec.Vector]) -> None:
    for events in (np.zeros(3), np.zeros((2, 32), np.uint8), [np.uint64(5)]):
        with pytest.raises(TypeError, match=r"^row 0: an event is a dict"):
            kind().insert_events(events)


# ---- at the wrong time

ASK: dict[str, Callable[[Any], Any]] = {
    "len": len,
    "created_at": lambda storage: storage.created_at,
    "ids": lambda storage: storage.ids,
    "nbytes": lambda storage: storage.nbytes,
    "items": lambda storage: storage.items(0, 0),
    "id_lists": lambda storage: storage.id_lists([0], [0]),
    "lower_bounds": lambda storage: storage.lower_bounds([1], np.zeros((1, 32), np.uint8)),
    "minimal_bounds": lambda storage: storage.minimal_bounds([]),
    "fingerprints": lambda storage: storage.fingerprints([0], [0]),
    "Negentropy": negvec.Negentropy,
}
CHANGE: dict[str, Callable[[Any], Any]] = {
    "insert": lambda storage: storage.insert(1, bytes(32)),
    "insert columns": lambda storage: storage.insert([1], [bytes(32)]),
    "insert nothing": lambda storage: storage.insert([], []),
    "insert_items": lambda storage: storage.insert_items(np.zeros(1, negvec.ITEM)),
    "insert_events": lambda storage: storage.insert_events([{"created_at": 1, "id": "5b" * 32}]),
    "seal": lambda storage: storage.seal(),
}


@every_insertion
@pytest.mark.parametrize("ask", ASK.values(), ids=ASK.keys())
@pytest.mark.parametrize("items", [0, 3])
def test_a_storage_answers_nothing_before_the_seal(
    kind: type[negvec.Vector], ask: Callable[..., Any], items: int
) -> None:
    storage = kind()
    one_by_one(storage, some_items(items))
    with pytest.raises(negvec.SealError, match="not sealed"):
        ask(storage)
    storage.seal()
    ask(storage)


@every_insertion
@pytest.mark.parametrize("change", CHANGE.values(), ids=CHANGE.keys())
@pytest.mark.parametrize("items", [0, 3])
def test_a_sealed_storage_takes_no_change(kind: type[negvec.Vector], change: Callable[..., Any], items: int) -> None:
    storage = kind()
    one_by_one(storage, some_items(items))
    storage.seal()
    with pytest.raises(negvec.SealError, match="is sealed"):
        change(storage)
    with pytest.raises(negvec.SealError, match="is sealed"):
        change(negvec.seal(*columns(some_items(items))))
    assert_holds(storage, Truth(some_items(items)))


@every_insertion
@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_a_seal_that_was_broken_off_loses_nothing(
    kind: type[negvec.Vector], error: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = kind()
    one_by_one(storage, some_items(10))
    in_a_batch(storage, some_items(20))

    def broken_off(*arguments: Any) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(kernels.checks, "inspect", broken_off)
        with pytest.raises(error):
            storage.seal()
    storage.seal()
    assert_holds(storage, Truth(some_items(10) + some_items(20)))


@every_insertion
def test_the_state_of_a_storage_shows_in_its_repr(kind: type[negvec.Vector]) -> None:
    storage = kind()
    storage.insert(1, bytes(32))
    assert repr(storage) == f"<{kind.__name__}: not sealed>"
    storage.seal()
    assert repr(storage) == f"<{kind.__name__}: 1 items>"


# ---- frozen


@every_insertion
@pytest.mark.parametrize("items", [some_items(20), sorted(some_items(20)), some_items(20) * 2])
def test_frozen_arrays_are_read_only(kind: type[negvec.Vector], items: list[Item]) -> None:
    storage = kind()
    storage.insert(*columns(items))
    storage.seal()
    for column in (storage.created_at, storage.ids, storage.id_lists([0], [20]).ids):
        assert not column.flags.writeable
        with pytest.raises(ValueError, match="read-only"):
            column[0] = 0
    assert storage.created_at.tolist() == [created_at for created_at, _ in sorted(set(items))]
    assert rows(storage.ids) == [id for _, id in sorted(set(items))]


@pytest.mark.parametrize("n", [0, 1, 1000])
def test_a_prefix_sum_vector_takes_72_bytes_an_item_and_a_vector_40(n: int) -> None:
    created_at, ids = columns(some_items(n))
    assert negvec.seal(created_at, ids).nbytes == 72 * n + 32  # the sum of no ids is a row as well
    assert inserted_into(negvec.Vector)(created_at, ids).nbytes == 40 * n  # type: ignore[attr-defined]


@pytest.mark.parametrize("in_order", [False, True])
def test_the_room_of_dropped_repeats_is_given_back(in_order: bool) -> None:
    items = some_items(100) * 10
    storage = negvec.seal(*columns(sorted(items) if in_order else items))
    assert storage.nbytes == 72 * 100 + 32
    for column in (storage.created_at, storage.ids):
        owner = column
        while owner.base is not None:
            owner = owner.base
        assert owner.nbytes == column.nbytes


def test_kernels_read_ids_at_aligned_addresses() -> None:
    """Numba takes them to be aligned and does not look, which only some processors forgive."""
    ids = matrix([id for _, id in some_items(3)])
    at_an_odd_address = np.frombuffer(b"?" + ids.tobytes(), np.uint8, offset=1).reshape(-1, 32)
    assert not at_an_odd_address.view("<u8").flags.aligned
    assert as_words(at_an_odd_address).flags.aligned
    assert as_words(at_an_odd_address).tobytes() == ids.tobytes()
    assert np.shares_memory(as_words(ids), ids)


# ---- threads


@every_storage
def test_storages_may_be_sealed_and_asked_in_many_threads_at_once(sealed: Factory) -> None:
    sets = [some_items(300 + k, seed=k) for k in range(8)]
    start = Barrier(len(sets))

    def seal_and_ask(items: list[Item]) -> tuple[list[Item], list[bytes]]:
        start.wait()
        for _ in range(20):
            storage = sealed(*columns(items))
            found = fingerprints_of(storage, np.arange(len(items)), np.full(len(items), len(items)))
        return items_of(storage, 0, len(items)), found

    with ThreadPoolExecutor(len(sets)) as pool:
        for items, (kept, found) in zip(sets, pool.map(seal_and_ask, sets), strict=True):
            truth = Truth(items)
            assert kept == truth.items
            assert found == [truth.fingerprint(lo, len(items)) for lo in range(len(items))]


@every_storage
def test_one_storage_answers_many_threads_at_once(sealed: Factory) -> None:
    truth = Truth(some_items(500))
    storage = sealed(*columns(truth.items))
    lo = np.arange(500)
    expected = [truth.fingerprint(k, 500) for k in range(500)], list(range(500))

    def ask(_: int) -> bool:
        found = fingerprints_of(storage, lo, np.full(500, 500)), lower_bounds_of(storage, truth.items)
        return found == expected

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(ask, range(40)))
