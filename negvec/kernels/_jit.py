"""How a kernel becomes machine code: compiled on first use, once per machine, then loaded from disk.

`kernel(result, *arguments)` is numba's `njit` with an explicit signature, so that a kernel has exactly one compiled
form and a wrong argument type is an error instead of a second compilation. A kernel module is imported only when
one of its kernels is first needed (see `negvec.kernels`), and importing it loads the machine code from numba's cache,
or compiles it and fills the cache. `device` marks the small functions that kernels call; they are inlined.

numba stamps a cached kernel with a hash of the file that it stands in, and does not see that a device function in
another file has changed. The stamp is therefore widened to all files of this package.
"""

from __future__ import annotations

import functools
import hashlib
import logging
import pathlib
import time
from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

import numba
from numba import types
from numba.core import event

logger = logging.getLogger("negvec.kernels")

Function = TypeVar("Function", bound=Callable[..., Any])

# What kernels take and give, for readers; their types for the compiler stand in their signatures.
Column: TypeAlias = Any  # an array
Word: TypeAlias = Any  # a uint64
Word32: TypeAlias = Any  # a uint32

ANNOUNCE_AFTER = 1.0  # seconds of compilation in this process after which the user is told what takes so long

VOID = types.void
INT = types.int64
WORD = types.uint64
BYTE = types.uint8


def array(dtype: types.Type, ndim: int = 1) -> types.Array:
    """The type of a C-contiguous array that a kernel only reads (read-only and writable arrays both pass)."""
    return types.Array(dtype, ndim, "C", readonly=True)


def output(dtype: types.Type, ndim: int = 1) -> types.Array:
    """The type of a C-contiguous array that a kernel writes."""
    return types.Array(dtype, ndim, "C")


INTS, WORDS, WORD_ROWS, BYTES, TAGS = array(INT), array(WORD), array(WORD, 2), array(BYTE), array(types.uint32)
OUT_TAGS = output(types.uint32)
PAIR = types.UniTuple(WORD, 2)
OUT_INTS, OUT_WORDS, OUT_WORD_ROWS, OUT_BYTES = output(INT), output(WORD), output(WORD, 2), output(BYTE)


def kernel(result: types.Type, *arguments: types.Type) -> Callable[[Function], Function]:
    """Compile the decorated function for one signature, without the GIL, cached on disk."""

    def compiled(function: Function) -> Function:
        dispatcher = numba.njit(nogil=True, error_model="numpy")(function)
        try:
            dispatcher.enable_caching()
        except RuntimeError:  # no folder can be written to, not even a cache of the user's: compiled for this process
            logger.debug("no folder for numba's cache can be written to; kernels are compiled anew by each process")
        _widen_stamp(dispatcher)
        dispatcher.compile(result(*arguments))
        dispatcher.disable_compile()
        return dispatcher

    return compiled


def device(function: Function) -> Function:
    """Mark a function that only kernels call."""
    return numba.njit(nogil=True, error_model="numpy")(function)


@functools.cache
def _package_stamp() -> str:
    digest = hashlib.sha256()
    for source in sorted(pathlib.Path(__file__).parent.glob("*.py")):
        digest.update(source.read_bytes())
    return digest.hexdigest()


def _widen_stamp(dispatcher: Any) -> None:
    try:
        index = dispatcher._cache._cache_file
        index._source_stamp = (index._source_stamp, _package_stamp())
    except (AttributeError, OSError):  # a numba that keeps its index elsewhere: its own stamp must do
        logger.debug("numba's cache index was not found; kernels are stamped by their own file alone")


class _Announcer(event.Listener):
    """Says once that kernels are being compiled, when that has taken more than a second."""

    def __init__(self) -> None:
        self.depth, self.started, self.spent, self.announced = 0, 0.0, 0.0, False

    def on_start(self, event: event.Event) -> None:
        if self.depth == 0:
            self.started = time.perf_counter()
        self.depth += 1

    def on_end(self, event: event.Event) -> None:
        self.depth -= 1
        if self.depth == 0 and event.data["dispatcher"].py_func.__module__.startswith("negvec."):
            self.spent += time.perf_counter() - self.started
            if self.spent > ANNOUNCE_AFTER and not self.announced:
                self.announced = True
                logger.warning(
                    "compiling negvec's kernels for this machine; this takes some seconds, once "
                    "(they are kept in %s; `negvec warmup` does it ahead of time)",
                    event.data["dispatcher"].stats.cache_path or "memory",
                )


event.register("numba:compile", _Announcer())
