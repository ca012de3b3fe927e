"""How a range whose fingerprint is not ours is answered: split into how many ranges, or listed.

The protocol leaves that to the sender (specification, section Message). A policy decides for all such ranges of a
round at once. It never answers a range with one fingerprint for the whole of it: the peer would answer the same, and
so on for ever.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from negvec.storage.seam import Indices


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
        Into how many ranges a range is split, 2 or more.
    list_below : int, default twice the buckets
        A range of fewer items is listed.

    Raises
    ------
    ValueError
        A number that makes no sense.
    """

    def __init__(self, buckets: int = 16, list_below: int | None = None) -> None:
        if buckets < 2:
            raise ValueError(f"a range is split into 2 or more, not {buckets}")
        self._buckets, self._list_below = buckets, 2 * buckets if list_below is None else list_below
        if self._list_below < 1:
            raise ValueError(f"a list of fewer than {self._list_below} items is no list")

    def buckets(self, lo: Indices, hi: Indices) -> Indices:
        """See `SplitPolicy.buckets`."""
        return np.where(hi - lo < self._list_below, 0, self._buckets)


class AdaptivePolicy(ReferencePolicy):
    """As the reference does, until nearly everything mismatches; then by a `Worklist`, which learns the density.

    A policy keeps nothing of a conversation, and may serve many. On a responder it does what the reference does.

    Parameters
    ----------
    responder_limit : int, default 500,000
        What is taken for the responder's frame size limit, in bytes before hex, until an answer is cut off: strfry's.
    """

    FEWEST_RANGES = 64  # fingerprints of an answer, to tell a share by
    DENSE = 0.9  # share of them that mismatch
    FEWEST_ITEMS = 4096  # of own, in the mismatched ranges; of fewer, a worklist has nothing to save

    def __init__(self, responder_limit: int = 500_000) -> None:
        super().__init__()
        if responder_limit < 1:
            raise ValueError(f"a frame size limit is 1 byte or more, not {responder_limit}")
        self.responder_limit = responder_limit

    def dense(self, fingerprints: int, lo: Indices, hi: Indices) -> bool:
        """Whether to go on by a worklist: of so many fingerprints these own ranges, (m,) int64, mismatched."""
        return (
            fingerprints >= self.FEWEST_RANGES
            and len(lo) >= self.DENSE * fingerprints
            and int((hi - lo).sum()) >= self.FEWEST_ITEMS
        )
