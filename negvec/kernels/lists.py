"""Comparing IdLists as sets, and keeping each id that is found to one mention.

Ids are hashed to tags of 32 bits by a strongly universal hash of all their bytes (multiply-shift over eight half words;
Dietzfelbinger, "Universal hashing and k-wise independent random variables via integer arithmetic without primes",
1996), with a key that is random for each process. Tables are chained over the tags: whoever chooses ids can't know
which of them share a chain, and expected time is linear whatever they are.
"""

from __future__ import annotations

import numpy as np

from negvec.kernels._jit import (
    BYTES,
    INT,
    INTS,
    OUT_BYTES,
    OUT_INTS,
    OUT_TAGS,
    OUT_WORD_ROWS,
    TAGS,
    VOID,
    WORD_ROWS,
    WORDS,
    Column,
    Word,
    device,
    kernel,
)
from negvec.kernels.words import copy_row, load_word

KEY_WORDS = 9  # a multiplier for each half word of an id, and a summand
ID_SIZE = 32
LACKED, HELD = 1, 2  # what a list says of an own item
FILTER_BITS = 32  # an id's share of a filter: at most one in 32 is suspected wrongly


@device
def _tag(x0: Word, x1: Word, x2: Word, x3: Word, key: Column) -> Word:
    """The keyed hash of an id, 32 bits; its highest bits are a slot of a table."""
    low, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    total = key[0] * (x0 & low) + key[1] * (x0 >> half) + key[2] * (x1 & low) + key[3] * (x1 >> half)
    total += key[4] * (x2 & low) + key[5] * (x2 >> half) + key[6] * (x3 & low) + key[7] * (x3 >> half)
    return (total + key[8]) >> half


@device
def _bits_for(count: int) -> int:
    """The width of a hash whose table has at least `count` slots, and at least two."""
    bits = 1
    while (1 << bits) < count and bits < 32:
        bits += 1
    return bits


@kernel(VOID, BYTES, INTS, INTS, INTS, INTS, INTS, WORD_ROWS, WORDS, OUT_BYTES, OUT_WORD_ROWS, OUT_TAGS, OUT_INTS)
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
    tags: Column,
    found: Column,
) -> None:
    """Compare each IdList of a peer with the own ids of its range, as sets; O(ids) in all.

    The own items [lower, upper) of range m have their ids at row first[m] of `ids` on. Marks in `have`, a byte an own
    item, those that the list lacks, and for good those that it holds: a range may come back as part of a wider one, in
    which a moved item shows to be there, under another timestamp. An id that is own under several timestamps has to be
    listed as often. Appends to `need`, and their tags to `tags`, the ids of the list that are not own. found[0]
    becomes the number of rows written to `need`, found[1] that of items newly lacked.
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
        shift = np.uint64(32 - bits)
        for slot in range(1 << bits):
            heads[slot] = -1
        if counts[m] > 0:
            for i in range(own):
                row = first[m] + i
                place = _tag(ids[row, 0], ids[row, 1], ids[row, 2], ids[row, 3], key) >> shift
                links[i] = heads[place]
                heads[place] = i
        for i in range(own):
            seen[i] = 0
        for j in range(counts[m]):
            at = payloads[m] + ID_SIZE * j
            x0, x1 = load_word(message, at), load_word(message, at + 8)
            x2, x3 = load_word(message, at + 16), load_word(message, at + 24)
            tag = _tag(x0, x1, x2, x3, key)
            known = False
            if own > 0:
                place = tag >> shift
                i, before, spent, before_spent = heads[place], -1, -1, -1
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
                        heads[place] = links[spent]
                    else:
                        links[before_spent] = links[spent]
            if not known:
                need[needs, 0] = x0
                need[needs, 1] = x1
                need[needs, 2] = x2
                need[needs, 3] = x3
                tags[needs] = tag
                needs += 1
        for i in range(own):
            if seen[i]:
                have[lower[m] + i] = HELD
            elif have[lower[m] + i] == 0:
                have[lower[m] + i] = LACKED
                marks += 1
    found[0] = needs
    found[1] = marks


@device
def _same(left: Column, i: Word, right: Column, j: Word) -> bool:
    return (
        left[i, 0] == right[j, 0]
        and left[i, 1] == right[j, 1]
        and left[i, 2] == right[j, 2]
        and left[i, 3] == right[j, 3]
    )


@device
def _suspect(tags: Column, bitmap: Column, shift: Word, marks: Column) -> int:
    """Enter every tag in the filter, by its highest bits; marks those whose bit was set before, and counts them."""
    suspects = 0
    for row in range(len(tags)):
        place = np.uint64(tags[row]) >> shift
        word = bitmap[place >> np.uint64(6)]
        hit = (word >> (place & np.uint64(63))) & np.uint64(1)
        bitmap[place >> np.uint64(6)] = word | np.uint64(1) << (place & np.uint64(63))
        marks[row] = hit
        suspects += np.int64(hit)
    return suspects


@device
def _enter_marked(tags: Column, bitmap: Column, mask: Word, marks: Column) -> None:
    """Enter the marked tags in the second filter, by their lowest bits."""
    for row in range(len(tags)):
        if marks[row]:
            place = np.uint64(tags[row]) & mask
            bitmap[place >> np.uint64(6)] |= np.uint64(1) << (place & np.uint64(63))


@device
def _mark_sharing(tags: Column, bitmap: Column, mask: Word, marks: Column) -> int:
    """Mark all tags whose bit in the second filter is set, and count them."""
    marked = 0
    for row in range(len(tags)):
        place = np.uint64(tags[row]) & mask
        marks[row] = (bitmap[place >> np.uint64(6)] >> (place & np.uint64(63))) & np.uint64(1)
        marked += marks[row]
    return marked


@kernel(VOID, WORD_ROWS, INTS, WORDS, OUT_WORD_ROWS, OUT_TAGS)
def take(ids: Column, rows: Column, key: Column, taken: Column, tags: Column) -> None:
    """Copy the ids of `rows`, with their tags."""
    for m in range(len(rows)):
        row = rows[m]
        for k in range(4):
            taken[m, k] = ids[row, k]
        tags[m] = _tag(taken[m, 0], taken[m, 1], taken[m, 2], taken[m, 3], key)


@kernel(INT, WORD_ROWS, TAGS, WORD_ROWS, TAGS, OUT_BYTES, OUT_BYTES)
def mark_repeats(
    have: Column, have_tags: Column, need: Column, need_tags: Column, have_out: Column, need_out: Column
) -> int:
    """Mark what can't stay: an id that is in its list for the second time, and one in both lists, in both.

    Returns the number of marks. A bit filter picks out the few ids that may be there twice, and only those, and what
    shares a bit of a second filter with them, go into a table: the usual case is two passes over the tags, which lie
    together, and touches few ids.
    """
    haves, needs = len(have), len(need)
    bits = _bits_for(max(haves + needs, 4) * FILTER_BITS)
    bitmap = np.zeros(1 << (bits - 6), np.uint64)
    shift = np.uint64(32 - bits)
    suspects = _suspect(need_tags, bitmap, shift, need_out) + _suspect(have_tags, bitmap, shift, have_out)
    if suspects == 0:
        return 0

    bits = _bits_for(max(suspects, 4) * 2 * FILTER_BITS)
    bitmap = np.zeros(1 << (bits - 6), np.uint64)
    mask = np.uint64((1 << bits) - 1)
    _enter_marked(need_tags, bitmap, mask, need_out)
    _enter_marked(have_tags, bitmap, mask, have_out)
    candidates = _mark_sharing(need_tags, bitmap, mask, need_out) + _mark_sharing(have_tags, bitmap, mask, have_out)

    # Each id's first mention: an entry is a row of `need`, or behind those a row of `have`.
    bits = _bits_for(candidates)
    shift = np.uint64(32 - bits)
    heads = np.empty(1 << bits, np.int32)
    for slot in range(1 << bits):
        heads[slot] = -1
    links, rows = np.empty(candidates, np.int32), np.empty(candidates, np.int64)
    entry_tags = np.empty(candidates, np.uint32)
    entered = marks = 0
    for mention in range(needs + haves):
        of_need = mention < needs
        row = mention if of_need else mention - needs
        if not (need_out[row] if of_need else have_out[row]):
            continue
        tag = need_tags[row] if of_need else have_tags[row]
        place = np.uint64(tag) >> shift
        entry = heads[place]
        while entry >= 0:
            first = rows[entry]
            if entry_tags[entry] == tag and (
                _same(need, first, need, row)
                if of_need
                else (_same(need, first, have, row) if first < needs else _same(have, first - needs, have, row))
            ):
                break
            entry = links[entry]
        repeated = entry >= 0
        marks += repeated
        if of_need:
            need_out[row] = repeated
        else:
            have_out[row] = repeated
            if repeated and rows[entry] < needs and not need_out[rows[entry]]:
                need_out[rows[entry]] = 1
                marks += 1
        if not repeated:
            rows[entered] = mention
            entry_tags[entered] = tag
            links[entered] = heads[place]
            heads[place] = entered
            entered += 1
    return marks


@kernel(INT, OUT_WORD_ROWS, BYTES)
def drop_marked(ids: Column, marks: Column) -> int:
    """Close the gaps that marked ids leave, in place; returns how many are kept, in their order."""
    kept = 0
    for row in range(len(ids)):
        if not marks[row]:
            if kept < row:
                copy_row(ids, kept, ids, row)
            kept += 1
    return kept
