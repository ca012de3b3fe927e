"""Sealed files: what is read is what was written, and whatever else is in a file is an error that says so."""

from __future__ import annotations

import os
import random
import signal
import struct
import subprocess
import sys
import time
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import negvec
from negvec.storage.sealed_file import HEADER, MAGIC, Header, save
from negvec.workloads import pair

CREATED_AT = np.arange(100, dtype=np.uint64) // 3
IDS = np.frombuffer(random.Random(1).randbytes(3200), np.uint8).reshape(-1, 32)


@pytest.fixture
def path(tmp_path: Path) -> str:
    name = str(tmp_path / "items.negvec")
    negvec.seal(CREATED_AT, IDS).save(name, stride=3)
    return name


def write(path: str, content: bytes) -> None:
    Path(path).write_bytes(content)


def with_header(content: bytes, **changed: int) -> bytes:
    """The file with other numbers in its header, whose checksum fits."""
    names = ["version", "mark", "count", "stride", "size", "timestamps", "ids", "sums"]
    values = dict(zip(names, HEADER.unpack(content[:64])[1:-1], strict=True)) | changed
    fields = struct.pack("<8sIIQQQIII8x", MAGIC, *values.values())
    return fields + struct.pack("<I", zlib.crc32(fields)) + content[64:]


# ---- what goes in comes out


@given(st.integers(0, 40), st.integers(1, 50))
def test_a_file_has_what_was_saved(tmp_path_factory: pytest.TempPathFactory, count: int, stride: int) -> None:
    name = tmp_path_factory.mktemp("file") / "items.negvec"
    storage = negvec.seal(CREATED_AT[:count], IDS[:count])
    storage.save(name, stride=stride)
    with negvec.open(name) as opened:
        opened.verify()
        assert opened.created_at.tolist() == storage.created_at.tolist()
        assert opened.ids.tolist() == storage.ids.tolist()
        assert opened.stride == stride
        lo, hi = np.tril_indices(count + 1)[::-1]
        np.testing.assert_array_equal(opened.fingerprints(lo, hi), storage.fingerprints(lo, hi))
    assert os.path.getsize(name) == Header(count, stride, (0, 0, 0)).layout.end


@pytest.mark.parametrize("n", [65_535, 65_536, 65_537, 200_000])
def test_files_of_several_pieces_are_sound(tmp_path: Path, n: int) -> None:
    sides = pair("scattered", n + n // 15, 3)
    storage = negvec.seal(*sides.ours)
    told: list[tuple[int, int]] = []
    storage.save(tmp_path / "a", stride=7, progress=lambda *done: told.append(done))
    opened = negvec.open(tmp_path / "a")
    opened.verify(lambda *done: told.append(done))
    assert told[-1] == (len(storage), len(storage))
    found = negvec.reconcile(opened, negvec.seal(*sides.theirs))
    expected = negvec.reconcile(storage, negvec.seal(*sides.theirs))
    np.testing.assert_array_equal(found.have, expected.have)
    np.testing.assert_array_equal(found.need, expected.need)


def storages() -> dict[str, Any]:
    live = negvec.LiveIndex()
    live.insert(CREATED_AT, IDS)
    vector = negvec.Vector()
    vector.insert(CREATED_AT, IDS)
    vector.seal()
    sealed = negvec.seal(CREATED_AT, IDS, stride=5)
    return {
        "live": live,
        "snapshot": live.snapshot(),
        "vector": vector,
        "sealed": sealed,
        "window": sealed.window(3, 20),
    }


@pytest.mark.parametrize("kind", ["live", "snapshot", "vector", "sealed", "window"])
def test_every_storage_can_be_saved(tmp_path: Path, kind: str) -> None:
    storage = storages()[kind]
    storage.save(tmp_path / kind)
    opened = negvec.open(tmp_path / kind)
    opened.verify()
    assert opened.items(0, len(opened)).tobytes() == storage.items(0, len(storage)).tobytes()
    assert opened.stride == getattr(storage, "stride", 1)


def test_a_file_can_be_saved_over_itself(path: str) -> None:
    opened = negvec.open(path)
    opened.save(path, stride=1)
    again = negvec.open(path)
    again.verify()
    assert (opened.stride, again.stride) == (3, 1)
    opened.verify()


def test_a_closed_file_says_so(path: str) -> None:
    with negvec.open(path) as opened:
        ids = opened.ids
    for ask in (len, lambda storage: storage.fingerprint(0, 0), lambda storage: storage.verify(), negvec.Negentropy):
        with pytest.raises(negvec.SealError, match="closed"):
            ask(opened)
    assert ids.tolist() == IDS[np.lexsort(np.array([*IDS.T[::-1], CREATED_AT]))].tolist()  # what was taken stays


@pytest.mark.parametrize("closed", [False, True])
def test_a_file_takes_no_items(path: str, closed: bool) -> None:
    opened = negvec.open(path)
    if closed:
        opened.close()
    for change in (
        lambda: opened.insert(1, bytes(32)),
        lambda: opened.insert_events([]),
        lambda: opened.insert_items(np.empty(0, negvec.ITEM)),
        opened.seal,
    ):
        with pytest.raises(negvec.SealError):
            change()


def test_a_stride_that_is_none_is_refused(tmp_path: Path) -> None:
    for stride in (0, -1, 2**31):
        with pytest.raises(ValueError, match="stride"):
            negvec.seal(CREATED_AT, IDS).save(tmp_path / "a", stride=stride)
        with pytest.raises(ValueError, match="stride"):
            negvec.seal(CREATED_AT, IDS, stride=stride)
    assert os.listdir(tmp_path) == []


def test_what_is_no_file_is_not_replaced(tmp_path: Path) -> None:
    storage, kept = negvec.seal(CREATED_AT, IDS), tmp_path / "kept"
    with pytest.raises(IsADirectoryError, match=str(tmp_path)):
        storage.save(tmp_path)
    if hasattr(os, "mkfifo"):
        os.mkfifo(kept)
        with pytest.raises(ValueError, match="device or pipe"):
            storage.save(kept)
        assert os.listdir(tmp_path) == ["kept"]
        assert kept.is_fifo()


@pytest.mark.skipif(os.name != "posix", reason="permissions and links are POSIX's")
def test_the_new_file_has_the_permissions_of_the_old_one_and_a_link_stays_a_link(tmp_path: Path) -> None:
    storage, name, link = negvec.seal(CREATED_AT, IDS), tmp_path / "items", tmp_path / "link"
    storage.save(name)
    name.chmod(0o640)
    link.symlink_to(name)
    negvec.seal([], []).save(link)
    assert (link.is_symlink(), name.stat().st_mode & 0o777, len(negvec.open(name))) == (True, 0o640, 0)


class Broken:
    """A storage of somebody's own, which is not what it should be."""

    def __init__(self, created_at: list[int]) -> None:
        self.created_at = np.array(created_at, np.uint64)

    def __len__(self) -> int:
        return len(self.created_at)

    def items(self, lo: int, hi: int) -> Any:
        items = np.zeros(hi - lo, negvec.ITEM)
        items["created_at"] = self.created_at[lo:hi]
        return items


@pytest.mark.parametrize(
    ("created_at", "told"),
    [
        ([1, 3, 2], "item 2 is out of order"),
        ([1, 2, 2], "item 2 is there twice"),
        ([1, 2**64 - 1], "item 1 has the timestamp"),
        ([*range(65_536), 65_535], "item 65536 is there twice"),
        ([*range(65_537), 5], "item 65537 is out of order"),
    ],
)
def test_a_storage_that_is_not_in_order_is_not_saved(tmp_path: Path, created_at: list[int], told: str) -> None:
    with pytest.raises(negvec.DamagedStorage, match=told):
        save(Broken(created_at), tmp_path / "a")  # type: ignore[arg-type]
    assert os.listdir(tmp_path) == []
    save(Broken(sorted(set(created_at) - {2**64 - 1})), tmp_path / "a")  # type: ignore[arg-type]
    negvec.open(tmp_path / "a").verify()


def test_an_unsealed_storage_is_not_saved(tmp_path: Path) -> None:
    with pytest.raises(negvec.SealError):
        negvec.PrefixSumVector().save(tmp_path / "a")
    assert os.listdir(tmp_path) == []


# ---- what is no file of ours

FOREIGN: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "nothing": (lambda content: b"", "is no sealed storage"),
    "a text": (lambda content: b"created_at,id\n" * 100, "is no sealed storage"),
    "line ends rewritten": (lambda content: content.replace(b"\n", b"\r\n"), "is no sealed storage"),
    "the magic alone": (lambda content: content[:8], "cut off"),
    "half a header": (lambda content: content[:40], "cut off"),
    "a header alone": (lambda content: content[:64], "cut off: 64 of"),
    "a byte short": (lambda content: content[:-1], "cut off"),
    "a byte more": (lambda content: content + b"\0", "too long"),
    "a later version": (lambda content: with_header(content, version=2), "version 2 of the file format"),
    "the other byte order": (lambda content: with_header(content, mark=0x04030201), "byte order"),
    "2^60 items": (lambda content: with_header(content, count=2**60), "contradicts itself"),
    "2^64 - 1 items": (lambda content: with_header(content, count=2**64 - 1), "contradicts itself"),
    "one item more": (lambda content: with_header(content, count=101), "contradicts itself"),
    "no stride": (lambda content: with_header(content, stride=0), "contradicts itself"),
    "another stride": (lambda content: with_header(content, stride=2**63), "contradicts itself"),
    "a huge size": (lambda content: with_header(content, size=2**63), "contradicts itself"),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_what_is_no_sealed_file_is_refused_and_told_apart(path: str, name: str) -> None:
    change, told = FOREIGN[name]
    write(path, change(Path(path).read_bytes()))
    with pytest.raises(negvec.DamagedStorage, match=told) as refused:
        negvec.open(path)
    assert path in str(refused.value)


@pytest.mark.parametrize("at", range(64))
def test_a_changed_byte_of_the_header_is_refused(path: str, at: int) -> None:
    content = bytearray(Path(path).read_bytes())
    content[at] ^= 0x10
    write(path, content)
    with pytest.raises(negvec.DamagedStorage):
        negvec.open(path)


flips = st.lists(st.tuples(st.integers(0, 200), st.integers(1, 255)), max_size=4)


@settings(max_examples=300)
@given(flips, st.integers(-70, 70), st.booleans())
def test_changed_bytes_are_an_error_or_verify_finds_them(
    tmp_path_factory: pytest.TempPathFactory, changed: list[tuple[int, int]], longer: int, signed: bool
) -> None:
    """Also where whoever changed the header made its checksum fit."""
    name = str(tmp_path_factory.getbasetemp() / "fuzzed.negvec")
    negvec.seal(CREATED_AT[:3], IDS[:3]).save(name)
    sound = Path(name).read_bytes()
    content = bytearray(sound)
    for at, mask in changed:
        content[at % len(content)] ^= mask
    if signed:
        content[60:64] = struct.pack("<I", zlib.crc32(content[:60]))
    content = content[:longer] if longer < 0 else content + bytes(longer)
    write(name, content)
    if content == sound:
        negvec.open(name).verify()
        return
    with pytest.raises(negvec.DamagedStorage):
        negvec.open(name).verify()


def huge_numbers() -> st.SearchStrategy[int]:
    return st.one_of(st.integers(0, 130), st.integers(0, 2**64 - 1), st.sampled_from([2**k for k in range(64)]))


@settings(max_examples=300)
@given(huge_numbers(), huge_numbers(), st.one_of(st.none(), huge_numbers()))
def test_a_header_that_claims_what_it_likes_opens_only_if_it_fits(
    tmp_path_factory: pytest.TempPathFactory, n: int, stride: int, size: int | None
) -> None:
    name = str(tmp_path_factory.getbasetemp() / "claims.negvec")
    negvec.seal(CREATED_AT, IDS).save(name)
    content = Path(name).read_bytes()
    fits = stride and size is None and Header(n, stride, (0, 0, 0)).layout.end == len(content)
    size = len(content) if size is None else size
    write(name, with_header(content, count=n, stride=stride, size=size))
    if fits and stride < 2**31:
        negvec.open(name).fingerprint(0, n)
    else:
        with pytest.raises(negvec.DamagedStorage):
            negvec.open(name)


def test_a_folder_or_a_file_that_is_not_there_is_an_os_error(tmp_path: Path) -> None:
    for name in (tmp_path, tmp_path / "none"):
        with pytest.raises(OSError, match=str(tmp_path)):
            negvec.open(name)
    with pytest.raises(OSError, match="none"):
        negvec.seal([], []).save(tmp_path / "none" / "a")


# ---- damage behind the header


@pytest.mark.parametrize("seed", range(60))
def test_verify_finds_any_changed_byte_and_no_answer_leaves_the_file(path: str, seed: int) -> None:
    content = bytearray(Path(path).read_bytes())
    layout, chance = Header(100, 3, (0, 0, 0)).layout, random.Random(seed)
    content[chance.randrange(64, layout.end)] ^= 1 << chance.randrange(8)
    write(path, content)
    opened = negvec.open(path)
    with pytest.raises(negvec.DamagedStorage, match=r"checksum|order|twice|sum|gap|infinity"):
        opened.verify()
    with suppress(negvec.DamagedStorage, negvec.ProtocolError):
        negvec.reconcile(opened, negvec.seal(CREATED_AT[:50], IDS[50:]), 4096)


def test_a_file_of_noise_is_asked_without_harm(tmp_path: Path) -> None:
    """Its header fits, nothing else does: answers are wrong, or refused, and come from inside the file."""
    chance = np.random.default_rng(8)
    layout = Header(3000, 4, (0, 0, 0)).layout
    for attempt in range(20):
        noise = chance.integers(0, 256, layout.end - 64, np.uint8).tobytes()
        write(str(tmp_path / "a"), Header(3000, 4, (1, 2, 3)).to_bytes() + noise)
        opened = negvec.open(tmp_path / "a")
        with pytest.raises(negvec.DamagedStorage):
            opened.verify()
        other = negvec.seal(*pair("scattered", 2000, attempt).ours)
        for sides in ((opened, other), (other, opened), (opened, opened)):
            with suppress(negvec.DamagedStorage, negvec.ProtocolError):
                negvec.reconcile(*sides, 4096)


FAULTS: dict[str, tuple[Callable[[Any, Any, Any], None], str]] = {
    "two items turned": (lambda at, ids, sums: ids.__setitem__(slice(0, 2), ids[1::-1].copy()), "order"),
    "a timestamp that falls": (lambda at, ids, sums: at.__setitem__(50, 1), "order"),
    "an item twice": (
        lambda at, ids, sums: (at.__setitem__(7, at[6]), ids.__setitem__(7, ids[6])),
        "twice",
    ),
    "infinity": (lambda at, ids, sums: at.__setitem__(99, 2**64 - 1), "infinity"),
    "a sum": (lambda at, ids, sums: sums.__setitem__((5, 0), sums[5, 0] + np.uint64(1)), "sum of ids"),
    "the first sum": (lambda at, ids, sums: sums.__setitem__((0, 3), 1), "sum of no items"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_verify_says_what_is_wrong_though_checksums_fit(path: str, name: str) -> None:
    change, told = FAULTS[name]
    content, layout = bytearray(Path(path).read_bytes()), Header(100, 3, (0, 0, 0)).layout
    at = np.frombuffer(content, np.uint64, 100, layout.timestamps)
    ids = np.frombuffer(content, np.uint8, 3200, layout.ids).reshape(-1, 32)
    sums = np.frombuffer(content, np.uint64, 4 * 34, layout.sums).reshape(-1, 4)
    change(at, ids, sums)
    if name not in ("a sum", "the first sum"):
        limbs = negvec.storage.PrefixSumVector(3)
        limbs._keep(at.copy(), ids.copy().view(np.uint64), copy=True)
        sums[:] = limbs._limbs
    checksums = (zlib.crc32(at), zlib.crc32(ids), zlib.crc32(sums))
    del at, ids, sums
    write(path, Header(100, 3, checksums).to_bytes() + bytes(content[64:]))
    with pytest.raises(negvec.DamagedStorage, match=told):
        negvec.open(path).verify()


def test_memory_that_was_written_to_from_outside_fails_verify_too() -> None:
    created_at, ids = np.arange(10, dtype=np.uint64), IDS[:10].copy()
    storage = negvec.seal(created_at, ids, copy=False)
    storage.verify()
    ids[3, 0] ^= 1
    with pytest.raises(negvec.DamagedStorage, match="sum"):
        storage.verify()


# ---- crashes

SAVING = """
import os, sys, negvec, numpy as np
ids = np.random.default_rng(1).integers(0, 256, (20_000, 32), np.uint8)
storages = [negvec.seal(np.arange(n), ids[:n], stride=s) for n, s in ((10_000, 1), (20_000, 3))]
storages[0].save(sys.argv[1])  # compiles what there is to compile
for line in sys.stdin:
    child = os.fork()
    if child == 0:
        while True:
            for storage in storages:
                storage.save(sys.argv[1])
    print(child, flush=True)
    os.waitpid(child, 0)
    print("gone", flush=True)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills processes in mid-write")
def test_a_process_killed_in_mid_write_leaves_the_old_file_or_the_new_one(tmp_path: Path) -> None:
    name, chance, seen = tmp_path / "items.negvec", random.Random(4), []
    command = [sys.executable, "-c", SAVING, str(name)]
    one_thread = {**os.environ, "NEGVEC_THREADS": "1"}  # threads do not live on in a fork
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=one_thread) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for _ in range(40):
            process.stdin.write(b"\n")
            process.stdin.flush()
            child = int(process.stdout.readline())
            time.sleep(chance.uniform(0.0, 0.03))
            os.kill(child, signal.SIGKILL)
            assert process.stdout.readline() == b"gone\n"
            with negvec.open(name) as opened:
                opened.verify()
                seen.append(len(opened))
    assert set(seen) == {10_000, 20_000}
    assert len(os.listdir(tmp_path)) > 1, "no process was killed while it wrote"


def test_an_error_while_saving_leaves_the_old_file_and_nothing_beside_it(path: str) -> None:
    def broken_off(done: int, count: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        negvec.seal(CREATED_AT[:50], IDS[:50]).save(path, progress=broken_off)
    assert os.listdir(os.path.dirname(path)) == [os.path.basename(path)]
    assert len(negvec.open(path)) == 100
