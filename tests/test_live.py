"""`LiveIndex`: what writes say and do, and that snapshots stay what was there when they were taken."""

from __future__ import annotations

import gc
import random
import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

import negvec
from negvec import kernels
from negvec.kernels.blocks import CAPACITY, HALF

Item = tuple[int, bytes]


def numbered(k: int) -> Item:
    """Item k of an order in which ids decide among three of a second."""
    return 1000 + k // 3, k.to_bytes(32, "big")


def columns(items: list[Item]) -> tuple[Any, Any]:
    created_at = np.array([at for at, _ in items], np.uint64)
    return created_at, np.frombuffer(b"".join(id for _, id in items), np.uint8).reshape(-1, 32)


def items_of(storage: negvec.Storage) -> list[Item]:
    items = storage.items(0, len(storage))
    return [(int(at), id.tobytes()) for at, id in zip(items["created_at"], items["id"], strict=True)]


def sealed(items: set[Item]) -> negvec.PrefixSumVector:
    return negvec.seal(*columns(list(items)))


def filled(count: int, step: int = 1) -> negvec.LiveIndex:
    live = negvec.LiveIndex()
    assert live.insert(*columns([numbered(k) for k in range(0, count * step, step)])) == count
    return live


def assert_equal(storage: negvec.Storage, truth: set[Item], seed: int = 0) -> None:
    """Every answer is that of a freshly sealed set, and so are the bytes of a reconciliation."""
    vector = sealed(truth)
    n = len(vector)
    assert len(storage) == n
    assert items_of(storage) == sorted(truth)
    some = np.random.default_rng(seed)
    ends = np.sort(some.integers(0, n + 1, (2, 50)), axis=0)
    ends[:, 0] = 0, n
    np.testing.assert_array_equal(storage.fingerprints(*ends), vector.fingerprints(*ends))
    if n > 1:
        index = some.integers(1, n, 50)
        for ours, theirs in zip(storage.minimal_bounds(index), vector.minimal_bounds(index), strict=True):
            np.testing.assert_array_equal(ours, theirs)
        at, ids = vector.created_at[index], vector.ids[index]
        np.testing.assert_array_equal(storage.lower_bounds(at, ids), index)
    other = sealed({item for item in truth if item[1][31] % 7} | {numbered(10**6 + seed)})
    assert conversation(storage, other) == conversation(vector, other)
    assert conversation(other, storage) == conversation(other, vector)


def conversation(ours: negvec.Storage, theirs: negvec.Storage) -> list[bytes]:
    initiator, responder = negvec.Negentropy(ours, 4096), negvec.Negentropy(theirs)
    said: list[bytes] = []
    message: bytes | None = initiator.initiate()
    while message is not None:
        answer = responder.reconcile(message).message
        assert answer is not None
        said += [message, answer]
        step = initiator.reconcile(answer)
        message = step.message
    return [*said, step.have.tobytes(), step.need.tobytes()]


# ---- a machine against Python's sets

KEYS = st.integers(0, 3000)


class LiveMachine(RuleBasedStateMachine):
    """Random writes; snapshots that are held, and looked at again at any time."""

    def __init__(self) -> None:
        super().__init__()
        self.live = negvec.LiveIndex()
        self.truth: set[Item] = set()
        self.held: list[tuple[negvec.Storage, set[Item]]] = []

    @rule(key=KEYS)
    def insert_one(self, key: int) -> None:
        item = numbered(key)
        assert self.live.insert(*item) == (item not in self.truth)
        self.truth.add(item)

    @rule(key=KEYS)
    def erase_one(self, key: int) -> None:
        item = numbered(key)
        assert self.live.erase(item[0], item[1].hex()) == (item in self.truth)
        self.truth.discard(item)

    @rule(start=KEYS, count=st.integers(0, 1500), step=st.integers(1, 3), seed=st.integers(0, 9))
    def insert_many(self, start: int, count: int, step: int, seed: int) -> None:
        items = [numbered(start + step * k) for k in range(count)]
        random.Random(seed).shuffle(items)
        assert self.live.insert(*columns(items + items[:3])) == len(set(items) - self.truth)
        self.truth |= set(items)

    @rule(start=KEYS, count=st.integers(0, 1500), step=st.integers(1, 3))
    def erase_many(self, start: int, count: int, step: int) -> None:
        items = {numbered(start + step * k) for k in range(count)}
        assert self.live.erase(*columns(list(items))) == len(items & self.truth)
        self.truth -= items

    @rule(changes=st.lists(st.tuples(KEYS, st.booleans()), max_size=40), spread=st.integers(1, 60))
    def apply(self, changes: list[tuple[int, bool]], spread: int) -> None:
        """One write, in which an item may be there several times: its last mention counts."""
        items = [numbered(key // spread) for key, _ in changes]
        before = set(self.truth)
        for item, (_, add) in zip(items, changes, strict=True):
            (self.truth.add if add else self.truth.discard)(item)
        changed = self.live.apply(*columns(items), np.array([add for _, add in changes], np.bool_))
        assert changed == (len(self.truth - before), len(before - self.truth))

    @rule()
    def snapshot(self) -> None:
        self.held.append((self.live.snapshot(), set(self.truth)))

    @precondition(lambda self: self.held)
    @rule(data=st.data(), seed=st.integers(0, 9))
    def look_at_a_snapshot(self, data: st.DataObject, seed: int) -> None:
        assert_equal(*data.draw(st.sampled_from(self.held)), seed)

    @precondition(lambda self: self.held)
    @rule()
    def let_go(self) -> None:
        del self.held[0]

    @invariant()
    def current(self) -> None:
        assert len(self.live) == len(self.truth)

    def teardown(self) -> None:
        assert_equal(self.live, self.truth)
        for storage, truth in self.held:
            assert items_of(storage) == sorted(truth)


TestLiveMachine = LiveMachine.TestCase
TestLiveMachine.settings = settings(max_examples=100, stateful_step_count=30, deadline=None)


# ---- what writes say


def test_inserting_what_is_there_and_erasing_what_is_not_change_nothing() -> None:
    live = filled(10)
    assert (live.insert(*numbered(3)), live.erase(*numbered(30))) == (0, 0)
    assert live.insert(*columns([numbered(k) for k in range(8, 12)])) == 2
    assert live.erase(*columns([numbered(k) for k in range(11, 20)])) == 1
    assert items_of(live) == [numbered(k) for k in range(11)]


def test_events_and_structured_arrays_go_in_as_they_are() -> None:
    live = negvec.LiveIndex()
    at, id = numbered(5)
    assert live.insert_events([{"created_at": at, "id": id.hex(), "kind": 1}]) == 1
    assert live.insert_items(filled(7).items(0, 7)) == 6
    assert len(live) == 7


@pytest.mark.parametrize(
    ("created_at", "ids"),
    [
        (-1, bytes(32)),
        (2**64 - 1, bytes(32)),
        (1.5, bytes(32)),
        (True, bytes(32)),
        (1, bytes(31)),
        (1, "zz" * 32),
        (1, "ab" * 31),
        ([1, 2], [bytes(32), bytes(33)]),
        ([1, 2**64 - 1], [bytes(32)] * 2),
        ([1], [bytes(32)] * 2),
    ],
)
def test_what_is_no_item_is_refused_and_changes_nothing(created_at: Any, ids: Any) -> None:
    live = filled(5)
    before = items_of(live)
    for write in (live.insert, live.erase):
        with pytest.raises((ValueError, TypeError)):
            write(created_at, ids)
    assert items_of(live) == before


def test_flags_of_another_type_or_number_are_refused() -> None:
    live, items = filled(5), columns([numbered(7), numbered(8)])
    with pytest.raises(TypeError, match="bool"):
        live.apply(*items, [1, 0])
    with pytest.raises(ValueError, match="shape"):
        live.apply(*items, [True])
    assert len(live) == 5


@pytest.mark.parametrize("at", [0, 2**63, 2**64 - 2])
def test_every_timestamp_and_id_can_be_written_alone(at: int) -> None:
    live = negvec.LiveIndex()
    for id in (bytes(32), b"\xff" * 32, bytes(31) + b"\1", b"\1" + bytes(31)):
        assert live.insert(at, id) == 1
        assert live.insert(at, id.hex()) == 0
    assert_equal(live, {(at, id) for id in (bytes(32), b"\xff" * 32, bytes(31) + b"\1", b"\1" + bytes(31))})


# ---- blocks: one item at a time, at every place about their ends


@pytest.mark.parametrize("count", [1, 2, HALF - 1, HALF, HALF + 1, CAPACITY - 1, CAPACITY, CAPACITY + 1, 3 * CAPACITY])
@pytest.mark.parametrize("shared", [False, True], ids=["own", "shared"])
def test_an_item_in_and_out_at_every_place(count: int, shared: bool) -> None:
    live = filled(count, step=2)
    truth = {numbered(2 * k) for k in range(count)}
    for key in range(-1 % (2 * count + 1), 2 * count + 1, max(1, count // 40) | 1):
        held = live.snapshot() if shared else None
        item = numbered(key)
        assert live.insert(*item) == (item not in truth)
        assert items_of(live) == sorted(truth | {item})
        assert live.erase(*item) == 1
        assert items_of(live) == sorted(truth - {item})
        if item in truth:
            assert live.insert(*item) == 1
        if held is not None:
            assert items_of(held) == sorted(truth)
    assert_equal(live, truth)


@pytest.mark.parametrize("order", ["ascending", "descending", "random"])
def test_items_one_at_a_time_to_the_last_and_out_again(order: str) -> None:
    keys = list(range(1500))
    if order != "ascending":
        keys.reverse() if order == "descending" else random.Random(1).shuffle(keys)
    live = negvec.LiveIndex()
    for k in keys:
        assert live.insert(*numbered(k)) == 1
    assert_equal(live, {numbered(k) for k in keys})
    for k in keys[:1000]:
        assert live.erase(*numbered(k)) == 1
    assert_equal(live, {numbered(k) for k in keys[1000:]})
    for k in keys[1000:]:
        assert live.erase(*numbered(k)) == 1
    assert len(live) == 0
    assert_equal(live, set())


@pytest.mark.parametrize("order", ["ascending", "descending", "random", "repeated"])
@pytest.mark.parametrize("size", [1000, 2500, 9000], ids=["small batches", "large batches", "at once"])
@pytest.mark.parametrize("seconds", [1, 300, 9000])
def test_batches_in_any_order_are_the_same_set(order: str, size: int, seconds: int) -> None:
    """Ids say nothing of the order in which they come, as those of events do not."""
    some = random.Random(seconds)
    items = sorted((5 + k * seconds // 9000, some.randbytes(32)) for k in range(9000))
    truth = set(items)
    if order == "descending":
        items.reverse()
    elif order == "random":
        some.shuffle(items)
    elif order == "repeated":
        items = [item for k, item in enumerate(items) for _ in range(1 + k % 3)]
        some.shuffle(items)
    live, held = negvec.LiveIndex(), []
    for start in range(0, len(items), size):
        before = set(items[:start])
        batch = items[start : start + size]
        assert live.insert(*columns(batch)) == len(set(batch) - before)
        held.append((live.snapshot(), before | set(batch)))
    assert_equal(live, truth)
    for storage, then in held:
        assert items_of(storage) == sorted(then)
    assert live.nbytes <= 90 * len(truth) + 2 * 8 * kernels.blocks.BLOCK_WORDS


@pytest.mark.parametrize("every", [2, 7, 100, 300])
@pytest.mark.parametrize("size", [1, 50, 20_000], ids=["singly", "batches", "at once"])
def test_room_stays_in_proportion_to_the_items_that_are_left(every: int, size: int) -> None:
    live = filled(20_000)
    gone = [numbered(k) for k in range(20_000) if k % every]
    for start in range(0, len(gone), size):
        batch = gone[start : start + size]
        if size == 1:
            live.erase(*batch[0])
        else:
            live.erase(*columns(batch))
    left = 20_000 - len(gone)
    assert len(live) == left
    assert live.snapshot().nbytes <= 90 * left + 2 * 8 * kernels.blocks.BLOCK_WORDS
    assert_equal(live, {numbered(k) for k in range(0, 20_000, every)})


# ---- snapshots


def test_a_snapshot_shares_what_no_write_has_touched_and_frees_the_rest() -> None:
    live = filled(100_000)
    before = {id(block) for block in live.snapshot()._blocks}
    held = live.snapshot()
    live.erase(*numbered(50_000))
    after = {id(block) for block in live.snapshot()._blocks}
    assert len(before - after) == 1
    gone = [block for block in held._blocks if id(block) not in after]
    referrers = len(gc.get_referrers(gone[0]))
    del held
    assert len(gc.get_referrers(gone[0])) < referrers


def test_a_reconciliation_goes_on_undisturbed_while_the_index_is_written_to() -> None:
    live, theirs = filled(5000), sealed({numbered(k) for k in range(1000, 6000)})
    initiator, responder = negvec.Negentropy(live.snapshot(), 4096), negvec.Negentropy(theirs, 4096)
    message: bytes | None = initiator.initiate()
    k = 10_000
    while message is not None:
        live.insert(*numbered(k))
        live.erase(*numbered(k - 9000))
        k += 1
        step = initiator.reconcile(responder.reconcile(message).message)
        message = step.message
    assert sorted(row.tobytes() for row in step.have) == [numbered(k)[1] for k in range(1000)]
    assert sorted(row.tobytes() for row in step.need) == [numbered(k)[1] for k in range(5000, 6000)]


def test_threads_that_write_and_read_at_once_see_whole_writes() -> None:
    """Each write adds 50 items or takes them away; whoever looks sees a multiple of 50, and sums that fit."""
    live, stop, wrong = negvec.LiveIndex(), threading.Event(), []

    def write(lane: int) -> None:
        for turn in range(60):
            batch = columns([numbered(lane * 50 + 400 * k) for k in range(50)])
            (live.insert if turn % 2 == 0 else live.erase)(*batch)

    def read() -> None:
        while not stop.is_set():
            storage = live.snapshot()
            if len(storage) % 50 or storage.fingerprint(0, len(storage)) != sealed_again(storage):
                wrong.append(len(storage))

    def sealed_again(storage: negvec.Storage) -> bytes:
        vector = negvec.PrefixSumVector()
        vector.insert_items(storage.items(0, len(storage)))
        vector.seal()
        return vector.fingerprint(0, len(vector))

    readers = [threading.Thread(target=read) for _ in range(2)]
    writers = [threading.Thread(target=write, args=(lane,)) for lane in range(3)]
    for thread in readers + writers:
        thread.start()
    for thread in writers:
        thread.join()
    stop.set()
    for thread in readers:
        thread.join()
    assert wrong == []
    assert len(live) == 0


def test_a_write_that_is_broken_off_leaves_the_set_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    live = filled(2000)
    before = set(items_of(live))

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    for name, write in (
        ("edit", lambda: live.insert(*columns([numbered(-k % 7000) for k in range(500)]))),
        ("append", lambda: live.insert(*columns([numbered(9000 + k) for k in range(900)]))),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(kernels.edits, name, interrupted)
            with pytest.raises(KeyboardInterrupt):
                write()
        assert_equal(live, before)
    live.insert(*columns([numbered(9000 + k) for k in range(900)]))
    assert_equal(live, before | {numbered(9000 + k) for k in range(900)})
