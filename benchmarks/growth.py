"""The same work at ten times the size, again and again: 10,000 items, up to ten times NEGVEC_BENCH_N or 10 million."""

from __future__ import annotations

import negvec
from negvec.workloads import pair

from .runs import N, recorded

SIZES = tuple(size for size in (10_000, 100_000, 1_000_000, 10_000_000) if size <= 10 * N)


class Growth:
    """The contiguous pair, as a relay with 500,000-byte frames answers."""

    params = (SIZES,)
    param_names = ("items",)

    def setup(self, items: int) -> None:
        self.run = recorded("contiguous", items, (0, 500_000))
        self.side = pair("contiguous", items).ours
        assert len(self.run.ours) == len(self.side.ids)
        assert self.run.ask().message is None
        assert self.run.respond() == self.run.answers[-1]

    def time_seal(self, items: int) -> None:
        negvec.seal(*self.side)

    def time_initiator(self, items: int) -> None:
        self.run.ask()

    def time_responder(self, items: int) -> None:
        self.run.respond()
