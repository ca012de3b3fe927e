"""The client's end: whole sessions against the relay's end, and the words in which relays refuse."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import vectors
from hypothesis import given, settings
from hypothesis import strategies as st

import negvec
from negvec import nip77
from negvec.nip77 import ClientSession, Limits, Refusal, ServerSessions
from negvec.nip77.client import classify, legible
from negvec.trace import Trace


def sealed(keys: set[int]) -> negvec.PrefixSumVector:
    return negvec.seal([key // 3 for key in keys], [key.to_bytes(32, "big") for key in keys])


def run(session: ClientSession, relay: ServerSessions) -> tuple[list[bytes], list[bytes]]:
    """Carry frames between the two; have and need as they were taken after each."""
    have: list[bytes] = []
    need: list[bytes] = []
    to_relay: list[Any] = [session.open()]
    while to_relay:
        for frame in relay.receive(to_relay.pop(0)):
            to_relay += session.receive(frame)
            for column, taken in zip((have, need), session.take(), strict=True):
                column += [row.tobytes() for row in taken]
    return have, need


KEYS = st.sets(st.integers(0, 600), max_size=400)


@settings(max_examples=80, deadline=None)
@given(KEYS, KEYS, st.sampled_from([0, 4096, 60_000]), st.sampled_from([0, 4096, 500_000]))
def test_a_session_finds_the_difference_each_id_once(ours: set[int], theirs: set[int], first: int, second: int) -> None:
    relay = ServerSessions(lambda asked, most: sealed(theirs), Limits(frame_size=second))
    session = ClientSession(sealed(ours), "sub", {}, first)
    have, need = run(session, relay)
    assert Counter(have) == Counter(key.to_bytes(32, "big") for key in ours - theirs)
    assert Counter(need) == Counter(key.to_bytes(32, "big") for key in theirs - ours)
    assert (session.over, session.refusal, len(relay)) == (True, None, 0)
    assert (session.rounds, session.bytes_up, session.bytes_down) == (relay.rounds, relay.bytes_in, relay.bytes_out)


def opened() -> ClientSession:
    session = ClientSession(sealed(set(range(500))), "mine", {"kinds": [1]})
    session.open(now=1.0)
    return session


@pytest.mark.parametrize("policy", [None, negvec.AdaptivePolicy()])
@settings(max_examples=30, deadline=None)
@given(KEYS, KEYS)
def test_a_limit_set_after_the_opening_is_kept_from_then_on(policy: Any, ours: set[int], theirs: set[int]) -> None:
    relay = ServerSessions(lambda asked, most: sealed(theirs))
    early, late = (ClientSession(sealed(ours), "sub", {}, limit, policy=policy) for limit in (4096, 60_000))
    expected = run(early, relay)
    (answer,) = relay.receive(late.open())
    late.limit_frames(4096)
    frames = [answer]
    have, need = [], []
    while frames:
        sent = [message for frame in frames for message in late.receive(frame)]
        for column, taken in zip((have, need), late.take(), strict=True):
            column += [row.tobytes() for row in taken]
        frames = [answer for message in sent for answer in relay.receive(message)]
    assert (have, need) == expected
    assert (late.rounds, late.bytes_up, late.bytes_down) == (early.rounds, early.bytes_up, early.bytes_down)
    with pytest.raises(ValueError, match="under way"):
        late.limit_frames(60_000)


def test_only_what_leaves_nothing_to_compare_is_received_at_once() -> None:
    session = opened()
    assert session.receive_at_once(nip77.neg_msg("mine", bytes.fromhex("6100000200"))) is None
    assert session.receive_at_once(b'["NOTICE","' + b"x" * 2048 + b'"]') is None
    assert (session.rounds, session.over) == (0, False)
    assert session.receive_at_once(nip77.neg_msg("mine", b"\x61")) == [b'["NEG-CLOSE","mine"]']
    assert (session.rounds, session.over, session.refusal) == (1, True, None)
    refused = opened()
    assert refused.receive_at_once('["NEG-ERR","mine","blocked: too many query results"]') == []
    assert refused.refusal == Refusal("size", "blocked: too many query results", None)
    assert opened().receive_at_once('["NEG-MSG","mine","zz"]') == [b'["NEG-CLOSE","mine"]']


# ---- what is not ours


@pytest.mark.parametrize(
    "frame",
    [
        '["NEG-MSG","other","6100000200"]',
        '["NEG-MSG","other","zz"]',
        '["NEG-ERR","other","closed: x"]',
        '["EVENT","mine",{"id":"00"}]',
        '["EOSE","mine"]',
        '["OK","00",true,""]',
        '["CLOSED","other","rate-limited: no"]',
        '["NOTICE","welcome"]',
        '["NOTICE","rate is fine"]',
        "no json",
        "[7]",
        '["AUTH","challenge"]',
    ],
)
def test_what_is_for_others_is_passed_over_and_not_heard(frame: str) -> None:
    session = opened()
    assert session.receive(frame, now=9.0) == []
    assert (session.over, session.heard, session.rounds) == (False, 1.0, 0)
    assert session.receive(nip77.neg_msg("mine", b"\x61"), now=10.0) == [b'["NEG-CLOSE","mine"]']
    assert (session.over, session.heard) == (True, 10.0)


@pytest.mark.parametrize(
    "frame",
    [
        nip77.neg_msg("mine", b""),
        nip77.neg_msg("mine", b"\x61\0"),
        nip77.neg_msg("mine", b"\x60"),
        b'["NEG-MSG","mine","zz"]',
        b'["NEG-MSG","mine"]',
        b'["NEG-OPEN","mine",{},"61"]',
        b'["NEG-CLOSE","mine"]',
    ],
)
def test_a_relay_that_breaks_the_protocol_ends_the_session_with_a_reason(frame: bytes) -> None:
    session = opened()
    assert session.receive(frame) == [b'["NEG-CLOSE","mine"]']
    assert session.refusal is not None
    assert session.refusal.kind == "protocol"
    assert session.receive(nip77.neg_msg("mine", b"\x61")) == [], "it is over"


def test_giving_up_closes_once() -> None:
    session = opened()
    assert session.close() == [b'["NEG-CLOSE","mine"]']
    assert (session.close(), session.over, session.refusal) == ([], True, None)


def test_an_empty_subscription_id_is_refused() -> None:
    with pytest.raises(ValueError, match="empty"):
        ClientSession(sealed(set()), "", {})


# ---- refusals


@pytest.mark.parametrize(
    ("reason", "kind", "cap"),
    [
        ("blocked: too many query results", "size", None),
        ("blocked: query matches too many records (2988225 > 1000000)", "size", 1_000_000),
        ("query matches too many records (2988225 > 1000000)", "size", 1_000_000),
        ("ERROR: too many concurrent NEG requests", "rate", None),
        ("rate-limited: too many negentropy subscriptions", "rate", None),
        ("rate-limited: slow down there chief", "rate", None),
        ("blocked: you are banned from posting here", "policy", None),
        ("auth-required: we only serve registered users", "policy", None),
        ("restricted: not allowed", "policy", None),
        ("ERROR: bad msg: negentropy disabled", "unsupported", None),
        ("bad msg: negentropy disabled", "unsupported", None),
        ("ERROR: bad msg: unknown cmd", "unsupported", None),
        ("unknown envelope label", "unsupported", None),
        ("invalid client message", "unsupported", None),
        ("PROTOCOL-ERROR", "protocol", None),
        ("error: invalid negentropy message", "protocol", None),
        ("closed: unknown subscription handle", "closed", None),
        ("error: subscription not found", "closed", None),
        ("closed: no message for too long", "closed", None),
        ("too many results (" + "9" * 5000 + " > 5)", "size", None),
        ("too many results (5 > " + "9" * 5000 + ")", "size", None),
        ("something else", "other", None),
        ("", "other", None),
    ],
)
def test_the_words_of_relays_are_told_apart(reason: str, kind: str, cap: int | None) -> None:
    assert classify(reason) == Refusal(kind, reason, cap)
    session = opened()
    assert session.receive(nip77.neg_err("mine", reason)) == []
    assert (session.over, session.refusal) == (True, Refusal(kind, reason, cap))
    closed = opened()
    closed.receive(
        nip77.notice("x").replace(b"NOTICE", b"CLOSED").replace(b'"x"', b'"mine",' + b'"%s"' % reason.encode())
    )
    assert closed.refusal == Refusal(kind, reason, cap)


def test_a_cap_comes_as_the_fourth_element() -> None:
    session = opened()
    session.receive('["NEG-ERR","mine","blocked: too many query results",250]')
    assert session.refusal == Refusal("size", "blocked: too many query results", 250)


@pytest.mark.parametrize(
    "text", ["ERROR: bad msg: negentropy disabled", "unknown envelope label", "invalid client message"]
)
def test_a_notice_before_any_answer_may_be_the_refusal_and_later_is_chatter(text: str) -> None:
    session = opened()
    assert session.receive(nip77.notice(text)) == []
    assert session.refusal is not None
    assert session.refusal.kind == "unsupported"

    theirs = sealed(set(range(250, 900)))
    later = ClientSession(sealed(set(range(500))), "mine", {})
    (answer,) = ServerSessions(lambda asked, most: theirs).receive(later.open())
    assert later.receive(answer) != []
    assert later.receive(nip77.notice(text)) == []
    assert not later.over


@pytest.mark.parametrize("relay", ["strfry", "rust"])
def test_no_refusal_of_two_real_relays_is_without_a_name(relay: str) -> None:
    """Of all that they answered to good and bad frames."""
    refusals = []
    for case in vectors.nip77(relay).values():
        answers = (case.get("received") or case.get("received_last")) if isinstance(case, dict) else None
        for text in answers or []:
            message = nip77.read(text)
            if isinstance(message, nip77.NegErr):
                refusals.append(classify(message.reason, message.cap))
            elif not isinstance(message, nip77.NegMsg):
                refusals.append(classify(message.elements[1]))
    assert len(refusals) > 5
    assert not [refusal for refusal in refusals if refusal.kind == "other" and "negentropy error" not in refusal.reason]


def test_a_trace_watches_a_session_whose_limit_is_set_before_it_opens() -> None:
    trace = Trace()
    session = ClientSession(sealed(set(range(100))), "watched", {}, watch=trace)
    session.limit_frames(100_000)
    session.open()
    assert trace.messages["round"].tolist() == [1]
    with pytest.raises(ValueError, match="watched"):
        session.limit_frames(200_000)


def test_a_reason_as_long_as_a_relay_likes_is_searched_no_further_than_a_reason_goes() -> None:
    assert classify("blocked: too many query results. " + "negentropy" * 10**6).kind == "size"
    assert classify("negentropy" * 10**6).kind == "other"
    shown = legible("blocked:\x1b[31m\n" + "x" * 10**6)
    assert shown.startswith("blocked: [31m x")
    assert len(shown) < 500
