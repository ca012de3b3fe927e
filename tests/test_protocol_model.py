"""negvec says what the plain model says, message by message, on small sets of every odd kind.

Equal messages make one conversation of four: negvec on either side with the model on the other, and each with itself.
"""

from __future__ import annotations

import random
from collections.abc import Iterable

import pytest
import vectors
from hearing import Listener, Range
from hypothesis import example, given, settings
from hypothesis import strategies as st
from model import END, FINGERPRINT, ID_LIST, SKIP, Bound, Item, Model, Writer, varint
from vectors.conversation import Conversation, converse

import negvec
from negvec.protocol.stages import FIRST_BATCH

LATEST = 2**64 - 2

TIMESTAMPS = [0, 1, 2, 2**53 - 1, 2**53, 2**53 + 1, 2**63 - 1, 2**63, LATEST - 1, LATEST]
PREFIXES = [bytes(31), b"\xff" * 31, b"\x80" + bytes(30), bytes(30) + b"\x01", b""]
SIZES = [0, 1, 2, 31, 32, 33, 47, 64, 511, 512, 513]
LIMITS = [0, 4096, 4097, 4128, 4500, 6421, 9000]
SHARES = [0.0, 0.05, 0.5, 0.95, 1.0]


class Speaker:
    """A `negvec.Negentropy`, made to look like the model."""

    def __init__(self, items: Iterable[Item], frame_size_limit: int = 0) -> None:
        storage = negvec.PrefixSumVector()
        for created_at, item_id in items:
            storage.insert(created_at, item_id)
        storage.seal()
        self.negentropy = negvec.Negentropy(storage, frame_size_limit)

    def initiate(self) -> bytes:
        return self.negentropy.initiate()

    def reconcile(self, message: bytes) -> tuple[bytes | None, list[bytes], list[bytes]]:
        step = self.negentropy.reconcile(message)
        have, need = ([row.tobytes() for row in ids] for ids in (step.have, step.need))
        return step.message, have, need


class Both:
    """negvec and the model as one side, which must agree on every byte."""

    def __init__(self, items: list[Item], frame_size_limit: int) -> None:
        self.negvec, self.model = Speaker(items, frame_size_limit), Model(items, frame_size_limit, lossy=False)

    def initiate(self) -> bytes:
        message = self.negvec.initiate()
        assert message.hex() == self.model.initiate().hex()
        return message

    def reconcile(self, message: bytes) -> tuple[bytes | None, list[bytes], list[bytes]]:
        answer, have, need = self.negvec.reconcile(message)
        expected, _, _ = self.model.reconcile(message)
        assert (answer and answer.hex()) == (expected and expected.hex())
        return answer, have, need


def assert_found(talk: Conversation, ours: list[Item], theirs: list[Item]) -> None:
    have, need = ({item_id for _, item_id in only} for only in (set(ours) - set(theirs), set(theirs) - set(ours)))
    assert set(talk.have) - set(talk.need) == have - need
    assert set(talk.need) - set(talk.have) == need - have


def assert_agreed(ours: list[Item], theirs: list[Item], limits: tuple[int, int]) -> None:
    talk = converse(Both(ours, limits[0]), Both(theirs, limits[1]), most_rounds=200)
    assert_found(talk, ours, theirs)
    assert sorted(talk.have + talk.need) == sorted({*talk.have, *talk.need}), "an id is given twice, or in both lists"


def drawn_ids(chance: random.Random, n: int) -> list[bytes]:
    """`n` ids in ascending order: spread out, or with a long prefix in common, down to the last byte or two."""
    prefix = chance.choice(PREFIXES)[: 31 if n < 256 else 30]
    free = 32 - len(prefix)
    numbers = chance.sample(range(2 ** min(8 * free, 60)), n)
    return [prefix + number.to_bytes(free, chance.choice(["big", "little"])) for number in numbers]


def drawn_items(chance: random.Random, n: int) -> list[Item]:
    few = chance.sample(TIMESTAMPS, chance.choice([1, 1, 3, len(TIMESTAMPS)]))
    start = chance.choice([0, 2**53 - n // 2, LATEST + 1 - max(n, 1)])
    spread = chance.random() < 0.3
    return [(start + i if spread else chance.choice(few), item_id) for i, item_id in enumerate(drawn_ids(chance, n))]


items = st.tuples(st.sampled_from(TIMESTAMPS), st.binary(min_size=1, max_size=1).map(lambda last: bytes(31) + last))
"""Items that differ in their timestamp or their last byte."""


@given(st.lists(items, max_size=40), st.lists(items, max_size=40), st.booleans())
def test_repeats_and_ids_under_two_timestamps(ours: list[Item], theirs: list[Item], shared: bool) -> None:
    theirs = theirs + ours if shared else theirs
    talk = converse(Both(ours + ours[:5], 0), Both(theirs, 4096), most_rounds=20)
    have, need = ({item_id for _, item_id in only} for only in (set(ours) - set(theirs), set(theirs) - set(ours)))
    held_by_us, held_by_them = ({item_id for _, item_id in held} for held in (ours, theirs))
    assert held_by_us - held_by_them <= set(talk.have) <= have
    assert held_by_them - held_by_us <= set(talk.need) <= need
    assert not set(talk.have) & set(talk.need)


@settings(max_examples=300)
@given(
    seed=st.integers(0, 2**32),
    size=st.sampled_from(SIZES),
    shares=st.tuples(st.sampled_from(SHARES), st.sampled_from(SHARES)),
    limits=st.tuples(st.sampled_from(LIMITS), st.sampled_from(LIMITS)),
)
def test_every_message_is_the_models(
    seed: int, size: int, shares: tuple[float, float], limits: tuple[int, int]
) -> None:
    chance = random.Random(seed)
    universe = drawn_items(chance, size)
    ours, theirs = ([item for item in universe if chance.random() < share] for share in shares)
    assert_agreed(ours, theirs, limits)


@pytest.mark.parametrize("ours", [0, 1, 31, 32, 33])
@pytest.mark.parametrize("theirs", [0, 1, 31, 32, 33])
@pytest.mark.parametrize("created_at", [0, LATEST])
def test_the_sizes_at_which_lists_turn_into_fingerprints(ours: int, theirs: int, created_at: int) -> None:
    universe = [(created_at, bytes(31) + bytes([last])) for last in range(max(ours, theirs))]
    assert_agreed(universe[:ours], universe[len(universe) - theirs :], (0, 0))


def test_minimal_bounds_of_a_whole_id() -> None:
    universe = [(2**53 + 1, bytes(31) + bytes([last])) for last in range(256)]
    message = Both(universe, 0).initiate()
    assert message.count(bytes(31)) == 15, "a bound of 32 bytes between every two of 16 ranges"
    assert_agreed(universe[::2], universe[::3], (4096, 4096))


def crowded(seed: int, size: int, seconds: int, shares: tuple[float, float]) -> tuple[list[Item], list[Item]]:
    chance = random.Random(seed)
    universe = [(chance.randrange(seconds), chance.randbytes(32)) for _ in range(size)]
    ours, theirs = ([item for item in universe if chance.random() < share] for share in shares)
    return ours, theirs


CROWDED = given(
    seed=st.integers(0, 2**32),
    size=st.integers(400, 1500),
    seconds=st.sampled_from([1, 3, 10**6]),
    shares=st.tuples(st.sampled_from(SHARES), st.sampled_from(SHARES)),
    limits=st.tuples(st.sampled_from(LIMITS), st.sampled_from(LIMITS)),
)
"""Pairs that fill frames."""


@settings(max_examples=100)
@CROWDED
def test_every_message_is_the_models_where_frames_are_full(
    seed: int, size: int, seconds: int, shares: tuple[float, float], limits: tuple[int, int]
) -> None:
    assert_agreed(*crowded(seed, size, seconds, shares), limits)


@settings(max_examples=100)
@CROWDED
@example(seed=0, size=1500, seconds=1, shares=(0.5, 0.5), limits=(4096, 4096))
def test_nothing_is_lost_to_the_reference(
    seed: int, size: int, seconds: int, shares: tuple[float, float], limits: tuple[int, int]
) -> None:
    ours, theirs = crowded(seed, size, seconds, shares)
    assert_found(converse(Speaker(ours, limits[0]), Model(theirs, limits[1], lossy=True), 200), ours, theirs)
    assert_found(converse(Model(ours, limits[0], lossy=True), Speaker(theirs, limits[1]), 200), ours, theirs)


@pytest.mark.parametrize("limits", [(0, 4096), (4096, 0), (0, 9000), (4096, 4096)])
@pytest.mark.parametrize("first", [0, 5_000, 15_000, 19_000])
def test_messages_of_thousands_of_ranges(first: int, limits: tuple[int, int]) -> None:
    """Differences lie behind `first`, so that what fills the answer comes late in a long message, or early."""
    chance = random.Random(first)
    universe = [(i // 3, chance.randbytes(32)) for i in range(20_000)]
    ours, theirs = ([item for i, item in enumerate(universe) if i < first or chance.random() < 0.98] for _ in range(2))
    assert_agreed(ours, theirs, limits)


FILLING = 57  # IdLists of 2 ids, 68 bytes each, leave 19 bytes of the 3896 that a frame of 4096 has before it closes
HELD = [(i // 2, i.to_bytes(4, "big") * 8) for i in range(2000)]
LISTENERS = {size: Listener(HELD[:size], 4096) for size in (2 * FILLING, 2 * FILLING + 1, len(HELD))}
WRONG = b"\xa5" * 16
NOTHING = Model([]).fingerprint(0, 0)


def message_of(*ranges: Range) -> bytes:
    out = Writer()
    for bound, mode, payload in ranges:
        out.range(bound, mode, payload)
    return bytes(out.message)


@pytest.mark.parametrize("initiates", [False, True], ids=["responder", "initiator"])
@pytest.mark.parametrize("skips", [0, 1, 2])
@pytest.mark.parametrize("theirs", [WRONG, NOTHING], ids=["something", "nothing"])
@pytest.mark.parametrize("bound", [(FILLING + 5, b""), (5000, b"\1"), END], ids=["near", "far", "infinity"])
@pytest.mark.parametrize("size", LISTENERS)
def test_the_rules_for_a_range_at_which_the_frame_is_full(
    size: int, bound: Bound, theirs: bytes, skips: int, initiates: bool
) -> None:
    """Our answer to a Fingerprint, of what we hold or of nothing, ends at every byte about that where frames close."""
    for padding in range(32):
        ranges: list[Range] = [((i + 1, b""), FINGERPRINT, WRONG) for i in range(FILLING)]
        ranges[0] = (1, bytes(padding)), FINGERPRINT, WRONG  # the same bound as without: prefixes are zero-padded
        ranges += [((FILLING + 1 + skip, b""), SKIP, b"") for skip in range(skips)]
        ranges.append((bound, FINGERPRINT, theirs))
        if bound != END:
            ranges.append((END, FINGERPRINT, WRONG))
        assert LISTENERS[size].hear(message_of(*ranges), initiates)


@pytest.mark.parametrize("rest", [(END, FINGERPRINT, WRONG), (END, ID_LIST, varint(0))], ids=["fingerprint", "list"])
@pytest.mark.parametrize("skips", [FIRST_BATCH - 2, FIRST_BATCH - 1, FIRST_BATCH, 3 * FIRST_BATCH - 1])
def test_what_lies_behind_the_first_ranges_of_a_long_message(skips: int, rest: Range) -> None:
    """A list of `listed` ids, which leaves some room in the frame, or none, for the range behind it."""
    for listed in range(80, 130):
        ranges: list[Range] = [((0, b""), SKIP, b"")] * skips
        ranges.append(((listed // 2, b""), ID_LIST, varint(0)))
        assert LISTENERS[len(HELD)].hear(message_of(*ranges, ((900, b""), SKIP, b""), rest), initiates=False)


@pytest.mark.parametrize("turned", [False, True], ids=["as-recorded", "sides-turned"])
@pytest.mark.parametrize("asks", ["negvec", "reference"])
@pytest.mark.parametrize("record", vectors.reference_loses(), ids=lambda record: record["name"])
def test_what_the_reference_loses_is_found_whichever_side_negvec_plays(
    record: vectors.Record, asks: str, turned: bool
) -> None:
    sides = [(vectors.items(record[f"{side}_items"]), record[f"{side}_limit"]) for side in ("client", "server")]
    true = {"have": record["true_have"], "need": record["true_need"]}
    if turned:
        sides.reverse()
        true = {"have": record["true_need"], "need": record["true_have"]}
    (ours, our_limit), (theirs, their_limit) = sides
    if asks == "negvec":
        talk = converse(Speaker(ours, our_limit), Model(theirs, their_limit, lossy=True))
    else:
        talk = converse(Model(ours, our_limit, lossy=True), Speaker(theirs, their_limit))
    assert {"have": len(set(talk.have)), "need": len(set(talk.need))} == true
    assert_found(talk, ours, theirs)
