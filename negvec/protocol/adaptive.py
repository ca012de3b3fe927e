"""`AdaptivePolicy`: widths that follow the density of the differences, and no more asked than can be answered.

**Bytes over leaf width and density.** A Fingerprint range takes F = 20 bytes or so (16, the mode, a bound of 2 or 3). A
responder answers one that differs, and in which it holds fewer than 32 items, with its IdList at once: 32 bytes an item
and L = 9 around it. The initiator then knows all of that range without having sent an id. With differences at random, d
per item, a range of w items differs with probability p(w) = 1 - exp(-d w), and the cost per item is

    c(w) = (F + p(w) (32 w + L)) / w,    least where about w = sqrt(F / (32 d)) exp(d w / 2).

At d = 0.1 (one item in 20 missing on each side) that is w = 3 and 15.7 bytes an item. An IdList of the initiator costs
32 bytes an item up and as much down, and is sent for single items only.

**Wide ranges.** A responder lists at once what has fewer than 32 items, so narrower steps on the way to a leaf are not
to be had from it, but for one: a range of W items with 32 or more comes back in 16 Fingerprints, and those parts that
differ are cut into leaves, for one round more. With s items from one difference to the next, leaves alone cost
2 sqrt(32 F s) bytes a difference, and wide ranges

    (F + p(W) 16 F) s / W + 2 sqrt(32 F s p(W / 16)).

Where differences are so far apart that a wide range holds one at most, that is least at W = (3.2 s)^(2/3); where each
holds some, at W / 16 = (0.84 s)^(2/3). The better of the two is taken. In a range of u items that is known to differ,
s = (1 - exp(-d u)) / d: u itself where that is one difference, 1 / d where there are many.

**Pace.** A responder with a full frame sums up the rest, which it then has to be asked again. So the initiator asks for
as many bytes as a frame is expected to hold, and turns to the rest in later messages.
"""

from __future__ import annotations

import operator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from negvec import kernels
from negvec.protocol.policy import TINIEST_FRAME, Densities, Lesson, ReferencePolicy, Request
from negvec.storage.seam import Bytes, Indices

FINGERPRINT_COST = 20.0  # bytes of a Fingerprint range, about
FIRST_COST = 24.0  # and of one in a first message, where timestamps are far apart
LIST_COST = 9.0  # bytes about the ids of a list: its bound, mode and count, and a Skip before it
ID_COST = 32.0
SPLIT_COST = 16 * FINGERPRINT_COST  # of what a responder's split brings down

LONGEST_LEAF = 31  # items that every responder is certain to list, as the reference does
NARROWEST_SPLIT = 36  # items that a responder will rather split, even if it holds somewhat fewer than we do

CROWDED = 12.0  # items from one difference to the next below which most parts of a split differ, and leaves cost less
ALL_DIFFERENT = 0.55  # differences per item from which on fingerprints cost more than they save

ROUND_WORTH = 65_536  # bytes that are spent to save a round: what a link of 5 Mbit/s carries in 100 ms
LEAF_WORTH = 512  # and bytes for each difference: more than this, and leaves are not cut from a range at once

PROBE = 65_536  # bytes that are asked for while the density is unknown
GUESS = 500_000  # bytes of a responder's frame: strfry's, and so that of most relays
SURE = 0.02  # share of Fingerprints that must have matched for a density to be known


class AdaptivePolicy:
    """Splits by what the answers so far have told, and asks no more than the peer can answer.

    As the initiator it keeps account of the ranges that are still open, and asks about as many of them at a time as the
    responder's frame is expected to answer, in leaves whose width follows from the density of differences seen so far
    (see the module's opening comment). A conforming responder of any implementation can be asked so.

    As a responder it has no memory: it lists what is short, and cuts what is long into a number of ranges that follows
    from the density of differences in the message itself. A frame is filled to its end.

    Parameters
    ----------
    responder_limit : int, optional
        The frame size limit of the responders, in bytes (before hex), 0 for none, where it is known; relays document
        theirs. By default it is taken for 500,000, that of strfry's relays, and learnt from the answers.

    Raises
    ------
    ValueError
        The limit is no frame's: negative, or less than 128 bytes.
    """

    def __init__(self, responder_limit: int | None = None) -> None:
        self._responder_limit = None if responder_limit is None else operator.index(responder_limit)
        if self._responder_limit is not None and self._responder_limit != 0 and self._responder_limit < TINIEST_FRAME:
            raise ValueError(
                f"responder_limit is 0 (no limit) or {TINIEST_FRAME} bytes or more, not {self._responder_limit}"
            )

    def __repr__(self) -> str:
        return f"AdaptivePolicy(responder_limit={self._responder_limit})"

    def begin(self) -> AdaptivePace:
        """See `PacingPolicy.begin`."""
        return AdaptivePace(self._responder_limit)

    def answer_buckets(self, widths: Indices, differs: Bytes, lo: Indices, hi: Indices, limit: int) -> Indices:
        """See `PacingPolicy.answer_buckets`."""
        own = hi - lo
        longest = LONGEST_LEAF
        most = own
        if limit:
            longest = min(longest, max(limit // 64, 1))
            most = np.minimum(own, max(int(limit // (2 * FINGERPRINT_COST)), 2))
        matched, differed = (_counts(widths[differs == wanted]).astype(np.float64) for wanted in (0, 1))
        spacing = _spacing(own, np.full(len(own), _density(matched, differed) if matched.any() else 0.0))
        events = own / np.maximum(spacing, 1.0)
        # The cube root is where b ranges, and the leaves that they lead to, cost least: F b + 2 sqrt(32 F s / b).
        ideal = np.ceil(events * np.cbrt(ID_COST / FINGERPRINT_COST * spacing)).astype(np.int64)
        # Cut at once into what is listed next, where 16 ranges do that: a round less is worth more than the few bytes.
        ideal = np.maximum(ideal, np.minimum(-(-own // (LONGEST_LEAF + 1)), ReferencePolicy.BUCKETS))
        return np.where(own <= longest, 0, np.clip(ideal, 2, np.minimum(most, ReferencePolicy.BUCKETS)))


class Choice(NamedTuple):
    """Into what open ranges are cut, and what each part costs at the responder's: buckets, and bytes expected."""

    buckets: Indices
    expected: Densities


class AdaptivePace:
    """What an initiator has learnt in one conversation; see `negvec.protocol.policy.Pace`."""

    def __init__(self, responder_limit: int | None) -> None:
        self._frame = GUESS if responder_limit is None else responder_limit
        self._given = self._frame_known = responder_limit is not None
        self._matched = np.zeros(kernels.worklist.BINS)
        self._differed = np.zeros(kernels.worklist.BINS)
        self._density = 0.0
        self._sure = False
        self._most_parts = 2**62
        self._limit = 0

    def first(self, size: int, limit: int) -> int:
        """See `Pace.first`: as the reference, but for short sets, of which that sends all ids, and for tiny frames."""
        self._limit = limit
        if size < 2:
            return 0
        buckets = ReferencePolicy.BUCKETS
        if size < 2 * buckets:
            buckets = int(np.ceil(size / _leaf(np.array([float(size)]), np.zeros(1))[0]))
        if limit:
            buckets = min(buckets, int(limit // FIRST_COST))
        return max(buckets, 2)

    def learn(self, lesson: Lesson) -> None:
        """See `Pace.learn`; the last answer counts twice as much as the one before."""
        self._matched = self._matched / 2 + lesson.matched
        self._differed = self._differed / 2 + lesson.differed - lesson.known
        matched, differed = lesson.matched.sum(), lesson.differed.sum()
        self._sure = self._sure or bool(matched > SURE * (matched + differed))
        self._density = _density(self._matched, self._differed)
        self._learn_frame(lesson)

    def _learn_frame(self, lesson: Lesson) -> None:
        if lesson.stuck:  # a tiny frame has no room for a range and one that sums up the rest: ask about fewer
            self._most_parts = max(min(self._most_parts, lesson.asked) // 2, 1)
            return
        self._most_parts = min(2 * self._most_parts, 2**62)
        if lesson.unanswered:
            if not self._frame_known or (lesson.size > self._frame and not self._given):
                self._frame = lesson.size
            self._frame_known = True
        elif not self._given and lesson.size > self._frame:
            self._frame = lesson.size if self._frame_known else 2 * lesson.size

    def densities(
        self, widths: Indices, parts: Indices, mismatches: Indices
    ) -> tuple[Densities, npt.NDArray[np.bool_]]:
        """See `Pace.densities`: the share of a range's own parts, and as if of four more of all parts together."""
        total = max(int(parts.sum()), 1)
        everywhere = mismatches.sum() / total
        share = (mismatches + 4 * everywhere) / np.maximum(parts + 4, 1)
        share = np.minimum(share, 1 - 0.5 / (total + 1))
        density = -np.log1p(-share) * parts / np.maximum(widths, 1)
        return density, mismatches >= 0.9 * parts

    def request(self, widths: Indices, densities: Densities, dense: npt.NDArray[np.bool_]) -> Request:
        """See `Pace.request`."""
        if self._sure:
            densities = np.where(dense, np.maximum(densities, self._density), densities)
        choice = choose(widths, densities, dense & (not self._sure), self._up_cost())
        expected = choice.expected * np.maximum(choice.buckets, 1)
        room = self._room()
        rows = np.arange(len(widths))
        if not self._sure and expected.sum() > (4 * PROBE):
            probed = np.cumsum(np.where(dense, expected, 0.0)) <= PROBE
            rows = np.flatnonzero(~dense | probed)
            if not len(rows):
                rows, room = np.arange(1), PROBE
        buckets, expected = choice.buckets[rows], expected[rows]
        parts = 2**62
        if room:
            reach = np.cumsum(expected)
            whole = int(np.searchsorted(reach, room, "right"))
            if whole < len(rows):
                left = room - (reach[whole - 1] if whole else 0.0)
                more = int(left / choice.expected[rows[whole]])
                parts = max(int(np.maximum(buckets[:whole], 1).sum()) + more, 1)
                rows, buckets = rows[: whole + 1], buckets[: whole + 1]
        return Request(rows, buckets, min(parts, self._most_parts))

    def _up_cost(self) -> float:
        """What a byte up costs, a byte down being 1: the narrower a frame, the more of a round a byte takes."""
        up, down = (1 + ROUND_WORTH / limit if limit else 1.0 for limit in (self._limit, self._frame))
        return max(up / down, 1.0)

    def _room(self) -> float:
        """Bytes to ask for; somewhat more than is thought to fit until a full frame was seen. 0 for no limit."""
        return self._frame * (1.0 if self._frame_known else 1.1)


def choose(widths: Indices, densities: Densities, dense: npt.NDArray[np.bool_], up_cost: float = 1.0) -> Choice:
    """How to cut open ranges of that many own items, given the differences per item expected in them.

    Where that number is but a lower bound, they are `dense`; `up_cost` is what a byte up costs, a byte down being 1.
    """
    fingerprint_cost = FINGERPRINT_COST * up_cost
    own = widths.astype(np.float64)
    spacing = _spacing(widths, densities)
    leaf = _leaf(spacing, densities, fingerprint_cost)
    by_leaves = fingerprint_cost * spacing / leaf + ID_COST * leaf
    alone, among = (
        np.maximum(16 * (factor * spacing) ** (2 / 3), NARROWEST_SPLIT)
        for factor in (
            np.sqrt(fingerprint_cost / ID_COST) / 16,
            (fingerprint_cost / 16 + FINGERPRINT_COST) / np.sqrt(ID_COST * fingerprint_cost),
        )
    )
    by_alone, by_among = (_by_splits(wide, spacing, fingerprint_cost) for wide in (alone, among))
    # The narrower: where there is no room for others, and as differences may lie far nearer than is known.
    one = dense | (by_alone < by_among) | (own < 2 * among)
    wide, by_splits = np.where(one, alone, among), np.where(one, by_alone, by_among)
    excess = by_leaves - by_splits
    splits = (excess > by_leaves / 16) & (own >= 2 * wide)
    splits &= spacing >= np.where(dense, NARROWEST_SPLIT, CROWDED)
    saved = float((excess * own / np.maximum(spacing, 1.0))[splits].sum())
    if saved < ROUND_WORTH:
        splits &= excess > LEAF_WORTH
    width = np.where(splits, wide, leaf)
    buckets = np.maximum(np.ceil(own / width), 2).astype(np.int64)
    buckets = np.where(widths < 2, 0, np.minimum(buckets, widths))
    part = own / np.maximum(buckets, 1)
    differing = -np.expm1(-np.maximum(part / np.maximum(spacing, 1e-9), 1e-12))
    bytes_if = np.where(splits, SPLIT_COST, ID_COST * part + LIST_COST)
    return Choice(buckets, np.where(buckets == 0, ID_COST * (own + 1) + LIST_COST, differing * bytes_if))


def _by_splits(wide: Densities, spacing: Densities, fingerprint_cost: float) -> Densities:
    """Bytes a difference where wide ranges come back in 16 parts, of which those that differ are cut into leaves."""
    differ, parts_differ = -np.expm1(-wide / spacing), -np.expm1(-wide / (16 * spacing))
    leaves = 2 * np.sqrt(ID_COST * fingerprint_cost * spacing * parts_differ)
    cost: Densities = (fingerprint_cost + differ * SPLIT_COST) * spacing / wide + leaves
    return cost


def _spacing(widths: Indices, densities: Densities) -> Densities:
    """Own items for each difference, in ranges known to differ: see the module's opening comment."""
    own = np.maximum(widths, 1).astype(np.float64)
    events = np.maximum(densities * own, 1e-9)
    return own * -np.expm1(-events) / events


def _leaf(spacing: Densities, densities: Densities, fingerprint_cost: float = FINGERPRINT_COST) -> Densities:
    """The width of leaves that cost least."""
    start = np.sqrt(fingerprint_cost / ID_COST * spacing)
    leaf = start * np.exp(np.minimum(densities * start / 2, 0.5))
    leaf = start * np.exp(np.minimum(densities * leaf / 2, 0.5))
    return np.clip(np.where(densities > ALL_DIFFERENT, LONGEST_LEAF, leaf), 1.0, LONGEST_LEAF)


def _counts(widths: Indices) -> Indices:
    counts = np.zeros(kernels.worklist.BINS, np.int64)
    kernels.worklist.count_widths(widths, counts)
    return counts


def _bin_widths() -> Densities:
    steps = kernels.worklist.STEPS
    place = np.arange(kernels.worklist.BINS)
    step = np.maximum(place // steps - 1, 0)
    widths: Densities = np.maximum(place - steps * step + np.where(step > 0, 0.5, 0.0), 0.5) * 2.0**step
    return widths


def _density(matched: Densities, differed: Densities) -> float:
    """Differences per item that make it likeliest that these Fingerprints matched and those differed.

    The root of sum(differed w / (exp(d w) - 1)) = sum(matched w), which falls in d, by bisection of its logarithm.
    """
    some = np.flatnonzero(matched + differed)
    if not len(some):
        return 0.0
    widths, differed = _bin_widths()[some], differed[some]
    right = float((matched[some] * widths).sum()) + 0.5 * float(widths[0])
    low, high = np.log(1e-12), np.log(8.0)
    for _ in range(24):
        middle = (low + high) / 2
        with np.errstate(over="ignore"):
            left = float((differed * widths / np.expm1(np.minimum(np.exp(middle) * widths, 700.0))).sum())
        low, high = (middle, high) if left > right else (low, middle)
    return float(np.exp(low))
