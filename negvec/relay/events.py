"""Nostr events (NIP-01): whether one is well-formed, hashed and signed, and how its kind wants it to be kept."""

from __future__ import annotations

import hashlib
import re
from typing import Any, NamedTuple

import orjson

_ID = re.compile(r"[0-9a-f]{64}")
_SIGNATURE = re.compile(r"[0-9a-f]{128}")
_NUMBER = re.compile(r"[0-9]{1,20}")  # more digits are no time; int() refuses thousands of them
_FIELDS = ("id", "pubkey", "created_at", "kind", "tags", "content", "sig")

LATEST = 2**63 - 1  # what SQLite's integers hold
LARGEST_KIND = 65_535
DELETION = 5  # kind (NIP-09)


class InvalidEvent(ValueError):
    """An event that is not as NIP-01 has it; the message is meant for the OK that refuses it."""


class Event(NamedTuple):
    """A checked event.

    Attributes
    ----------
    id, pubkey : bytes
        32 each.
    created_at, kind : int
    tags : list of list of str
    expires : int or None
        Unix seconds (NIP-40).
    signature : bytes
        64 of them.
    json : bytes
        The event as it is sent on.
    """

    id: bytes
    pubkey: bytes
    created_at: int
    kind: int
    tags: list[list[str]]
    expires: int | None
    signature: bytes
    json: bytes

    @property
    def ephemeral(self) -> bool:
        """Sent on, and never stored."""
        return 20_000 <= self.kind < 30_000

    @property
    def address(self) -> str | None:
        """Of events with the same kind, author and address only the newest is kept; None where all are."""
        if self.kind in (0, 3) or 10_000 <= self.kind < 20_000:
            return ""
        if 30_000 <= self.kind < 40_000:
            return next((tag[1] for tag in self.tags if len(tag) > 1 and tag[0] == "d"), "")
        return None


def parse(given: Any) -> Event:
    """Check the form of an event, and that its id is the hash of what it says; `verify` checks the signature.

    Raises
    ------
    InvalidEvent
    """
    if not isinstance(given, dict):
        raise InvalidEvent("invalid: an event is an object")
    missing = [field for field in _FIELDS if field not in given]
    if missing:
        raise InvalidEvent(f"invalid: the event has no {missing[0]}")
    id, pubkey, created_at, kind, tags, content, signature = (given[field] for field in _FIELDS)
    for name, value, form in (("id", id, _ID), ("pubkey", pubkey, _ID), ("sig", signature, _SIGNATURE)):
        if not isinstance(value, str) or not form.fullmatch(value):
            raise InvalidEvent(f"invalid: {name} is lower-case hex of {'64' if name == 'sig' else '32'} bytes")
    for name, value, most in (("created_at", created_at, LATEST), ("kind", kind, LARGEST_KIND)):
        if type(value) is not int or not 0 <= value <= most:
            raise InvalidEvent(f"invalid: {name} is an integer from 0 to {most}")
    if not isinstance(content, str):
        raise InvalidEvent("invalid: content is a string")
    if not isinstance(tags, list) or not all(
        isinstance(tag, list) and tag and all(isinstance(part, str) for part in tag) for tag in tags
    ):
        raise InvalidEvent("invalid: tags are arrays of strings")
    said = orjson.dumps([0, pubkey, created_at, kind, tags, content])
    if hashlib.sha256(said).hexdigest() != id:
        raise InvalidEvent("invalid: the id is not the hash of the event")
    whole = orjson.dumps({field: given[field] for field in _FIELDS})
    own = bytes.fromhex(id), bytes.fromhex(pubkey), created_at, kind, tags, _expiration(tags)
    return Event(*own, bytes.fromhex(signature), whole)


def verify(event: Event) -> None:
    """Check the BIP-340 signature, by libsecp256k1.

    Raises
    ------
    InvalidEvent
    """
    import coincurve

    try:
        valid = coincurve.PublicKeyXOnly(event.pubkey).verify(event.signature, event.id)
    except ValueError:  # no point of the curve
        valid = False
    if not valid:
        raise InvalidEvent("invalid: the signature is wrong")


def _expiration(tags: list[list[str]]) -> int | None:
    for tag in tags:
        if tag[0] == "expiration" and len(tag) > 1 and _NUMBER.fullmatch(tag[1]):
            return min(int(tag[1]), LATEST)
    return None
