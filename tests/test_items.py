"""The only door for items: what comes in by it, in whatever form, and what is refused, and at which row."""

from __future__ import annotations

import array
from collections import deque
from collections.abc import Callable, Mapping
from decimal import Decimal
from enum import IntEnum
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import negvec
from negvec.items import as_columns, as_ids, as_timestamps, from_events, from_structured

LARGEST = 2**64 - 2
INFINITY = 2**64 - 1
EDGES = [0, 1, 2**31 - 1, 2**31, 2**53 - 1, 2**53, 2**53 + 1, 2**63 - 1, 2**63, LARGEST - 1, LARGEST]
INTEGER_DTYPES = [order + kind + size for kind in "ui" for size in "1248" for order in "<>"]

# Ids that begin or end in zero bytes, and one that has nothing else.
ZEROS = [
    bytes(32),
    bytes(31) + b"\1",
    b"\1" + bytes(31),
    bytes(8) + b"\xff" * 16 + bytes(8),
    b"\xff" * 24 + bytes(8),
    bytes(24) + b"\xff" * 8,
    b" " + bytes(30) + b"\n",
]

id_lists = st.lists(st.one_of(st.binary(min_size=32, max_size=32), st.sampled_from(ZEROS)), max_size=6)


def matrix(ids: list[bytes]) -> Any:
    """Ids as (n, 32) uint8, an array of its own."""
    return np.frombuffer(bytearray(b"".join(ids)), np.uint8).reshape(-1, 32)


def rows(ids: Any) -> list[bytes]:
    assert ids.dtype == np.uint8
    assert ids.shape == (len(ids), 32)
    assert ids.flags.c_contiguous
    return [row.tobytes() for row in ids]


# ---- ids: every way in


def in_an_array_twice_as_high(ids: list[bytes]) -> Any:
    return np.repeat(matrix(ids), 2, axis=0)[::2]


def in_an_array_three_times_as_wide(ids: list[bytes]) -> Any:
    return np.repeat(matrix(ids), 3, axis=1)[:, 1::3]


def backwards(ids: list[bytes]) -> Any:
    return np.ascontiguousarray(matrix(ids)[::-1, ::-1])[::-1, ::-1]


def read_only(ids: list[bytes]) -> Any:
    return np.frombuffer(b"".join(ids), np.uint8).reshape(-1, 32)


def at_an_odd_address(ids: list[bytes]) -> Any:
    return np.frombuffer(b"?" + b"".join(ids), np.uint8, offset=1).reshape(-1, 32)


def in_a_wider_record(ids: list[bytes]) -> Any:
    records = np.zeros(len(ids), [("kind", "u1"), ("id", "V32"), ("seen", "u1")])
    records["id"] = matrix(ids).view("V32").ravel()
    return records["id"]


def in_an_item(ids: list[bytes]) -> Any:
    items = np.zeros(len(ids), negvec.ITEM)
    items["id"] = matrix(ids)
    return items["id"]


def bytes_and_hex(ids: list[bytes]) -> Any:
    ways: list[Callable[[bytes], Any]] = [bytes, bytes.hex, bytearray, lambda id: id.hex().upper(), memoryview]
    return [ways[row % len(ways)](id) for row, id in enumerate(ids)]


def mixed_case(id: bytes) -> str:
    return "".join(digit.upper() if place % 3 else digit for place, digit in enumerate(id.hex()))


ARRAYS_IN: dict[str, Callable[[list[bytes]], Any]] = {
    "(n, 32) uint8": matrix,
    "Fortran order": lambda ids: np.asfortranarray(matrix(ids)),
    "every other row": in_an_array_twice_as_high,
    "every third column": in_an_array_three_times_as_wide,
    "backwards": backwards,
    "read-only": read_only,
    "at an odd address": at_an_odd_address,
    "np.matrix": lambda ids: matrix(ids).view(np.matrix),
    "V32": lambda ids: matrix(ids).view("V32").ravel(),
    "V32, every other": lambda ids: np.repeat(matrix(ids).view("V32").ravel(), 2)[::2],
    "V32 at an odd address": lambda ids: np.frombuffer(b"?" + b"".join(ids), "V32", offset=1),
    "V32 in a record": in_a_wider_record,
    "the id of an ITEM": in_an_item,
    "bytes as objects": lambda ids: np.array([*ids, None], object)[:-1],
    "hex as objects": lambda ids: np.array([*(id.hex() for id in ids), None], object)[:-1],
    "U64": lambda ids: np.array([id.hex() for id in ids], "U64"),
}
IDS_IN: dict[str, Callable[[list[bytes]], Any]] = {
    **ARRAYS_IN,
    "bytes": list,
    "bytes in a tuple": tuple,
    "bytes one by one": iter,
    "bytearrays": lambda ids: [bytearray(id) for id in ids],
    "memoryviews": lambda ids: [memoryview(id) for id in ids],
    "memoryviews of words": lambda ids: [memoryview(id).cast("Q") for id in ids],
    "hex": lambda ids: [id.hex() for id in ids],
    "upper-case hex": lambda ids: [id.hex().upper() for id in ids],
    "hex in both cases": lambda ids: [mixed_case(id) for id in ids],
    "bytes and hex": bytes_and_hex,
    "rows of uint8": lambda ids: list(matrix(ids)),
    "elements of V32": lambda ids: list(matrix(ids).view("V32").ravel()),
}


@pytest.mark.parametrize("form", IDS_IN)
@given(ids=id_lists)
def test_ids_come_in_as_they_are(form: str, ids: list[bytes]) -> None:
    assert rows(as_ids(IDS_IN[form](ids))) == ids


@pytest.mark.parametrize("form", IDS_IN)
def test_ids_that_begin_or_end_in_zero_bytes_survive_from_every_way_in_to_every_way_out(form: str) -> None:
    ids = sorted(ZEROS)
    storage = negvec.seal([7] * len(ids), IDS_IN[form](ids))
    assert rows(storage.ids) == ids
    assert rows(np.ascontiguousarray(storage.items(0, len(ids))["id"])) == ids
    listed = storage.id_lists(np.arange(len(ids)), np.arange(1, len(ids) + 1))
    assert rows(listed.ids[listed.first]) == ids
    bounds = storage.minimal_bounds(np.arange(1, len(ids)))
    assert storage.lower_bounds(bounds.created_at, bounds.ids).tolist() == list(range(1, len(ids)))


@pytest.mark.parametrize("created_at", [[7] * len(ZEROS), range(len(ZEROS))], ids=["equal", "rising"])
def test_ids_that_begin_or_end_in_zero_bytes_survive_as_have_and_need(created_at: Any) -> None:
    full, empty = negvec.seal(created_at, ZEROS), negvec.seal([], [])
    assert sorted(rows(negvec.reconcile(full, empty).have)) == sorted(ZEROS)
    assert sorted(rows(negvec.reconcile(empty, full).need)) == sorted(ZEROS)


def test_a_memory_mapped_column_comes_in(tmp_path: Path) -> None:
    np.save(tmp_path / "ids.npy", matrix(ZEROS))
    np.save(tmp_path / "created_at.npy", np.array(EDGES[: len(ZEROS)], np.uint64))
    created_at, ids = (np.load(tmp_path / name, mmap_mode="r") for name in ("created_at.npy", "ids.npy"))
    storage = negvec.seal(created_at, ids)
    assert storage.created_at.tolist() == EDGES[: len(ZEROS)]
    assert rows(storage.ids) == ZEROS


# ---- ids: what is refused

GOOD = b"\x5b" * 32

BAD_IDS: dict[str, tuple[Any, type[Exception], str]] = {
    "31 bytes": (bytes(31), ValueError, "32 bytes, not 31"),
    "33 bytes": (bytes(33), ValueError, "32 bytes, not 33"),
    "no bytes": (b"", ValueError, "32 bytes, not 0"),
    "hex as bytes": (b"5b" * 32, ValueError, "32 bytes, not 64"),
    "a bytearray of 31": (bytearray(31), ValueError, "32 bytes, not 31"),
    "a memoryview of 33": (memoryview(bytes(33)), ValueError, "32 bytes, not 33"),
    "a row of 31": (np.zeros(31, np.uint8), ValueError, "32 bytes, not 31"),
    "V31": (np.void(bytes(31)), ValueError, "32 bytes, not 31"),
    "an element of S32 that lost its zeros": (np.array([b"a" + bytes(31)], "S32")[0], ValueError, "32 bytes, not 1"),
    "no hex digits": ("", ValueError, "64 hex digits, not 0"),
    "62 hex digits": ("5b" * 31, ValueError, "64 hex digits, not 62"),
    "63 hex digits": ("5b" * 31 + "5", ValueError, "64 hex digits, not 63"),
    "65 hex digits": ("5b" * 32 + "5", ValueError, "64 hex digits, not 65"),
    "a character that is no hex digit": ("5b" * 31 + "5g", ValueError, "64 hex digits"),
    "white space before": (" " * 2 + "5b" * 31, ValueError, "64 hex digits"),
    "white space behind": ("5b" * 31 + "\n ", ValueError, "64 hex digits"),
    "white space inside": ("5b" * 15 + "  " + "5b" * 16, ValueError, "64 hex digits"),
    "spaces between all bytes": ("5b " * 21 + "5", ValueError, "64 hex digits"),
    "64 spaces": (" " * 64, ValueError, "64 hex digits"),
    "0x": ("0x" + "5b" * 31, ValueError, "64 hex digits"),
    "an underscore": ("5b" * 31 + "5_", ValueError, "64 hex digits"),
    "a sign": ("-5" + "5b" * 31, ValueError, "64 hex digits"),
    "NUL": ("\0" * 64, ValueError, "64 hex digits"),
    "digits of another script": ("\uff15" * 64, ValueError, "64 hex digits"),
    "a lone surrogate": ("\ud800" * 64, ValueError, "64 hex digits"),
    "None": (None, TypeError, "not NoneType"),
    "an int": (5, TypeError, "not int"),
    "a float": (5.0, TypeError, "not float"),
    "a bool": (True, TypeError, "not bool"),
    "a list of ints": ([0] * 32, TypeError, "not list"),
    "a row of uint64": (np.zeros(4, np.uint64), TypeError, "not ndarray"),
}


@pytest.mark.parametrize("row", [0, 3])
@pytest.mark.parametrize("among", ["bytes", "hex"])
@pytest.mark.parametrize("case", BAD_IDS)
def test_a_bad_id_is_refused_with_its_row(case: str, among: str, row: int) -> None:
    bad, error, reason = BAD_IDS[case]
    ids: list[Any] = [GOOD if among == "bytes" else GOOD.hex()] * 5
    ids[row] = bad
    with pytest.raises(error, match=f"^row {row}: an id is .*{reason}"):
        as_ids(ids)
    with pytest.raises(error, match=f"^row {row}: an id is .*{reason}"):
        negvec.seal(range(5), ids)


def test_bad_ids_that_make_up_for_one_another_are_refused_with_the_first_row() -> None:
    """The bytes or digits of both together are as many as those of two ids."""
    with pytest.raises(ValueError, match=r"^row 1: an id is 32 bytes, not 31"):
        as_ids([GOOD, bytes(31), bytes(33)])
    with pytest.raises(ValueError, match=r"^row 1: an id is 64 hex digits, not 63"):
        as_ids([GOOD.hex(), "5" * 63, "5" * 65])
    with pytest.raises(ValueError, match=r"^row 1: an id is 64 hex digits"):
        as_ids([GOOD.hex(), " " * 64, "5b" * 32])


@pytest.mark.parametrize("width", [1, 16, 31, 33, 40, 64])
@pytest.mark.parametrize("n", [1, 3, 32])
def test_ids_of_another_width_are_refused_as_arrays_too(width: int, n: int) -> None:
    for ids in (np.zeros((n, width), np.uint8), np.zeros(n, f"V{width}")):
        with pytest.raises(ValueError, match=f"^row 0: an id is 32 bytes, not {width}"):
            as_ids(ids)


@pytest.mark.parametrize(
    "ids", [np.array([GOOD, GOOD]), np.array([GOOD.hex().encode()]), np.array([b"a"]), np.array(b"")]
)
def test_byte_strings_of_numpy_are_refused_and_the_reason_explained(ids: Any) -> None:
    with pytest.raises(TypeError, match=r"^row 0: ids of dtype \|S\d+ lose zero bytes at their end; use .*V32"):
        as_ids(ids)


@pytest.mark.parametrize(
    "ids",
    [
        np.zeros((2, 32), np.int8),
        np.zeros((2, 32), np.bool_),
        np.zeros((2, 32)),
        np.zeros((2, 4), np.uint64),
        np.zeros((2, 32), object),
        np.zeros((2, 4, 8), np.uint8),
        np.zeros(32, np.uint8),
        np.zeros(2, np.uint64),
        np.array(5),
    ],
    ids=lambda ids: f"{ids.dtype} {ids.shape}",
)
def test_arrays_that_are_no_column_of_ids_are_refused(ids: Any) -> None:
    with pytest.raises(TypeError, match=r"uint8|an id is bytes or hex"):
        as_ids(ids)


@pytest.mark.parametrize("ids", ["5b" * 32, bytes(32), bytearray(32), memoryview(bytes(64)), np.array("5b" * 32)])
def test_a_single_id_is_no_column(ids: Any) -> None:
    with pytest.raises(TypeError, match="column of ids; give a single id as a list of one"):
        as_ids(ids)


@pytest.mark.parametrize("ids", [None, 5, 5.0, object()])
def test_what_has_no_rows_at_all_is_no_column_of_ids(ids: Any) -> None:
    with pytest.raises(TypeError):
        as_ids(ids)


# ---- timestamps


@pytest.mark.parametrize("dtype", INTEGER_DTYPES)
def test_every_integer_dtype_comes_in_over_its_whole_range(dtype: str) -> None:
    largest = min(np.iinfo(dtype).max, LARGEST)
    values = sorted({value for edge in EDGES for value in (edge, largest - edge) if 0 <= value <= largest})
    for created_at in (np.array(values, dtype), np.repeat(np.array(values, dtype), 2)[::2]):
        timestamps = as_timestamps(created_at)
        assert timestamps.dtype == np.dtype("<u8")
        assert timestamps.flags.c_contiguous
        assert timestamps.tolist() == values


@given(st.lists(st.one_of(st.sampled_from(EDGES), st.integers(0, LARGEST))))
def test_timestamps_lose_nothing_in_any_form(values: list[int]) -> None:
    forms = [values, tuple(values), deque(values), array.array("Q", values), np.array([*values, None], object)[:-1]]
    forms += [np.array(values, order + "u8") for order in "<>"]
    forms += [
        [np.uint64(value) for value in values],
        np.frombuffer(b"?" + np.array(values, "<u8").tobytes(), "<u8", -1, 1),
    ]
    small = [value for value in values if value < 2**63]
    assert as_timestamps(np.array(small, np.int64)).tolist() == small
    for form in forms:
        timestamps = as_timestamps(form)
        assert timestamps.dtype == np.dtype("<u8")
        assert timestamps.tolist() == values


class Kind(IntEnum):
    TEXT = 7


def test_a_list_may_mix_integers_of_all_kinds() -> None:
    mixed = [LARGEST, np.uint64(LARGEST), np.int64(2**63 - 1), np.uint8(255), Kind.TEXT, 2**53 + 1, np.int8(0)]
    assert as_timestamps(mixed).tolist() == [LARGEST, LARGEST, 2**63 - 1, 255, 7, 2**53 + 1, 0]
    assert as_timestamps(range(5)).tolist() == [0, 1, 2, 3, 4]


BAD_TIMESTAMPS: dict[str, tuple[Any, type[Exception], str]] = {
    "infinity": (INFINITY, ValueError, "reserves as infinity"),
    "infinity of numpy": (np.uint64(INFINITY), ValueError, "reserves as infinity"),
    "2^64": (2**64, ValueError, f"over 64 bits: {2**64}"),
    "2^200": (2**200, ValueError, "over 64 bits"),
    "-1": (-1, ValueError, "negative: -1"),
    "-2": (-2, ValueError, "negative: -2"),
    "-2^63": (-(2**63), ValueError, "negative"),
    "-2^64": (-(2**64), ValueError, "negative"),
    "-1 of numpy": (np.int64(-1), ValueError, "negative: -1"),
    "a float": (1.5, TypeError, "float 1.5"),
    "a whole float": (1.0, TypeError, "float 1.0"),
    "a float of numpy": (np.float64(1), TypeError, "float64"),
    "NaN": (float("nan"), TypeError, "float nan"),
    "True": (True, TypeError, "bool True"),
    "False of numpy": (np.bool_(False), TypeError, "bool"),
    "None": (None, TypeError, "NoneType"),
    "a string": ("1", TypeError, "str '1'"),
    "bytes": (b"1", TypeError, "bytes"),
    "a Decimal": (Decimal(1), TypeError, "Decimal"),
    "a Fraction": (Fraction(1), TypeError, "Fraction"),
    "a complex": (1j, TypeError, "complex"),
    "a list": ([1], TypeError, "list"),
    "an array": (np.array(1), TypeError, "ndarray"),
    "a date": (np.datetime64(1, "s"), TypeError, "datetime64"),
}


@pytest.mark.parametrize("row", [0, 3])
@pytest.mark.parametrize("case", BAD_TIMESTAMPS)
def test_a_bad_timestamp_is_refused_with_its_row(case: str, row: int) -> None:
    bad, error, reason = BAD_TIMESTAMPS[case]
    values: list[Any] = [7] * 5
    values[row] = bad
    objects = np.empty(5, object)
    objects[:] = values
    for created_at in (values, tuple(values), objects, [np.uint64(7)] * row + values[row:]):
        with pytest.raises(error, match=f"^row {row}: created_at is .*{reason}"):
            as_timestamps(created_at)
    with pytest.raises(error, match=f"^row {row}: created_at is .*{reason}"):
        negvec.seal(values, [GOOD] * 5)


@pytest.mark.parametrize("unit", ["s", "ns"])
def test_a_timedelta_is_no_timestamp(unit: str) -> None:
    with pytest.raises(TypeError, match=r"^row 1: created_at is an integer, not timedelta64"):
        as_timestamps([7, np.timedelta64(1, unit)])


@pytest.mark.parametrize("dtype", [dtype for dtype in INTEGER_DTYPES if dtype[1] == "i"])
def test_negative_timestamps_in_arrays_are_refused_with_their_row(dtype: str) -> None:
    for bad in (-1, -2, np.iinfo(dtype).min):
        with pytest.raises(ValueError, match=f"^row 2: created_at is negative: {bad}$"):
            as_timestamps(np.array([0, 7, bad, bad], dtype))


@pytest.mark.parametrize("order", "<>")
def test_infinity_in_arrays_is_refused_with_its_row(order: str) -> None:
    with pytest.raises(ValueError, match=r"^row 2: created_at is 2\*\*64 - 1, which the protocol reserves"):
        as_timestamps(np.array([0, LARGEST, INFINITY, INFINITY], order + "u8"))


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", ">f8", "g", "c16", "?", "U3", "S3", "V8", "M8[s]", "m8[s]"])
def test_arrays_of_anything_but_integers_are_refused_though_their_values_be_whole(dtype: str) -> None:
    with pytest.raises(TypeError, match=r"^row 0: created_at is an integer, not "):
        as_timestamps(np.zeros(3, dtype))


@pytest.mark.parametrize(
    "created_at",
    [7, np.uint64(7), np.array(7), None, "777", b"777", {7, 8}, {7: 8}, np.zeros((3, 1), int), np.zeros((1, 3), int)],
    ids=repr,
)
def test_what_is_no_column_is_refused(created_at: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        as_timestamps(created_at)


def test_a_masked_array_brings_in_no_negative_timestamp() -> None:
    masked = np.ma.masked_array([-2, 5], mask=[True, False])
    with pytest.raises((ValueError, TypeError)):
        as_timestamps(masked)


# ---- columns


@pytest.mark.parametrize(("timestamps", "ids"), [(0, 1), (1, 0), (2, 3), (3, 2)])
def test_columns_of_different_lengths_are_refused(timestamps: int, ids: int) -> None:
    for created_at in ([7] * timestamps, np.full(timestamps, 7)):
        for column in ([GOOD] * ids, matrix([GOOD] * ids), matrix([GOOD] * ids).view("V32").ravel()):
            with pytest.raises(ValueError, match=f"^{timestamps} timestamps do not match {ids} ids$"):
                as_columns(created_at, column)


@pytest.mark.parametrize("created_at", [[], (), range(0), np.array([]), np.empty(0, np.uint64), np.empty(0, object)])
@pytest.mark.parametrize(
    "ids", [[], (), iter([]), np.array([]), np.empty((0, 32), np.uint8), np.empty(0, "V32"), np.empty(0, object)]
)
def test_nothing_comes_in_as_no_items(created_at: Any, ids: Any) -> None:
    timestamps, checked = as_columns(created_at, ids)
    assert (timestamps.dtype, timestamps.shape) == (np.dtype("<u8"), (0,))
    assert (checked.dtype, checked.shape) == (np.uint8, (0, 32))
    assert len(negvec.seal(created_at, ids)) == 0


def test_a_column_that_is_fit_already_is_not_copied() -> None:
    created_at, ids = np.arange(5, dtype=np.uint64), matrix([GOOD] * 5)
    timestamps, checked = as_columns(created_at, ids)
    assert np.shares_memory(timestamps, created_at)
    assert np.shares_memory(checked, ids)


# ---- structured arrays


def structured(dtype: Any) -> Any:
    items = np.zeros(3, dtype)
    items["created_at"] = [0, 2**40, 5]
    items["id"] = matrix(ZEROS[1:4]) if items["id"].ndim == 2 else matrix(ZEROS[1:4]).view("V32").ravel()
    return items


@pytest.mark.parametrize(
    "dtype",
    [
        negvec.ITEM,
        np.dtype([("created_at", "<u8"), ("id", "u1", 32)], align=True),
        [("created_at", ">u8"), ("id", "V32")],
        [("kind", "u1"), ("id", "u1", (32,)), ("created_at", "<i8"), ("content", "S5")],
        {"names": ["created_at", "id"], "formats": ["<u8", "V32"], "offsets": [33, 1], "itemsize": 64},
    ],
    ids=["ITEM", "aligned", "V32 and big-endian", "with other fields", "with gaps"],
)
def test_structured_arrays_come_in_whatever_else_they_hold(dtype: Any) -> None:
    items = structured(dtype)
    for given_items in (items, np.repeat(items, 2)[::2], items.view(np.recarray)):
        timestamps, ids = from_structured(given_items)
        assert timestamps.tolist() == [0, 2**40, 5]
        assert rows(ids) == ZEROS[1:4]
        assert negvec.seal(given_items).created_at.tolist() == [0, 5, 2**40]


def test_an_item_takes_40_bytes() -> None:
    assert negvec.ITEM.itemsize == 40
    assert np.dtype(negvec.ITEM["created_at"]) == np.dtype("<u8")
    assert negvec.ITEM["id"].shape == (32,)


@pytest.mark.parametrize(("missing", "dtype"), [("id", [("created_at", "<u8")]), ("created_at", [("id", "V32")])])
def test_a_structured_array_without_one_of_the_fields_is_refused(missing: str, dtype: Any) -> None:
    with pytest.raises(ValueError, match=f"{missing} is missing"):
        from_structured(np.zeros(3, dtype))
    with pytest.raises(ValueError, match="is missing"):
        from_structured(np.zeros(3))


def test_structured_arrays_are_checked_as_columns_are() -> None:
    items = np.zeros(3, negvec.ITEM)
    items["created_at"][1] = INFINITY
    with pytest.raises(ValueError, match=r"^row 1: .*infinity"):
        from_structured(items)
    with pytest.raises(TypeError, match="lose zero bytes"):
        from_structured(np.zeros(3, [("created_at", "<u8"), ("id", "S32")]))
    with pytest.raises(ValueError, match="32 bytes, not 31"):
        from_structured(np.zeros(3, [("created_at", "<u8"), ("id", "u1", 31)]))
    with pytest.raises(TypeError, match="float64"):
        from_structured(np.zeros(3, [("created_at", "<f8"), ("id", "V32")]))


# ---- events


def event(created_at: Any, id: Any) -> Mapping[str, Any]:
    return {"id": id, "pubkey": "ab" * 32, "created_at": created_at, "kind": 1, "tags": [], "content": "", "sig": ""}


def test_events_come_in_from_a_list_or_one_by_one() -> None:
    events = [event(1000 - i, id.hex()) for i, id in enumerate(ZEROS)]
    for given_events in (events, tuple(events), iter(events), (e for e in events)):
        timestamps, ids = from_events(given_events)
        assert timestamps.tolist() == [1000 - i for i in range(len(ZEROS))]
        assert rows(ids) == ZEROS
    assert rows(negvec.seal(events).ids) == ZEROS[::-1]
    assert len(negvec.seal([])) == 0


@pytest.mark.parametrize("key", ["created_at", "id"])
def test_an_event_without_a_key_is_refused_with_its_row(key: str) -> None:
    events = [dict(event(i, GOOD.hex())) for i in range(3)]
    del events[2][key]
    with pytest.raises(ValueError, match=f"^row 2: the event has no '{key}'"):
        from_events(events)


@pytest.mark.parametrize("bad", [None, 5, "id", b"id", ["id", 5], ("id", 5)], ids=repr)
def test_what_is_no_event_is_refused_with_its_row(bad: Any) -> None:
    with pytest.raises(TypeError, match=f"^row 1: an event is a dict, not {type(bad).__name__}"):
        from_events([event(1, GOOD.hex()), bad])


@pytest.mark.parametrize("case", BAD_TIMESTAMPS)
def test_an_event_with_a_bad_timestamp_is_refused_with_its_row(case: str) -> None:
    bad, error, reason = BAD_TIMESTAMPS[case]
    with pytest.raises(error, match=f"^row 1: created_at is .*{reason}"):
        from_events([event(1, GOOD.hex()), event(bad, GOOD.hex()), event(bad, "")])


@pytest.mark.parametrize("case", BAD_IDS)
def test_an_event_with_a_bad_id_is_refused_with_its_row(case: str) -> None:
    bad, error, reason = BAD_IDS[case]
    with pytest.raises(error, match=f"^row 1: an id is .*{reason}"):
        from_events([event(1, GOOD.hex()), event(2, bad)])


# ---- what is the caller's stays the caller's

ORDERS = {"sorted": range(5), "unsorted": [3, 1, 4, 0, 2], "with repeats": [1, 0, 1, 0, 1], "a single one": [2]}


def insert_then_seal(storage: negvec.Vector, created_at: Any, ids: Any) -> negvec.Vector:
    storage.insert(created_at, ids)
    created_at[:], ids[:] = 77, 77 if ids.dtype == np.uint8 else b"M" * 32
    storage.seal()
    return storage


def insert_items_then_seal(storage: negvec.Vector, created_at: Any, ids: Any) -> negvec.Vector:
    items = np.zeros(len(created_at), [("created_at", created_at.dtype), ("id", ids.dtype, ids.shape[1:])])
    items["created_at"], items["id"] = created_at, ids
    storage.insert_items(items)
    items["created_at"], created_at[:] = 77, 77
    items["id"] = 77 if ids.dtype == np.uint8 else b"M" * 32
    ids[:] = items["id"]
    storage.seal()
    return storage


def seal_then_change(storage: negvec.Vector, created_at: Any, ids: Any) -> negvec.Vector:
    sealed = negvec.seal(created_at, ids)
    created_at[:], ids[:] = 77, 77 if ids.dtype == np.uint8 else b"M" * 32
    return sealed


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("dtype", ["<u8", ">u8", "<i8", "<u4"])
@pytest.mark.parametrize("form", ["(n, 32) uint8", "Fortran order", "V32"])
@pytest.mark.parametrize("seal", [insert_then_seal, insert_items_then_seal, seal_then_change])
@pytest.mark.parametrize("kind", [negvec.Vector, negvec.PrefixSumVector])
def test_later_changes_to_given_arrays_never_reach_the_storage(
    kind: type[negvec.Vector], seal: Callable[..., negvec.Vector], form: str, dtype: str, order: str
) -> None:
    created_at = np.array(ORDERS[order], dtype)
    ids = IDS_IN[form]([bytes([at]) * 32 for at in ORDERS[order]])
    storage = seal(kind(), created_at, ids)
    assert 77 in created_at, "the change that must not be seen was not made"
    assert storage.created_at.tolist() == sorted(set(ORDERS[order]))
    assert rows(storage.ids) == [bytes([at]) * 32 for at in sorted(set(ORDERS[order]))]
    assert not np.shares_memory(storage.created_at, created_at)
    assert not np.shares_memory(storage.ids, ids)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("form", ARRAYS_IN)
def test_given_arrays_are_never_changed(form: str, order: str) -> None:
    created_at = np.array(ORDERS[order], np.uint64)
    ids = IDS_IN[form]([bytes([at]) * 32 for at in ORDERS[order]])
    before = created_at.tobytes(), ids.tobytes()
    negvec.seal(created_at, ids)
    for kind in (negvec.Vector, negvec.PrefixSumVector):
        storage = kind()
        storage.insert(created_at, ids)
        storage.insert(created_at, ids)
        storage.seal()
    assert (created_at.tobytes(), ids.tobytes()) == before
    assert created_at.flags.writeable, "the caller's array was frozen"


def test_given_lists_and_events_are_never_changed_nor_kept() -> None:
    created_at, ids = [3, 1, 2], [bytearray([k]) * 32 for k in (3, 1, 2)]
    storage = negvec.Vector()
    storage.insert(created_at, ids)
    assert created_at == [3, 1, 2]
    created_at[0] = 77
    for id in ids:
        id[:] = b"M" * 32
    storage.seal()
    assert storage.created_at.tolist() == [1, 2, 3]
    assert rows(storage.ids) == [bytes([k]) * 32 for k in (1, 2, 3)]
