"""Items into and out of blocks (see `blocks`), so that whoever reads an older table of them sees no change.

`append` writes items behind the last, where no reader looks: nothing is copied, and blocks are filled to the last
place. `edit` does anything else, as `plans.plan` has planned it.
"""

from __future__ import annotations

import numpy as np

from negvec.kernels._jit import (
    BYTES,
    INT,
    INTS,
    OUT_INTS,
    OUT_WORD_ROWS,
    VOID,
    WORD_ROWS,
    WORDS,
    Column,
    Word,
    array,
    device,
    kernel,
)
from negvec.kernels.addresses import Address, address_of, move_bytes, put_word, word_at
from negvec.kernels.blocks import (
    ADDRESS,
    CAPACITY,
    FIRST_AT,
    IDS,
    STAMP,
    START,
    STEP,
    SUM,
    SUMS,
    count_of,
    sum_before,
    sum_of_row,
)
from negvec.kernels.order import AHEAD, fetch_item, row_at
from negvec.kernels.plans import (
    CHANGES,
    END,
    EVENLY,
    FILL,
    FIRST,
    FROM_BEHIND,
    IN_PLACE,
    ITEM,
    LAST,
    PIECES,
    PLACE,
    ROW,
    TOTAL,
)
from negvec.kernels.sums import Sum, minus, nothing, plus, sum_at

INT_ROWS = array(INT, 2)


@device
def put_items(block: Address, to: int, at: Address, ids: Address, count: int) -> None:
    """Copy items from wherever they lie, the same block too, to place `to` of a block."""
    move_bytes(block + 8 * to, at, 8 * count)
    move_bytes(block + IDS + 32 * to, ids, 32 * count)


@device
def move_items(block: Address, to: int, start: int, stop: int) -> None:
    if start < stop and to != start:
        put_items(block, to, block + 8 * start, block + IDS + 32 * start, stop - start)


@device
def sum_up(block: Address, since: int, count: int) -> None:
    """Set right the sums of a block whose items have changed from place `since` on; one pass over those."""
    step = since // STEP
    total = nothing()
    if step > 0:
        total = plus(total, sum_at(block + SUMS + 32 * (step - 1)))
    while (step + 1) * STEP <= count:
        for item in range(step * STEP, (step + 1) * STEP):
            total = plus(total, sum_at(block + IDS + 32 * item))
        to = block + SUMS + 32 * step
        put_word(to, total[0])
        put_word(to + 8, total[1])
        put_word(to + 16, total[2])
        put_word(to + 24, total[3])
        step += 1


@device
def _set_row(table: Column, row: int, block: Address, start: Word, stamp: int, total: Sum) -> None:
    table[row, ADDRESS] = block
    table[row, START] = start
    table[row, FIRST_AT] = word_at(block)
    table[row, STAMP] = stamp
    table[row, SUM] = total[0]
    table[row, SUM + 1] = total[1]
    table[row, SUM + 2] = total[2]
    table[row, SUM + 3] = total[3]


@device
def _put_given(
    block: Address, to: int, created_at: Column, ids: Column, places: Column, start: int, count: int
) -> None:
    """Copy given items to place `to` of a block: those from `start` on, in the order of `places` if there are any."""
    at, of_ids = address_of(created_at), address_of(ids)
    if len(places) == 0:
        put_items(block, to, at + 8 * start, of_ids + 32 * start, count)
        return
    for k in range(count):
        if start + k + AHEAD < len(places):
            fetch_item(created_at, ids, row_at(places, start + k + AHEAD))
        item = row_at(places, start + k)
        put_word(block + 8 * (to + k), created_at[item])
        id = block + IDS + 32 * (to + k)
        put_word(id, ids[item, 0])
        put_word(id + 8, ids[item, 1])
        put_word(id + 16, ids[item, 2])
        put_word(id + 24, ids[item, 3])


@kernel(VOID, OUT_WORD_ROWS, INT, INT, INT, WORDS, WORD_ROWS, WORDS, INTS)
def append(
    table: Column, rows: int, size: int, stamp: int, created_at: Column, ids: Column, places: Column, fresh: Column
) -> None:
    """Write items that follow the last to its block, and what that has no room for to `fresh` blocks.

    The items are sorted as they lie, or in the order of the rows `places` (see `order.arrange`) if there are any.
    Only what lies behind is written to: rows of the table from `rows` on, and the last block behind its last item.
    One pass over the items.
    """
    done, m = 0, len(places) if len(places) > 0 else len(created_at)
    if rows > 0:
        count = count_of(table, rows, size, rows - 1)
        block = np.int64(table[rows - 1, ADDRESS])
        done = min(m, CAPACITY - count)
        _put_given(block, count, created_at, ids, places, 0, done)
        sum_up(block, count, count + done)
    for row in range(rows, rows + len(fresh)):
        total = sum_before(table, row - 1, CAPACITY, CAPACITY) if row > 0 else nothing()
        block, count = fresh[row - rows], min(m - done, CAPACITY)
        _put_given(block, 0, created_at, ids, places, done, count)
        sum_up(block, 0, count)
        _set_row(table, row, block, size + done, stamp, total)
        done += count


@device
def _edit_in_place(
    block: Address, count: int, created_at: Column, ids: Column, add: Column, changes: Column, begin: int, end: int
) -> None:
    """Close the gaps of what is removed, from the front; then open gaps for what is added, from behind."""
    removed, rest = 0, 0
    for c in range(begin, end):
        if not add[changes[c, ITEM]]:
            place = changes[c, PLACE]
            if removed > 0:
                move_items(block, rest - removed, rest, place)
            removed += 1
            rest = place + 1
    if removed > 0:
        move_items(block, rest - removed, rest, count)
    stop, left, gone = count - removed, end - begin - removed, removed
    total = stop + left
    at, of_ids = address_of(created_at), address_of(ids)
    for c in range(end - 1, begin - 1, -1):
        item = changes[c, ITEM]
        if not add[item]:
            gone -= 1
        else:
            place = changes[c, PLACE] - gone
            move_items(block, place + left, place, stop)
            left -= 1
            put_items(block, place + left, at + 8 * item, of_ids + 32 * item, 1)
            stop = place
    sum_up(block, changes[begin, PLACE], total)


@device
def _quota(group: Column, piece: int) -> int:
    """How many of a group's items go into a new block."""
    total, pieces, fill = group[TOTAL], group[PIECES], group[FILL]
    if fill == EVENLY:
        return total * (piece + 1) // pieces - total * piece // pieces
    if fill == FROM_BEHIND:
        return CAPACITY if piece > 0 else total - CAPACITY * (pieces - 1)
    return fill if piece < pieces - 1 else total - fill * (pieces - 1)


@device
def _pour(
    group: Column, fresh: Column, used: int, piece: int, filled: int, at: Address, ids: Address, count: int
) -> tuple[int, int]:
    """Write items to a group's new blocks, which begin at fresh[used]; to go on from item `filled` of a piece."""
    while count > 0:
        quota = _quota(group, piece)
        if filled == quota:
            sum_up(fresh[used + piece], 0, filled)
            piece += 1
            filled = 0
        else:
            taken = min(count, quota - filled)
            put_items(fresh[used + piece], filled, at, ids, taken)
            filled += taken
            count -= taken
            at += 8 * taken
            ids += 32 * taken
    return piece, filled


@device
def _rewrite(
    table: Column,
    rows: int,
    size: int,
    created_at: Column,
    ids: Column,
    add: Column,
    changes: Column,
    group: Column,
    fresh: Column,
    used: int,
) -> None:
    """Write the items of a group's blocks, with their changes, to new blocks."""
    piece, filled, c, end = 0, 0, group[CHANGES], group[END]
    for row in range(group[FIRST], group[LAST]):
        block, count, place = np.int64(table[row, ADDRESS]), count_of(table, rows, size, row), 0
        while c < end and changes[c, ROW] == row:
            stop, item = changes[c, PLACE], changes[c, ITEM]
            at, of_ids = block + 8 * place, block + IDS + 32 * place
            piece, filled = _pour(group, fresh, used, piece, filled, at, of_ids, stop - place)
            place = stop
            c += 1
            if not add[item]:
                place += 1
                continue
            run = 1  # items that are added at the same place, and lie together
            while c < end and changes[c, ROW] == row and changes[c, PLACE] == place and changes[c, ITEM] == item + run:
                if not add[item + run]:
                    break
                run += 1
                c += 1
            at, of_ids = address_of(created_at) + 8 * item, address_of(ids) + 32 * item
            piece, filled = _pour(group, fresh, used, piece, filled, at, of_ids, run)
        at, of_ids = block + 8 * place, block + IDS + 32 * place
        piece, filled = _pour(group, fresh, used, piece, filled, at, of_ids, count - place)
    if filled > 0:
        sum_up(fresh[used + piece], 0, filled)


@device
def copy_rows(source: Column, start: int, stop: int, target: Column, to: int, more: int, total: Sum) -> None:
    """Copy rows of a table, before whose blocks there are now `more` items, of the sum `total`, than there were."""
    for row in range(start, stop):
        target[to, ADDRESS] = source[row, ADDRESS]
        target[to, START] = source[row, START] + np.uint64(more)
        target[to, FIRST_AT] = source[row, FIRST_AT]
        target[to, STAMP] = source[row, STAMP]
        sums = plus(total, sum_of_row(source, row))
        target[to, SUM] = sums[0]
        target[to, SUM + 1] = sums[1]
        target[to, SUM + 2] = sums[2]
        target[to, SUM + 3] = sums[3]
        to += 1


@kernel(
    VOID,
    *(WORD_ROWS, INT, INT, INT, WORDS, WORD_ROWS, BYTES),
    *(INT_ROWS, INT_ROWS, INT, INTS, OUT_WORD_ROWS, OUT_INTS),
)
def edit(
    table: Column,
    rows: int,
    size: int,
    stamp: int,
    created_at: Column,
    ids: Column,
    add: Column,
    changes: Column,
    groups: Column,
    count: int,
    fresh: Column,
    target: Column,
    done: Column,
) -> None:
    """Carry out the first `count` planned groups of changes, and write the table that has them to `target`.

    `target` is `table` itself where that is the writer's own and no block is added or dropped. done[0] becomes 1 at the
    end. O(items moved within blocks, and rows of the table from the first change on).
    """
    used = 0
    for g in range(count):
        group = groups[g]
        if group[PIECES] == IN_PLACE:
            block, held = np.int64(table[group[FIRST], ADDRESS]), count_of(table, rows, size, group[FIRST])
            _edit_in_place(block, held, created_at, ids, add, changes, group[CHANGES], group[END])
        else:
            _rewrite(table, rows, size, created_at, ids, add, changes, group, fresh, used)
            used += group[PIECES]

    row, to, used, more, total = 0, 0, 0, 0, nothing()
    if address_of(target) == address_of(table):
        row = to = groups[0, FIRST]
    for g in range(count):
        group = groups[g]
        copy_rows(table, row, group[FIRST], target, to, more, total)
        to += group[FIRST] - row
        row = group[LAST]
        start, before = np.int64(table[group[FIRST], START]) + more, plus(total, sum_of_row(table, group[FIRST]))
        if group[PIECES] == IN_PLACE:
            _set_row(target, to, np.int64(table[group[FIRST], ADDRESS]), start, stamp, before)
            to += 1
        else:
            for piece in range(group[PIECES]):
                _set_row(target, to, fresh[used + piece], start, stamp, before)
                quota = _quota(group, piece)
                if piece + 1 < group[PIECES]:
                    before = sum_before(target, to, quota, quota)
                start += quota
                to += 1
            used += group[PIECES]
        for c in range(group[CHANGES], group[END]):
            item = changes[c, ITEM]
            own = sum_at(address_of(ids) + 32 * item)
            if add[item]:
                total = plus(total, own)
                more += 1
            else:
                total = minus(total, own)
                more -= 1
    copy_rows(table, row, rows, target, to, more, total)
    done[0] = 1
