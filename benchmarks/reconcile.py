"""Whole reconciliations, each side's work alone: it is played the messages that the other side once sent."""

from __future__ import annotations

import numpy as np

from .runs import LIMITS, SHAPES, N, recorded


class Reconcile:
    params = (SHAPES, tuple(LIMITS))
    param_names = ("shape", "limits")

    def setup(self, shape: str, limits: str) -> None:
        self.run = recorded(shape, N, LIMITS[limits])
        assert self.run.respond() == self.run.answers[-1]
        step = self.run.ask()
        assert step.message is None
        self.found = len(step.have), len(step.need)

    def time_initiator(self, shape: str, limits: str) -> None:
        self.step = self.run.ask()

    def time_responder(self, shape: str, limits: str) -> None:
        self.answer = self.run.respond()

    def teardown(self, shape: str, limits: str) -> None:
        if hasattr(self, "step"):
            assert self.step.message is None
            assert (len(self.step.have), len(self.step.need)) == self.found
            assert len(np.unique(self.step.need, axis=0)) == self.found[1]
        if hasattr(self, "answer"):
            assert self.answer == self.run.answers[-1]
