"""What the C++ reference did, as data, and the rule by which the large pairs are built.

Ids and messages stand as hex in the files; `created_at` may exceed 2^53. Beside the loaders stand the rules
that some files give in place of items; `vectors.conversation` drives a run.
"""

from __future__ import annotations

import gzip
import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Record = dict[str, Any]
Side = tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint8]]  # created_at (n,), ids (n, 32)

FIRST_CREATED_AT = 1_704_067_200  # 2024-01-01
ITEMS_PER_SECOND = 3


def known_answers() -> Record:
    """Varints, fingerprints, single replies, inputs that must be refused, first messages."""
    answers: Record = _load("known_answers.json")
    return answers


def transcripts() -> list[Record]:
    """36 small reconciliations, with every item and every message."""
    runs: list[Record] = _load("transcripts.json.gz")
    return runs


def shapes() -> list[Record]:
    """44 large reconciliations of what `shape_items` builds, with the length and SHA-256 of every message."""
    runs: list[Record] = _load("shapes.json.gz")
    return runs


def reference_loses() -> list[Record]:
    """Reconciliations, recorded as transcripts are, that the reference ends with needs missing."""
    runs: list[Record] = _load("reference_loses.json.gz")
    return runs


def nip77(relay: str) -> Record:
    """What a relay, "strfry" or "rust", answers to some thirty frames, each on a fresh connection, by name."""
    cases: Record = _load(f"nip77_{relay}.json")["cases"]
    return cases


def _load(name: str) -> Any:
    data = (Path(__file__).parent / name).read_bytes()
    return json.loads(gzip.decompress(data) if name.endswith(".gz") else data)


def items(rows: list[tuple[int, str]]) -> list[tuple[int, bytes]]:
    """The items of a transcript: `(created_at, id)`, in Python's own integers and bytes."""
    return [(created_at, bytes.fromhex(id)) for created_at, id in rows]


def fingerprinted_ids(answer: Record) -> list[bytes]:
    """The ids of a known fingerprint: as listed, or 1..128 as 64 hex digits each."""
    if "ids" in answer:
        return [bytes.fromhex(id) for id in answer["ids"]]
    return [i.to_bytes(32, "big") for i in range(1, 129)]


def first_message_items(answer: Record) -> list[tuple[int, bytes]]:
    """The items of a known first message: created_at 1000 + i, and i as 64 hex digits."""
    return [(1000 + i, i.to_bytes(32, "big")) for i in range(answer["n"])]


def arrays(items: list[tuple[int, bytes]]) -> Side:
    """The same items as columns."""
    created_at = np.array([created_at for created_at, _ in items], np.uint64)
    ids = np.frombuffer(b"".join(id for _, id in items), np.uint8).reshape(-1, 32)
    return created_at, ids


def rows(side: Side) -> list[tuple[int, bytes]]:
    """The items of two columns, one by one: the inverse of `arrays`."""
    created_at, ids = side
    joined = ids.tobytes()
    return [(at, joined[32 * i : 32 * i + 32]) for i, at in enumerate(created_at.tolist())]


def digest(ids: list[bytes]) -> str:
    """SHA-256 of the ids as a set, sorted and joined."""
    return sha256(b"".join(sorted(set(ids)))).hexdigest()


def shape_items(shape: str, n: int, salt: int) -> tuple[Side, Side]:
    """Build both sides of a shape, the initiator's first, by the rule of design.md.

    Of `n` items in all, each side lacks those that the shape takes from it.
    """
    i = np.arange(n, dtype=np.uint64)
    if shape == "contiguous":
        initiator_holds, responder_holds = 5 * i < 4 * n, 5 * i >= n
    elif shape == "identical":
        initiator_holds = responder_holds = 5 * i < 4 * n
    elif shape == "scattered":
        initiator_holds, responder_holds = (_mix(salt + 7 * i + k) % 20 != 0 for k in (2, 1))
    elif shape == "clustered":
        group = _mix(salt + i // 50) % 100
        initiator_holds, responder_holds = group != 0, group != 1
    else:
        raise ValueError(f"no such shape: {shape}")

    created_at = FIRST_CREATED_AT + i // ITEMS_PER_SECOND
    words = _mix(salt + 4 * i[:, None] + np.arange(4, dtype=np.uint64))
    ids = words.astype("<u8").view(np.uint8)
    initiator = created_at[initiator_holds], ids[initiator_holds]
    return initiator, (created_at[responder_holds], ids[responder_holds])


def _mix(x: npt.NDArray[Any]) -> npt.NDArray[np.uint64]:
    """The output function of splitmix64, of each x as the generator's state before its step."""
    z = x + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: npt.NDArray[np.uint64] = z ^ (z >> np.uint64(31))
    return mixed
