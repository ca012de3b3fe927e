"""Frames: what is written is what JSON serializers write, and what is read is what JSON means, or an error by name."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from typing import Any

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from negvec import nip77
from negvec.nip77 import FrameError, NegClose, NegErr, NegMsg, NegOpen, read
from negvec.nip77.frames import Other

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
odd = st.sampled_from(['"', "\\", "\n", "\0", "\x7f", "é", "\u2028", "😀", "a", "\\u0041", "]", ","])
subscriptions = st.one_of(texts, st.lists(odd, max_size=8).map("".join))
messages = st.binary(max_size=100)
filters = st.dictionaries(texts, st.one_of(texts, st.integers(0, 2**53), st.lists(texts, max_size=3)), max_size=4)


def compact(*elements: Any) -> bytes:
    text = json.dumps(elements, separators=(",", ":"), ensure_ascii=False).encode()
    assert text == orjson.dumps(elements)
    return text


# ---- writing


@given(subscriptions, messages)
def test_a_neg_msg_is_byte_for_byte_what_serializers_write(subscription: str, message: bytes) -> None:
    frame = nip77.neg_msg(subscription, message)
    assert frame == compact("NEG-MSG", subscription, message.hex())
    assert read(frame) == NegMsg(subscription, message)


@given(subscriptions, filters, messages)
def test_so_is_a_neg_open(subscription: str, asked: dict[str, Any], message: bytes) -> None:
    frame = nip77.neg_open(subscription, asked, message)
    assert frame == compact("NEG-OPEN", subscription, asked, message.hex())
    assert read(frame) == NegOpen(subscription, asked, message)


@given(subscriptions, texts, st.one_of(st.none(), st.integers(0, 2**40)))
def test_and_the_small_ones(subscription: str, reason: str, cap: int | None) -> None:
    assert nip77.neg_close(subscription) == compact("NEG-CLOSE", subscription)
    assert read(nip77.neg_close(subscription)) == NegClose(subscription)
    expected = compact("NEG-ERR", subscription, reason, *([] if cap is None else [cap]))
    assert nip77.neg_err(subscription, reason, cap) == expected
    assert read(expected) == NegErr(subscription, reason, cap)
    assert nip77.notice(reason) == compact("NOTICE", reason)
    assert read(nip77.notice(reason)) == Other(["NOTICE", reason])


@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 500_000])
def test_payloads_of_every_size(size: int) -> None:
    message = bytes(k * 7 & 0xFF for k in range(size))
    frame = nip77.neg_msg("sub", message)
    assert frame == compact("NEG-MSG", "sub", message.hex())
    assert (
        read(frame) == read(bytes(frame)) == read(memoryview(frame)) == read(frame.decode()) == NegMsg("sub", message)
    )


@pytest.mark.parametrize("subscription", ["\ud800", 7, b"sub", None])
def test_what_is_no_text_is_no_subscription_id(subscription: Any) -> None:
    for write in (lambda: nip77.neg_msg(subscription, b""), lambda: nip77.neg_close(subscription)):
        with pytest.raises((ValueError, TypeError)):
            write()
    with pytest.raises(TypeError, match="dict"):
        nip77.neg_open("sub", [], b"")  # type: ignore[arg-type]


# ---- a tolerant reader

spaces = st.text(st.sampled_from(" \t\r\n"), max_size=3)


@given(st.lists(spaces, min_size=8, max_size=8), subscriptions, messages, st.booleans(), st.booleans(), st.booleans())
def test_white_space_escapes_case_and_further_elements_change_nothing(
    space: list[str], subscription: str, message: bytes, escaped: bool, upper: bool, more: bool
) -> None:
    a, b, c, d, e, f, g, h = space
    payload = message.hex().upper() if upper else message.hex()
    if escaped and payload:
        payload = f"\\u{ord(payload[0]):04x}" + payload[1:]
    rest = f',{c}"more",{{"a":[1,"]"]}}' if more else ""
    frame = f'{a}[{b}"NEG-MSG"{c},{d}{json.dumps(subscription)}{e},{f}"{payload}"{g}{rest}]{h}'
    assert read(frame) == read(frame.encode()) == NegMsg(subscription, message)
    opened = f'{a}[{b}"NEG-OPEN"{c},{json.dumps(subscription)},{d}{{{e}}}{f},"{payload}"{rest}]'
    assert read(opened) == NegOpen(subscription, {}, message)


@pytest.mark.parametrize(
    ("frame", "kind"),
    [
        ("", "json"),
        ("[", "json"),
        ("{}", "json"),
        ("[]", "json"),
        ('"NEG-MSG"', "json"),
        ('["NEG-MSG","s","00"', "json"),
        ('["NEG-MSG","s","00"]]', "json"),
        ('["NEG-MSG","s","00"] x', "json"),
        ('["NEG-MSG","s","0', "json"),
        ('["NEG-MSG" "s","00"]', "json"),
        ('["NEG-MSG","s\n","00"]', "json"),
        ('["NEG-MSG","\\x","00"]', "json"),
        ('["NEG-MSG","s","00",]', "json"),
        ("[" * 10_000, "json"),
        ("[" * 10_000 + "]" * 10_000, "json"),
        ("[7]", "label"),
        ('[["NEG-MSG"],"s","00"]', "label"),
        ('["NEG-MSG"]', "short"),
        ('["NEG-MSG","s"]', "short"),
        ('["NEG-OPEN","s",{}]', "short"),
        ('["NEG-CLOSE"]', "short"),
        ('["NEG-ERR","s"]', "short"),
        ('["NEG-MSG",7,"00"]', "type"),
        ('["NEG-MSG",null,"00"]', "type"),
        ('["NEG-MSG","s",7]', "type"),
        ('["NEG-MSG","s",["00"]]', "type"),
        ('["NEG-OPEN","s",[{}],"00"]', "type"),
        ('["NEG-OPEN","s","{}","00"]', "type"),
        ('["NEG-OPEN","s",{},0]', "type"),
        ('["NEG-CLOSE",[]]', "type"),
        ('["NEG-ERR","s",5]', "type"),
        ('["NEG-MSG","s","0"]', "hex"),
        ('["NEG-MSG","s","0g"]', "hex"),
        ('["NEG-MSG","s","0 "]', "hex"),
        ('["NEG-MSG","s","é0"]', "hex"),
        ('["NEG-MSG","s","0x00"]', "hex"),
        ('["NEG-MSG","s","\\n0"]', "hex"),
    ],
)
def test_what_is_wrong_is_said_by_name(frame: str, kind: str) -> None:
    for given_as in (frame, frame.encode()):
        with pytest.raises(FrameError) as refused:
            read(given_as)
        assert refused.value.kind == kind
        assert len(str(refused.value)) < 300


@pytest.mark.parametrize("frame", [b'["NEG-MSG","\xff","00"]', b'["NEG-MSG","s","\xff0"]', b"\xef\xbb\xbf[]", "\ud800"])
def test_what_is_no_utf_8_is_no_json(frame: Any) -> None:
    with pytest.raises(FrameError) as refused:
        read(frame)
    assert refused.value.kind == "json"


def test_every_truncation_is_an_error() -> None:
    for frame in (
        nip77.neg_msg('s\\"é', bytes(20)),
        nip77.neg_open("s", {"kinds": [1], "#e": ["a]"]}, bytes(9)),
        nip77.neg_err("s", "blocked", 5),
    ):
        for end in range(len(frame)):
            with pytest.raises(FrameError):
                read(frame[:end])


@given(st.binary(max_size=60))
@example(b'["NEG-MSG","s","0')
def test_noise_is_an_error_or_a_message(noise: bytes) -> None:
    for frame in (noise, b'["NEG-MSG",' + noise, b'["NEG-MSG","s","' + noise + b'"]'):
        with suppress(FrameError):
            read(frame)


@given(st.integers(0, 40), st.integers(0, 255), subscriptions)
def test_a_changed_byte_reads_as_json_reads_it(place: int, byte: int, subscription: str) -> None:
    frame = nip77.neg_msg(subscription, b"\x61\0\0\2\0" * 3)
    frame[place % len(frame)] = byte
    try:
        elements = orjson.loads(frame)
    except orjson.JSONDecodeError:
        elements = None
    if elements is None:
        with pytest.raises(FrameError):
            read(frame)
        return
    try:
        found = read(frame)
    except FrameError as refused:
        found = refused  # type: ignore[assignment]
    if isinstance(found, NegMsg):
        assert elements[:2] == ["NEG-MSG", found.subscription]
        assert elements[2].lower() == found.message.hex()
    else:
        assert found == Other(elements) or isinstance(found, FrameError)


@pytest.mark.parametrize(
    "frame",
    [
        b"[" * 50_000_000,
        b'"' * 50_000_000,
        b" " * 50_000_000,
        b'["NEG-MSG","' + b"s" * 50_000_000,
        b'["NEG-MSG","s","' + b"0" * 50_000_000,
        b'["NEG-MSG","s","' + b"z" * 20_000_000 + b'"]',
    ],
    ids=["brackets", "quotes", "spaces", "an id without end", "a payload without end", "no digits"],
)
def test_fifty_megabytes_of_nothing_are_refused_in_a_moment(frame: bytes) -> None:
    started = time.process_time()
    with pytest.raises(FrameError):
        read(frame)
    assert time.process_time() - started < 5
