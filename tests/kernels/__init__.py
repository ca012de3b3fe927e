"""Kernels against oracles in Python's own integers, lists, sets and hashlib.

Here stands what these tests have in common: items as a kernel takes them, and items of the kinds that are hard to sort.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from hypothesis import settings
from hypothesis import strategies as st

Item = tuple[int, bytes]
Words = npt.NDArray[np.uint64]

thorough = settings(max_examples=300)  # a kernel takes microseconds
LARGEST = 2**64 - 2  # the largest timestamp of an item
EDGES = [0, 1, 2**31 - 1, 2**32, 2**53, 2**53 + 1, 2**63 - 1, 2**63, LARGEST - 1, LARGEST]
STEM_LENGTHS = [0, 1, 7, 8, 9, 15, 16, 17, 23, 24, 25, 31, 32]  # about the edges of the words that an id is read in


def as_words(ids: list[bytes]) -> Words:
    """Ids as the (n, 4) uint64 matrix of their little-endian words."""
    return np.frombuffer(bytearray(b"".join(ids)), "<u8").reshape(-1, 4)


def as_ids(words: Words) -> list[bytes]:
    """The inverse of `as_words`."""
    return [row.tobytes() for row in words]


def as_columns(items: list[Item]) -> tuple[Words, Words]:
    """Items as timestamps, (n,), and the words of their ids, (n, 4)."""
    return np.array([created_at for created_at, _ in items], np.uint64), as_words([id for _, id in items])


def as_items(created_at: Words, words: Words) -> list[Item]:
    """The inverse of `as_columns`."""
    return list(zip(created_at.tolist(), as_ids(words), strict=True))


def as_number(id: bytes) -> int:
    """An id as it counts in a sum."""
    return int.from_bytes(id, "little")


timestamps = st.one_of(st.integers(0, 3), st.sampled_from(EDGES), st.integers(0, LARGEST))


@st.composite
def ids(draw: st.DrawFn) -> bytes:
    """An id that agrees with others in its first bytes, up to all 32, and may be zero from there on."""
    stem = draw(st.sampled_from([bytes(32), b"\xff" * 32, bytes(range(32)), b"\x80" * 32]))
    length = draw(st.sampled_from(STEM_LENGTHS))
    tail = draw(st.one_of(st.just(b""), st.binary(min_size=1, max_size=2), st.binary(min_size=32, max_size=32)))
    return (stem[:length] + tail)[:32].ljust(32, b"\0")


items = st.tuples(timestamps, ids())
