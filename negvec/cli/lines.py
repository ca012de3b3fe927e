"""What the parsers of lines have in common: what they return, and the checks of a single value.

A parser takes a block of whole lines and returns a `Parsed`: the items as arrays, and every bad line with its reason,
so that the caller decides whether one bad line ends the reading. Blank lines don't count. The functions that look at
one value raise a `ValueError` whose text is the reason.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from negvec.items import ID_SIZE, INFINITY, Ids, Timestamps


class Parsed(NamedTuple):
    """What a block of lines holds.

    Attributes
    ----------
    created_at : (n,) uint64
    ids : (n, 32) uint8
    bad : list of (int, str)
        Number and fault of each bad line, in the order of the lines.
    """

    created_at: Timestamps
    ids: Ids
    bad: list[tuple[int, str]]


Parser: TypeAlias = Callable[[bytes, int], Parsed]
"""From a block of whole lines and the number of its first line to what the block holds."""


def checked_created_at(value: int) -> int:
    """Return an integer that may be an item's created_at."""
    if value == INFINITY:
        raise ValueError("created_at is 2^64-1, which is reserved as infinity")
    if not 0 <= value < INFINITY:
        raise ValueError(f"created_at must be an integer from 0 to 2^64-2, is {value}")
    return value


def id_from_hex(text: str) -> bytes:
    """Return the 32 bytes of an id in hex."""
    if len(text) != 2 * ID_SIZE:
        raise ValueError(f"id must be 64 hex digits, has {len(text)} characters")
    try:
        id = bytes.fromhex(text)
    except ValueError:
        id = b""
    if len(id) != ID_SIZE:  # fromhex passes over blanks
        raise ValueError("id must be 64 hex digits, has other characters")
    return id


def decoded(line: bytes) -> str:
    """Return a line's text."""
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8, at byte {error.start + 1} of the line") from None
