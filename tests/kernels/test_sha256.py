"""Batched fingerprints against hashlib."""

from __future__ import annotations

from hashlib import sha256

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from negvec import kernels

from . import as_words, thorough

VARINT_EDGES = sorted({max(2 ** (7 * digits) + d, 0) for digits in range(9) for d in (-1, 0, 1)} | {2**62, 2**63 - 1})
BATCHES = [0, 1, 2, 15, 16, 17, 31, 32, 33, 47, 48, 49, 257]

sums = st.one_of(
    st.binary(min_size=32, max_size=32),
    st.sampled_from([bytes(32), b"\xff" * 32, bytes(31) + b"\x80", b"\x01" + bytes(31)]),
)
counts = st.one_of(st.sampled_from(VARINT_EDGES), st.integers(0, 2**62))


def varint(number: int) -> bytes:
    """Digits to base 128, most significant first, the high bit set in all but the last."""
    digits = [number & 0x7F]
    while number := number >> 7:
        digits.append(number & 0x7F | 0x80)
    return bytes(reversed(digits))


def expected(sum_bytes: bytes, count: int) -> bytes:
    return sha256(sum_bytes + varint(count)).digest()[:16]


def fingerprints(rows: list[tuple[bytes, int]], lowest: int = 0) -> list[bytes]:
    """The kernel's fingerprints of sums and counts, of ranges that begin at `lowest`, or lower if they must."""
    count = np.array([count for _, count in rows], np.int64)
    lo = np.minimum(lowest, 2**63 - 1 - count)
    out = np.full((len(rows), 2), 7, np.uint64)
    kernels.sha256.fingerprints(as_words([sum_bytes for sum_bytes, _ in rows]), lo, lo + count, out)
    return [row.tobytes() for row in out]


@thorough
@given(st.lists(st.tuples(sums, counts), max_size=40), st.integers(0, 2**62))
def test_a_fingerprint_is_the_first_half_of_the_hash_of_sum_and_count(
    rows: list[tuple[bytes, int]], lowest: int
) -> None:
    assert fingerprints(rows, lowest) == [expected(*row) for row in rows]


@pytest.mark.parametrize("count", VARINT_EDGES)
def test_the_count_is_a_varint_of_every_length(count: int) -> None:
    for sum_bytes in (bytes(32), b"\xff" * 32, bytes(range(32))):
        assert fingerprints([(sum_bytes, count)]) == [expected(sum_bytes, count)]


@pytest.mark.parametrize("size", BATCHES)
def test_a_batch_of_any_size_fills_its_rows_and_no_lane_leaks_into_another(size: int) -> None:
    """Neighbours differ in the length of their varint, and so in where the closing bit stands."""
    random = np.random.default_rng(size)
    rows = [(random.bytes(32), VARINT_EDGES[3 * i % len(VARINT_EDGES)]) for i in range(size)]
    assert fingerprints(rows) == [expected(*row) for row in rows]


def test_a_short_last_batch_is_not_hashed_with_what_the_full_one_before_left() -> None:
    for left in range(1, 16):
        rows = [(b"\xff" * 32, 2**62)] * 16 + [(bytes(32), 0)] * left
        assert fingerprints(rows)[16:] == [expected(bytes(32), 0)] * left


def test_the_fingerprint_of_nothing_is_that_of_a_zero_sum_and_a_zero_count() -> None:
    assert fingerprints([(bytes(32), 0)]) == [sha256(bytes(33)).digest()[:16]]


def test_the_constants_are_those_of_fips_180_4() -> None:
    assert len(kernels.sha256.ROUND_CONSTANTS) == 64
    assert [hex(k) for k in kernels.sha256.ROUND_CONSTANTS[[0, 1, 62, 63]]] == [
        "0x428a2f98",
        "0x71374491",
        "0xbef9a3f7",
        "0xc67178f2",
    ]
    assert [hex(h) for h in kernels.sha256.INITIAL[[0, 7]]] == ["0x6a09e667", "0x5be0cd19"]
