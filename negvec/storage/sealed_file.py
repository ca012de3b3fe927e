"""Sealed storages in files: the format, and how one is written. `negvec.storage.mapped` opens them.

A file is a header of 64 bytes and three sections, each of which begins at a multiple of 64 bytes; what lies between is
zero. All numbers are little-endian.

    header      0  magic: 0x89 "negvec" 0x0a
                8  uint32   version of the format, 1
               12  uint32   0x01020304, the byte order mark
               16  uint64   n, the number of items
               24  uint64   stride: every how many items a sum is kept
               32  uint64   size of the whole file in bytes
               40  uint32   CRC-32 of the timestamps
               44  uint32   CRC-32 of the ids
               48  uint32   CRC-32 of the sums
               52  8 bytes  zero
               60  uint32   CRC-32 of the 60 bytes before
    timestamps  n uint64, ascending
    ids         n times 32 bytes; items are sorted by (timestamp, id as unsigned bytes), each there once
    sums        n // stride + 1 rows of four uint64: row j is the sum of the first stride * j ids mod 2^256

CRC-32 (`zlib`) comes with Python and runs at 1 to 3 gigabytes a second, several times as fast as SHA-256. It finds what
disks and transfers do to a file, not what an enemy does; and the sums are a second check of all ids, by 256 bits.
Opening checks the header and the size of the file, in O(1); `verify` reads all of it.
"""

from __future__ import annotations

import errno
import operator
import os
import secrets
import stat
import struct
import zlib
from contextlib import suppress
from typing import Any, BinaryIO, NamedTuple, Self

import numpy as np

from negvec import kernels
from negvec.errors import DamagedStorage
from negvec.items import ID_SIZE
from negvec.storage.pieces import in_order, pieces_of
from negvec.storage.seam import Storage
from negvec.storage.window import Progress

MAGIC = b"\x89negvec\n"  # no text begins so, and a transfer that rewrites line ends shows
VERSION = 1
BYTE_ORDER_MARK = 0x01020304
HEADER = struct.Struct("<8sIIQQQIII8xI")
RESERVED = slice(52, 60)  # zero, for versions to come
SECTION_ALIGNMENT = 64
MOST_ITEMS = 1 << 48  # more, a file can't have
MOST_STRIDE = (1 << 31) - 1


class Layout(NamedTuple):
    """Where the sections of a file lie: byte offsets."""

    timestamps: int
    ids: int
    sums: int
    end: int


class Header(NamedTuple):
    """What a file says of itself.

    Attributes
    ----------
    n : int
        Number of items.
    stride : int
        Every how many items a sum is kept.
    checksums : tuple of int
        CRC-32 of the timestamps, the ids and the sums.
    """

    n: int
    stride: int
    checksums: tuple[int, int, int]

    @property
    def layout(self) -> Layout:
        """Where its sections lie."""
        ids = _aligned(HEADER.size + 8 * self.n)
        sums = _aligned(ids + ID_SIZE * self.n)
        return Layout(HEADER.size, ids, sums, sums + 32 * (self.n // self.stride + 1))

    def to_bytes(self) -> bytes:
        """Pack it, its own checksum included."""
        fields = (VERSION, BYTE_ORDER_MARK, self.n, self.stride, self.layout.end, *self.checksums)
        unsigned = HEADER.pack(MAGIC, *fields, 0)[:-4]
        return unsigned + struct.pack("<I", zlib.crc32(unsigned))

    @classmethod
    def read(cls, name: str, header: bytes, size: int) -> Self:
        """Take the first bytes of a file of so many bytes, in O(1).

        Raises
        ------
        DamagedStorage
            The file is none of negvec's, or not whole.
        """
        if not header.startswith(MAGIC[: len(header)]) or not header:
            raise DamagedStorage(f"{name} is no sealed storage of negvec's; `negvec index` makes one")
        if len(header) < HEADER.size:
            raise DamagedStorage(f"{name} is cut off: {size} bytes are less than a header")
        _, version, mark, count, stride, whole, *checksums, own = HEADER.unpack(header)
        if mark != BYTE_ORDER_MARK:
            raise DamagedStorage(f"{name}: the header is damaged, or written in another byte order")
        if version != VERSION:
            raise DamagedStorage(
                f"{name} has version {version} of the file format; this negvec reads version {VERSION}"
            )
        if zlib.crc32(header[:-4]) != own:
            raise DamagedStorage(f"{name}: the checksum of the header does not match; the file is damaged")
        if any(header[RESERVED]):
            raise DamagedStorage(f"{name}: the header says what version {VERSION} of the format does not know")
        sound = count <= MOST_ITEMS and 1 <= stride <= MOST_STRIDE
        found = cls(count, stride, (checksums[0], checksums[1], checksums[2]))
        if not sound or whole != found.layout.end:
            raise DamagedStorage(
                f"{name}: the header contradicts itself: {count} items at stride {stride} in {whole} bytes"
            )
        if size != whole:
            raise DamagedStorage(f"{name} is {'cut off' if size < whole else 'too long'}: {size} of {whole} bytes")
        return found


def _aligned(offset: int) -> int:
    return -(-offset // SECTION_ALIGNMENT) * SECTION_ALIGNMENT


def save(
    storage: Storage, path: str | os.PathLike[str], stride: int | None = None, progress: Progress | None = None
) -> None:
    """Write a sealed storage to a file; see `negvec.storage.window.Windowed.save`."""
    every = getattr(storage, "stride", 1) if stride is None else operator.index(stride)
    if not 1 <= every <= MOST_STRIDE:
        raise ValueError(f"stride is 1 or more, and less than 2**31, not {every}")
    len(storage)  # raises SealError before the seal
    target = os.path.realpath(os.fsdecode(path))  # a link stays a link
    if os.path.isdir(target):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), target)
    replaces = os.path.exists(target)
    if replaces and not os.path.isfile(target):  # to be replaced would be the end of it
        raise ValueError(f"{target} is a device or pipe; a sealed storage goes into a file")
    temporary = f"{target}.{secrets.token_hex(4)}.tmp"
    try:
        with open(temporary, "xb") as stream:
            if replaces:
                with suppress(OSError):  # not every file system has permissions
                    os.chmod(temporary, stat.S_IMODE(os.stat(target).st_mode))
            _write(stream, storage, every, progress)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, target)
    except BaseException:
        if os.path.exists(temporary):
            os.unlink(temporary)
        raise
    _sync_folder(os.path.dirname(target))


def _write(stream: BinaryIO, storage: Storage, stride: int, progress: Progress | None) -> None:
    count = len(storage)
    layout = Header(count, stride, (0, 0, 0)).layout
    checksums = [0, 0, 0]
    at = [layout.timestamps, layout.ids, layout.sums]

    def append(section: int, column: Any) -> None:
        data = np.ascontiguousarray(column).view(np.uint8).reshape(-1).data
        checksums[section] = zlib.crc32(data, checksums[section])
        stream.seek(at[section])
        stream.write(data)
        at[section] += len(data)

    total = np.zeros(4, np.uint64)
    append(2, total)
    for start, created_at, words in in_order(pieces_of(storage)):
        sums = np.empty((len(words) // stride + 1, 4), np.uint64)
        rows = kernels.strides.accumulate(words, start, stride, total, sums)
        append(0, created_at)
        append(1, words)
        append(2, sums[:rows])
        if progress is not None:
            progress(start + len(created_at), count)
    stream.truncate(layout.end)
    stream.seek(0)
    stream.write(Header(count, stride, (checksums[0], checksums[1], checksums[2])).to_bytes())


def _sync_folder(folder: str) -> None:
    """Have the name itself on disk; where folders can be opened, that is not on Windows."""
    if os.name != "posix":
        return
    descriptor = os.open(folder or ".", os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
