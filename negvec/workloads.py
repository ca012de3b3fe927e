"""Synthetic pairs of sets, by rule and seeded: what benchmarks, profiles and notebooks reconcile.

A pair is told by its shape, its number of items in all and a salt, and is the same on every machine. Ids come from
splitmix64's output function, so that every program can build the same pair (the C++ reference's recorded runs do).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from negvec.items import ID_SIZE, Ids, Timestamps

FIRST_CREATED_AT = 1_704_067_200  # 2024-01-01 00:00 UTC
ITEMS_PER_SECOND = 3

_BLOCK = 1 << 15  # items whose ids are made at once: 1 MiB, so that the passes of `_mix` stay in the cache

Held = npt.NDArray[np.bool_]  # for each item of all whether a side holds it
Words = npt.NDArray[np.uint64]


class Side(NamedTuple):
    """One side's items, sorted by `created_at`, as `negvec.seal` takes them.

    Attributes
    ----------
    created_at : ndarray of uint64, shape (n,)
    ids : ndarray of uint8, shape (n, 32)
    """

    created_at: Timestamps
    ids: Ids


class Pair(NamedTuple):
    """Two sides that differ; `ours` is the initiator's, `theirs` the responder's."""

    ours: Side
    theirs: Side


def pair(shape: str, n: int, salt: int = 0) -> Pair:
    """Build a pair of sets.

    Parameters
    ----------
    shape : str
        One of `SHAPES`; `DESCRIPTIONS` says how the sides of each differ.
    n : int
        Number of items in all; each side holds most of them.
    salt : int, default 0
        0 to 2**64 - 1; another salt gives other ids.

    Returns
    -------
    Pair
        In O(n) time, with fresh arrays.

    Raises
    ------
    ValueError
        There is no such shape, or no set of such a size.

    Examples
    --------
    >>> ours, theirs = pair("contiguous", 1000)
    >>> len(ours.ids), len(theirs.ids)
    (800, 800)
    """
    if shape not in _HELD:
        raise ValueError(f"there is no shape {shape!r}; the shapes are {', '.join(SHAPES)}")
    if n < 0:
        raise ValueError(f"n is a number of items, not {n}")
    if not 0 <= salt < 2**64:
        raise ValueError(f"salt is 0 to 2**64 - 1, not {salt}")
    i = np.arange(n, dtype=np.uint64)
    ours, theirs = _HELD[shape](i, np.uint64(salt))
    created_at = np.uint64(FIRST_CREATED_AT) + i // np.uint64(ITEMS_PER_SECOND)
    ids = _ids(n, np.uint64(salt))
    return Pair(Side(created_at[ours], ids[ours]), Side(created_at[theirs], ids[theirs]))


def _contiguous(i: Words, salt: np.uint64) -> tuple[Held, Held]:
    n = np.uint64(len(i))
    return 5 * i < 4 * n, 5 * i >= n


def _identical(i: Words, salt: np.uint64) -> tuple[Held, Held]:
    held = 5 * i < 4 * np.uint64(len(i))
    return held, held


def _scattered(i: Words, salt: np.uint64) -> tuple[Held, Held]:
    draws = salt + 7 * i
    return _mix(draws + np.uint64(2)) % 20 != 0, _mix(draws + np.uint64(1)) % 20 != 0


def _clustered(i: Words, salt: np.uint64) -> tuple[Held, Held]:
    group = _mix(salt + i // np.uint64(50)) % 100
    return group != 0, group != 1


_HELD: dict[str, Callable[[Words, np.uint64], tuple[Held, Held]]] = {
    "contiguous": _contiguous,
    "identical": _identical,
    "scattered": _scattered,
    "clustered": _clustered,
}

SHAPES = tuple(_HELD)
"""The names of all shapes."""

DESCRIPTIONS = {
    "contiguous": "we lack the newest fifth, they lack the oldest",
    "identical": "both sides hold the same",
    "scattered": "each side lacks one item in 20, at random",
    "clustered": "each side lacks one run of 50 items in 100, at random",
}
"""How the sides of each shape differ, in words."""


def _ids(n: int, salt: np.uint64) -> Ids:
    """The ids of items 0 to n - 1: four little-endian words `mix(salt + 4 i + k)` each."""
    words = np.empty(4 * n, "<u8")
    for start in range(0, 4 * n, 4 * _BLOCK):
        stop = min(start + 4 * _BLOCK, 4 * n)
        words[start:stop] = _mix(salt + np.arange(start, stop, dtype=np.uint64))
    return words.view(np.uint8).reshape(-1, ID_SIZE)


def _mix(x: Words) -> Words:
    """splitmix64's output function (Steele, Lea, Flood 2014), of each x as the state before its step."""
    z = x + np.uint64(0x9E3779B97F4A7C15)
    z ^= z >> np.uint64(30)
    z *= np.uint64(0xBF58476D1CE4E5B9)
    z ^= z >> np.uint64(27)
    z *= np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return z
