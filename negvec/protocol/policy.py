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
    """As the C++ reference does: 16 buckets, and an IdList below 32 items. Messages are byte-identical to its own."""

    BUCKETS = 16

    def buckets(self, lo: Indices, hi: Indices) -> Indices:
        """See `SplitPolicy.buckets`."""
        return np.where(hi - lo < 2 * self.BUCKETS, 0, self.BUCKETS)
