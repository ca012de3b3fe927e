"""The relay's end answers as strfry does, frame for frame, on a store as strfry had."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import vectors

import negvec
from negvec import nip77
from negvec.nip77 import Limits, Refused, ServerSessions

CASES = {name: case for name, case in vectors.nip77("strfry").items() if isinstance(case, dict) and "sent" in case}
SPOKEN = {name: case for name, case in CASES.items() if isinstance(case["sent"], list)}

EVERYTHING = nip77.read(CASES["open_over_cap_prebuilt"]["received"][0])
assert isinstance(EVERYTHING, nip77.NegMsg)
STORED = np.frombuffer(EVERYTHING.message[-300 * 32 :], np.uint8).reshape(300, 32)  # one list, oldest first


def resolve(asked: dict[str, Any], most: int) -> negvec.Storage:
    """The 300 events of kind 1 that strfry had, of which only the order in time is known."""
    if "ids" in asked:
        return negvec.seal([], [])
    count = min(asked.get("limit", 300), 300)
    return negvec.seal(np.arange(300 - count, 300), STORED[300 - count :])


def sessions(**limits: Any) -> ServerSessions:
    return ServerSessions(resolve, Limits(items=250, **limits))


def texts(frames: list[Any]) -> list[str]:
    return [bytes(frame).decode() for frame in frames]


@pytest.mark.parametrize("name", SPOKEN)
def test_every_frame_is_answered_as_strfry_answers(name: str) -> None:
    ours = sessions()
    answers = [answer for frame in SPOKEN[name]["sent"] for answer in texts(ours.receive(frame))]
    if name == "not_json":  # the words behind are those of its parser
        assert [answer[:26] for answer in answers] == [text[:26] for text in SPOKEN[name]["received"]]
        assert answers[0].startswith('["NOTICE","ERROR: bad msg: ')
    else:
        assert answers == SPOKEN[name]["received"]


def test_the_201st_session_of_a_connection_is_refused_and_others_go_on() -> None:
    ours = sessions()
    answers = []
    for k in range(201):
        answers += texts(ours.receive(nip77.neg_open(f"m{k}", {"limit": 1}, bytes.fromhex("6100000200"))))
    assert answers[-2:] == CASES["too_many_sessions"]["received_last"]
    assert (len(answers), len(ours), ours.opened) == (201, 200, 200)
    assert len(ours.receive(nip77.neg_open("m7", {"limit": 2}, b"\x61"))) == 1, "an open id is replaced"
    assert len(ours) == 200
    ours.receive(nip77.neg_close("m7"))
    ours.receive(nip77.neg_open("m200", {"limit": 1}, b"\x61"))
    assert len(ours) == 200


@pytest.mark.parametrize(("count", "served"), [(249, True), (250, True), (251, False)])
def test_exactly_the_cap_is_served(count: int, served: bool) -> None:
    (answer,) = sessions().receive(nip77.neg_open("s", {"limit": count}, b"\x61"))
    found = nip77.read(answer)
    assert isinstance(found, nip77.NegMsg) if served else found == ("s", "blocked: too many query results", 250)


@pytest.mark.parametrize("payload", ["", "60ff", "6100", "61000003", "610", "5f"])
def test_a_bad_payload_ends_its_session_and_no_other(payload: str) -> None:
    ours = sessions()
    for name in ("a", "b"):
        ours.receive(nip77.neg_open(name, {"limit": 9}, b"\x61"))
    (answer,) = texts(ours.receive(json.dumps(["NEG-MSG", "a", payload])))
    if payload != "60ff":  # a version that is not ours is answered with the one that is
        assert answer == '["NEG-ERR","a","PROTOCOL-ERROR"]'
        assert texts(ours.receive(nip77.neg_msg("a", b"\x61"))) == [
            '["NEG-ERR","a","closed: unknown subscription handle"]'
        ]
    assert texts(ours.receive(nip77.neg_msg("b", b"\x61"))) == ['["NEG-MSG","b","61"]']


def test_a_refused_filter_is_told_the_reason_and_replaces_what_was_open() -> None:
    def refuse(asked: dict[str, Any], most: int) -> negvec.Storage:
        if asked:
            raise Refused("restricted: ask for all or nothing")
        return negvec.seal([], [])

    ours = ServerSessions(refuse)
    ours.receive(nip77.neg_open("s", {}, b"\x61"))
    (answer,) = texts(ours.receive(nip77.neg_open("s", {"kinds": [4]}, b"\x61")))
    assert answer == '["NEG-ERR","s","restricted: ask for all or nothing"]'
    assert len(ours) == 0


def test_idle_sessions_time_out_and_those_that_talk_do_not() -> None:
    ours = sessions(idle_seconds=60)
    ours.receive(nip77.neg_open("quiet", {"limit": 1}, b"\x61"), now=100.0)
    ours.receive(nip77.neg_open("busy", {"limit": 1}, b"\x61"), now=100.0)
    ours.receive(nip77.neg_msg("busy", b"\x61"), now=150.0)
    assert ours.expire(160.0) == []
    (closed,) = texts(ours.expire(161.0))
    assert closed.startswith('["NEG-ERR","quiet","closed: ')
    assert len(ours) == 1
    ours.close()
    assert len(ours) == 0


def test_answers_stay_within_the_frame_size_limit_and_are_counted() -> None:
    everything = negvec.seal(np.arange(300), STORED)
    ours = ServerSessions(lambda asked, most: everything, Limits(frame_size=4096))
    (answer,) = ours.receive(nip77.neg_open("s", {}, negvec.Negentropy(negvec.seal([], [])).initiate()))
    found = nip77.read(answer)
    assert isinstance(found, nip77.NegMsg)
    assert 3000 < len(found.message) <= 4096
    assert (ours.rounds, ours.bytes_in, ours.bytes_out) == (1, 5, len(found.message))


@pytest.mark.parametrize("frame", ['["NEG-ERR","s","x"]', '["REQ","s",{}]', '["NEG-FOO"]'])
def test_what_is_for_others_is_unknown_here(frame: str) -> None:
    assert texts(sessions().receive(frame)) == ['["NOTICE","ERROR: bad msg: unknown cmd"]']


# ---- at once


def at_hand(asked: dict[str, Any], most: int) -> negvec.Storage | None:
    return None if "ids" in asked else resolve(asked, most)


@pytest.mark.parametrize("name", SPOKEN)
def test_what_is_answered_at_once_is_answered_as_ever_and_what_is_not_has_changed_nothing(name: str) -> None:
    ours, expected = ServerSessions(resolve, Limits(items=250), at_hand), sessions()
    for frame in SPOKEN[name]["sent"]:
        answer = ours.receive_at_once(frame)
        if answer is None:
            answer = ours.receive(frame)
        assert texts(answer) == texts(expected.receive(frame))
    assert (len(ours), ours.rounds, ours.bytes_out) == (len(expected), expected.rounds, expected.bytes_out)


def test_only_short_work_on_a_set_at_hand_is_done_at_once() -> None:
    ours = ServerSessions(resolve, None, at_hand)
    asks = negvec.Negentropy(negvec.seal(np.arange(200), STORED[:200])).initiate()
    lists = negvec.Negentropy(negvec.seal([], [])).initiate()
    assert ours.receive_at_once(nip77.neg_open("far", {"ids": []}, asks)) is None, "the set has to be searched for"
    assert ours.receive_at_once(nip77.neg_open("s", {}, lists)) is None, "an IdList is answered by any number of ids"
    assert ours.receive_at_once(nip77.neg_open("s", {"#t": ["x" * 2048]}, asks)) is None, "the frame is long"
    assert len(ours) == 0
    assert ours.receive_at_once(nip77.neg_open("s", {}, asks)) == ServerSessions(resolve).receive(
        nip77.neg_open("s", {}, asks)
    )
    assert ours.receive_at_once(nip77.neg_msg("s", lists)) is None
    ours.receive(nip77.neg_open("far", {"ids": []}, asks))
    assert ours.receive_at_once(nip77.neg_msg("far", asks)) is None, "nothing is known about a storage of its own"
    assert len(ours) == 2
    assert [ours.receive_at_once(nip77.neg_close(name)) for name in ("s", "far")] == [[], []]
    assert len(ours) == 0
    assert sessions().receive_at_once(nip77.neg_open("s", {}, asks)) is None, "nobody said what is at hand"
