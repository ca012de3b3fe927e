"""Comparing IdLists as sets, and keeping each id that is found to one mention.

Ids are hashed to tags of 32 bits by a strongly universal hash of all their bytes (the "multilinear-HM" family: sums
and products of half words; Lemire and Kaser, "Strongly universal string hashing is fast", The Computer Journal 57,
2014), with a key that is random for each process. Tables are chained over the tags: whoever chooses ids can't know
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
from negvec.kernels.words import copy_bytes, copy_row, load_word

KEY_WORDS = 9  # a summand for each half word of an id, and one more
ID_SIZE = 32
LACKED, HELD = 1, 2  # what a list says of an own item
FILTER_BITS = 22  # of the filter for tags, which then fits the second-level cache
TAG_BITS = 8  # a tag's share of it, at least: one in sixteen is suspected wrongly
SUSPECT_BITS = 64  # a suspect's share of the filter for rows: one in 64 is drawn in wrongly


@device
def _tag(x0: Word, x1: Word, x2: Word, x3: Word, key: Column) -> Word:
    """The keyed hash of an id, 32 bits; its highest bits are a slot of a table."""
    low, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    total = key[8] + (key[0] + (x0 & low)) * (key[1] + (x0 >> half)) + (key[2] + (x1 & low)) * (key[3] + (x1 >> half))
    total += (key[4] + (x2 & low)) * (key[5] + (x2 >> half)) + (key[6] + (x3 & low)) * (key[7] + (x3 >> half))
    return total >> half


@device
def _bits_for(count: int) -> int:
    """The width of a hash whose table has at least `count` slots, and at least two."""
    bits = 1
    while (1 << bits) < count and bits < 32:
        bits += 1
    return bits


@kernel(VOID, BYTES, INTS, INTS, INTS, INTS, INTS, WORD_ROWS, WORDS, OUT_BYTES, OUT_INTS, OUT_INTS, OUT_INTS)
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
    starts: Column,
    lengths: Column,
    found: Column,
) -> None:
    """Compare each IdList of a peer with the own ids of its range, as sets; O(ids) in all.

    The own items [lower, upper) of range m have their ids at row first[m] of `ids` on. Marks in `have`, a byte an own
    item, those that the list lacks, and for good those that it holds: a range may come back as part of a wider one, in
    which a moved item shows to be there, under another timestamp. An id that is own under several timestamps has to be
    listed as often. Ids of the list that are not own are needs; `starts` and `lengths` get the runs of them: the byte
    of the message at which each begins, and its number of ids. found[0] becomes the number of runs, found[1] that of
    needs, found[2] that of items newly lacked.
    """
    runs = needs = marks = 0
    longest = 1
    for m in range(len(payloads)):
        if counts[m] > 0:
            longest = max(longest, upper[m] - lower[m])
    heads = np.empty(1 << _bits_for(longest), np.int32)
    links = np.empty(longest, np.int32)
    seen = np.empty(longest, np.uint8)
    for m in range(len(payloads)):
        own = upper[m] - lower[m]
        if counts[m] == 0:
            for i in range(lower[m], upper[m]):
                marks += have[i] == 0
                have[i] = max(have[i], LACKED)
            continue
        if own == 0:
            starts[runs] = payloads[m]
            lengths[runs] = counts[m]
            runs += 1
            needs += counts[m]
            continue
        bits = _bits_for(own)
        shift = np.uint64(32 - bits)
        for slot in range(1 << bits):
            heads[slot] = -1
        for i in range(own):
            row = first[m] + i
            place = _tag(ids[row, 0], ids[row, 1], ids[row, 2], ids[row, 3], key) >> shift
            links[i] = heads[place]
            heads[place] = i
        for i in range(own):
            seen[i] = 0
        follows = False  # whether the id before is a need
        for j in range(counts[m]):
            at = payloads[m] + ID_SIZE * j
            x0, x1 = load_word(message, at), load_word(message, at + 8)
            x2, x3 = load_word(message, at + 16), load_word(message, at + 24)
            place = _tag(x0, x1, x2, x3, key) >> shift
            known = False
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
                if follows:
                    lengths[runs - 1] += 1
                else:
                    starts[runs] = at
                    lengths[runs] = 1
                    runs += 1
                needs += 1
            follows = not known
        for i in range(own):
            if seen[i]:
                have[lower[m] + i] = HELD
            elif have[lower[m] + i] == 0:
                have[lower[m] + i] = LACKED
                marks += 1
    found[0] = runs
    found[1] = needs
    found[2] = marks


@kernel(INT, BYTES, OUT_INTS, OUT_INTS)
def lacked_runs(have: Column, lo: Column, hi: Column) -> int:
    """The runs [lo, hi) of own items that are lacked; returns their number. One pass, eight items at a time."""
    runs, row, n = 0, 0, len(have)
    all_lacked = np.uint64(LACKED * 0x0101010101010101)
    while row < n:
        if row + 8 <= n and load_word(have, row) == 0:
            row += 8
        elif have[row] != LACKED:
            row += 1
        else:
            lo[runs] = row
            while row < n and have[row] == LACKED:
                row += 8 if row + 8 <= n and load_word(have, row) == all_lacked else 1
            hi[runs] = row
            runs += 1
    return runs


@device
def _same(left: Column, i: Word, right: Column, j: Word) -> bool:
    return (
        left[i, 0] == right[j, 0]
        and left[i, 1] == right[j, 1]
        and left[i, 2] == right[j, 2]
        and left[i, 3] == right[j, 3]
    )


@device
def _suspect(tags: Column, start: int, stop: int, drop: Word, bitmap: Column, suspects: Column, found: int) -> int:
    """Enter tags[start:stop] in a filter; those whose bit was set before are suspects. Returns their number."""
    mask = np.uint64(64 * len(bitmap) - 1)
    for row in range(start, stop):
        place = (np.uint64(tags[row]) >> drop) & mask
        word = bitmap[place >> np.uint64(6)]
        suspects[found] = tags[row]
        found += np.int64((word >> (place & np.uint64(63))) & np.uint64(1))
        bitmap[place >> np.uint64(6)] = word | np.uint64(1) << (place & np.uint64(63))
    return found


@device
def _part(tags: Column, shift: Word, ends: Column, parted: Column) -> None:
    """Put tags before the ends of their parts, and move those."""
    for row in range(len(tags)):
        part = np.uint64(tags[row]) >> shift
        ends[part] -= 1
        parted[ends[part]] = tags[row]


@device
def _suspect_parts(have_tags: Column, need_tags: Column, bits: int, suspects: Column) -> int:
    """As `_suspect` of all tags, which are parted by their highest `bits` first, so that the filter stays small."""
    shift = np.uint64(32 - bits)
    ends = np.zeros((1 << bits) + 1, np.int64)
    for row in range(len(have_tags)):
        ends[np.uint64(have_tags[row]) >> shift] += 1
    for row in range(len(need_tags)):
        ends[np.uint64(need_tags[row]) >> shift] += 1
    for part in range(1, len(ends)):
        ends[part] += ends[part - 1]
    parted = np.empty(ends[-1], np.uint32)
    _part(have_tags, shift, ends, parted)
    _part(need_tags, shift, ends, parted)
    bitmap = np.empty(1 << (FILTER_BITS - 6), np.uint64)
    drop = np.uint64(max(32 - bits - FILTER_BITS, 0))
    found = 0
    for part in range(1 << bits):
        bitmap[:] = 0
        found = _suspect(parted, ends[part], ends[part + 1], drop, bitmap, suspects, found)
    return found


@device
def _suspects(have_tags: Column, need_tags: Column, suspects: Column) -> int:
    """The tags that may be there twice: of each that is, all mentions but one; returns their number."""
    bits = max(_bits_for(TAG_BITS * (len(have_tags) + len(need_tags))), 6)
    if bits > FILTER_BITS:
        return _suspect_parts(have_tags, need_tags, bits - FILTER_BITS, suspects)
    bitmap = np.zeros(1 << (bits - 6), np.uint64)
    drop = np.uint64(32 - bits)
    found = _suspect(need_tags, 0, len(need_tags), drop, bitmap, suspects, 0)
    return _suspect(have_tags, 0, len(have_tags), drop, bitmap, suspects, found)


@device
def _draw_in(tags: Column, first: int, bitmap: Column, mentions: Column, found: int) -> int:
    """The rows, counted from `first` on, of all tags whose bit is set; returns the number of all found so far."""
    mask = np.uint64(64 * len(bitmap) - 1)
    for row in range(len(tags)):
        place = np.uint64(tags[row]) & mask
        mentions[found] = first + row
        found += np.int64((bitmap[place >> np.uint64(6)] >> (place & np.uint64(63))) & np.uint64(1))
    return found


@kernel(VOID, BYTES, INTS, INTS, OUT_WORD_ROWS)
def gather(source: Column, starts: Column, lengths: Column, ids: Column) -> None:
    """Copy runs of ids, given by their first byte and number of ids, one after another."""
    to = 0
    for run in range(len(starts)):
        copy_bytes(ids, ID_SIZE * to, source, starts[run], ID_SIZE * lengths[run])
        to += lengths[run]


@kernel(VOID, WORD_ROWS, WORDS, OUT_TAGS)
def hash_ids(ids: Column, key: Column, tags: Column) -> None:
    """The tags of all ids."""
    for row in range(len(ids)):
        tags[row] = _tag(ids[row, 0], ids[row, 1], ids[row, 2], ids[row, 3], key)


@kernel(INT, WORD_ROWS, TAGS, WORD_ROWS, TAGS, OUT_BYTES, OUT_BYTES)
def mark_repeats(
    have: Column, have_tags: Column, need: Column, need_tags: Column, have_out: Column, need_out: Column
) -> int:
    """Mark what can't stay: an id that is in its list for the second time, and one in both lists, in both.

    Returns the number of marks; where there are none, nothing is written. A bit filter picks out the few tags that may
    be there twice, and another one their rows, which alone go into a table: the usual case is two passes over the tags,
    which lie together, and touches few ids.
    """
    haves, needs = len(have), len(need)
    suspects = np.empty(haves + needs + 1, np.uint32)
    found = _suspects(have_tags, need_tags, suspects)
    if found == 0:
        return 0
    bitmap = np.zeros(1 << (max(_bits_for(SUSPECT_BITS * found), 6) - 6), np.uint64)
    mask = np.uint64(64 * len(bitmap) - 1)
    for suspect in range(found):
        place = np.uint64(suspects[suspect]) & mask
        bitmap[place >> np.uint64(6)] |= np.uint64(1) << (place & np.uint64(63))
    mentions = np.empty(haves + needs + 1, np.int64)  # rows of `need`, and behind those of `have`
    candidates = _draw_in(need_tags, 0, bitmap, mentions, 0)
    candidates = _draw_in(have_tags, needs, bitmap, mentions, candidates)

    # Each id's first mention is entered in a table, and those after it are marked.
    bits = _bits_for(candidates)
    shift = np.uint64(32 - bits)
    heads = np.empty(1 << bits, np.int32)
    for slot in range(1 << bits):
        heads[slot] = -1
    links = np.empty(candidates, np.int32)
    marks = 0
    for candidate in range(candidates):
        mention = mentions[candidate]
        of_need = mention < needs
        row = mention if of_need else mention - needs
        tag = need_tags[row] if of_need else have_tags[row]
        place = np.uint64(tag) >> shift
        entry, first = heads[place], np.int64(0)
        while entry >= 0:
            first = mentions[entry]
            if first >= needs:
                same = have_tags[first - needs] == tag and _same(have, first - needs, have, row)
            else:
                same = need_tags[first] == tag and (
                    _same(need, first, need, row) if of_need else _same(need, first, have, row)
                )
            if same:
                break
            entry = links[entry]
        if entry < 0:
            links[candidate] = heads[place]
            heads[place] = candidate
            continue
        if marks == 0:
            need_out[:] = 0
            have_out[:] = 0
        marks += 1
        if of_need:
            need_out[row] = 1
        else:
            have_out[row] = 1
            if first < needs and not need_out[first]:
                need_out[first] = 1
                marks += 1
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
