"""The model is the reference: it says what the C++ reference said, byte for byte, in every recorded run.

Without the loss it says the same wherever the reference loses nothing, and finds the truth where it does.
"""

from __future__ import annotations

import random
from functools import lru_cache
from hashlib import sha256

import pytest
import vectors
from hypothesis import given
from hypothesis import strategies as st
from model import INFINITY, Item, Model, Reader, varint
from vectors.conversation import Conversation, converse
from vectors.full_frames import FULL_FRAMES, FullFrame

ANSWERS = vectors.known_answers()
TRANSCRIPTS = vectors.transcripts()
SHAPES = [run for run in vectors.shapes() if run["n"] <= 20_000]
LOSSES = vectors.reference_loses()

BOTH_WAYS = pytest.mark.parametrize("lossy", [True, False], ids=["reference", "with-the-two-rules"])


def named(records: list[vectors.Record], key: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("record", records, ids=[record[key] for record in records])


# Known answers


@named(ANSWERS["varint"], "value")
def test_a_varint_is_written_and_read_back(record: vectors.Record) -> None:
    value, encoded = int(record["value"]), bytes.fromhex(record["hex"])
    assert varint(value) == encoded
    assert Reader(encoded).varint() == value


@named(ANSWERS["fingerprint"], "what")
def test_fingerprint(record: vectors.Record) -> None:
    ids = vectors.fingerprinted_ids(record)
    model = Model(enumerate(ids))
    assert model.fingerprint(0, len(ids)).hex() == record["hex"]


@BOTH_WAYS
@named(ANSWERS["replies"], "what")
def test_reply(record: vectors.Record, lossy: bool) -> None:
    model = Model(vectors.items(record["items"]), lossy=lossy)
    if record.get("initiate"):
        assert model.initiate().hex() == record["out"]
    else:
        message, have, need = model.reconcile(bytes.fromhex(record["in"]))
        assert message is not None
        assert message.hex() == record["out"]
        assert have == need == []


@pytest.mark.parametrize("initiator", [False, True], ids=["responder", "initiator"])
@named(ANSWERS["refused"], "why")
def test_refused(record: vectors.Record, initiator: bool) -> None:
    model = Model([(1, bytes(32))])
    if initiator:
        model.initiate()
    with pytest.raises(ValueError, match=r"past the end|version byte|mode 3|id prefix of 33|over 64 bits"):
        model.reconcile(bytes.fromhex(record["hex"]))


@named(ANSWERS["first_message"], "what")
def test_first_message(record: vectors.Record) -> None:
    message = Model(vectors.first_message_items(record)).initiate()
    assert len(message) == record["length"]
    assert message.hex().startswith(record["starts"])


def test_the_initiator_refuses_every_version_but_ours() -> None:
    model = Model([])
    model.initiate()
    for version in (0x60, 0x62, 0x6F):
        with pytest.raises(ValueError, match="version byte"):
            model.reconcile(bytes([version]))


def test_timestamps_saturate_at_infinity() -> None:
    reader = Reader(varint(INFINITY) + varint(0) + varint(3) + varint(0) + varint(5) + varint(0))
    assert [reader.bound() for _ in range(3)] == [(INFINITY - 1, b""), (INFINITY, b""), (INFINITY, b"")]


def test_what_is_just_too_large_is_refused() -> None:
    with pytest.raises(ValueError, match="over 64 bits"):
        Reader(varint(2**64)).varint()
    with pytest.raises(ValueError, match="id prefix of 33 bytes"):
        Reader(bytes([0, 33, *bytes(33)])).bound()


def test_the_same_item_twice_is_one_item() -> None:
    assert len(Model([(1, bytes(32))] * 2).items) == 1


@pytest.mark.parametrize("frame", FULL_FRAMES, ids=[frame.rule for frame in FULL_FRAMES])
def test_full_frame(frame: FullFrame) -> None:
    answers = [Model(frame.items, frame.limit, lossy).reconcile(frame.message)[0] for lossy in (True, False)]
    assert answers == [frame.reference_answer, frame.answer]


# Recorded runs


@BOTH_WAYS
@named(TRANSCRIPTS, "name")
def test_transcript(record: vectors.Record, lossy: bool) -> None:
    talk = replay(record, lossy, lossy)
    assert [message.hex() for message in talk.messages] == record["messages"]
    assert_reported(talk, record)
    assert {id.hex() for id in talk.have} == set(record["have"])
    assert {id.hex() for id in talk.need} == set(record["need"])


@BOTH_WAYS
@named(SHAPES, "name")
def test_shape(record: vectors.Record, lossy: bool) -> None:
    initiator, responder = shape_models(record["shape"], record["n"], record["salt"])
    assert (len(initiator.items), len(responder.items)) == (record["client_size"], record["server_size"])
    initiator.frame_size_limit, responder.frame_size_limit = record["client_limit"], record["server_limit"]
    initiator.lossy = responder.lossy = lossy

    talk = converse(initiator, responder)
    said = [{"bytes": len(message), "sha256": sha256(message).hexdigest()} for message in talk.messages]
    assert said == record["messages"]
    assert (talk.rounds, talk.bytes_up, talk.bytes_down) == tuple(
        record[key] for key in ("rounds", "bytes_up", "bytes_down")
    )
    assert_reported(talk, record)


@named(LOSSES, "name")
def test_the_reference_loses_needs_and_so_does_the_model(record: vectors.Record) -> None:
    talk = replay(record, True, True)
    assert [message.hex() for message in talk.messages] == record["messages"]
    assert_reported(talk, record)
    assert record["need_count"] < record["true_need"]


@pytest.mark.parametrize(
    ("lossy_initiator", "lossy_responder"),
    [(False, True), (True, False), (False, False)],
    ids=["rules-on-the-initiator", "rules-on-the-responder", "rules-on-both"],
)
@named(LOSSES, "name")
def test_the_rules_on_either_side_find_the_truth(
    record: vectors.Record, lossy_initiator: bool, lossy_responder: bool
) -> None:
    talk = replay(record, lossy_initiator, lossy_responder)
    assert (len(set(talk.have)), len(set(talk.need))) == (record["true_have"], record["true_need"])
    ours, theirs = (ids(vectors.items(record[side])) for side in ("client_items", "server_items"))
    assert set(talk.have) == ours - theirs
    assert set(talk.need) == theirs - ours


# Beyond the recorded runs


LIMITS = st.sampled_from([0, 4096, 4100, 4500, 5000, 6421, 7000, 9000])
SHARES = st.sampled_from([0.0, 0.05, 0.6, 0.95, 1.0])


@given(
    seed=st.integers(0, 2**32),
    universe=st.integers(0, 1500),
    held=st.tuples(SHARES, SHARES),
    limits=st.tuples(LIMITS, LIMITS),
    lossy=st.sampled_from([(False, True), (True, False), (False, False)]),
    seconds=st.sampled_from([1, 3, 10**6]),
)
def test_the_rules_on_either_side_lose_nothing(
    seed: int,
    universe: int,
    held: tuple[float, float],
    limits: tuple[int, int],
    lossy: tuple[bool, bool],
    seconds: int,
) -> None:
    chance = random.Random(seed)
    items = [(chance.randrange(seconds), chance.randbytes(32)) for _ in range(universe)]
    ours, theirs = ([item for item in items if chance.random() < share] for share in held)
    talk = converse(Model(ours, limits[0], lossy[0]), Model(theirs, limits[1], lossy[1]), most_rounds=200)
    assert set(talk.have) == ids(ours) - ids(theirs)
    assert set(talk.need) == ids(theirs) - ids(ours)
    for messages, limit in ((talk.messages[0::2], limits[0]), (talk.messages[1::2], limits[1])):
        assert limit == 0 or max(map(len, messages)) <= limit


@lru_cache(maxsize=4)
def shape_models(shape: str, n: int, salt: int) -> tuple[Model, Model]:
    initiator, responder = (Model(vectors.rows(side)) for side in vectors.shape_items(shape, n, salt))
    return initiator, responder


def replay(record: vectors.Record, lossy_initiator: bool, lossy_responder: bool) -> Conversation:
    """Hold a recorded run again, between two models."""
    return converse(
        Model(vectors.items(record["client_items"]), record["client_limit"], lossy_initiator),
        Model(vectors.items(record["server_items"]), record["server_limit"], lossy_responder),
    )


def assert_reported(talk: Conversation, record: vectors.Record) -> None:
    """The ids came out as recorded: as sets, and as often as they did then."""
    for name, found in (("have", talk.have), ("need", talk.need)):
        assert vectors.digest(found) == record[f"{name}_sha256"]
        assert len(set(found)) == record[f"{name}_count"]
        assert len(found) == record[f"{name}_reported"]


def ids(items: list[Item]) -> set[bytes]:
    return {id for _, id in items}
