"""numba kernels: pure functions, arrays in, arrays out.

Importing this package compiles nothing and does not import numba: a module of kernels is imported when it is first
asked for, as in `kernels.search.lower_bounds(...)`.
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from negvec.kernels import lists, message, order, search, sha256, sums

MODULES = ("lists", "message", "order", "search", "sha256", "sums")

__all__ = ["MODULES", "lists", "message", "order", "search", "sha256", "sums"]


def __getattr__(name: str) -> ModuleType:
    if name in MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
