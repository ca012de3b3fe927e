"""The array parser of CSV rows takes, row by row, exactly what a plain reading of the rule takes."""

import re

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from negvec.cli.csv_lines import parse_rows

INFINITY = 2**64 - 1

# The rule: two columns with blanks around them, of at most 40 digits and of 64 hex digits.
CREATED_AT, ID = rb"[ \t\r]*([0-9]{1,40})[ \t\r]*", rb"[ \t\r]*([0-9a-fA-F]{64})[ \t\r]*"
ROW = re.compile(CREATED_AT + b"," + ID)
ROW_ID_FIRST = re.compile(ID + b"," + CREATED_AT)


def model(block: bytes, first_line: int, id_first: bool) -> tuple[list[int], list[bytes], list[int]]:
    created_at, ids, bad = [], [], []
    for number, line in enumerate(block.split(b"\n"), first_line):
        if not line.strip(b" \t\r"):
            continue
        match = (ROW_ID_FIRST if id_first else ROW).fullmatch(line)
        if match and int(match[2 if id_first else 1]) < INFINITY:
            created_at.append(int(match[2 if id_first else 1]))
            ids.append(bytes.fromhex(match[1 if id_first else 2].decode()))
        else:
            bad.append(number)
    return created_at, ids, bad


def some(values: st.SearchStrategy[bytes], least: int, most: int) -> st.SearchStrategy[bytes]:
    return st.lists(values, min_size=least, max_size=most).map(b"".join)


blanks = some(st.sampled_from([b" ", b"\t", b"\r"]), 0, 1) | some(st.just(b" "), 3, 9)
timestamps = (st.integers(0, 2**65) | st.integers(2**64 - 3, 2**64 + 3)).map(lambda number: b"%d" % number)
leading_zeros = st.integers(0, 45).map(lambda count: b"0" * count + b"7")
hex_ids = st.binary(min_size=32, max_size=32).map(lambda id: id.hex().encode())
odd_ids = st.sampled_from([b"AB" * 32, b"0" * 63, b"0" * 65, b"ab" * 31 + b"g0", b"@" + b"a" * 63, b"a " * 32])
signs = [b"0", b"9", b"a", b"/", b":", b",", b" ", b"-", b"_", b"\xff", b"\0", b"created_at"]
junk = some(st.sampled_from(signs), 0, 6)


@st.composite
def rows(draw: st.DrawFn) -> bytes:
    first, second = draw(timestamps | leading_zeros | junk), draw(hex_ids | hex_ids | odd_ids | junk)
    if draw(st.booleans()):
        first, second = second, first
    columns = [draw(blanks) + column + draw(blanks) for column in (first, second)]
    return b",".join([*columns, *draw(st.lists(junk, max_size=1))])


@given(st.lists(rows() | hex_ids | blanks | junk, max_size=12), st.booleans(), st.booleans())
def test_a_row_is_taken_or_refused_as_the_rule_says(lines: list[bytes], newline_at_end: bool, id_first: bool) -> None:
    block = b"\n".join(lines) + b"\n" * newline_at_end
    if not block:
        return
    parsed = parse_rows(block, 5, id_first)
    created_at, ids, bad = model(block, 5, id_first)
    assert parsed.created_at.tolist() == created_at
    assert parsed.ids.tobytes() == b"".join(ids)
    assert [number for number, _ in parsed.bad] == bad
    assert all(reason for _, reason in parsed.bad)


def test_all_numbers_of_digits_and_the_largest_created_at() -> None:
    created_at = [10**k for k in range(20)] + [10**k - 1 for k in range(1, 20)] + [INFINITY - 1]
    block = b"".join(b"%d,%064x\n" % (value, value) for value in created_at)
    parsed = parse_rows(block, 1)
    assert parsed.created_at.dtype == np.uint64
    assert parsed.created_at.tolist() == created_at
    assert parsed.bad == []


def test_every_byte_is_a_digit_or_none() -> None:
    bytes_of_a_line = [bytes([value]) for value in range(256) if value not in b"\n"]
    lines = [b"17%s0,%s" % (value, b"ab" * 32) for value in bytes_of_a_line]
    lines += [b"1700,%s%s" % (b"ab" * 31 + b"a", value) for value in bytes_of_a_line]
    created_at, ids, bad = model(b"\n".join(lines), 1, id_first=False)
    assert len(created_at) == 10 + 22
    parsed = parse_rows(b"\n".join(lines), 1)
    assert parsed.created_at.tolist() == created_at
    assert parsed.ids.tobytes() == b"".join(ids)
    assert [number for number, _ in parsed.bad] == bad
