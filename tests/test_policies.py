"""Split policies: what they ask, what it costs, and that nothing is lost whoever is at the other end."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from model import Model

import negvec
from negvec.protocol import drive
from negvec.protocol.worklist import best_width
from negvec.workloads import SHAPES, pair

Item = tuple[int, bytes]


def sealed(items: list[Item]) -> negvec.PrefixSumVector:
    return negvec.seal([at for at, _ in items], [id for _, id in items])


def eager(**changes: float) -> negvec.AdaptivePolicy:
    """A policy that goes on by a worklist at the first chance, so that small sets come that far."""
    policy = negvec.AdaptivePolicy(**({"responder_limit": 500_000} | changes))
    policy.FEWEST_RANGES, policy.DENSE, policy.FEWEST_ITEMS = 1, 0.0, 0  # type: ignore[misc]
    return policy


def found(result: negvec.protocol.Result) -> tuple[list[bytes], list[bytes]]:
    return sorted(row.tobytes() for row in result.have), sorted(row.tobytes() for row in result.need)


def truth(ours: list[Item], theirs: list[Item]) -> tuple[list[bytes], list[bytes]]:
    first, second = {id for _, id in ours}, {id for _, id in theirs}
    return sorted(first - second), sorted(second - first)


def scattered(count: int, share: float, spread: int, seed: int) -> tuple[list[Item], list[Item]]:
    chance = random.Random(seed)
    items = [(1000 + k // spread, chance.randbytes(32)) for k in range(count)]
    if seed % 3 == 0:  # long shared prefixes
        items = [(at, b"\7" * 28 + id[28:]) for at, id in items]
    return [i for i in items if chance.random() >= share], [i for i in items if chance.random() >= share]


# ---- nothing is lost


@settings(max_examples=150, deadline=None)
@given(
    st.integers(0, 1500),
    st.sampled_from([0.0, 0.003, 0.05, 0.3, 0.9, 1.0]),
    st.sampled_from([1, 3, 10_000]),
    st.integers(0, 2**32),
    st.sampled_from([0, 4096, 6000]),
    st.sampled_from([0, 4096, 6000]),
    st.booleans(),
    st.booleans(),
)
def test_an_adaptive_initiator_loses_nothing(
    count: int, share: float, spread: int, seed: int, first: int, second: int, both: bool, stream: bool
) -> None:
    ours, theirs = scattered(count, share, spread, seed)
    initiator = negvec.Negentropy(sealed(ours), first, policy=eager(), stream=stream)
    responder = negvec.Negentropy(sealed(theirs), second, policy=eager() if both else None)
    rounds = 0
    have: list[bytes] = []
    need: list[bytes] = []
    message: bytes | None = initiator.initiate()
    while message is not None:
        assert not first or len(message) <= first or rounds == 0
        answer = responder.reconcile(message).message
        assert answer is not None
        assert not second or len(answer) <= second
        step = initiator.reconcile(answer)
        have += [row.tobytes() for row in step.have]
        need += [row.tobytes() for row in step.need]
        message, rounds = step.message, rounds + 1
        assert rounds < 300
    assert (sorted(have), sorted(need)) == truth(ours, theirs)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 600),
    st.sampled_from([0.0, 0.02, 0.3, 1.0]),
    st.sampled_from([1, 10_000]),
    st.integers(0, 2**32),
    st.sampled_from([0, 4096]),
)
def test_the_plain_model_of_the_reference_answers_it(
    count: int, share: float, spread: int, seed: int, limit: int
) -> None:
    ours, theirs = scattered(count, share, spread, seed)
    initiator, responder = negvec.Negentropy(sealed(ours), policy=eager()), Model(theirs, limit)
    message: bytes | None = initiator.initiate()
    for _ in range(300):
        answer = responder.reconcile(message)[0]
        step = initiator.reconcile(answer)
        message = step.message
        if message is None:
            break
    assert (sorted(map(bytes, step.have)), sorted(map(bytes, step.need))) == truth(ours, theirs)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 800), st.sampled_from([0.0, 0.05, 0.5, 1.0]), st.integers(0, 2**32), st.integers(2, 40),
       st.integers(1, 80), st.integers(2, 40), st.integers(1, 80), st.sampled_from([0, 4096]))  # fmt: skip
def test_any_bucket_count_and_list_size_on_either_side_finds_the_difference(
    count: int, share: float, seed: int, buckets: int, below: int, others: int, other_below: int, limit: int
) -> None:
    ours, theirs = scattered(count, share, 3, seed)
    policies = negvec.ReferencePolicy(buckets, below), negvec.ReferencePolicy(others, other_below)
    sides = [negvec.Negentropy(sealed(i), limit, policy=p) for i, p in zip((ours, theirs), policies, strict=True)]
    assert found(drive(*sides)) == truth(ours, theirs)


def test_a_shared_policy_keeps_nothing_of_a_conversation() -> None:
    policy = eager()
    pairs = [scattered(1500, share, 3, 1) for share in (0.3, 0.01, 1.0)]
    sides = [(sealed(ours), sealed(theirs)) for ours, theirs in pairs]
    alone = [drive(negvec.Negentropy(o, policy=eager()), negvec.Negentropy(t)) for o, t in sides]
    shared = [drive(negvec.Negentropy(o, policy=policy), negvec.Negentropy(t, policy=policy)) for o, t in sides]
    assert [result[2:] for result in alone] == [result[2:] for result in shared]


@pytest.mark.parametrize("answer", ["noise", "everything mismatches", "one fingerprint back"])
def test_a_peer_that_plays_on_for_ever_is_given_up(answer: str) -> None:
    ours = sealed(scattered(3000, 0.0, 3, 1)[0])
    other = sealed(scattered(3000, 0.0, 3, 2)[0])
    chance = np.random.default_rng(1)
    initiator, honest = negvec.Negentropy(ours, policy=eager()), negvec.Negentropy(other)
    message: bytes | None = initiator.initiate()
    with pytest.raises(negvec.ProtocolError):  # noqa: PT012
        for turn in range(3000):
            assert message is not None
            if turn == 0:
                reply = honest.reconcile(message).message
            elif answer == "noise":
                reply = b"\x61" + chance.bytes(200)
            elif answer == "everything mismatches":
                reply = b"\x61" + bytes([0, 0, 1]) + chance.bytes(16)
            else:
                reply = b"\x61" + bytes([0, 0, 1]) + b"\5" * 16
            step = initiator.reconcile(reply)
            message = step.message
        pytest.fail("not given up")


# ---- what it costs

REFERENCE_LIMITS = [(0, 0), (0, 500_000)]


@pytest.mark.parametrize("shape", [shape for shape in SHAPES if shape != "scattered"])
@pytest.mark.parametrize("limits", REFERENCE_LIMITS)
def test_where_differences_lie_together_it_costs_what_the_reference_does(shape: str, limits: tuple[int, int]) -> None:
    sides = pair(shape, 200_000, 3)
    ours, theirs = negvec.seal(*sides.ours), negvec.seal(*sides.theirs)
    expected = drive(negvec.Negentropy(ours, limits[0]), negvec.Negentropy(theirs, limits[1]))
    policy = negvec.AdaptivePolicy()
    result = drive(negvec.Negentropy(ours, limits[0], policy=policy), negvec.Negentropy(theirs, limits[1]))
    assert found(result) == found(expected)
    assert result.rounds <= expected.rounds
    assert result.bytes_up + result.bytes_down <= expected.bytes_up + expected.bytes_down


def test_scattered_differences_take_a_tenth_of_the_bytes_and_half_of_the_rounds() -> None:
    """A fifth of a million items against frames of 100,000 bytes: the same relation as a million and 500,000."""
    sides = pair("scattered", 200_000, 3)
    ours, theirs = negvec.seal(*sides.ours), negvec.seal(*sides.theirs)
    expected = drive(negvec.Negentropy(ours), negvec.Negentropy(theirs, 100_000))
    policy = negvec.AdaptivePolicy(responder_limit=100_000)
    result = drive(negvec.Negentropy(ours, policy=policy), negvec.Negentropy(theirs, 100_000))
    assert found(result) == found(expected)
    assert result.bytes_up + result.bytes_down < 18e6 / 5
    assert result.rounds <= 35 < expected.rounds / 2


@pytest.mark.parametrize("density", [0.0001, 0.001, 0.01, 0.05, 0.1, 0.3, 0.9, 4.0])
def test_the_best_narrow_width_is_that_of_the_derivation(density: float) -> None:
    """Near sqrt(F / 34 d) while d w is small; and never so wide that a list would not come at once."""
    width = best_width(density, wide=False)
    assert 1 <= width <= 31
    if 0.02 <= density <= 0.1:
        assert abs(width - math.sqrt(24 / (34 * density))) <= 2


@pytest.mark.parametrize(("arguments", "told"), [((1,), "2 or more"), ((16, 0), "no list")])
def test_a_split_that_makes_no_sense_is_refused(arguments: tuple[int, ...], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        negvec.ReferencePolicy(*arguments)
    with pytest.raises(ValueError, match="frame size limit"):
        negvec.AdaptivePolicy(0)
