"""Items from Nostr events as JSON lines, one event a line, as strfry exports them.

Of an event only ``created_at`` and ``id`` are looked at; whether the id is the event's hash is not.
"""

from __future__ import annotations

import numpy as np
import orjson

from negvec.cli.lines import Parsed, checked_created_at, decoded, id_from_hex
from negvec.items import ID_SIZE


def looks_like_event(line: bytes) -> bool:
    """Tell whether a line, without blanks around it, begins as JSON does (but for a mere number or word)."""
    return line.startswith((b"{", b"["))


def parse_events(block: bytes, first_line: int) -> Parsed:
    """Parse a block of events; see `negvec.cli.lines.Parser`."""
    created_at: list[int] = []
    ids: list[bytes] = []
    bad: list[tuple[int, str]] = []
    for number, line in enumerate(block.split(b"\n"), first_line):
        if not line or line.isspace():
            continue
        try:
            timestamp, id = _event_item(line)
        except ValueError as error:
            bad.append((number, str(error)))
        else:
            created_at.append(timestamp)
            ids.append(id)
    columns = np.array(created_at, dtype=np.uint64), np.frombuffer(b"".join(ids), dtype=np.uint8)
    return Parsed(columns[0], columns[1].reshape(-1, ID_SIZE), bad)


def _event_item(line: bytes) -> tuple[int, bytes]:
    try:
        event = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        decoded(line)
        raise ValueError(f"not JSON: {error.msg}, at column {error.colno}") from None
    if type(event) is not dict:
        raise ValueError("not a JSON object: there must be one event a line")
    try:
        created_at, id = event["created_at"], event["id"]
    except KeyError as error:
        raise ValueError(f"{error.args[0]} is missing") from None
    if type(created_at) is not int:  # isinstance would let True pass
        raise ValueError(f"created_at must be an integer from 0 to 2^64-2, is {_shown(created_at)}")
    if type(id) is not str:
        raise ValueError(f"id must be a string of 64 hex digits, is {_shown(id)}")
    return checked_created_at(created_at), id_from_hex(id)


def _shown(value: object) -> str:
    if isinstance(value, (list, dict)):
        return "an array" if isinstance(value, list) else "an object"
    text = orjson.dumps(value).decode()
    return text if len(text) <= 40 else f"{text[:40]}..."
