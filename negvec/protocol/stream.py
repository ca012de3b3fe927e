"""Findings as they come: what each message has shown that no message before had, each id once.

What is given can't be taken back. An id that both sides hold under different timestamps may have been given before the
other mention of it comes; `Findings`, which wait for the end, give it in neither list.
"""

from __future__ import annotations

import numpy as np

from negvec import kernels
from negvec.items import Ids
from negvec.protocol.codec import Ranges
from negvec.protocol.findings import Findings, Tags, as_ids, hashed
from negvec.storage.seam import Bytes, Indices, Storage, Words

FEWEST_SLOTS = 1 << 10


class _Once:
    """Ids, each once, in the order in which they were first added; those that were not taken yet can be."""

    def __init__(self) -> None:
        self._known, self._tags = np.empty((0, 4), np.uint64), np.empty(0, np.uint32)
        self._slots = np.full(FEWEST_SLOTS, -1, np.int32)
        self._count = self._taken = 0

    def __len__(self) -> int:
        return self._count

    def add(self, ids: Words, tags: Tags) -> None:
        """Add those that are new; expected time is linear in all that is added."""
        room = self._count + len(ids)
        if room > len(self._known):
            known, known_tags = np.empty((2 * room, 4), np.uint64), np.empty(2 * room, np.uint32)
            known[: self._count], known_tags[: self._count] = self._known[: self._count], self._tags[: self._count]
            self._known, self._tags = known, known_tags
        if 2 * room > len(self._slots):
            self._slots = np.full(1 << (4 * room - 1).bit_length(), -1, np.int32)
            kernels.once.index(self._tags, self._count, self._slots)
        self._count = kernels.once.enter(ids, tags, self._known, self._tags, self._count, self._slots)

    def take(self) -> Ids:
        """Those that were not taken before, (k, 32) uint8."""
        fresh = self._known[self._taken : self._count].copy()
        self._taken = self._count
        return as_ids(fresh)


class FindingsStream(Findings):
    """Findings of which the new ones can be taken after each message."""

    def __init__(self, storage: Storage) -> None:
        super().__init__(storage)
        self._haves, self._needs = _Once(), _Once()  # an own id, too, may be there under several timestamps

    def compare(self, message: Bytes, ranges: Ranges, listed: Indices, lower: Indices, upper: Indices) -> None:
        """See `Findings.compare`."""
        super().compare(message, ranges, listed, lower, upper)
        assert self._have is not None
        rows = np.empty(int((upper - lower).sum()), np.int64)
        found = rows[: kernels.once.give(self._have, lower, upper, rows)]
        if len(found):
            self._haves.add(*hashed(self._ids_of(found, found + 1)))
        self._needs.add(*self._need.columns())
        self._need.clear()

    def distinct_needs(self) -> int:
        """See `Findings.distinct_needs`."""
        return len(self._needs)

    def finish(self) -> tuple[Ids, Ids]:
        """What was found since it was taken last."""
        return self.take()

    def take(self) -> tuple[Ids, Ids]:
        """Have and need, (k, 32) uint8, as far as they were not taken before."""
        return self._haves.take(), self._needs.take()
