"""Comparing IdLists as sets, and keeping each id that is found to one mention.

Tables are chained (heads and links) over a strongly universal hash of all 32 bytes (multiply-shift over eight 32-bit
words; Dietzfelbinger, "Universal hashing and k-wise independent random variables via integer arithmetic without
primes", 1996), with a key that is random for each process: whoever chooses ids can't know which of them share a
chain, and expected time is linear whatever they are.
"""

from __future__ import annotations

import numpy as np

from negvec.kernels._jit import (
    BYTES,
    INT,
    INTS,
    OUT_BYTES,
    OUT_INTS,
    OUT_WORD_ROWS,
    VOID,
    WORD_ROWS,
    WORDS,
    Column,
    Word,
    device,
    kernel,
)
from negvec.kernels.words import load_word

KEY_WORDS = 9  # a multiplier for each half word of an id, and a summand
ID_SIZE = 32
FILTER_BITS = 32  # an id's share of a filter: at most one in 32 is suspected wrongly


@device
def _slot(x0: Word, x1: Word, x2: Word, x3: Word, key: Column, bits: int) -> Word:
    """The keyed hash of an id, `bits` (1 to 32) wide."""
    low, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    total = key[0] * (x0 & low) + key[1] * (x0 >> half) + key[2] * (x1 & low) + key[3] * (x1 >> half)
    total += key[4] * (x2 & low) + key[5] * (x2 >> half) + key[6] * (x3 & low) + key[7] * (x3 >> half) + key[8]
    return total >> np.uint64(64 - bits)


@device
def _bits_for(count: int) -> int:
    """The width of a hash whose table has at least `count` slots, and at least two."""
    bits = 1
    while (1 << bits) < count and bits < 32:
        bits += 1
    return bits


@kernel(VOID, BYTES, INTS, INTS, INTS, INTS, INTS, WORD_ROWS, WORDS, OUT_BYTES, OUT_WORD_ROWS, OUT_INTS)
def difference(
    message: Column,
    payloads: Column,
    counts: Column,
    lower: Column,
    upper: Column,
    first: Column,
    ids: Column,
    key: Column,
    have: Column,
    need: Column,
    found: Column,
) -> None:
    """Compare each IdList of a peer with the own ids of its range, as sets; O(ids) in all.

    The own items [lower, upper) of range m have their ids at row first[m] of `ids` on. Marks in `have`, a byte an own
    item, those that the list lacks; appends to `need` the list's ids that are not own, in its order. An id that is own
    under several timestamps has to be listed as often. found[0] becomes the number of rows written to `need`, found[1]
    that of marks that are new.
    """
    needs = marks = 0
    longest = 1
    for m in range(len(payloads)):
        longest = max(longest, upper[m] - lower[m])
    heads = np.empty(1 << _bits_for(longest), np.int32)
    links = np.empty(longest, np.int32)
    seen = np.empty(longest, np.uint8)
    for m in range(len(payloads)):
        own = upper[m] - lower[m]
        bits = _bits_for(own)
        heads[: 1 << bits] = -1
        if counts[m] > 0:
            for i in range(own):
                row = first[m] + i
                slot = _slot(ids[row, 0], ids[row, 1], ids[row, 2], ids[row, 3], key, bits)
                links[i] = heads[slot]
                heads[slot] = i
        seen[:own] = 0
        for j in range(counts[m]):
            at = payloads[m] + ID_SIZE * j
            x0, x1 = load_word(message, at), load_word(message, at + 8)
            x2, x3 = load_word(message, at + 16), load_word(message, at + 24)
            known = False
            if own > 0:
                slot = _slot(x0, x1, x2, x3, key, bits)
                i, before, spent, before_spent = heads[slot], -1, -1, -1
                while i >= 0:
                    row = first[m] + i
                    if ids[row, 0] == x0 and ids[row, 1] == x1 and ids[row, 2] == x2 and ids[row, 3] == x3:
                        known = True
                        if not seen[i]:
                            seen[i] = 1
                            break
                        spent, before_spent = i, before
                    before, i = i, links[i]
                if i >= 0 and spent >= 0:  # one spent copy is enough to know the id by
                    if before_spent < 0:
                        heads[slot] = links[spent]
                    else:
                        links[before_spent] = links[spent]
            if not known:
                need[needs, 0] = x0
                need[needs, 1] = x1
                need[needs, 2] = x2
                need[needs, 3] = x3
                needs += 1
        for i in range(own):
            if not seen[i]:
                marks += have[lower[m] + i] == 0
                have[lower[m] + i] = 1
    found[0] = needs
    found[1] = marks


@device
def _mix(ids: Column, row: int) -> Word:
    """A cheap unkeyed hash for filters, where a collision costs time and decides nothing."""
    mixed = ids[row, 0] ^ (ids[row, 1] * np.uint64(0x9E3779B97F4A7C15))
    mixed ^= (mixed >> np.uint64(32)) ^ (ids[row, 2] * np.uint64(0xBF58476D1CE4E5B9))
    mixed = (mixed ^ (ids[row, 3] * np.uint64(0x94D049BB133111EB))) * np.uint64(0x9E3779B97F4A7C15)
    return mixed ^ (mixed >> np.uint64(29))


@device
def _same(left: Column, i: Word, right: Column, j: Word) -> bool:
    return (
        left[i, 0] == right[j, 0]
        and left[i, 1] == right[j, 1]
        and left[i, 2] == right[j, 2]
        and left[i, 3] == right[j, 3]
    )


@device
def _find(ids: Column, row: int, need: Column, have: Column, rows: Column, links: Column, entry: int) -> int:
    """The first mention of id `row` in the chain that begins at `entry`, or -1."""
    needs = len(need)
    while entry >= 0:
        first = rows[entry]
        if first < needs:
            if _same(need, first, ids, row):
                return first
        elif _same(have, first - needs, ids, row):
            return first
        entry = links[entry]
    return -1


@device
def _suspect(ids: Column, bitmap: Column, shift: Word, marks: Column) -> int:
    """Enter every id in the filter; marks those whose bit was set before, and counts them."""
    suspects = 0
    for row in range(len(ids)):
        place = _mix(ids, row) >> shift
        word = bitmap[place >> np.uint64(6)]
        hit = (word >> (place & np.uint64(63))) & np.uint64(1)
        bitmap[place >> np.uint64(6)] = word | np.uint64(1) << (place & np.uint64(63))
        marks[row] = hit
        suspects += np.int64(hit)
    return suspects


@device
def _enter_marked(ids: Column, bitmap: Column, mask: Word, marks: Column) -> None:
    for row in range(len(ids)):
        if marks[row]:
            place = _mix(ids, row) & mask
            bitmap[place >> np.uint64(6)] |= np.uint64(1) << (place & np.uint64(63))


@device
def _mark_sharing(ids: Column, bitmap: Column, mask: Word, marks: Column) -> int:
    marked = 0
    for row in range(len(ids)):
        place = _mix(ids, row) & mask
        marks[row] = (bitmap[place >> np.uint64(6)] >> (place & np.uint64(63))) & np.uint64(1)
        marked += marks[row]
    return marked


@kernel(INT, WORD_ROWS, WORD_ROWS, WORDS, OUT_BYTES, OUT_BYTES)
def mark_repeats(have: Column, need: Column, key: Column, have_out: Column, need_out: Column) -> int:
    """Mark what can't stay: an id that is in its list for the second time, and one in both lists, in both.

    Returns the number of marks. A bit filter picks out the few ids that may be there twice, and only those, and what
    shares a bit of a second filter with them, go into a table: the usual case is two passes that read each id once.
    """
    haves, needs = len(have), len(need)
    bits = _bits_for(max(haves + needs, 4) * FILTER_BITS)
    bitmap = np.zeros(1 << (bits - 6), np.uint64)
    shift = np.uint64(64 - bits)
    suspects = _suspect(need, bitmap, shift, need_out) + _suspect(have, bitmap, shift, have_out)
    if suspects == 0:
        return 0

    bits = _bits_for(max(suspects, 4) * 2 * FILTER_BITS)
    bitmap = np.zeros(1 << (bits - 6), np.uint64)
    mask = np.uint64((1 << bits) - 1)
    _enter_marked(need, bitmap, mask, need_out)
    _enter_marked(have, bitmap, mask, have_out)
    candidates = _mark_sharing(need, bitmap, mask, need_out) + _mark_sharing(have, bitmap, mask, have_out)

    # Each id's first mention: an entry is a row of `need`, or behind those a row of `have`.
    bits = _bits_for(candidates)
    heads = np.full(1 << bits, -1, np.int32)
    links = np.empty(candidates, np.int32)
    rows = np.empty(candidates, np.int64)
    entered = marks = 0
    for row in range(needs):
        if need_out[row]:
            slot = _slot(need[row, 0], need[row, 1], need[row, 2], need[row, 3], key, bits)
            need_out[row] = _find(need, row, need, have, rows, links, heads[slot]) >= 0
            marks += need_out[row]
            if not need_out[row]:
                rows[entered] = row
                links[entered] = heads[slot]
                heads[slot] = entered
                entered += 1
    for row in range(haves):
        if have_out[row]:
            slot = _slot(have[row, 0], have[row, 1], have[row, 2], have[row, 3], key, bits)
            first = _find(have, row, need, have, rows, links, heads[slot])
            have_out[row] = first >= 0
            marks += have_out[row]
            if first < 0:
                rows[entered] = needs + row
                links[entered] = heads[slot]
                heads[slot] = entered
                entered += 1
            elif first < needs and not need_out[first]:
                need_out[first] = 1
                marks += 1
    return marks
