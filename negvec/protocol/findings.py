"""What an initiator has found so far: which own items the peer lacks, and which ids it lists that are not own.

Frame limits make ranges come back, and so the same ids. Own items are marked by index, so that marking one twice is
nothing; the peer's ids are copied as they come, and gone through once, at the end, for those that are there twice.
Only then is it known, too, whether an id is in both lists, because the two sides hold it under different timestamps:
nobody lacks it, and it is dropped from both.
"""

from __future__ import annotations

import functools
import secrets

import numpy as np
import numpy.typing as npt

from negvec import kernels
from negvec.items import ID_SIZE, Ids
from negvec.protocol.codec import Ranges
from negvec.storage.seam import Bytes, Indices, Storage, Words
from negvec.threads import together

Tags = npt.NDArray[np.uint32]


class _Needs:
    """The peer's ids that are not own, in the order of arrival, with their tags."""

    def __init__(self) -> None:
        self._ids: list[Words] = []
        self._tags: list[Tags] = []

        self.needed = 0  # ids appended so far, those that came twice counted twice

    def append(self, message: Bytes, starts: Indices, lengths: Indices, count: int) -> None:
        """Copy runs of ids, `count` in all, that begin at bytes of a message."""
        ids = np.empty((count, 4), np.uint64)
        kernels.lists.gather(message, starts, lengths, ids)
        self._ids.append(ids)
        self._tags.append(hashed(ids)[1])
        self.needed += count

    def clear(self) -> None:
        self._ids, self._tags = [], []

    def columns(self) -> tuple[Words, Tags]:
        if len(self._ids) != 1:
            self._ids = [np.concatenate([np.empty((0, 4), np.uint64), *self._ids])]
            self._tags = [np.concatenate([np.empty(0, np.uint32), *self._tags])]
        return self._ids[0], self._tags[0]


class Findings:
    """Collects have and need over one reconciliation."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._have: Bytes | None = None  # for each own item 0, or whether the peer lacks or holds it
        self._need = _Needs()
        self.marked = 0  # own items found to be lacked so far

    def compare(self, message: Bytes, ranges: Ranges, listed: Indices, lower: Indices, upper: Indices) -> None:
        """Compare the IdLists of a message, rows `listed`, with the own ranges [lower, upper) of those rows."""
        if self._have is None:
            self._have = np.zeros(len(self._storage), np.uint8)
        counts = ranges.counts[listed]
        most = int(counts.sum())
        starts, lengths, found = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(3, np.int64)
        own = self._storage.id_lists(lower, upper)
        kernels.lists.difference(
            *(message, ranges.payloads[listed], counts, lower, upper),
            *(own.first, own.ids.view("<u8"), _hash_key(), self._have, starts, lengths, found),
        )
        runs, needs, marked = found.tolist()
        self.marked += marked
        if needs:
            self._need.append(message, starts[:runs], lengths[:runs], needs)

    @property
    def needed(self) -> int:
        """Ids listed so far that are not own, those that came twice counted twice."""
        return self._need.needed

    def distinct_needs(self) -> int:
        """How many ids the peer has listed that are not own, each counted once: a pass over all of them."""
        need, tags = self._need.columns()
        nothing, no_tags = need[:0], tags[:0]
        repeats = np.empty(len(need), np.uint8)
        return len(need) - kernels.lists.mark_repeats(nothing, no_tags, need, tags, repeats[:0], repeats)

    def finish(self) -> tuple[Ids, Ids]:
        """Have and need, each id once: have in the order of the own items, need in the order of arrival."""
        (have, have_tags), (need, need_tags) = together(self._lacked, self._need.columns)
        self._have, self._need = None, _Needs()
        have_out, need_out = np.empty(len(have), np.uint8), np.empty(len(need), np.uint8)
        if kernels.lists.mark_repeats(have, have_tags, need, need_tags, have_out, need_out):
            have = have[have_out == 0]
            need = need[: kernels.lists.drop_marked(need, need_out)]
        return as_ids(have), as_ids(need)

    def _lacked(self) -> tuple[Words, Tags]:
        """The ids of own items that are lacked."""
        if not self.marked or self._have is None:
            return hashed(np.empty((0, 4), np.uint64))
        lo, hi = np.empty(self.marked, np.int64), np.empty(self.marked, np.int64)
        runs = kernels.lists.lacked_runs(self._have, lo, hi)
        return hashed(self._ids_of(lo[:runs], hi[:runs]))

    def _ids_of(self, lo: Indices, hi: Indices) -> Words:
        """The ids of ranges of own items, one after another."""
        ids, first = self._storage.id_lists(lo, hi)
        found = np.empty((int((hi - lo).sum()), 4), np.uint64)
        kernels.lists.gather(ids.reshape(-1), ID_SIZE * first, hi - lo, found)
        return found


def hashed(ids: Words) -> tuple[Words, Tags]:
    """The ids, and their tags."""
    tags = np.empty(len(ids), np.uint32)
    kernels.lists.hash_ids(ids, _hash_key(), tags)
    return ids, tags


def as_ids(words: Words) -> Ids:
    """Rows of four words as (n, 32) uint8."""
    return words.view(np.uint8).reshape(-1, ID_SIZE)


@functools.cache
def _hash_key() -> Words:
    """Random for each process, so that no peer can choose ids that share a hash."""
    return np.frombuffer(secrets.token_bytes(8 * kernels.lists.KEY_WORDS), np.uint64)
