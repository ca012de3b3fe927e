"""Events and filters: which are taken, and what is said of the others."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from negvec.relay import events, filters
from negvec.relay.events import InvalidEvent
from negvec.relay.filters import InvalidFilter

from . import signed


def test_a_good_event_is_taken_as_it_is() -> None:
    given = signed(7, 30_000, [["d", "x"], ["e"], ["expiration", "1800000000"]], content='\n\t"\\\u20ac\x01')
    event = events.parse(given)
    events.verify(event)
    assert orjson.loads(event.json) == given
    assert (event.address, event.expires, event.ephemeral) == ("x", 1_800_000_000, False)


@pytest.mark.parametrize(
    ("text", "expires"),
    [("9" * 5000, None), ("9" * 20, 2**63 - 1), ("-5", None), ("", None), ("1e9", None), ("\u0661", None), ("0", 0)],
)
def test_an_expiration_that_is_no_number_is_none(text: str, expires: int | None) -> None:
    assert events.parse(signed(1, tags=[["expiration", text]])).expires == expires


CHANGES: dict[str, Any] = {
    "id": "00" * 32,
    "pubkey": "zz" * 32,
    "created_at": -1,
    "kind": 70_000,
    "tags": [["e", 5]],
    "content": 5,
    "sig": "ab",
}


@pytest.mark.parametrize("field", CHANGES)
def test_any_field_that_is_wrong_or_missing_is_named(field: str) -> None:
    for changed in (signed() | {field: CHANGES[field]}, {k: v for k, v in signed().items() if k != field}):
        with pytest.raises(InvalidEvent, match=f"^invalid: .*{field}"):
            events.parse(changed)


@pytest.mark.parametrize("created_at", [True, 1.0, "1", 2**63, None])
def test_a_timestamp_is_an_integer(created_at: Any) -> None:
    with pytest.raises(InvalidEvent, match="created_at"):
        events.parse(signed() | {"created_at": created_at})


def test_a_signature_of_another_event_or_key_is_wrong() -> None:
    for sig, author in ((signed(2)["sig"], None), (None, "ff" * 32), ("00" * 64, None)):
        given = signed(1)
        event = events.parse(given)
        event = event._replace(
            signature=bytes.fromhex(sig or given["sig"]), pubkey=bytes.fromhex(author or given["pubkey"])
        )
        with pytest.raises(InvalidEvent, match="signature"):
            events.verify(event)


@pytest.mark.parametrize(
    ("kind", "address"),
    [
        (0, ""),
        (1, None),
        (3, ""),
        (10_002, ""),
        (19_999, ""),
        (20_000, None),
        (30_000, "d1"),
        (39_999, "d1"),
        (40_000, None),
    ],
)
def test_kinds_say_how_an_event_is_kept(kind: int, address: str | None) -> None:
    event = events.parse(signed(1, kind, [["d", "d1"]]))
    assert event.address == address
    assert event.ephemeral == (20_000 <= kind < 30_000)


@pytest.mark.parametrize(
    "given",
    [
        [],
        5,
        {"ids": "x"},
        {"ids": ["abc"]},
        {"authors": [5]},
        {"kinds": [True]},
        {"kinds": [2**64 - 1]},
        {"kinds": [-1]},
        {"kinds": ["1"]},
        {"since": -1},
        {"until": "now"},
        {"limit": 1.5},
        {"#e": "x"},
        {"#e": [1]},
        {"search": "x"},
        {"#ee": ["x"]},
        {"kinds": [1] * 20_000},
    ],
)
def test_a_filter_that_is_none_is_refused_never_widened(given: Any) -> None:
    with pytest.raises(InvalidFilter):
        filters.parse(given)


def test_what_a_filter_says_it_matches() -> None:
    event = events.parse(signed(5, 7, [["e", "aa"], ["p", "bb", "x"]]))
    good = [
        {},
        {"kinds": [7, 8]},
        {"ids": [event.id.hex().upper()]},
        {"authors": [event.pubkey.hex()]},
        {"#e": ["aa"]},
        {"#p": ["cc", "bb"]},
        {"since": event.created_at},
        {"until": event.created_at},
        {"limit": 0},
    ]
    bad = [
        {"kinds": []},
        {"kinds": [1]},
        {"ids": ["00" * 32]},
        {"authors": []},
        {"#e": ["bb"]},
        {"#x": ["aa"]},
        {"since": event.created_at + 1},
        {"until": event.created_at - 1},
    ]
    assert all(filters.parse(each).matches(event) for each in good)
    assert not any(filters.parse(each).matches(event) for each in bad)
