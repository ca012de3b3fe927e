"""Syncs over a websocket between two processes of this machine, by phase: `python benchmarks/relays.py` (not asv's).

A relay process serves one side of a workload, and this process is a client with the other side:

    reconcile    from connecting to knowing the difference, for the filter {} and for {"kinds":[1]}
    identical    the same with equal sets
    repeat       reconcile again, on the connection that is there
    transfer     `negvec sync` of signed events, from connecting until all are stored, checked

The events of the first three phases are made up: their ids are those of the workload, and nothing checks them. With
--relay URL another relay, which has to hold the same set, is asked instead; --make FILE writes what ours would serve.
Two URLs of any relays are synced with one another by way of a store: reconcile, transfer, identical and repeat, with
their own events.
"""

from __future__ import annotations

import argparse
import asyncio
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from websockets.asyncio.client import ClientConnection

import negvec
from negvec.client import sync
from negvec.client.address import connecting
from negvec.nip77 import ClientSession
from negvec.relay.store import EventStore, key_of
from negvec.workloads import SHAPES, Side, pair


def make_store(path: Path, side: Side) -> None:
    """An event store whose events have the ids and times of a side, and nothing else that is true."""
    EventStore(path).close()
    connection = sqlite3.connect(path)
    rows = zip(side.created_at.tolist(), (row.tobytes() for row in side.ids), strict=True)
    connection.executemany(
        "INSERT INTO events(key, id, kind, pubkey, json) VALUES(?, ?, 1, zeroblob(32), x'7b7d')",
        ((key_of(at, id), id) for at, id in rows),
    )
    connection.commit()
    connection.close()


class RelayProcess:
    """A relay of ours in a process of its own."""

    def __init__(self, store: Path) -> None:
        command = [sys.executable, "-m", "negvec", "relay", "--store", str(store), "--port", "0"]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.url = self._process.stdout.readline().split()[0]

    def __enter__(self) -> RelayProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait()


async def session(socket: ClientConnection, ours: negvec.Storage, asked: dict[str, Any], name: str) -> ClientSession:
    own = ClientSession(ours, name, asked)
    await socket.send(own.open(), text=True)
    while not own.over:
        for frame in own.receive(await socket.recv(decode=False)):
            await socket.send(frame, text=True)
    if own.refusal is not None:
        raise SystemExit(f"refused: {own.refusal.reason}")
    return own


async def measure(
    url: str, ours: negvec.Storage, asked: dict[str, Any], runs: int
) -> tuple[float, float, ClientSession]:
    """Median seconds from connecting to done, and of a repetition on the open connection."""
    first, again = [], []
    for _ in range(runs + 1):
        started = time.perf_counter()
        async with connecting(url) as socket:
            await session(socket, ours, asked, "first")
            first.append(time.perf_counter() - started)
            started = time.perf_counter()
            done = await session(socket, ours, asked, "again")
            again.append(time.perf_counter() - started)
    return statistics.median(first[1:]), statistics.median(again[1:]), done


def told(phase: str, seconds: float, done: ClientSession) -> str:
    size = f"{done.bytes_up + done.bytes_down:,}"
    return f"{phase:<34}{1000 * seconds:>10.1f} ms{done.rounds:>8} rounds{size:>14} bytes before hex"


def transfer(count: int) -> str:
    """Signed events from one relay process into a store of a client process."""
    sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
    from relay import signed

    from negvec.relay import events

    with tempfile.TemporaryDirectory() as folder:
        store = EventStore(Path(folder) / "theirs.db")
        store.put([events.parse(signed(k)) for k in range(count)])
        store.close()
        with RelayProcess(Path(folder) / "theirs.db") as relay:
            ours = str(Path(folder) / "ours.db")
            command = [sys.executable, "-m", "negvec", "sync", relay.url, "--store", ours, "--json"]
            done = subprocess.run(command, capture_output=True, check=True)
    import orjson

    report = orjson.loads(done.stdout)
    assert report["downloaded"] == count
    return f"{'transfer':<34}{1000 * report['seconds']:>10.1f} ms, {count / report['seconds']:,.0f} events a second"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=1_000_000)
    parser.add_argument("--shape", choices=SHAPES, default="contiguous")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--events", type=int, default=5000, help="signed ones, of the transfer")
    parser.add_argument("--relay", metavar="URL", help="ask this relay instead")
    parser.add_argument("--make", metavar="FILE", type=Path, help="write the store, and stop")
    parser.add_argument("urls", nargs="*", metavar="URL", help="two relays, to sync with one another")
    asked = parser.parse_args()
    if asked.urls:
        asyncio.run(sync_relays(*asked.urls))
        return

    sides = pair(asked.shape, asked.n)
    if asked.make:
        make_store(asked.make, sides.theirs)
        return
    ours, theirs = negvec.seal(*sides.ours), negvec.seal(*sides.theirs)
    print(f"{asked.n:,} {asked.shape}: {len(ours):,} items here, {len(theirs):,} there; medians of {asked.runs}")
    with tempfile.TemporaryDirectory() as folder:
        if asked.relay is None:
            make_store(Path(folder) / "relay.db", sides.theirs)
            with RelayProcess(Path(folder) / "relay.db") as relay:
                phases(relay.url, ours, theirs, asked.runs)
        else:
            phases(asked.relay, ours, theirs, asked.runs)
    if asked.relay is None:
        print(transfer(asked.events))


async def sync_relays(first: str, second: str) -> None:
    """Bring two relays to the same set by way of a store of this process."""
    with tempfile.TemporaryDirectory() as folder:
        store = EventStore(Path(folder) / "between.db")
        try:
            for url, phase, direction in (
                (first, "transfer first to store", "down"),
                (second, "reconcile second", "none"),
                (second, "transfer both ways", "both"),
                (second, "identical", "none"),
                (second, "repeat", "none"),
                (first, "transfer second to first", "up"),
                (first, "identical", "none"),
            ):
                report = await sync(url, store, direction=direction)
                print(
                    f"{phase:<26}{1000 * report.seconds:>10.1f} ms{report.rounds:>6} rounds"
                    f"{report.bytes_up + report.bytes_down:>14,} bytes  have {len(report.have):,}, "
                    f"need {len(report.need):,}, {report.downloaded + report.uploaded:,} moved",
                    flush=True,
                )
        finally:
            store.close()


def phases(url: str, ours: negvec.Storage, theirs: negvec.Storage, runs: int) -> None:
    for label, wanted in (("{}", {}), ('{"kinds":[1]}', {"kinds": [1]})):
        for phase, own in (("reconcile", ours), ("identical", theirs)):
            first, again, done = asyncio.run(measure(url, own, wanted, runs))
            print(told(f"{phase} {label}", first, done))
            print(told("    repeat", again, done), flush=True)
    have, need = (len(np.setdiff1d(a.ids.view("V32"), b.ids.view("V32"))) for a, b in ((ours, theirs), (theirs, ours)))
    print(f"have {have:,}, need {need:,}")


if __name__ == "__main__":
    main()
