"""The fuzz target holds for every input of its corpus and for some mutations of them: fuzzing without atheris."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest

FUZZ = Path(__file__).parent.parent / "fuzz"
sys.path.insert(0, str(FUZZ))

import fuzz_message  # noqa: E402

CORPUS = sorted(path for path in (FUZZ / "corpus").iterdir() if path.is_file())
BOLD = [0x00, 0x01, 0x02, 0x03, 0x20, 0x21, 0x61, 0x7F, 0x80, 0x81, 0xFF]  # bytes at which something changes


def test_there_is_a_corpus() -> None:
    assert len(CORPUS) >= 20
    assert max(path.stat().st_size for path in CORPUS) < 8192


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.name)
def test_the_target_holds_for_the_corpus(path: Path) -> None:
    fuzz_message.check(path.read_bytes())


@pytest.mark.parametrize("seed", range(10))
def test_the_target_holds_for_mutations_of_the_corpus(seed: int) -> None:
    chance = random.Random(seed)
    inputs = [path.read_bytes() for path in CORPUS]
    for _ in range(300):
        data = bytearray(chance.choice(inputs))
        for _ in range(chance.choice([1, 1, 2, 4, 8])):
            at, width = chance.randrange(len(data) + 1), chance.choice([1, 1, 2, 4, 16, 32, 64])
            kind = chance.randrange(5)
            if kind == 0:
                data[at : at + 1] = bytes([chance.choice(BOLD)])
            elif kind == 1:
                data[at : at + 1] = chance.randbytes(1)
            elif kind == 2:
                del data[at : at + width]
            elif kind == 3:
                start = chance.randrange(len(data) + 1)
                data[at:at] = data[start : start + width]
            else:
                other = chance.choice(inputs)
                data[at:] = other[chance.randrange(len(other) + 1) :]
        fuzz_message.check(bytes(data[:8192]))
