"""The least bytes are less than any reconciliation takes, and more than any ids; measurements are of what they say."""

from __future__ import annotations

import doctest
import itertools

import numpy as np
import pytest

import negvec
from negvec import costs
from negvec.protocol.adaptive import FINGERPRINT_COST, ID_COST, LIST_COST
from negvec.workloads import pair

DENSITIES = [1e-5, 1e-4, 1e-3, 0.01, 0.05, 0.2, 0.6, 1.0]
POLICIES = {"reference": negvec.ReferencePolicy(), "adaptive": negvec.AdaptivePolicy()}


@pytest.mark.parametrize("density", DENSITIES)
def test_no_two_widths_cost_less_than_the_least(density: float) -> None:
    def differs(width: float) -> float:
        return -float(np.expm1(-density * width))

    widths = [2.0 ** (k / 3) for k in range(0, 40)]
    listed = {width: differs(width) * (ID_COST * width + LIST_COST) / width for width in widths}
    two = min(
        FINGERPRINT_COST / wide + differs(wide) * FINGERPRINT_COST / leaf + listed[leaf]
        for wide, leaf in itertools.combinations(reversed(widths), 2)
    )
    one = min(FINGERPRINT_COST / width + listed[width] for width in widths)
    least = float(costs.least_bytes(density))
    assert least <= min(one, two) + 1e-9
    assert least >= 0.15 * min(one, two), "it is of the same kind, not just any smaller number"


def test_a_responder_that_has_no_choice_never_makes_it_less() -> None:
    free, bound = costs.least_bytes(DENSITIES), costs.least_bytes(DENSITIES, reference=True)
    assert (free <= bound + 1e-9).all()
    assert (np.diff(free) >= 0).all(), "more differences do not cost less"
    assert (bound < 2.5 * free).all()


@pytest.mark.parametrize("share", [0.0005, 0.005, 0.05])
def test_reconciliations_take_more_than_the_least(share: float) -> None:
    runs = costs.compare_policies(POLICIES, [share], n=40_000)
    assert runs["policy"].tolist() == ["reference", "adaptive"]
    ours, theirs = pair("loss", 40_000, share=share)
    assert (runs["items"] == len(ours.ids)).all()
    have, need = (len(np.setdiff1d(a.ids.view("V32"), b.ids.view("V32"))) for a, b in ((ours, theirs), (theirs, ours)))
    assert (runs["have"] == have).all()
    assert (runs["need"] == need).all()
    np.testing.assert_allclose(runs["density"], (have + need) / len(ours.ids))
    size = runs["bytes_up"] + runs["bytes_down"]
    least = costs.least_bytes(runs["density"], reference=True) * runs["items"]
    assert (size > 0.95 * least).all()  # differences are drawn, and may lie a little better than expected
    assert (size < 4 * least).all()
    assert size[1] < size[0]


def test_leaves_of_one_width_are_the_formula() -> None:
    expected = (FINGERPRINT_COST + (1 - np.exp(-0.3)) * (3 * ID_COST + LIST_COST)) / 3
    assert float(costs.leaf_bytes(3, 0.1)) == pytest.approx(expected)
    assert costs.leaf_bytes([1, 2, 3], 0.1).shape == (3,)


@pytest.mark.parametrize("density", [0, -1, [0.1, 0.0], float("nan")])
def test_what_is_no_density_is_refused(density: object) -> None:
    with pytest.raises(ValueError, match="above 0"):
        costs.least_bytes(density)


def test_a_walk_costs_more_the_wider_the_range_and_a_prefix_sum_does_not() -> None:
    side = pair("identical", 400_000).ours
    walk = negvec.Vector()
    walk.insert(*side)
    walk.seal()
    ways = {"walk": walk, "prefix sum": negvec.seal(*side)}
    measured = costs.measure_fingerprints(ways, [16, 65_536], batch=20, seconds=0.01)
    assert measured[["way", "width"]].tolist() == [(way, width) for way in ways for width in (16, 65_536)]
    assert (measured["seconds"] > 0).all()
    by_walk, by_sum = measured["seconds"][:2], measured["seconds"][2:]
    assert by_walk[1] > 20 * by_walk[0]  # of thousand times the items; no bound on any time
    assert by_sum[1] < by_walk[1]


def test_the_examples_in_the_docstrings_are_right() -> None:
    assert doctest.testmod(costs).failed == 0
