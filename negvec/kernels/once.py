"""Each id once, as ids come: what a stream of findings may give at once, because it was not given before."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types

from negvec.kernels._jit import (
    INT,
    INTS,
    OUT_BYTES,
    OUT_INTS,
    OUT_WORD_ROWS,
    TAGS,
    VOID,
    WORD_ROWS,
    Column,
    device,
    kernel,
    output,
)
from negvec.kernels.lists import LACKED, _same
from negvec.kernels.words import copy_row

GIVEN = 3  # of an own item, beside LACKED and HELD: that it is lacked has been told

SLOTS = output(types.int32)


@device
def _slot(tag: int, slots: Column) -> Any:
    """Where an id's entry is looked for first: by the lowest bits of its keyed tag."""
    return np.int64(tag) & (len(slots) - 1)


@kernel(VOID, TAGS, INT, SLOTS)
def index(tags: Column, count: int, slots: Column) -> None:
    """Enter the first `count` rows in an empty table, -1 everywhere, of at least twice as many slots."""
    for row in range(count):
        slot = _slot(tags[row], slots)
        while slots[slot] >= 0:
            slot = (slot + 1) & (len(slots) - 1)
        slots[slot] = row


@kernel(INT, WORD_ROWS, TAGS, OUT_WORD_ROWS, output(types.uint32), INT, SLOTS)
def enter(ids: Column, tags: Column, known: Column, known_tags: Column, count: int, slots: Column) -> int:
    """Append to the `count` known ids those that are new, and enter them in the table; returns how many there are then.

    Expected time is linear whatever the ids are, since a peer does not know the key of the tags.
    """
    for row in range(len(ids)):
        slot = _slot(tags[row], slots)
        repeated = False
        while slots[slot] >= 0 and not repeated:
            entry = np.int64(slots[slot])
            repeated = known_tags[entry] == tags[row] and _same(known, entry, ids, row)
            slot = (slot + 1) & (len(slots) - 1)
        if not repeated:
            slots[slot] = count
            copy_row(known, count, ids, row)
            known_tags[count] = tags[row]
            count += 1
    return count


@kernel(INT, OUT_BYTES, INTS, INTS, OUT_INTS)
def give(have: Column, lower: Column, upper: Column, rows: Column) -> int:
    """Find the items of ranges that are lacked and were not given, and mark them as given; returns their number."""
    count = 0
    for m in range(len(lower)):
        for row in range(lower[m], upper[m]):
            if have[row] == LACKED:
                have[row] = GIVEN
                rows[count] = row
                count += 1
    return count
