"""The ranges that an initiator still has open: what an answer leaves of them, and how the next message asks for them.

Bounds are columns, as in `negvec.kernels.message`: timestamps, zero-padded id prefixes as words, prefix lengths. Both
kernels that go through open ranges walk two ascending lists side by side, in time linear in their lengths.
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
    OUT_WORDS,
    VOID,
    WORD_ROWS,
    WORDS,
    Column,
    device,
    kernel,
)
from negvec.kernels.message import (
    FINGERPRINT,
    FINGERPRINT_SIZE,
    ID_LIST,
    ID_SIZE,
    SKIP,
    _bound_size,
    _close,
)
from negvec.kernels.words import byte_swap, copy_row, id_before, same_item, varint_size

SETTLED, PASSED, OPEN = 0, 1, 2  # what an answer's range says: nothing is left here; what was asked is; it differs

CUT = 255  # prefix length that marks a bound still to be filled in, between the own items out_hi - 1 and out_hi
CLOSING = 19  # bytes of a Fingerprint range to infinity
WIDEST_BOUND = 44  # bytes of a bound: a varint of 10, the length, an id

STEPS = 8  # bins of widths for every doubling; those below 2 * STEPS are counted each
BINS = 64 * STEPS


@device
def _before(left_at: Column, left_ids: Column, i: int, right_at: Column, right_ids: Column, j: int) -> bool:
    """Whether bound i of one list is less than bound j of another."""
    if left_at[i] != right_at[j]:
        return left_at[i] < right_at[j]
    return id_before(
        left_ids,
        i,
        byte_swap(right_ids[j, 0]),
        byte_swap(right_ids[j, 1]),
        byte_swap(right_ids[j, 2]),
        byte_swap(right_ids[j, 3]),
    )


@device
def _copy_bound(
    to_at: Column,
    to_ids: Column,
    to_lengths: Column,
    to: int,
    from_at: Column,
    from_ids: Column,
    from_lengths: Column,
    row: int,
) -> None:
    to_at[to] = from_at[row]
    copy_row(to_ids, to, from_ids, row)
    to_lengths[to] = from_lengths[row]


@kernel(
    INT,
    *(WORDS, WORD_ROWS, BYTES, WORDS, WORD_ROWS, BYTES, INTS, INTS, BYTES),
    *(WORDS, WORD_ROWS, BYTES, INTS, BYTES, INT),
    *(OUT_WORDS, OUT_WORD_ROWS, OUT_BYTES, OUT_WORDS, OUT_WORD_ROWS, OUT_BYTES, OUT_INTS, OUT_INTS),
    *(OUT_INTS, OUT_INTS),
)
def refine(
    lower_at: Column,
    lower_ids: Column,
    lower_lengths: Column,
    upper_at: Column,
    upper_ids: Column,
    upper_lengths: Column,
    lo: Column,
    hi: Column,
    asked: Column,
    bound_at: Column,
    bound_ids: Column,
    bound_lengths: Column,
    bound_index: Column,
    verdicts: Column,
    joins: int,
    out_lower_at: Column,
    out_lower_ids: Column,
    out_lower_lengths: Column,
    out_upper_at: Column,
    out_upper_ids: Column,
    out_upper_lengths: Column,
    out_lo: Column,
    out_hi: Column,
    source: Column,
    answer: Column,
) -> int:
    """What an answer leaves of open ranges: every part of one that it does not settle; returns how many there are.

    The open ranges [lower, upper), own items [lo, hi), ascend and are disjoint; `asked` marks those that the answer is
    to. The answer's ranges end at its bounds, own index `bound_index`; behind the last, nothing is said, which is the
    same as PASSED. PASSED settles what was asked and says nothing about the rest; OPEN ranges stay, cut to the open
    range that they lie in. source[k] is the row that part k is of, answer[k] the OPEN range of the answer, or -1.

    With `joins`, neighbours in which there is no own item become one: an empty list says the same of both.
    """
    out = j = 0
    answers = len(verdicts)
    for i in range(len(lo)):
        while j < answers and not _before(lower_at, lower_ids, i, bound_at, bound_ids, j):
            j += 1
        k = j
        while True:
            verdict = verdicts[k] if k < answers else PASSED
            last = k >= answers or not _before(bound_at, bound_ids, k, upper_at, upper_ids, i)
            stays = verdict == OPEN or (verdict == PASSED and not asked[i])
            if stays and k > j and not last:
                stays = _before(bound_at, bound_ids, k - 1, bound_at, bound_ids, k)
            if stays:
                if k == j:
                    _copy_bound(
                        *(out_lower_at, out_lower_ids, out_lower_lengths, out),
                        *(lower_at, lower_ids, lower_lengths, i),
                    )
                    out_lo[out] = lo[i]
                else:
                    _copy_bound(
                        *(out_lower_at, out_lower_ids, out_lower_lengths, out),
                        *(bound_at, bound_ids, bound_lengths, k - 1),
                    )
                    out_lo[out] = bound_index[k - 1]
                out_hi[out] = hi[i] if last else bound_index[k]
                if (
                    joins
                    and out > 0
                    and out_lo[out] == out_hi[out]
                    and out_lo[out - 1] == out_hi[out - 1]
                    and same_item(out_upper_at, out_upper_ids, out - 1, out_lower_at, out_lower_ids, out)
                ):
                    out -= 1
                if last:
                    _copy_bound(
                        *(out_upper_at, out_upper_ids, out_upper_lengths, out),
                        *(upper_at, upper_ids, upper_lengths, i),
                    )
                else:
                    _copy_bound(
                        *(out_upper_at, out_upper_ids, out_upper_lengths, out),
                        *(bound_at, bound_ids, bound_lengths, k),
                    )
                source[out] = i
                answer[out] = k if verdict == OPEN else -1
                out += 1
            if last:
                break
            k += 1
        j = k
    return out


@device
def _bin(width: int) -> int:
    """Where a width is counted: the first widths each, then in bins an eighth as wide."""
    step = 0
    while width >= 2 * STEPS:
        width >>= 1
        step += 1
    return STEPS * step + width


@kernel(VOID, INTS, OUT_INTS)
def count_widths(widths: Column, counts: Column) -> None:
    """Add each width to the count of its bin."""
    for m in range(len(widths)):
        counts[_bin(widths[m])] += 1


@kernel(VOID, INTS, INTS, INTS, INTS, BYTES, BYTES, OUT_INTS, OUT_INTS, OUT_INTS, OUT_INTS, OUT_INTS, OUT_INTS)
def observe(
    asked_lo: Column,
    asked_hi: Column,
    lower: Column,
    upper: Column,
    modes: Column,
    differs: Column,
    part: Column,
    parts: Column,
    mismatches: Column,
    matched: Column,
    differed: Column,
    unanswered: Column,
) -> None:
    """What an answer tells about the Fingerprints asked for, own items [asked_lo, asked_hi), ascending, none empty.

    part[j] becomes the asked range of which range j of the answer is a part, or -1; parts[g] and mismatches[g] into how
    many parts asked range g was split and how many of them differ. `matched` and `differed` count the Fingerprints that
    turned out to match or differ by the bin of their width: the parts of what was split in place of the whole, that
    the one difference which is there for certain counts only once. unanswered[0] counts asked ranges that the answer
    only sums up, or cuts.
    """
    for j in range(len(upper)):
        part[j] = -1
    j = 0
    for g in range(len(asked_lo)):
        parts[g] = mismatches[g] = 0
        while j < len(upper) and upper[j] <= asked_lo[g]:
            j += 1
        place = _bin(asked_hi[g] - asked_lo[g])
        if j == len(upper) or modes[j] == SKIP:
            matched[place] += 1
        elif modes[j] == ID_LIST:
            differed[place] += 1
        elif lower[j] < asked_lo[g] or upper[j] > asked_hi[g]:
            unanswered[0] += differs[j]
        else:
            k = j
            while k < len(upper) and upper[k] <= asked_hi[g] and modes[k] == FINGERPRINT:
                part[k] = g
                parts[g] += 1
                mismatches[g] += differs[k]
                if upper[k] > lower[k]:
                    if differs[k]:
                        differed[_bin(upper[k] - lower[k])] += 1
                    else:
                        matched[_bin(upper[k] - lower[k])] += 1
                k += 1
            if k < len(upper) and k > j and upper[k - 1] < asked_hi[g] and modes[k] == FINGERPRINT:
                unanswered[0] += 1


@kernel(
    INT,
    *(WORDS, WORD_ROWS, BYTES, INTS, WORDS, WORD_ROWS, BYTES),
    *(INTS, INTS, INTS, WORDS, WORD_ROWS, BYTES),
    *(INT, INT, INT, INT),
    *(OUT_WORDS, OUT_WORD_ROWS, OUT_BYTES, OUT_BYTES, OUT_INTS, OUT_INTS, OUT_INTS),
)
def lay_out(
    lower_at: Column,
    lower_ids: Column,
    lower_lengths: Column,
    lower_index: Column,
    upper_at: Column,
    upper_ids: Column,
    upper_lengths: Column,
    buckets: Column,
    parts_lo: Column,
    parts_hi: Column,
    inner_at: Column,
    inner_ids: Column,
    inner_lengths: Column,
    most_parts: int,
    limit: int,
    size: int,
    closes: int,
    out_at: Column,
    out_ids: Column,
    out_lengths: Column,
    out_modes: Column,
    out_lo: Column,
    out_hi: Column,
    reached: Column,
) -> int:
    """Lay out ranges in as many Fingerprints as their `buckets` say, or as IdLists where those are 0; Skips between.

    Stops behind `most_parts` parts, or where the next would go beyond `limit` bytes (0 for no limit). reached[0]
    becomes the number of ranges laid out whole, reached[1] the number of parts of the one after. Returns the layout's
    ranges.

    With `closes`, what is not reached is summed up by a last range to infinity, for which room is always kept: the
    fingerprint of all own items from there on, or an empty IdList where there are none. Both are true of everything
    that they cover, so that nothing is lost by them. Before that, of a list that does not fit goes what fits; and
    where not even one id does, the first half of its range, as one Fingerprint. `parts_lo` and so on are as
    `message.split` gives them.
    """
    room: int = limit if limit > 0 else 2**62
    out = part = inner = 0
    total = 1
    last_at = np.uint64(0)
    reached[0] = reached[1] = 0
    written = 0  # own index at the last bound written
    rows = len(buckets)
    for row in range(rows):
        pieces = max(buckets[row], 1)
        mode = FINGERPRINT if buckets[row] > 0 else ID_LIST
        reached[1] = 0
        for piece in range(pieces):
            skips = False
            if piece == 0:
                if out == 0:
                    skips = lower_at[row] != 0 or lower_lengths[row] != 0
                else:
                    skips = not same_item(out_at, out_ids, out - 1, lower_at, lower_ids, row)
            skip_size = _bound_size(lower_at[row], lower_lengths[row], last_at) + 1 if skips else 0
            from_at = lower_at[row] if skips else last_at
            lo, hi = parts_lo[part], parts_hi[part]
            if piece + 1 < pieces:
                cost = _bound_size(inner_at[inner], inner_lengths[inner], from_at) + 1
            else:
                cost = _bound_size(upper_at[row], upper_lengths[row], from_at) + 1
            cost += FINGERPRINT_SIZE if mode == FINGERPRINT else varint_size(np.uint64(hi - lo)) + ID_SIZE * (hi - lo)
            kept_free = CLOSING if closes and not (row + 1 == rows and piece + 1 == pieces) else 0
            fits = total + skip_size + cost + kept_free <= room and part < most_parts
            listed = halved = 0
            if not fits:
                if not closes:
                    return out
                left = room - total - skip_size - CLOSING - WIDEST_BOUND - 1
                if mode == ID_LIST and left >= 1 + ID_SIZE:
                    listed = min((left - varint_size(np.uint64(left // ID_SIZE))) // ID_SIZE, hi - lo - 1)
                if listed <= 0 and mode == ID_LIST and left >= FINGERPRINT_SIZE:
                    halved = (hi - lo) // 2
            if skips and (fits or listed > 0 or halved > 0 or total + skip_size + CLOSING <= room):
                _copy_bound(out_at, out_ids, out_lengths, out, lower_at, lower_ids, lower_lengths, row)
                out_modes[out] = SKIP
                out_lo[out] = out_hi[out] = lower_index[row]
                written = lower_index[row]
                last_at = lower_at[row]
                total += skip_size
                out += 1
            if not fits:
                if listed > 0 or halved > 0:
                    out_lengths[out] = CUT
                    out_at[out] = 0
                    for k in range(4):
                        out_ids[out, k] = 0
                    out_modes[out] = ID_LIST if listed > 0 else FINGERPRINT
                    out_lo[out] = lo
                    written = out_hi[out] = lo + (listed if listed > 0 else halved)
                    out += 1
                mode = ID_LIST if written == size else FINGERPRINT
                return _close(out, mode, written, size, out_at, out_ids, out_lengths, out_modes, out_lo, out_hi)
            if piece + 1 < pieces:
                _copy_bound(out_at, out_ids, out_lengths, out, inner_at, inner_ids, inner_lengths, inner)
                inner += 1
            else:
                _copy_bound(out_at, out_ids, out_lengths, out, upper_at, upper_ids, upper_lengths, row)
            out_modes[out] = mode
            out_lo[out], out_hi[out] = lo, hi
            written = hi
            last_at = out_at[out]
            total += cost
            out += 1
            part += 1
            reached[1] += 1
        reached[0], reached[1] = row + 1, 0
    return out
