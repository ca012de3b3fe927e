"""Files that are open: what happens when they are closed, cut off or hardly to be read, and what stays in memory."""

from __future__ import annotations

import copy
import multiprocessing
import os
import pickle
import random
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import negvec
from negvec.storage import MappedVector
from negvec.workloads import pair

N = 5000
SIDE = pair("identical", N * 5 // 4, 3).ours

ASK: dict[str, Callable[[Any], Any]] = {
    "len": len,
    "created_at": lambda storage: storage.created_at,
    "ids": lambda storage: storage.ids,
    "items": lambda storage: storage.items(0, N),
    "id_lists": lambda storage: storage.id_lists([0], [N]),
    "lower_bounds": lambda storage: storage.lower_bounds(*SIDE),
    "minimal_bounds": lambda storage: storage.minimal_bounds(np.arange(1, N)),
    "fingerprints": lambda storage: storage.fingerprints(np.arange(N), np.full(N, N)),
    "fingerprint": lambda storage: storage.fingerprint(0, N),
    "Negentropy": negvec.Negentropy,
    "window": lambda storage: storage.window(0, 1),
    "verify": lambda storage: storage.verify(),
    "save": lambda storage: storage.save(storage.name + ".again"),
}
every_question = pytest.mark.parametrize("ask", ASK.values(), ids=ASK.keys())


@pytest.fixture(params=[1, 16], ids=["stride 1", "stride 16"])
def path(tmp_path: Path, request: pytest.FixtureRequest) -> str:
    name = str(tmp_path / "items.negvec")
    negvec.seal(*SIDE).save(name, stride=request.param)
    return name


def test_a_mapped_vector_is_what_its_file_was_made_of(path: str) -> None:
    opened = negvec.open(path)
    assert isinstance(opened, negvec.PrefixSumVector)
    assert repr(opened) == f"<MappedVector: {N} items, {path!r}>"
    opened.close()
    assert repr(opened) == f"<MappedVector: closed, {path!r}>"


def answers(storage: negvec.PrefixSumVector) -> tuple[int, bytes]:
    return len(storage), storage.fingerprint(0, len(storage))


@pytest.mark.parametrize("start", ["spawn", "fork"])
def test_other_processes_map_the_same_file(path: str, start: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    if start not in multiprocessing.get_all_start_methods():
        pytest.skip(f"this system can't {start}")
    monkeypatch.chdir(os.path.dirname(path))
    opened = negvec.open(os.path.basename(path), resident=1)
    monkeypatch.chdir("/")
    with ProcessPoolExecutor(1, multiprocessing.get_context(start)) as pool:
        assert pool.submit(answers, opened).result() == answers(negvec.seal(*SIDE))
    copied = copy.copy(opened)
    opened.close()
    copied.verify()
    with pytest.raises(negvec.SealError, match="closed"):
        pickle.dumps(opened)


# ---- closed


@every_question
def test_a_closed_file_answers_nothing(path: str, ask: Callable[[Any], Any]) -> None:
    with negvec.open(path) as opened:
        ask(opened)
    opened.close()
    with pytest.raises(negvec.SealError, match="closed"):
        ask(opened)


class ClosedMeanwhile(MappedVector):
    """As if another thread closed the file just when a question has looked that it is open."""

    @property
    def created_at(self) -> Any:
        created_at = super().created_at
        self.close()
        return created_at


@every_question
@pytest.mark.parametrize("resident", [None, 1])
def test_a_file_closed_while_it_is_asked_is_closed_and_no_crash(
    path: str, ask: Callable[[Any], Any], resident: int | None
) -> None:
    opened = negvec.open(path, resident=resident)
    opened.__class__ = ClosedMeanwhile
    with suppress(negvec.SealError):
        ask(opened)
    with pytest.raises(negvec.SealError, match="closed"):
        opened.fingerprint(0, 1)


def test_threads_that_ask_while_a_file_is_closed_get_answers_or_a_seal_error(path: str) -> None:
    expected = negvec.seal(*SIDE).fingerprints(np.arange(N), np.full(N, N)).tobytes()

    def ask(opened: MappedVector) -> set[str]:
        answers = set()
        while True:
            try:
                answers.add("right" if ASK["fingerprints"](opened).tobytes() == expected else "wrong")
                opened.lower_bounds(*SIDE)
            except negvec.SealError:
                return answers

    with ThreadPoolExecutor(3) as pool:
        for _ in range(10):
            opened = negvec.open(path)
            asked = [pool.submit(ask, opened) for _ in range(3)]
            ASK["fingerprints"](opened)
            opened.close()
            assert set().union(*(answers.result() for answers in asked)) <= {"right"}


def test_what_was_taken_stays_when_the_file_is_closed_and_gone(path: str) -> None:
    with negvec.open(path) as opened:
        ids, listed, window = opened.ids, opened.id_lists([7], [9]).ids, opened.window(0, None)
    os.unlink(path)
    assert ids.tobytes() == negvec.seal(*SIDE).ids.tobytes() == listed.tobytes()
    with pytest.raises(negvec.SealError):
        window.fingerprint(0, 1)


@pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="counts open files as Linux shows them")
def test_files_that_nobody_closes_are_closed_with_their_last_reference(path: str) -> None:
    def still_open() -> int:
        links = [f"/proc/self/fd/{name}" for name in os.listdir("/proc/self/fd")]
        return sum(os.path.islink(link) and os.readlink(link) == path for link in links)

    storages = [negvec.open(path) for _ in range(5)]
    assert still_open() >= 5
    del storages
    assert still_open() == 0
    with open(path, "r+b") as stream:
        stream.write(b"?")
    for _ in range(3):
        with pytest.raises(negvec.DamagedStorage):
            negvec.open(path)
    assert still_open() == 0


# ---- not the file that it was


@every_question
@pytest.mark.parametrize("size", [0, 64, 100_000])
def test_a_file_cut_off_while_it_is_open_is_an_error_and_not_the_end_of_the_process(
    path: str, ask: Callable[[Any], Any], size: int
) -> None:
    opened = negvec.open(path)
    os.truncate(path, size)
    with pytest.raises(negvec.DamagedStorage, match="cut off since it was opened"):
        ask(opened)
    assert not os.path.exists(path + ".again")


def test_whoever_has_a_file_open_keeps_it_when_it_is_replaced(path: str) -> None:
    opened = negvec.open(path)
    negvec.seal([1], [bytes(32)]).save(path)
    opened.verify()
    assert (len(opened), len(negvec.open(path))) == (N, 1)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="has no named pipes")
def test_a_pipe_or_device_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name in (tmp_path / "pipe", "/dev/zero", "/dev/null"):
        with pytest.raises(negvec.DamagedStorage, match="device or pipe"):
            negvec.open(name)


# ---- what becomes resident


@pytest.mark.skipif(not os.path.exists("/proc/self/smaps"), reason="asks Linux what is resident")
@pytest.mark.parametrize("stride", [1, 16])
def test_a_reconciliation_leaves_little_of_two_files_resident(tmp_path: Path, stride: int) -> None:
    """Although all of both is in the system's cache, and differences are all over them."""
    side, chance = pair("identical", 1_250_000, 1).ours, random.Random(3)
    lacking = [sorted(chance.sample(range(1_000_000), 60)) for _ in range(2)]
    names = [tmp_path / "a", tmp_path / "b"]
    for name, rows in zip(names, lacking, strict=True):
        negvec.seal(np.delete(side.created_at, rows), np.delete(side.ids, rows, axis=0)).save(name, stride=stride)
    resident_at: list[int] = []
    ours, theirs = (negvec.open(name, resident=8 << 20) for name in names)

    def watch(stage: str) -> None:
        resident_at.append(resident(tmp_path))

    found = negvec.protocol.drive(*(negvec.Negentropy(storage, watch=watch) for storage in (ours, theirs)))
    assert [len(found.have), len(found.need)] == [60, 60]
    ours.verify(lambda *_: watch("verify"))
    ours.save(tmp_path / "c", progress=lambda *_: watch("save"))
    assert 0 < max(resident_at) < 0.4 * sum(os.path.getsize(name) for name in names)
    everything = [negvec.open(name, resident=2**40) for name in names]
    assert negvec.reconcile(*everything).have.tobytes() == found.have.tobytes()
    assert resident(tmp_path) > max(resident_at), "whoever gives it room keeps what was touched"


def resident(folder: Path) -> int:
    """Bytes of the files in a folder that are in this process's memory."""
    total, counts = 0, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        fields = line.split()
        if "-" in fields[0] and not fields[0].endswith(":"):
            counts = str(folder) in line
        elif counts and fields[0] == "Rss:":
            total += 1024 * int(fields[1])
    return total
