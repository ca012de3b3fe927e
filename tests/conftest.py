"""Hypothesis gives the same examples on every run and machine, without a deadline: numba may compile."""

from hypothesis import settings

settings.register_profile("negvec", derandomize=True, deadline=None)
settings.load_profile("negvec")
