"""An index that changes: writes, snapshots and their fingerprints, and what it takes."""

from __future__ import annotations

import itertools

import numpy as np

import negvec
from negvec.workloads import Side, pair

from .runs import N

BATCH = 1000  # items of a write


def filled(side: Side, batch: int = BATCH) -> negvec.LiveIndex:
    live = negvec.LiveIndex()
    for start in range(0, len(side.ids), batch):
        live.insert(side.created_at[start : start + batch], side.ids[start : start + batch])
    assert len(live) == len(side.ids)
    return live


class Fill:
    """All items of a side, a thousand at a time."""

    params = ("ascending", "descending", "random", "all at one second")
    param_names = ("order",)

    def setup(self, order: str) -> None:
        side = pair("contiguous", N).ours
        rows = np.arange(len(side.ids))
        if order == "random":
            rows = np.random.default_rng(1).permutation(len(rows))
        created_at = np.zeros_like(side.created_at) if order == "all at one second" else side.created_at[rows]
        self.side = Side(created_at, side.ids[rows])
        if order == "descending":
            self.side = Side(self.side.created_at[::-1].copy(), self.side.ids[::-1].copy())
        assert filled(self.side).fingerprint(0, len(rows)) == negvec.seal(*side).fingerprint(0, len(rows))

    def time_fill(self, order: str) -> None:
        filled(self.side)

    def track_bytes_an_item(self, order: str) -> float:
        return filled(self.side).nbytes / len(self.side.ids)

    track_bytes_an_item.unit = "bytes"  # type: ignore[attr-defined]


class Write:
    """One write to a full index, and its undoing: divide by two, and by the number of items."""

    params = ([1, BATCH], ["tail", "anywhere"], [False, True])
    param_names = ("items", "where", "after a snapshot")

    def setup(self, items: int, where: str, snapshot: bool) -> None:
        side = pair("contiguous", N).ours
        self.live = filled(side)
        random = np.random.default_rng(2)
        low = side.created_at[-1] if where == "tail" else side.created_at[0]
        created_at = np.sort(random.integers(low, side.created_at[-1] + 50, items, np.uint64))
        ids = random.integers(0, 256, (items, 32), np.uint8)
        self.items = (int(created_at[0]), ids[0].tobytes()) if items == 1 else (created_at, ids)
        before = self.live.fingerprint(0, len(self.live))
        assert (self.live.insert(*self.items), self.live.erase(*self.items)) == (items, items)
        assert self.live.fingerprint(0, len(self.live)) == before

    def time_insert_and_erase(self, items: int, where: str, snapshot: bool) -> None:
        if snapshot:
            self.live.snapshot()
        self.live.insert(*self.items)
        self.live.erase(*self.items)


class Snapshots:
    def setup(self) -> None:
        side = pair("contiguous", N).ours
        self.live = filled(side)
        self.later = itertools.count(2**40)
        storage = negvec.seal(*side)
        snapshot = self.live.snapshot()
        self.live.insert(next(self.later), bytes(32))
        assert snapshot.fingerprint(0, len(snapshot)) == storage.fingerprint(0, len(storage))

    def time_snapshot(self) -> None:
        self.live.snapshot()

    def time_snapshot_after_a_write(self) -> None:
        self.live.insert(next(self.later), bytes(32))
        self.live.snapshot()
