"""Messages to columns and back, for the messages that are most unlike: ids in long lists, and short fingerprints."""

from __future__ import annotations

import numpy as np

from negvec.protocol import codec
from negvec.storage import IdLists

from .runs import N, recorded


class Messages:
    """The largest message of an unlimited run: full of ids where the pair is contiguous, of ranges where scattered."""

    params = ("contiguous", "scattered")
    param_names = ("shape",)

    def setup(self, shape: str) -> None:
        run = recorded(shape, N, (0, 0))
        message = max(run.questions + run.answers, key=len)
        self.message = np.frombuffer(message, np.uint8)
        ranges = codec.decode(self.message)
        sizes = np.where(ranges.modes == codec.FINGERPRINT, codec.FINGERPRINT_SIZE, 32 * ranges.counts)
        payloads = [message[at : at + size] for at, size in zip(ranges.payloads, sizes, strict=True)]
        listed, hashed = ranges.modes == codec.ID_LIST, ranges.modes == codec.FINGERPRINT
        last = np.cumsum(ranges.counts)
        first = last - ranges.counts
        self.layout = codec.Layout(ranges.bounds, ranges.modes, first, last)
        self.fingerprints = joined(payloads, hashed, codec.FINGERPRINT_SIZE)
        self.id_lists = IdLists(joined(payloads, listed, 32), first[listed])
        assert codec.encode(self.layout, self.fingerprints, self.id_lists) == message
        assert sum(map(len, payloads)) < len(message)

    def time_decode(self, shape: str) -> None:
        codec.decode(self.message)

    def time_encode(self, shape: str) -> None:
        codec.encode(self.layout, self.fingerprints, self.id_lists)


def joined(payloads: list[bytes], which: np.ndarray, width: int) -> np.ndarray:
    chosen = b"".join(payload for payload, yes in zip(payloads, which, strict=True) if yes)
    return np.frombuffer(chosen, np.uint8).reshape(-1, width)
