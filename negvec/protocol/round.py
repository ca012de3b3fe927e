"""One round: a peer's message in, our answer out, in a fixed number of array steps.

decode       the message as columns
locate       every bound's index, one batched search
compare      every Fingerprint range's own fingerprint, one batch, against theirs; every IdList against our ids
plan         which ranges to pass over, to split, to list; every new sub-range, up to the frame size limit
fingerprint  every sub-range, one batch
encode       one buffer, written once
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from negvec import kernels
from negvec.errors import DamagedStorage
from negvec.items import ID_SIZE
from negvec.protocol.codec import (
    FINGERPRINT,
    ID_LIST,
    INFINITY,
    SKIP,
    SMALLEST_RANGE,
    VERSION,
    Decoder,
    Layout,
    Ranges,
    encode,
    join,
)
from negvec.protocol.findings import Findings
from negvec.protocol.policy import SplitPolicy
from negvec.storage.seam import Bounds, Bytes, Indices, Storage

Watch = Callable[[str], None]  # told the name of each stage as it ends

NOTHING = np.frombuffer(hashlib.sha256(bytes(33)).digest()[:16], "<u8")
"""The fingerprint of no items: of a sum and a count of zero."""

FIRST_BATCH = 512  # ranges

_CUT = 255  # prefix length that marks the bound of a cut IdList; see kernels.message.plan


_EMPTY = Layout(
    Bounds(np.empty(0, np.uint64), np.empty((0, 32), np.uint8), np.empty(0, np.uint8)),
    *(np.empty(0, np.uint8), np.empty(0, np.int64), np.empty(0, np.int64)),
)


class _Rows(NamedTuple):
    """The peer's ranges, a row each, as they stand to our own items."""

    lower: Indices
    upper: Indices
    actions: Bytes  # what each calls for: PASS, SPLIT, LIST or ANSWER
    empty: Bytes  # whether its fingerprint is that of nothing
    asked: Indices  # the rows to SPLIT or LIST, in order
    buckets: Indices  # and into how many ranges each; 0 for LIST

    def least_answer(self) -> int:
        """The least bytes that answering all of them can take."""
        listed = self.actions >= kernels.message.LIST
        ids = int((self.upper - self.lower)[listed].sum())
        return ids * ID_SIZE + int(self.buckets.sum()) * SMALLEST_RANGE


def _unwatched(stage: str) -> None:
    pass


class Round:
    """What stays the same over the rounds of one side: its storage, frame size limit and split policy."""

    def __init__(self, storage: Storage, limit: int, policy: SplitPolicy, watch: Watch | None) -> None:
        self.storage = storage
        self.limit = limit
        self.policy = policy
        self.watch = watch or _unwatched

    def first_message(self) -> bytes:
        """The whole set, split: what an initiator begins with."""
        size = len(self.storage)
        everything = Bounds(np.full(1, INFINITY, np.uint64), np.zeros((1, 32), np.uint8), np.zeros(1, np.uint8))
        lo, hi = np.zeros(1, np.int64), np.full(1, size)
        buckets = self._buckets(lo, hi)
        actions = np.where(buckets > 0, kernels.message.SPLIT, kernels.message.LIST).astype(np.uint8)
        layout, _ = self._plan(everything, _Rows(lo, hi, actions, np.zeros(1, np.uint8), lo, buckets), limit=0)
        return self._write(layout)

    def answer(self, message: Bytes, findings: Findings | None) -> tuple[bytes, int]:
        """Answer a message: as the initiator that collects `findings`, or else as responder.

        Returns the answer and, for the initiator, how far its items are settled: the own index at which the answer's
        first open range begins, or the size of the set.
        """
        ranges, rows = self._examine(message, kernels.message.PASS if findings else kernels.message.ANSWER)
        if not rows.actions.any():
            layout, reached = _EMPTY, len(rows.actions)
        else:
            layout, reached = self._plan(ranges.bounds, rows, self.limit)
        if findings is not None:
            listed = np.flatnonzero(ranges.modes[:reached] == ID_LIST)
            if len(listed):
                findings.compare(message, ranges, listed, rows.lower[listed], rows.upper[listed])
                self.watch("compare")
        opened = layout.lo[layout.modes != SKIP]
        return self._write(layout), int(opened[0]) if len(opened) else len(self.storage)

    def _examine(self, message: Bytes, on_list: int) -> tuple[Ranges, _Rows]:
        """Read, locate and compare the peer's ranges; under a limit only as many as the answer may have room for.

        A peer without a limit may ask far more than one limited frame can answer. Its ranges are gone through in
        batches that double, until what they call for fills the frame for certain; what follows is left unread, as the
        reference leaves it.
        """
        decoder = Decoder(message)
        batch = FIRST_BATCH if self.limit else len(message) // SMALLEST_RANGE + 1
        ranges: list[Ranges] = []
        rows: list[_Rows] = []
        start = least = at = 0
        while True:
            ranges.append(decoder.read(batch))
            self.watch("decode")
            rows.append(self._examine_batch(message, ranges[-1], start, at, on_list))
            if decoder.done:
                break
            least += rows[-1].least_answer()
            if self.limit and least > self.limit:
                break
            start, batch, at = start + len(rows[-1].upper), 2 * batch, int(rows[-1].upper[-1])
        return join(ranges), rows[0] if len(rows) == 1 else _Rows(*map(np.concatenate, zip(*rows, strict=True)))

    def _examine_batch(self, message: Bytes, ranges: Ranges, start: int, at: int, on_list: int) -> _Rows:
        """The ranges of a batch, whose first is row `start` and begins at the own index `at`."""
        modes = ranges.modes
        upper = self.storage.lower_bounds(ranges.bounds.created_at, ranges.bounds.ids)
        lower = np.empty_like(upper)
        lower[:1] = at
        lower[1:] = upper[:-1]
        if (upper < lower).any():  # the decoder has seen to it that bounds ascend
            raise DamagedStorage("the storage's items are out of order: it is damaged, or was changed meanwhile")
        self.watch("locate")
        actions = np.zeros(len(modes), np.uint8)
        if on_list:
            actions[modes == ID_LIST] = on_list
        empty = np.zeros(len(modes), np.uint8)
        asked = np.flatnonzero(modes == FINGERPRINT)
        lo, hi = lower[asked], upper[asked]
        own = self.storage.fingerprints(lo, hi)
        differs, nothing = np.empty(len(asked), np.bool_), np.empty(len(asked), np.uint8)
        kernels.message.compare(
            *(message, ranges.payloads[asked], own.view("<u8"), NOTHING, differs.view(np.uint8), nothing)
        )
        empty[asked] = nothing
        self.watch("fingerprint")
        asked, lo, hi = asked[differs], lo[differs], hi[differs]
        buckets = self._buckets(lo, hi)
        actions[asked] = np.where(buckets > 0, kernels.message.SPLIT, kernels.message.LIST)
        return _Rows(lower, upper, actions, empty, asked + start, buckets)

    def _buckets(self, lo: Indices, hi: Indices) -> Indices:
        """Ask the policy, and hold it to what the protocol needs (see `SplitPolicy.buckets`)."""
        buckets = self.policy.buckets(lo, hi)
        return np.where(buckets < 2, 0, np.minimum(buckets, hi - lo)).astype(np.int64, copy=False)

    def _plan(self, bounds: Bounds, rows: _Rows, limit: int) -> tuple[Layout, int]:
        """Lay out the answer; returns it and how many of the peer's ranges it goes through."""
        lo, hi = rows.lower[rows.asked], rows.upper[rows.asked]
        parts = int(np.maximum(rows.buckets, 1).sum())
        parts_lo, parts_hi = np.empty(parts, np.int64), np.empty(parts, np.int64)
        inner = np.empty(parts - len(lo), np.int64)
        kernels.message.split(lo, hi, rows.buckets, parts_lo, parts_hi, inner)
        cuts = self.storage.minimal_bounds(inner)

        most = 2 * len(rows.actions) + parts + 2
        out = Layout(
            Bounds(np.empty(most, np.uint64), np.empty((most, 32), np.uint8), np.empty(most, np.uint8)),
            np.empty(most, np.uint8),
            np.empty(most, np.int64),
            np.empty(most, np.int64),
        )
        reached = np.zeros(1, np.int64)
        peers, own, new = bounds, cuts, out.bounds
        m: int = kernels.message.plan(
            *(rows.actions, rows.empty, rows.lower, rows.upper),
            *(peers.created_at, peers.ids.view("<u8"), peers.lengths),
            *(rows.buckets, parts_lo, parts_hi, own.created_at, own.ids.view("<u8"), own.lengths),
            *(new.created_at, new.ids.view("<u8"), new.lengths, out.modes, out.lo, out.hi),
            *(len(self.storage), limit, reached),
        )
        kept = Bounds(out.bounds.created_at[:m], out.bounds.ids[:m], out.bounds.lengths[:m])
        layout = Layout(kept, out.modes[:m], out.lo[:m], out.hi[:m])
        self._fill_cut(layout)
        self.watch("plan")
        return layout, int(reached[0])

    def _fill_cut(self, layout: Layout) -> None:
        """An IdList cut at the limit is the range before the last; its bound is the first item left out, whole."""
        created_at, ids, lengths = layout.bounds
        if len(lengths) >= 2 and lengths[-2] == _CUT:
            cut = int(layout.hi[-2])
            (item,) = self.storage.items(cut, cut + 1)
            created_at[-2], ids[-2], lengths[-2] = item["created_at"], item["id"], 32

    def _write(self, layout: Layout) -> bytes:
        if not len(layout.modes):
            return bytes([VERSION])
        hashed = layout.modes == FINGERPRINT
        fingerprints = self.storage.fingerprints(layout.lo[hashed], layout.hi[hashed])
        self.watch("fingerprint")
        listed = layout.modes == ID_LIST
        message = encode(layout, fingerprints, self.storage.id_lists(layout.lo[listed], layout.hi[listed]))
        self.watch("encode")
        return message


def as_bytes(message: Any) -> Bytes:
    """A message as (n,) uint8, without a copy.

    Raises
    ------
    TypeError
        Not bytes.
    """
    if isinstance(message, str):
        raise TypeError("a message is bytes; use bytes.fromhex(message) for hex")
    try:
        return np.frombuffer(message, np.uint8)
    except (BufferError, ValueError) as error:
        raise TypeError(f"a message is bytes, contiguous in memory: {error}") from None
