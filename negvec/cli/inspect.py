"""`negvec inspect`: a message as a table of its ranges."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

import click
import numpy as np

import negvec
from negvec.items import ID_SIZE
from negvec.protocol.codec import (
    FINGERPRINT,
    FINGERPRINT_SIZE,
    ID_LIST,
    INFINITY,
    MODE_NAMES,
    VERSION,
    VERSIONS,
    decode,
)
from negvec.storage.seam import Bytes

IDS_SHOWN = 2
LONGEST_TEXT = 2**26  # characters read from standard input: 32 MiB of message
PLAUSIBLE = range(10**9, 10**10)  # seconds that are shown as a date: 2001 to 2286
LABELS = {"NEG-OPEN": 3, "NEG-MSG": 2}  # frames of NIP-77, and which element is the message


@dataclass(frozen=True)
class Row:
    """A range of a message; `offset` is its first byte's, `created_at` and `prefix` are its upper bound's."""

    range: int
    offset: int
    lower: str
    upper: str
    created_at: int | None  # None for infinity
    prefix: str
    mode: str
    ids: int
    payload: str | list[str] | None  # a fingerprint, ids, or None of a Skip
    bytes: int


@click.command()
@click.argument("message")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object a range, with all ids.")
def inspect(message: str, as_json: bool) -> int:
    """Show what MESSAGE says, range by range.

    MESSAGE is hex, a whole NEG-MSG or NEG-OPEN frame, or - to read either from standard input.

    \b
    Examples:
      negvec inspect 6100000201eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee
      negvec inspect '["NEG-MSG","sub","6100000200"]'
    """
    if message == "-":
        message = sys.stdin.read(LONGEST_TEXT + 1)
        if len(message) > LONGEST_TEXT:
            raise ValueError(f"standard input is longer than any message is likely to be ({LONGEST_TEXT:,} characters)")
    data = np.frombuffer(_bytes_of(message), np.uint8)
    if len(data) == 0 or data[0] not in VERSIONS:
        raise negvec.ProtocolError("a message begins with a version byte of 0x60 to 0x6f", 0)
    if data[0] != VERSION:
        version = int(data[0]) - VERSIONS.start
        told = f"protocol version {version}; only version 1 can be shown"
        click.echo(json.dumps({"version": version}) if as_json else told)
        return 0
    rows = list(_rows(data))
    if as_json:
        for row in rows:
            click.echo(json.dumps(asdict(row)))
        return 0
    table = [("", "from", "to", "mode", "bytes", "payload")]
    table += [(str(row.range), row.lower, row.upper, row.mode, str(row.bytes), _shown(row.payload)) for row in rows]
    widths = [max(len(line[column]) for line in table) for column in range(5)]
    for line in table:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(line, [*widths, 0], strict=True)).rstrip())
    modes = [row.mode for row in rows]
    counts = ", ".join(f"{modes.count(name)} {name}" for name in MODE_NAMES if name in modes)
    ids = sum(row.ids for row in rows)
    click.echo(f"version 1, {len(data):,} bytes, {len(rows)} ranges ({counts or 'none'}), {ids:,} ids listed")
    return 0


def _bytes_of(text: str) -> bytes:
    text = text.strip()
    if text.startswith("["):
        try:
            frame = json.loads(text)
        except (json.JSONDecodeError, RecursionError) as error:  # the latter for brackets without end
            raise ValueError(f"neither hex nor a JSON frame: {error}") from None
        at = LABELS.get(frame[0]) if frame and isinstance(frame[0], str) else None
        if at is None:
            raise ValueError(f"not a NEG-MSG or NEG-OPEN frame: {text[:40]}")
        if len(frame) <= at or not isinstance(frame[at], str):
            raise ValueError(f"the {frame[0]} frame has no message as element {at}")
        text = frame[at]
    try:
        return bytes.fromhex(text)
    except ValueError:
        digits = set("0123456789abcdefABCDEF")
        bad = next((i for i, char in enumerate(text) if char not in digits), None)
        problem = f"{text[bad]!r} at digit {bad} is none" if bad is not None else "an odd number of digits"
        raise ValueError(f"a message is an even number of hex digits: {problem}") from None


def _rows(data: Bytes) -> Iterator[Row]:
    ranges = decode(data)
    created_at, ids, lengths = ranges.bounds
    lower, start = "0", 1
    for m in range(len(ranges.modes)):
        mode, at, count = int(ranges.modes[m]), int(ranges.payloads[m]), int(ranges.counts[m])
        stop = at + (FINGERPRINT_SIZE if mode == FINGERPRINT else ID_SIZE * count if mode == ID_LIST else 0)
        prefix = ids[m, : lengths[m]].tobytes().hex()
        end = int(created_at[m]) if created_at[m] != INFINITY else None
        upper = _bound(end, prefix)
        payload: str | list[str] | None = None
        if mode == FINGERPRINT:
            payload = data[at:stop].tobytes().hex()
        elif mode == ID_LIST:
            payload = [item_id.tobytes().hex() for item_id in data[at:stop].reshape(-1, ID_SIZE)]
        yield Row(m, start, lower, upper, end, prefix, MODE_NAMES[mode], count, payload, stop - start)
        lower, start = upper, stop


def _shown(payload: str | list[str] | None) -> str:
    if not isinstance(payload, list):
        return payload or ""
    shown = [f"{item_id[:16]}.." for item_id in payload[:IDS_SHOWN]]
    more = [f"... {len(payload) - IDS_SHOWN} more"] * (len(payload) > IDS_SHOWN)
    return f"{len(payload)} ids" + (": " if shown else "") + " ".join(shown + more)


def _bound(created_at: int | None, prefix: str) -> str:
    if created_at is None:
        text = "infinity"
    elif created_at in PLAUSIBLE:
        text = f"{created_at} ({datetime.fromtimestamp(created_at, UTC):%Y-%m-%d %H:%M:%S}Z)"
    else:
        text = str(created_at)
    return f"{text} {prefix}" if prefix else text
