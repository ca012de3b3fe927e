"""Items on their way into a `LiveIndex`: batches that belong all over it, until somebody looks.

To sort such a batch into blocks is to write nearly all of them anew. Where batch follows batch and nobody reads what
is between, that is work for nothing: their items are kept as they came, each once, with a table of hashes that says at
once which are new (see `negvec.kernels.arrivals`). They are sorted in all together when a snapshot of them is first
read, or when something else is to be written.
"""

from __future__ import annotations

import os
import threading
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from negvec import kernels
from negvec.items import Timestamps
from negvec.storage.arguments import as_words
from negvec.storage.changing import absent, appended, edit, empty
from negvec.storage.seam import Words
from negvec.storage.snapshot import Snapshot, Version
from negvec.storage.sorting import gathered, rows_in_order

NEAR = 64
"""Blocks among which a batch is sorted in at once: a tenth of a millisecond if it has to write all of them anew."""

MOST = 8
"""How many times as many items as come may be there already, for all to be sorted anew rather than merged."""

SMALL = 32
"""How many times as many items as come first a version may have, for it to be taken apart: its items are then found in
a fourth of the time, and all are sorted together at the end."""

LIMIT = (1 << 20) - 1
"""Items that are kept unsorted: a slot numbers no more (see `negvec.kernels.arrivals`)."""

SAMPLE = 1000  # items of a batch that tell whether it is worth a table

FIRST_SLOTS = 1 << 13
GROWTH = 4  # of the slots, when half of them are taken


class Columns(NamedTuple):
    """Items, in any order."""

    created_at: Timestamps
    words: Words


class Unsorted:
    """A version, and items that are to be sorted into it. It never changes; and is sorted once, by whoever asks first.

    Parameters
    ----------
    version : Version
    clock : int
        Later than any stamp in `version`: nothing of that is changed.
    items : Columns
        In any order, each there once, and not in `version`.
    """

    def __init__(self, version: Version, clock: int, items: Columns) -> None:
        self.size = version.size + len(items.created_at)
        self._sources: tuple[Version, int, Columns] | None = (version, clock, items)
        self._settled: Version | None = None
        self._settling = threading.Lock()

    @property
    def nbytes(self) -> int:
        """Bytes of the items, with the sums of those that are sorted."""
        sources = self._sources
        if sources is None:
            return self.settled().nbytes
        version, _, items = sources
        return version.nbytes + items.created_at.nbytes + items.words.nbytes

    def settled(self) -> Version:
        """All of it in blocks."""
        with self._settling:
            if self._sources is not None:
                self._settled = sorted_in(*self._sources)
                self._sources = None
        assert self._settled is not None
        return self._settled


class Arrivals:
    """The items that a writer adds to a version unsorted.

    Parameters
    ----------
    version : Version
    expected : int
        How many items are to come. A version that is small beside them is taken apart: its items are the first.
    """

    def __init__(self, version: Version, expected: int) -> None:
        self.count = 0
        self._version = version
        self.slots: npt.NDArray[np.uint32] = np.empty(0, np.uint32)
        self._items = Columns(np.empty(0, np.uint64), np.empty((0, 4), np.uint64))
        self._secret = np.frombuffer(os.urandom(8 * kernels.arrivals.SECRET_WORDS), np.uint64)
        if version.size <= SMALL * expected and version.size + expected <= LIMIT:
            self._version = empty(version.stamp)
            self._grow(version.size)
            self._enter(_columns(version))

    def has_room(self, count: int) -> bool:
        """Whether so many may still be entered."""
        return self.count + count <= LIMIT

    def enter(self, created_at: Timestamps, words: Words) -> int:
        """Add items, for which there is room; returns how many of them were not there before."""
        before = self.count
        self._enter(new_of(self._version, created_at, words) if self._version.rows else Columns(created_at, words))
        return self.count - before

    def unsorted(self, clock: int) -> Unsorted:
        """The items so far, on top of their version."""
        created_at, words = self._items
        return Unsorted(self._version, clock, Columns(created_at[: self.count], words[: self.count]))

    def _enter(self, items: Columns) -> None:
        """Add what is not there yet; in parts, since nobody knows how much that is and how much room it takes."""
        start = 0
        while start < len(items.created_at):
            part = min(max(self.count // 4, FIRST_SLOTS // 4), len(items.created_at) - start)
            if 2 * (self.count + part) > len(self.slots):
                self._grow(self.count + part)
            rows = slice(start, start + part)
            some = items.created_at[rows], items.words[rows]
            self.count = kernels.arrivals.enter(*some, *self._items, self.count, self.slots, self._secret)
            start += part

    def _grow(self, room: int) -> None:
        slots, held = FIRST_SLOTS, self.count
        while slots < 2 * room:
            slots *= GROWTH
        larger = Columns(np.empty(slots // 2, np.uint64), np.empty((slots // 2, 4), np.uint64))
        larger.created_at[:held], larger.words[:held] = self._items.created_at[:held], self._items.words[:held]
        self._items, self.slots = larger, np.zeros(slots, np.uint32)
        kernels.arrivals.number(*larger, held, self.slots, self._secret)


def scatter(version: Version, created_at: Timestamps) -> int:
    """How many blocks lie between the first and the last to which items may belong, as their timestamps say."""
    return int(kernels.plans.scatter(version.table, version.rows, created_at))


def new_of(version: Version, created_at: Timestamps, words: Words) -> Columns:
    """Those of items that a version does not have, each once; there is a block at least."""
    places = rows_in_order(created_at, words)
    if len(places):
        created_at, words = gathered(created_at, words, places)
    new = absent(version, created_at, words)
    return Columns(created_at[new], words[new]) if len(new) < len(created_at) else Columns(created_at, words)


def mostly_new(version: Version, created_at: Timestamps, words: Words) -> bool:
    """Whether a version has less than half of some items, as far as a sample of them shows."""
    every = -(-len(created_at) // SAMPLE)
    some = np.ascontiguousarray(created_at[::every]), np.ascontiguousarray(words[::every])
    return 2 * len(new_of(version, *some).created_at) >= len(some[0])


def is_cheaper_anew(version: Version, created_at: Timestamps) -> bool:
    """Whether items belong nearly everywhere, and are so many that all are sorted sooner than they are merged."""
    return 0 < version.size <= MOST * len(created_at) and scatter(version, created_at) > NEAR


def made_anew(version: Version, clock: int, items: Columns) -> Version:
    """A version with more items, which come in any order and may be there already; nothing of it is used again."""
    there = _columns(version)
    created_at, words = (np.concatenate(both) for both in zip(there, items, strict=True))
    return appended(empty(clock), clock, created_at, words, rows_in_order(created_at, words))


def sorted_in(version: Version, clock: int, items: Columns) -> Version:
    """A version with more items, which come in any order, each once, and are not in it."""
    if not len(items.created_at):
        return version
    if is_cheaper_anew(version, items.created_at):
        return made_anew(version, clock, items)
    places = rows_in_order(*items)
    if not version.rows:
        return appended(empty(clock), clock, *items, places)
    if len(places):
        items = Columns(*gathered(*items, places))
    changed: list[Version] = []
    edit(version, clock, *items, np.ones(len(items.created_at), np.uint8), changed.append)
    return changed[0]


def _columns(version: Version) -> Columns:
    snapshot = Snapshot(version)
    return Columns(snapshot.created_at, as_words(snapshot.ids))
