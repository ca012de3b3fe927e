"""`MappedVector`: a sealed storage in a file (see `negvec.storage.sealed_file`), mapped into memory.

Questions read the mapping: what they touch is brought in, page by page, and nothing else. Going through everything, to
verify or to save it anew, reads the file instead, a piece at a time: nothing is left in memory, and a disk that can't
be read is an error and not the end of the process.

Where Linux has a file in its cache already, it maps up to two megabytes around any touch (from 64 KiB on, by version
and by how the file was written), so that some hundred touches, all over a file, would leave all of it resident. What
questions may have touched is therefore counted, and let go of when it is more than `resident` bytes. The pages stay in
the system's cache, and are mapped again at some microseconds a touch.
"""

from __future__ import annotations

import errno
import io
import mmap
import os
import stat
import threading
import weakref
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from negvec.errors import DamagedStorage, SealError
from negvec.items import ID_SIZE, Timestamps
from negvec.storage.arguments import as_bounds, as_indices, as_ranges
from negvec.storage.pieces import Piece, pieces_of
from negvec.storage.prefix_sum import PrefixSumVector
from negvec.storage.sealed_file import HEADER, Header
from negvec.storage.seam import Bounds, Bytes, IdLists, Indices, Words
from negvec.storage.window import Progress

TOUCH = 2 << 20
"""The most bytes that become resident by one touch: the largest folio of Linux's cache."""

LEAST_RESIDENT = 64 << 20
BOUNDS_AT_ONCE = 64

_OPEN = ("_mapped", "_id_words", "_ids", "_limbs")  # what a closed file has no more


class MappedVector(PrefixSumVector):
    """A sealed storage in a file, mapped into memory: what is asked for is read, and nothing else.

    `negvec.open` makes one. It can be used as a context manager. Its answers are those of the `PrefixSumVector` that
    was saved, if the file is sound, and only `verify` finds out whether it is. Damage that has not been looked for can
    give wrong answers, but never reads outside of the file: places come from counts and searches, and none from what
    a file holds.

    The file must not be written to while it is open: replace it, as `save` does, and whoever has it open keeps the old
    one. Each question looks first whether the file is still as long as it was, and raises DamagedStorage if it is not;
    but if another program cuts the file off just while a question is answered, the operating system ends this process
    (SIGBUS), as it does when the disk fails.

    Pickled, it is a path: whoever unpickles it opens the file that is there then.

    Attributes
    ----------
    name : str
        The path, as it was given.
    """

    def __init__(self, descriptor: int, name: str, header: Header, resident: int | None) -> None:
        super().__init__(header.stride)
        self.name, self._header = name, header
        self._path = os.path.abspath(name)
        self._stream = io.FileIO(descriptor, closefd=False)
        self._reading = threading.Lock()
        layout, count = header.layout, header.n
        self._mapped = mmap.mmap(descriptor, layout.end, access=mmap.ACCESS_READ)
        _expect(self._mapped, "MADV_RANDOM")  # ranges are asked for here and there: reading ahead would read it all
        self._resident = max(LEAST_RESIDENT, layout.end // 8) if resident is None else max(resident, TOUCH)
        self._touched = 0
        self._id_words = np.frombuffer(self._mapped, np.uint64, 4 * count, layout.ids).reshape(-1, 4)
        self._ids = self._id_words.view(np.uint8).reshape(-1, ID_SIZE)
        self._limbs = np.frombuffer(self._mapped, np.uint64, 4 * (count // self._stride + 1), layout.sums)
        self._limbs = self._limbs.reshape(-1, 4)
        self._created_at = np.frombuffer(self._mapped, np.uint64, count, layout.timestamps)
        self._close_file = weakref.finalize(self, os.close, descriptor)  # with the last reference, if not before

    def __repr__(self) -> str:
        state = "closed" if self._created_at is None else f"{len(self._created_at)} items"
        return f"<{type(self).__name__}: {state}, {self.name!r}>"

    # ---- open and closed

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file; it is unmapped when no array of it is in use any more. Closing twice is no error."""
        with self._reading:
            self._created_at = None
            mapped = self.__dict__.get("_mapped")
            for name in _OPEN:
                self.__dict__.pop(name, None)
            self._close_file()
            if mapped is not None:
                with suppress(BufferError):  # somebody has an array of it, or a question is just being answered
                    mapped.close()

    def __getattr__(self, name: str) -> Any:
        # Columns are taken away by close(), not emptied: a question that is being answered meanwhile, in another
        # thread, must not hand a kernel columns of two lengths.
        if name in _OPEN:
            raise self._closed()
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __reduce__(self) -> tuple[Callable[[str], MappedVector], tuple[str]]:
        # Another process opens the file by its path, and maps the same memory.
        len(self)
        return partial(open_file, resident=self._resident), (self._path,)

    def _closed(self) -> SealError:
        return SealError(f"{self.name} is closed; open it again to use it")

    @property
    def created_at(self) -> Timestamps:
        """All timestamps, (n,) uint64, ascending; read-only."""
        created_at = self._created_at
        if created_at is None:
            raise self._closed()
        self._require_whole()
        return created_at

    def _require_whole(self) -> None:
        try:
            size = self._mapped.size()
        except ValueError:  # closed this moment
            raise self._closed() from None
        if size < self._header.layout.end:
            raise DamagedStorage(
                f"{self.name} has been cut off since it was opened: {size} of {self._header.layout.end} bytes"
            )

    def _require_unsealed(self) -> None:
        raise SealError("a storage in a file is sealed; start a new one to add items")

    # ---- the seam, with an eye on what becomes resident

    def items(self, lo: int, hi: int) -> npt.NDArray[np.void]:
        """The items of one range as a structured array of dtype `negvec.ITEM`, shape (hi - lo,); a copy."""
        items = super().items(lo, hi)
        self._count_touches(items.nbytes + 2 * TOUCH)
        return items

    def id_lists(self, lo: Any, hi: Any) -> IdLists:
        """The ids of many ranges; see `negvec.storage.seam.IdLists`. Copied only where all could not stay resident."""
        lo, hi = as_ranges(lo, hi, len(self))
        sizes = hi - lo
        touches = int(sizes.sum()) * ID_SIZE + TOUCH * _jumps(lo, TOUCH // ID_SIZE)
        if touches <= self._resident or self._all_may_stay:
            self._count_touches(touches)
            return super().id_lists(lo, hi)
        first = np.cumsum(sizes) - sizes
        ids = np.empty((int(sizes.sum()), ID_SIZE), np.uint8)
        rows = np.arange(len(ids)) + np.repeat(lo - first, sizes)
        for some in self._parts((rows, ID_SIZE)):
            np.take(self.ids, rows[some], axis=0, out=ids[some], mode="clip")  # "raise" would buffer
        ids.flags.writeable = False
        return IdLists(ids, first)

    def lower_bounds(self, created_at: Any, ids: Any) -> Indices:
        """For each bound the index of the first item not less than it; see `PrefixSumVector.lower_bounds`."""
        if self._all_may_stay:
            return super().lower_bounds(created_at, ids)
        timestamps, words = as_bounds(created_at, ids)
        prefixes = words.view(np.uint8).reshape(-1, ID_SIZE)
        found = [np.empty(0, np.int64)]
        for start in range(0, len(timestamps), BOUNDS_AT_ONCE):
            some = slice(start, start + BOUNDS_AT_ONCE)
            found.append(super().lower_bounds(timestamps[some], prefixes[some]))
            # A search touches a few places on its way, most of them those of the search before.
            steps = 4 * _jumps(found[-1], TOUCH // 8) + 2 * _jumps(found[-1], TOUCH // ID_SIZE)
            self._count_touches(TOUCH * steps)
        return np.concatenate(found)

    def minimal_bounds(self, index: Any) -> Bounds:
        """The shortest bound between items `index - 1` and `index`, for each index of 1 .. n - 1; shape (m,) int64."""
        index = as_indices(index)
        if self._all_may_stay or not len(index) or not 0 < index.min() <= index.max() < len(self):
            return super().minimal_bounds(index)
        ask = super().minimal_bounds
        found = [ask(index[some]) for some in self._parts((index, 8), (index, ID_SIZE))]
        return found[0] if len(found) == 1 else Bounds(*map(np.concatenate, zip(*found, strict=True)))

    def fingerprints(self, lo: Any, hi: Any) -> Bytes:
        """Fingerprints of many ranges, (m,) and (m,) int64, as (m, 16) uint8; see `PrefixSumVector.fingerprints`."""
        lo, hi = as_ranges(lo, hi, len(self))
        if self._all_may_stay:
            return super().fingerprints(lo, hi)
        touched = [(ends, ID_SIZE / self._stride) for ends in (lo, hi)]
        if self._stride > 1:
            touched += [(ends, ID_SIZE) for ends in (lo, hi)]
        ask = super().fingerprints
        found = [ask(lo[some], hi[some]) for some in self._parts(*touched)]
        return found[0] if len(found) == 1 else np.concatenate(found)

    def fingerprint(self, lo: int, hi: int) -> bytes:
        """The fingerprint of one range [lo, hi), 16 bytes. Many at once are much cheaper: see `fingerprints`."""
        len(self)  # raises where the file is not what it was
        self._count_touches(4 * TOUCH)
        return super().fingerprint(lo, hi)

    @property
    def _all_may_stay(self) -> bool:
        return self._resident >= self._header.layout.end

    def _parts(self, *touched: tuple[Indices, float]) -> Iterator[slice]:
        """Cut a batch into parts that touch no more than may stay, and count what each does.

        The batch goes to the given columns of indices into sections with so many bytes an item.
        """
        rows = len(touched[0][0])
        touches = TOUCH * sum(_jumps(index, int(TOUCH / size)) for index, size in touched)
        parts = max(1, min(-(-touches // self._resident), rows))
        for part in range(parts):
            yield slice(rows * part // parts, rows * (part + 1) // parts)
            self._count_touches(touches // parts)

    def _count_touches(self, size: int) -> None:
        self._touched += size  # an estimate; what two threads count at the same time may be lost
        if self._touched > self._resident and not self._all_may_stay:
            self._touched = 0
            _expect(self._mapped, "MADV_DONTNEED")

    # ---- all of it

    def verify(self, progress: Progress | None = None) -> None:
        """Read all of the file, and check that it is what its header says.

        Order, repeats, sums, checksums and the gaps between sections, in one pass; memory does not grow with the file.

        Parameters
        ----------
        progress : callable, optional
            Called now and then with the number of items checked, and that of all.

        Raises
        ------
        DamagedStorage
            Something is wrong; the message says what.
        """
        layout, count, checksums = self._header.layout, len(self), [0, 0, 0]

        def limb_rows(first: int, last: int) -> Words:
            sums = self._read(layout.sums + 32 * first, 32 * (last - first))
            checksums[2] = zlib.crc32(sums.data, checksums[2])
            return sums.view(np.uint64).reshape(-1, 4)

        def pieces() -> Any:
            for created_at, words in pieces_of(self):
                checksums[0] = zlib.crc32(created_at.data, checksums[0])
                checksums[1] = zlib.crc32(words.data, checksums[1])
                yield created_at, words

        try:
            self._verify_pieces(pieces(), limb_rows, progress)
            for section, found, expected in zip(
                ("timestamps", "ids", "sums"), checksums, self._header.checksums, strict=True
            ):
                if found != expected:
                    raise DamagedStorage(f"the checksum of the {section} does not match")
            for start, stop in (
                (layout.timestamps + 8 * count, layout.ids),
                (layout.ids + ID_SIZE * count, layout.sums),
            ):
                if self._read(start, stop - start).any():
                    raise DamagedStorage(f"there is something in the gap before byte {stop}")
        except DamagedStorage as error:
            raise DamagedStorage(f"{self.name}: {error}") from None

    def _piece(self, lo: int, hi: int) -> Piece:
        layout, size = self._header.layout, hi - lo
        created_at = self._read(layout.timestamps + 8 * lo, 8 * size)
        ids = self._read(layout.ids + ID_SIZE * lo, ID_SIZE * size)
        return created_at.view(np.uint64), ids.view(np.uint64).reshape(-1, 4)

    def _read(self, offset: int, size: int) -> Bytes:
        data, filled = np.empty(size, np.uint8), 0
        with self._reading:
            if self._created_at is None:
                raise self._closed()
            while filled < size:
                if hasattr(os, "preadv"):  # leaves alone the place in the file, which forked processes share
                    got = os.preadv(self._stream.fileno(), [data[filled:].data], offset + filled)
                else:
                    self._stream.seek(offset + filled)
                    got = self._stream.readinto(data[filled:].data) or 0
                if not got:
                    raise DamagedStorage("it has been cut off since it was opened")
                filled += got
        return data


def open_file(path: str | os.PathLike[str], *, resident: int | None = None) -> MappedVector:
    """Open a file that `save` has written, by mapping it into memory; O(1), whatever its size.

    Parameters
    ----------
    path : str or path-like
    resident : int, optional
        About how many bytes of the file questions may leave in this process's memory; by default an eighth of the
        file, or 64 MiB if that is more. More makes later questions faster, if there are many: a server that answers
        from one file all day may give the size of the file.

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
    name = os.fsdecode(path)
    mode = os.stat(name).st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
    if not stat.S_ISREG(mode):  # to open a pipe is to wait for its other end
        raise DamagedStorage(f"{name} is a device or pipe, and no sealed storage; those are files")
    descriptor = os.open(name, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    try:
        header = Header.read(name, os.read(descriptor, HEADER.size), os.fstat(descriptor).st_size)
        return MappedVector(descriptor, name, header, resident)
    except BaseException:
        os.close(descriptor)
        raise


def _expect(mapped: mmap.mmap, advice: str) -> None:
    """Tell the operating system how the file will be read, where it takes advice."""
    if hasattr(mmap, advice):
        mapped.madvise(getattr(mmap, advice))


def _jumps(index: Indices, width: int) -> int:
    """How often a column of indices goes from one stretch of `width` items into another, the first included."""
    stretches = index // width
    return int(np.count_nonzero(stretches[1:] != stretches[:-1])) + min(len(index), 1)
