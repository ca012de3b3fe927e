"""One round: a peer's message in, our answer out, in a fixed number of array steps.

decode       the message as columns
locate       every bound's index, one batched search
compare      every Fingerprint range's own fingerprint, one batch, against theirs; every IdList against our ids
plan         which ranges to pass over, to split, to list; every new sub-range, up to the frame size limit
fingerprint  every sub-range, one batch
encode       one buffer, written once
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from negvec import kernels
from negvec.items import ID_SIZE
from negvec.protocol.codec import ID_LIST, SKIP, SMALLEST_RANGE, Decoder, Layout, Ranges, join
from negvec.protocol.findings import Findings
from negvec.protocol.policy import SplitPolicy
from negvec.protocol.stages import CUT, EMPTY, FIRST_BATCH, Heard, Watch, Watched, blank, everything, first_rows
from negvec.storage.seam import Bounds, Bytes, Indices, Storage


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


class Round(Watched):
    """What stays the same over the rounds of one side: its storage, frame size limit and split policy."""

    def __init__(self, storage: Storage, limit: int, policy: SplitPolicy, watch: Watch | None) -> None:
        super().__init__(storage, watch)
        self.limit = limit
        self.policy = policy

    def first_message(self) -> bytes:
        """The whole set, split: what an initiator begins with."""
        self.begin(True)
        lo, hi = np.zeros(1, np.int64), np.full(1, len(self.storage))
        buckets = self._buckets(lo, hi)
        actions = np.where(buckets > 0, kernels.message.SPLIT, kernels.message.LIST).astype(np.uint8)
        layout, _ = self._plan(everything(), _Rows(lo, hi, actions, np.zeros(1, np.uint8), lo, buckets), limit=0)
        message = self.write(layout)
        self.show_said(True, message, layout)
        return message

    def answer(self, message: Bytes, findings: Findings | None) -> tuple[bytes, int]:
        """Answer a message: as the initiator that collects `findings`, or else as responder.

        Returns the answer and, for the initiator, how far its items are settled: the own index at which the answer's
        first open range begins, or the size of the set.
        """
        self.begin(findings is not None)
        ranges, rows = self._examine(message, kernels.message.PASS if findings else kernels.message.ANSWER)
        if not rows.actions.any():
            layout, reached = EMPTY, len(rows.actions)
        else:
            layout, reached = self._plan(ranges.bounds, rows, self.limit)
        if findings is not None:
            listed = np.flatnonzero(ranges.modes[:reached] == ID_LIST)
            if len(listed):
                findings.compare(message, ranges, listed, rows.lower[listed], rows.upper[listed])
                self.watch("compare")
        opened = layout.lo[layout.modes != SKIP]
        answer = self.write(layout)
        self.show_said(findings is not None, answer, layout)
        return answer, int(opened[0]) if len(opened) else len(self.storage)

    def _examine(self, message: Bytes, on_list: int) -> tuple[Ranges, _Rows]:
        """Read, locate and compare the peer's ranges; under a limit only as many as the answer may have room for.

        A peer without a limit may ask far more than one limited frame can answer. Its ranges are gone through in
        batches that double, until what they call for fills the frame for certain; what follows is left unread, as the
        reference leaves it.
        """
        decoder = Decoder(message)
        batch = FIRST_BATCH if self.limit else len(message) // SMALLEST_RANGE + 1
        batches: list[Heard] = []
        rows: list[_Rows] = []
        start = least = at = 0
        while True:
            ranges = decoder.read(batch)
            self.watch("decode")
            batches.append(self.examine(message, ranges, at))
            rows.append(self._ask(batches[-1], start, on_list))
            if decoder.done:
                break
            least += rows[-1].least_answer()
            if self.limit and least > self.limit:
                break
            start, batch, at = start + len(rows[-1].upper), 2 * batch, int(rows[-1].upper[-1])
        self.show_heard(on_list == kernels.message.PASS, message, batches)
        ranges = join([heard.ranges for heard in batches])
        return ranges, rows[0] if len(rows) == 1 else _Rows(*map(np.concatenate, zip(*rows, strict=True)))

    def _ask(self, heard: Heard, start: int, on_list: int) -> _Rows:
        """Ask the policy about the ranges of a batch, whose first is row `start`."""
        actions = np.zeros(len(heard.upper), np.uint8)
        if on_list:
            actions[heard.ranges.modes == ID_LIST] = on_list
        asked = np.flatnonzero(heard.differs)
        buckets = self._buckets(heard.lower[asked], heard.upper[asked])
        actions[asked] = np.where(buckets > 0, kernels.message.SPLIT, kernels.message.LIST)
        return _Rows(heard.lower, heard.upper, actions, heard.empty, asked + start, buckets)

    def _buckets(self, lo: Indices, hi: Indices) -> Indices:
        """Ask the policy, and hold it to what the protocol needs (see `SplitPolicy.buckets`)."""
        buckets = self.policy.buckets(lo, hi)
        return np.where(buckets < 2, 0, np.minimum(buckets, hi - lo)).astype(np.int64, copy=False)

    def _plan(self, bounds: Bounds, rows: _Rows, limit: int) -> tuple[Layout, int]:
        """Lay out the answer; returns it and how many of the peer's ranges it goes through."""
        parts = self.split(rows.lower[rows.asked], rows.upper[rows.asked], rows.buckets)
        out = blank(2 * len(rows.actions) + len(parts.lo) + 2)
        reached = np.zeros(1, np.int64)
        peers, own, new = bounds, parts.cuts, out.bounds
        m: int = kernels.message.plan(
            *(rows.actions, rows.empty, rows.lower, rows.upper),
            *(peers.created_at, peers.ids.view("<u8"), peers.lengths),
            *(rows.buckets, parts.lo, parts.hi, own.created_at, own.ids.view("<u8"), own.lengths),
            *(new.created_at, new.ids.view("<u8"), new.lengths, out.modes, out.lo, out.hi),
            *(len(self.storage), limit, reached),
        )
        layout = first_rows(out, m)
        self._fill_cut(layout)
        self.watch("plan")
        return layout, int(reached[0])

    def _fill_cut(self, layout: Layout) -> None:
        """An IdList cut at the limit is the range before the last; its bound is the first item left out, whole."""
        created_at, ids, lengths = layout.bounds
        if len(lengths) >= 2 and lengths[-2] == CUT:
            cut = int(layout.hi[-2])
            (item,) = self.storage.items(cut, cut + 1)
            created_at[-2], ids[-2], lengths[-2] = item["created_at"], item["id"], 32


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
