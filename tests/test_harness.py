"""`python -m negvec.harness` speaks the line protocol of the upstream conformance suite, as a process of its own."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest
from model import Item, Model
from vectors.conversation import converse

from negvec.harness import serve

TIMEOUT = 60  # seconds: the first start on a machine compiles


class Harness:
    """A harness process with its items sealed, to speak with one line at a time."""

    def __init__(self, items: list[Item] | None, frame_size_limit: str | None) -> None:
        environment = {key: value for key, value in os.environ.items() if key != "FRAMESIZELIMIT"}
        if frame_size_limit is not None:
            environment["FRAMESIZELIMIT"] = frame_size_limit
        self.process = subprocess.Popen(
            [sys.executable, "-m", "negvec.harness"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
        )
        if items is not None:
            self.write(*(f"item,{created_at},{item_id.hex()}" for created_at, item_id in items), "seal")

    def write(self, *lines: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("".join(f"{line}\n" for line in lines).encode())
        self.process.stdin.flush()

    def read(self) -> str:
        """The next line, which must come although the harness's input stays open."""
        assert self.process.stdout is not None
        line = b""
        while not line.endswith(b"\n"):
            ready, _, _ = select.select([self.process.stdout], [], [], TIMEOUT)
            assert ready, f"the harness keeps the rest of a line to itself: {line!r}"
            byte = os.read(self.process.stdout.fileno(), 1)
            assert byte, f"the harness ended: {self.stop()}"
            line += byte
        return line.decode().removesuffix("\n")

    def initiate(self) -> bytes:
        self.write("initiate")
        command, message = self.read().split(",")
        assert command == "msg"
        return bytes.fromhex(message)

    def reconcile(self, message: bytes) -> tuple[bytes | None, list[bytes], list[bytes]]:
        self.write(f"msg,{message.hex()}")
        found: dict[str, list[bytes]] = {"have": [], "need": []}
        while True:
            command, *rest = self.read().split(",")
            if command not in found:
                break
            found[command].append(bytes.fromhex(*rest))
        if command == "done":
            assert rest == []
            return None, found["have"], found["need"]
        assert command == "msg"
        return bytes.fromhex(*rest), found["have"], found["need"]

    def stop(self) -> tuple[int, str]:
        """Close its input; how it ended, and what it had to complain of."""
        _, complaint = self.process.communicate(timeout=TIMEOUT)
        return self.process.returncode, complaint.decode()


Start = Callable[..., Harness]


@pytest.fixture
def start() -> Iterator[Start]:
    running: list[Harness] = []

    def start(items: list[Item] | None = None, frame_size_limit: str | None = None) -> Harness:
        running.append(Harness(items, frame_size_limit))
        return running[-1]

    yield start
    for harness in running:
        if harness.process.poll() is None:
            harness.process.kill()
            harness.process.communicate()


def items(count: int, first: int = 0) -> list[Item]:
    return [
        (2**53 + i // 3, (i * 0x9E3779B97F4A7C15 % 2**64).to_bytes(8, "big") * 4) for i in range(first, first + count)
    ]


@pytest.mark.parametrize("frame_size_limit", [None, "", "0", "4096"], ids=["unset", "empty", "none", "4096"])
def test_two_harnesses_reconcile_as_the_model_does(start: Start, frame_size_limit: str | None) -> None:
    ours, theirs = items(900), items(900, first=300)
    talk = converse(start(ours, frame_size_limit), start(theirs, frame_size_limit), most_rounds=100)
    limit = int(frame_size_limit or 0)
    assert talk.messages == converse(Model(ours, limit, lossy=False), Model(theirs, limit, lossy=False)).messages
    assert limit == 0 or 3800 < max(map(len, talk.messages)) <= limit
    assert sorted(talk.have) == sorted(item_id for _, item_id in items(300))
    assert sorted(talk.need) == sorted(item_id for _, item_id in items(300, first=900))


def test_a_harness_ends_with_its_input(start: Start) -> None:
    harness = start([])
    assert harness.initiate() == bytes.fromhex("6100000200")
    assert harness.reconcile(b"\x61") == (None, [], [])
    assert harness.stop() == (0, "")


def test_a_harness_answers_many_messages_as_responder(start: Start) -> None:
    held = items(40)
    harness, model = start(held), Model(held)
    for asked in (b"\x62", b"\x61", Model(held[:20]).initiate(), Model([]).initiate(), Model(items(100)).initiate()):
        assert harness.reconcile(asked) == model.reconcile(asked)


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("initiate", "initiate"),  # before seal
        ("msg,61", "msg,61"),
        ("item,1", "item,1"),
        ("bogus", "bogus"),
        ("item,1,zz", "64 hex digits"),
        ("item,18446744073709551615," + 64 * "0", "infinity"),
        ("item,-1," + 64 * "0", "negative"),
        ("item,1.5," + 64 * "0", "1.5"),
    ],
)
def test_what_is_no_command_now_is_refused(line: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        list(serve([line], frame_size_limit=0))


def test_a_harness_ends_with_a_complaint(start: Start) -> None:
    harness = start([(1, bytes(32))], "100")
    status, said = harness.stop()
    assert status == 1
    assert "not 100" in said.splitlines()[-1]
