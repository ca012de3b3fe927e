"""Reading a file and sealing it, or mapping one that is sealed; with a progress bar where somebody looks on."""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import negvec
from negvec.cli.files import FileItems, Progress, read_items
from negvec.cli.streams import system_errors
from negvec.storage import MappedVector, Window
from negvec.storage.sealed_file import MAGIC

logger = logging.getLogger(__name__)


class Loaded(NamedTuple):
    """A file's set.

    Attributes
    ----------
    storage : PrefixSumVector, or a Window of one
    name : str
    skipped, repeats : int
        Bad lines passed over, and items that were there twice.
    """

    storage: negvec.PrefixSumVector | Window
    name: str
    skipped: int
    repeats: int


def read(path: str, *, skip_bad: bool = False, show: bool = True) -> FileItems | MappedVector:
    """Read a file, showing how far it is if `show` and standard error is a terminal; one that is sealed is mapped.

    Raises
    ------
    negvec.cli.files.FileError
        It can't be read, or has a malformed line and `skip_bad` is off.
    negvec.DamagedStorage
        It is a sealed storage, but not whole.
    """
    started = time.perf_counter()
    if _is_sealed(path):
        with system_errors(path):
            mapped = negvec.open(path)
        logger.info("%s: %d items mapped", path, len(mapped))
        return mapped
    with reading(path, show) as progress:
        items = read_items(path, skip_bad=skip_bad, progress=progress)
    took = time.perf_counter() - started
    logger.info("%s: %d items read in %.2f s, %d bad lines skipped", items.source, len(items), took, items.skipped)
    return items


@contextmanager
def reading(path: str, show: bool) -> Iterator[Progress | None]:
    """What is told how far a file is read, shown if `show` and standard error is a terminal."""
    if not (show and sys.stderr.isatty()):
        yield None
        return
    from tqdm import tqdm  # here, since most runs show no bar

    with tqdm(unit="B", unit_scale=True, desc=path, leave=False, delay=0.5) as bar:

        def advance(read: int, total: int | None, count: int) -> None:
            bar.total = total
            bar.set_postfix_str(f"{count:,} items", refresh=False)
            bar.update(read - bar.n)

        yield advance


def _is_sealed(path: str) -> bool:
    if path == "-" or not os.path.isfile(path):
        return False
    with system_errors(path), open(path, "rb") as stream:
        return stream.read(len(MAGIC)) == MAGIC


def seal(
    items: FileItems | MappedVector, since: int | None = None, until: int | None = None, stride: int = 1
) -> Loaded:
    """Seal what was read, and take the window of it that is asked for."""
    if isinstance(items, MappedVector):
        loaded = Loaded(items, items.name, 0, 0)
    else:
        storage = negvec.seal(items.created_at, items.ids, copy=False, stride=stride)
        logger.info("%s: %d items sealed, %d there twice", items.source, len(storage), storage.repeats)
        loaded = Loaded(storage, items.source, items.skipped, storage.repeats)
    if since is None and until is None:
        return loaded
    if since is not None and until is not None and since > until:
        raise ValueError(f"--since {since} is after --until {until}: no item can be in between")
    return loaded._replace(storage=loaded.storage.window(since, until))


@contextmanager
def counting(what: str, show: bool) -> Iterator[Callable[[int, int], None] | None]:
    """What `save` and `verify` tell their progress, shown if `show` and standard error is a terminal."""
    if not (show and sys.stderr.isatty()):
        yield None
        return
    from tqdm import tqdm

    with tqdm(unit=" items", unit_scale=True, desc=what, leave=False, delay=0.5) as bar:

        def advance(done: int, count: int) -> None:
            bar.total = count
            bar.update(done - bar.n)

        yield advance
