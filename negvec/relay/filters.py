"""Filters of REQ and NEG-OPEN (NIP-01): checked once, then asked of the store as SQL or of a single event."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from negvec.relay.events import LARGEST_KIND, LATEST, Event

_ID = re.compile(r"[0-9a-f]{64}")
_TAG = re.compile(r"#[A-Za-z]")


class InvalidFilter(ValueError):
    """A filter that is not as NIP-01 has it, or asks for more than the relay allows."""


class Filter(NamedTuple):
    """A checked filter; None where it does not say.

    Attributes
    ----------
    ids, authors : frozenset of bytes, or None
    kinds : frozenset of int, or None
    tags : dict
        Of single letters to the values of which an event has to have one.
    since, until : int
        Both inclusive.
    limit : int or None
        Of stored events, the newest so many.
    """

    ids: frozenset[bytes] | None
    authors: frozenset[bytes] | None
    kinds: frozenset[int] | None
    tags: dict[str, frozenset[str]]
    since: int
    until: int
    limit: int | None

    def matches(self, event: Event) -> bool:
        """Whether an event is one that the filter asks for, whatever its limit."""
        if not self.since <= event.created_at <= self.until:
            return False
        if self.kinds is not None and event.kind not in self.kinds:
            return False
        if self.ids is not None and event.id not in self.ids:
            return False
        if self.authors is not None and event.pubkey not in self.authors:
            return False
        return all(
            any(len(tag) > 1 and tag[0] == name and tag[1] in values for tag in event.tags)
            for name, values in self.tags.items()
        )


def parse(given: Any, most_values: int = 10_000) -> Filter:
    """Check a filter; an attribute that is not known is an error, since leaving it out would widen the set.

    Raises
    ------
    InvalidFilter
    """
    if not isinstance(given, dict):
        raise InvalidFilter("invalid: a filter is an object")
    values = sum(len(value) for value in given.values() if isinstance(value, list))
    if values > most_values:
        raise InvalidFilter(f"invalid: the filter has more than {most_values} values")
    tags: dict[str, frozenset[str]] = {}
    for name, value in given.items():
        if _TAG.fullmatch(name):
            if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
                raise InvalidFilter(f"invalid: {name} is an array of strings")
            tags[name[1]] = frozenset(value)
        elif name not in ("ids", "authors", "kinds", "since", "until", "limit"):
            raise InvalidFilter(f"unsupported: unknown filter attribute {name[:40]!r}")
    kinds = given.get("kinds")
    if kinds is not None and (
        not isinstance(kinds, list) or not all(type(kind) is int and 0 <= kind <= LARGEST_KIND for kind in kinds)
    ):
        raise InvalidFilter(f"invalid: kinds is an array of integers from 0 to {LARGEST_KIND}")
    return Filter(
        _hex_set(given, "ids"),
        _hex_set(given, "authors"),
        None if kinds is None else frozenset(kinds),
        tags,
        _number(given, "since", 0),
        _number(given, "until", LATEST),
        None if given.get("limit") is None else _number(given, "limit", 0),
    )


def _hex_set(given: dict[str, Any], name: str) -> frozenset[bytes] | None:
    values = given.get(name)
    if values is None:
        return None
    if not isinstance(values, list) or not all(isinstance(each, str) for each in values):
        raise InvalidFilter(f"invalid: {name} is an array of hex strings")
    lower = [each.lower() for each in values]
    if not all(_ID.fullmatch(each) for each in lower):
        raise InvalidFilter(f"invalid: {name} are 64 hex digits each")
    return frozenset(bytes.fromhex(each) for each in lower)


def _number(given: dict[str, Any], name: str, default: int) -> int:
    value = given.get(name)
    if value is None:
        return default
    if type(value) is not int or value < 0:
        raise InvalidFilter(f"invalid: {name} is an integer, not negative")
    return min(value, LATEST)
