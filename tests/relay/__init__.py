"""Signed events, relays in processes of their own, and clients of them."""

from __future__ import annotations

import hashlib
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import coincurve
import orjson

from negvec.relay import EventStore
from negvec.relay.filters import Filter
from negvec.relay.store import key_of

Tags = list[list[str]]


@lru_cache
def key(author: int) -> coincurve.PrivateKey:
    return coincurve.PrivateKey((author + 1).to_bytes(32, "big"))


@lru_cache
def pubkey(author: int) -> str:
    return key(author).public_key.format()[1:].hex()


def signed(
    number: int = 0,
    kind: int = 1,
    tags: Tags | None = None,
    *,
    author: int = 0,
    at: int | None = None,
    content: str = "",
) -> dict[str, Any]:
    """An event, hashed and signed; of another number, another event."""
    created_at = 1_700_000_000 + number if at is None else at
    tags, content = tags or [], content or f"number {number}"
    said = orjson.dumps([0, pubkey(author), created_at, kind, tags, content])
    digest = hashlib.sha256(said).digest()
    return {
        "id": digest.hex(),
        "pubkey": pubkey(author),
        "created_at": created_at,
        "kind": kind,
        "tags": tags,
        "content": content,
        "sig": key(author).sign_schnorr(digest, b"\0" * 32).hex(),
    }


def fill_with_made_up(path: Path, count: int) -> None:
    """Many events that are not signed, of which nothing but the id and the time is true."""
    EventStore(path).close()
    with closing(sqlite3.connect(path)) as connection:
        connection.executemany(
            "INSERT INTO events(key, id, kind, pubkey, json) VALUES(?, ?, 1, zeroblob(32), x'7b7d')",
            ((key_of(1_700_000_000 + k, id), id) for k in range(count) if (id := k.to_bytes(32, "little"))),
        )
        connection.commit()


def stored_json(store: EventStore, asked: Filter) -> list[bytes]:
    """All stored events that match, the newest first."""
    keys, found = store.keys(asked, 10**6), []
    while keys:
        page, count = store.page(keys, 10**6)
        found += page
        del keys[:count]
    return found


@contextmanager
def relay_process(store: Path, *options: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A relay in a process of its own: its URL, and the process; killed in the end if it still runs."""
    command = [sys.executable, "-m", "negvec", "relay", "--store", str(store), "--port", "0", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = process.stdout.readline().split()[0]
        try:
            yield url, process
        finally:
            process.kill()
