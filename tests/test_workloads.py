"""Pairs of sets are those that the recorded runs of the reference were made of, and the same every time."""

from __future__ import annotations

import doctest

import numpy as np
import pytest
import vectors

import negvec
from negvec import workloads
from negvec.workloads import RECORDED, SHAPES, SHARES, Pair, Side, pair

SIZES = (20_000, 200_000)
RECORDS = {(run["shape"], run["n"]): run for run in vectors.shapes() if run["n"] in SIZES}


def difference(ours: Side, theirs: Side) -> list[bytes]:
    """The ids of one side that the other lacks."""
    lacking = {id.tobytes() for id in theirs.ids}
    return [id for id in map(bytes, ours.ids) if id not in lacking]


def assert_equal(one: Pair, other: tuple[vectors.Side, vectors.Side]) -> None:
    for side, expected in zip(one, other, strict=True):
        assert side.created_at.dtype == np.uint64
        assert side.ids.dtype == np.uint8
        np.testing.assert_array_equal(side.created_at, expected[0])
        np.testing.assert_array_equal(side.ids, expected[1])


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("shape", RECORDED)
def test_a_pair_is_the_one_that_the_reference_reconciled(shape: str, n: int) -> None:
    ours, theirs = pair(shape, n)
    record = RECORDS[shape, n]
    assert (len(ours.created_at), len(theirs.created_at)) == (record["client_size"], record["server_size"])
    assert vectors.digest(difference(ours, theirs)) == record["have_sha256"]
    assert vectors.digest(difference(theirs, ours)) == record["need_sha256"]


@pytest.mark.parametrize("salt", [0, 1, 2**64 - 1])
@pytest.mark.parametrize("n", [0, 1, 2, 7, workloads._BLOCK - 1, workloads._BLOCK, 2 * workloads._BLOCK + 3])
@pytest.mark.parametrize("shape", RECORDED)
def test_blocks_and_wrapping_salts_follow_the_same_rule(shape: str, n: int, salt: int) -> None:
    assert_equal(pair(shape, n, salt), vectors.shape_items(shape, n, np.uint64(salt)))


@pytest.mark.parametrize("shape", SHAPES)
def test_items_come_sorted_and_another_salt_gives_other_ids(shape: str) -> None:
    one, other = pair(shape, 1000), pair(shape, 1000, salt=8000)
    for side in (*one, *other):
        assert (np.diff(side.created_at.astype(np.int64)) >= 0).all()
    assert not set(map(bytes, one.ours.ids)) & set(map(bytes, other.ours.ids))


@pytest.mark.parametrize("shape", SHAPES)
def test_the_sides_share_no_memory(shape: str) -> None:
    ours, theirs = pair(shape, 100)
    assert not np.shares_memory(ours.ids, theirs.ids)
    assert not np.shares_memory(ours.created_at, theirs.created_at)


MASK = 2**64 - 1


def mix(state: int) -> int:
    z = (state + 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ z >> 27) * 0x94D049BB133111EB) & MASK
    return z ^ z >> 31


def told(shape: str, n: int, salt: int, share: float) -> list[tuple[int, bool, bool]]:
    """Seconds, and whether we and they hold it, for each item: the rules of the module's opening comment."""

    def draw(i: int, number: int) -> int:
        return mix(salt + 7 * i + number)

    def lost(i: int) -> tuple[bool, bool]:
        return draw(i, 2) < share * 2**64, draw(i, 1) < share * 2**64

    items = []
    if shape == "stale":
        for i in range(n):
            at = i * 30 * 86_400 // n
            items.append((at, at < 29 * 86_400, True))
    elif shape == "backfill":
        items = [(i // 3, i >= n / 5 or lost(i)[0], True) for i in range(n)]
    elif shape == "bursts":
        arrivals = []
        for i in range(n):
            m = draw(i, 3)
            if draw(i, 4) % 5:
                burst = m // 20 % (n // 1000 + 1)
                arrivals.append((draw(burst, 5) % (n // 3 + 1) + m % 20, burst % 20 == 0))
            else:
                arrivals.append((m % (n // 3 + 1), False))
        for i, (at, hit) in enumerate(sorted(arrivals, key=lambda arrival: arrival[0])):
            we_lack, they_lack = lost(i)
            items.append((at, not (hit and we_lack), not (hit and they_lack)))
    else:
        times = {
            "loss": [i // 3 for i in range(n)],
            "poisson": sorted(draw(i, 3) % (n // 3 + 1) for i in range(n)),
            "equal": [0] * n,
        }[shape]
        items = [(at, not lost(i)[0], not lost(i)[1]) for i, at in enumerate(times)]
    return items


@pytest.mark.parametrize("n", [0, 1, 2, 3, 100, 3001])
@pytest.mark.parametrize("salt", [0, 12345, 2**64 - 1])
@pytest.mark.parametrize("shape", [shape for shape in SHAPES if shape not in RECORDED])
def test_a_pair_is_built_by_the_rule_that_stands_there(shape: str, salt: int, n: int) -> None:
    items = told(shape, n, salt, SHARES.get(shape, 0.0))
    ids = [b"".join(mix(salt + 4 * i + k).to_bytes(8, "little") for k in range(4)) for i in range(n)]
    sides = pair(shape, n, salt)
    for side, holds in ((sides.ours, 1), (sides.theirs, 2)):
        assert side.created_at.dtype == np.uint64
        assert side.created_at.tolist() == [workloads.FIRST_CREATED_AT + item[0] for item in items if item[holds]]
        assert list(map(bytes, side.ids)) == [ids[i] for i, item in enumerate(items) if item[holds]]


@pytest.mark.parametrize("shape", SHARES)
def test_a_share_is_a_share(shape: str) -> None:
    lacked = {}
    for share in (0.0, 0.25, 1.0):
        ours, theirs = pair(shape, 60_000, share=share)
        lacked[share] = 60_000 - len(ours.ids)
        if shape != "backfill":
            assert abs(lacked[share] - (60_000 - len(theirs.ids))) < 1000
    if shape == "backfill":
        assert lacked[0.0] == 12_000
        assert lacked[1.0] == 0
    else:
        assert lacked[0.0] == 0
        assert lacked[1.0] > 0
    assert abs(lacked[0.25] - (lacked[0.0] + (lacked[1.0] - lacked[0.0]) / 4)) < 600


def test_arrivals_are_as_random_as_they_are_told_to_be() -> None:
    """Of a Poisson process, as many items in a second as not vary; bursts vary far more, and even arrivals do not."""
    seconds = 30_000
    spread = {}
    for shape in ("loss", "poisson", "bursts"):
        at = pair(shape, 3 * seconds, share=0.0).theirs.created_at - np.uint64(workloads.FIRST_CREATED_AT)
        counts = np.bincount(at.astype(np.int64), minlength=seconds)
        spread[shape] = counts.var() / counts.mean()
    assert spread["loss"] < 0.01
    assert abs(spread["poisson"] - 1) < 0.05
    assert spread["bursts"] > 10


@pytest.mark.parametrize("shape", SHAPES)
def test_a_pair_can_be_reconciled(shape: str) -> None:
    sides = pair(shape, 5000)
    result = negvec.reconcile(*(negvec.seal(*side) for side in sides), policy=negvec.AdaptivePolicy())
    assert sorted(map(bytes, result.have)) == sorted(difference(*sides))
    assert sorted(map(bytes, result.need)) == sorted(difference(sides.theirs, sides.ours))


def test_every_shape_is_described() -> None:
    assert set(workloads.DESCRIPTIONS) == set(SHAPES)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("Contiguous", 10), "no shape 'Contiguous'; the shapes are contiguous, "),
        (("identical", -1), "not -1"),
        (("identical", 10, -1), "not -1"),
        (("identical", 10, 2**64), "not 18446744073709551616"),
    ],
)
def test_what_is_no_pair_is_refused(arguments: tuple[str, int], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        pair(*arguments)


@pytest.mark.parametrize(
    ("shape", "share", "said"), [("identical", 0.1, "no share"), ("loss", 1.5, "not 1.5"), ("loss", -0.1, "not -0.1")]
)
def test_what_is_no_share_is_refused(shape: str, share: float, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        pair(shape, 10, share=share)


def test_the_example_in_the_docstring_is_right() -> None:
    assert doctest.testmod(workloads).failed == 0
