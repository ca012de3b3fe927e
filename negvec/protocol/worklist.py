"""An initiator's list of what is not settled yet, from which it asks for as much at once as one answer can hold.

The responder keeps no state, so that the initiator alone decides when it asks for what: it may pass over a stretch that
is open (a Skip) and come back to it in a later message. So it never sends again what a full frame left unanswered
together with all that follows, as who answers each message whole has to.

What is asked are fingerprints of narrow leaves. A mismatched leaf of fewer than 32 items is answered with a list, so
that own ids need not be sent. With differences at density d, per own item, a leaf of width w mismatches with
probability p = 1 - exp(-d w), and the bytes per own item are about

    up     F / w                     F = 24: a fingerprint, its mode, and a bound
    down   p (34 w + 10) / w         a list, or 6 (1 - p) / w, a Skip

whose sum is least at w = sqrt(F / 34 d) for small d: 3 items where one in ten differs, 15 bytes an own item. The
density is learned from the share of leaves that mismatched in the last answer.

A received range is never answered with one fingerprint for the whole of it: a peer that does the same would send it
back, and so on for ever. It is cut in two at least, or, if it has an item or none, listed.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from negvec import kernels
from negvec.errors import DamagedStorage
from negvec.protocol.codec import FINGERPRINT, ID_LIST, SKIP, Layout, decode
from negvec.protocol.findings import Findings
from negvec.protocol.round import NOTHING, Round
from negvec.storage.seam import Bounds, Bytes, Indices

FIRST_LEAF = 8  # items; of the first leaves, from which the density is learned
FIRST_LEAVES = 1000
UNKNOWN_DENSITY = 0.1  # until they have been answered
FEWEST_LEAVES = 30  # answered ones, to tell a share by
ASKED_BYTES = 24  # of a leaf that is asked: fingerprint, mode, bound
SKIPPED_BYTES = 6
LARGEST_BOUND = 12  # timestamp, length of the prefix, and mode; without the prefix
FILLED = 0.97  # of the responder's frame that answers are meant to fill

NARROW = 31  # items of the widest leaf that is answered with a list
SPLIT = 16  # into so many parts the responder splits a wider one

_NARROW = np.arange(1, NARROW + 1, dtype=np.float64)
_WIDE = 32.0 * 2 ** np.arange(1, 12)

Keys = npt.NDArray[np.bytes_]
Floats = npt.NDArray[np.float64]


class Stretches(NamedTuple):
    """Ranges as columns, sorted: own items [lo, hi) between two bounds.

    Attributes
    ----------
    lo, hi : ndarray of int64, shape (m,)
    lower, upper : Bounds
    received : ndarray of bool, shape (m,)
        Whether the peer's fingerprint was of exactly this range.
    """

    lo: Indices
    hi: Indices
    lower: Bounds
    upper: Bounds
    received: npt.NDArray[np.bool_]

    def take(self, rows: npt.NDArray[np.int64] | slice) -> Stretches:
        """Some of them."""
        lower, upper = taken(self.lower, rows), taken(self.upper, rows)
        return Stretches(self.lo[rows], self.hi[rows], lower, upper, self.received[rows])


def joined(first: Stretches, second: Stretches) -> Stretches:
    """Both, one after the other."""
    return Stretches(
        np.concatenate([first.lo, second.lo]),
        np.concatenate([first.hi, second.hi]),
        both(first.lower, second.lower),
        both(first.upper, second.upper),
        np.concatenate([first.received, second.received]),
    )


def both(first: Bounds, second: Bounds) -> Bounds:
    """Bounds one after the other."""
    return Bounds(
        np.concatenate([first.created_at, second.created_at]),
        np.concatenate([first.ids, second.ids]),
        np.concatenate([first.lengths, second.lengths]),
    )


def taken(bounds: Bounds, rows: npt.NDArray[np.int64] | npt.NDArray[np.bool_] | slice) -> Bounds:
    """Some rows of bounds; a copy, but for a slice."""
    return Bounds(bounds.created_at[rows], bounds.ids[rows], bounds.lengths[rows])


def keys_of(bounds: Bounds) -> Keys:
    """Bounds as byte strings in whose order they are; NumPy pads these with zeros, as the protocol pads prefixes."""
    keys = np.empty((len(bounds.lengths), 40), np.uint8)
    keys[:, :8] = bounds.created_at.astype(">u8").view(np.uint8).reshape(-1, 8)
    keys[:, 8:] = bounds.ids
    return keys.view("S40").ravel()


def answer_bytes(width: Any, density: Any) -> Floats:
    """The bytes, in the mean, of the reference's answer to leaves of so many own items."""
    mismatch = -np.expm1(-density * width)
    mismatched = np.where(width <= NARROW, 34 * width + 10, SPLIT * ASKED_BYTES)
    result: Floats = mismatch * mismatched + (1 - mismatch) * SKIPPED_BYTES
    return result


def best_width(density: float, wide: bool = True) -> int:
    """The width of a leaf, in own items, that costs the least bytes an item.

    A wide leaf that mismatches is split by the responder; its mismatched parts are taken to be asked for at the best
    narrow width for their density, which is higher.
    """
    costs = (ASKED_BYTES + answer_bytes(_NARROW, density)) / _NARROW
    best = int(np.argmin(costs))
    if not wide:
        return int(_NARROW[best])
    part = -np.expm1(-density * _WIDE / SPLIT)  # of the parts this share mismatches
    inside = (ASKED_BYTES + answer_bytes(_NARROW, (density / np.maximum(part, 1e-12))[:, None])) / _NARROW
    wide_costs = (ASKED_BYTES + answer_bytes(_WIDE, density)) / _WIDE + part * inside.min(axis=1)
    other = int(np.argmin(wide_costs))
    return int(_WIDE[other] if wide_costs[other] < costs[best] else _NARROW[best])


class Worklist:
    """What an initiator has still to ask.

    Parameters
    ----------
    round : Round
        Its storage and frame size limit.
    findings : Findings
    responder_limit : int
        What is taken for the responder's frame size limit until an answer is cut off.
    """

    def __init__(self, round: Round, findings: Findings, responder_limit: int) -> None:
        self._round, self._storage, self._findings = round, round.storage, findings
        self._responder_limit = responder_limit
        self._largest = 1024  # bytes of the largest answer so far
        self._density = np.full(2, np.nan)  # of stretches at large, and of parts of mismatched leaves; not known yet
        self._pending = self._asked = _NONE
        self._asked_part = np.empty(0, np.bool_)  # whether each asked leaf is of such a part

    def begin(self, mismatched: Stretches) -> bytes:
        """Take over ranges whose fingerprints were received and are not ours; returns the first message."""
        self._pending = mismatched
        return self._ask()

    def reconcile(self, message: Bytes) -> tuple[bytes, int]:
        """Take an answer; returns the next message, and how many of the asked leaves it settled.

        The message is a version byte alone when all is settled.
        """
        ranges = decode(message)
        self._round.watch("decode")
        upper = self._storage.lower_bounds(ranges.bounds.created_at, ranges.bounds.ids)
        lower = np.concatenate([np.zeros(1, np.int64), upper[:-1]]) if len(upper) else upper
        if (upper < lower).any():
            raise DamagedStorage("the storage's items are out of order: it is damaged, or was changed meanwhile")
        self._round.watch("locate")
        listed = np.flatnonzero(ranges.modes == ID_LIST)
        if len(listed):
            self._findings.compare(message, ranges, listed, lower[listed], upper[listed])
            self._round.watch("compare")
        rows = np.flatnonzero(ranges.modes == FINGERPRINT)
        own = self._storage.fingerprints(lower[rows], upper[rows])
        differs, nothing = np.empty(len(rows), np.bool_), np.empty(len(rows), np.uint8)
        kernels.message.compare(
            *(message, ranges.payloads[rows], own.view("<u8"), NOTHING, differs.view(np.uint8), nothing)
        )
        self._round.watch("fingerprint")
        ends = keys_of(ranges.bounds)
        starts = np.concatenate([np.zeros(1, "S40"), ends[:-1]]) if len(ends) else ends
        left, answered = self._still_open(ranges.bounds, starts, ends, lower, upper, rows[differs])
        touched = np.concatenate([listed, rows[differs]])
        self._learn(starts[touched], ends[touched], answered, len(message))
        settled = len(self._asked.lo) - int((~left.received).sum())
        pending = joined(left, self._pending)
        self._pending = pending.take(np.argsort(keys_of(pending.lower), kind="stable"))
        self._round.watch("plan")
        return self._ask(), settled

    def _still_open(
        self, bounds: Bounds, starts: Keys, ends: Keys, lower: Indices, upper: Indices, rows: Indices
    ) -> tuple[Stretches, npt.NDArray[np.bool_]]:
        """What the asked leaves have in common with mismatched ranges, and which leaves were answered at all."""
        asked = self._asked
        leaf_starts, leaf_ends = keys_of(asked.lower), keys_of(asked.upper)
        first = np.searchsorted(leaf_ends, starts[rows], "right")
        last = np.maximum(np.searchsorted(leaf_starts, ends[rows], "left"), first)
        counts = last - first
        row = np.repeat(rows, counts)
        leaf = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts) + np.repeat(first, counts)
        later_start = starts[row] > leaf_starts[leaf]
        earlier_end = ends[row] < leaf_ends[leaf]
        before = np.maximum(row - 1, 0)

        def chosen(mask: npt.NDArray[np.bool_], theirs: Bounds, own: Bounds) -> Bounds:
            return Bounds(
                np.where(mask, theirs.created_at, own.created_at),
                np.where(mask[:, None], theirs.ids, own.ids),
                np.where(mask, theirs.lengths, own.lengths),
            )

        whole = (starts[row] < leaf_starts[leaf]) | (ends[row] > leaf_ends[leaf])  # the range is wider than the leaf
        answered = np.ones(len(asked.lo), np.bool_)
        answered[leaf[whole & ~later_start & ~earlier_end]] = False
        return (
            Stretches(
                np.maximum(lower[row], asked.lo[leaf]),
                np.maximum(np.minimum(upper[row], asked.hi[leaf]), np.maximum(lower[row], asked.lo[leaf])),
                chosen(later_start, taken(bounds, before), taken(asked.lower, leaf)),
                chosen(earlier_end, taken(bounds, row), taken(asked.upper, leaf)),
                ~whole,
            ),
            answered,
        )

    def _learn(self, starts: Keys, ends: Keys, answered: npt.NDArray[np.bool_], size: int) -> None:
        """Estimate the density of differences, and how much an answer can hold; choose the next width by them."""
        leaf_starts, leaf_ends = keys_of(self._asked.lower), keys_of(self._asked.upper)
        marks = np.zeros(len(leaf_starts) + 1, np.int64)
        np.add.at(marks, np.searchsorted(leaf_ends, starts, "right"), 1)
        np.add.at(marks, np.searchsorted(leaf_starts, ends, "left"), -1)
        mismatched = (np.cumsum(marks[:-1]) > 0) & answered
        widths = self._asked.hi - self._asked.lo
        for part in range(2):
            of_kind = answered & (self._asked_part == bool(part))
            known = int(of_kind.sum())
            if known >= FEWEST_LEAVES or (known and np.isnan(self._density[part])):
                share = min((int(mismatched[of_kind].sum()) + 0.5) / (known + 1), 0.98)
                self._density[part] = -math.log1p(-share) / max(float(widths[of_kind].mean()), 1.0)
        self._largest = max(self._largest, size)
        if not answered.all():  # an answer that was cut off is about as large as it may be, or a list did not fit
            self._responder_limit = min(self._responder_limit, self._largest)

    def _ask(self) -> bytes:
        """The next leaves, and a message that asks for them."""
        chosen, pieces = self._choose()
        count = chosen.hi - chosen.lo
        listed = (count == 0) | (chosen.received & (count < 2))
        leaf = np.repeat(np.arange(len(count)), pieces)
        number = np.arange(len(leaf)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
        lo = chosen.lo[leaf] + count[leaf] * number // pieces[leaf]
        hi = chosen.lo[leaf] + count[leaf] * (number + 1) // pieces[leaf]
        cut = number > 0  # leaves that begin inside their stretch
        inner = self._storage.minimal_bounds(lo[cut])
        lower, upper = taken(chosen.lower, leaf), taken(chosen.upper, leaf)
        ends_inside = np.flatnonzero(cut) - 1
        for bounds, rows in ((lower, np.flatnonzero(cut)), (upper, ends_inside)):
            bounds.created_at[rows], bounds.ids[rows], bounds.lengths[rows] = inner
        asked, parts = Stretches(lo, hi, lower, upper, listed[leaf]), _is_part(chosen)[leaf]
        fitting = self._fitting(asked)
        if fitting < len(lo):  # long prefixes: the last ones wait
            self._pending = joined(asked.take(slice(fitting, None)), self._pending)
            asked, parts = asked.take(slice(0, fitting)), parts[:fitting]
        self._asked, self._asked_part = asked, parts
        return self._write(np.where(asked.received, ID_LIST, FINGERPRINT).astype(np.uint8))

    def _fitting(self, asked: Stretches) -> int:
        """How many of the leaves our own frame has room for, at least one; each may need a Skip before it."""
        if not self._round.limit:
            return len(asked.lo)
        payload = np.where(asked.received, 10 + 32 * (asked.hi - asked.lo), 16)
        sizes = 2 * LARGEST_BOUND + asked.lower.lengths.astype(np.int64) + asked.upper.lengths + payload
        return max(int(np.searchsorted(np.cumsum(sizes), self._round.limit - 1, "right")), 1)

    def _choose(self) -> tuple[Stretches, Indices]:
        """Take from the front of what is pending as many leaves as the answer, and our own frame, have room for.

        Returns the stretches, and into how many leaves each is cut.
        """
        pending = self._pending
        count, part = pending.hi - pending.lo, _is_part(pending)
        density = np.where(np.isnan(self._density), self._density[0], self._density)
        if np.isnan(density[0]):
            most, width, density = float(FIRST_LEAVES), np.full(2, FIRST_LEAF), np.full(2, UNKNOWN_DENSITY)
        else:
            most, width = np.inf, np.array([best_width(density[0]), best_width(density[1], wide=False)])
        kind = part.astype(np.int64)
        pieces = -(-count // width[kind])
        pieces = np.minimum(np.maximum(pieces, np.where(pending.received, 2, 1)), np.maximum(count, 1))
        answer = answer_bytes(count / pieces, density[kind])
        size = pieces * answer
        room = FILLED * self._responder_limit
        if self._round.limit:
            most = min(most, max((self._round.limit - 200) // (2 * ASKED_BYTES), 1))
        fits = (np.cumsum(size) <= room) & (np.cumsum(pieces) <= most)
        whole = int(fits.argmin()) if not fits.all() else len(fits)
        chosen, rest = pending.take(slice(0, whole)), pending.take(slice(whole, None))
        pieces, left = pieces[:whole], pieces[whole:]
        if len(left):  # the front of one more
            space = min(most - float(pieces.sum()), (room - float(size[:whole].sum())) // answer[whole])
            fewest = 0 if whole else 1
            front = int(min(max(space, fewest), int(left[0])))
            if front == left[0]:
                chosen, rest = joined(chosen, rest.take(slice(0, 1))), rest.take(slice(1, None))
                pieces = np.append(pieces, left[0])
            elif front:
                at = int(rest.lo[0] + count[whole] * front // left[0])
                bound = self._storage.minimal_bounds(np.array([at]))
                one, no = rest.take(slice(0, 1)), np.zeros(1, np.bool_)
                chosen = joined(chosen, one._replace(hi=np.array([at]), upper=bound, received=no))
                rest = joined(one._replace(lo=np.array([at]), lower=bound, received=no), rest.take(slice(1, None)))
                pieces = np.append(pieces, front)
        self._pending = rest
        return chosen, pieces

    def _write(self, modes: Bytes) -> bytes:
        """The message that asks for the leaves, with a Skip before each that does not begin where the last ended."""
        asked = self._asked
        starts, ends = keys_of(asked.lower), keys_of(asked.upper)
        gap = np.concatenate([np.zeros(1, "S40"), ends[:-1]]) != starts if len(starts) else np.zeros(0, np.bool_)
        places = np.arange(len(starts)) + np.cumsum(gap)
        skips = places[gap] - 1
        total = len(starts) + len(skips)
        out = Bounds(np.zeros(total, np.uint64), np.zeros((total, 32), np.uint8), np.zeros(total, np.uint8))
        lo, hi, kinds = np.zeros(total, np.int64), np.zeros(total, np.int64), np.full(total, SKIP, np.uint8)
        out.created_at[places], out.created_at[skips] = asked.upper.created_at, asked.lower.created_at[gap]
        out.ids[places], out.ids[skips] = asked.upper.ids, asked.lower.ids[gap]
        out.lengths[places], out.lengths[skips] = asked.upper.lengths, asked.lower.lengths[gap]
        lo[places], hi[places], kinds[places] = asked.lo, asked.hi, modes
        self._round.watch("plan")
        return self._round.write(Layout(out, kinds, lo, hi))


def _is_part(stretches: Stretches) -> npt.NDArray[np.bool_]:
    """Which are parts of mismatched leaves: received, and narrow."""
    return stretches.received & (stretches.hi - stretches.lo <= NARROW)


def _empty_bounds() -> Bounds:
    return Bounds(np.empty(0, np.uint64), np.empty((0, 32), np.uint8), np.empty(0, np.uint8))


_NONE = Stretches(np.empty(0, np.int64), np.empty(0, np.int64), _empty_bounds(), _empty_bounds(), np.empty(0, np.bool_))
