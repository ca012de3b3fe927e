"""From a path to blocks of whole lines.

A `Source` reads a file (or stdin) in small pieces and knows how far it has come. Its first piece is kept as `head`,
because formats and compressions are recognized by their first bytes, also where nothing can be read twice. `text`
yields the pieces with gzip or zstd undone; `blocks` joins pieces into large blocks that end at a line's end, which is
what the parsers take.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import BinaryIO, Protocol

# One read from the file. Small, because zstd can blow a piece up 30,000-fold.
PIECE_BYTES = 1 << 14

# The least that the parsers get at once (but at the end of a file).
BLOCK_BYTES = 8 << 20

# A file whose lines are longer than this is not a file of lines. Relays cap an event at 64 KiB or so.
LINE_BYTES_MAX = 64 << 20

_GZIP_MAGIC = b"\x1f\x8b"
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_ZSTD_SKIPPABLE_MAGICS = tuple(bytes([first]) + b"\x2a\x4d\x18" for first in range(0x50, 0x60))


class FileError(ValueError):
    """A file that can't be read as a set of items, or can't be written.

    Attributes
    ----------
    name : str
        The file.
    reason : str
        What is wrong.
    line : int or None
        The line with the fault, counted from 1, in a file of lines.
    """

    def __init__(self, name: str, reason: str, *, line: int | None = None) -> None:
        self.name, self.reason, self.line = name, reason, line
        where, advice = (name, "") if line is None else (f"{name}:{line}", " (--skip-bad passes over bad lines)")
        super().__init__(f"{where}: {reason}{advice}")


@contextmanager
def system_errors(name: str) -> Iterator[None]:
    """Turn an `OSError` in the block into a `FileError` about the file `name`."""
    try:
        yield
    except OSError as error:
        raise FileError(name, error.strerror or str(error)) from error


class Source:
    """A file being read.

    Attributes
    ----------
    name : str
        The path, or ``<stdin>``.
    head : bytes
        The first piece.
    position, size : int, int or None
        Bytes read so far, and bytes in the file if it is a regular one.
    path : str or None
        Where a regular file can be opened once more.
    """

    def __init__(self, stream: BinaryIO, name: str, path: str | None = None) -> None:
        self.name = name
        self.position = 0
        self.size = _regular_size(stream)
        self.path = None if self.size is None else path
        self._stream = stream
        self.head = self._read()

    def _read(self) -> bytes:
        with system_errors(self.name):
            piece = self._stream.read(PIECE_BYTES)
        self.position += len(piece)
        return piece

    def pieces(self) -> Iterator[bytes]:
        """Yield the file's bytes as they are, from the start; once."""
        piece = self.head
        while piece:
            yield piece
            piece = self._read()

    def text(self) -> Iterator[bytes]:
        """Yield the file's bytes, decompressed if they are gzip or zstd."""
        if self.head.startswith(_GZIP_MAGIC):
            return _decompress(self, "gzip", *_gzip())
        if self.head.startswith((_ZSTD_MAGIC, *_ZSTD_SKIPPABLE_MAGICS)):
            return _decompress(self, "zstd", *_zstd())
        return self.pieces()


@contextmanager
def open_source(path: str | os.PathLike[str]) -> Iterator[Source]:
    """Open a file for reading, or stdin for ``-``."""
    name = os.fspath(path)
    if name == "-":
        yield Source(sys.stdin.buffer, "<stdin>")
        return
    with ExitStack() as stack:
        with system_errors(name):
            stream = stack.enter_context(open(name, "rb"))
        yield Source(stream, name, path=name)


def blocks(source: Source, broken: list[FileError] | None = None) -> Iterator[bytes]:
    """Yield a source's text in blocks of whole lines; only the last may lack its newline.

    A block has at least `BLOCK_BYTES`, but for the last. What is wrong with the text is raised; or it is put into
    `broken`, if that is given, and the whole lines before it are the last block.
    """
    held: list[bytes] = []
    size = 0
    try:
        for piece in source.text():
            end = piece.rfind(b"\n") + 1
            if end and size + end >= BLOCK_BYTES:
                yield b"".join([*held, piece[:end]])
                held, size = [], 0
                piece = piece[end:]
            held.append(piece)
            size += len(piece)
            if size > BLOCK_BYTES + LINE_BYTES_MAX:
                raise FileError(source.name, f"a line of more than {LINE_BYTES_MAX >> 20} MiB: not a file of lines")
    except FileError as error:
        if broken is None:
            raise
        broken.append(error)
        text = b"".join(held)
        size = text.rfind(b"\n") + 1
        held = [text[:size]]
    if size:
        yield b"".join(held)


def _regular_size(stream: BinaryIO) -> int | None:
    try:
        status = os.fstat(stream.fileno())
    except OSError:  # not a file at all, as a replaced stdin may be
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None


class _Frame(Protocol):
    """What zlib and zstandard agree on: the decompressor of one gzip member or zstd frame."""

    @property
    def eof(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes, /) -> bytes: ...


def _gzip() -> tuple[Callable[[], _Frame], type[Exception]]:
    import zlib

    return (lambda: zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)), zlib.error


def _zstd() -> tuple[Callable[[], _Frame], type[Exception]]:
    import zstandard

    return zstandard.ZstdDecompressor().decompressobj, zstandard.ZstdError


def _decompress(source: Source, kind: str, open_frame: Callable[[], _Frame], fault: type[Exception]) -> Iterator[bytes]:
    frame: _Frame | None = None
    for piece in source.pieces():
        while piece:
            frame = frame or open_frame()
            try:
                text = frame.decompress(piece)
            except fault as error:
                raise FileError(source.name, f"damaged {kind} stream: {error}") from error
            yield text
            piece = frame.unused_data
            if frame.eof:
                frame = None
    if frame is not None:
        raise FileError(source.name, f"truncated {kind} stream: the end of the file is missing")
