"""The command line's files: a set of items in, lists of ids out.

`read_items` recognizes a file by its first bytes, not by its name. A text is read block by block: each block of whole
lines becomes arrays at once, and these are appended to two byte buffers that become the columns without another copy,
so that memory is bounded by the columns and a block or two.
"""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import BinaryIO, TypeAlias

import numpy as np

from negvec.cli.arrays import is_arrays, read_arrays
from negvec.cli.csv_lines import choose_columns, looks_like_row
from negvec.cli.lines import Parser
from negvec.cli.streams import FileError, Source, blocks, open_source, system_errors
from negvec.items import ID_SIZE, Ids, Timestamps
from negvec.storage.sealed_file import MAGIC

__all__ = ["FileError", "FileItems", "Progress", "read_items", "write_ids", "writing"]

Progress: TypeAlias = Callable[[int, int | None, int], None]
"""Called with bytes read from the file, bytes in it (None for a pipe), and items so far."""

BOM = b"\xef\xbb\xbf"
SQLITE = b"SQLite format 3\0"

# How many lines are looked at to tell JSON lines from CSV.
_LINES_SNIFFED = 100

# Ids turned into hex at a time.
_IDS_WRITTEN_AT_ONCE = 1 << 16


@dataclass(frozen=True)
class FileItems:
    """The items of a file, in the file's order.

    Attributes
    ----------
    created_at : (n,) uint64
    ids : (n, 32) uint8
    skipped : int
        The number of bad lines (or rows) passed over.
    source : str
        The file's name, for messages.
    """

    created_at: Timestamps
    ids: Ids
    skipped: int
    source: str

    def __len__(self) -> int:
        return len(self.created_at)


def read_items(path: str | os.PathLike[str], *, skip_bad: bool = False, progress: Progress | None = None) -> FileItems:
    """Read the items of a file.

    Parameters
    ----------
    path : str or path-like
        A file, or ``-`` for stdin: Nostr events as JSON lines, or ``created_at,id`` as CSV, with a header line (which
        may turn the columns round) or without; either may be compressed with gzip or zstd. Or a ``.npy`` with the
        fields ``created_at`` and ``id``, or an ``.npz`` with the arrays ``created_at`` and ``ids``.
    skip_bad : bool
        Count malformed lines and pass over them, instead of refusing the file.
    progress : callable, optional
        Called once a block, and at the end, with bytes read, bytes in the file (None for a pipe) and items so far.

    Returns
    -------
    FileItems
        The items in the file's order, neither sorted nor freed of repeats. An empty file has none.

    Raises
    ------
    FileError
        If the file can't be read, or a line is malformed; the message names file, line and reason.
    """
    with open_source(path) as source:
        if source.head.startswith(MAGIC):
            raise FileError(source.name, "is a sealed storage: give its path, it can't come through a pipe")
        if source.head.startswith(SQLITE):
            advice = f"negvec export --store {source.name} -o events.jsonl writes the events of a store"
            raise FileError(source.name, f"is an SQLite database: {advice}")
        if is_arrays(source):
            items = FileItems(*read_arrays(source, skip_bad=skip_bad), source.name)
            if progress:
                progress(source.size or source.position, source.size, len(items))
            return items
        return _read_text(source, skip_bad, progress)


def _read_text(source: Source, skip_bad: bool, progress: Progress | None) -> FileItems:
    created_at, ids = bytearray(), bytearray()
    skipped = 0
    line = 1
    parse: Parser | None = None
    for block in blocks(source):
        if parse is None:
            parse, block = _choose_parser(block.removeprefix(BOM), source.name)
        parsed = parse(block, line)
        if parsed.bad and not skip_bad:
            number, reason = parsed.bad[0]
            raise FileError(source.name, reason, line=number)
        skipped += len(parsed.bad)
        created_at += parsed.created_at.tobytes()
        ids += parsed.ids.tobytes()
        line += block.count(b"\n")
        if progress:
            progress(source.position, source.size, len(ids) // ID_SIZE)
    if progress:
        progress(source.position, source.size, len(ids) // ID_SIZE)
    return FileItems(
        np.frombuffer(created_at, dtype=np.uint64),
        np.frombuffer(ids, dtype=np.uint8).reshape(-1, ID_SIZE),
        skipped,
        source.name,
    )


def _choose_parser(block: bytes, name: str) -> tuple[Parser, bytes]:
    """Return the parser for a text that begins with a block, and the block with a CSV header blanked."""
    from negvec.cli.json_lines import looks_like_event, parse_events

    lines = [line.strip() for line in block.lstrip().split(b"\n", _LINES_SNIFFED)[:_LINES_SNIFFED]]
    events = sum(map(looks_like_event, lines))
    rows = sum(map(looks_like_row, lines))
    # The name is asked only where the content doesn't tell.
    if events > rows or (events == rows and ".json" in name.lower()):
        return parse_events, block
    return choose_columns(block)


def write_ids(path: str | os.PathLike[str], ids: Ids) -> None:
    """Write ids to a file, whole or not at all.

    Parameters
    ----------
    path : str or path-like
        A name that ends in ``.npy`` gets the array; any other, and ``-`` for stdout, a line of 64 hex digits an id. A
        regular file is replaced only once all is written; a device or pipe is written to directly.
    ids : (k, 32) uint8

    Raises
    ------
    FileError
        If the file can't be written.
    """
    if ids.dtype != np.uint8 or ids.ndim != 2 or ids.shape[1] != ID_SIZE:
        raise ValueError(f"ids must be (k, 32) uint8, are {ids.dtype} of shape {ids.shape}")
    name = os.fspath(path)
    with writing(name) as stream:
        (_write_npy if name.endswith(".npy") else _write_hex)(stream, ids)


@contextmanager
def writing(name: str) -> Iterator[BinaryIO]:
    """A file to be written, whole or not at all; `-` is stdout.

    A regular file is replaced only once all is written; a device or pipe is written to directly.

    Raises
    ------
    FileError
        If the file can't be written.
    """
    if name == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    with system_errors(name):
        if os.path.exists(name) and not os.path.isfile(name):
            with open(name, "wb") as stream:
                yield stream
            return
        target = os.path.realpath(name)  # a link stays a link
        temporary = f"{target}.{secrets.token_hex(4)}.tmp"
        try:
            with open(temporary, "xb") as stream:
                yield stream
            os.replace(temporary, target)
        except BaseException:
            if os.path.exists(temporary):
                os.unlink(temporary)
            raise


def _write_npy(stream: BinaryIO, ids: Ids) -> None:
    np.lib.format.write_array(stream, np.ascontiguousarray(ids), allow_pickle=False)


def _write_hex(stream: BinaryIO, ids: Ids) -> None:
    for start in range(0, len(ids), _IDS_WRITTEN_AT_ONCE):
        some = ids[start : start + _IDS_WRITTEN_AT_ONCE]
        stream.write(some.tobytes().hex("\n", ID_SIZE).encode() + b"\n")
