"""Reading a file and sealing it, with a progress bar where somebody looks on."""

from __future__ import annotations

import logging
import sys
import time
from typing import NamedTuple

import negvec
from negvec.cli.files import FileItems, read_items

logger = logging.getLogger(__name__)


class Loaded(NamedTuple):
    """A file's set.

    Attributes
    ----------
    storage : PrefixSumVector
    name : str
    skipped, repeats : int
        Bad lines passed over, and items that were there twice.
    """

    storage: negvec.PrefixSumVector
    name: str
    skipped: int
    repeats: int


def read(path: str, *, skip_bad: bool = False, show: bool = True) -> FileItems:
    """Read a file, showing how far it is if `show` and standard error is a terminal.

    Raises
    ------
    negvec.cli.files.FileError
        It can't be read, or has a malformed line and `skip_bad` is off.
    """
    started = time.perf_counter()
    if not (show and sys.stderr.isatty()):
        items = read_items(path, skip_bad=skip_bad)
    else:
        from tqdm import tqdm  # here, since most runs show no bar

        with tqdm(unit="B", unit_scale=True, desc=path, leave=False, delay=0.5) as bar:

            def advance(read: int, total: int | None, count: int) -> None:
                bar.total = total
                bar.set_postfix_str(f"{count:,} items", refresh=False)
                bar.update(read - bar.n)

            items = read_items(path, skip_bad=skip_bad, progress=advance)
    took = time.perf_counter() - started
    logger.info("%s: %d items read in %.2f s, %d bad lines skipped", items.source, len(items), took, items.skipped)
    return items


def seal(items: FileItems) -> Loaded:
    """Seal what was read."""
    storage = negvec.seal(items.created_at, items.ids, copy=False)
    logger.info("%s: %d items sealed, %d there twice", items.source, len(storage), storage.repeats)
    return Loaded(storage, items.source, items.skipped, storage.repeats)
