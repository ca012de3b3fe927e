"""Messages to columns and back (specification, sections Message, Range and Bound)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from negvec import kernels
from negvec.errors import ProtocolError
from negvec.storage.seam import Bounds, Bytes, IdLists, Indices

VERSION = 0x61  # protocol version 1
VERSIONS = range(0x60, 0x70)  # what a version byte can be
SKIP, FINGERPRINT, ID_LIST = 0, 1, 2  # modes
MODE_NAMES = ("Skip", "Fingerprint", "IdList")
INFINITY = 2**64 - 1
FINGERPRINT_SIZE = 16

REASONS = {  # by the numbers of negvec.kernels.message
    1: "the message ends in the middle of a range",
    2: "a varint is longer than 64 bits",
    3: "an id prefix is longer than 32 bytes",
    4: "unknown mode of a range: 0 is Skip, 1 Fingerprint, 2 IdList",
    5: "an IdList claims more ids than the message has bytes for",
    6: "a bound is less than the bound before it",
}

SMALLEST_RANGE = (
    19  # bytes of a Fingerprint range at least; only messages full of Skips and empty lists have more ranges
)


class Ranges(NamedTuple):
    """A message as columns, a row a range.

    Attributes
    ----------
    bounds : Bounds
        Upper bounds; each range begins where the one before ends, the first at zero.
    modes : ndarray of uint8, shape (m,)
        0 Skip, 1 Fingerprint, 2 IdList.
    payloads : ndarray of int64, shape (m,)
        Byte offsets in the message at which fingerprints and ids begin.
    counts : ndarray of int64, shape (m,)
        Number of ids listed; 0 but for an IdList.
    """

    bounds: Bounds
    modes: Bytes
    payloads: Indices
    counts: Indices


class Decoder:
    """Reads a message range by range, in batches, in time and memory linear in what is read."""

    def __init__(self, message: Bytes) -> None:
        self._message = message
        self._state = np.zeros(6, np.uint64)  # see negvec.kernels.message.decode
        self._state[0] = 1  # the version byte is read

    @property
    def done(self) -> bool:
        """Whether the message is at its end."""
        return int(self._state[0]) >= len(self._message)

    def read(self, most: int) -> Ranges:
        """Read the next ranges, at most that many.

        Raises
        ------
        ProtocolError
            With the byte offset and the reason.
        """
        fault = np.empty(2, np.int64)
        created_at, ids = np.empty(most, np.uint64), np.empty((most, 32), np.uint8)
        lengths, modes = np.empty(most, np.uint8), np.empty(most, np.uint8)
        payloads, counts = np.empty(most, np.int64), np.empty(most, np.int64)
        m = kernels.message.decode(
            *(self._message, created_at, ids.view("<u8"), lengths, modes, payloads, counts, self._state, fault)
        )
        if fault[0]:
            raise ProtocolError(REASONS[int(fault[0])], int(fault[1]))
        return Ranges(Bounds(created_at[:m], ids[:m], lengths[:m]), modes[:m], payloads[:m], counts[:m])


def decode(message: Bytes) -> Ranges:
    """Read all ranges behind the version byte; raises as `Decoder.read`."""
    decoder = Decoder(message)
    batches = [decoder.read(len(message) // SMALLEST_RANGE + 1)]
    while not decoder.done:
        batches.append(decoder.read(2 * len(batches[-1].modes)))
    return join(batches)


def join(batches: list[Ranges]) -> Ranges:
    """Batches of ranges that follow one another, as one."""
    if len(batches) == 1:
        return batches[0]
    bounds = Bounds(*map(np.concatenate, zip(*(batch.bounds for batch in batches), strict=True)))
    modes, payloads, counts = map(np.concatenate, zip(*(batch[1:] for batch in batches), strict=True))
    return Ranges(bounds, modes, payloads, counts)


class Layout(NamedTuple):
    """The ranges of a message to be written: as `Ranges`, with own index pairs in place of payloads."""

    bounds: Bounds
    modes: Bytes
    lo: Indices
    hi: Indices


def encode(layout: Layout, fingerprints: Bytes, id_lists: IdLists) -> bytes:
    """Write a message; `fingerprints` has a row for each Fingerprint range, `id_lists` one for each IdList."""
    created_at, ids, lengths = layout.bounds
    size = kernels.message.measure(created_at, lengths, layout.modes, layout.lo, layout.hi)
    message = np.empty(size, np.uint8)
    message[0] = VERSION
    kernels.message.encode(
        *(created_at, ids.view("<u8"), lengths, layout.modes, layout.lo, layout.hi),
        *(fingerprints.view("<u8"), id_lists.ids.view("<u8"), id_lists.first, message),
    )
    return message.tobytes()
