"""One item into or out of blocks (see `blocks`) at once, where nothing has to be made anew for it: the usual write.

Whatever needs another block or another table is left to `plans` and `edits`.
"""

from __future__ import annotations

import numpy as np

from negvec.kernels._jit import INT, OUT_INTS, OUT_WORD_ROWS, WORD, WORDS, Column, Word, device, kernel
from negvec.kernels.addresses import Address, address_of, move_bytes, put_word, word_at
from negvec.kernels.blocks import (
    ADDRESS,
    CAPACITY,
    FIRST_AT,
    HALF,
    IDS,
    STAMP,
    STEP,
    SUMS,
    count_of,
    find_place,
    find_row,
)
from negvec.kernels.edits import copy_rows, move_items, sum_up
from negvec.kernels.sums import minus, nothing, plus, sum_at
from negvec.kernels.words import byte_swap

SAME, DONE, LEFT = range(3)  # nothing to change, changed, and left to others


@device
def _holds(block: Address, place: int, at: Word, ids: Column) -> bool:
    """Whether an item of a block is (at, ids)."""
    id = block + IDS + 32 * place
    return (
        word_at(block + 8 * place) == at
        and word_at(id) == ids[0]
        and word_at(id + 8) == ids[1]
        and word_at(id + 16) == ids[2]
        and word_at(id + 24) == ids[3]
    )


@device
def _put_item(block: Address, place: int, at: Word, ids: Column) -> None:
    put_word(block + 8 * place, at)
    for k in range(4):
        put_word(block + IDS + 32 * place + 8 * k, ids[k])


@device
def _copy_block(block: Address, count: int, fresh: Address) -> None:
    move_bytes(fresh, block, 8 * count)
    move_bytes(fresh + IDS, block + IDS, 32 * count)
    move_bytes(fresh + SUMS, block + SUMS, 32 * (count // STEP))


@kernel(INT, OUT_WORD_ROWS, INT, INT, INT, WORD, WORDS, INT, INT, WORDS, OUT_INTS)
def write(
    table: Column,
    rows: int,
    size: int,
    stamp: int,
    at: Word,
    ids: Column,
    add: int,
    own_table: int,
    fresh: Column,
    done: Column,
) -> int:
    """Add or remove one item: SAME, DONE or LEFT; done[0] becomes 1 or -1 where an item was added or removed.

    An item behind the last is written where no reader looks, whoever made the block. Else the table has to be the
    writer's own, and a block that is not stamped with `stamp` is copied to `fresh`, and done[1] becomes its row.
    O(log rows), and the rows behind the change.
    """
    if rows == 0:
        return LEFT if add else SAME
    word0, word1, word2, word3 = byte_swap(ids[0]), byte_swap(ids[1]), byte_swap(ids[2]), byte_swap(ids[3])
    row = find_row(table, rows, 0, at, word0, word1, word2, word3)
    if row + 1 < rows and table[row + 1, FIRST_AT] == at and _holds(np.int64(table[row + 1, ADDRESS]), 0, at, ids):
        row += 1
    block, count = np.int64(table[row, ADDRESS]), count_of(table, rows, size, row)
    place = find_place(block, 0, count, at, word0, word1, word2, word3)
    held = place < count and _holds(block, place, at, ids)
    if held == (add != 0):
        return SAME
    behind = row == rows - 1 and place == count
    if (add and count == CAPACITY) or (not add and (count == 1 or (count <= HALF and row < rows - 1))):
        return LEFT
    if not behind:
        if not own_table:
            return LEFT
        if table[row, STAMP] != np.uint64(stamp):
            _copy_block(block, count, address_of(fresh))
            block = address_of(fresh)
            table[row, ADDRESS] = block
            table[row, STAMP] = stamp
            done[1] = row
    if add:
        move_items(block, place + 1, place, count)
        _put_item(block, place, at, ids)
        count += 1
    else:
        move_items(block, place, place + 1, count)
        count -= 1
    sum_up(block, place, count)
    if not behind:
        change = sum_at(address_of(ids))
        table[row, FIRST_AT] = word_at(block)
        total = plus(nothing(), change) if add else minus(nothing(), change)
        copy_rows(table, row + 1, rows, table, row + 1, 1 if add else -1, total)
    done[0] = 1 if add else -1
    return DONE
