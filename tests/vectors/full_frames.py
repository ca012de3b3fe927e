"""Messages that fill a responder's frame: what the reference answers, and what design.md's rules make of it.

Each opens with an empty IdList up to 200, whose answer, 122 ids, leaves a frame of `LIMIT` no byte to spare.
"""

from __future__ import annotations

from hashlib import sha256
from typing import NamedTuple

CLOSING_ROOM = 200  # of a frame's bytes, which only its closing range may use


class FullFrame(NamedTuple):
    rule: str
    items: list[tuple[int, bytes]]
    limit: int
    message: bytes
    reference_answer: bytes
    answer: bytes


def _held(created_ats: range) -> list[tuple[int, bytes]]:
    return [(at, sha256(b"%d" % at).digest()) for at in created_ats]


def _fingerprint(items: list[tuple[int, bytes]]) -> bytes:
    assert len(items) < 128  # the count is one byte
    total = sum(int.from_bytes(id, "little") for _, id in items) % 2**256
    return sha256(total.to_bytes(32, "little") + bytes([len(items)])).digest()[:16]


# Bounds without an id prefix: the first in two bytes of varint, and offsets from the bound before
UP_TO_200, TO_INFINITY = bytes.fromhex("8149 00"), bytes.fromhex("00 00")
ON_10, ON_60, ON_100 = (bytes([1 + offset, 0]) for offset in (10, 60, 100))
SKIP, FINGERPRINT, ID_LIST = b"\x00", b"\x01", b"\x02"
NO_IDS = ID_LIST + b"\x00"
OF_NOTHING, UNKNOWN = FINGERPRINT + _fingerprint([]), FINGERPRINT + b"\xaa" * 16

LISTED, FROM_250, FROM_500 = _held(range(122)), _held(range(250, 290)), _held(range(500, 505))
ASKED = b"\x61" + UP_TO_200 + NO_IDS
FULL = b"\x61" + UP_TO_200 + ID_LIST + bytes([122]) + b"".join(id for _, id in LISTED)
LIMIT = len(FULL) + CLOSING_ROOM


def _closed(rest: list[tuple[int, bytes]]) -> bytes:
    return FULL + TO_INFINITY + FINGERPRINT + _fingerprint(rest)


FULL_FRAMES = [
    FullFrame("a frame that leaves 200 bytes is not full", LISTED, LIMIT, ASKED, FULL, FULL),
    FullFrame("a frame that leaves 199 bytes is full", LISTED, LIMIT - 1, ASKED, _closed([]), _closed([])),
    FullFrame(
        "rule 1: nothing held at or after the range is one empty IdList to infinity",
        items=LISTED,
        limit=LIMIT,
        message=ASKED + ON_100 + UNKNOWN + TO_INFINITY + UNKNOWN,
        reference_answer=_closed([]),
        answer=FULL + TO_INFINITY + NO_IDS,
    ),
    FullFrame(
        "rule 1: after the pending Skip",
        items=LISTED,
        limit=LIMIT,
        message=ASKED + ON_60 + OF_NOTHING + ON_100 + UNKNOWN + TO_INFINITY + UNKNOWN,
        reference_answer=_closed([]),
        answer=FULL + ON_60 + SKIP + TO_INFINITY + NO_IDS,
    ),
    FullFrame(
        "rule 1 is not for a range that is empty but followed by items",
        items=LISTED + FROM_250,
        limit=LIMIT,
        message=ASKED + ON_10 + UNKNOWN,
        reference_answer=_closed(FROM_250),
        answer=_closed(FROM_250),
    ),
    FullFrame(
        "rule 2: the fingerprint of nothing is rejected with that of all from the last bound written",
        items=LISTED + FROM_250 + FROM_500,
        limit=LIMIT,
        message=ASKED + ON_60 + SKIP + ON_100 + OF_NOTHING,
        reference_answer=_closed(FROM_500),
        answer=_closed(FROM_250 + FROM_500),
    ),
    FullFrame(
        "rule 2 is not for any other fingerprint",
        items=LISTED + FROM_250 + FROM_500,
        limit=LIMIT,
        message=ASKED + ON_60 + SKIP + ON_100 + UNKNOWN,
        reference_answer=_closed(FROM_500),
        answer=_closed(FROM_500),
    ),
]
