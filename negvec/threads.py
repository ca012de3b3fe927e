"""Both cores for large batches: kernels run without the GIL, so plain threads do.

By default as many threads as there are cores, four at most (memory is the limit beyond); `set_threads` or the
environment variable NEGVEC_THREADS say otherwise, and 1 turns it off. Results never depend on it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")

MOST_BY_DEFAULT = 4

_threads = 0  # 0: not yet decided
_pool: ThreadPoolExecutor | None = None


def set_threads(count: int) -> None:
    """Limit the threads that one call uses to `count`, 1 or more.

    Raises
    ------
    ValueError
        The count is less than 1.
    """
    global _threads
    if count < 1:
        raise ValueError(f"threads are 1 or more, not {count}")
    _threads = count
    _forget_pool()


def get_threads() -> int:
    """How many threads one call uses at most."""
    global _threads
    if not _threads:
        asked = os.environ.get("NEGVEC_THREADS", "")
        _threads = int(asked) if asked.isdigit() and int(asked) else min(os.cpu_count() or 1, MOST_BY_DEFAULT)
    return _threads


def together(*tasks: Callable[[], T]) -> list[T]:
    """Run the tasks at the same time, as far as threads allow; returns their results in order."""
    global _pool
    if get_threads() == 1 or len(tasks) < 2:
        return [task() for task in tasks]
    if _pool is None:
        _pool = ThreadPoolExecutor(get_threads() - 1, thread_name_prefix="negvec")
    running = [_pool.submit(task) for task in tasks[1:]]
    try:
        first = tasks[0]()
    finally:
        rest = [future.result() for future in running]
    return [first, *rest]


def shares(count: int, least: int) -> Iterator[slice]:
    """Cut `count` rows into a slice for each thread, of `least` rows or more."""
    pieces = max(1, min(get_threads(), count // least))
    for piece in range(pieces):
        yield slice(count * piece // pieces, count * (piece + 1) // pieces)


def _forget_pool() -> None:
    global _pool
    _pool = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)  # threads do not survive a fork
