"""The stages of a round that do not depend on the policy: a message held against own items, and one written."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from negvec import kernels
from negvec.errors import DamagedStorage
from negvec.protocol.codec import FINGERPRINT, ID_LIST, INFINITY, VERSION, Layout, Ranges, encode, join
from negvec.storage.seam import Bounds, Bytes, Indices, Storage

Watch = Callable[[str], None]
"""Told the name of each stage of a round as it ends. One that has the methods `begin`, `heard` and `said` as well is
told when a call begins, and shown every message as columns: `negvec.trace.Trace` is such a one."""

NOTHING = np.frombuffer(hashlib.sha256(bytes(33)).digest()[:16], "<u8")
"""The fingerprint of no items: of a sum and a count of zero."""

FIRST_BATCH = 512  # ranges

CUT = 255  # prefix length that marks a bound to be filled in; see the kernels that lay out


class Heard(NamedTuple):
    """A peer's ranges as they stand to our own items, a row each.

    Attributes
    ----------
    ranges : Ranges
    lower, upper : ndarray of int64, shape (m,)
        Own indices at which each begins and ends.
    differs, empty : ndarray of uint8, shape (m,)
        Whether it is a Fingerprint other than ours, and whether one of nothing.
    """

    ranges: Ranges
    lower: Indices
    upper: Indices
    differs: Bytes
    empty: Bytes


class Parts(NamedTuple):
    """Ranges cut into sub-ranges: own index pairs of all, in order, and the bounds of the cuts inside each range."""

    lo: Indices
    hi: Indices
    cuts: Bounds


class Watched:
    """A storage, and who watches what is done with it."""

    def __init__(self, storage: Storage, watch: Watch | None) -> None:
        self.storage = storage
        self.watch = watch or _unwatched
        self._begin: Callable[[bool], None] | None = getattr(watch, "begin", None)
        self._heard: Callable[[bool, Bytes, Heard], None] | None = getattr(watch, "heard", None)
        self._said: Callable[[bool, bytes, Layout], None] | None = getattr(watch, "said", None)

    def examine(self, message: Bytes, ranges: Ranges, at: int) -> Heard:
        """Locate and compare ranges of a message, of which the first begins at the own index `at`."""
        if not len(ranges.modes):  # an answer that settles everything
            none = np.zeros(0, np.int64)
            return Heard(ranges, none, none, ranges.modes, ranges.modes)
        upper = self.storage.lower_bounds(ranges.bounds.created_at, ranges.bounds.ids)
        lower = np.empty_like(upper)
        lower[:1] = at
        lower[1:] = upper[:-1]
        if (upper < lower).any():  # the decoder has seen to it that bounds ascend
            raise DamagedStorage("the storage's items are out of order: it is damaged, or was changed meanwhile")
        self.watch("locate")
        differs, empty = np.zeros(len(upper), np.uint8), np.zeros(len(upper), np.uint8)
        hashed = np.flatnonzero(ranges.modes == FINGERPRINT)
        own = self.storage.fingerprints(lower[hashed], upper[hashed])
        differing, nothing = np.empty(len(hashed), np.uint8), np.empty(len(hashed), np.uint8)
        kernels.message.compare(message, ranges.payloads[hashed], own.view("<u8"), NOTHING, differing, nothing)
        differs[hashed], empty[hashed] = differing, nothing
        self.watch("fingerprint")
        return Heard(ranges, lower, upper, differs, empty)

    def split(self, lo: Indices, hi: Indices, buckets: Indices) -> Parts:
        """Cut own ranges into their numbers of buckets; 0 leaves one whole."""
        parts = int(np.maximum(buckets, 1).sum())
        parts_lo, parts_hi = np.empty(parts, np.int64), np.empty(parts, np.int64)
        inner = np.empty(parts - len(lo), np.int64)
        kernels.message.split(lo, hi, buckets, parts_lo, parts_hi, inner)
        return Parts(parts_lo, parts_hi, self.storage.minimal_bounds(inner))

    def write(self, layout: Layout) -> bytes:
        """Fingerprint and encode."""
        if not len(layout.modes):
            return bytes([VERSION])
        hashed = layout.modes == FINGERPRINT
        fingerprints = self.storage.fingerprints(layout.lo[hashed], layout.hi[hashed])
        self.watch("fingerprint")
        listed = layout.modes == ID_LIST
        message = encode(layout, fingerprints, self.storage.id_lists(layout.lo[listed], layout.hi[listed]))
        self.watch("encode")
        return message

    def begin(self, initiates: bool) -> None:
        """Tell who watches that a call begins, of the initiator or of a responder."""
        if self._begin is not None:
            self._begin(initiates)

    def show_heard(self, initiates: bool, message: Bytes, batches: list[Heard]) -> None:
        """Show a message that came in to who watches; of one that is not read to its end, what was read."""
        if self._heard is not None:
            self._heard(initiates, message, join_heard(batches))

    def show_said(self, initiates: bool, message: bytes, layout: Layout) -> None:
        """Show a message that goes out to who watches."""
        if self._said is not None:
            self._said(initiates, message, layout)


def join_heard(batches: list[Heard]) -> Heard:
    """Batches of ranges that follow one another, as one."""
    if len(batches) == 1:
        return batches[0]
    ranges = join([batch.ranges for batch in batches])
    return Heard(ranges, *map(np.concatenate, zip(*(batch[1:] for batch in batches), strict=True)))


def everything() -> Bounds:
    """The bound of all there is, a row."""
    return Bounds(np.full(1, INFINITY, np.uint64), np.zeros((1, 32), np.uint8), np.zeros(1, np.uint8))


def blank(most: int) -> Layout:
    """A layout with room for that many ranges."""
    return Layout(
        Bounds(np.empty(most, np.uint64), np.empty((most, 32), np.uint8), np.empty(most, np.uint8)),
        *(np.empty(most, np.uint8), np.empty(most, np.int64), np.empty(most, np.int64)),
    )


def first_rows(layout: Layout, m: int) -> Layout:
    """The first `m` ranges of a layout."""
    bounds, modes, lo, hi = layout
    return Layout(rows_of(bounds, slice(0, m)), modes[:m], lo[:m], hi[:m])


def rows_of(bounds: Bounds, rows: Any) -> Bounds:
    """Some rows of bounds."""
    return Bounds(bounds.created_at[rows], bounds.ids[rows], bounds.lengths[rows])


def put_bound(bounds: Bounds, row: int, source: Bounds, k: int) -> None:
    """Overwrite a row of bounds with row `k` of others."""
    bounds.created_at[row], bounds.ids[row], bounds.lengths[row] = (
        source.created_at[k],
        source.ids[k],
        source.lengths[k],
    )


EMPTY = blank(0)


def _unwatched(stage: str) -> None:
    pass
