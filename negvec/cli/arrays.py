"""Items from NumPy files: a structured ``.npy``, or an ``.npz`` with one array for each column.

A regular ``.npy`` is memory-mapped, so that only the columns are held, not the file as well. Pickles are never loaded.
"""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import numpy.typing as npt

from negvec.cli.streams import FileError, Source
from negvec.items import INFINITY, Ids, Timestamps, as_columns

_NPY_MAGIC = b"\x93NUMPY"
_ZIP_MAGICS = (b"PK\x03\x04", b"PK\x05\x06")


def is_arrays(source: Source) -> bool:
    """Tell whether a source is a ``.npy`` or ``.npz`` file, whatever its name."""
    return source.head.startswith((_NPY_MAGIC, *_ZIP_MAGICS))


def read_arrays(source: Source, *, skip_bad: bool) -> tuple[Timestamps, Ids, int]:
    """Read the columns of a NumPy file.

    Parameters
    ----------
    source : Source
        A file for which `is_arrays`. A ``.npy`` is an array with the fields ``created_at`` (any integers) and
        ``id`` (32 bytes: ``V32``, ``S32`` or ``(32,) u1``); an ``.npz`` has the arrays ``created_at`` and ``ids``.
    skip_bad : bool
        Pass over rows whose created_at is out of range, instead of refusing the file.

    Returns
    -------
    created_at : (n,) uint64
    ids : (n, 32) uint8
    skipped : int
        The number of rows passed over.
    """
    try:
        created_at, ids = _load_columns(source)
    except FileError:
        raise
    except Exception as error:  # what NumPy and zipfile raise for damaged files is no closed set
        raise FileError(source.name, f"can't be read as a NumPy file: {error}") from error
    if ids.dtype.kind == "S":  # the bytes are all there; it is their values that lose zeros
        ids = ids.view(f"V{ids.dtype.itemsize}")
    skipped = 0
    if skip_bad and created_at.dtype.kind in "iu" and created_at.shape == ids.shape[:1]:
        good = (created_at >= 0) & (created_at.astype(np.uint64) != INFINITY)
        skipped = len(good) - int(good.sum())
        if skipped:
            created_at, ids = created_at[good], ids[good]
    try:
        return *as_columns(created_at, ids), skipped
    except (TypeError, ValueError) as error:
        raise FileError(source.name, str(error)) from error


def _load_columns(source: Source) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    if source.head.startswith(_NPY_MAGIC):
        if source.path:
            items = np.load(source.path, mmap_mode="r", allow_pickle=False)
        else:
            items = np.load(_whole(source), allow_pickle=False)
        if not {"created_at", "id"} <= set(items.dtype.names or ()):
            raise FileError(source.name, f"must have the fields created_at and id, has dtype {items.dtype}")
        return items["created_at"], items["id"]
    with (
        open(source.path, "rb") if source.path else _whole(source) as stream,
        np.load(stream, allow_pickle=False) as arrays,
    ):
        if not {"created_at", "ids"} <= set(arrays):
            raise FileError(source.name, f"must have the arrays created_at and ids, has {', '.join(arrays) or 'none'}")
        return np.asarray(arrays["created_at"]), np.asarray(arrays["ids"])


def _whole(source: Source) -> io.BytesIO:
    return io.BytesIO(b"".join(source.pieces()))
