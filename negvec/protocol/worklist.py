"""A side whose policy paces itself: the initiator keeps a list of its open ranges, and asks about some of them a round.

A responder has no memory, and the initiator alone knows when it is done. So a message need not go through everything
that is open: a Skip says nothing about what it covers, as long as the initiator keeps that in mind. What is open only
ever shrinks: an answer settles ranges, or cuts them into narrower ones. What it had no room for stays as it was, and is
not split anew because a full frame ends with one fingerprint for all of it. When nothing is open, all is known.

Each open range keeps its bounds, the peer's or ours, its own index pair, and what is known about the density of
differences in it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from negvec import kernels
from negvec.protocol.codec import FINGERPRINT, ID_LIST, SKIP, Decoder, Layout, decode
from negvec.protocol.findings import Findings
from negvec.protocol.policy import Densities, Lesson, Pace, PacingPolicy
from negvec.protocol.stages import (
    CUT,
    EMPTY,
    FIRST_BATCH,
    Heard,
    Watch,
    Watched,
    blank,
    everything,
    first_rows,
    join_heard,
    put_bound,
    rows_of,
)
from negvec.storage.seam import Bounds, Bytes, Indices, Storage

NARROWEST_ANSWER = 19  # bytes of an answer to a mismatched range at least

NARROWEST_FULL = 142
"""Bytes up to which a full frame may have no room for a Skip, a list of one id and a range that sums up the rest, if
all bounds are long. A responder with such a frame halves what it would list; so its halves must not be put together."""


START = Bounds(np.zeros(1, np.uint64), np.zeros((1, 32), np.uint8), np.zeros(1, np.uint8))
"""The bound before everything, a row."""


class Open(NamedTuple):
    """The ranges that are not settled, disjoint and ascending, a row each."""

    lower: Bounds
    upper: Bounds
    lo: Indices
    hi: Indices
    density: Densities  # differences per own item to be expected
    dense: npt.NDArray[np.bool_]  # whether that is but a lower bound

    def take(self, rows: Indices) -> Open:
        """Some of them."""
        lower, upper = rows_of(self.lower, rows), rows_of(self.upper, rows)
        return Open(lower, upper, self.lo[rows], self.hi[rows], self.density[rows], self.dense[rows])


class Conversation:
    """What an initiator keeps in mind: its pace, the open ranges, and which of them it has just asked about."""

    def __init__(self, pace: Pace, size: int) -> None:
        self.pace = pace
        whole = np.zeros(1, np.int64), np.full(1, size)
        self.open = Open(START, everything(), *whole, np.zeros(1), np.zeros(1, np.bool_))
        self.asked = np.zeros(1, np.uint8)  # for each open range
        self.hashed = whole  # own index pairs of the Fingerprints in the last message
        self.parts = 0  # ranges in it, Skips aside
        self.settled = 0  # own items that lie in no open range


class PacedRound(Watched):
    """As `negvec.protocol.round.Round`, for a policy that keeps account of open ranges."""

    def __init__(self, storage: Storage, limit: int, policy: PacingPolicy, watch: Watch | None) -> None:
        super().__init__(storage, watch)
        self.limit = limit
        self.policy = policy
        self._talk: Conversation | None = None

    def first_message(self) -> bytes:
        """The whole set, split: what an initiator begins with."""
        self.begin(True)
        talk = self._talk = Conversation(self.policy.begin(), len(self.storage))
        buckets = talk.pace.first(len(self.storage), self.limit)
        return self._ask(talk, np.zeros(1, np.int64), np.full(1, buckets), 2**62)

    def answer(self, message: Bytes, findings: Findings | None) -> tuple[bytes, int]:
        """Answer a message: as the initiator that collects `findings`, or else as responder.

        Returns the answer and, for the initiator, how many of its items are settled.
        """
        self.begin(findings is not None)
        talk = self._talk
        if findings is None or talk is None:
            return self._respond(message), 0
        ranges = decode(message)
        self.watch("decode")
        heard = self.examine(message, ranges, 0)
        self.show_heard(True, message, [heard])
        if len(message) == 1 and talk.asked.all():
            talk.settled = len(self.storage)
            return self.write(EMPTY), talk.settled
        self._hear(talk, message, heard, findings)
        if not len(talk.open.lo):
            return self.write(EMPTY), talk.settled
        request = talk.pace.request(talk.open.hi - talk.open.lo, talk.open.density, talk.open.dense)
        self.watch("plan")
        return self._ask(talk, *request), talk.settled

    # ---- The initiator

    def _hear(self, talk: Conversation, message: Bytes, heard: Heard, findings: Findings) -> None:
        """Take in an answer: what it lists, what it settles, what it tells about densities."""
        ranges = heard.ranges
        listed = np.flatnonzero(ranges.modes == ID_LIST)
        if len(listed):
            findings.compare(message, ranges, listed, heard.lower[listed], heard.upper[listed])
            self.watch("compare")

        asked_lo, asked_hi = talk.hashed
        part = np.empty(len(ranges.modes), np.int64)
        parts, mismatches = np.empty(len(asked_lo), np.int64), np.empty(len(asked_lo), np.int64)
        matched, differed = (np.zeros(kernels.worklist.BINS, np.int64) for _ in range(2))
        unanswered = np.zeros(1, np.int64)
        kernels.worklist.observe(
            *(asked_lo, asked_hi, heard.lower, heard.upper, ranges.modes, heard.differs),
            *(part, parts, mismatches, matched, differed, unanswered),
        )
        known = np.zeros(kernels.worklist.BINS, np.int64)
        kernels.worklist.count_widths((talk.open.hi - talk.open.lo)[talk.asked > 0], known)
        heeded = 1 - unanswered[0] / max(talk.parts, 1)
        split = np.flatnonzero(parts)
        density, dense = np.zeros(len(parts)), np.zeros(len(parts), np.bool_)
        density[split], dense[split] = talk.pace.densities(
            asked_hi[split] - asked_lo[split], parts[split], mismatches[split]
        )
        was = len(talk.open.lo), talk.settled
        self._refine(talk, heard, part, density, dense, len(message) > NARROWEST_FULL)
        talk.settled = len(self.storage) - int((talk.open.hi - talk.open.lo).sum())
        stuck = not len(listed) and was == (len(talk.open.lo), talk.settled)
        talk.pace.learn(Lesson(matched, differed, known * heeded, len(message), talk.parts, int(unanswered[0]), stuck))
        self.watch("plan")

    def _refine(
        self,
        talk: Conversation,
        heard: Heard,
        part: Indices,
        density: Densities,
        dense: npt.NDArray[np.bool_],
        joins: bool,
    ) -> None:
        """Keep of the open ranges what an answer leaves; parts of ranges that it split take over their densities.

        With `joins`, neighbours without own items become one.
        """
        verdicts = np.where(
            heard.ranges.modes == SKIP,
            kernels.worklist.PASSED,
            np.where(heard.differs, kernels.worklist.OPEN, kernels.worklist.SETTLED),
        ).astype(np.uint8)
        was, bounds = talk.open, heard.ranges.bounds
        most = len(was.lo) + len(verdicts)
        lower, upper = blank(most), blank(most)
        source, answer = np.empty(most, np.int64), np.empty(most, np.int64)
        m = kernels.worklist.refine(
            *(was.lower.created_at, was.lower.ids.view("<u8"), was.lower.lengths),
            *(was.upper.created_at, was.upper.ids.view("<u8"), was.upper.lengths, was.lo, was.hi, talk.asked),
            *(bounds.created_at, bounds.ids.view("<u8"), bounds.lengths, heard.upper, verdicts),
            int(joins),
            *(lower.bounds.created_at, lower.bounds.ids.view("<u8"), lower.bounds.lengths),
            *(upper.bounds.created_at, upper.bounds.ids.view("<u8"), upper.bounds.lengths),
            *(lower.lo, lower.hi, source, answer),
        )
        source, answer = source[:m], answer[:m]
        of = np.where(answer >= 0, part[answer], -1) if len(part) else np.full(m, -1)
        known = of >= 0
        now_density, now_dense = was.density[source], was.dense[source]
        now_density[known], now_dense[known] = density[of[known]], dense[of[known]]
        kept_lower, kept_upper = first_rows(lower, m), first_rows(upper, m)
        talk.open = Open(kept_lower.bounds, kept_upper.bounds, kept_lower.lo, kept_lower.hi, now_density, now_dense)

    def _ask(self, talk: Conversation, rows: Indices, buckets: Indices, most_parts: int) -> bytes:
        """Ask about some open ranges, as far as the frame goes."""
        layout, whole, more = self._lay_out(talk.open.take(rows), buckets, most_parts, closes=False)
        talk.asked = np.zeros(len(talk.open.lo), np.uint8)
        talk.asked[rows[:whole]] = 1
        if more:
            self._cut_open(talk, int(rows[whole]), layout)
        hashed = layout.modes == FINGERPRINT
        talk.hashed = layout.lo[hashed], layout.hi[hashed]
        talk.parts = int((layout.modes != SKIP).sum())
        message = self.write(layout)
        self.show_said(True, message, layout)
        return message

    def _cut_open(self, talk: Conversation, row: int, layout: Layout) -> None:
        """Cut an open range where the message ends: only the part before that was asked about."""
        talk.open = now = talk.open.take(np.insert(np.arange(len(talk.open.lo)), row, row))
        talk.asked = np.insert(talk.asked, row, 1)
        now.hi[row] = now.lo[row + 1] = layout.hi[-1]
        put_bound(now.upper, row, layout.bounds, -1)
        put_bound(now.lower, row + 1, layout.bounds, -1)

    # ---- Both

    def _lay_out(self, ranges: Open, buckets: Indices, most_parts: int, closes: bool) -> tuple[Layout, int, int]:
        """Lay out ranges; returns the layout, how many are in it whole, and parts of the one after."""
        parts = self.split(ranges.lo, ranges.hi, buckets)
        out = blank(2 * len(buckets) + len(parts.lo) + 2)
        reached = np.zeros(2, np.int64)
        lower, upper, cuts, new = ranges.lower, ranges.upper, parts.cuts, out.bounds
        m = kernels.worklist.lay_out(
            *(lower.created_at, lower.ids.view("<u8"), lower.lengths, ranges.lo),
            *(upper.created_at, upper.ids.view("<u8"), upper.lengths, buckets, parts.lo, parts.hi),
            *(cuts.created_at, cuts.ids.view("<u8"), cuts.lengths),
            *(most_parts, self.limit, len(self.storage), int(closes)),
            *(new.created_at, new.ids.view("<u8"), new.lengths, out.modes, out.lo, out.hi, reached),
        )
        layout = first_rows(out, m)
        if m >= 2 and layout.bounds.lengths[-2] == CUT:
            put_bound(layout.bounds, -2, self.storage.minimal_bounds(layout.hi[-2:-1]), 0)
        self.watch("plan")
        return layout, int(reached[0]), int(reached[1])

    # ---- The responder

    def _respond(self, message: Bytes) -> bytes:
        """Answer as a responder: a pure function of the message."""
        batches = self._hear_enough(message)
        self.show_heard(False, message, batches)
        heard = join_heard(batches)
        hashed = heard.ranges.modes == FINGERPRINT
        differs = heard.differs.view(np.bool_)
        rows = np.flatnonzero(differs | (heard.ranges.modes == ID_LIST))
        if not len(rows):
            answer, layout = self.write(EMPTY), EMPTY
        else:
            bounds = heard.ranges.bounds
            lower = rows_of(bounds, rows - 1)  # where the range before ends
            if rows[0] == 0:
                put_bound(lower, 0, START, 0)
            asked = Open(
                *(lower, rows_of(bounds, rows), heard.lower[rows], heard.upper[rows]),
                *(np.zeros(len(rows)), np.zeros(len(rows), np.bool_)),
            )
            split = differs[rows]
            buckets = np.zeros(len(rows), np.int64)
            widths = (heard.upper - heard.lower)[hashed]
            buckets[split] = self.policy.answer_buckets(
                widths, heard.differs[hashed], asked.lo[split], asked.hi[split], self.limit
            )
            layout, _, _ = self._lay_out(asked, buckets, 2**62, closes=True)
            answer = self.write(layout)
        self.show_said(False, answer, layout)
        return answer

    def _hear_enough(self, message: Bytes) -> list[Heard]:
        """Read, locate and compare the peer's ranges; under a limit only as many as the answer may have room for."""
        decoder = Decoder(message)
        batch = FIRST_BATCH if self.limit else len(message) // NARROWEST_ANSWER + 1
        batches: list[Heard] = []
        at = least = 0
        while True:
            ranges = decoder.read(batch)
            self.watch("decode")
            batches.append(heard := self.examine(message, ranges, at))
            if decoder.done:
                break
            least += NARROWEST_ANSWER * int((heard.differs.view(np.bool_) & (heard.upper > heard.lower)).sum())
            if self.limit and least > self.limit:
                break
            batch, at = 2 * batch, int(heard.upper[-1])
        return batches
