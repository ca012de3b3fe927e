"""Hex against Python's own."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from negvec import kernels

from . import thorough


def encoded(data: bytes, at: int = 0) -> bytes:
    out = np.full(at + 2 * len(data) + 3, 7, np.uint8)
    kernels.hex.encode(np.frombuffer(data, np.uint8), out, at)
    assert out[:at].tolist() == [7] * at
    assert out[-3:].tolist() == [7] * 3
    return out[at:-3].tobytes()


def decoded(text: bytes, at: int = 0) -> bytes | None:
    out = np.full(len(text) // 2, 7, np.uint8)
    padded = b"#" * at + text + b"#"
    return out.tobytes() if kernels.hex.decode(np.frombuffer(padded, np.uint8), at, out) else None


@thorough
@given(st.binary(max_size=70), st.integers(0, 9))
def test_there_and_back_at_any_place(data: bytes, at: int) -> None:
    assert encoded(data, at) == data.hex().encode()
    assert decoded(data.hex().encode(), at) == data
    assert decoded(data.hex().upper().encode(), at) == data


@pytest.mark.parametrize("place", range(18))
def test_every_byte_is_a_digit_or_refused_wherever_it_stands(place: int) -> None:
    for sign in range(256):
        text = bytearray(b"0f" * 9)
        text[place] = sign
        expected = bytes.fromhex(text.decode()) if chr(sign) in "0123456789abcdefABCDEF" else None
        assert decoded(bytes(text)) == expected


@thorough
@given(st.binary(max_size=40).filter(lambda text: len(text) % 2 == 0))
def test_anything_else_is_refused(text: bytes) -> None:
    digits = all(chr(sign) in "0123456789abcdefABCDEF" for sign in text)
    assert decoded(text) == (bytes.fromhex(text.decode()) if digits else None)
