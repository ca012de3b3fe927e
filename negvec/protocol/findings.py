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


class Findings:
    """Collects have and need over one reconciliation."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._have: Bytes | None = None  # for each own item 0, or whether the peer lacks or holds it
        self._need: list[Words] = []
        self._need_tags: list[Tags] = []
        self.marked = 0  # own items found to be lacked so far
        self.needed = 0  # ids listed so far that are not own, those that came twice counted twice

    def compare(self, message: Bytes, ranges: Ranges, listed: Indices, lower: Indices, upper: Indices) -> None:
        """Compare the IdLists of a message, rows `listed`, with the own ranges [lower, upper) of those rows."""
        if self._have is None:
            self._have = np.zeros(len(self._storage), np.uint8)
        counts = ranges.counts[listed]
        most = int(counts.sum())
        need, tags = np.empty((most, 4), np.uint64), np.empty(most, np.uint32)
        found = np.empty(2, np.int64)
        own = self._storage.id_lists(lower, upper)
        kernels.lists.difference(
            *(message, ranges.payloads[listed], counts, lower, upper),
            *(own.first, own.ids.view("<u8"), _hash_key(), self._have, need, tags, found),
        )
        needs = int(found[0])
        self.needed += needs
        self.marked += int(found[1])
        if needs:
            self._need.append(need if needs == most else need[:needs].copy())
            self._need_tags.append(tags if needs == most else tags[:needs].copy())

    def distinct_needs(self) -> int:
        """How many ids the peer has listed that are not own, each counted once: a pass over all of them."""
        need, tags = self._joined()
        nothing, no_tags = need[:0], tags[:0]
        repeats = np.empty(len(need), np.uint8)
        return len(need) - kernels.lists.mark_repeats(nothing, no_tags, need, tags, repeats[:0], repeats)

    def finish(self) -> tuple[Ids, Ids]:
        """Have and need, each id once: have in the order of the own items, need in the order of arrival."""
        (have, have_tags), (need, need_tags) = together(self._taken, self._joined)
        self._have, self._need, self._need_tags = None, [], []
        have_out, need_out = np.empty(len(have), np.uint8), np.empty(len(need), np.uint8)
        if kernels.lists.mark_repeats(have, have_tags, need, need_tags, have_out, need_out):
            have = have[: kernels.lists.drop_marked(have, have_out)]
            need = need[: kernels.lists.drop_marked(need, need_out)]
        return _as_ids(have), _as_ids(need)

    def _taken(self) -> tuple[Words, Tags]:
        lacked = self._have == kernels.lists.LACKED if self._have is not None else np.empty(0, np.bool_)
        rows = np.flatnonzero(lacked)
        have, tags = np.empty((len(rows), 4), np.uint64), np.empty(len(rows), np.uint32)
        if len(rows):
            ids, first = self._storage.id_lists(rows, rows + 1)
            kernels.lists.take(ids.view("<u8"), first, _hash_key(), have, tags)
        return have, tags

    def _joined(self) -> tuple[Words, Tags]:
        need = np.concatenate([np.empty((0, 4), np.uint64), *self._need])
        return need, np.concatenate([np.empty(0, np.uint32), *self._need_tags])


def _as_ids(words: Words) -> Ids:
    return words.view(np.uint8).reshape(-1, ID_SIZE)


@functools.cache
def _hash_key() -> Words:
    """Random for each process, so that no peer can choose ids that share a hash."""
    return np.frombuffer(secrets.token_bytes(8 * kernels.lists.KEY_WORDS), np.uint64)
