"""Bytes to hex digits and back, eight bytes at a time in plain 64-bit arithmetic, which compilers vectorize.

Every byte of a word holds a nibble, or a digit; a digit is checked by writing its nibble as a digit again.
"""

from __future__ import annotations

import numpy as np

from negvec.kernels._jit import BYTES, INT, OUT_BYTES, VOID, Column, Word, device, kernel
from negvec.kernels.words import load_word, store_word

_ONES = 0x0101010101010101
_LOW_NIBBLES = 0x0F0F0F0F0F0F0F0F


@device
def _digits(nibbles: Word) -> Word:
    """The lower-case digits of eight nibbles."""
    letters = ((nibbles + np.uint64(6 * _ONES)) >> np.uint64(4)) & np.uint64(_ONES)
    return nibbles + np.uint64(0x30 * _ONES) + letters * np.uint64(0x27)


@device
def _spread(half: Word) -> Word:
    """The nibbles of four bytes, the high one of each first."""
    word = (half | half << np.uint64(16)) & np.uint64(0x0000FFFF0000FFFF)
    word = (word | word << np.uint64(8)) & np.uint64(0x00FF00FF00FF00FF)
    low = np.uint64(0x000F000F000F000F)
    return (word >> np.uint64(4)) & low | (word & low) << np.uint64(8)


@device
def _nibbles(digits: Word) -> Word:
    """The values of eight digits; of anything else, whatever comes out."""
    letters = (digits >> np.uint64(6)) & np.uint64(_ONES)
    return (digits & np.uint64(_LOW_NIBBLES)) + letters * np.uint64(9)


@device
def _faults(digits: Word, nibbles: Word) -> Word:
    """Zero if all eight are digits, of either case."""
    letters = (digits >> np.uint64(6)) & np.uint64(_ONES)
    lower = digits | letters << np.uint64(5)
    return (_digits(nibbles) ^ lower) | (nibbles & ~np.uint64(_LOW_NIBBLES))


@device
def _join(nibbles: Word) -> Word:
    """Four bytes of their eight nibbles."""
    low = np.uint64(0x000F000F000F000F)
    word = (nibbles & low) << np.uint64(4) | (nibbles >> np.uint64(8)) & low
    word = (word | word >> np.uint64(8)) & np.uint64(0x0000FFFF0000FFFF)
    return (word | word >> np.uint64(16)) & np.uint64(0xFFFFFFFF)


@kernel(VOID, BYTES, OUT_BYTES, INT)
def encode(data: Column, out: Column, at: int) -> None:
    """Write the lower-case hex digits of `data` to out[at:]; one pass."""
    whole = len(data) // 8 * 8
    low = np.uint64(0xFFFFFFFF)
    for place in range(0, whole, 8):
        word = load_word(data, place)
        store_word(out, at + 2 * place, _digits(_spread(word & low)))
        store_word(out, at + 2 * place + 8, _digits(_spread(word >> np.uint64(32))))
    for place in range(whole, len(data)):
        digits = _digits(_spread(np.uint64(data[place])))
        out[at + 2 * place] = digits & np.uint64(0xFF)
        out[at + 2 * place + 1] = (digits >> np.uint64(8)) & np.uint64(0xFF)


@kernel(INT, BYTES, INT, OUT_BYTES)
def decode(text: Column, at: int, out: Column) -> int:
    """Read len(out) bytes from twice as many hex digits at text[at:]; returns 0 if any of them is none, else 1."""
    whole = len(out) // 8 * 8
    faults = np.uint64(0)
    for place in range(0, whole, 8):
        first, second = load_word(text, at + 2 * place), load_word(text, at + 2 * place + 8)
        low, high = _nibbles(first), _nibbles(second)
        faults |= _faults(first, low) | _faults(second, high)
        store_word(out, place, _join(low) | _join(high) << np.uint64(32))
    zeros = np.uint64(0x3030303030303030 & ~0xFFFF)
    for place in range(whole, len(out)):
        digits = np.uint64(text[at + 2 * place]) | np.uint64(text[at + 2 * place + 1]) << np.uint64(8) | zeros
        nibbles = _nibbles(digits)
        faults |= _faults(digits, nibbles)
        out[place] = _join(nibbles) & np.uint64(0xFF)
    return 1 if faults == 0 else 0
