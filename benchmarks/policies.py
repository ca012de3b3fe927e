"""Bytes and rounds by split policy, against the reference's responder with a relay's frames scaled to the set."""

from __future__ import annotations

import numpy as np

import negvec
from negvec.protocol import Result, drive
from negvec.workloads import SHAPES, pair

from .runs import N

FRAME = max(4096, N // 2)  # 500,000 for a million items
POLICIES = {
    "reference": negvec.ReferencePolicy,
    "adaptive": lambda: negvec.AdaptivePolicy(responder_limit=FRAME),
}


class Policies:
    params = (SHAPES, tuple(POLICIES))
    param_names = ("shape", "policy")

    def setup(self, shape: str, policy: str) -> None:
        sides = pair(shape, N)
        self.ours, self.theirs = negvec.seal(*sides.ours), negvec.seal(*sides.theirs)
        self.result = self.run(policy)
        ours, theirs = (side.ids.view("V32").ravel() for side in sides)
        assert len(self.result.have) == len(np.setdiff1d(ours, theirs))
        assert len(self.result.need) == len(np.setdiff1d(theirs, ours))

    def run(self, policy: str) -> Result:
        initiator = negvec.Negentropy(self.ours, policy=POLICIES[policy]())
        return drive(initiator, negvec.Negentropy(self.theirs, FRAME))

    def time_both_sides(self, shape: str, policy: str) -> None:
        self.run(policy)

    def track_bytes(self, shape: str, policy: str) -> int:
        return self.result.bytes_up + self.result.bytes_down

    track_bytes.unit = "bytes"  # type: ignore[attr-defined]

    def track_rounds(self, shape: str, policy: str) -> int:
        return self.result.rounds

    track_rounds.unit = "rounds"  # type: ignore[attr-defined]
