"""Bounds: where they fall, as the locate step asks, and the shortest between neighbours, as a split asks."""

from __future__ import annotations

import numpy as np

import negvec
from negvec.workloads import pair

from .runs import N


class LowerBounds:
    """Every sixteenth item looked up: in order, as bounds come in a message, and in none."""

    params = ("ascending", "shuffled")
    param_names = ("order",)

    def setup(self, order: str) -> None:
        self.storage = negvec.seal(*pair("identical", N).ours)
        self.index = np.arange(0, len(self.storage), 16)
        if order == "shuffled":
            np.random.default_rng(1).shuffle(self.index)
        self.created_at, self.ids = self.storage.created_at[self.index], self.storage.ids[self.index]
        np.testing.assert_array_equal(self.storage.lower_bounds(self.created_at, self.ids), self.index)

    def time_lower_bounds(self, order: str) -> None:
        self.storage.lower_bounds(self.created_at, self.ids)


class MinimalBounds:
    """Between every sixteenth item and the one before it."""

    def setup(self) -> None:
        self.storage = negvec.seal(*pair("identical", N).ours)
        self.index = np.arange(16, len(self.storage), 16)
        bounds = self.storage.minimal_bounds(self.index)
        np.testing.assert_array_equal(self.storage.lower_bounds(bounds.created_at, bounds.ids), self.index)
        new_second = self.storage.created_at[self.index] != self.storage.created_at[self.index - 1]
        np.testing.assert_array_equal(bounds.lengths == 0, new_second)

    def time_minimal_bounds(self) -> None:
        self.storage.minimal_bounds(self.index)
