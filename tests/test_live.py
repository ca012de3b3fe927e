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
from negvec.storage import arrivals
from negvec.storage import live as live_module
from negvec.storage.snapshot import Version

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


class UnsortedMachine(LiveMachine):
    """The same with limits so low that most batches are kept unsorted, in tables that grow, until they are too many."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = pytest.MonkeyPatch()
        low_limits(self.patches, most=1)

    @rule(start=KEYS, count=st.integers(0, 300), batches=st.integers(2, 6), seed=st.integers(0, 9))
    def insert_batch_after_batch(self, start: int, count: int, batches: int, seed: int) -> None:
        some = random.Random(seed)
        for _ in range(batches):
            items = [numbered(some.randrange(start + 1)) for _ in range(count)]
            assert self.live.insert(*columns(items)) == len(set(items) - self.truth)
            self.truth |= set(items)
            assert len(self.live) == len(self.truth)

    def teardown(self) -> None:
        super().teardown()
        self.patches.undo()


TestUnsortedMachine = UnsortedMachine.TestCase
TestUnsortedMachine.settings = settings(max_examples=100, stateful_step_count=30, deadline=None)


# ---- batches that are kept unsorted


def low_limits(patches: pytest.MonkeyPatch, *, most: int) -> None:
    for module in (live_module, arrivals):
        patches.setattr(module, "NEAR", 1)
        patches.setattr(module, "LIMIT", 1000)
    patches.setattr(live_module, "FEW", 2)
    patches.setattr(arrivals, "MOST", most)
    patches.setattr(arrivals, "SMALL", most)
    patches.setattr(arrivals, "FIRST_SLOTS", 16)
    patches.setattr(arrivals, "SAMPLE", 100)


def scattered(count: int, batches: int, seed: int = 0) -> list[list[Item]]:
    some = random.Random(seed)
    return [[(some.randrange(100), some.randbytes(32)) for _ in range(count)] for _ in range(batches)]


def unsorted(batches: list[list[Item]]) -> negvec.LiveIndex:
    """An index whose last batches are not sorted in."""
    live = negvec.LiveIndex()
    for batch in batches:
        assert live.insert(*columns(batch)) == len(batch)
    assert isinstance(live._contents, arrivals.Unsorted)
    return live


@pytest.fixture(params=[1, 100], ids=["merged", "anew"])
def most(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    low_limits(monkeypatch, most=request.param)
    return int(request.param)


@pytest.mark.usefixtures("most")
def test_whoever_looks_sees_batches_sorted() -> None:
    batches = scattered(600, 2) + scattered(90, 6, seed=1)
    live, truth = unsorted(batches), {item for batch in batches for item in batch}
    assert live.nbytes <= 90 * len(truth) + 2 * 8 * kernels.blocks.BLOCK_WORDS
    held = live.snapshot()
    assert (len(held), len(live)) == (len(truth), len(truth))
    assert_equal(held, truth)
    assert live.nbytes <= 90 * len(truth) + 2 * 8 * kernels.blocks.BLOCK_WORDS
    assert_equal(live, truth)


@pytest.mark.usefixtures("most")
def test_whatever_is_written_after_batches_finds_their_items() -> None:
    batches = scattered(600, 2) + scattered(90, 3, seed=1)
    truth = {item for batch in batches for item in batch}
    some, other = batches[-1][0], (50, bytes(32))
    for write in (
        lambda live: (live.insert(*some), live.insert(*other)),
        lambda live: (live.erase(*other), live.erase(*some)),
        lambda live: live.erase(*columns([some, other])),
        lambda live: live.apply(*columns([some, other, some]), [False, True, True]),
        lambda live: live.insert(*columns([(2**40 + k, bytes(32)) for k in range(2000)])),
    ):
        live = unsorted(batches)
        held, before = live.snapshot(), unsorted(batches)
        write(live)
        write(before)
        assert items_of(live) == items_of(before)
        assert_equal(held, truth)
    assert items_of(unsorted(batches)) == sorted(truth)


@pytest.mark.usefixtures("most")
def test_an_item_of_an_unsorted_batch_is_not_added_again() -> None:
    batches = scattered(600, 2) + scattered(90, 3, seed=1)
    live = unsorted(batches)
    again = [batches[k][j] for k in range(5) for j in range(20)] + scattered(20, 1, seed=2)[0]
    assert live.insert(*columns(again + again)) == 20
    assert len(live) == len({item for batch in batches for item in batch}) + 20


@pytest.mark.usefixtures("most")
def test_a_snapshot_taken_while_a_batch_arrives_has_none_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    batches = scattered(600, 2) + scattered(90, 4, seed=1)
    live, held = unsorted(batches[:4]), []
    enter = arrivals.Arrivals.enter

    def enter_and_be_seen(self: arrivals.Arrivals, *items: Any) -> int:
        count = enter(self, *items)
        held.append(live.snapshot())
        return count

    monkeypatch.setattr(arrivals.Arrivals, "enter", enter_and_be_seen)
    for batch in batches[4:]:
        assert live.insert(*columns(batch)) == len(batch)
    live.erase(*batches[0][0])
    for k, storage in enumerate(reversed(held)):
        assert_equal(storage, {item for batch in batches[: 3 + len(held) - k] for item in batch})
    assert_equal(live, {item for batch in batches for item in batch} - {batches[0][0]})


@pytest.mark.usefixtures("most")
def test_a_batch_that_is_broken_off_while_it_arrives_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    batches = scattered(600, 2) + scattered(90, 4, seed=1)
    live = unsorted(batches[:4])
    enter = arrivals.Arrivals.enter

    def interrupted(self: arrivals.Arrivals, *items: Any) -> int:
        enter(self, *items)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(arrivals.Arrivals, "enter", interrupted)
        with pytest.raises(KeyboardInterrupt):
            live.insert(*columns(batches[4]))
    assert len(live) == sum(map(len, batches[:4]))
    for batch in batches[4:]:
        assert live.insert(*columns(batch)) == len(batch)
    assert_equal(live, {item for batch in batches for item in batch})


@pytest.mark.usefixtures("most")
def test_sorting_that_runs_out_of_memory_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    batches = scattered(600, 2) + scattered(90, 3, seed=1)
    live, truth = unsorted(batches), {item for batch in batches for item in batch}
    held = live.snapshot()

    def fail(*_: Any) -> None:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(arrivals, "rows_in_order", fail)
        for look in (lambda: held.fingerprint(0, 5), lambda: live.insert(1, bytes(32))):
            with pytest.raises(MemoryError):
                look()
        assert len(live) == len(truth)
    assert_equal(held, truth)
    assert_equal(live, truth)


@pytest.mark.usefixtures("most")
def test_threads_that_look_at_one_unsorted_snapshot_see_one_set() -> None:
    batches = scattered(600, 2) + scattered(90, 3, seed=1)
    live = unsorted(batches)
    truth, held = {item for batch in batches for item in batch}, live.snapshot()
    expected, seen = sealed(truth).fingerprint(0, len(truth)), []
    start = threading.Barrier(5)

    def read() -> None:
        start.wait()
        seen.append(held.fingerprint(0, len(held)))

    def write() -> None:
        start.wait()
        for k in range(50):
            live.insert(k, bytes(32))

    threads = [threading.Thread(target=read) for _ in range(4)] + [threading.Thread(target=write)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [expected] * 4
    assert_equal(live, truth | {(k, bytes(32)) for k in range(50)})


def test_batches_between_which_somebody_reads_are_sorted_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a read would pay for each write, and the write for the table of hashes."""
    low_limits(monkeypatch, most=1)
    live = negvec.LiveIndex()
    for k, batch in enumerate(scattered(600, 6)):
        live.insert(*columns(batch))
        assert isinstance(live._contents, Version) or k > 3
        if k < 3:
            live.snapshot()
    assert isinstance(live._contents, arrivals.Unsorted)
    live.insert(1, bytes(32))
    assert isinstance(live._contents, Version)


def test_a_batch_of_what_is_there_takes_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor is what is there taken apart for it."""
    low_limits(monkeypatch, most=100)
    batches = scattered(400, 1) + scattered(90, 2, seed=1)
    live = negvec.LiveIndex()
    for batch in batches:
        live.insert(*columns(batch))
    assert live.insert(*columns(batches[0][:200] + batches[1])) == 0
    assert isinstance(live._contents, arrivals.Unsorted)
    assert live.nbytes <= 90 * len(live) + 2 * 8 * kernels.blocks.BLOCK_WORDS
    live.insert(1, bytes(32))
    for _ in range(3):
        assert live.insert(*columns(batches[0][:300])) == 0
        assert isinstance(live._contents, Version)


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
    before = {id(block) for block in live.snapshot()._version.blocks}
    held = live.snapshot()
    live.erase(*numbered(50_000))
    after = {id(block) for block in live.snapshot()._version.blocks}
    assert len(before - after) == 1
    gone = [block for block in held._version.blocks if id(block) not in after]
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


@pytest.mark.parametrize("write", ["insert", "erase"])
def test_what_one_write_has_changed_is_there_whenever_an_interrupt_comes(
    write: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Interrupts come after calls: in a write to blocks, none may follow that of the kernel."""
    live = filled(2000, step=2)
    truth = {numbered(2 * k) for k in range(2000)}
    kernel = kernels.single.write

    def interrupted(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    for k in (500, 1501, 2002, 2003, 2500):
        item = numbered(2 * k + (write == "insert"))
        held = live.snapshot() if k % 2 else None

        def write_and_be_interrupted(*arguments: Any) -> None:
            kernel(*arguments)
            for module, name in ((np, "empty"), (live_module, "Version")):
                patch.setattr(module, name, interrupted)
            raise KeyboardInterrupt

        before = set(truth)
        with monkeypatch.context() as patch:
            patch.setattr(kernels.single, "write", write_and_be_interrupted)
            with pytest.raises(KeyboardInterrupt):
                getattr(live, write)(*item)
        if len(live) != len(truth):
            truth ^= {item}
        assert_equal(live, truth)
        if held is not None:
            assert items_of(held) == sorted(before)
    assert len(truth) != 2000


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
