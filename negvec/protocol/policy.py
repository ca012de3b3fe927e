"""How a range whose fingerprint is not ours is answered: split into how many ranges, or listed.

The protocol leaves that to the sender (specification, section Message). A policy decides for all such ranges of a
round at once. It never answers a range with one fingerprint for the whole of it: a peer that did the same would be told
nothing new, and the two would pass that fingerprint to and fro for ever.

A `SplitPolicy` has no memory; a `PacingPolicy` begins one for each conversation (see `negvec.protocol.adaptive`).
"""

from __future__ import annotations

import operator
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from negvec.storage.seam import Bytes, Indices

Densities = npt.NDArray[np.float64]

TINIEST_FRAME = 128
"""Bytes in which one id fits for certain, whatever the bounds: the version byte, a Skip and an IdList with bounds of 44
bytes, modes and count, and the id make 124; a Skip, a Fingerprint, and one for the rest as many."""

WIDEST_FINGERPRINT = 61  # bytes of a Fingerprint range at most: a timestamp of 10, an id prefix of 32 and its length


class SplitPolicy(Protocol):
    """Decides how mismatched ranges are split."""

    def buckets(self, lo: Indices, hi: Indices) -> Indices:
        """Into how many ranges of even width to split each own range [lo, hi), (m,) int64; 0 lists its ids instead.

        What is split has 2 buckets at least and an item in each: the fingerprint of nothing is never sent.
        """
        ...


class ReferencePolicy:
    """As the C++ reference does: 16 buckets, and an IdList below 32 items. Messages are byte-identical to its own.

    Parameters
    ----------
    buckets : int, default 16
        Into how many ranges one is split, 2 or more.
    list_below : int, optional
        A range of fewer own items than this is listed; 2 or more, and by default twice `buckets`. A range of fewer
        items than buckets is split into as many ranges as it has items.

    Raises
    ------
    ValueError
        One of them is less than 2.
    """

    BUCKETS = 16

    def __init__(self, buckets: int = BUCKETS, list_below: int | None = None) -> None:
        self._buckets = operator.index(buckets)
        self._list_below = 2 * self._buckets if list_below is None else operator.index(list_below)
        if self._buckets < 2:
            raise ValueError(f"a range is split into 2 buckets or more, not {self._buckets}")
        if self._list_below < 2:
            raise ValueError(f"list_below is 2 or more, not {self._list_below}: one item can't be split")

    def __repr__(self) -> str:
        return f"ReferencePolicy(buckets={self._buckets}, list_below={self._list_below})"

    def buckets(self, lo: Indices, hi: Indices) -> Indices:
        """See `SplitPolicy.buckets`."""
        return np.where(hi - lo < self._list_below, 0, self._buckets)

    @property
    def largest_answer(self) -> int:
        """Bytes that the answer to one range takes at most; a frame must have room for it."""
        return max(WIDEST_FINGERPRINT * self._buckets, 32 * self._list_below + WIDEST_FINGERPRINT)


class Request(NamedTuple):
    """What a paced initiator asks next about its open ranges.

    Attributes
    ----------
    rows : ndarray of int64, shape (k,)
        The open ranges to ask about, ascending.
    buckets : ndarray of int64, shape (k,)
        Into how many Fingerprints each is cut; 0 sends an IdList.
    parts : int
        How many Fingerprints and IdLists to send at most.
    """

    rows: Indices
    buckets: Indices
    parts: int


class Lesson(NamedTuple):
    """What an answer tells, in numbers.

    Attributes
    ----------
    matched, differed : ndarray of int64, shape (bins,)
        How many Fingerprints of which width turned out to be the same or not; see `negvec.kernels.worklist.observe`.
    known : ndarray of float64, shape (bins,)
        How many of the ranges that they are parts of were known to differ, by their width: of each of those, one
        difference was certain.
    size : int
        Bytes of the answer.
    asked : int
        Ranges that were asked about.
    unanswered : int
        Those of them that the answer had no room for; Fingerprints only.
    stuck : bool
        Whether the answer leaves everything as it was.
    """

    matched: Indices
    differed: Indices
    known: Densities
    size: int
    asked: int
    unanswered: int
    stuck: bool


class Pace(Protocol):
    """A paced policy's memory of one conversation, the initiator's."""

    def first(self, size: int, limit: int) -> int:
        """Into how many Fingerprints to cut the whole set, of `size` items, in a first message; 0 lists it."""
        ...

    def learn(self, lesson: Lesson) -> None:
        """Take in an answer."""
        ...

    def densities(
        self, widths: Indices, parts: Indices, mismatches: Indices
    ) -> tuple[Densities, npt.NDArray[np.bool_]]:
        """What is known of ranges that the peer has split, for their parts.

        Parameters
        ----------
        widths, parts, mismatches : ndarray of int64, shape (m,)
            Own items of each range, the number of parts that it came back in, and how many of those differ.

        Returns
        -------
        densities : ndarray of float64, shape (m,)
            Differences per own item to be expected in the parts that differ.
        dense : ndarray of bool, shape (m,)
            Whether that is but a lower bound, since nearly all parts differ.
        """
        ...

    def request(self, widths: Indices, densities: Densities, dense: npt.NDArray[np.bool_]) -> Request:
        """Choose what to ask about, of open ranges with that many own items, in order."""
        ...


@runtime_checkable
class PacingPolicy(Protocol):
    """Decides how mismatched ranges are split, and how much is asked at once."""

    def begin(self) -> Pace:
        """Start a conversation as its initiator."""
        ...

    def answer_buckets(self, widths: Indices, differs: Bytes, lo: Indices, hi: Indices, limit: int) -> Indices:
        """As a responder: into how many ranges to split each mismatched own range [lo, hi); 0 lists its ids.

        `widths` and `differs`, (m,), are those of all Fingerprints of the message; `limit` is the frame size limit.
        """
        ...
