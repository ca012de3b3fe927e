"""The sets that are reconciled, whole runs recorded message by message, and what is known about them."""

from __future__ import annotations

import gzip
import json
import os
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

import negvec
from negvec.workloads import RECORDED as SHAPES
from negvec.workloads import Side, pair

Ids = npt.NDArray[np.uint8]

N = int(os.environ.get("NEGVEC_BENCH_N", "20000"))
"""Items of a pair, in all."""

REFERENCE_RUNS = Path(__file__).parent.parent / "tests" / "vectors" / "shapes.json.gz"

LIMITS = {"none": (0, 0), "relay": (0, 500_000), "relay, careful client": (60_000, 500_000), "smallest": (4096, 4096)}
"""Frame size limits of the initiator and the responder: a relay's is what strfry has."""


class Run(NamedTuple):
    """One reconciliation, recorded: `questions` by the initiator, `answers` by the responder."""

    ours: negvec.PrefixSumVector
    theirs: negvec.PrefixSumVector
    limits: tuple[int, int]
    questions: list[bytes]
    answers: list[bytes]

    def ask(self) -> negvec.Step:
        """Do all that the initiator does; returns its last step."""
        initiator = negvec.Negentropy(self.ours, self.limits[0])
        initiator.initiate()
        for answer in self.answers:
            step = initiator.reconcile(answer)
        return step

    def respond(self) -> bytes:
        """Do all that the responder does; returns its last answer."""
        responder = negvec.Negentropy(self.theirs, self.limits[1])
        for question in self.questions:
            step = responder.reconcile(question)
        assert step.message is not None
        return step.message


@lru_cache(maxsize=1)
def recorded(shape: str, n: int, limits: tuple[int, int]) -> Run:
    """Reconcile a pair, record every message, and check that the outcome is right."""
    our_side, their_side = pair(shape, n)
    run = Run(negvec.seal(*our_side), negvec.seal(*their_side), limits, [], [])
    initiator, responder = negvec.Negentropy(run.ours, limits[0]), negvec.Negentropy(run.theirs, limits[1])
    message: bytes | None = initiator.initiate()
    while message is not None:
        run.questions.append(message)
        answer = responder.reconcile(message).message
        assert answer is not None
        run.answers.append(answer)
        step = initiator.reconcile(answer)
        message = step.message
    check(run, shape, n, our_side, their_side, step)
    return run


def check(run: Run, shape: str, n: int, our_side: Side, their_side: Side, step: negvec.Step) -> None:
    """Compare a run with the truth, and with the reference's run of the same pair where there is one."""
    assert_same_ids(step.have, lacking(our_side.ids, their_side.ids))
    assert_same_ids(step.need, lacking(their_side.ids, our_side.ids))
    reference = reference_run(shape, n, run.limits)
    if reference is not None:
        assert len(run.questions) == reference["rounds"]
        assert sum(map(len, run.questions)) == reference["bytes_up"]
        assert sum(map(len, run.answers)) == reference["bytes_down"]
        assert sha256(in_order(step.have).tobytes()).hexdigest() == reference["have_sha256"]
        assert sha256(in_order(step.need).tobytes()).hexdigest() == reference["need_sha256"]


def reference_run(shape: str, n: int, limits: tuple[int, int]) -> dict[str, Any] | None:
    """What the C++ reference did with the pair, or None where that was not recorded."""
    for run in json.loads(gzip.decompress(REFERENCE_RUNS.read_bytes())):
        if (run["shape"], run["n"], (run["client_limit"], run["server_limit"]), run["salt"]) == (shape, n, limits, 0):
            return dict(run)
    return None


def lacking(ours: Ids, theirs: Ids) -> Ids:
    """Of our ids those that are not theirs. The first words of the ids of `negvec.workloads` differ."""
    return ours[~np.isin(ours.view("<u8")[:, 0], theirs.view("<u8")[:, 0])]


def in_order(ids: Ids) -> Ids:
    """The ids sorted as unsigned bytes."""
    words = np.ascontiguousarray(ids).view(">u8")
    return ids[np.lexsort(words.T[::-1])]


def assert_same_ids(found: Ids, expected: Ids) -> None:
    """The same ids, each of them once."""
    np.testing.assert_array_equal(in_order(found), in_order(expected))


def shuffled(side: Side) -> Side:
    """The same items in a random order, always the same."""
    order = np.random.default_rng(1).permutation(len(side.created_at))
    return Side(side.created_at[order], side.ids[order])


__all__ = ["LIMITS", "SHAPES", "N", "Run", "assert_same_ids", "in_order", "recorded", "shuffled"]
