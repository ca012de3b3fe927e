"""Files of items are read in every format, exactly or not at all; lists of ids are written whole or not at all."""

import gzip
import io
import json
import os
import random
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from negvec.cli import files, streams
from negvec.cli.files import FileError, FileItems, read_items, write_ids
from negvec.items import INFINITY, ITEM

ID = "ab" * 32

Pairs = list[tuple[int, bytes]]

# Ids that begin and end in zero bytes, timestamps over the whole range, and the same item twice.
PAIRS: Pairs = [
    (0, bytes(32)),
    (1, bytes(31) + b"\1"),
    (1700000000, b"\1" + bytes(31)),
    (1700000000, bytes(16) + b"\xff" * 16),
    (INFINITY - 1, b"\xff" * 32),
    (2**63, bytes(range(32))),
    (1700000000, b"\1" + bytes(31)),
]


def json_lines(pairs: Pairs) -> bytes:
    return b"".join(
        json.dumps({"id": id.hex(), "created_at": created_at, "content": "äµ\n", "tags": [["e", ID]]}).encode() + b"\n"
        for created_at, id in pairs
    )


def csv(pairs: Pairs) -> bytes:
    return b"".join(b"%d,%s\n" % (created_at, id.hex().encode()) for created_at, id in pairs)


def csv_id_first(pairs: Pairs) -> bytes:
    return b"id,created_at\n" + b"".join(b"%s,%d\n" % (id.hex().encode(), created_at) for created_at, id in pairs)


def structured(pairs: Pairs, dtype: npt.DTypeLike) -> npt.NDArray[np.void]:
    packed = b"".join(created_at.to_bytes(8, "little") + id for created_at, id in pairs)
    return np.frombuffer(packed, dtype=np.dtype(dtype))


def npy(pairs: Pairs, dtype: npt.DTypeLike = ITEM) -> bytes:
    stream = io.BytesIO()
    np.save(stream, structured(pairs, dtype))
    return stream.getvalue()


def npz(pairs: Pairs) -> bytes:
    stream = io.BytesIO()
    items = structured(pairs, ITEM)
    np.savez_compressed(stream, created_at=items["created_at"], ids=items["id"])
    return stream.getvalue()


def as_is(data: bytes) -> bytes:
    return data


def gzip_members(data: bytes) -> bytes:
    """Compress in two members, cut in the middle of a line."""
    return gzip.compress(data[:100]) + gzip.compress(data[100:])


def zstd(data: bytes) -> bytes:
    return zstandard.compress(data)


def zstd_frames(data: bytes) -> bytes:
    """Compress in two frames without their sizes, with skippable frames before and between."""
    skippable = b"\x5a\x2a\x4d\x18" + (5).to_bytes(4, "little") + b"hello"
    frames = []
    for part in (data[:100], data[100:]):
        compressor = zstandard.ZstdCompressor(write_checksum=True).compressobj()
        frames.append(compressor.compress(part) + compressor.flush())
    return skippable + frames[0] + skippable + frames[1]


TEXTS = {
    "json": json_lines,
    "json, crlf and blank lines": lambda pairs: b"\r\n \r\n" + json_lines(pairs).replace(b"\n", b"\r\n\r\n"),
    "json, no last newline": lambda pairs: json_lines(pairs).rstrip(b"\n"),
    "json, byte order mark": lambda pairs: b"\xef\xbb\xbf" + json_lines(pairs),
    "csv": csv,
    "csv, header": lambda pairs: b"created_at,id\n" + csv(pairs),
    "csv, id first": csv_id_first,
    "csv, blanks": lambda pairs: b"\n created_at , ID\n" + csv(pairs).replace(b",", b"\t , ").replace(b"\n", b" \n\n"),
    "csv, crlf": lambda pairs: csv_id_first(pairs).replace(b"\n", b"\r\n"),
    "csv, no last newline": lambda pairs: csv(pairs).rstrip(b"\n"),
    "csv, byte order mark": lambda pairs: b"\xef\xbb\xbf" + csv_id_first(pairs),
    "csv, upper case": lambda pairs: csv(pairs).upper(),
}
PACKINGS = {"plain": as_is, "gzip": gzip.compress, "members": gzip_members, "zstd": zstd, "frames": zstd_frames}
NUMPY = {
    "npy": npy,
    "npy, V32": lambda pairs: npy(pairs, [("created_at", "<u8"), ("id", "V32")]),
    "npy, S32": lambda pairs: npy(pairs, [("created_at", "<u8"), ("id", "S32")]),
    "npz": npz,
}


def pairs_of(items: FileItems) -> Pairs:
    assert items.created_at.dtype == np.uint64
    assert items.ids.dtype == np.uint8
    assert items.ids.shape == (len(items), 32)
    return [(int(created_at), id.tobytes()) for created_at, id in zip(items.created_at, items.ids, strict=True)]


def saved(directory: Path, data: bytes, name: str = "items") -> Path:
    path = directory / name
    path.write_bytes(data)
    return path


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make blocks end inside what would be one block, and pieces inside of lines."""
    monkeypatch.setattr(streams, "PIECE_BYTES", 37)
    monkeypatch.setattr(streams, "BLOCK_BYTES", 150)


# --- formats


@pytest.mark.parametrize("packing", PACKINGS)
@pytest.mark.parametrize("text", TEXTS)
def test_every_text_format_packed_in_every_way(text: str, packing: str, tmp_path: Path) -> None:
    items = read_items(saved(tmp_path, PACKINGS[packing](TEXTS[text](PAIRS))))
    assert pairs_of(items) == PAIRS
    assert items.skipped == 0
    assert items.source == str(tmp_path / "items")


@pytest.mark.parametrize("name", NUMPY)
def test_every_numpy_format(name: str, tmp_path: Path) -> None:
    assert pairs_of(read_items(saved(tmp_path, NUMPY[name](PAIRS)))) == PAIRS
    assert pairs_of(read_items(saved(tmp_path, NUMPY[name]([])))) == []


@pytest.mark.parametrize("dtype", [">u8", "<i8", "<u4", "i2"])
def test_created_at_of_any_integer_dtype(dtype: str, tmp_path: Path) -> None:
    path = tmp_path / "items.npz"
    np.savez(path, created_at=np.array([5, 32767], dtype=dtype), ids=np.zeros((2, 32), np.uint8))
    assert read_items(path).created_at.tolist() == [5, 32767]


def test_structured_array_with_padding_and_more_fields(tmp_path: Path) -> None:
    items = np.zeros(3, dtype=np.dtype([("kind", "u1"), ("id", "V32"), ("created_at", "<u8")], align=True))
    items["created_at"] = [3, 1, 2]
    items["id"] = [bytes([k]) + bytes(31) for k in range(3)]
    np.save(tmp_path / "items.npy", items)
    expected = [(3, bytes(32)), (1, b"\1" + bytes(31)), (2, b"\2" + bytes(31))]
    assert pairs_of(read_items(tmp_path / "items.npy")) == expected


@pytest.mark.parametrize(
    "data", [b"", b"\n\n \r\n", b"\xef\xbb\xbf", b"created_at,id\n", gzip.compress(b""), zstd(b"")]
)
def test_a_file_without_items_is_an_empty_set(data: bytes, tmp_path: Path) -> None:
    items = read_items(saved(tmp_path, data))
    assert pairs_of(items) == []
    assert items.skipped == 0


@pytest.mark.parametrize("name", ["items.csv", "items.jsonl", "items.npy", "items.gz"])
@pytest.mark.parametrize("make", [*TEXTS.values(), *NUMPY.values()])
def test_the_name_does_not_decide(make: Callable[[Pairs], bytes], name: str, tmp_path: Path) -> None:
    assert pairs_of(read_items(saved(tmp_path, make(PAIRS), name))) == PAIRS


@pytest.mark.parametrize("text", [json_lines, csv])
def test_bad_first_lines_do_not_hide_the_format(text: Callable[[Pairs], bytes], tmp_path: Path) -> None:
    items = read_items(saved(tmp_path, b"what is this\n[]\n12,\n" + text(PAIRS)), skip_bad=True)
    assert pairs_of(items) == PAIRS
    assert items.skipped == 3


def test_blank_first_lines_do_not_hide_the_format(tmp_path: Path) -> None:
    assert pairs_of(read_items(saved(tmp_path, b"\n" * 500 + json_lines(PAIRS)))) == PAIRS


@pytest.mark.parametrize(
    ("name", "reason"), [("a.jsonl.gz", "not JSON"), ("a.csv", "1 column instead of 2"), ("a", "1 column")]
)
def test_the_name_decides_where_the_content_does_not(name: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(FileError, match=reason):
        read_items(saved(tmp_path, b"hello\n", name))


@given(
    st.lists(st.tuples(st.integers(0, INFINITY - 1), st.binary(min_size=32, max_size=32)), max_size=9),
    st.sampled_from(list(TEXTS.values())),
    st.sampled_from(list(PACKINGS.values())),
    st.integers(8, 400),  # a format is recognized by a piece's first 6 bytes
    st.integers(40, 400),  # and text by a block's first line
)
def test_blocks_may_end_anywhere(
    pairs: Pairs, text: Callable[[Pairs], bytes], pack: Callable[[bytes], bytes], piece_bytes: int, block_bytes: int
) -> None:
    with tempfile.TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patch:
        patch.setattr(streams, "PIECE_BYTES", piece_bytes)
        patch.setattr(streams, "BLOCK_BYTES", block_bytes)
        assert pairs_of(read_items(saved(Path(directory), pack(text(pairs))))) == pairs


def test_blocks_of_the_usual_size(tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    created_at = rng.integers(0, INFINITY, 150_000, dtype=np.uint64)
    ids = rng.integers(0, 256, (150_000, 32), dtype=np.uint8)
    lines = [f"{t},{id.tobytes().hex()}\n" for t, id in zip(created_at.tolist(), ids, strict=True)]
    data = "".join(lines).encode()
    assert len(data) > streams.BLOCK_BYTES
    items = read_items(saved(tmp_path, data))
    np.testing.assert_array_equal(items.created_at, created_at)
    np.testing.assert_array_equal(items.ids, ids)


# --- where from


@pytest.mark.parametrize("make", [*TEXTS.values(), *NUMPY.values()])
@pytest.mark.parametrize("pack", [as_is, gzip.compress, zstd])
def test_stdin(make: Callable[[Pairs], bytes], pack: Callable[[bytes], bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    if make in NUMPY.values() and pack is not as_is:
        return
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(pack(make(PAIRS)))))
    items = read_items("-")
    assert pairs_of(items) == PAIRS
    assert items.source == "<stdin>"


@pytest.mark.parametrize("make", [json_lines, npy, npz])
def test_stdin_that_is_a_file(make: Callable[[Pairs], bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with saved(tmp_path, make(PAIRS)).open() as stream:
        monkeypatch.setattr(sys, "stdin", stream)
        assert pairs_of(read_items("-")) == PAIRS


@pytest.mark.parametrize("data", [json_lines(PAIRS), zstd(csv(PAIRS)), npy(PAIRS), npz(PAIRS)])
def test_a_pipe_that_trickles(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)

    def write() -> None:
        with open(path, "wb", buffering=0) as stream:
            for start in range(0, 20):
                stream.write(data[start : start + 1])
            stream.write(data[20:])

    writer = threading.Thread(target=write)
    writer.start()
    seen: list[int | None] = []
    assert pairs_of(read_items(path, progress=lambda position, size, items: seen.append(size))) == PAIRS
    assert set(seen) == {None}
    writer.join()


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("make", [json_lines, csv, lambda pairs: gzip.compress(csv(pairs)), npy])
def test_progress_is_told_once_a_block(make: Callable[[Pairs], bytes], tmp_path: Path) -> None:
    data = make(PAIRS)
    calls: list[tuple[int, int | None, int]] = []
    read_items(saved(tmp_path, data), progress=lambda *call: calls.append(call))
    assert calls == sorted(calls)
    assert calls[-1] == (len(data), len(data), len(PAIRS))
    assert len(calls) > 2 or make is npy


def test_the_store_of_a_relay_is_refused_with_what_helps(tmp_path: Path) -> None:
    path = saved(tmp_path, b"SQLite format 3\0" + bytes(84), "events.db")
    with pytest.raises(FileError, match=rf"{path}: is an SQLite database: negvec export --store {path} -o "):
        read_items(path)


def test_a_missing_file_and_a_directory(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"nowhere: No such file or directory$"):
        read_items(tmp_path / "nowhere")
    with pytest.raises(FileError, match="Is a directory"):
        read_items(tmp_path)


# --- refusals

BAD_EVENTS = [
    ("hello", "not JSON: .*column 1"),
    ('{"created_at":1,"id":"' + ID + '"', "not JSON"),
    ('{"created_at":1,"id":"' + ID + '"} {}', "not JSON"),
    ("[" * 5000, "not JSON"),
    ("[]", "not a JSON object"),
    ("17", "not a JSON object"),
    ('{"id":"' + ID + '"}', "created_at is missing"),
    ('{"created_at":1}', "id is missing"),
    *(
        ('{"id":"' + ID + '","created_at":' + value + "}", "created_at " + reason)
        for value, reason in [
            ("-1", "must be an integer from 0 to 2.64-2, is -1"),
            ("1.5", "must be an integer from 0 to 2.64-2, is 1.5"),
            ("1.0", "must be an integer from 0 to 2.64-2, is 1.0"),
            ("true", "must be an integer from 0 to 2.64-2, is true"),
            ("null", "must be an integer from 0 to 2.64-2, is null"),
            ('"1700000000"', 'must be an integer from 0 to 2.64-2, is "1700000000"'),
            ("[1]", "must be an integer from 0 to 2.64-2, is an array"),
            ("{}", "must be an integer from 0 to 2.64-2, is an object"),
            ("[" * 600 + "]" * 600, "must be an integer"),
            ("18446744073709551615", "is 2.64-1, which is reserved as infinity"),
            ("18446744073709551616", "must be an integer"),
            ("-9223372036854775809", "must be an integer"),
        ]
    ),
    *(
        ('{"created_at":1,"id":' + value + "}", "id must be " + reason)
        for value, reason in [
            ("5", "a string of 64 hex digits, is 5"),
            ("null", "a string of 64 hex digits, is null"),
            ('["' + ID + '"]', "a string of 64 hex digits, is an array"),
            ('""', "64 hex digits, has 0 characters"),
            ('"' + ID[1:] + '"', "64 hex digits, has 63 characters"),
            ('"' + ID + '00"', "64 hex digits, has 66 characters"),
            ('"g' + ID[1:] + '"', "64 hex digits, has other characters"),
            ('"  ' + ID[2:] + '"', "64 hex digits, has other characters"),
            ('"' + "\u0660" * 64 + '"', "64 hex digits, has other characters"),
        ]
    ),
]

BAD_ROWS = [
    ("hello", "1 column instead of 2"),
    (f"1,{ID},7", "3 columns instead of 2"),
    (f"1;{ID}", "1 column instead of 2"),
    (f"{ID},1", "created_at must be an integer from 0 to 2.64-2, is 'abab"),
    *(
        (f"{value},{ID}", "created_at " + reason)
        for value, reason in [
            ("", "must be an integer from 0 to 2.64-2, is ''"),
            ("-1", "must be an integer from 0 to 2.64-2, is '-1'"),
            ("+1", "must be an integer"),
            ("1.5", "must be an integer"),
            ("1e9", "must be an integer"),
            ("1_0", "must be an integer"),
            ("1 0", "must be an integer"),
            ("true", "must be an integer"),
            ("timestamp", "must be an integer"),
            ("\u0661", "must be an integer"),
            ("9" * 5000, "must be an integer"),
            ("18446744073709551615", "is 2.64-1, which is reserved as infinity"),
            ("18446744073709551616", "must be an integer from 0 to 2.64-2, is 18446744073709551616"),
        ]
    ),
    ("1,", "id must be 64 hex digits, has 0 characters"),
    ("1," + ID[1:], "id must be 64 hex digits, has 63 characters"),
    ("1," + ID + "0", "id must be 64 hex digits, has 65 characters"),
    ("1,g" + ID[1:], "id must be 64 hex digits, has other characters"),
    ("1,a " + ID[2:], "id must be 64 hex digits, has other characters"),
    ('1,"' + ID + '"', "id must be 64 hex digits, has 66 characters"),
]

BAD_LINES = [(json_lines, *bad) for bad in BAD_EVENTS] + [(csv, *bad) for bad in BAD_ROWS]


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize(("text", "line", "reason"), BAD_LINES)
def test_a_bad_line_is_refused_by_its_number_or_skipped(
    text: Callable[[Pairs], bytes], line: str, reason: str, tmp_path: Path
) -> None:
    before, after = text(PAIRS) + b"\n", text(PAIRS[2:])
    path = saved(tmp_path, before + line.encode() + b"\n" + after + line.encode())
    with pytest.raises(FileError, match=reason) as caught:
        read_items(path)
    number = len(PAIRS) + 2
    assert str(caught.value).startswith(f"{path}:{number}: ")
    assert str(caught.value).endswith(" (--skip-bad passes over bad lines)")
    assert (caught.value.name, caught.value.line) == (str(path), number)
    items = read_items(path, skip_bad=True)
    assert pairs_of(items) == PAIRS + PAIRS[2:]
    assert items.skipped == 2


@pytest.mark.parametrize("text", [json_lines, csv])
@pytest.mark.parametrize("line", [b'{"id":"\xff"}', b"1,\xff", b"\xff\xfe1\0", b"\xc3("])
def test_what_is_not_utf8_is_a_bad_line(text: Callable[[Pairs], bytes], line: bytes, tmp_path: Path) -> None:
    path = saved(tmp_path, text(PAIRS) + line + b"\n" + text(PAIRS))
    with pytest.raises(FileError, match=rf":{len(PAIRS) + 1}: not UTF-8, at byte [1-9]"):
        read_items(path)
    assert pairs_of(read_items(path, skip_bad=True)) == PAIRS + PAIRS


def test_a_header_is_a_header_only_in_front(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r":9: created_at must be an integer from 0 to 2\^64-2, is 'created_at'"):
        read_items(saved(tmp_path, b"created_at,id\n" + csv(PAIRS) + b"created_at,id\n"))


def test_bad_lines_are_counted_over_all_blocks(tmp_path: Path, small_blocks: None) -> None:
    rng = random.Random(3)
    lines, good, bad = [], 0, 0
    for number in range(300):
        if rng.random() < 0.3:
            lines.append("x" * rng.randrange(1, 400))
            bad += 1
        else:
            lines.append(f"{number},{number:064x}")
            good += 1
    items = read_items(saved(tmp_path, "\n".join(lines).encode()), skip_bad=True)
    assert (len(items), items.skipped) == (good, bad)
    assert items.created_at.tolist() == [int(id.tobytes().hex(), 16) for id in items.ids]


@pytest.mark.parametrize(("pack", "kind"), [(gzip.compress, "gzip"), (zstd, "zstd")])
@pytest.mark.parametrize("piece_bytes", [1, 1 << 14])
def test_a_truncated_stream_is_refused_wherever_it_is_cut(
    pack: Callable[[bytes], bytes], kind: str, piece_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "PIECE_BYTES", max(piece_bytes, 4))
    whole = pack(csv(PAIRS))
    for end in range(4, len(whole)):
        with pytest.raises(FileError, match=rf"items: truncated {kind} stream"):
            read_items(saved(tmp_path, whole[:end]), skip_bad=True)
    for end in range(1, 4):
        with pytest.raises(FileError):
            read_items(saved(tmp_path, whole[:end]))


@pytest.mark.parametrize(("pack", "kind"), [(gzip.compress, "gzip"), (zstd, "zstd")])
def test_a_damaged_stream_is_refused(pack: Callable[[bytes], bytes], kind: str, tmp_path: Path) -> None:
    whole = pack(csv(PAIRS))
    with pytest.raises(FileError, match=f"damaged {kind} stream"):
        read_items(saved(tmp_path, whole + b"more, but not compressed"))
    with pytest.raises(FileError, match=f"{kind} stream"):
        read_items(saved(tmp_path, whole[:9] + bytes([whole[9] ^ 0xFF]) + whole[10:-5]))


def test_a_file_that_is_one_endless_line_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "LINE_BYTES_MAX", 1 << 20)
    with pytest.raises(FileError, match="a line of more than 1 MiB"):
        read_items(saved(tmp_path, gzip.compress(bytes(20 << 20))))


@pytest.mark.parametrize(
    ("arrays", "reason"),
    [
        ({"created_at": [1.0], "ids": np.zeros((1, 32), "u1")}, "created_at is an integer"),
        ({"created_at": [True], "ids": np.zeros((1, 32), "u1")}, "created_at is an integer"),
        ({"created_at": [[1]], "ids": np.zeros((1, 32), "u1")}, "created_at has one dimension"),
        ({"created_at": [3, -1], "ids": np.zeros((2, 32), "u1")}, "row 1: created_at is negative"),
        ({"created_at": np.array([INFINITY], "u8"), "ids": np.zeros((1, 32), "u1")}, "row 0: .*infinity"),
        ({"created_at": [1, 2], "ids": np.zeros((1, 32), "u1")}, "2 timestamps do not match 1 ids"),
        ({"created_at": [1], "ids": np.zeros((1, 31), "u1")}, "an id is 32 bytes, not 31"),
        ({"created_at": [1], "ids": np.zeros(1, "V33")}, "an id is 32 bytes, not 33"),
        ({"created_at": [1], "ids": np.zeros((1, 32), "i1")}, "ids are"),
        ({"created_at": [1], "ids": 7}, "ids are"),
        (
            {"created_at": [1], "id": np.zeros((1, 32), "u1")},
            "must have the arrays created_at and ids, has created_at, id",
        ),
        ({}, "has none"),
        ({"created_at": np.array([None]), "ids": np.zeros((1, 32), "u1")}, "allow_pickle"),
    ],
)
def test_an_npz_of_something_else_is_refused(arrays: dict[str, npt.ArrayLike], reason: str, tmp_path: Path) -> None:
    np.savez(tmp_path / "items.npz", **arrays)  # type: ignore[arg-type]
    with pytest.raises(FileError, match=f"items.npz: .*{reason}"):
        read_items(tmp_path / "items.npz")


@pytest.mark.parametrize("items", [np.arange(3), np.zeros(3, [("created_at", "<u8"), ("ids", "V32")])])
def test_an_npy_of_something_else_is_refused(items: npt.NDArray[np.generic], tmp_path: Path) -> None:
    np.save(tmp_path / "items.npy", items)
    with pytest.raises(FileError, match="must have the fields created_at and id"):
        read_items(tmp_path / "items.npy")


def test_bad_rows_of_arrays_are_skipped_and_counted(tmp_path: Path) -> None:
    ids = np.arange(4 * 32, dtype=np.uint8).reshape(4, 32)
    np.savez(tmp_path / "items.npz", created_at=np.array([5, -1, -(2**63), 6]), ids=ids)
    items = read_items(tmp_path / "items.npz", skip_bad=True)
    assert pairs_of(items) == [(5, ids[0].tobytes()), (6, ids[3].tobytes())]
    assert items.skipped == 2
    path = saved(tmp_path, npy([(INFINITY, bytes(32)), *PAIRS]))
    items = read_items(path, skip_bad=True)
    assert pairs_of(items) == PAIRS
    assert items.skipped == 1


@pytest.mark.parametrize("make", [npy, npz])
def test_damaged_arrays_are_refused(make: Callable[[Pairs], bytes], tmp_path: Path) -> None:
    whole = make(PAIRS)
    for end in range(1, len(whole)):
        with pytest.raises(FileError):
            read_items(saved(tmp_path, whole[:end]))


def test_importing_does_not_load_what_only_some_files_need() -> None:
    program = "import sys, negvec.cli.files; print({'orjson', 'zstandard'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


# --- writing

IDS = np.array([list(id) for _, id in PAIRS], dtype=np.uint8)


def test_ids_are_written_as_lines_of_hex(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_IDS_WRITTEN_AT_ONCE", 3)
    write_ids(tmp_path / "have", IDS)
    assert (tmp_path / "have").read_text().splitlines() == [id.hex() for _, id in PAIRS]
    assert (tmp_path / "have").read_bytes().endswith(b"\n")
    write_ids(tmp_path / "have", IDS[:0])
    assert (tmp_path / "have").read_bytes() == b""
    write_ids(tmp_path / "have", IDS[::-2])  # not contiguous
    assert (tmp_path / "have").read_text().splitlines() == [id.hex() for _, id in PAIRS[::-2]]


@pytest.mark.parametrize("ids", [IDS, IDS[:0], IDS[::2]])
def test_ids_are_written_as_an_array(ids: npt.NDArray[np.uint8], tmp_path: Path) -> None:
    write_ids(tmp_path / "need.npy", ids)
    read = np.load(tmp_path / "need.npy")
    assert read.dtype == np.uint8
    np.testing.assert_array_equal(read, ids)


def test_ids_are_written_to_stdout(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    write_ids("-", IDS[:2])
    assert capfdbinary.readouterr().out == PAIRS[0][1].hex().encode() + b"\n" + PAIRS[1][1].hex().encode() + b"\n"


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(stream: io.BufferedWriter, ids: object) -> None:
        stream.write(b"half")
        raise OSError(28, "No space left on device")

    path = saved(tmp_path, b"old", "have")
    monkeypatch.setattr(files, "_write_hex", fail)
    with pytest.raises(FileError, match="have: No space left on device"):
        write_ids(path, IDS)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_stays_a_link_and_a_new_file_has_the_usual_mode(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("have")
    old = os.umask(0o027)
    try:
        write_ids(tmp_path / "link", IDS)
    finally:
        os.umask(old)
    assert (tmp_path / "link").is_symlink()
    assert stat.S_IMODE((tmp_path / "have").stat().st_mode) == 0o640


def test_a_pipe_is_written_to_and_stays_a_pipe(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(path.read_bytes()))
    reader.start()
    write_ids(path, IDS[:1])
    reader.join()
    assert got == [b"00" * 32 + b"\n"]
    assert path.is_fifo()


def test_what_cannot_be_written_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="No such file or directory"):
        write_ids(tmp_path / "nowhere" / "have", IDS)
    with pytest.raises(FileError, match="Is a directory"):
        write_ids(tmp_path, IDS)
    with pytest.raises(ValueError, match=r"ids must be \(k, 32\) uint8"):
        write_ids(tmp_path / "have", IDS[:, :31])
