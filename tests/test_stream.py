"""Findings as they come: together what there is to find, each id once, whatever the limits."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import negvec
from negvec import kernels
from negvec.workloads import SHAPES, pair


def run(ours: negvec.Storage, theirs: negvec.Storage, limits: tuple[int, int]) -> tuple[list[bytes], list[bytes], int]:
    """All that the steps give, in order, and how many of the steps before the last gave something."""
    initiator, responder = negvec.Negentropy(ours, limits[0], stream=True), negvec.Negentropy(theirs, limits[1])
    have: list[bytes] = []
    need: list[bytes] = []
    early = 0
    message: bytes | None = initiator.initiate()
    while message is not None:
        answer = responder.reconcile(message).message
        step = initiator.reconcile(answer)
        have += [row.tobytes() for row in step.have]
        need += [row.tobytes() for row in step.need]
        message = step.message
        early += message is not None and bool(len(step.have) or len(step.need))
    return have, need, early


def sealed(keys: set[int], spread: int) -> negvec.PrefixSumVector:
    return negvec.seal([key // spread for key in keys], [key.to_bytes(32, "big") for key in keys])


KEYS = st.sets(st.integers(0, 700), max_size=400)


@settings(max_examples=150, deadline=None)
@given(KEYS, KEYS, st.sampled_from([0, 4096, 5000]), st.sampled_from([0, 4096, 5000]), st.integers(1, 800))
def test_what_the_steps_give_is_the_difference_each_id_once(
    ours: set[int], theirs: set[int], first: int, second: int, spread: int
) -> None:
    have, need, _ = run(sealed(ours, spread), sealed(theirs, spread), (first, second))
    assert Counter(have) == Counter(key.to_bytes(32, "big") for key in ours - theirs)
    assert Counter(need) == Counter(key.to_bytes(32, "big") for key in theirs - ours)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("limits", [(0, 0), (4096, 4096), (60_000, 500_000), (0, 4096)])
def test_streams_of_large_sets_find_what_the_last_step_does(shape: str, limits: tuple[int, int]) -> None:
    sides = pair(shape, 20_000, 5)
    ours, theirs = negvec.seal(*sides.ours), negvec.seal(*sides.theirs)
    found = negvec.protocol.drive(negvec.Negentropy(ours, limits[0]), negvec.Negentropy(theirs, limits[1]))
    have, need, early = run(ours, theirs, limits)
    assert sorted(have) == sorted(row.tobytes() for row in found.have)
    assert sorted(need) == sorted(row.tobytes() for row in found.need)
    assert early > 0 or found.rounds < 3


def test_a_peer_that_lists_an_id_again_and_again_gives_it_once() -> None:
    listing = bytes.fromhex("61" + "0000" + "02" + "03") + b"a" * 32 + b"b" * 32 + b"a" * 32
    initiator = negvec.Negentropy(negvec.seal([1], [b"c" * 32]), stream=True)
    initiator.initiate()
    step = initiator.reconcile(listing)
    assert step.message is None
    assert (step.have.tobytes(), step.need.tobytes()) == (b"c" * 32, b"a" * 32 + b"b" * 32)


@pytest.mark.parametrize("policy", [negvec.ReferencePolicy(), negvec.AdaptivePolicy()], ids=["reference", "adaptive"])
def test_an_own_id_under_two_timestamps_is_given_once(policy: Any) -> None:
    ours = negvec.seal([1, 2, 3], [b"a" * 32, b"a" * 32, b"b" * 32])
    initiator = negvec.Negentropy(ours, stream=True, policy=policy)
    step = initiator.reconcile(negvec.Negentropy(negvec.seal([], [])).reconcile(initiator.initiate()).message)
    assert sorted(row.tobytes() for row in step.have) == [b"a" * 32, b"b" * 32]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.lists(st.integers(0, 60), max_size=30), max_size=8), st.booleans())
def test_the_table_takes_each_id_once_as_it_grows(batches: list[list[int]], colliding: bool) -> None:
    """Tags that all collide make it slow, and change nothing."""
    known, tags, slots = np.empty((200, 4), np.uint64), np.empty(200, np.uint32), np.full(4, -1, np.int32)
    count, seen = 0, []
    for batch in batches:
        ids = np.array([[key, 0, 1, key] for key in batch], np.uint64).reshape(-1, 4)
        tagged = np.zeros(len(batch), np.uint32) if colliding else np.array(batch, np.uint32) * np.uint32(2654435)
        if 2 * (count + len(batch)) > len(slots):
            slots = np.full(1 << (4 * (count + len(batch))).bit_length(), -1, np.int32)
            kernels.once.index(tags, count, slots)
        count = kernels.once.enter(ids, tagged, known, tags, count, slots)
        seen += batch
    assert known[:count, 0].tolist() == list(dict.fromkeys(seen))
