"""Items in blocks: one sorted set, cut into pieces of at most CAPACITY items, each in an array of its own.

A block is BLOCK_WORDS uint64: the timestamps of its items, then their ids, then sums: row j holds the sum of the
block's first (j + 1) * STEP ids mod 2^256, as far as it is full. A table has a row of eight words for each block:

    ADDRESS  START               FIRST_AT                     STAMP                         SUM, four words
    of it    items before it     timestamp of its first item  when it was made (see edits)  of all items before it

What is asked is asked of (table, rows, size): the first `rows` rows, and `size` items in all. A block ends where the
next one starts and the last one at `size`; what lies beyond, in the table or in the last block, is never read, so that
a writer may append there while others read.

The sum of the first k items is that before the block, and the nearest row of sums in it, and at most STEP / 2 ids
added or taken away: O(1), from two or three places in memory. STEP 8 makes that 44 bytes an item in full blocks.
"""

from __future__ import annotations

import numpy as np

from negvec.kernels._jit import (
    INT,
    INTS,
    OUT_INTS,
    OUT_TAGS,
    OUT_WORD_ROWS,
    OUT_WORDS,
    TAGS,
    VOID,
    WORD_ROWS,
    WORDS,
    Column,
    Word,
    device,
    kernel,
)
from negvec.kernels.addresses import Address, address_of, move_bytes, prefetch, word_at
from negvec.kernels.sums import Sum, minus, nothing, plus, sum_at
from negvec.kernels.words import byte_swap

CAPACITY = 256  # items; a write copies a block or half of one, and the whole table (64 bytes a block) after a snapshot
HALF = CAPACITY // 2
STEP = 8
AHEAD = 32  # ranges; what they need fits the first-level cache

IDS = 8 * CAPACITY  # where, in bytes, the ids of a block begin
SUMS = 40 * CAPACITY
BLOCK_WORDS = 5 * CAPACITY + 4 * (CAPACITY // STEP)

ADDRESS, START, FIRST_AT, STAMP, SUM = range(5)  # columns of a table
TABLE_WORDS = 8


@device
def count_of(table: Column, rows: int, size: int, row: int) -> int:
    """Number of items of a block."""
    start: int = np.int64(table[row, START])
    end: int = np.int64(table[row + 1, START]) if row + 1 < rows else size
    return end - start


@device
def item_before(block: Address, place: int, at: Word, word0: Word, word1: Word, word2: Word, word3: Word) -> bool:
    """Whether an item of a block is less than (at, byte-swapped words of an id)."""
    own = word_at(block + 8 * place)
    if own != at:
        return own < at
    id = block + IDS + 32 * place
    own = byte_swap(word_at(id))
    if own != word0:
        return own < word0
    own = byte_swap(word_at(id + 8))
    if own != word1:
        return own < word1
    own = byte_swap(word_at(id + 16))
    if own != word2:
        return own < word2
    return byte_swap(word_at(id + 24)) < word3


@device
def row_before(table: Column, row: int, at: Word, word0: Word, word1: Word, word2: Word, word3: Word) -> bool:
    """Whether the first item of a block is less than (at, byte-swapped words of an id)."""
    first = table[row, FIRST_AT]
    if first != at:
        return first < at
    return item_before(np.int64(table[row, ADDRESS]), 0, at, word0, word1, word2, word3)


@device
def find_row(table: Column, rows: int, row: int, at: Word, word0: Word, word1: Word, word2: Word, word3: Word) -> int:
    """The last row from `row` on whose first item is less than the bound, or `row`; gallops, O(log gap)."""
    step, high = 1, row + 1
    while high < rows and row_before(table, high, at, word0, word1, word2, word3):
        row = high
        high += step
        step *= 2
    high = min(high, rows)
    while row + 1 < high:
        middle = (row + high) >> 1
        if row_before(table, middle, at, word0, word1, word2, word3):
            row = middle
        else:
            high = middle
    return row


@device
def find_place(
    block: Address, low: int, high: int, at: Word, word0: Word, word1: Word, word2: Word, word3: Word
) -> int:
    """The first of the items [low, high) of a block that is not less than the bound, or `high`."""
    while low < high:
        middle = (low + high) >> 1
        if item_before(block, middle, at, word0, word1, word2, word3):
            low = middle + 1
        else:
            high = middle
    return low


@kernel(VOID, WORD_ROWS, INT, INT, WORDS, WORD_ROWS, OUT_INTS)
def lower_bounds(table: Column, rows: int, size: int, bound_at: Column, bound_ids: Column, out: Column) -> None:
    """As `search.lower_bounds`: bounds in any order, O(log gap) where they ascend."""
    row = 0
    for m in range(len(bound_at)):
        if rows == 0:
            out[m] = 0
            continue
        at = bound_at[m]
        word0, word1 = byte_swap(bound_ids[m, 0]), byte_swap(bound_ids[m, 1])
        word2, word3 = byte_swap(bound_ids[m, 2]), byte_swap(bound_ids[m, 3])
        if row > 0 and not row_before(table, row, at, word0, word1, word2, word3):
            row = 0
        row = find_row(table, rows, row, at, word0, word1, word2, word3)
        count = count_of(table, rows, size, row)
        block = np.int64(table[row, ADDRESS])
        out[m] = np.int64(table[row, START]) + find_place(block, 0, count, at, word0, word1, word2, word3)


@kernel(VOID, WORD_ROWS, INT, INT, OUT_INTS, OUT_TAGS)
def index_rows(table: Column, rows: int, size: int, starts: Column, guide: Column) -> None:
    """Make what finds the row of an item at once: `starts`, (rows + 1,), and `guide`, (size // HALF + 1,); O(rows).

    Starts are those of the table, and the end. The guide has the row of every HALF-th item. Blocks are filled by half,
    so that the row of any item is one of the few from there on.
    """
    to = 0
    for row in range(rows):
        starts[row] = np.int64(table[row, START])
        while to < len(guide) and row > 0 and to * HALF < starts[row]:
            guide[to] = row - 1
            to += 1
    starts[rows] = size
    while to < len(guide):
        guide[to] = max(rows - 1, 0)
        to += 1


@device
def row_of(starts: Column, guide: Column, index: int) -> int:
    """The last row that starts at `index` or before."""
    row: int = np.int64(guide[index // HALF])
    while row + 2 < len(starts) and starts[row + 1] <= index:
        row += 1
    return row


@device
def sum_of_row(table: Column, row: int) -> Sum:
    return table[row, SUM], table[row, SUM + 1], table[row, SUM + 2], table[row, SUM + 3]


@device
def sum_before(table: Column, row: int, place: int, count: int) -> Sum:
    """The sum of all items before item `place` of a block that has `count`."""
    block = np.int64(table[row, ADDRESS])
    total = sum_of_row(table, row)
    step = (place + STEP // 2) // STEP
    if step * STEP > count:
        step -= 1
    if step > 0:
        total = plus(total, sum_at(block + SUMS + 32 * (step - 1)))
    for item in range(step * STEP, place):
        total = plus(total, sum_at(block + IDS + 32 * item))
    if step * STEP > place:
        more = nothing()
        for item in range(place, step * STEP):
            more = plus(more, sum_at(block + IDS + 32 * item))
        total = minus(total, more)
    return total


@device
def _fetch(block: Address, place: int) -> None:
    """Have that brought into the cache which `sum_before` reads of a block."""
    step = (place + STEP // 2) // STEP
    ids = block + IDS + 32 * min(place, step * STEP)
    prefetch(block + SUMS + 32 * (step - 1))
    prefetch(ids)
    prefetch(ids + 64)


@kernel(VOID, WORD_ROWS, INTS, TAGS, INTS, INTS, OUT_WORD_ROWS)
def range_sums(table: Column, starts: Column, guide: Column, lo: Column, hi: Column, sums: Column) -> None:
    """The sum of every range [lo, hi): O(1) a range, whatever its width.

    Of AHEAD ranges at a time first the rows are found, then the blocks, then the sums, so that each is on its way from
    memory before it is read.
    """
    rows = np.empty((AHEAD, 2), np.int64)
    last, total = -1, nothing()
    for base in range(0, len(lo), AHEAD):
        if len(starts) == 1:
            break
        stop = min(base + AHEAD, len(lo))
        for m in range(base, stop):
            for end in range(2):
                row = row_of(starts, guide, hi[m] if end else lo[m])
                prefetch(address_of(table) + 8 * TABLE_WORDS * row)
                rows[m - base, end] = row
        for m in range(base, stop):
            for end in range(2):
                row = rows[m - base, end]
                _fetch(np.int64(table[row, ADDRESS]), (hi[m] if end else lo[m]) - starts[row])
        for m in range(base, stop):
            start = total
            for end in range(2):
                row, index = rows[m - base, end], hi[m] if end else lo[m]
                if index != last:  # ranges often meet
                    total = sum_before(table, row, index - starts[row], starts[row + 1] - starts[row])
                    last = index
                if end == 0:
                    start = total
            sums[m, 0], sums[m, 1], sums[m, 2], sums[m, 3] = minus(total, start)
    if len(starts) == 1:
        for m in range(len(lo)):
            for k in range(4):
                sums[m, k] = 0


@kernel(INT, WORD_ROWS, INTS, TAGS, INTS, OUT_WORDS, OUT_WORD_ROWS)
def neighbours(table: Column, starts: Column, guide: Column, index: Column, created_at: Column, ids: Column) -> int:
    """Copy items `index - 1` and `index`, for each index in 1 .. n - 1, to rows 2 m and 2 m + 1.

    Returns the first row of `index` that has no two neighbours, or -1.
    """
    for m in range(len(index)):
        if not 0 < index[m] < starts[-1]:
            return m
        row = row_of(starts, guide, index[m] - 1)
        for to in range(2 * m, 2 * m + 2):
            item = index[m] - 1 + (to & 1)
            row += item == starts[row + 1]
            block, place = np.int64(table[row, ADDRESS]), item - starts[row]
            created_at[to] = word_at(block + 8 * place)
            for k in range(4):
                ids[to, k] = word_at(block + IDS + 32 * place + 8 * k)
    return -1


@device
def _gather(table: Column, starts: Column, guide: Column, lo: int, hi: int, offset: int, width: int, to: int) -> int:
    """Copy `width` bytes an item, which lie from `offset` on in a block, to an address; returns that of the end."""
    row = row_of(starts, guide, lo)
    while lo < hi:
        stop = min(hi, starts[row + 1])
        length = width * (stop - lo)
        move_bytes(to, np.int64(table[row, ADDRESS]) + offset + width * (lo - starts[row]), length)
        to += length
        lo = stop
        row += 1
    return to


@kernel(VOID, WORD_ROWS, INTS, TAGS, INTS, INTS, OUT_WORD_ROWS)
def gather_ids(table: Column, starts: Column, guide: Column, lo: Column, hi: Column, out: Column) -> None:
    """Copy the ids of the ranges [lo, hi), one after another, to `out`."""
    to = address_of(out)
    for m in range(len(lo)):
        to = _gather(table, starts, guide, lo[m], hi[m], IDS, 32, to)


@kernel(VOID, WORD_ROWS, INTS, TAGS, INTS, INTS, OUT_WORDS)
def gather_timestamps(table: Column, starts: Column, guide: Column, lo: Column, hi: Column, out: Column) -> None:
    """Copy the timestamps of the ranges [lo, hi), one after another, to `out`."""
    to = address_of(out)
    for m in range(len(lo)):
        to = _gather(table, starts, guide, lo[m], hi[m], 0, 8, to)
