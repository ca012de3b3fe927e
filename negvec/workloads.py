"""Synthetic pairs of sets, by rule and seeded: what benchmarks, profiles and notebooks reconcile.

A pair is told by its shape, its number of items in all and a salt, and is the same on every machine: all that is drawn
at random is `mix(salt + k i + c)`, splitmix64's output function, in whole numbers. Every program can build the same
pair; those of `RECORDED` were reconciled by the C++ reference, too.

Item i of n has the id that is the four little-endian words `mix(salt + 4 i + k)`, k = 0 to 3. What else each shape is:

=========== ===================================================================================================
contiguous  3 items a second, `created_at = FIRST_CREATED_AT + i // 3`. We hold i < 0.8 n, they i >= 0.2 n.
identical   Likewise; both hold i < 0.8 n.
scattered   Likewise; we lack i where `mix(salt + 7 i + 2) % 20 == 0`, they where `mix(salt + 7 i + 1) % 20 == 0`.
clustered   Likewise; `mix(salt + i // 50) % 100` is 0 for what we lack, 1 for what they lack.
loss        Likewise; each side lacks a share of the items at random, 0.01 unless `share` says otherwise: we lack i
            where `mix(salt + 7 i + 2) < share 2**64`, they with 1 in place of 2.
poisson     As loss, but items arrive as a Poisson process: their timestamps are drawn evenly from n // 3 + 1 seconds,
            `mix(salt + 7 i + 3)` modulo that, and sorted.
bursts      As poisson, but four in five (`mix(salt + 7 i + 4) % 5 != 0`) arrive in one of n // 1000 + 1 bursts of 20
            seconds: with m = `mix(salt + 7 i + 3)` in burst b = m // 20 % (n // 1000 + 1), at m % 20 behind its begin,
            `mix(salt + 7 b + 5)` modulo n // 3 + 1. Each side lacks a share, half unless `share` says otherwise, of
            the items of every 20th burst; items are numbered anew, in the order of their times, before that.
equal       As loss, but all items have the same timestamp: what an import without times leaves.
stale       Items come evenly over 30 days. They hold all, we nothing of the last day, a thirtieth.
backfill    3 items a second. They hold all; of the oldest fifth we hold a share, a tenth unless `share` says otherwise:
            an archive was added to theirs.
=========== ===================================================================================================
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from negvec.items import ID_SIZE, Ids, Timestamps

FIRST_CREATED_AT = 1_704_067_200  # 2024-01-01 00:00 UTC
ITEMS_PER_SECOND = 3

BURST_SECONDS, ITEMS_PER_BURST = 20, 1000
STALE_DAYS, DAY = 30, 86_400

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


def pair(shape: str, n: int, salt: int = 0, *, share: float | None = None) -> Pair:
    """Build a pair of sets.

    Parameters
    ----------
    shape : str
        One of `SHAPES`; `DESCRIPTIONS` says how the sides of each differ, and the module's opening comment exactly.
    n : int
        Number of items in all; each side holds most of them.
    salt : int, default 0
        0 to 2**64 - 1; another salt gives other ids.
    share : float, optional
        0 to 1; what share of the items is lacked (or held: see "backfill"), for the shapes of `SHARES`, where each
        one's default is.

    Returns
    -------
    Pair
        With fresh arrays. In O(n) time, and the sort of the timestamps where those are drawn.

    Raises
    ------
    ValueError
        There is no such shape, or no set of such a size, or the shape has no share.

    Examples
    --------
    >>> ours, theirs = pair("contiguous", 1000)
    >>> len(ours.ids), len(theirs.ids)
    (800, 800)
    >>> ours, theirs = pair("loss", 100_000, share=0.001)
    >>> len(ours.ids), len(theirs.ids)
    (99891, 99918)
    """
    if shape not in _SHAPES:
        raise ValueError(f"there is no shape {shape!r}; the shapes are {', '.join(SHAPES)}")
    if n < 0:
        raise ValueError(f"n is a number of items, not {n}")
    if not 0 <= salt < 2**64:
        raise ValueError(f"salt is 0 to 2**64 - 1, not {salt}")
    if share is None:
        share = SHARES.get(shape, 0.0)
    elif shape not in SHARES:
        raise ValueError(f"{shape} has no share; these have one: {', '.join(SHARES)}")
    elif not 0 <= share <= 1:
        raise ValueError(f"share is 0 to 1, not {share}")
    i = np.arange(n, dtype=np.uint64)
    seconds, ours, theirs = _SHAPES[shape](i, np.uint64(salt), share)
    created_at = np.uint64(FIRST_CREATED_AT) + seconds
    ids = _ids(n, np.uint64(salt))
    return Pair(Side(created_at[ours], ids[ours]), Side(created_at[theirs], ids[theirs]))


class _Shape(NamedTuple):
    """When each item comes, in seconds from the first on, ascending; and which side holds it."""

    seconds: Words
    ours: Held
    theirs: Held


def _contiguous(i: Words, salt: np.uint64, share: float) -> _Shape:
    n = np.uint64(len(i))
    return _Shape(_steadily(i), 5 * i < 4 * n, 5 * i >= n)


def _identical(i: Words, salt: np.uint64, share: float) -> _Shape:
    held = 5 * i < 4 * np.uint64(len(i))
    return _Shape(_steadily(i), held, held)


def _scattered(i: Words, salt: np.uint64, share: float) -> _Shape:
    return _Shape(_steadily(i), _draw(i, salt, 2) % 20 != 0, _draw(i, salt, 1) % 20 != 0)


def _clustered(i: Words, salt: np.uint64, share: float) -> _Shape:
    group = _mix(salt + i // np.uint64(50)) % 100
    return _Shape(_steadily(i), group != 0, group != 1)


def _loss(i: Words, salt: np.uint64, share: float) -> _Shape:
    return _Shape(_steadily(i), ~_chosen(i, salt, 2, share), ~_chosen(i, salt, 1, share))


def _poisson(i: Words, salt: np.uint64, share: float) -> _Shape:
    return _loss(i, salt, share)._replace(seconds=np.sort(_draw(i, salt, 3) % _span(i)))


def _bursts(i: Words, salt: np.uint64, share: float) -> _Shape:
    draws = _draw(i, salt, 3)
    in_burst = _draw(i, salt, 4) % 5 != 0
    burst = draws // np.uint64(BURST_SECONDS) % np.uint64(len(i) // ITEMS_PER_BURST + 1)
    begins = _draw(burst, salt, 5) % _span(i)
    seconds = np.where(in_burst, begins + draws % np.uint64(BURST_SECONDS), draws % _span(i))
    order = np.argsort(seconds, kind="stable")
    hit = (in_burst & (burst % 20 == 0))[order]
    ours, theirs = (~(hit & _chosen(i, salt, side, share)) for side in (2, 1))
    return _Shape(seconds[order], ours, theirs)


def _equal(i: Words, salt: np.uint64, share: float) -> _Shape:
    return _loss(i, salt, share)._replace(seconds=np.zeros_like(i))


def _stale(i: Words, salt: np.uint64, share: float) -> _Shape:
    seconds = i * np.uint64(STALE_DAYS * DAY) // np.uint64(max(len(i), 1))
    return _Shape(seconds, seconds < (STALE_DAYS - 1) * DAY, np.ones(len(i), np.bool_))


def _backfill(i: Words, salt: np.uint64, share: float) -> _Shape:
    archived = 5 * i < np.uint64(len(i))
    return _Shape(_steadily(i), ~archived | _chosen(i, salt, 2, share), np.ones(len(i), np.bool_))


_SHAPES: dict[str, Callable[[Words, np.uint64, float], _Shape]] = {
    "contiguous": _contiguous,
    "identical": _identical,
    "scattered": _scattered,
    "clustered": _clustered,
    "loss": _loss,
    "poisson": _poisson,
    "bursts": _bursts,
    "equal": _equal,
    "stale": _stale,
    "backfill": _backfill,
}

SHAPES = tuple(_SHAPES)
"""The names of all shapes."""

RECORDED = SHAPES[:4]
"""Those that the C++ reference reconciled, with what it sent on record (see tests/vectors)."""

SHARES = {"loss": 0.01, "poisson": 0.01, "bursts": 0.5, "equal": 0.01, "backfill": 0.1}
"""The shapes that take a share, and its default."""

DESCRIPTIONS = {
    "contiguous": "we lack the newest fifth, they lack the oldest",
    "identical": "both sides hold the same",
    "scattered": "each side lacks one item in 20, at random",
    "clustered": "each side lacks one run of 50 items in 100, at random",
    "loss": "each side lacks a share, one item in 100, at random",
    "poisson": "likewise, of items that arrive at random times",
    "bursts": "most items arrive in bursts, and each side lacks half of every 20th",
    "equal": "each side lacks one item in 100, all of the same second",
    "stale": "we lack the last of 30 days",
    "backfill": "we hold one item in 10 of the oldest fifth, they all",
}
"""How the sides of each shape differ, in words."""


def _steadily(i: Words) -> Words:
    return i // np.uint64(ITEMS_PER_SECOND)


def _span(i: Words) -> np.uint64:
    """Seconds in which all items come."""
    return np.uint64(len(i) // ITEMS_PER_SECOND + 1)


def _draw(i: Words, salt: np.uint64, number: int) -> Words:
    """A random word for each item; another `number`, 1 to 6, another one."""
    return _mix(salt + 7 * i + np.uint64(number))


def _chosen(i: Words, salt: np.uint64, number: int, share: float) -> Held:
    """A random share of the items."""
    if share >= 1:
        return np.ones(len(i), np.bool_)
    return _draw(i, salt, number) < np.uint64(int(share * 2**64))


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
