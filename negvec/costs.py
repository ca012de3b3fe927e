"""What a reconciliation costs: the least that it can, in bytes, and what one does, measured.

**The least bytes.** Let a Fingerprint range take F bytes, an IdList L and 32 an id, and let differences lie at random,
d per item, so that a range of w items differs with probability p(w) = 1 - exp(-d w). Whoever finds all differences by
fingerprints of widths w1 > w2 > ... > wk, the whole set in ranges of w1, those that differ in ranges of w2, and so on,
and lists what still differs at the end, sends for each item of the set

    F / w1 + p(w1) F / w2 + ... + p(w(k-1)) F / wk + p(wk) (32 wk + L) / wk

bytes: a range is sent because the range around it differed. `least_bytes` takes the cheapest widths, as many as are
worth it, up to 4 million items. That is a bound for whoever asks about all parts of a range at once, however often,
and for differences at random; those in runs cost less. (To ask about one part of two only, and to conclude from it how
the other one stands, costs less still, and many rounds.)

An unmodified responder leaves less choice: what differs it lists below 32 items, and cuts in 16 from there on, so that
the initiator chooses every second width only. With that the bound lies higher.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from negvec.protocol import Negentropy, PacingPolicy, ReferencePolicy, SplitPolicy, drive
from negvec.protocol.adaptive import FINGERPRINT_COST, ID_COST, LIST_COST
from negvec.storage import Storage, seal
from negvec.workloads import pair

Floats = npt.NDArray[np.float64]

WIDEST = 2**22  # items of a range that `least_bytes` takes into account
_PER_OCTAVE = 6  # widths that it tries for each doubling

FINGERPRINT = np.dtype([("way", "U64"), ("width", "<i8"), ("seconds", "<f8")])
"""What one fingerprint of a range of `width` items costs, computed in some way."""

RUN = np.dtype(
    [
        ("policy", "U64"),
        ("density", "<f8"),
        ("items", "<i8"),
        ("have", "<i8"),
        ("need", "<i8"),
        ("rounds", "<i8"),
        ("bytes_up", "<i8"),
        ("bytes_down", "<i8"),
    ]
)
"""A reconciliation: the initiator's policy; differences per item of the initiator's; the initiator's items; how many
ids were found to be had and needed; rounds, and bytes of all messages."""


def least_bytes(density: Any, *, reference: bool = False) -> Floats:
    """The least bytes per item in which ranges of the best widths find random differences; see the opening comment.

    Parameters
    ----------
    density : array_like of float
        Differences per item, above 0.
    reference : bool, default False
        Whether the responder lists and splits as the C++ reference does; else as is best.

    Returns
    -------
    ndarray of float64, of the shape of `density`

    Raises
    ------
    ValueError
        A density is 0 or less.

    Examples
    --------
    >>> least_bytes([0.1, 0.001]).round(1).tolist()
    [14.4, 0.4]
    >>> least_bytes([0.1, 0.001], reference=True).round(1).tolist()
    [14.7, 0.6]
    """
    densities = np.asarray(density, np.float64)
    if not (densities > 0).all():
        raise ValueError("a density is a number of differences per item, above 0")
    return np.array([_least(d, reference) for d in densities.ravel()]).reshape(densities.shape)


def leaf_bytes(width: Any, density: float) -> Floats:
    """Bytes per item where the whole set is fingerprinted in ranges of one `width`, and what differs is listed."""
    widths = np.asarray(width, np.float64)
    differs = -np.expm1(-density * widths)
    cost: Floats = (FINGERPRINT_COST + differs * (ID_COST * widths + LIST_COST)) / widths
    return cost


def _least(density: float, reference: bool) -> float:
    widths = 2.0 ** (np.arange(int(np.log2(WIDEST)) * _PER_OCTAVE + 1) / _PER_OCTAVE)
    differs = -np.expm1(-density * widths)
    listed = differs * (ID_COST * widths + LIST_COST) / widths
    narrower = np.tri(len(widths), k=-1, dtype=np.bool_)
    # Bytes per item of all that follows where ranges of each width were sent and some differ: at the one that answers
    # the fingerprints, and at the one that reads the answer.
    answered = asked = listed
    while True:
        before = answered
        split = np.where(narrower, differs[:, None] * FINGERPRINT_COST / widths + answered, np.inf).min(axis=1)
        if reference:
            asked = np.minimum(2 * listed, split)  # whoever lists is answered with a list
            cut = differs * ReferencePolicy.BUCKETS * FINGERPRINT_COST / widths
            by_split = cut + np.interp(widths / ReferencePolicy.BUCKETS, widths, asked)
            answered = np.where(widths < 2 * ReferencePolicy.BUCKETS, listed, by_split)
        else:
            answered = np.minimum(listed, split)
        if np.allclose(answered, before, rtol=1e-9):
            return float((FINGERPRINT_COST / widths + answered).min())


def measure_fingerprints(
    ways: Mapping[str, Storage], widths: Sequence[int], *, batch: int = 1000, seconds: float = 0.02, seed: int = 1
) -> npt.NDArray[np.void]:
    """Measure what a fingerprint costs in storages of the same items, over the width of its range.

    Parameters
    ----------
    ways : mapping of str to Storage
    widths : sequence of int
        Each of them no more than the items there are.
    batch : int, default 1000
        Ranges that are asked for at once; 1 asks one by one.
    seconds : float
        How long one width of one storage is measured at least; a single batch may take longer.
    seed : int
        Of the places at which ranges begin.

    Returns
    -------
    ndarray of `FINGERPRINT`
        The median batch's time, for one fingerprint.
    """
    rng = np.random.default_rng(seed)
    rows = []
    for way, storage in ways.items():
        storage.fingerprints(np.zeros(1, np.int64), np.ones(1, np.int64))  # compiled, or loaded from disk
        for width in widths:
            lo = rng.integers(0, len(storage) - width + 1, batch)
            times: list[float] = []
            ends = time.perf_counter() + seconds
            while not times or time.perf_counter() < ends:
                started = time.perf_counter()
                storage.fingerprints(lo, lo + width)
                times.append(time.perf_counter() - started)
            rows.append((way, width, float(np.median(times)) / batch))
    return np.array(rows, FINGERPRINT)


def compare_policies(
    policies: Mapping[str, SplitPolicy | PacingPolicy],
    shares: Sequence[float],
    *,
    n: int = 100_000,
    shape: str = "loss",
    initiator_limit: int = 0,
    responder_limit: int = 0,
    salt: int = 0,
) -> npt.NDArray[np.void]:
    """Reconcile synthetic sets under several policies of the initiator, against a responder as the reference is.

    Parameters
    ----------
    policies : mapping of str to policy
    shares : sequence of float
        What share of the items each side lacks.
    n, shape, salt
        As in `negvec.workloads.pair`; a shape that takes a share.
    initiator_limit, responder_limit : int
        Frame size limits, in bytes.

    Returns
    -------
    ndarray of `RUN`
        A row for each share and policy.
    """
    rows = []
    for share in shares:
        ours, theirs = (seal(*side) for side in pair(shape, n, salt, share=share))
        for name, policy in policies.items():
            asking = Negentropy(ours, initiator_limit, policy=policy)
            done = drive(asking, Negentropy(theirs, responder_limit))
            have, need = len(done.have), len(done.need)
            density = (have + need) / max(len(ours), 1)
            rows.append((name, density, len(ours), have, need, done.rounds, done.bytes_up, done.bytes_down))
    return np.array(rows, RUN)
