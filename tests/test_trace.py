"""A trace accounts for every byte and every range of a reconciliation, whoever it watches."""

from __future__ import annotations

import builtins
import doctest
from typing import Any

import numpy as np
import pytest
from hearing import ranges_of
from model import FINGERPRINT, ID_LIST, SKIP

import negvec
from negvec import trace as trace_module
from negvec.protocol.stages import Watched
from negvec.trace import MATCHED, MISMATCHED, UNANSWERED, UNKNOWN, UNREAD, Trace
from negvec.workloads import pair

INFINITY = 2**64 - 1

POLICIES = pytest.mark.parametrize(
    "policy", [negvec.ReferencePolicy(), negvec.AdaptivePolicy()], ids=["reference", "adaptive"]
)
LIMITS = pytest.mark.parametrize("limits", [(0, 0), (0, 4096), (4096, 4096)])
SHAPES = pytest.mark.parametrize("shape", ["scattered", "clustered", "contiguous", "identical"])


class Watching:
    """A conversation with a trace on each side, its messages kept."""

    def __init__(self, shape: str, policy: Any, limits: tuple[int, int], n: int = 4000) -> None:
        self.ours, self.theirs = (negvec.seal(*held) for held in pair(shape, n))
        self.asking, self.answering = Trace(), Trace()
        initiator = negvec.Negentropy(self.ours, limits[0], policy=policy, watch=self.asking)
        responder = negvec.Negentropy(self.theirs, limits[1], policy=policy, watch=self.answering)
        self.messages: list[bytes] = []
        message: bytes | None = initiator.initiate()
        while message is not None:
            answer = responder.reconcile(message).message
            assert answer is not None
            self.messages += [message, answer]
            message = initiator.reconcile(answer).message


@POLICIES
@LIMITS
@SHAPES
def test_bytes_and_ranges_are_those_of_the_messages(shape: str, policy: Any, limits: tuple[int, int]) -> None:
    talk = Watching(shape, policy, limits)
    for trace, initiator in ((talk.asking, True), (talk.answering, False)):
        messages = trace.messages
        assert messages["bytes"].tolist() == [len(message) for message in talk.messages]
        kinds = messages["skip_bytes"] + messages["fingerprint_bytes"] + messages["id_list_bytes"]
        np.testing.assert_array_equal(kinds + 1, messages["bytes"])
        assert messages["round"].tolist() == [1 + k // 2 for k in range(len(messages))]
        assert messages["down"].tolist() == [bool(k % 2) for k in range(len(messages))]
        assert (messages["initiator"] == initiator).all()
        for row, message in zip(messages, talk.messages, strict=True):
            said = ranges_of(message)
            kept = trace.ranges[(trace.ranges["round"] == row["round"]) & (trace.ranges["down"] == row["down"])]
            assert kept["mode"].tolist() == [mode for _, mode, _ in said]
            assert kept["upper"].tolist() == [at for (at, _), _, _ in said]
            assert kept["lower"].tolist() == [0, *kept["upper"].tolist()][: len(said)], "a range begins where one ends"
            assert (row["ranges"], row["ids"]) == (len(said), kept["ids"].sum())
            assert kept["ids"].sum() == sum((len(payload) - 1) // 32 for _, mode, payload in said if mode == ID_LIST)


@POLICIES
@LIMITS
@SHAPES
def test_indices_cover_the_own_items_and_outcomes_are_true(shape: str, policy: Any, limits: tuple[int, int]) -> None:
    talk = Watching(shape, policy, limits)
    for trace, storage in ((talk.asking, talk.ours), (talk.answering, talk.theirs)):
        ranges = trace.ranges
        for round_number in range(1, 1 + int(ranges["round"].max())):
            for down in (False, True):
                kept = ranges[(ranges["round"] == round_number) & (ranges["down"] == down)]
                kept = kept[kept["outcome"] != UNREAD]
                begins, ends = kept["lo"].tolist(), [0, *kept["hi"].tolist()][: len(kept)]
                if limits != (0, 0) and begins:  # what closes a full frame may leave a range out: see design.md
                    assert begins.pop() >= ends.pop()
                assert begins == ends
                if len(kept) and kept["upper"][-1] == INFINITY:
                    assert kept["hi"][-1] == len(storage)
        outcomes = ranges["outcome"]
        assert (outcomes[ranges["mode"] != FINGERPRINT] % UNREAD == UNKNOWN).all()
    ranges = talk.asking.ranges
    hashed = ranges[ranges["mode"] == FINGERPRINT]
    assert set(hashed["outcome"][hashed["down"]]) <= {MATCHED, MISMATCHED, UNREAD}
    asked = hashed[~hashed["down"]]
    assert set(asked["outcome"]) <= {MATCHED, MISMATCHED, UNANSWERED, UNREAD}
    if shape == "identical":
        assert set(asked["outcome"]) == {MATCHED}
    elif limits == (0, 0):
        assert {MATCHED, MISMATCHED} <= set(hashed["outcome"])
        assert UNANSWERED not in asked["outcome"]
    our_ids, their_ids = ([row.tobytes() for row in held.ids] for held in (talk.ours, talk.theirs))
    lacked = np.array([item_id not in set(their_ids) for item_id in our_ids[:400]])
    for row in asked[(asked["outcome"] == MATCHED) & (asked["hi"] <= 400)]:
        assert not lacked[row["lo"] : row["hi"]].any(), "what matched holds nothing that they lack"


@POLICIES
def test_what_the_responder_saw_is_what_the_initiator_sent(policy: Any) -> None:
    talk = Watching("scattered", policy, (0, 0))
    sent, seen = (
        trace.ranges[~trace.ranges["down"] & (trace.ranges["mode"] == FINGERPRINT)]
        for trace in (talk.asking, talk.answering)
    )
    np.testing.assert_array_equal(sent["outcome"], seen["outcome"])


@POLICIES
def test_times_are_those_of_the_stages(policy: Any) -> None:
    talk = Watching("clustered", policy, (0, 4096))
    for trace, initiator in ((talk.asking, True), (talk.answering, False)):
        stages = trace.stages
        assert (stages["seconds"] >= 0).all()
        assert stages["seconds"].sum() < 60
        assert (stages["initiator"] == initiator).all()
        assert set(stages["stage"]) <= {"decode", "locate", "fingerprint", "compare", "plan", "encode"}
        assert {"decode", "locate", "fingerprint", "encode"} <= set(stages["stage"])
        assert set(stages["round"]) == set(trace.messages["round"])
        keys = [(row["round"], row["stage"]) for row in stages]
        assert len(keys) == len(set(keys))


def test_one_trace_may_watch_both_sides() -> None:
    ours, theirs = (negvec.seal(*held) for held in pair("clustered", 2000))
    trace = Trace()
    initiator, responder = negvec.Negentropy(ours, watch=trace), negvec.Negentropy(theirs, watch=trace)
    step = initiator.reconcile(responder.reconcile(initiator.initiate()).message)
    assert step.message is not None
    assert trace.messages[["round", "down", "initiator"]].tolist()[:4] == [
        (1, False, True),
        (1, False, False),
        (1, True, False),
        (1, True, True),
    ]


@POLICIES
def test_messages_are_the_same_whether_watched_or_not(policy: Any) -> None:
    talk = Watching("scattered", policy, (4096, 4096))
    initiator = negvec.Negentropy(talk.ours, 4096, policy=policy)
    message: bytes | None = initiator.initiate()
    for question, answer in zip(talk.messages[::2], talk.messages[1::2], strict=True):
        assert message == question
        message = initiator.reconcile(answer).message
    assert message is None


def test_nothing_is_decoded_or_kept_where_no_trace_watches(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise AssertionError("a trace is made though nobody asked for it")

    monkeypatch.setattr(trace_module, "_table", fail)
    ours, theirs = (negvec.seal(*held) for held in pair("clustered", 2000))
    stages: list[str] = []
    assert len(negvec.reconcile(ours, theirs, watch=stages.append).have)
    assert "decode" in stages
    assert Watched(ours, None)._heard is None
    with pytest.raises(AssertionError, match="nobody asked"):
        negvec.reconcile(ours, theirs, watch=Trace())


def test_an_empty_trace_has_empty_tables() -> None:
    trace = Trace()
    assert (len(trace.ranges), len(trace.messages), len(trace.stages)) == (0, 0, 0)


@POLICIES
def test_as_dataframes(policy: Any) -> None:
    talk = Watching("clustered", policy, (0, 0))
    trace = talk.asking
    frames = trace.to_pandas()
    assert len(frames.ranges) == len(trace.ranges)
    assert set(frames.ranges["mode"]) <= {"Skip", "Fingerprint", "IdList"}
    assert frames.messages["direction"].tolist()[:2] == ["up", "down"]
    assert set(frames.messages["side"]) == {"initiator"}
    by_mode = frames.ranges.groupby("mode", observed=False)["bytes"].sum()
    assert by_mode["Fingerprint"] == trace.messages["fingerprint_bytes"].sum()
    assert frames.stages["seconds"].sum() == pytest.approx(trace.stages["seconds"].sum())


def test_without_pandas_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name == "pandas":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match="pip install pandas"):
        Trace().to_pandas()


def test_what_a_full_frame_leaves_unread_is_told() -> None:
    """An initiator without a limit asks a responder with a small frame far more than that reads."""
    ours, theirs = (negvec.seal(*held) for held in pair("scattered", 60_000))
    trace = Trace()
    initiator, responder = negvec.Negentropy(ours), negvec.Negentropy(theirs, 4096, watch=trace)
    message = initiator.initiate()
    for _ in range(4):
        answer = responder.reconcile(message).message
        message = initiator.reconcile(answer).message
        assert message is not None
    assert UNREAD in trace.ranges["outcome"]
    unread = trace.ranges[trace.ranges["outcome"] == UNREAD]
    assert (unread["lo"] == -1).all()
    assert len(trace.messages) == 8


def test_skips_are_told_with_what_they_cover() -> None:
    talk = Watching("clustered", negvec.ReferencePolicy(), (0, 0))
    skips = talk.asking.ranges[talk.asking.ranges["mode"] == SKIP]
    assert (skips["hi"] >= skips["lo"]).all()
    assert (skips["hi"] > skips["lo"]).any()


def test_the_example_in_the_docstring_is_right() -> None:
    assert doctest.testmod(trace_module).failed == 0
