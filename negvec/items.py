"""The only door for items: whatever form they come in, they leave as two arrays, or are refused with the row number.

Items are kept as columns: `created_at`, (n,) uint64, and `ids`, (n, 32) uint8. Ids are never NumPy byte strings: dtype
`S32` drops zero bytes at the end when an element is read, and an id may end in zeros.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

ID_SIZE = 32
INFINITY = 2**64 - 1  # reserved by the protocol: no item has this timestamp

ITEM = np.dtype([("created_at", "<u8"), ("id", "u1", (ID_SIZE,))])
"""One item, packed: 40 bytes."""

Timestamps = npt.NDArray[np.uint64]
Ids = npt.NDArray[np.uint8]


def as_columns(created_at: Any, ids: Any) -> tuple[Timestamps, Ids]:
    """Check items that come as two columns.

    Parameters
    ----------
    created_at : array_like of int, shape (n,)
        Timestamps from 0 to 2**64 - 2, of any integer dtype, or a list of Python integers.
    ids : array_like
        (n, 32) uint8, (n,) void of 32 bytes (`V32`), or a list of `bytes` of length 32 or of 64 hex digits.

    Returns
    -------
    created_at : ndarray of uint64, shape (n,)
    ids : ndarray of uint8, shape (n, 32)
        C-contiguous both; the given arrays themselves where they are so already.

    Raises
    ------
    ValueError
        A value that no item can have; the message names the row.
    TypeError
        Something that is no timestamp or no id.
    """
    timestamps, checked = as_timestamps(created_at), as_ids(ids)
    if len(timestamps) != len(checked):
        raise ValueError(f"{len(timestamps)} timestamps do not match {len(checked)} ids")
    return timestamps, checked


def from_structured(items: npt.NDArray[np.void]) -> tuple[Timestamps, Ids]:
    """Check items that come as a structured array with the fields `created_at` and `id`, such as one of dtype `ITEM`.

    Raises
    ------
    ValueError, TypeError
        As `as_columns`; also if a field is missing.
    """
    if not isinstance(items, np.ndarray):
        raise TypeError(f"items are a structured array with the fields created_at and id, not {type(items).__name__}")
    fields = items.dtype.names or ()
    for name in ("created_at", "id"):
        if name not in fields:
            raise ValueError(f"a structured array of items has the fields created_at and id; {name} is missing")
    return as_columns(items["created_at"], items["id"])


def from_events(events: Iterable[Mapping[str, Any]]) -> tuple[Timestamps, Ids]:
    """Take `created_at` and `id` of Nostr events (NIP-01) given as dicts.

    Raises
    ------
    ValueError, TypeError
        As `as_columns`; also if a key is missing. The message names the row.
    """
    timestamps, ids = [], []
    for row, event in enumerate(events):
        try:
            timestamps.append(event["created_at"])
            ids.append(event["id"])
        except KeyError as error:
            raise ValueError(f"row {row}: the event has no {error}") from None
        except (TypeError, IndexError):
            raise TypeError(f"row {row}: an event is a dict, not {type(event).__name__}") from None
    return as_columns(timestamps, ids)


def as_timestamps(created_at: Any) -> Timestamps:
    """Check a column of timestamps; see `as_columns`."""
    _refuse_masks(created_at)
    if not isinstance(created_at, Sequence) or isinstance(created_at, (str, bytes, bytearray, memoryview)):
        created_at = np.asarray(created_at)
        if created_at.dtype.kind == "O" and created_at.ndim == 1:
            created_at = created_at.tolist()
    if not isinstance(created_at, np.ndarray):
        return _timestamps_of_list(created_at)
    if created_at.ndim != 1:
        raise ValueError(f"created_at has one dimension, not shape {created_at.shape}")
    if created_at.dtype.kind not in "ui":
        if len(created_at) == 0:
            return np.empty(0, np.uint64)
        raise TypeError(f"row 0: created_at is an integer, not {created_at.dtype}; convert it with .astype('u8')")
    if created_at.dtype.kind == "i" and len(created_at) and created_at.min() < 0:
        row = int(np.argmax(created_at < 0))
        raise ValueError(f"row {row}: created_at is negative: {created_at[row]}")
    timestamps = np.ascontiguousarray(created_at, dtype="<u8")
    if len(timestamps) and timestamps.max() == INFINITY:
        _refuse_infinity(int(np.argmax(timestamps == INFINITY)))
    return timestamps


def _refuse_masks(column: Any) -> None:
    masked = sys.modules.get("numpy.ma")  # who has a masked array has imported it; it is slow to import
    if masked is not None and isinstance(column, masked.MaskedArray):
        raise TypeError("a masked array hides values; give column.compressed() or column.filled(...)")


def _refuse_infinity(row: int) -> None:
    raise ValueError(f"row {row}: created_at is 2**64 - 1, which the protocol reserves as infinity")


def _timestamps_of_list(values: Sequence[Any]) -> Timestamps:
    if not set(map(type, values)) <= {int}:
        for row, value in enumerate(values):
            if isinstance(value, (bool, np.timedelta64)) or not isinstance(value, (int, np.integer)):
                raise TypeError(f"row {row}: created_at is an integer, not {type(value).__name__} {value!r}")
        values = [int(value) for value in values]
    try:
        timestamps = np.fromiter(values, dtype="<u8", count=len(values))
    except OverflowError:
        row = next(row for row, value in enumerate(values) if not 0 <= value <= INFINITY)
        problem = "negative" if values[row] < 0 else "over 64 bits"
        shown = f": {values[row]}" if values[row].bit_length() < 128 else ""
        raise ValueError(f"row {row}: created_at is {problem}{shown}") from None
    return as_timestamps(timestamps)


def as_ids(ids: Any) -> Ids:
    """Check a column of ids; see `as_columns`."""
    _refuse_masks(ids)
    if isinstance(ids, np.ndarray) and ids.dtype.kind in "OU":
        ids = ids.tolist()
    if not isinstance(ids, np.ndarray):
        if isinstance(ids, (str, bytes, bytearray, memoryview)):
            raise TypeError("ids is a column of ids; give a single id as a list of one")
        return _ids_of_list(list(ids))
    if ids.dtype.kind == "S":
        raise TypeError(
            f"row 0: ids of dtype {ids.dtype} lose zero bytes at their end; "
            "use (n, 32) uint8 or dtype V32 (np.frombuffer(data, 'V32'))"
        )
    if ids.dtype.kind == "V" and ids.ndim == 1:
        if ids.dtype.itemsize != ID_SIZE:
            raise ValueError(f"row 0: an id is 32 bytes, not {ids.dtype.itemsize}")
        return np.ascontiguousarray(ids).view(np.uint8).reshape(-1, ID_SIZE)
    if ids.size == 0 and ids.ndim == 1:
        return np.empty((0, ID_SIZE), np.uint8)
    if ids.dtype != np.uint8 or ids.ndim != 2:
        raise TypeError(f"ids are (n, 32) uint8, V32, bytes or hex, not {ids.dtype} of shape {ids.shape}")
    if ids.shape[1] != ID_SIZE:
        raise ValueError(f"row 0: an id is 32 bytes, not {ids.shape[1]}")
    return np.ascontiguousarray(ids)


def _ids_of_list(values: list[Any]) -> Ids:
    kinds = set(map(type, values))
    if kinds == {bytes}:
        joined = b"".join(values) if set(map(len, values)) == {ID_SIZE} else None
    elif kinds == {str} and set(map(len, values)) == {2 * ID_SIZE}:
        text = "".join(values)
        # fromhex passes over white space, which no id has
        joined = bytes.fromhex(text) if _is_hex(text) else None
    else:
        joined = None
    if joined is None:
        joined = b"".join(_id_bytes(row, value) for row, value in enumerate(values))
    return np.frombuffer(joined, np.uint8).reshape(-1, ID_SIZE)


_HEX_DIGITS = frozenset("0123456789abcdefABCDEF")


def _is_hex(text: str) -> bool:
    return _HEX_DIGITS.issuperset(text)


def _id_bytes(row: int, value: Any) -> bytes:
    if isinstance(value, str):
        if len(value) != 2 * ID_SIZE:
            raise ValueError(f"row {row}: an id is 64 hex digits, not {len(value)}")
        if not _is_hex(value):
            raise ValueError(f"row {row}: an id is 64 hex digits: {value!r}")
        return bytes.fromhex(value)
    if isinstance(value, (bytes, bytearray, memoryview, np.void)):
        data = bytes(value) if not isinstance(value, np.void) else value.tobytes()
    elif isinstance(value, np.ndarray) and value.dtype == np.uint8:
        data = value.tobytes()
    else:
        raise TypeError(f"row {row}: an id is bytes or hex, not {type(value).__name__}")
    if len(data) != ID_SIZE:
        raise ValueError(f"row {row}: an id is 32 bytes, not {len(data)}")
    return data
