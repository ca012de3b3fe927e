"""What a reconciliation of two mapped files, both in the system's cache, leaves in memory; and what that costs."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np

import negvec
from negvec.workloads import pair

from .runs import N, assert_same_ids

LACKING = 350  # items that each side lacks, all over the set


class Mapped:
    """Of as many items as NEGVEC_BENCH_N, or half a million, with an eighth of each file allowed to stay, or all."""

    params = (("an eighth", "all"),)
    param_names = ("may stay",)

    def setup(self, may_stay: str) -> None:
        side, random = negvec.seal(*pair("identical", max(N, 500_000) * 5 // 4).ours), np.random.default_rng(1)
        lacking = np.split(random.choice(len(side), 2 * LACKING, replace=False), 2)
        self.folder = tempfile.TemporaryDirectory()
        self.sides = []
        for name, rows in zip("ab", lacking, strict=True):
            path = Path(self.folder.name) / name
            negvec.seal(np.delete(side.created_at, rows), np.delete(side.ids, rows, axis=0)).save(path)
            size = path.stat().st_size
            self.sides.append(negvec.open(path, resident=size // 8 if may_stay == "an eighth" else size))
        found = negvec.reconcile(*self.sides)
        assert_same_ids(found.need, side.ids[lacking[0]])
        assert_same_ids(found.have, side.ids[lacking[1]])

    def teardown(self, may_stay: str) -> None:
        for storage in self.sides:
            storage.close()
        self.folder.cleanup()

    def time_reconcile(self, may_stay: str) -> None:
        negvec.reconcile(*self.sides)

    def track_most_resident(self, may_stay: str) -> float:
        """The greatest share of both files that is resident at the end of any stage."""
        if not sys.platform.startswith("linux"):
            raise NotImplementedError("what is resident is read from /proc")
        seen: list[int] = []
        sides = [negvec.Negentropy(storage, watch=lambda _: seen.append(self.resident())) for storage in self.sides]
        negvec.protocol.drive(*sides)
        share = max(seen) / sum(path.stat().st_size for path in Path(self.folder.name).iterdir())
        assert share < (0.4 if may_stay == "an eighth" else 1.1)
        return share

    track_most_resident.unit = "of the files"  # type: ignore[attr-defined]

    def resident(self) -> int:
        total, counts = 0, False
        for line in Path("/proc/self/smaps").read_text().splitlines():
            fields = line.split()
            if "-" in fields[0] and not fields[0].endswith(":"):
                counts = self.folder.name in line
            elif counts and fields[0] == "Rss:":
                total += 1024 * int(fields[1])
        return total
