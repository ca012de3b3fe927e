"""Columns to a sealed storage."""

from __future__ import annotations

import numpy as np

import negvec
from negvec.workloads import Side, pair

from .runs import N, in_order, shuffled


class Seal:
    """One side of the contiguous pair; nearly sorted has one item in 100 swapped with another."""

    params = ("sorted", "nearly sorted", "shuffled")
    param_names = ("order",)

    def setup(self, order: str) -> None:
        side = pair("contiguous", N).ours
        self.items = {"sorted": side, "nearly sorted": swapped(side), "shuffled": shuffled(side)}[order]
        storage = negvec.seal(*self.items)
        np.testing.assert_array_equal(storage.created_at, side.created_at)
        for second in np.unique(side.created_at)[[0, 1, -1]]:
            tied = side.created_at == second
            np.testing.assert_array_equal(storage.ids[tied], in_order(side.ids[tied]))
        assert storage.repeats == 0

    def time_seal(self, order: str) -> None:
        negvec.seal(*self.items)


def swapped(side: Side) -> Side:
    """The same items, one in 100 of them in another's place."""
    n = len(side.created_at)
    places = np.random.default_rng(1).choice(n, n // 100, replace=False)
    order = np.arange(n)
    order[places] = np.roll(places, 1)
    return Side(side.created_at[order], side.ids[order])
