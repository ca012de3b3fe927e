"""The same questions to every storage: fingerprints of many ranges, and whole reconciliations. And files of them."""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

import numpy as np

import negvec
from negvec.workloads import Side, pair

from .live import filled
from .runs import N

RANGES = 10_000
STORAGES = ("stride 1", "stride 16", "snapshot", "mapped", "window")


def storage_of(kind: str, side: Side, folder: str) -> negvec.Storage:
    if kind == "snapshot":
        rows = np.random.default_rng(1).permutation(len(side.ids))
        return filled(Side(side.created_at[rows], side.ids[rows])).snapshot()
    storage = negvec.seal(*side, stride=16 if kind == "stride 16" else 1)
    if kind == "window":
        return storage.window(0, None)
    if kind == "mapped":
        path = Path(folder) / f"{len(list(Path(folder).iterdir()))}.negvec"
        storage.save(path)
        return negvec.open(path)
    return storage


class Questions:
    params = (STORAGES,)
    param_names = ("storage",)

    def setup(self, kind: str) -> None:
        sides = pair("contiguous", N)
        with tempfile.TemporaryDirectory() as folder:
            self.ours, self.theirs = (storage_of(kind, side, folder) for side in sides)
        vector = negvec.seal(*sides.ours)
        random = np.random.default_rng(2)
        self.lo, self.hi = np.sort(random.integers(0, len(vector) + 1, (2, RANGES)), axis=0)
        np.testing.assert_array_equal(self.ours.fingerprints(self.lo, self.hi), vector.fingerprints(self.lo, self.hi))
        found = negvec.reconcile(self.ours, self.theirs)
        assert len(found.have) == len(found.need) == N // 5

    def time_fingerprints(self, kind: str) -> None:
        self.ours.fingerprints(self.lo, self.hi)

    def time_reconcile(self, kind: str) -> None:
        negvec.reconcile(self.ours, self.theirs)


class Sound:
    """Verified in memory: the order of all items, and all sums."""

    params = (STORAGES,)
    param_names = ("storage",)

    def setup(self, kind: str) -> None:
        with tempfile.TemporaryDirectory() as folder:
            self.storage = storage_of(kind, pair("contiguous", N).ours, folder)

    def time_verify(self, kind: str) -> None:
        self.storage.verify()  # type: ignore[attr-defined]


class Strides:
    """How much slower fingerprints are where only some sums are kept: ranges anywhere, and ranges of a split."""

    params = ((2, 16, 256), ("anywhere", "split"))
    param_names = ("stride", "ranges")

    def setup(self, stride: int, ranges: str) -> None:
        side = pair("contiguous", N).ours
        self.all, self.some = negvec.seal(*side), negvec.seal(*side, stride=stride)
        n = len(self.all)
        if ranges == "anywhere":
            ends = np.sort(np.random.default_rng(2).integers(0, n + 1, (2, RANGES)), axis=0)
        else:
            cuts = np.linspace(0, n, RANGES + 1).astype(np.int64)
            ends = np.array([cuts[:-1], cuts[1:]])
        self.lo, self.hi = ends.copy()
        np.testing.assert_array_equal(self.some.fingerprints(*ends), self.all.fingerprints(*ends))
        if stride == 16:
            assert self.some.nbytes <= 43 * n

    def time_fingerprints(self, stride: int, ranges: str) -> None:
        self.some.fingerprints(self.lo, self.hi)

    def track_times_slower(self, stride: int, ranges: str) -> float:
        def seconds(storage: negvec.PrefixSumVector) -> float:
            started = time.perf_counter()
            storage.fingerprints(self.lo, self.hi)
            return time.perf_counter() - started

        pairs = [(seconds(self.some), seconds(self.all)) for _ in range(25)]
        return statistics.median(some for some, _ in pairs) / statistics.median(every for _, every in pairs)

    track_times_slower.unit = "times"  # type: ignore[attr-defined]


class Files:
    params = (1, 16)
    param_names = ("stride",)

    def setup(self, stride: int) -> None:
        self.storage = negvec.seal(*pair("contiguous", N).ours, stride=stride)
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "items.negvec"
        self.storage.save(self.path)
        with negvec.open(self.path) as opened:
            opened.verify()
            assert opened.fingerprint(0, len(opened)) == self.storage.fingerprint(0, len(self.storage))

    def teardown(self, stride: int) -> None:
        self.folder.cleanup()

    def time_save(self, stride: int) -> None:
        self.storage.save(self.path)

    def time_open(self, stride: int) -> None:
        negvec.open(self.path).close()

    def time_verify(self, stride: int) -> None:
        with negvec.open(self.path) as opened:
            opened.verify()

    def time_window(self, stride: int) -> None:
        self.storage.window(2**30, 2**31)

    def track_bytes_an_item(self, stride: int) -> float:
        return self.path.stat().st_size / len(self.storage)

    track_bytes_an_item.unit = "bytes"  # type: ignore[attr-defined]
