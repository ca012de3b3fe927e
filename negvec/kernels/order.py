"""Sorting items by (created_at, id as unsigned bytes).

The usual input is sorted already, which `negvec.kernels.checks` finds out in one pass. Else `arrange` finds the order,
in which `gather` then moves each item once. An item is compared as five words, its timestamp and those of its id. Where
timestamps do not ascend or descend as they are, items are told apart by the first word in which they differ: as much of
it as there is room for makes one uint64 with the item's row, and those are sorted by radix, three passes over as many
bits as tell so many items apart. What still ties is sorted by insertion where it is short, else in the same way over
again. The cost does not depend on how far from sorted the input is, and has no quadratic case.
"""

from __future__ import annotations

import numpy as np

from negvec.kernels._jit import INT, OUT_WORD_ROWS, OUT_WORDS, VOID, WORD_ROWS, WORDS, Column, Word, device, kernel
from negvec.kernels.addresses import address_of, prefetch
from negvec.kernels.words import byte_swap, compare_ids, copy_row

DIGITS = 3  # passes over the keys
LARGEST_DIGIT = 10  # bits; at 11 a pass, and two of them, take twice as long: to more places than caches have ways for
SPARE_BITS = 6  # beyond those that number the items: of items at random one in sixty then ties with another
SHORT_RUN = 24  # items up to which insertion beats three more passes
AHEAD = 64  # items on their way from memory at once: at random places, with fewer it idles

WATCHED = 1024  # items looked at without a branch

WORDS_OF_ITEM = 5  # the timestamp first
REPEAT = np.uint64(1 << 63)  # marks, in place of its row, an item that equals the one before


@device
def _bits(number: Word) -> int:
    """How many bits a number has."""
    bits = 0
    while number:
        number >>= np.uint64(1)
        bits += 1
    return bits


@device
def _as_row(place: Word) -> int:
    row: int = np.int64(place)
    return row


@device
def row_at(places: Column, place: int) -> int:
    return _as_row(places[place])


@device
def _row_of(places: Column, place: int, as_they_lie: bool) -> int:
    return place if as_they_lie else row_at(places, place)


@device
def _word(created_at: Column, ids: Column, row: int, level: int) -> Word:
    return created_at[row] if level == 0 else byte_swap(ids[row, level - 1])


@device
def _compare(created_at: Column, ids: Column, left: int, right: int) -> int:
    """-1, 0 or 1 as item `left` is before, equal to or after item `right`."""
    if created_at[left] != created_at[right]:
        return -1 if created_at[left] < created_at[right] else 1
    return compare_ids(ids, left, right)


@device
def _count_digits(keys: Column, counters: Column, start: int, stop: int, low: int, digit: int) -> None:
    """Set counters[turn, value] to how many keys[start:stop] have that value as a digit, the first from bit `low`."""
    for turn in range(DIGITS):
        for value in range(1 << digit):
            counters[turn, value] = 0
    mask = np.uint64((1 << digit) - 1)
    first, second, third = np.uint64(low), np.uint64(low + digit), np.uint64(low + 2 * digit)
    for place in range(start, stop):
        key = keys[place]
        counters[0, (key >> first) & mask] += 1
        counters[1, (key >> second) & mask] += 1
        counters[2, (key >> third) & mask] += 1


@device
def _sort_by_digit(
    keys: Column, sorted_keys: Column, counts: Column, start: int, stop: int, low: int, bits: int
) -> None:
    """Write keys[start:stop], sorted by `bits` bits from bit `low` on, stably, to the same places of another column.

    `counts` says how many keys have which value there, and is spent.
    """
    shift, mask = np.uint64(low), np.uint64((1 << bits) - 1)
    before = start
    for digit in range(1 << bits):
        count = counts[digit]
        counts[digit] = before
        before += count
    for place in range(start, stop):
        key = keys[place]
        digit = (key >> shift) & mask
        to = counts[digit]
        counts[digit] = to + 1
        sorted_keys[to] = key


@device
def _sort_short_run(created_at: Column, ids: Column, keys: Column, start: int, stop: int, row_bits: int) -> int:
    """Sort keys by insertion, leave of each its row, the lowest bits, and mark repeats; returns how many those are."""
    shift, mask = np.uint64(row_bits), np.uint64((1 << row_bits) - 1)
    repeats = 0
    for place in range(start + 1, stop):
        own, to = keys[place], place
        while to > start:
            other = keys[to - 1]
            if other >> shift == own >> shift:
                order = _compare(created_at, ids, _as_row(other & mask), _as_row(own & mask))
                if order <= 0:
                    repeats += order == 0
                    break
            elif other < own:
                break
            keys[to] = other
            to -= 1
        keys[to] = own
    before = keys[start]
    for place in range(start, stop):
        own = keys[place]
        keys[place] = own & mask
        ties = repeats > 0 and place > start and before >> shift == own >> shift
        if ties and _compare(created_at, ids, _as_row(before & mask), _as_row(own & mask)) == 0:
            keys[place] |= REPEAT
        before = own
    return repeats


@device
def _note(runs: Column, pending: int, start: int, stop: int, level: int) -> int:
    runs[pending, 0], runs[pending, 1], runs[pending, 2] = start, stop, level
    return pending + 1


@device
def _sort_tied(ids: Column, places: Column, start: int, stop: int) -> int:
    """Sort rows of one timestamp by their ids, by insertion, and mark repeats; returns how many those are."""
    repeats = 0
    for place in range(start + 1, stop):
        own, to = places[place], place
        while to > start:
            order = compare_ids(ids, row_at(places, to - 1), _as_row(own))
            if order <= 0:
                repeats += order == 0
                break
            places[to] = places[to - 1]
            to -= 1
        places[to] = own
    if repeats:
        before = places[start]
        for place in range(start + 1, stop):
            own = places[place]
            if compare_ids(ids, _as_row(before), _as_row(own)) == 0:
                places[place] |= REPEAT
            before = own
    return repeats


@device
def _sort_three(ids: Column, places: Column, start: int, stop: int) -> bool:
    """Sort two or three rows by the first words of their ids, without a branch that is hard to foresee.

    Returns whether those words tell them apart; else nothing is changed.
    """
    last = stop - 1
    a, b, c = places[start], places[start + 1], places[last]
    of_a, of_b, of_c = byte_swap(ids[_as_row(a), 0]), byte_swap(ids[_as_row(b), 0]), byte_swap(ids[_as_row(c), 0])
    if stop - start == 2:
        c, of_c = np.uint64(0), np.uint64(0xFFFF_FFFF_FFFF_FFFF)
    if of_a == of_b or of_c in (of_a, of_b):
        return False
    above = of_a > of_b
    a, b = b if above else a, a if above else b
    of_a, of_b = of_b if above else of_a, of_a if above else of_b
    above = of_b > of_c
    b, c = c if above else b, b if above else c
    of_b = of_c if above else of_b
    above = of_a > of_b
    a, b = b if above else a, a if above else b
    if stop - start == 3:
        places[last] = c
    places[start], places[start + 1] = a, b
    return True


@device
def _steps(created_at: Column) -> tuple[bool, bool]:
    """Whether a timestamp is greater than the one before it, and whether one is less; until both are so."""
    rises = falls = np.uint64(0)
    for start in range(0, len(created_at) - 1, WATCHED):
        before = created_at[start : start + WATCHED]
        after = created_at[start + 1 : start + WATCHED + 1]
        for step in range(len(after)):
            rises |= np.uint64(before[step] < after[step])
            falls |= np.uint64(before[step] > after[step])
        if rises and falls:
            break
    return bool(rises > 0), bool(falls > 0)


@device
def _in_order_of_time(created_at: Column, ids: Column, places: Column, runs: Column) -> tuple[int, int]:
    """Begin with rows as they are, or from behind where timestamps descend; returns long runs noted, and repeats.

    Places are not written where all rows are one long run.
    """
    n = len(created_at)
    rises, falls = _steps(created_at)
    if rises and falls:
        return _note(runs, 0, 0, n, 0), 0
    if not (rises or falls) and n > SHORT_RUN:
        return _note(runs, 0, 0, n, 1), 0
    for row in range(n):
        places[row] = n - 1 - row if falls else row
    pending = repeats = first = 0
    while first < n:
        at, last = created_at[row_at(places, first)], first + 1
        while last < n and created_at[row_at(places, last)] == at:
            last += 1
        if last - first > SHORT_RUN:
            pending = _note(runs, pending, first, last, 1)
        elif last - first > 3 or (last - first > 1 and not _sort_three(ids, places, first, last)):
            repeats += _sort_tied(ids, places, first, last)
        first = last
    return pending, repeats


@device
def _differing_word(
    created_at: Column, ids: Column, places: Column, words: Column, start: int, stop: int, level: int, as_they_lie: bool
) -> tuple[int, Word, Word]:
    """The first word from `level` on in which items differ, or WORDS_OF_ITEM, its least value and its span.

    `words` gets that word of each.
    """
    while level < WORDS_OF_ITEM:
        smallest = largest = _word(created_at, ids, _row_of(places, start, as_they_lie), level)
        for place in range(start, stop):
            word = _word(created_at, ids, _row_of(places, place, as_they_lie), level)
            words[place] = word
            smallest = min(smallest, word)
            largest = max(largest, word)
        if smallest != largest:
            return level, smallest, largest - smallest
        level += 1
    return level, np.uint64(0), np.uint64(0)


@device
def _make_keys(
    created_at: Column,
    ids: Column,
    places: Column,
    words: Column,
    start: int,
    stop: int,
    level: int,
    smallest: Word,
    span: Word,
    row_bits: int,
    as_they_lie: bool,
) -> int:
    """Put above the row of each item as much of its word as there is room for; returns how many bits that are at most.

    Where many items tie in that word, the one after it has a say; but not between two neighbours, which it could bring
    so close that no bit that counts would tell the least item from the greatest. Words are scaled so that keys take 13
    of 16 parts of what their bits can say: at a power of two, as timestamps that are evenly spaced may have, what is
    sorted would go to places at distances that all share a few lines of the cache (three times as slow).
    """
    key_bits, above = 63 - row_bits, np.uint64(row_bits)
    less = np.uint64(max(_bits(span) - key_bits + 1, 0))
    most = (span >> less) + np.uint64(1)
    scale = (np.uint64(13) << np.uint64(key_bits - 4)) // most
    if span > 1 and _bits(span) <= min(_bits(np.uint64(stop - start)), key_bits - 1) and level + 1 < WORDS_OF_ITEM:
        scale = min(scale, np.uint64((1 << 32) - 1))
        for place in range(start, stop):
            row = _row_of(places, place, as_they_lie)
            following = _word(created_at, ids, row, level + 1) >> np.uint64(32)
            key = (words[place] - smallest) * scale + ((following * scale) >> np.uint64(32))
            places[place] = (key << above) | np.uint64(row)
    else:
        scale = max(scale, np.uint64(1))
        for place in range(start, stop):
            key = ((words[place] - smallest) >> less) * scale
            places[place] = (key << above) | np.uint64(_row_of(places, place, as_they_lie))
    return _bits(most * scale)


@kernel(INT, WORDS, WORD_ROWS, OUT_WORDS, OUT_WORDS)
def arrange(created_at: Column, ids: Column, places: Column, spare: Column) -> int:
    """Write to `places`, (n,), the rows of the items in order, without repeats; returns how many. n < 2^32. O(n).

    `spare`, (n,), is for what is between. Each long run of items that tie is looked at from the word on in which they
    do, and loses at each look seven bits or more of its span.
    """
    n = len(created_at)
    row_bits = max(_bits(np.uint64(n)), 1)
    mask = np.uint64((1 << row_bits) - 1)
    counters = np.empty((DIGITS, 1 << LARGEST_DIGIT), np.int64)
    runs = np.empty((n // SHORT_RUN + 1, 3), np.int64)  # long runs still to be sorted: start, stop, level
    pending, repeats = _in_order_of_time(created_at, ids, places, runs)
    while pending > 0:
        pending -= 1
        start, stop = runs[pending, 0], runs[pending, 1]
        as_they_lie = stop - start == n  # at first: keys tell the least from the greatest, so later runs are shorter
        level, smallest, span = _differing_word(
            created_at, ids, places, spare, start, stop, runs[pending, 2], as_they_lie
        )
        if level == WORDS_OF_ITEM:
            places[start] = _row_of(places, start, as_they_lie)
            for place in range(start + 1, stop):
                places[place] = np.uint64(_row_of(places, place, as_they_lie)) | REPEAT
            repeats += stop - start - 1
            continue
        bits = _make_keys(created_at, ids, places, spare, start, stop, level, smallest, span, row_bits, as_they_lie)
        told = min(_bits(np.uint64(stop - start)) + SPARE_BITS, DIGITS * LARGEST_DIGIT, bits)
        digit = (told + DIGITS - 1) // DIGITS
        told = min(DIGITS * digit, bits)
        low = row_bits + bits - told
        _count_digits(places, counters, start, stop, low, digit)
        _sort_by_digit(places, spare, counters[0], start, stop, low, digit)
        _sort_by_digit(spare, places, counters[1], start, stop, low + digit, digit)
        _sort_by_digit(places, spare, counters[2], start, stop, low + 2 * digit, digit)
        shift, first = np.uint64(low), start
        for place in range(start, stop):
            places[place] = spare[place] & mask
        while first < stop - 1:
            if (spare[first] ^ spare[first + 1]) >> shift != 0:
                first += 1
                continue
            last = first + 2
            while last < stop and (spare[first] ^ spare[last]) >> shift == 0:
                last += 1
            if last - first > SHORT_RUN:
                pending = _note(runs, pending, first, last, level)
            else:
                repeats += _sort_short_run(created_at, ids, spare, first, last, row_bits)
                for place in range(first, last):
                    places[place] = spare[place]
            first = last
    if repeats == 0:
        return n
    kept = 0
    for place in range(n):
        if places[place] < REPEAT:
            places[kept] = places[place]
            kept += 1
    return kept


@device
def fetch_item(created_at: Column, ids: Column, row: int) -> None:
    """Have an item brought into the cache; its id may lie in two lines."""
    id = address_of(ids) + 32 * row
    prefetch(address_of(created_at) + 8 * row)
    prefetch(id)
    prefetch(id + 31)


@kernel(VOID, WORDS, WORD_ROWS, WORDS, OUT_WORDS, OUT_WORD_ROWS)
def gather(created_at: Column, ids: Column, places: Column, to_at: Column, to_ids: Column) -> None:
    """Copy the items of the rows `places` to `to_at` and `to_ids`; one pass."""
    for place in range(len(places)):
        if place + AHEAD < len(places):
            fetch_item(created_at, ids, row_at(places, place + AHEAD))
        row = row_at(places, place)
        to_at[place] = created_at[row]
        copy_row(to_ids, place, ids, row)
