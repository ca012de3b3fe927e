"""One round: a peer's message in, our answer out, in a fixed number of array steps.

decode       the message as columns
locate       every bound's index, one batched search
compare      every Fingerprint range's own fingerprint, one batch, against theirs; every IdList against our ids
plan         which ranges to pass over, to split, to list; every new sub-range, up to the frame size limit
fingerprint  every sub-range, one batch
encode       one buffer, written once
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np

from negvec import kernels
from negvec.protocol.codec import FINGERPRINT, ID_LIST, INFINITY, Layout, Ranges, decode, encode
from negvec.protocol.findings import Findings
from negvec.protocol.policy import SplitPolicy
from negvec.storage.seam import Bounds, Bytes, Indices, Storage

Watch = Callable[[str], None]  # told the name of each stage as it ends

NOTHING = np.frombuffer(hashlib.sha256(bytes(33)).digest()[:16], "<u8")
"""The fingerprint of no items: of a sum and a count of zero."""

_CUT = 255  # prefix length that marks the bound of a cut IdList; see kernels.message.plan


def _unwatched(stage: str) -> None:
    pass


class Round:
    """What stays the same over the rounds of one side: its storage, frame size limit and split policy."""

    def __init__(self, storage: Storage, limit: int, policy: SplitPolicy, watch: Watch | None) -> None:
        self.storage = storage
        self.limit = limit
        self.policy = policy
        self.watch = watch or _unwatched

    def first_message(self) -> bytes:
        """The whole set, split: what an initiator begins with."""
        size = len(self.storage)
        everything = Bounds(np.full(1, INFINITY, np.uint64), np.zeros((1, 32), np.uint8), np.zeros(1, np.uint8))
        asked = np.zeros(1, np.int64)
        layout = self._plan(everything, asked, asked, np.array([size]), np.zeros(1, np.uint8), np.zeros(1, np.uint8), 0)
        return self._write(layout)

    def answer(self, message: Bytes, findings: Findings | None) -> tuple[bytes, int]:
        """Answer a message: as the initiator that collects `findings`, or else as responder.

        Returns the answer and, for the initiator, how far its items are settled: the own index at which the answer's
        first open range begins, or the size of the set.
        """
        ranges = decode(message)
        self.watch("decode")
        upper = self.storage.lower_bounds(ranges.bounds.created_at, ranges.bounds.ids)
        lower = np.empty_like(upper)
        lower[:1] = 0
        lower[1:] = upper[:-1]
        self.watch("locate")
        asked, empty = self._mismatched(message, ranges, lower, upper)
        self.watch("fingerprint")
        actions = np.zeros(len(upper), np.uint8)  # PASS
        listed = np.flatnonzero(ranges.modes == ID_LIST)
        if findings is None:
            actions[listed] = kernels.message.ANSWER
        elif len(listed):
            findings.compare(message, ranges, listed, lower[listed], upper[listed])
            self.watch("compare")
        layout = self._plan(ranges.bounds, asked, lower, upper, actions, empty, self.limit)
        opened = layout.lo[layout.modes != 0]
        return self._write(layout), int(opened[0]) if len(opened) else len(self.storage)

    def _mismatched(self, message: Bytes, ranges: Ranges, lower: Indices, upper: Indices) -> tuple[Indices, Bytes]:
        """The rows whose fingerprint is not ours, and for every row whether that fingerprint is of nothing."""
        asked = np.flatnonzero(ranges.modes == FINGERPRINT)
        empty = np.zeros(len(upper), np.uint8)
        if len(asked):
            own = self.storage.fingerprints(lower[asked], upper[asked])
            differs, nothing = np.empty(len(asked), np.bool_), np.empty(len(asked), np.uint8)
            kernels.message.compare(
                message, ranges.payloads[asked], own.view("<u8"), NOTHING, differs.view(np.uint8), nothing
            )
            empty[asked] = nothing
            asked = asked[differs]
        return asked, empty

    def _plan(
        self,
        bounds: Bounds,
        asked: Indices,
        lower: Indices,
        upper: Indices,
        actions: Bytes,
        empty: Bytes,
        limit: int,
    ) -> Layout:
        """Lay out the answer: rows `asked` are split or listed, the others as `actions` says."""
        lo, hi = lower[asked], upper[asked]
        buckets = self.policy.buckets(lo, hi)
        buckets = np.where(buckets < 2, 0, np.minimum(buckets, hi - lo)).astype(np.int64, copy=False)
        actions[asked] = np.where(buckets > 0, kernels.message.SPLIT, kernels.message.LIST)
        parts = int(np.maximum(buckets, 1).sum())
        parts_lo, parts_hi = np.empty(parts, np.int64), np.empty(parts, np.int64)
        inner = np.empty(parts - len(asked), np.int64)
        kernels.message.split(lo, hi, buckets, parts_lo, parts_hi, inner)
        cuts = self.storage.minimal_bounds(inner)

        most = 2 * len(actions) + parts + 2
        out = Layout(
            Bounds(np.empty(most, np.uint64), np.empty((most, 32), np.uint8), np.empty(most, np.uint8)),
            np.empty(most, np.uint8),
            np.empty(most, np.int64),
            np.empty(most, np.int64),
        )
        peers, own, new = bounds, cuts, out.bounds
        m: int = kernels.message.plan(
            *(actions, empty, lower, upper, peers.created_at, peers.ids.view("<u8"), peers.lengths),
            *(buckets, parts_lo, parts_hi, own.created_at, own.ids.view("<u8"), own.lengths),
            *(new.created_at, new.ids.view("<u8"), new.lengths, out.modes, out.lo, out.hi),
            size=len(self.storage),
            limit=limit,
        )
        kept = Bounds(out.bounds.created_at[:m], out.bounds.ids[:m], out.bounds.lengths[:m])
        layout = Layout(kept, out.modes[:m], out.lo[:m], out.hi[:m])
        self._fill_cut(layout)
        self.watch("plan")
        return layout

    def _fill_cut(self, layout: Layout) -> None:
        """An IdList cut at the limit is the range before the last; its bound is the first item left out, whole."""
        created_at, ids, lengths = layout.bounds
        if len(lengths) >= 2 and lengths[-2] == _CUT:
            cut = int(layout.hi[-2])
            (item,) = self.storage.items(cut, cut + 1)
            created_at[-2], ids[-2], lengths[-2] = item["created_at"], item["id"], 32

    def _write(self, layout: Layout) -> bytes:
        hashed = layout.modes == FINGERPRINT
        fingerprints = self.storage.fingerprints(layout.lo[hashed], layout.hi[hashed])
        self.watch("fingerprint")
        listed = layout.modes == ID_LIST
        message = encode(layout, fingerprints, self.storage.id_lists(layout.lo[listed], layout.hi[listed]))
        self.watch("encode")
        return message


def as_bytes(message: Any) -> Bytes:
    """A message as (n,) uint8, without a copy.

    Raises
    ------
    TypeError
        Not bytes.
    """
    if isinstance(message, str):
        raise TypeError("a message is bytes; use bytes.fromhex(message) for hex")
    return np.frombuffer(message, np.uint8)
