"""What a write will change in blocks (see `blocks`), and which of them are to be written anew for it.

A row of a table is stamped with the time at which its block was made. A block that is stamped with the time of the
write is its writer's own and may be edited in place; any other may be seen by a reader, and has to be written anew, as
a block that overflows. Neighbours are rewritten together where that keeps blocks filled by half or more, all but the
first and the last.
"""

from __future__ import annotations

import numpy as np

from negvec.kernels._jit import (
    BYTES,
    INT,
    OUT_INTS,
    VOID,
    WORD_ROWS,
    WORDS,
    Column,
    Word,
    array,
    device,
    kernel,
    output,
)
from negvec.kernels.addresses import word_at
from negvec.kernels.blocks import (
    ADDRESS,
    CAPACITY,
    FIRST_AT,
    HALF,
    IDS,
    STAMP,
    count_of,
    find_place,
    find_row,
    item_before,
)
from negvec.kernels.words import byte_swap

ROOMY = CAPACITY - CAPACITY // 8  # what a block gets where more items are likely to come in between

ROW, PLACE, ITEM = range(3)  # of a change: the block, the place in it, and the item's row among those given
CHANGE_WORDS = 3
FIRST, LAST, CHANGES, END, TOTAL, PIECES, FILL = range(7)  # of a group; see `plan`
GROUP_WORDS = 7
SPLICE_WORDS = 4
IN_PLACE = -1  # as PIECES
EVENLY, FROM_BEHIND = 0, -1  # as FILL
ADDED, REMOVED, GROUPS, FRESH, ROWS, RESHAPED = range(6)  # what `plan` finds in all
FOUND_WORDS = 6


@kernel(INT, WORD_ROWS, INT, INT, WORDS, WORD_ROWS, INT)
def follows(table: Column, rows: int, size: int, created_at: Column, ids: Column, row: int) -> int:
    """Whether the item of a row is greater than the last item in the blocks."""
    if rows == 0:
        return 1
    last = count_of(table, rows, size, rows - 1) - 1
    block = np.int64(table[rows - 1, ADDRESS])
    word0, word1 = byte_swap(ids[row, 0]), byte_swap(ids[row, 1])
    word2, word3 = byte_swap(ids[row, 2]), byte_swap(ids[row, 3])
    return item_before(block, last, created_at[row], word0, word1, word2, word3)


@device
def _rows_before(table: Column, rows: int, at: Word, or_at: bool) -> int:
    """How many blocks begin before a timestamp, or with it."""
    low, high = 0, rows
    while low < high:
        middle = (low + high) >> 1
        first = table[middle, FIRST_AT]
        if first < at or (or_at and first == at):
            low = middle + 1
        else:
            high = middle
    return low


@kernel(INT, WORD_ROWS, INT, WORDS)
def scatter(table: Column, rows: int, created_at: Column) -> int:
    """How many blocks lie between the first and the last to which items may belong, as their timestamps say."""
    least = greatest = created_at[0]
    for at in created_at:
        least, greatest = min(least, at), max(greatest, at)
    return _rows_before(table, rows, greatest, True) - _rows_before(table, rows, least, False)


@device
def _is_item(table: Column, row: int, place: int, ids: Column, m: int) -> bool:
    """Whether the id of an item in a block is `ids[m]`."""
    id = np.int64(table[row, ADDRESS]) + IDS + 32 * place
    return (
        word_at(id) == ids[m, 0]
        and word_at(id + 8) == ids[m, 1]
        and word_at(id + 16) == ids[m, 2]
        and word_at(id + 24) == ids[m, 3]
    )


@device
def _with_changes(
    table: Column, rows: int, size: int, changes: Column, add: Column, row: int, c: int, n: int
) -> tuple[int, int]:
    """How many items a block has after its changes, which begin at `c`, and where the next block's begin."""
    total = count_of(table, rows, size, row)
    while c < n and changes[c, ROW] == row:
        total += 1 if add[changes[c, ITEM]] else -1
        c += 1
    return total, c


@device
def _shape(
    table: Column, rows: int, size: int, changes: Column, begin: int, end: int, last: int, total: int
) -> tuple[int, int]:
    """FILL and PIECES of a group that needs more than one block: full where items come in order, at either end."""
    roomy = (total + ROOMY - 1) // ROOMY
    full = (total + CAPACITY - 1) // CAPACITY
    if last == rows:
        if changes[begin, ROW] == rows - 1 and changes[begin, PLACE] == count_of(table, rows, size, rows - 1):
            return CAPACITY, full
        return ROOMY, roomy
    if changes[end - 1, ROW] == 0 and changes[end - 1, PLACE] == 0:
        return FROM_BEHIND, full
    return EVENLY, roomy


@device
def _group(
    table: Column,
    rows: int,
    size: int,
    stamp: int,
    add: Column,
    changes: Column,
    n: int,
    groups: Column,
    found: Column,
) -> None:
    c, g = 0, 0
    found[ROWS] = rows
    while c < n:
        begin, first = c, changes[c, ROW]
        last = first + 1
        total, c = _with_changes(table, rows, size, changes, add, first, c, n)
        shrinks = total < count_of(table, rows, size, first)
        # One that shrinks below half takes in the next, and one that overflows beside the last block the last.
        while last < rows and ((shrinks and total < HALF) or (total > CAPACITY and last == rows - 1)):
            more, c = _with_changes(table, rows, size, changes, add, last, c, n)
            total += more
            last += 1
        fill, pieces = EVENLY, min(total, 1)
        if total > CAPACITY:
            fill, pieces = _shape(table, rows, size, changes, begin, c, last, total)
        elif total > 0 and last == first + 1 and table[first, STAMP] == np.uint64(stamp):
            pieces = IN_PLACE
        if pieces != IN_PLACE:
            found[FRESH] += pieces
            found[ROWS] += pieces - (last - first)
            if pieces != last - first:
                found[RESHAPED] = 1
        groups[g, FIRST] = first
        groups[g, LAST] = last
        groups[g, CHANGES] = begin
        groups[g, END] = c
        groups[g, TOTAL] = total
        groups[g, PIECES] = pieces
        groups[g, FILL] = fill
        g += 1
    found[GROUPS] = g


@kernel(VOID, WORD_ROWS, INT, INT, INT, WORDS, WORD_ROWS, BYTES, output(INT, 2), output(INT, 2), OUT_INTS)
def plan(
    table: Column,
    rows: int,
    size: int,
    stamp: int,
    created_at: Column,
    ids: Column,
    add: Column,
    changes: Column,
    groups: Column,
    found: Column,
) -> None:
    """Find what the given items change, and how blocks are to be written anew for it. Reads only; O(log gap) an item.

    Items are sorted, each there once, to be added or removed as `add` says; there is a block at least. `changes` gets
    a row for each item that is not so already. Each of `groups` is of the blocks [FIRST, LAST), and of the changes
    [CHANGES, END), after which TOTAL items are in PIECES new blocks, or stay IN_PLACE. FILL items go into each block
    but the last; or the blocks are filled EVENLY, or wholly but for the first (FROM_BEHIND).
    """
    row, place, n = 0, 0, 0
    block, count = np.int64(table[0, ADDRESS]), count_of(table, rows, size, 0)
    for k in range(FOUND_WORDS):
        found[k] = 0
    for m in range(len(created_at)):
        at = created_at[m]
        word0, word1 = byte_swap(ids[m, 0]), byte_swap(ids[m, 1])
        word2, word3 = byte_swap(ids[m, 2]), byte_swap(ids[m, 3])
        # Items often come in runs that go to one place. The item there is then greater than this one too.
        if m == 0 or place == count or item_before(block, place, at, word0, word1, word2, word3):
            before = row
            row = find_row(table, rows, row, at, word0, word1, word2, word3)
            if row + 1 < rows and table[row + 1, FIRST_AT] == at and _is_item(table, row + 1, 0, ids, m):
                row += 1
            if row != before:
                place = 0
                block, count = np.int64(table[row, ADDRESS]), count_of(table, rows, size, row)
            place = find_place(block, place, count, at, word0, word1, word2, word3)
        held = place < count and word_at(block + 8 * place) == at and _is_item(table, row, place, ids, m)
        if held != (add[m] != 0):
            changes[n, ROW] = row
            changes[n, PLACE] = place
            changes[n, ITEM] = m
            found[ADDED if add[m] else REMOVED] += 1
            n += 1
    _group(table, rows, size, stamp, add, changes, n, groups, found)


@kernel(INT, array(INT, 2), INT, output(INT, 2))
def splices(groups: Column, count: int, found: Column) -> int:
    """What of a list of blocks the new ones take the place of: rows of first, last, and first and last of the new.

    Groups that meet become one; returns how many there are. One pass over the first `count` groups.
    """
    used = n = 0
    for g in range(count):
        pieces = groups[g, PIECES]
        if pieces == IN_PLACE:
            continue
        if n == 0 or found[n - 1, 1] != groups[g, FIRST]:
            found[n, 0], found[n, 2] = groups[g, FIRST], used
            n += 1
        used += pieces
        found[n - 1, 1], found[n - 1, 3] = groups[g, LAST], used
    return n
