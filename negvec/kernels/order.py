"""Sorting items by (created_at, id as unsigned bytes).

The usual input is sorted already, which `negvec.kernels.checks` finds out in one pass. Else `sort` does: where the
timestamps do not ascend as they are, by a radix sort (stable, 11 bits a pass, over the bits in which timestamps differ
at all: two passes for a set that spans a month of seconds) after which ids are moved once; and then by id where
timestamps tie: runs of a few items by insertion, long runs by the same radix sort, eight bytes of the id at a time. The
cost does not depend on how far from sorted the input is, and has no quadratic case.
"""

from __future__ import annotations

import numpy as np

from negvec.kernels._jit import OUT_WORD_ROWS, OUT_WORDS, VOID, WORD_ROWS, WORDS, Column, device, kernel
from negvec.kernels.words import byte_swap, compare_ids, copy_bytes, copy_row

DIGIT_BITS = 11  # 2048 counters fit the first-level cache
ID_SIZE = 32
SHORT_RUN = 128  # ids up to which insertion beats six radix passes over 2048 counters


@device
def _radix_sort(
    keys: Column, places: Column, spare_keys: Column, spare_places: Column, counters: Column, start: int, stop: int
) -> None:
    """Sort keys[start:stop] with their places, stably, least significant digit first."""
    smallest = largest = keys[start]
    for row in range(start + 1, stop):
        smallest = min(smallest, keys[row])
        largest = max(largest, keys[row])
    span = largest - smallest
    mask = np.uint64((1 << DIGIT_BITS) - 1)
    shift = np.uint64(0)
    swapped = False
    while shift < np.uint64(64) and (span >> shift) > np.uint64(0):
        source, target = (spare_keys, keys) if swapped else (keys, spare_keys)
        from_places, to_places = (spare_places, places) if swapped else (places, spare_places)
        for digit in range(len(counters)):
            counters[digit] = 0
        for row in range(start, stop):
            counters[((source[row] - smallest) >> shift) & mask] += 1
        total = start
        for digit in range(len(counters)):
            count = counters[digit]
            counters[digit] = total
            total += count
        for row in range(start, stop):
            digit = ((source[row] - smallest) >> shift) & mask
            place = counters[digit]
            counters[digit] = place + 1
            target[place] = source[row]
            to_places[place] = from_places[row]
        swapped = not swapped
        shift += np.uint64(DIGIT_BITS)
    if swapped:
        for row in range(start, stop):
            keys[row] = spare_keys[row]
            places[row] = spare_places[row]


@device
def _insertion_sort(ids: Column, start: int, stop: int) -> None:
    for row in range(start + 1, stop):
        place = row
        while place > start and compare_ids(ids, place - 1, place) > 0:
            for k in range(4):
                word = ids[place, k]
                ids[place, k] = ids[place - 1, k]
                ids[place - 1, k] = word
            place -= 1


@device
def _sort_long_run(ids: Column, start: int, stop: int, counters: Column) -> None:
    """Sort a long run of ids: by its first eight bytes, then the runs that still tie by the next eight."""
    n = stop - start
    keys, spare_keys = np.empty(n, np.uint64), np.empty(n, np.uint64)
    places, spare_places = np.empty(n, np.uint32), np.empty(n, np.uint32)
    moved = np.empty((n, 4), np.uint64)
    tied = np.zeros(n + 1, np.uint8)  # tied[i]: item i equals item i - 1 in all words so far
    for row in range(1, n):
        tied[row] = 1
    for level in range(4):
        first = 0
        while first < n:
            last = first + 1
            while tied[last]:
                last += 1
            if 1 < last - first <= SHORT_RUN:
                _insertion_sort(ids, start + first, start + last)
                for row in range(first + 1, last):
                    tied[row] = 0  # in order, and not to be looked at again
            elif last - first > 1:
                for row in range(first, last):
                    keys[row] = byte_swap(ids[start + row, level])
                    places[row] = row
                _radix_sort(keys, places, spare_keys, spare_places, counters, first, last)
                for row in range(first, last):
                    copy_row(moved, row, ids, start + places[row])
                for row in range(first, last):
                    copy_row(ids, start + row, moved, row)
                for row in range(first + 1, last):
                    tied[row] = keys[row] == keys[row - 1]
            first = last


@kernel(VOID, WORDS, WORD_ROWS, OUT_WORDS, OUT_WORD_ROWS)
def sort(created_at: Column, ids: Column, sorted_at: Column, sorted_ids: Column) -> None:
    """Write the items, sorted, to `sorted_at` (n,) and `sorted_ids` (n, 4); n < 2^32. O(n)."""
    n = len(created_at)
    counters = np.empty(1 << DIGIT_BITS, np.int64)
    ascending = True
    for row in range(n):
        sorted_at[row] = created_at[row]
        ascending = ascending and (row == 0 or created_at[row - 1] <= created_at[row])
    if ascending:
        copy_bytes(sorted_ids, 0, ids, 0, n * ID_SIZE)
    else:
        places, spare_places = np.empty(n, np.uint32), np.empty(n, np.uint32)
        spare_keys = np.empty(n, np.uint64)
        for row in range(n):
            places[row] = row
        _radix_sort(sorted_at, places, spare_keys, spare_places, counters, 0, n)
        for row in range(n):
            copy_row(sorted_ids, row, ids, places[row])
    first = 0
    while first < n:
        last = first + 1
        while last < n and sorted_at[last] == sorted_at[first]:
            last += 1
        if last - first > SHORT_RUN:
            _sort_long_run(sorted_ids, first, last, counters)
        elif last - first > 1:
            _insertion_sort(sorted_ids, first, last)
        first = last
