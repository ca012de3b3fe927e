"""600 fingerprints of a set of 50,000 ids: 200 of the whole set, 400 of a sixteenth of it."""

from __future__ import annotations

import hashlib

import numpy as np

import negvec
from negvec.workloads import pair

from .runs import N

FULL, NARROW = 200, 400


class RangeMix:
    def setup(self) -> None:
        n = max(N, 50_000)
        side = pair("identical", n * 5 // 4).ours
        self.prefix_sum = negvec.seal(*side)
        self.vector = negvec.Vector()
        self.vector.insert(*side)
        self.vector.seal()
        first = np.random.default_rng(1).integers(0, n - n // 16, NARROW)
        self.lo = np.concatenate([np.zeros(FULL, np.int64), first])
        self.hi = np.concatenate([np.full(FULL, n), first + n // 16])
        fingerprints = self.prefix_sum.fingerprints(self.lo, self.hi)
        np.testing.assert_array_equal(self.vector.fingerprints(self.lo, self.hi), fingerprints)
        for row in (0, FULL, FULL + NARROW - 1):
            assert fingerprints[row].tobytes() == fingerprint(self.prefix_sum.ids[self.lo[row] : self.hi[row]])
        for row, (lo, hi) in enumerate(zip(self.lo.tolist(), self.hi.tolist(), strict=True)):
            assert self.prefix_sum.fingerprint(lo, hi) == fingerprints[row].tobytes()

    def time_walk(self) -> None:
        self.vector.fingerprints(self.lo, self.hi)

    def time_prefix_sum_one_by_one(self) -> None:
        for lo, hi in zip(self.lo.tolist(), self.hi.tolist(), strict=True):
            self.prefix_sum.fingerprint(lo, hi)

    def time_prefix_sum_batched(self) -> None:
        self.prefix_sum.fingerprints(self.lo, self.hi)


def fingerprint(ids: np.ndarray) -> bytes:
    """By Python's integers and hashlib (specification, section Fingerprint Algorithm)."""
    total = sum(int.from_bytes(id.tobytes(), "little") for id in ids) % 2**256
    count, varint = len(ids), [len(ids) & 0x7F]
    while count := count >> 7:
        varint.insert(0, count & 0x7F | 0x80)
    return hashlib.sha256(total.to_bytes(32, "little") + bytes(varint)).digest()[:16]
