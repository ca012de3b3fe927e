"""Items from CSV: ``created_at,id`` or ``id,created_at``, with a header or without.

All rows of a block are read at once: newlines and commas split the text into columns, as spans; spans become numbers
and ids. A row that isn't plain (created_at of 20 digits, many blanks) or isn't right goes to `_row_item`, alone: it
takes what is unusual but right, and says what is wrong with the rest.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from negvec.cli.lines import Parsed, Parser, checked_created_at, decoded, id_from_hex
from negvec.items import ID_SIZE, Ids, Timestamps

_COLUMNS = [b"created_at", b"id"]
_ROW_START = re.compile(rb"[0-9]+[ \t]*,|[0-9A-Fa-f]{64}[ \t]*,")

_ID_DIGITS = 2 * ID_SIZE

# 10^19 - 1 is the largest row of nines in 64 bits.
_DIGITS_MAX = 19

# As many blanks on either side of a column are trimmed for all rows at once.
_BLANKS_MAX = 4
_BLANKS = " \t\r"
_IS_BLANK = np.zeros(256, dtype=np.bool_)
_IS_BLANK[list(_BLANKS.encode())] = True

_NOT_HEX = 255
_HEX = np.full(256, _NOT_HEX, dtype=np.uint8)
_HEX[list(b"0123456789abcdef")] = np.arange(16)
_HEX[list(b"ABCDEF")] = np.arange(10, 16)

Text: TypeAlias = npt.NDArray[np.uint8]
Positions: TypeAlias = npt.NDArray[np.intp]


def looks_like_row(line: bytes) -> bool:
    """Tell whether a line, without blanks around it, is a CSV header or begins as a row does."""
    return _ROW_START.match(line) is not None or _header(line) is not None


def choose_columns(block: bytes) -> tuple[Parser, bytes]:
    """Return the parser for the order of columns in a text's first block, and the block with its header blanked."""
    first = next((line for line in block.split(b"\n") if line.strip()), b"")
    columns = _header(first)
    if columns is None:
        return parse_rows, block
    return partial(parse_rows, id_first=columns[0] == b"id"), block.replace(first, b"", 1)


def parse_rows(block: bytes, first_line: int, id_first: bool = False) -> Parsed:
    """Parse a block of rows; see `negvec.cli.lines.Parser`. `id_first` tells the order of the columns."""
    # Padding, so that what is read for a short last line is there.
    text = np.frombuffer(block + bytes(_ID_DIGITS), dtype=np.uint8)
    ends = np.flatnonzero(text == ord("\n"))
    if not block.endswith(b"\n"):
        ends = np.append(ends, len(block))
    starts = np.concatenate(([0], ends[:-1] + 1))
    commas = np.flatnonzero(text == ord(","))
    comma_from, comma_to = np.searchsorted(commas, starts), np.searchsorted(commas, ends)

    created_at = np.zeros(len(ends), dtype=np.uint64)
    ids = np.zeros((len(ends), ID_SIZE), dtype=np.uint8)
    good = np.zeros(len(ends), dtype=np.bool_)

    rows = np.flatnonzero(comma_to - comma_from == 1)
    comma = commas[comma_from[rows]]
    columns = _trimmed(text, starts[rows], comma), _trimmed(text, comma + 1, ends[rows])
    created_at[rows], is_number = _numbers(text, *columns[id_first])
    ids[rows], is_id = _ids(text, *columns[not id_first])
    good[rows] = is_number & is_id

    bad: list[tuple[int, str]] = []
    rows = np.flatnonzero(~good)
    for row, start, end in zip(rows.tolist(), starts[rows].tolist(), ends[rows].tolist(), strict=True):
        line = block[start:end]
        if not line.strip(_BLANKS.encode()):
            continue
        try:
            created_at[row], id = _row_item(line, id_first)
        except ValueError as error:
            bad.append((first_line + row, str(error)))
        else:
            ids[row] = np.frombuffer(id, dtype=np.uint8)
            good[row] = True
    return Parsed(created_at[good], ids[good], bad)


def _header(line: bytes) -> list[bytes] | None:
    columns = [column.strip().lower() for column in line.split(b",", 2)]
    return columns if sorted(columns) == _COLUMNS else None


def _trimmed(text: Text, start: Positions, end: Positions) -> tuple[Positions, Positions]:
    """Trim spans of the text by a few blanks on either side."""
    for _ in range(_BLANKS_MAX):
        before = (start < end) & _IS_BLANK[text[start]]
        start = start + before
        after = (start < end) & _IS_BLANK[text[end - 1]]
        end = end - after
        if not (before.any() or after.any()):
            break
    return start, end


def _numbers(text: Text, start: Positions, end: Positions) -> tuple[Timestamps, npt.NDArray[np.bool_]]:
    """Read spans as decimal numbers; say also which are numbers, and short enough."""
    digits = end - start
    is_number = (digits > 0) & (digits <= _DIGITS_MAX)
    values = np.zeros(len(start), dtype=np.uint64)
    for place in range(min(int(digits.max(initial=0)), _DIGITS_MAX)):
        inside = place < digits
        digit = text[np.where(inside, start + place, 0)] - np.uint8(ord("0"))  # what is below "0" wraps to above 9
        is_number &= ~inside | (digit <= 9)
        values = np.where(inside, values * np.uint64(10) + digit, values)
    return values, is_number


def _ids(text: Text, start: Positions, end: Positions) -> tuple[Ids, npt.NDArray[np.bool_]]:
    """Read spans as ids in hex; say also which are ids."""
    nibbles: Text = _HEX[np.lib.stride_tricks.sliding_window_view(text, _ID_DIGITS)[start]]
    is_id = (end - start == _ID_DIGITS) & (nibbles != _NOT_HEX).all(axis=1)
    return nibbles[:, ::2] << np.uint8(4) | nibbles[:, 1::2], is_id


def _row_item(line: bytes, id_first: bool) -> tuple[int, bytes]:
    columns = [column.strip(_BLANKS) for column in decoded(line).split(",")]
    if len(columns) != 2:
        raise ValueError(f"{len(columns)} column{'s' * (len(columns) != 1)} instead of 2: created_at,id")
    created_at, id = reversed(columns) if id_first else columns
    if not (created_at.isascii() and created_at.isdigit() and len(created_at) <= 40):
        raise ValueError(f"created_at must be an integer from 0 to 2^64-2, is {created_at[:40]!r}")
    return checked_created_at(int(created_at)), id_from_hex(id)
