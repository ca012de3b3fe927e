"""The line-based adapter of the upstream conformance suite: `python -m negvec.harness`.

Reads `item,<created_at>,<id hex>`, `seal`, `initiate` and `msg,<hex>`, a command a line, from standard input. Writes
`have,<hex>` and `need,<hex>`, an id a line, then `msg,<hex>`, or `done` when the initiator is. The environment
variable FRAMESIZELIMIT is the frame size limit in bytes.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator

from negvec.protocol import Negentropy
from negvec.storage import PrefixSumVector


def serve(lines: Iterable[str], frame_size_limit: int) -> Iterator[str]:
    """Answer command lines with the lines to write.

    Raises
    ------
    ValueError
        Not a command, or a command before `seal` that needs it.
    """
    storage = PrefixSumVector()
    ne: Negentropy | None = None
    for line in lines:
        command, *fields = line.strip().split(",")
        if command == "item" and len(fields) == 2:
            storage.insert(int(fields[0]), fields[1])
        elif command == "seal":
            storage.seal()
            ne = Negentropy(storage, frame_size_limit)
        elif command == "initiate" and ne is not None:
            yield f"msg,{ne.initiate().hex()}"
        elif command == "msg" and len(fields) == 1 and ne is not None:
            step = ne.reconcile(bytes.fromhex(fields[0]))
            yield from (f"have,{item_id.tobytes().hex()}" for item_id in step.have)
            yield from (f"need,{item_id.tobytes().hex()}" for item_id in step.need)
            yield "done" if step.message is None else f"msg,{step.message.hex()}"
        elif command:
            raise ValueError(f"no command, or not now: {line.strip()[:80]!r}")


def main() -> None:
    """Serve standard input, flushing each line."""
    for line in serve(sys.stdin, int(os.environ.get("FRAMESIZELIMIT") or 0)):
        print(line, flush=True)


if __name__ == "__main__":
    main()
