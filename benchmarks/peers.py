"""negvec beside the peers that a registry gives, on the same sets, in the same minute: `python benchmarks/peers.py`.

Every line gives the median time of negvec and of the peer over the same work, and how many times longer the peer
takes. What can be timed is what their interfaces let through:

nostr-tools (npm, JavaScript)
    Its `nip77` module has a storage and an initiator; its reconcile never answers with ids, so it can't be a
    responder. The initiator is timed inside node, and of negvec inside Python, without the waits for answers; both
    talk to negvec's responder. Messages are hex in nostr-tools and bytes in negvec, since that is what they take.

nostr-sdk (PyPI, Rust)
    Its Python package shows neither storage nor Negentropy, only a client's `sync` and a `LocalRelay`, which speak
    through a websocket. So what is timed is their answers over a websocket of this machine, from a message sent to its
    answer received, JSON and hex included; and negvec in their place, in the same websocket and with the same frame
    size limits. Much of negvec's time is then Python's `json` and `websockets` around it. Not counted is how the peers
    come by their items: the time to the first message of the client, and to the first answer of the relay.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import importlib.util
import json
import multiprocessing
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

import negvec
from negvec.workloads import RECORDED, Pair, Side, pair

RELAY_LIMIT = 500_000  # bytes; strfry's
CAREFUL_LIMIT = 60_000  # bytes; of nostr-tools by default, and of nostr-sdk's client and relay always

PYTHON_PEERS = ("nostr-sdk", "websockets")
PEERS_SCRIPT = Path(__file__).with_suffix(".mjs")


class Missing(Exception):
    """A peer is not installed."""


class Refused(Exception):
    """A relay answers with an error; some have a cap on the number of items."""


class Watch:
    """Milliseconds of one side of one run, without the waits for the other side."""

    def __init__(self) -> None:
        self.spent = 0.0

    def __enter__(self) -> None:
        self._begin = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self.spent += 1000 * (time.perf_counter() - self._begin)


def median(times: list[float]) -> float:
    return statistics.median(times)


def row(work: str, own: float, peer: float) -> str:
    return f"  {work:<44}{own:>12.2f}{peer:>12.2f}{peer / own:>10.1f}"


def heading(peer: str) -> str:
    return f"\n{peer:<46}{'negvec ms':>12}{'peer ms':>12}{'ratio':>10}"


def assert_found(found: tuple[int, int], sets: Pair) -> None:
    """Compare how many have and need there were with the truth."""
    ours, theirs = (side.ids.view("<u8")[:, 0] for side in sets)
    truth = len(np.setdiff1d(ours, theirs)), len(np.setdiff1d(theirs, ours))
    if found != truth:
        raise AssertionError(f"found {found} have and need, where there are {truth}")


# nostr-tools


def nostr_tools(sets: Pair, runs: int, script: Path) -> list[str]:
    """The initiator of nostr-tools, against negvec's responder."""
    if shutil.which("node") is None:
        raise Missing("node is not installed")
    with tempfile.NamedTemporaryFile() as items:
        columns = np.empty(len(sets.ours.ids), negvec.ITEM)
        columns["created_at"], columns["id"] = sets.ours
        items.write(columns.tobytes())
        items.flush()
        told = converse_with_node(script, items.name, negvec.seal(*sets.theirs), runs)
    for spent in told:
        assert_found((spent["have"], spent["need"]), sets)
    own = [own_initiator(sets, CAREFUL_LIMIT) for _ in range(runs + 1)][1:]
    peer_ready = median([spent["insert"] + spent["seal"] for spent in told])
    return [
        heading("nostr-tools, JavaScript, initiator's side"),
        row("items to a sealed storage", median([ready for ready, _ in own]), peer_ready),
        row("all rounds", median([asked for _, asked in own]), median([spent["initiator"] for spent in told])),
    ]


def converse_with_node(script: Path, items: str, storage: negvec.Storage, runs: int) -> list[dict[str, Any]]:
    """Answer the questions of node; what it tells of each run but the first, in which it warms up."""
    node = subprocess.Popen(
        ["node", str(script), items, str(CAREFUL_LIMIT), str(runs + 1)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert node.stdin is not None
    assert node.stdout is not None
    told = []
    responder = negvec.Negentropy(storage, RELAY_LIMIT)
    for line in node.stdout:
        if line.startswith("{"):
            told.append(json.loads(line))
            continue
        answer = responder.reconcile(bytes.fromhex(line)).message
        assert answer is not None
        node.stdin.write(f"{answer.hex()}\n")
        node.stdin.flush()
    _, complaint = node.communicate()
    if "ERR_MODULE_NOT_FOUND" in complaint:
        raise Missing("nostr-tools is not installed where node looks for it")
    if node.returncode:
        raise RuntimeError(complaint)
    return told[1:]


def own_initiator(sets: Pair, limit: int) -> tuple[float, float]:
    """Milliseconds to seal and of the initiator's rounds, as node measures them."""
    sealing, asking = Watch(), Watch()
    with sealing:
        storage = negvec.seal(*sets.ours)
    responder = negvec.Negentropy(negvec.seal(*sets.theirs), RELAY_LIMIT)
    with asking:
        initiator = negvec.Negentropy(storage, limit)
        message: bytes | None = initiator.initiate()
    while message is not None:
        answer = responder.reconcile(message).message
        with asking:
            step = initiator.reconcile(answer)
            message = step.message
    assert_found((len(step.have), len(step.need)), sets)
    return sealing.spent, asking.spent


# nostr-sdk


class NegvecRelay:
    """A responder on a websocket; tells how long the client took over its answers."""

    def __init__(self, storage: negvec.Storage, limit: int, told: Connection) -> None:
        self._storage, self._limit, self._told = storage, limit, told

    async def __call__(self, socket: Any) -> None:
        responder = negvec.Negentropy(self._storage, self._limit)
        answered, took = None, 0.0
        async for text in socket:
            if answered is not None:
                took += 1000 * (time.perf_counter() - answered)
            kind, session, *rest = json.loads(text)
            if kind == "NEG-CLOSE":
                self._told.send(took)
                answered, took = None, 0.0
                continue
            answer = responder.reconcile(bytes.fromhex(rest[-1])).message
            assert answer is not None
            await socket.send(json.dumps(["NEG-MSG", session, answer.hex()]))
            answered = time.perf_counter()


def serve(side: Side, limit: int, told: Connection) -> None:
    """Be a relay with these items; tells its port, then milliseconds of the client for each session."""

    async def until_ended() -> None:
        from websockets.asyncio.server import serve as listen

        relay = NegvecRelay(negvec.seal(*side), limit, told)
        async with listen(relay, "127.0.0.1", 0, max_size=None, compression=None) as server:
            told.send(server.sockets[0].getsockname()[1])
            await asyncio.Future()

    asyncio.run(until_ended())


@asynccontextmanager
async def negvec_relay(side: Side, limit: int) -> AsyncIterator[tuple[str, Connection]]:
    """A relay in a process of its own, as nostr-sdk's has threads of its own."""
    spawning = multiprocessing.get_context("spawn")
    told, telling = spawning.Pipe(duplex=False)
    process = spawning.Process(target=serve, args=(side, limit, telling), daemon=True)
    process.start()
    telling.close()  # the relay's end: should it fail, waiting for it must end
    try:
        yield f"ws://127.0.0.1:{await asyncio.to_thread(told.recv)}", told
    finally:
        process.terminate()
        process.join()


async def ask(url: str, storage: negvec.Storage, limit: int, sets: Pair) -> float:
    """Reconcile with a relay; milliseconds that all its answers but the first took."""
    import websockets

    initiator = negvec.Negentropy(storage, limit)
    took = 0.0
    async with websockets.connect(url, max_size=None, compression=None) as socket:
        message: bytes | None = initiator.initiate()
        frame: list[Any] = ["NEG-OPEN", "session", {}]
        while message is not None:
            text = json.dumps([*frame, message.hex()])
            begin = time.perf_counter()
            await socket.send(text)
            answer = await socket.recv()
            if frame[0] == "NEG-MSG":
                took += 1000 * (time.perf_counter() - begin)
            kind, _, told = json.loads(answer)
            if kind != "NEG-MSG":
                raise Refused(told)
            step = initiator.reconcile(bytes.fromhex(told))
            message = step.message
            frame = ["NEG-MSG", "session"]
        await socket.send(json.dumps(["NEG-CLOSE", "session"]))
    assert_found((len(step.have), len(step.need)), sets)
    return took


async def nostr_sdk(sets: Pair, runs: int) -> list[str]:
    """The client and the relay of nostr-sdk, each against negvec."""
    for package in PYTHON_PEERS:
        if importlib.util.find_spec(package.replace("-", "_")) is None:
            raise Missing(f"{package} is not installed")
    ours = negvec.seal(*sets.ours)
    async with negvec_relay(sets.theirs, RELAY_LIMIT) as (url, told):
        peer_asks = await sync_with_sdk(url, sets, runs + 1, told)
        own_asks = []
        for _ in range(runs + 1):
            await ask(url, ours, CAREFUL_LIMIT, sets)
            own_asks.append(told.recv())
    lines = [heading("nostr-sdk, Rust, over a websocket"), row("client", median(own_asks[1:]), median(peer_asks[1:]))]
    async with negvec_relay(sets.theirs, CAREFUL_LIMIT) as (url, told):
        own_answers = [await ask(url, ours, 0, sets) for _ in range(runs + 1)][1:]
    if not median(own_answers):
        return [*lines, "  relay: there is no second answer with this shape"]
    try:
        async with sdk_relay(sets.theirs) as url:
            peer_answers = [await ask(url, ours, 0, sets) for _ in range(runs + 1)][1:]
    except Refused as refused:
        return [*lines, f"  relay: refuses so large a set, {refused}"]
    return [*lines, row("relay, from the second answer on", median(own_answers), median(peer_answers))]


async def sync_with_sdk(url: str, sets: Pair, runs: int, told: Connection) -> list[float]:
    """Reconcile by nostr-sdk's client; what the relay tells of each run."""
    sdk = importlib.import_module("nostr_sdk")
    client, address = sdk.Client(), sdk.RelayUrl.parse(url)
    await client.add_relay(address)
    await client.connect()
    relay = await client.relay(address)
    while relay.status() != sdk.RelayStatus.CONNECTED:
        await asyncio.sleep(0.01)
    items = [
        sdk.NegentropyItem(id=sdk.EventId.from_bytes(id.tobytes()), timestamp=sdk.Timestamp.from_secs(at))
        for at, id in zip(sets.ours.created_at.tolist(), sets.ours.ids, strict=True)
    ]
    options = sdk.SyncOptions().dry_run().direction(sdk.SyncDirection.BOTH)
    took = []
    for _ in range(runs):
        summary = await relay.sync(sdk.Filter(), items, options)
        assert_found((len(summary.local), len(summary.remote)), sets)
        took.append(await asyncio.to_thread(told.recv))
    relay.disconnect()
    return took


@asynccontextmanager
async def sdk_relay(side: Side) -> AsyncIterator[str]:
    """A relay whose events have the ids and timestamps of a side; nothing else of them is looked at."""
    sdk = importlib.import_module("nostr_sdk")
    author = sdk.Keys.generate().public_key().to_hex()
    rest = {"pubkey": author, "kind": 1, "tags": [], "content": "", "sig": "00" * 64}
    events = [
        sdk.Event.from_json(json.dumps({"id": id.tobytes().hex(), "created_at": at} | rest))
        for at, id in zip(side.created_at.tolist(), side.ids, strict=True)
    ]

    class Events(sdk.NostrDatabase):  # type: ignore[misc, name-defined]
        def backend(self) -> str:
            return "list"

        def features(self) -> Any:
            return sdk.NostrDatabaseFeatures(
                persistent=False, event_expiration=False, full_text_search=False, request_to_vanish=False
            )

        async def query(self, filter: Any) -> Any:
            return events

        async def count(self, filter: Any) -> int:
            return len(events)

    sdk.uniffi_set_event_loop(asyncio.get_running_loop())  # for calls from the relay's threads
    builder = sdk.LocalRelayBuilder().database(Events())
    relay = builder.max_filter_limit(2**63).default_filter_limit(2**63).build()
    await relay.run()
    try:
        yield str(await relay.url())
    finally:
        relay.shutdown()
        await asyncio.sleep(0.5)  # its threads end


# All of them


def install(folder: Path) -> Path:
    """Install the peers into a folder; returns the node script there, since node looks beside the script."""
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(folder / "python"), *PYTHON_PEERS],
        check=True,
    )
    sys.path.insert(0, str(folder / "python"))
    importlib.invalidate_caches()
    if shutil.which("npm") is not None:
        command = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", str(folder)]
        subprocess.run([*command, "nostr-tools"], check=True)
    return Path(shutil.copy(PEERS_SCRIPT, folder))


def main() -> None:
    arguments = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    arguments.add_argument("--n", type=int, default=20_000, help="items in all (default: %(default)s)")
    arguments.add_argument("--shape", choices=RECORDED, default="contiguous", help="(default: %(default)s)")
    arguments.add_argument("--runs", type=int, default=5, help="runs to take the medians of (default: %(default)s)")
    arguments.add_argument("--install", action="store_true", help="install the peers into a folder that is removed")
    chosen = arguments.parse_args()
    sets = pair(chosen.shape, chosen.n)
    print(f"{chosen.n:,} {chosen.shape}, medians of {chosen.runs} runs")
    with tempfile.TemporaryDirectory() as folder:
        script = install(Path(folder)) if chosen.install else PEERS_SCRIPT
        compare("nostr-tools", lambda: nostr_tools(sets, chosen.runs, script))
        compare("nostr-sdk", lambda: asyncio.run(nostr_sdk(sets, chosen.runs)))


def compare(peer: str, measured: Callable[[], list[str]]) -> None:
    try:
        print("\n".join(measured()), flush=True)
    except Missing as missing:
        print(f"\n{peer}: left out, {missing}; --install installs it for this run", flush=True)


if __name__ == "__main__":
    main()
