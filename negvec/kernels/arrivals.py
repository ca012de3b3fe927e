"""Items in the order in which they came, each once: columns, and a table of hashes that says which are there.

A slot of the table is zero, or has part of an item's hash and, in its lower ROW_BITS, one more than the item's row. An
item is in the first slot that was free from that on which the uppermost bits of its hash number. Half of the slots are
taken at most; then `number` fills a larger table.

Whoever sends ids may choose them, and must not be able to have them all hashed to one slot: the hash is universal, with
a secret for each table (Multilinear-HM of Lemire and Kaser, "Strongly universal string hashing is fast", 2014: the sum
of the products of 32-bit halves, each with a word of the secret added to it, of which the upper 32 bits count).
"""

from __future__ import annotations

import numpy as np

from negvec.kernels._jit import (
    INT,
    OUT_TAGS,
    OUT_WORD_ROWS,
    OUT_WORDS,
    VOID,
    WORD_ROWS,
    WORDS,
    Column,
    Word,
    Word32,
    device,
    kernel,
)
from negvec.kernels.addresses import address_of, prefetch
from negvec.kernels.order import WORDS_OF_ITEM
from negvec.kernels.words import copy_row, same_item

ROW_BITS = 20
LARGEST_ROWS = (1 << ROW_BITS) - 1
SECRET_WORDS = 2 * WORDS_OF_ITEM
AHEAD = 64  # slots on their way from memory at once

_HALF = np.uint64(32)
_LOWER = np.uint64((1 << 32) - 1)
_ROWS, _PART = np.uint32(LARGEST_ROWS), np.uint32((1 << 32) - 1 - LARGEST_ROWS)


@device
def _product(word: Word, secret: Column, k: int) -> Word:
    return ((word & _LOWER) + secret[2 * k]) * ((word >> _HALF) + secret[2 * k + 1])


@device
def _hash(created_at: Column, ids: Column, row: int, secret: Column) -> Word:
    total = _product(created_at[row], secret, 0) + _product(ids[row, 0], secret, 1) + _product(ids[row, 1], secret, 2)
    return total + _product(ids[row, 2], secret, 3) + _product(ids[row, 3], secret, 4)


@device
def _part(hash: Word) -> Word32:
    """The bits of a hash that a slot holds: of those that count, the lowest, which least often number slots."""
    return np.uint32((hash >> _HALF) << np.uint64(ROW_BITS))


@device
def _row(slot: Word32) -> int:
    row: int = np.int64(slot & _ROWS) - 1
    return row


@device
def _hash_some(
    created_at: Column, ids: Column, secret: Column, start: int, stop: int, slots: Column, shift: Word, hashes: Column
) -> None:
    """Hash items, and have their slots brought into the cache."""
    for row in range(start, stop):
        hash = _hash(created_at, ids, row, secret)
        hashes[row - start] = hash
        prefetch(address_of(slots) + 4 * np.int64(hash >> shift))


@device
def _shift(slots: Column) -> Word:
    """By how much a hash is shifted to number one of the slots, of which there are a power of two."""
    shift, left = 64, len(slots)
    while left > 1:
        left >>= 1
        shift -= 1
    return np.uint64(shift)


@kernel(INT, WORDS, WORD_ROWS, OUT_WORDS, OUT_WORD_ROWS, INT, OUT_TAGS, WORDS)
def enter(
    created_at: Column, ids: Column, to_at: Column, to_ids: Column, count: int, slots: Column, secret: Column
) -> int:
    """Add what is not among the first `count` items of two columns; returns how many there are then. O(1) an item.

    There is room for all in the columns and, twice, in `slots`.
    """
    shift, mask = _shift(slots), np.uint64(len(slots) - 1)
    hashes = np.empty(AHEAD, np.uint64)
    for start in range(0, len(created_at), AHEAD):
        stop = min(start + AHEAD, len(created_at))
        _hash_some(created_at, ids, secret, start, stop, slots, shift, hashes)
        for row in range(start, stop):
            at, part = hashes[row - start] >> shift, _part(hashes[row - start])
            slot = slots[at]
            while slot != 0:
                if slot & _PART == part and same_item(created_at, ids, row, to_at, to_ids, _row(slot)):
                    break
                at = (at + np.uint64(1)) & mask
                slot = slots[at]
            if slot == 0:
                to_at[count] = created_at[row]
                copy_row(to_ids, count, ids, row)
                count += 1
                slots[at] = part | np.uint32(count)
    return count


@kernel(VOID, WORDS, WORD_ROWS, INT, OUT_TAGS, WORDS)
def number(created_at: Column, ids: Column, count: int, slots: Column, secret: Column) -> None:
    """Fill an empty table with the first `count` items of columns, which are each there once."""
    shift, mask = _shift(slots), np.uint64(len(slots) - 1)
    hashes = np.empty(AHEAD, np.uint64)
    for start in range(0, count, AHEAD):
        stop = min(start + AHEAD, count)
        _hash_some(created_at, ids, secret, start, stop, slots, shift, hashes)
        for row in range(start, stop):
            at = hashes[row - start] >> shift
            while slots[at] != 0:
                at = (at + np.uint64(1)) & mask
            slots[at] = _part(hashes[row - start]) | np.uint32(row + 1)
