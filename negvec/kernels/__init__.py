"""numba kernels: pure functions, arrays in, arrays out.

Importing this package compiles nothing and does not import numba: a module of kernels is imported when it is first
asked for, as in `kernels.search.lower_bounds(...)`.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from negvec.kernels import (
        arrivals,
        blocks,
        checks,
        edits,
        hex,
        lists,
        message,
        once,
        order,
        plans,
        search,
        sha256,
        single,
        strides,
        sums,
        worklist,
    )

MODULES = (
    *("arrivals", "blocks", "checks", "edits", "hex", "lists", "message", "once", "order", "plans"),
    *("search", "sha256", "single", "strides", "sums", "worklist"),
)

ROUND = ("checks", "lists", "message", "search", "sha256", "sums")
"""The modules that every reconciliation needs; `worklist` comes with policies that keep account of open ranges."""

__all__ = [
    "MODULES",
    "arrivals",
    "blocks",
    "checks",
    "edits",
    "hex",
    "lists",
    "load",
    "message",
    "once",
    "order",
    "plans",
    "search",
    "sha256",
    "single",
    "strides",
    "sums",
    "worklist",
]


def __getattr__(name: str) -> ModuleType:
    if name in MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def load(names: Iterable[str] = MODULES) -> str:
    """Load modules, compiling what is not in numba's cache; returns the folder of that cache."""
    folders = []
    for name in names:
        module = importlib.import_module(f"{__name__}.{name}")
        for value in vars(module).values():
            if hasattr(value, "stats") and value.signatures:
                folders.append(value.stats.cache_path)
    return next((folder for folder in folders if folder), "memory: no folder for it can be written to")
