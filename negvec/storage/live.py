"""`LiveIndex`: a set of items that changes, and snapshots of it that do not.

The items lie sorted in blocks of a few hundred, and a table has the place of each block and the number and sum of all
items before it. A snapshot is the list of blocks, the table and the number of items as they are; making one copies
nothing, but sets the clock forward. Blocks, list and table are stamped with the time at which they were made: what was
made since the last snapshot is the writer's own, and changed in place; anything else is copied when it is to change,
and lives on for as long as a snapshot holds it. Items behind the last are written where no snapshot looks, and copy
nothing at all. Batches that belong all over the index are not even sorted before somebody reads (see `arrivals`).
"""

from __future__ import annotations

import os
import threading
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from negvec import kernels
from negvec.items import ID_SIZE, INFINITY, Timestamps, as_columns, from_events, from_structured
from negvec.storage.arguments import as_words
from negvec.storage.arrivals import (
    LIMIT,
    NEAR,
    Arrivals,
    Columns,
    Unsorted,
    is_cheaper_anew,
    made_anew,
    mostly_new,
    scatter,
)
from negvec.storage.changing import Changes, Flags, appended, edit, empty
from negvec.storage.seam import Bounds, Bytes, IdLists, Indices, Words
from negvec.storage.snapshot import Snapshot, Version
from negvec.storage.sorting import AS_THEY_LIE, gathered, rows_in_order
from negvec.storage.window import Progress, Window, Windowed

SMALL_WRITE = 1024
"""Items up to which a write is done in place, while a snapshot has to wait: a millisecond if all are far apart."""

FEW = 32
"""Items fewer than which are always sorted in at once."""


class LiveIndex(Windowed):
    """A set of items that grows and shrinks while it is reconciled.

    Any number of threads may write and read at once. Each write is seen as a whole or not at all, and by every snapshot
    that is taken after it returns. A session reconciles a snapshot: `negvec.Negentropy(live.snapshot())`. Taking one
    costs microseconds, whatever the size. Where batches that belong all over the index follow one another, they are
    sorted together by whoever reads first after them, at some 25 nanoseconds an item.

    The index is a storage itself (`negvec.Storage`), and always current: each of its answers is that of a snapshot
    taken for it. Two answers are of one set only if nothing was written in between, so that a reconciliation over an
    index that changes would give wrong results, or a ValueError.

    Examples
    --------
    >>> live = LiveIndex()
    >>> live.insert([1, 2], ["aa" * 32, "bb" * 32])
    2
    >>> storage = live.snapshot()
    >>> live.insert(2, "bb" * 32), live.erase(1, "aa" * 32)
    (0, 1)
    >>> len(live), len(storage)
    (1, 2)
    """

    def __init__(self) -> None:
        self._clock = 1  # set forward by every snapshot
        self._contents: Version | Unsorted = empty(self._clock)
        self._arrivals: Arrivals | None = None  # to go on with: what they have come to is in `_contents`
        self._batch_at = 0  # the clock after the last write, if that was a batch of items to add
        self._done = np.array([0, -1])  # what a write of one item has changed; see negvec.kernels.single
        self._spare: Words | None = None  # a block that such a write may need
        self._writing = threading.Lock()  # one writer at a time
        self._changing = threading.Lock()  # held while clock and contents are changed, and blocks in place

    # ---- writes

    def insert(self, created_at: Any, ids: Any) -> int:
        """Add one item, or columns of items; those that are there already change nothing.

        Parameters
        ----------
        created_at : int, or array_like of int, shape (n,)
        ids : bytes or 64 hex digits; or what `negvec.seal` takes for n ids

        Returns
        -------
        int
            How many of them were not there before.

        Raises
        ------
        ValueError, TypeError
            Something that is no item; then none is added.
        """
        if isinstance(ids, (bytes, str)):
            return self._write_one(*_item(created_at, ids), add=True)
        return self._write_all(*as_columns(created_at, ids), add=True)

    def insert_items(self, items: npt.NDArray[np.void]) -> int:
        """Add a structured array of items, such as one of dtype `negvec.ITEM`; as `insert`."""
        return self._write_all(*from_structured(items), add=True)

    def insert_events(self, events: Any) -> int:
        """Add Nostr events (NIP-01) given as dicts; as `insert`."""
        return self._write_all(*from_events(events), add=True)

    def erase(self, created_at: Any, ids: Any) -> int:
        """Remove one item, or columns of items, given as to `insert`; those that are not there change nothing.

        Returns
        -------
        int
            How many of them were there before.

        Raises
        ------
        ValueError, TypeError
            Something that is no item; then none is removed.
        """
        if isinstance(ids, (bytes, str)):
            return self._write_one(*_item(created_at, ids), add=False)
        return self._write_all(*as_columns(created_at, ids), add=False)

    def apply(self, created_at: Any, ids: Any, add: Any) -> Changes:
        """Add and remove items in one write: no snapshot has a part of it.

        Parameters
        ----------
        created_at, ids
            Columns of items, as `insert` takes them.
        add : array_like of bool, shape (n,)
            Whether to add the item of the row, or to remove it. Of an item that is there in several rows the last
            counts, as if they had been written one after another.

        Returns
        -------
        Changes
            How many items are there now and were not before, and the other way round.

        Raises
        ------
        ValueError, TypeError
            Something that is no item, or no flag; then nothing is changed.
        """
        timestamps, checked = as_columns(created_at, ids)
        flags = np.asarray(add)
        if flags.dtype != np.bool_ and flags.size:
            raise TypeError(f"add is a column of bool, not {flags.dtype}")
        if flags.shape != timestamps.shape:
            raise ValueError(f"add has the shape {flags.shape} for {len(timestamps)} items")
        return self._write(*_last_of_each(timestamps, as_words(checked), flags.astype(np.uint8)), AS_THEY_LIE)

    # ---- reads

    def snapshot(self) -> Snapshot:
        """What the index holds now, as an immutable storage; O(1), and shared by all who like.

        It waits for a write of up to `SMALL_WRITE` items to end, and for no other.
        """
        with self._changing:
            self._clock += 1
            contents, self._arrivals = self._contents, None
        return Snapshot(contents)

    def __len__(self) -> int:
        return self._contents.size

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {len(self)} items>"

    @property
    def nbytes(self) -> int:
        """Bytes of memory that the items take, with their sums, without what only snapshots still hold."""
        contents, arrivals = self._contents, self._arrivals
        return contents.nbytes + (arrivals.slots.nbytes if arrivals is not None else 0)

    @property
    def created_at(self) -> Timestamps:
        """All timestamps, (n,) uint64, ascending; a copy, read-only."""
        return self.snapshot().created_at

    @property
    def ids(self) -> Bytes:
        """All ids, (n, 32) uint8, in the order of the items; a copy, read-only."""
        return self.snapshot().ids

    def items(self, lo: int, hi: int) -> npt.NDArray[np.void]:
        """As `Snapshot.items`, of the items as they are now."""
        return self.snapshot().items(lo, hi)

    def id_lists(self, lo: Any, hi: Any) -> IdLists:
        """As `Snapshot.id_lists`, of the items as they are now."""
        return self.snapshot().id_lists(lo, hi)

    def lower_bounds(self, created_at: Any, ids: Any) -> Indices:
        """As `Snapshot.lower_bounds`, of the items as they are now."""
        return self.snapshot().lower_bounds(created_at, ids)

    def minimal_bounds(self, index: Any) -> Bounds:
        """As `Snapshot.minimal_bounds`, of the items as they are now."""
        return self.snapshot().minimal_bounds(index)

    def fingerprints(self, lo: Any, hi: Any) -> Bytes:
        """As `Snapshot.fingerprints`, of the items as they are now."""
        return self.snapshot().fingerprints(lo, hi)

    def fingerprint(self, lo: int, hi: int) -> bytes:
        """As `Snapshot.fingerprint`, of the items as they are now."""
        return self.snapshot().fingerprint(lo, hi)

    def window(self, since: int | None = None, until: int | None = None) -> Window:
        """As `Snapshot.window`, of the items as they are now; later writes do not change it."""
        return self.snapshot().window(since, until)

    def between(self, lower: tuple[int, bytes], upper: tuple[int, bytes]) -> Window:
        """As `Snapshot.between`, of the items as they are now; later writes do not change it."""
        return self.snapshot().between(lower, upper)

    def save(
        self, path: str | os.PathLike[str], *, stride: int | None = None, progress: Progress | None = None
    ) -> None:
        """As `Snapshot.save`, of the items as they are now; writes may go on meanwhile."""
        self.snapshot().save(path, stride=stride, progress=progress)

    def verify(self, progress: Progress | None = None) -> None:
        """As `Snapshot.verify`, of the items as they are now; writes may go on meanwhile."""
        self.snapshot().verify(progress)

    # ---- how a write is done

    def _write_one(self, created_at: int, words: Words, add: bool) -> int:
        """Change one item; the number of items that changed."""
        single, done = kernels.single, self._done
        with self._writing:
            version, self._batch_at = self._settle(), 0
            spare = self._spare
            if spare is None:
                spare = self._spare = np.empty(kernels.blocks.BLOCK_WORDS, np.uint64)
            with self._changing:
                blocks, table, rows, size, stamp = version
                changed = Version(blocks, table, rows, size + 1 if add else size - 1, stamp)
                own = stamp == self._clock
                try:
                    status = single.write(*(table, rows, size, self._clock, created_at, words, add, own, spare, done))
                finally:  # Also where an interrupt comes. It comes after a call, so that nothing is called here.
                    if done[1] >= 0:
                        blocks[done[1]] = spare
                        self._spare = None
                        done[1] = -1
                    if done[0]:
                        self._contents = changed
                        done[0] = 0
            if status != single.LEFT:
                return int(status == single.DONE)
        return self._write_all(np.array([created_at], np.uint64), words.view(np.uint8).reshape(1, ID_SIZE), add)

    def _write_all(self, created_at: Timestamps, ids: Bytes, add: bool) -> int:
        timestamps, words = np.require(created_at, requirements=["A"]), as_words(ids)
        if add and len(timestamps) >= FEW:
            arrived = self._arrive(timestamps, words)
            if arrived is not None:
                return arrived
        places = rows_in_order(timestamps, words)
        count = len(places) if len(places) else len(timestamps)
        changes = self._write(timestamps, words, np.full(count, add, np.uint8), places)
        return changes.added if add else changes.removed

    def _write(self, created_at: Timestamps, words: Words, add: Flags, places: Words) -> Changes:
        """Change what items say, each there once; all of it, or nothing where an error comes.

        They are sorted as they lie, or in the order of the rows `places` if there are any; flags are sorted.
        """
        if not len(add):
            return Changes(0, 0)
        with self._writing:
            version = self._settle()
            try:
                if len(add) <= SMALL_WRITE:
                    with self._changing:
                        return self._change(version, self._clock, created_at, words, add, places)
                with self._changing:  # nothing is the writer's own now: snapshots may be taken all the while
                    self._clock += 1
                    clock = self._clock
                return self._change(version, clock, created_at, words, add, places)
            finally:
                self._batch_at = self._clock if len(add) >= FEW and add.all() else 0

    def _change(
        self, version: Version, clock: int, created_at: Timestamps, words: Words, add: Flags, places: Words
    ) -> Changes:
        first = int(places[0]) if len(places) else 0
        if add.all() and kernels.plans.follows(version.table, version.rows, version.size, created_at, words, first):
            self._contents = appended(version, clock, created_at, words, places)
            return Changes(self._contents.size - version.size, 0)
        if len(places):
            created_at, words = gathered(created_at, words, places)
        if add.all() and is_cheaper_anew(version, created_at):
            self._contents = made_anew(version, clock, Columns(created_at, words))
            return Changes(self._contents.size - version.size, 0)
        if version.rows:
            return edit(version, clock, created_at, words, add, partial(setattr, self, "_contents"))
        created_at, words = created_at[add != 0], words[add != 0]
        if not len(created_at):
            return Changes(0, 0)
        self._contents = appended(version, clock, created_at, words, AS_THEY_LIE)
        return Changes(len(created_at), 0)

    def _arrive(self, created_at: Timestamps, words: Words) -> int | None:
        """Add items without sorting them, where that is likely to be worth it; else None, and nothing is added."""
        with self._writing:
            arrivals = self._arrivals
            if arrivals is None or not arrivals.has_room(len(created_at)):
                version = self._settle()
                if self._batch_at != self._clock:  # the last write was read, or of another kind: as this may be
                    return None
                if len(created_at) > min(version.size, LIMIT) or scatter(version, created_at) <= NEAR:
                    return None
                if not mostly_new(version, created_at, words):
                    return None
                arrivals = Arrivals(version, len(created_at))
            self._arrivals = None  # those that an interrupt breaks off are not gone on with
            added = arrivals.enter(created_at, words)
            with self._changing:
                self._clock += 1
                self._contents, self._arrivals = arrivals.unsorted(self._clock), arrivals
                self._batch_at = self._clock
            return added

    def _settle(self) -> Version:
        """What there is, for a writer to change; of arrivals that is the end."""
        version = self._contents.settled()
        self._contents, self._arrivals = version, None
        return version


def _item(created_at: Any, item_id: bytes | str) -> tuple[int, Words]:
    """One item: its timestamp, and its id as (4,) uint64."""
    if type(created_at) is int and 0 <= created_at < INFINITY and type(item_id) is bytes and len(item_id) == ID_SIZE:
        return created_at, np.frombuffer(item_id, np.uint64)
    timestamps, ids = as_columns([created_at], [item_id])  # says what is wrong, or takes other types
    return int(timestamps[0]), as_words(ids)[0]


def _last_of_each(created_at: Timestamps, words: Words, add: Flags) -> tuple[Timestamps, Words, Flags]:
    """The items sorted, each of them once, with the last of its flags."""
    swapped = words.byteswap()
    order = np.lexsort((swapped[:, 3], swapped[:, 2], swapped[:, 1], swapped[:, 0], created_at))  # stable
    created_at, words = created_at[order], words[order]
    last = np.ones(len(order), np.bool_)
    last[:-1] = (created_at[1:] != created_at[:-1]) | (words[1:] != words[:-1]).any(axis=1)
    return created_at[last], words[last], add[order][last]
