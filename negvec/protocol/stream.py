"""Findings as they come: what each message has shown that no message before had, each id once.

What is given can't be taken back. An id that both sides hold under different timestamps may have been given before the
other mention of it comes; `Findings`, which wait for the end, give it in neither list.
"""

from __future__ import annotations

import numpy as np

from negvec import kernels
from negvec.items import Ids
from negvec.protocol.codec import Ranges
from negvec.protocol.findings import Findings, as_ids
from negvec.storage.seam import Bytes, Indices, Storage

FEWEST_SLOTS = 1 << 10


class FindingsStream(Findings):
    """Findings of which the new ones can be taken after each message."""

    def __init__(self, storage: Storage) -> None:
        super().__init__(storage)
        self._known, self._known_tags = np.empty((0, 4), np.uint64), np.empty(0, np.uint32)
        self._count = self._given = 0  # needs known, and how many of them were taken
        self._slots = np.full(FEWEST_SLOTS, -1, np.int32)
        self._rows: list[Indices] = []  # own items that are lacked, not taken yet

    def compare(self, message: Bytes, ranges: Ranges, listed: Indices, lower: Indices, upper: Indices) -> None:
        """See `Findings.compare`."""
        super().compare(message, ranges, listed, lower, upper)
        assert self._have is not None
        rows = np.empty(int((upper - lower).sum()), np.int64)
        found = kernels.once.give(self._have, lower, upper, rows)
        self._rows.append(rows[:found].copy())
        ids, tags = self._need.columns()
        self._need.clear()
        self._make_room(len(ids))
        self._count = kernels.once.enter(ids, tags, self._known, self._known_tags, self._count, self._slots)

    def _make_room(self, more: int) -> None:
        room = self._count + more
        if room > len(self._known):
            known, tags = np.empty((2 * room, 4), np.uint64), np.empty(2 * room, np.uint32)
            known[: self._count], tags[: self._count] = self._known[: self._count], self._known_tags[: self._count]
            self._known, self._known_tags = known, tags
        if 2 * room > len(self._slots):
            self._slots = np.full(1 << (4 * room - 1).bit_length(), -1, np.int32)
            kernels.once.index(self._known_tags, self._count, self._slots)

    def distinct_needs(self) -> int:
        """See `Findings.distinct_needs`."""
        return self._count

    def finish(self) -> tuple[Ids, Ids]:
        """What was found since it was taken last."""
        return self.take()

    def take(self) -> tuple[Ids, Ids]:
        """Have and need, (k, 32) uint8, as far as they were not taken before."""
        rows = np.concatenate([np.empty(0, np.int64), *self._rows])
        self._rows = []
        need = self._known[self._given : self._count].copy()
        self._given = self._count
        return as_ids(self._ids_of(rows, rows + 1)), as_ids(need)
