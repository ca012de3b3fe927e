"""Coverage-guided fuzzing of what a peer may send: `python fuzz/fuzz_message.py fuzz/corpus` (needs the extra `fuzz`).

Whatever bytes arrive, negvec answers as the plain model of the tests does, or refuses them with `ProtocolError` where
the model does; its answer is a message that a peer reads; and no frame is larger than its limit. Kernels are machine
code, in which atheris sees no branches: it steers by those of the model and of `negvec.protocol`.

The first byte of an input chooses who hears the rest: bit 0 the role, bit 1 a limit, the other bits the set.
Arguments go to libFuzzer; `-max_total_time=300 -max_len=8192` is a good start. A crash is written to a file, which
goes into the corpus together with the fix: `tests/test_fuzz.py` runs every file there.
"""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

ATHERIS = None
if __name__ == "__main__":
    import atheris as ATHERIS

with ATHERIS.instrument_imports(include=["model", "negvec.protocol"]) if ATHERIS else contextlib.nullcontext():
    from hearing import Listener
    from model import Item

    from negvec.protocol.codec import decode
    from negvec.protocol.round import as_bytes

LIMIT = 4096


def items(count: int, per_second: int, shared: int) -> list[Item]:
    """`count` items, so many to a second, with so many bytes of every id in common."""
    ids = [bytes(shared) + ((i + 1) * 0x9E3779B97F4A7C15 % 2**64).to_bytes(8, "big") * 4 for i in range(count)]
    return [(1 + i // per_second, an_id[:32]) for i, an_id in enumerate(ids)]


SETS = [
    items(0, 1, 0),
    items(1, 1, 0),
    items(31, 1, 0),
    items(40, 40, 0),  # one timestamp
    items(40, 3, 24),
    [(2**64 - 2 - at, an_id) for at, an_id in items(64, 2, 0)],
    items(600, 2, 0),
]
LISTENERS = [(Listener(held), Listener(held, LIMIT)) for held in SETS]


def check(data: bytes) -> None:
    """The fuzz target: raises where a rule is broken."""
    if not data:
        return
    choice, message = data[0], data[1:]
    initiates, limited = bool(choice & 1), bool(choice & 2)
    listener = LISTENERS[(choice >> 2) % len(LISTENERS)][limited]
    if not listener.hear(message, initiates):
        return
    answer = listener.negentropy(initiates).reconcile(message).message
    if answer is not None:
        assert not limited or len(answer) <= LIMIT
        decode(as_bytes(answer))
        for peer in (LISTENERS[3][0], listener):
            assert peer.hear(answer, not initiates), "a peer can't read the answer"


if __name__ == "__main__":
    ATHERIS.Setup(sys.argv, check)
    ATHERIS.Fuzz()
