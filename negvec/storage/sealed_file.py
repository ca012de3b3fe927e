"""Sealed storages in files: written whole, opened by mapping them into memory, verified on demand.

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

CRC-32 (`zlib`) finds what disks and transfers do to a file, not what an enemy does; it comes with Python, at a gigabyte
a second. Opening checks the header and the size of the file, in O(1); `verify` reads all of it.
"""

from __future__ import annotations

import mmap
import os
import secrets
import struct
import zlib
from typing import Any, BinaryIO, NamedTuple, Self

import numpy as np

from negvec import kernels
from negvec.errors import DamagedStorage, SealError
from negvec.items import ID_SIZE
from negvec.storage.prefix_sum import ITEMS_AT_ONCE, PrefixSumVector
from negvec.storage.seam import Storage
from negvec.storage.window import Progress

MAGIC = b"\x89negvec\n"  # no text begins so, and a transfer that rewrites line ends shows
VERSION = 1
BYTE_ORDER_MARK = 0x01020304
HEADER = struct.Struct("<8sIIQQQIII8xI")
SECTION_ALIGNMENT = 64
MOST_ITEMS = 1 << 48  # more, a file can't have


class Layout(NamedTuple):
    """Where the sections of a file lie: byte offsets."""

    timestamps: int
    ids: int
    sums: int
    end: int

    @classmethod
    def of(cls, count: int, stride: int) -> Self:
        """Lay out a file of so many items."""
        timestamps = HEADER.size
        ids = _aligned(timestamps + 8 * count)
        sums = _aligned(ids + ID_SIZE * count)
        return cls(timestamps, ids, sums, sums + 32 * (count // stride + 1))


def _aligned(offset: int) -> int:
    return -(-offset // SECTION_ALIGNMENT) * SECTION_ALIGNMENT


# ---- writing


def save(
    storage: Storage, path: str | os.PathLike[str], stride: int | None = None, progress: Progress | None = None
) -> None:
    """Write a sealed storage to a file; see `Windowed.save`. Memory does not grow with the storage."""
    every = getattr(storage, "stride", 1) if stride is None else stride
    if not 1 <= every < 2**31:
        raise ValueError(f"stride is 1 or more, and less than 2**31, not {every}")
    len(storage)  # raises SealError before the seal
    target = os.path.realpath(path)  # a link stays a link
    temporary = f"{target}.{secrets.token_hex(4)}.tmp"
    try:
        with open(temporary, "xb") as stream:
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
    layout = Layout.of(count, stride)
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
    for start in range(0, count, ITEMS_AT_ONCE):
        items = storage.items(start, min(start + ITEMS_AT_ONCE, count))
        ids = np.ascontiguousarray(items["id"])
        sums = np.empty((len(items) // stride + 1, 4), np.uint64)
        rows = kernels.strides.accumulate(ids.view("<u8"), start, stride, total, sums)
        append(0, items["created_at"])
        append(1, ids)
        append(2, sums[:rows])
        if progress is not None:
            progress(start + len(items), count)
    stream.truncate(layout.end)
    stream.seek(0)
    stream.write(_header(count, stride, layout.end, *checksums))


def _header(count: int, stride: int, size: int, *checksums: int) -> bytes:
    unsigned = HEADER.pack(MAGIC, VERSION, BYTE_ORDER_MARK, count, stride, size, *checksums, 0)
    return unsigned[:-4] + struct.pack("<I", zlib.crc32(unsigned[:-4]))


def _sync_folder(folder: str) -> None:
    """Have the name itself on disk; where folders can be opened, that is not on Windows."""
    if os.name != "posix":
        return
    descriptor = os.open(folder or ".", os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# ---- reading


class MappedVector(PrefixSumVector):
    """A sealed storage in a file, mapped into memory: what is asked for is read, and nothing else.

    `negvec.open` makes one. It can be used as a context manager. The file must not be written to while it is open:
    replace it (as `save` does), and whoever has it open keeps the old one. If another program cuts it off, the
    operating system ends this process when it reads on (SIGBUS).

    Raises
    ------
    DamagedStorage
        By whatever finds that the content is not what the header says. Only `verify` looks for that.
    """

    def __init__(self, name: str, mapped: mmap.mmap, count: int, stride: int, checksums: tuple[int, int, int]) -> None:
        super().__init__(stride)
        self.name, self._mapped = name, mapped
        layout = Layout.of(count, stride)
        self._checksums = checksums
        self._id_words = np.frombuffer(mapped, np.uint64, 4 * count, layout.ids).reshape(-1, 4)
        self._ids = self._id_words.view(np.uint8).reshape(-1, ID_SIZE)
        self._limbs = np.frombuffer(mapped, np.uint64, 4 * (count // stride + 1), layout.sums).reshape(-1, 4)
        self._created_at = np.frombuffer(mapped, np.uint64, count, layout.timestamps)

    def __repr__(self) -> str:
        state = "closed" if self._created_at is None else f"{len(self)} items"
        return f"<{type(self).__name__}: {state}, {self.name!r}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file; it is unmapped when no array of it is in use any more."""
        self._created_at = None
        self._mapped = mmap.mmap(-1, 1)
        self._id_words, self._limbs = np.empty((0, 4), np.uint64), np.zeros((1, 4), np.uint64)
        self._ids = self._id_words.view(np.uint8).reshape(-1, ID_SIZE)

    @property
    def created_at(self) -> Any:
        """All timestamps, (n,) uint64, ascending; read-only."""
        if self._created_at is None:
            raise SealError(f"{self.name} is closed; open it again to use it")
        return self._created_at

    def _require_unsealed(self) -> None:
        raise SealError("a storage in a file is sealed; start a new one to add items")

    def verify(self, progress: Progress | None = None) -> None:
        """Read all of the file, and check that it is what its header says.

        Order, repeats, sums and checksums, in one pass; memory does not grow with the file.

        Parameters
        ----------
        progress : callable, optional
            Called now and then with the number of items checked, and that of all.

        Raises
        ------
        DamagedStorage
            Something is wrong; the message says what.
        """
        _expect(self._mapped, "MADV_SEQUENTIAL")
        super().verify(progress)
        columns = (("timestamps", self.created_at), ("ids", self._id_words), ("sums", self._limbs))
        for (section, column), expected in zip(columns, self._checksums, strict=True):
            checksum = 0
            for start in range(0, len(column), ITEMS_AT_ONCE):
                checksum = zlib.crc32(column[start : start + ITEMS_AT_ONCE], checksum)
            if checksum != expected:
                raise self._damage(f"the checksum of the {section} does not match")
        _expect(self._mapped, "MADV_RANDOM")

    def _damage(self, reason: str) -> DamagedStorage:
        return DamagedStorage(f"{self.name}: {reason}")


def open_file(path: str | os.PathLike[str]) -> MappedVector:
    """Open a file that `save` has written, by mapping it into memory; O(1), whatever its size.

    Parameters
    ----------
    path : str or path-like

    Returns
    -------
    MappedVector
        A sealed storage, as `PrefixSumVector`, with `verify` and `close`.

    Raises
    ------
    DamagedStorage
        The file is none of negvec's, or not whole.
    OSError
        It can't be read.
    """
    name = os.fspath(path)
    with open(name, "rb") as stream:
        size = os.fstat(stream.fileno()).st_size
        count, stride, checksums = _read_header(name, stream.read(HEADER.size), size)
        mapped = mmap.mmap(stream.fileno(), size, access=mmap.ACCESS_READ)
    _expect(mapped, "MADV_RANDOM")  # ranges are asked for here and there: reading ahead would read it all
    return MappedVector(name, mapped, count, stride, checksums)


def _expect(mapped: mmap.mmap, advice: str) -> None:
    """Tell the operating system how the file will be read, where it takes advice."""
    if hasattr(mmap, advice):
        mapped.madvise(getattr(mmap, advice))


def _read_header(name: str, header: bytes, size: int) -> tuple[int, int, tuple[int, int, int]]:
    if not header.startswith(MAGIC[: len(header)]) or not header:
        raise DamagedStorage(f"{name} is no sealed storage of negvec's; `negvec index` makes one")
    if len(header) < HEADER.size:
        raise DamagedStorage(f"{name} is cut off: {size} bytes are less than a header")
    _, version, mark, count, stride, whole, *checksums, own = HEADER.unpack(header)
    if mark != BYTE_ORDER_MARK:
        raise DamagedStorage(f"{name}: the header is damaged, or written in another byte order")
    if version != VERSION:
        raise DamagedStorage(f"{name} has version {version} of the file format; this negvec reads version {VERSION}")
    if zlib.crc32(header[:-4]) != own:
        raise DamagedStorage(f"{name}: the checksum of the header does not match; the file is damaged")
    if count > MOST_ITEMS or not 1 <= stride < 2**31 or whole != Layout.of(count, stride).end:
        raise DamagedStorage(
            f"{name}: the header contradicts itself: {count} items at stride {stride} in {whole} bytes"
        )
    if size != whole:
        raise DamagedStorage(f"{name} is {'cut off' if size < whole else 'too long'}: {size} of {whole} bytes")
    return count, stride, (checksums[0], checksums[1], checksums[2])
