"""The reference's algorithm in plain Python: the second oracle of these tests, proven by test_model.py.

It walks a message range by range, with big integers, hashlib, lists and bisect. It speaks in one of two ways,
which differ only where a frame is full at a mismatched Fingerprint range:

- ``lossy=True``: as the C++ reference does, byte for byte, though a few runs then end with needs missing;
- ``lossy=False``: with the two closing rules of design.md, which lose nothing. This is what negvec must send.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from hashlib import sha256
from itertools import accumulate

VERSION, VERSIONS = 0x61, range(0x60, 0x70)
SKIP, FINGERPRINT, ID_LIST = range(3)
INFINITY = 2**64 - 1
BUCKETS = 16
CLOSING_ROOM = 200  # bytes of every frame kept free for the range that closes it

Item = tuple[int, bytes]
Bound = tuple[int, bytes]  # an id prefix needs no padding: among whole ids it sorts as if zero-padded
END: Bound = (INFINITY, b"")


class Model:
    """One side of a reconciliation: the initiator once `initiate` was called, the responder otherwise."""

    def __init__(self, items: Iterable[Item], frame_size_limit: int = 0, lossy: bool = True) -> None:
        self.items = sorted(set(items))
        self.sums = [0, *accumulate(int.from_bytes(id, "little") for _, id in self.items)]
        self.frame_size_limit = frame_size_limit
        self.lossy = lossy
        self.initiator = False
        if any(not 0 <= created_at < INFINITY or len(id) != 32 for created_at, id in self.items):
            raise ValueError("an item is a created_at below 2^64-1 and an id of 32 bytes")
        if 0 != frame_size_limit < 4096:
            raise ValueError("a frame size limit is 0, for none, or at least 4096")

    def initiate(self) -> bytes:
        self.initiator = True
        out = Writer()
        self.split(out, 0, len(self.items), END)
        return bytes(out.message)

    def reconcile(self, message: bytes) -> tuple[bytes | None, list[bytes], list[bytes]]:
        """Answer with our message, None when the initiator is done; and what was learnt of have and need."""
        have: list[bytes] = []
        need: list[bytes] = []
        query, out = Reader(message), Writer()
        version = query.take(1)[0]
        if version not in VERSIONS or (version != VERSION and self.initiator):
            raise ValueError(f"version byte {version:#x}")
        if version != VERSION:
            return bytes([VERSION]), have, need

        lower = 0  # where the range at hand begins, and ...
        written = 0  # ... where the last range of our own message ends
        while not query.at_end():
            bound, mode = query.bound(), query.varint()
            upper = bisect_left(self.items, bound, lo=lower)
            if mode == SKIP:
                out.pending_skip = bound
            elif mode == FINGERPRINT:
                theirs, before = query.take(16), out.mark()
                if theirs == self.fingerprint(lower, upper):
                    out.pending_skip = bound
                else:
                    self.split(out, lower, upper, bound)
                    if self.is_full(len(out.message)):
                        out.rewind(*before)
                        self.close_unsplit(out, lower, upper, written, theirs)
                        break
            elif mode == ID_LIST:
                ids = query.take(32 * query.varint())
                if self.initiator:
                    theirs_only = dict.fromkeys(ids[k : k + 32] for k in range(0, len(ids), 32))
                    for _, id in self.items[lower:upper]:
                        if id in theirs_only:
                            del theirs_only[id]
                        else:
                            have.append(id)
                    need.extend(theirs_only)
                    out.pending_skip = bound
                else:
                    upper = self.list_ids(out, lower, upper, bound)
                    if self.is_full(len(out.message)):
                        self.close(out, upper)
                        break
            else:
                raise ValueError(f"mode {mode}")
            lower = upper
            if out.pending_skip is None:
                written = upper

        done = self.initiator and len(out.message) == 1
        return None if done else bytes(out.message), have, need

    def split(self, out: Writer, lower: int, upper: int, bound: Bound) -> None:
        """Write a range as an IdList when it is short, else as the Fingerprints of its buckets."""
        if upper - lower < 2 * BUCKETS:
            out.id_list(bound, self.items[lower:upper])
            return
        size, larger = divmod(upper - lower, BUCKETS)
        for bucket in range(BUCKETS):
            end = lower + size + (bucket < larger)
            end_bound = bound if end == upper else minimal_bound(self.items[end - 1], self.items[end])
            out.range(end_bound, FINGERPRINT, self.fingerprint(lower, end))
            lower = end

    def list_ids(self, out: Writer, lower: int, upper: int, bound: Bound) -> int:
        """Answer an IdList with ours, cut at the item where the frame is full; return where the list ends."""
        finished = len(out.message)
        for index in range(lower, upper):
            if self.is_full(finished + 32 * (index - lower)):
                bound, upper = self.items[index], index
                break
        out.id_list(bound, self.items[lower:upper])
        return upper

    def close_unsplit(self, out: Writer, lower: int, upper: int, written: int, theirs: bytes) -> None:
        """End a message that has no room for the split of a range whose fingerprint is `theirs`, not ours."""
        if self.lossy:
            self.close(out, upper)
        elif lower == len(self.items):  # rule 1: that we hold nothing from here on is the whole answer
            out.id_list(END, [])
        else:  # rule 2: a peer that holds nothing here would read the fingerprint of nothing as agreement
            self.close(out, written if theirs == self.fingerprint(0, 0) else upper)

    def close(self, out: Writer, start: int) -> None:
        """End a full message with one Fingerprint to infinity, of the items from `start` on."""
        out.pending_skip = None
        out.range(END, FINGERPRINT, self.fingerprint(start, len(self.items)))

    def is_full(self, size: int) -> bool:
        return self.frame_size_limit != 0 and size > self.frame_size_limit - CLOSING_ROOM

    def fingerprint(self, lower: int, upper: int) -> bytes:
        total = (self.sums[upper] - self.sums[lower]) % 2**256
        return sha256(total.to_bytes(32, "little") + varint(upper - lower)).digest()[:16]


def minimal_bound(last: Item, first: Item) -> Bound:
    """The shortest bound between `last`, the end of one range, and `first`, the start of the next."""
    if last[0] != first[0]:
        return first[0], b""
    shared = next(k for k in range(32) if last[1][k] != first[1][k])
    return first[0], first[1][: shared + 1]


def varint(value: int) -> bytes:
    digits = [value & 127]
    while value := value >> 7:
        digits.append(value & 127 | 128)
    return bytes(reversed(digits))


class Reader:
    """A message being read; whatever is missing or too large is a ValueError."""

    def __init__(self, message: bytes) -> None:
        self.message, self.position = message, 0
        self.timestamp = 0  # of the last bound, from which the next one's is counted

    def at_end(self) -> bool:
        return self.position == len(self.message)

    def take(self, size: int) -> bytes:
        start, self.position = self.position, self.position + size
        if self.position > len(self.message):
            raise ValueError(f"{size} bytes at {start} run past the end of the message")
        return self.message[start : self.position]

    def varint(self) -> int:
        value, digit = 0, 128
        while digit & 128:
            digit = self.take(1)[0]
            value = value << 7 | digit & 127
            if value > INFINITY:
                raise ValueError("a varint over 64 bits")
        return value

    def bound(self) -> Bound:
        encoded = self.varint()
        self.timestamp = min(self.timestamp + encoded - 1, INFINITY) if encoded else INFINITY
        length = self.varint()
        if length > 32:
            raise ValueError(f"an id prefix of {length} bytes")
        return self.timestamp, self.take(length)


class Writer:
    """A message being written; a Skip stays pending until a range follows, and is dropped if none does."""

    def __init__(self) -> None:
        self.message, self.timestamp = bytearray([VERSION]), 0
        self.pending_skip: Bound | None = None

    def range(self, bound: Bound, mode: int, payload: bytes) -> None:
        if self.pending_skip is not None:
            skipped, self.pending_skip = self.pending_skip, None
            self.range(skipped, SKIP, b"")
        timestamp, prefix = bound
        encoded = timestamp - self.timestamp + 1 if timestamp < INFINITY else 0
        self.message += varint(encoded) + varint(len(prefix)) + prefix + varint(mode) + payload
        self.timestamp = timestamp

    def id_list(self, bound: Bound, items: Sequence[Item]) -> None:
        self.range(bound, ID_LIST, varint(len(items)) + b"".join(id for _, id in items))

    def mark(self) -> tuple[int, int, Bound | None]:
        return len(self.message), self.timestamp, self.pending_skip

    def rewind(self, size: int, timestamp: int, pending_skip: Bound | None) -> None:
        del self.message[size:]
        self.timestamp, self.pending_skip = timestamp, pending_skip
