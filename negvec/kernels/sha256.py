"""Fingerprints of many ranges at once: sha256(sum, 32 bytes little-endian, then varint(count))[:16].

The message of a fingerprint is 33 to 42 bytes, so it is always one SHA-256 block (FIPS 180-4, section 6.2). Blocks are
hashed LANES at a time. Word t of all lanes lies together, and the innermost loop runs over the lanes, so that the
compiler turns each 32-bit operation into one vector instruction for 16 hashes. Eight rounds of straight-line code a
pass over the lanes keep the eight state words in registers between two renamings that cancel out; more rounds a pass
would be a little faster and many times slower to compile.
"""

from __future__ import annotations

import numpy as np

from negvec.kernels._jit import INT, INTS, OUT_WORD_ROWS, PAIR, VOID, WORD_ROWS, Column, Word, Word32, device, kernel
from negvec.kernels.words import add32, byte_swap32, rotate_right32

LANES = 16  # one AVX-512 register of uint32, two of AVX2, four of NEON
STATE = 64 * LANES  # where the state words begin in the scratch array, behind the 64 words of the message schedule

_PRIMES = [p for p in range(2, 312) if all(p % q for q in range(2, int(p**0.5) + 1))]


def _root_bits(prime: int, degree: int) -> int:
    """The first 32 bits of the fractional part of the prime's root, exactly, in integers."""
    scaled, root = prime << (32 * degree), round(prime ** (1 / degree) * 2**32)
    while root**degree > scaled:
        root -= 1
    while (root + 1) ** degree <= scaled:
        root += 1
    return root & 0xFFFFFFFF


ROUND_CONSTANTS = np.array([_root_bits(p, 3) for p in _PRIMES], dtype=np.uint32)  # FIPS 180-4, 4.2.2
INITIAL = np.array([_root_bits(p, 2) for p in _PRIMES[:8]], dtype=np.uint32)  # FIPS 180-4, 5.3.3


@device
def _round(
    a: Word32,
    b: Word32,
    c: Word32,
    d: Word32,
    e: Word32,
    f: Word32,
    g: Word32,
    h: Word32,
    word: Word32,
) -> tuple[Word32, Word32]:
    """One round; returns the two words that change, the new `e` and the new `a`."""
    choice = g ^ (e & (f ^ g))
    majority = (a & b) | (c & (a | b))
    sum1 = rotate_right32(e, 6) ^ rotate_right32(e, 11) ^ rotate_right32(e, 25)
    sum0 = rotate_right32(a, 2) ^ rotate_right32(a, 13) ^ rotate_right32(a, 22)
    temporary = add32(add32(add32(h, sum1), choice), word)
    return add32(d, temporary), add32(temporary, add32(sum0, majority))


@device
def _compress(w: Column) -> None:
    """Hash the 16 message words of each lane in `w`; leaves the digests' words, less INITIAL, behind STATE."""
    for t in range(16, 64):
        for lane in range(t * LANES, (t + 1) * LANES):
            x, y = w[lane - 15 * LANES], w[lane - 2 * LANES]
            small0 = rotate_right32(x, 7) ^ rotate_right32(x, 18) ^ (x >> np.uint32(3))
            small1 = rotate_right32(y, 17) ^ rotate_right32(y, 19) ^ (y >> np.uint32(10))
            w[lane] = add32(add32(w[lane - 16 * LANES], small0), add32(w[lane - 7 * LANES], small1))
    for i in range(8):
        for lane in range(LANES):
            w[STATE + i * LANES + lane] = INITIAL[i]
    for t in range(0, 64, 8):
        k0, k1, k2, k3 = (
            ROUND_CONSTANTS[t],
            ROUND_CONSTANTS[t + 1],
            ROUND_CONSTANTS[t + 2],
            ROUND_CONSTANTS[t + 3],
        )
        k4, k5, k6, k7 = (
            ROUND_CONSTANTS[t + 4],
            ROUND_CONSTANTS[t + 5],
            ROUND_CONSTANTS[t + 6],
            ROUND_CONSTANTS[t + 7],
        )
        at = t * LANES
        for lane in range(LANES):
            s = STATE + lane
            i = at + lane
            a, b, c, d = w[s], w[s + LANES], w[s + 2 * LANES], w[s + 3 * LANES]
            e, f, g, h = w[s + 4 * LANES], w[s + 5 * LANES], w[s + 6 * LANES], w[s + 7 * LANES]
            d, h = _round(a, b, c, d, e, f, g, h, add32(k0, w[i]))
            c, g = _round(h, a, b, c, d, e, f, g, add32(k1, w[i + LANES]))
            b, f = _round(g, h, a, b, c, d, e, f, add32(k2, w[i + 2 * LANES]))
            a, e = _round(f, g, h, a, b, c, d, e, add32(k3, w[i + 3 * LANES]))
            h, d = _round(e, f, g, h, a, b, c, d, add32(k4, w[i + 4 * LANES]))
            g, c = _round(d, e, f, g, h, a, b, c, add32(k5, w[i + 5 * LANES]))
            f, b = _round(c, d, e, f, g, h, a, b, add32(k6, w[i + 6 * LANES]))
            e, a = _round(b, c, d, e, f, g, h, a, add32(k7, w[i + 7 * LANES]))
            w[s], w[s + LANES], w[s + 2 * LANES], w[s + 3 * LANES] = a, b, c, d
            w[s + 4 * LANES], w[s + 5 * LANES], w[s + 6 * LANES], w[s + 7 * LANES] = e, f, g, h


@device
def _tail(count: Word) -> tuple[Word, Word, Word32]:
    """What follows the sum in the block, big-endian: varint(count), the bit 1, zeros; and the length in bits."""
    if count < np.uint64(1 << 28):  # nearly always: four digits at most, spread to bytes at once
        digits = (count & np.uint64(0x7F)) | (count & np.uint64(0x3F80)) << np.uint64(1)
        digits |= (count & np.uint64(0x1FC000)) << np.uint64(2) | (count & np.uint64(0xFE00000)) << np.uint64(3)
        width = 8 * (1 + (count > np.uint64(0x7F)) + (count > np.uint64(0x3FFF)) + (count > np.uint64(0x1FFFFF)))
        digits |= np.uint64(0x80808000) & ((np.uint64(1) << np.uint64(width)) - np.uint64(1))
        closed = digits << np.uint64(8) | np.uint64(0x80)
        return closed << np.uint64(56 - width), np.uint64(0), np.uint32(256 + width)
    high, low = np.uint64(0x80) << np.uint64(56), np.uint64(0)  # the closing bit, pushed right by each digit
    more = np.uint64(0)
    size = 32
    while True:
        low = (low >> np.uint64(8)) | (high << np.uint64(56))
        high = (high >> np.uint64(8)) | ((count & np.uint64(0x7F) | more) << np.uint64(56))
        more = np.uint64(0x80)
        size += 1
        count >>= np.uint64(7)
        if count == 0:
            return high, low, np.uint32(8 * size)


@device
def _pack(words: Column, lo: Column, hi: Column, base: int, lanes: int, w: Column) -> None:
    """Write the message words of ranges `base`, `base + 1`, ... to the lanes; words 11 to 14 stay 0.

    Indices are unsigned here, which spares numba's look at whether they count from the end.
    """
    first = np.uint64(base)
    for k in range(8):
        for lane in range(lanes):
            w[np.uint64(k * LANES + lane)] = byte_swap32(words[np.uint64(8) * first + np.uint64(8 * lane + k)])
    for lane in range(lanes):
        row = first + np.uint64(lane)
        high, low, bits = _tail(np.uint64(hi[row] - lo[row]))
        w[np.uint64(8 * LANES + lane)] = np.uint32(high >> np.uint64(32))
        w[np.uint64(9 * LANES + lane)] = np.uint32(high)
        w[np.uint64(10 * LANES + lane)] = np.uint32(low >> np.uint64(32))
        w[np.uint64(15 * LANES + lane)] = bits


@device
def _unpack(w: Column, base: int, lanes: int, out: Column) -> None:
    """The first half of each lane's digest."""
    for lane in range(lanes):
        for k in range(2):
            first = byte_swap32(add32(w[STATE + 2 * k * LANES + lane], INITIAL[2 * k]))
            second = byte_swap32(add32(w[STATE + (2 * k + 1) * LANES + lane], INITIAL[2 * k + 1]))
            out[np.uint64(base + lane), k] = np.uint64(first) | np.uint64(second) << np.uint64(32)


@kernel(VOID, WORD_ROWS, INTS, INTS, OUT_WORD_ROWS)
def fingerprints(sums: Column, lo: Column, hi: Column, out: Column) -> None:
    """Hash (m, 4) sums with the counts `hi - lo` to (m, 2) uint64 rows, the 16 bytes of each fingerprint."""
    w = np.zeros(STATE + 8 * LANES, dtype=np.uint32)
    words = sums.reshape(-1).view(np.uint32)
    m = len(lo)
    full = m - m % LANES
    for base in range(0, full, LANES):  # a constant number of lanes lets the compiler unroll the packing
        _pack(words, lo, hi, base, LANES, w)
        _compress(w)
        _unpack(w, base, LANES, out)
    if full < m:
        _pack(words, lo, hi, full, m - full, w)
        _compress(w)
        _unpack(w, full, m - full, out)


@kernel(PAIR, WORD_ROWS, INT, INT)
def fingerprint(limbs: Column, lo: int, hi: int) -> tuple[Word, Word]:
    """One range's fingerprint from a limb matrix, in one call: for callers who ask range by range."""
    w = np.zeros(STATE + 8 * LANES, dtype=np.uint32)
    borrow = np.uint64(0)
    for k in range(4):
        difference = limbs[hi, k] - limbs[lo, k]
        word = difference - borrow
        borrow = np.uint64(limbs[hi, k] < limbs[lo, k]) | np.uint64(difference < borrow)
        w[2 * k * LANES] = byte_swap32(np.uint32(word))
        w[(2 * k + 1) * LANES] = byte_swap32(np.uint32(word >> np.uint64(32)))
    high, low, bits = _tail(np.uint64(hi - lo))
    w[8 * LANES] = np.uint32(high >> np.uint64(32))
    w[9 * LANES] = np.uint32(high)
    w[10 * LANES] = np.uint32(low >> np.uint64(32))
    w[15 * LANES] = bits
    _compress(w)
    out = np.empty((1, 2), np.uint64)
    _unpack(w, 0, 1, out)
    return out[0, 0], out[0, 1]
