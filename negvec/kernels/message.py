"""Messages as columns: reading one, deciding what goes into the answer, and writing it.

A message is a version byte and ranges (specification, section Message). As columns it is, for each range: the upper
bound (timestamp, zero-padded id prefix, prefix length), the mode, where its payload begins and how many ids it lists.
The same columns, with own index pairs in place of payload offsets, describe the message to be written.
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
    Word,
    device,
    kernel,
)
from negvec.kernels.words import byte_swap, copy_bytes, copy_row, load_word, store_word, varint_size

SKIP, FINGERPRINT, ID_LIST = 0, 1, 2  # specification, section Range
INFINITY = np.uint64(2**64 - 1)
ID_SIZE, FINGERPRINT_SIZE = 32, 16
RESERVE = 200  # bytes that the reference keeps free in a limited frame for the bounds that close it

# Why a message can't be read; the texts are negvec.protocol.codec.REASONS.
ENDS_EARLY, VARINT_TOO_LARGE, PREFIX_TOO_LONG, UNKNOWN_MODE, LIST_TOO_LONG, BOUND_FALLS = 1, 2, 3, 4, 5, 6

# What a range of a peer's message calls for. LIST and SPLIT answer a Fingerprint that is not ours, ANSWER an IdList.
PASS, SPLIT, LIST, ANSWER = 0, 1, 2, 3


@device
def _read_varint(message: Column, at: Word) -> tuple[Word, int]:
    """The varint at byte `at` and where it ends; or the negated reason why there is none."""
    value = np.uint64(0)
    for i in range(10):
        if at + i >= len(message):
            return value, -ENDS_EARLY
        if value >> np.uint64(57):
            return value, -VARINT_TOO_LARGE
        byte = np.uint64(message[at + i])
        value = value << np.uint64(7) | byte & np.uint64(0x7F)
        if byte < np.uint64(0x80):
            return value, at + i + 1
    return value, -VARINT_TOO_LARGE


@device
def _load_prefix(message: Column, at: Word, length: Word) -> Word:
    """The next bytes of an id prefix, zero-padded to a word; none where `length` is not positive."""
    if length <= 0:
        return np.uint64(0)
    if at + 8 <= len(message):
        return load_word(message, at) & (~np.uint64(0) >> np.uint64(64 - 8 * length))
    word = np.uint64(0)
    for i in range(length):
        word |= np.uint64(message[at + i]) << np.uint64(8 * i)
    return word


@kernel(INT, BYTES, OUT_WORDS, OUT_WORD_ROWS, OUT_BYTES, OUT_BYTES, OUT_INTS, OUT_INTS, OUT_WORDS, OUT_INTS)
def decode(
    message: Column,
    bound_at: Column,
    bound_ids: Column,
    lengths: Column,
    modes: Column,
    payloads: Column,
    counts: Column,
    state: Column,
    fault: Column,
) -> int:
    """Read as many of the next ranges as the columns hold; returns how many there were.

    `state` is where to go on: the byte offset, 1 at first, and the timestamp and prefix of the bound before. `fault`
    becomes (0, 0), or the reason why the message can't be read and the byte offset where that showed. O(ranges): ids
    are stepped over.
    """
    fault[0] = fault[1] = 0
    at, m = np.int64(state[0]), 0
    previous_at, before0, before1, before2, before3 = state[1], state[2], state[3], state[4], state[5]
    while at < len(message) and m < len(bound_at):
        fault[1] = at
        offset, end = _read_varint(message, at)
        if end < 0:
            fault[0] = -end
            return m
        # Timestamps are deltas plus one, 0 is infinity; what runs past infinity is infinity.
        timestamp = INFINITY if offset == 0 else previous_at + (offset - np.uint64(1))
        if timestamp < previous_at:
            timestamp = INFINITY
        at = fault[1] = end
        wide, end = _read_varint(message, at)
        if end < 0:
            fault[0] = -end
            return m
        if wide > np.uint64(ID_SIZE):
            fault[0] = PREFIX_TOO_LONG
            return m
        length = np.int64(wide)
        at = end
        if at + length > len(message):
            fault[0], fault[1] = ENDS_EARLY, at
            return m
        prefix0 = prefix1 = prefix2 = prefix3 = np.uint64(0)
        if length > 0:
            prefix0 = _load_prefix(message, at, min(length, 8))
            if length > 8:
                prefix1 = _load_prefix(message, at + 8, min(length - 8, 8))
                prefix2 = _load_prefix(message, at + 16, min(length - 16, 8))
                prefix3 = _load_prefix(message, at + 24, length - 24)
        if timestamp == previous_at and timestamp != INFINITY:
            differing, now = before0, prefix0
            if before0 == prefix0:
                differing, now = before1, prefix1
                if before1 == prefix1:
                    differing, now = before2, prefix2
                    if before2 == prefix2:
                        differing, now = before3, prefix3
            if byte_swap(now) < byte_swap(differing):
                fault[0], fault[1] = BOUND_FALLS, at
                return m
        previous_at, before0, before1, before2, before3 = timestamp, prefix0, prefix1, prefix2, prefix3
        at += length

        fault[1] = at
        mode, end = _read_varint(message, at)
        if end < 0:
            fault[0] = -end
            return m
        if mode > np.uint64(ID_LIST):
            fault[0] = UNKNOWN_MODE
            return m
        at = fault[1] = end
        count = np.uint64(0)
        if mode == np.uint64(FINGERPRINT):
            if len(message) - at < FINGERPRINT_SIZE:
                fault[0] = ENDS_EARLY
                return m
        elif mode == np.uint64(ID_LIST):
            count, end = _read_varint(message, at)
            if end < 0:
                fault[0] = -end
                return m
            if count > np.uint64((len(message) - end) // ID_SIZE):
                fault[0] = LIST_TOO_LONG
                return m
            at = end
        bound_at[m] = timestamp
        bound_ids[m, 0] = prefix0
        bound_ids[m, 1] = prefix1
        bound_ids[m, 2] = prefix2
        bound_ids[m, 3] = prefix3
        lengths[m] = length
        modes[m] = mode
        payloads[m] = at
        counts[m] = count
        m += 1
        at += np.int64(count) * ID_SIZE + (FINGERPRINT_SIZE if mode == np.uint64(FINGERPRINT) else 0)
    fault[1] = 0
    state[0], state[1], state[2], state[3] = np.uint64(at), previous_at, before0, before1
    state[4], state[5] = before2, before3
    return m


@kernel(VOID, BYTES, INTS, WORD_ROWS, WORDS, OUT_BYTES, OUT_BYTES)
def compare(message: Column, payloads: Column, own: Column, nothing: Column, differs: Column, empty: Column) -> None:
    """Set differs[m] where the fingerprint at byte payloads[m] is not own[m], empty[m] where it is that of nothing."""
    for m in range(len(payloads)):
        first, second = load_word(message, payloads[m]), load_word(message, payloads[m] + 8)
        differs[m] = first != own[m, 0] or second != own[m, 1]
        empty[m] = first == nothing[0] and second == nothing[1]


@kernel(VOID, INTS, INTS, INTS, OUT_INTS, OUT_INTS, OUT_INTS)
def split(lo: Column, hi: Column, buckets: Column, parts_lo: Column, parts_hi: Column, inner: Column) -> None:
    """Cut each range [lo, hi) into its number of buckets, as even as can be, the larger ones first.

    A range with 0 buckets stays one part. `inner` gets the index of every cut inside a range.
    """
    part = cut = 0
    for m in range(len(lo)):
        pieces = max(buckets[m], 1)
        width, larger = (hi[m] - lo[m]) // pieces, (hi[m] - lo[m]) % pieces
        at = lo[m]
        for piece in range(pieces):
            parts_lo[part] = at
            at += width + (1 if piece < larger else 0)
            parts_hi[part] = at
            part += 1
            if piece + 1 < pieces:
                inner[cut] = at
                cut += 1


@device
def _bound_size(at: Word, length: int, last_at: Word) -> int:
    """Bytes of an encoded bound whose predecessor has the timestamp `last_at`."""
    delta = np.uint64(0) if at == INFINITY else at - last_at + np.uint64(1)
    return varint_size(delta) + 1 + length


@device
def _close(
    out: int,
    mode: int,
    lo: int,
    hi: int,
    out_at: Column,
    out_ids: Column,
    out_lengths: Column,
    out_modes: Column,
    out_lo: Column,
    out_hi: Column,
) -> int:
    """Lay out a last range, to infinity; returns the number of ranges."""
    out_at[out] = INFINITY
    for k in range(4):
        out_ids[out, k] = 0
    out_lengths[out] = 0
    out_modes[out] = mode
    out_lo[out], out_hi[out] = lo, hi
    return out + 1


@kernel(
    INT,
    *(BYTES, BYTES, INTS, INTS),
    *(WORDS, WORD_ROWS, BYTES),
    *(INTS, INTS, INTS, WORDS, WORD_ROWS, BYTES),
    *(OUT_WORDS, OUT_WORD_ROWS, OUT_BYTES, OUT_BYTES, OUT_INTS, OUT_INTS),
    *(INT, INT, OUT_INTS),
)
def plan(
    actions: Column,
    empty: Column,
    lower: Column,
    upper: Column,
    bound_at: Column,
    bound_ids: Column,
    lengths: Column,
    buckets: Column,
    parts_lo: Column,
    parts_hi: Column,
    inner_at: Column,
    inner_ids: Column,
    inner_lengths: Column,
    out_at: Column,
    out_ids: Column,
    out_lengths: Column,
    out_modes: Column,
    out_lo: Column,
    out_hi: Column,
    size: int,
    limit: int,
    reached: Column,
) -> int:
    """Lay out the answer, range by range, until the peer's ranges or the frame are at their end; returns its ranges.

    reached[0] becomes the number of the peer's ranges that were gone through; the rest was closed with one range.

    `buckets`, `parts_lo` and `parts_hi` go through the ranges to SPLIT or LIST, in order, and the `inner` bounds
    through their cuts. A last range whose upper bound is an own item still to be filled in is marked by an
    `out_lengths` of 255: it is the IdList that was cut at the frame size limit, before item `out_hi`.

    The rules at the limit are the reference's, but for the two of design.md, "Bytes on the wire".
    """
    room = limit - RESERVE if limit > 0 else np.int64(2**62)
    out = 0  # ranges laid out
    total = 1  # and their bytes; the version byte is the first
    last_at = np.uint64(0)  # the timestamp that the next bound's delta counts from
    pending = False  # whether ranges were passed over since the last bound written
    written = 0  # the own index at that bound
    row = part = inner = 0
    for m in range(len(actions)):
        reached[0] = m + 1
        action = actions[m]
        if action == PASS:
            pending = True
            continue
        keep_out, keep_total = out, total
        if pending:
            out_at[out] = bound_at[m - 1]
            copy_row(out_ids, out, bound_ids, m - 1)
            out_lengths[out] = lengths[m - 1]
            out_modes[out] = SKIP
            out_lo[out] = out_hi[out] = lower[m]
            total += _bound_size(bound_at[m - 1], lengths[m - 1], last_at) + 1
            last_at = bound_at[m - 1]
            out += 1
        pieces, listed, mode = 1, upper[m] - lower[m], ID_LIST
        cut = False
        if action == ANSWER:
            fitting = (room - keep_total) // ID_SIZE + 1
            cut = fitting < listed
            listed = min(fitting, listed)
            out_lo[out], out_hi[out] = lower[m], lower[m] + listed
        else:
            if action == SPLIT:
                pieces, mode = buckets[row], FINGERPRINT
            row += 1
        for piece in range(pieces):
            if action != ANSWER:
                out_lo[out], out_hi[out] = parts_lo[part], parts_hi[part]
                part += 1
            if piece + 1 < pieces:
                out_at[out] = inner_at[inner]
                copy_row(out_ids, out, inner_ids, inner)
                out_lengths[out] = inner_lengths[inner]
                inner += 1
            else:
                out_at[out] = bound_at[m]
                copy_row(out_ids, out, bound_ids, m)
                out_lengths[out] = 255 if cut else lengths[m]
            out_modes[out] = mode
            total += _bound_size(out_at[out], out_lengths[out], last_at) + 1
            total += FINGERPRINT_SIZE if mode == FINGERPRINT else varint_size(np.uint64(listed)) + ID_SIZE * listed
            last_at = out_at[out]
            out += 1
        rest = upper[m]
        if cut:
            rest = lower[m] + listed
        elif total <= room:
            written = upper[m]
            pending = False
            continue
        elif action != ANSWER:
            # The frame is full at a mismatched Fingerprint range: its own answer is left out.
            out = keep_out
            if lower[m] == size:  # rule 1: all that is left here is nothing; say so
                out += pending
                return _close(out, ID_LIST, size, size, out_at, out_ids, out_lengths, out_modes, out_lo, out_hi)
            if empty[m]:  # rule 2: the peer must not read the fingerprint of nothing as agreement
                rest = written
        return _close(out, FINGERPRINT, rest, size, out_at, out_ids, out_lengths, out_modes, out_lo, out_hi)
    return out


@kernel(INT, WORDS, BYTES, BYTES, INTS, INTS)
def measure(bound_at: Column, lengths: Column, modes: Column, lo: Column, hi: Column) -> int:
    """Bytes of the message."""
    total = 1
    last_at = np.uint64(0)
    for m in range(len(modes)):
        total += _bound_size(bound_at[m], lengths[m], last_at) + 1
        last_at = bound_at[m]
        if modes[m] == FINGERPRINT:
            total += FINGERPRINT_SIZE
        elif modes[m] == ID_LIST:
            total += varint_size(np.uint64(hi[m] - lo[m])) + ID_SIZE * (hi[m] - lo[m])
    return total


@device
def _write_varint(message: Column, at: int, value: Word) -> int:
    size = varint_size(value)
    for i in range(size):
        byte = (value >> np.uint64(7 * (size - 1 - i))) & np.uint64(0x7F)
        message[at + i] = byte if i + 1 == size else byte | np.uint64(0x80)
    return at + size


@kernel(VOID, WORDS, WORD_ROWS, BYTES, BYTES, INTS, INTS, WORD_ROWS, WORD_ROWS, INTS, OUT_BYTES)
def encode(
    bound_at: Column,
    bound_ids: Column,
    lengths: Column,
    modes: Column,
    lo: Column,
    hi: Column,
    fingerprints: Column,
    ids: Column,
    first: Column,
    message: Column,
) -> None:
    """Write the ranges behind the version byte of `message`, in one pass.

    `fingerprints` has a row for each Fingerprint range; IdList range j takes its ids from row first[j] of `ids` on.
    """
    at, fingerprint, id_list = 1, 0, 0
    last_at = np.uint64(0)
    for m in range(len(modes)):
        delta = np.uint64(0) if bound_at[m] == INFINITY else bound_at[m] - last_at + np.uint64(1)
        last_at = bound_at[m]
        at = _write_varint(message, at, delta)
        message[at] = lengths[m]
        at += 1
        for i in range(lengths[m]):
            message[at + i] = (bound_ids[m, i >> 3] >> np.uint64(8 * (i & 7))) & np.uint64(0xFF)
        at += lengths[m]
        message[at] = modes[m]
        at += 1
        if modes[m] == FINGERPRINT:
            store_word(message, at, fingerprints[fingerprint, 0])
            store_word(message, at + 8, fingerprints[fingerprint, 1])
            fingerprint += 1
            at += FINGERPRINT_SIZE
        elif modes[m] == ID_LIST:
            count = hi[m] - lo[m]
            at = _write_varint(message, at, np.uint64(count))
            copy_bytes(message, at, ids, first[id_list] * ID_SIZE, count * ID_SIZE)
            id_list += 1
            at += count * ID_SIZE
