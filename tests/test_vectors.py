"""negvec is byte-identical to the reference: every recorded run, held again through the public names.

negvec gives an id once, so have and need are compared as sets, not by how often the reference reported them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from hashlib import sha256

import numpy as np
import pytest
import vectors
from model import Model
from vectors.conversation import Conversation, Side, converse
from vectors.full_frames import FULL_FRAMES, FullFrame

import negvec

ANSWERS = vectors.known_answers()
TRANSCRIPTS = vectors.transcripts()
SHAPES = sorted(vectors.shapes(), key=lambda run: (run["n"], run["shape"]))  # each pair is built only once
LOSSES = vectors.reference_loses()

Items = list[tuple[int, bytes]]
Storage = negvec.Vector | negvec.PrefixSumVector


class Speaker:
    """A `negvec.Negentropy`, made to look like the model."""

    def __init__(self, storage: Storage, frame_size_limit: int) -> None:
        self.negentropy = negvec.Negentropy(storage, frame_size_limit=frame_size_limit)

    def initiate(self) -> bytes:
        return self.negentropy.initiate()

    def reconcile(self, message: bytes) -> tuple[bytes | None, list[bytes], list[bytes]]:
        step = self.negentropy.reconcile(message)
        have, need = ([row.tobytes() for row in found] for found in (step.have, step.need))
        return step.message, have, need


def sealed_at_once(items: Items) -> Storage:
    return negvec.seal(*vectors.arrays(items))


def walked(items: Items) -> Storage:
    return inserted_one_by_one(negvec.Vector(), items)


def prefix_summed(items: Items) -> Storage:
    return inserted_one_by_one(negvec.PrefixSumVector(), items)


def inserted_one_by_one(storage: Storage, items: Items) -> Storage:
    for created_at, id in items:
        storage.insert(created_at, id)
    storage.seal()
    return storage


EVERY_STORAGE = pytest.mark.parametrize("build", [sealed_at_once, walked, prefix_summed])
Build = Callable[[Items], Storage]


def named(records: list[vectors.Record], key: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("record", records, ids=[record[key] for record in records])


# Known answers


@named(ANSWERS["varint"], "value")
def test_a_bound_timestamp_is_read_and_written_back(record: vectors.Record) -> None:
    message = bytes.fromhex(f"61 {record['hex']} 00 02 00")  # an empty IdList up to that bound
    step = negvec.Negentropy(sealed_at_once([])).reconcile(message)
    assert step.message == message


@EVERY_STORAGE
@named(ANSWERS["fingerprint"], "what")
def test_fingerprint(record: vectors.Record, build: Build) -> None:
    ids = vectors.fingerprinted_ids(record)
    fingerprints = build(list(enumerate(ids))).fingerprints(np.array([0]), np.array([len(ids)]))
    assert fingerprints.dtype == np.uint8
    assert fingerprints.shape == (1, 16)
    assert fingerprints.tobytes().hex() == record["hex"]


@EVERY_STORAGE
@named(ANSWERS["replies"], "what")
def test_reply(record: vectors.Record, build: Build) -> None:
    negentropy = negvec.Negentropy(build(vectors.items(record["items"])))
    if record.get("initiate"):
        assert negentropy.initiate().hex() == record["out"]
    else:
        step = negentropy.reconcile(bytes.fromhex(record["in"]))
        assert step.message == bytes.fromhex(record["out"])
        assert step.have.shape == step.need.shape == (0, 32)


@pytest.mark.parametrize("initiator", [False, True], ids=["responder", "initiator"])
@named(ANSWERS["refused"], "why")
def test_refused(record: vectors.Record, initiator: bool) -> None:
    negentropy = negvec.Negentropy(sealed_at_once([(1, bytes(32))]))
    if initiator:
        negentropy.initiate()
    message = bytes.fromhex(record["hex"])
    with pytest.raises(negvec.ProtocolError) as refused:
        negentropy.reconcile(message)
    assert 0 <= refused.value.offset <= len(message)


@EVERY_STORAGE
@named(ANSWERS["first_message"], "what")
def test_first_message(record: vectors.Record, build: Build) -> None:
    message = negvec.Negentropy(build(vectors.first_message_items(record))).initiate()
    assert len(message) == record["length"]
    assert message.hex().startswith(record["starts"])


@EVERY_STORAGE
@pytest.mark.parametrize("frame", FULL_FRAMES, ids=[frame.rule for frame in FULL_FRAMES])
def test_full_frame(frame: FullFrame, build: Build) -> None:
    negentropy = negvec.Negentropy(build(frame.items), frame_size_limit=frame.limit)
    assert negentropy.reconcile(frame.message).message == frame.answer


# Recorded runs


@EVERY_STORAGE
@named(TRANSCRIPTS, "name")
def test_transcript(record: vectors.Record, build: Build) -> None:
    talk = converse(
        Speaker(build(vectors.items(record["client_items"])), record["client_limit"]),
        Speaker(build(vectors.items(record["server_items"])), record["server_limit"]),
    )
    assert [message.hex() for message in talk.messages] == record["messages"]
    assert sorted(id.hex() for id in talk.have) == sorted(record["have"])
    assert sorted(id.hex() for id in talk.need) == sorted(record["need"])
    assert_found(talk, record)


@named(SHAPES, "name")
def test_shape(record: vectors.Record) -> None:
    ours, theirs = shape_storages(record["shape"], record["n"], record["salt"])
    assert (len(ours), len(theirs)) == (record["client_size"], record["server_size"])

    talk = converse(Speaker(ours, record["client_limit"]), Speaker(theirs, record["server_limit"]))
    if record["messages"] is not None:  # not kept of runs over 300 rounds
        said = [{"bytes": len(message), "sha256": sha256(message).hexdigest()} for message in talk.messages]
        assert said == record["messages"]
    assert talk.rounds == record["rounds"]
    assert talk.bytes_up == record["bytes_up"]
    assert talk.bytes_down == record["bytes_down"]
    assert_found(talk, record)


@lru_cache(maxsize=1)
def shape_storages(shape: str, n: int, salt: int) -> tuple[Storage, Storage]:
    ours, theirs = vectors.shape_items(shape, n, salt)
    return negvec.seal(*ours), negvec.seal(*theirs)


@pytest.mark.parametrize(
    ("initiator", "responder"),
    [("negvec", "reference"), ("reference", "negvec"), ("negvec", "negvec")],
    ids=["negvec-asks-the-reference", "the-reference-asks-negvec", "negvec-asks-negvec"],
)
@named(LOSSES, "name")
def test_needs_that_the_reference_loses(record: vectors.Record, initiator: str, responder: str) -> None:
    ours, theirs = (vectors.items(record[items]) for items in ("client_items", "server_items"))
    talk = converse(
        speaker(initiator, ours, record["client_limit"]), speaker(responder, theirs, record["server_limit"])
    )
    assert (len(set(talk.have)), len(set(talk.need))) == (record["true_have"], record["true_need"])
    assert set(talk.have) == {id for _, id in ours} - {id for _, id in theirs}
    assert set(talk.need) == {id for _, id in theirs} - {id for _, id in ours}


@named(LOSSES, "name")
def test_the_rules_of_the_model_are_those_of_negvec(record: vectors.Record) -> None:
    ours, theirs = (vectors.items(record[items]) for items in ("client_items", "server_items"))
    limits = record["client_limit"], record["server_limit"]
    talk = converse(speaker("negvec", ours, limits[0]), speaker("negvec", theirs, limits[1]))
    model = converse(Model(ours, limits[0], lossy=False), Model(theirs, limits[1], lossy=False))
    assert talk.messages == model.messages


def speaker(who: str, items: Items, frame_size_limit: int) -> Side:
    """A side played by negvec, or by the reference's model, its loss included."""
    if who == "negvec":
        return Speaker(sealed_at_once(items), frame_size_limit)
    return Model(items, frame_size_limit, lossy=True)


def assert_found(talk: Conversation, record: vectors.Record) -> None:
    """The ids came out as recorded, and each of them once."""
    for name, found in (("have", talk.have), ("need", talk.need)):
        assert len(found) == len(set(found)) == record[f"{name}_count"] == record[f"true_{name}"]
        assert vectors.digest(found) == record[f"{name}_sha256"]
