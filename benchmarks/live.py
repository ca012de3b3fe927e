"""An index that changes: writes, snapshots and their fingerprints, and what it takes."""

from __future__ import annotations

import itertools

import numpy as np

import negvec
from negvec.workloads import Side, pair

from .runs import N

BATCH = 1000  # items of a write
SINGLY = 100_000  # items that are written one at a time, at most: a fifth of a second and more


def filled(side: Side, batch: int = BATCH) -> negvec.LiveIndex:
    live = negvec.LiveIndex()
    for start in range(0, len(side.ids), batch):
        live.insert(side.created_at[start : start + batch], side.ids[start : start + batch])
    assert len(live) == len(side.ids)
    return live


ORDERS = ("ascending", "descending", "random", "all at one second")
BATCHES = {f"{batch:,}": batch for batch in (BATCH, 10_000, 100_000) if batch < N} | {"all at once": N}


def ordered(order: str) -> Side:
    """Items of as many seconds, in ascending or descending or random order; or of one second."""
    side = pair("contiguous", N).ours
    count = len(side.ids)
    created_at = side.created_at[0] + np.arange(count, dtype=np.uint64)
    if order == "descending":
        created_at = created_at[::-1].copy()
    elif order == "random":
        created_at = created_at[np.random.default_rng(1).permutation(count)]
    elif order == "all at one second":
        created_at[:] = created_at[0]
    return Side(created_at, side.ids)


class Fill:
    """All items of a side, so many at a time. What is asked of them is their ratio to ascending ones, 3 at most.

    Batches that belong all over the set are sorted when it is first read, which `time_fill_and_read` has as well.
    """

    params = (ORDERS, list(BATCHES))
    param_names = ("order", "items of a write")

    def setup(self, order: str, batch: str) -> None:
        self.side, self.batch = ordered(order), BATCHES[batch]
        live, count = filled(self.side, self.batch), len(self.side.ids)
        assert live.fingerprint(0, count // 2) == negvec.seal(*self.side).fingerprint(0, count // 2)

    def time_fill(self, order: str, batch: str) -> None:
        filled(self.side, self.batch)

    def time_fill_and_read(self, order: str, batch: str) -> None:
        filled(self.side, self.batch).fingerprint(0, 1)

    def track_bytes_an_item(self, order: str, batch: str) -> float:
        return filled(self.side, self.batch).nbytes / len(self.side.ids)

    track_bytes_an_item.unit = "bytes"  # type: ignore[attr-defined]


class FillSingly:
    """The first items of a side, one at a time."""

    params = (ORDERS,)
    param_names = ("order",)

    def setup(self, order: str) -> None:
        side = ordered(order)
        self.items = [
            (int(at), id.tobytes()) for at, id in zip(side.created_at[:SINGLY], side.ids[:SINGLY], strict=True)
        ]
        assert len(self.fill()) == len(self.items)

    def fill(self) -> negvec.LiveIndex:
        live = negvec.LiveIndex()
        for item in self.items:
            live.insert(*item)
        return live

    def time_fill(self, order: str) -> None:
        self.fill()


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
