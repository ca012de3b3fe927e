"""Reading a file into a sealed storage, with a progress bar where somebody looks on."""

from __future__ import annotations

import sys
from typing import NamedTuple

import negvec
from negvec.cli.files import read_items


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


def load(path: str, *, skip_bad: bool = False, show: bool = True) -> Loaded:
    """Read and seal a file.

    Raises
    ------
    negvec.cli.files.FileError
        It can't be read, or has a malformed line and `skip_bad` is off.
    """
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
    storage = negvec.seal(items.created_at, items.ids, copy=False)
    return Loaded(storage, items.source, items.skipped, storage.repeats)
