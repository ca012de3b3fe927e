"""Other implementations at the other end, from registries: the client and relay of Rust, and JavaScript's client."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from negvec.client import sync
from negvec.relay import serve

from . import signed
from .test_relay import asynchronous
from .test_sync import filled, ids, ids_of

pytestmark = pytest.mark.peer


def database(sdk: Any, events: dict[str, Any]) -> Any:
    """A database for nostr-sdk that is a dict."""

    class Events(sdk.NostrDatabase):  # type: ignore[misc, name-defined]
        def backend(self) -> str:
            return "dict"

        def features(self) -> Any:
            return sdk.NostrDatabaseFeatures(
                persistent=False, event_expiration=False, full_text_search=False, request_to_vanish=False
            )

        async def save_event(self, event: Any) -> Any:
            events[event.id().to_hex()] = event
            return sdk.SaveEventStatus.success()

        async def check_id(self, id: Any) -> Any:
            return sdk.DatabaseEventStatus.SAVED if id.to_hex() in events else sdk.DatabaseEventStatus.NOT_EXISTENT

        async def event_by_id(self, id: Any) -> Any:
            return events.get(id.to_hex())

        async def query(self, filter: Any) -> Any:
            return [event for event in events.values() if filter.match_event(event)]

        async def count(self, filter: Any) -> int:
            return len(events)

    return Events()


@asynchronous
async def test_the_client_of_rust_syncs_both_ways_with_our_relay(tmp_path: Path) -> None:
    sdk = pytest.importorskip("nostr_sdk")
    sdk.uniffi_set_event_loop(asyncio.get_running_loop())
    theirs = {signed(k)["id"]: sdk.Event.from_json(json.dumps(signed(k))) for k in range(200, 500)}
    store = filled(tmp_path / "relay.db", range(300))
    async with serve(store, port=0) as relay:
        client = sdk.ClientBuilder().database(database(sdk, theirs)).build()
        url = sdk.RelayUrl.parse(relay.url)
        await client.add_relay(url)
        await client.connect()
        await client.sync(sdk.Filter(), None, sdk.SyncOptions().direction(sdk.SyncDirection.BOTH))
        for _ in range(100):
            if len(store) == 500 == len(theirs):
                break
            await asyncio.sleep(0.05)
        await client.shutdown()
    assert ids_of(store) == set(theirs) == ids(range(500))
    store.close()


@asynchronous
async def test_our_client_syncs_both_ways_with_the_relay_of_rust(tmp_path: Path) -> None:
    sdk = pytest.importorskip("nostr_sdk")
    sdk.uniffi_set_event_loop(asyncio.get_running_loop())
    theirs = {signed(k)["id"]: sdk.Event.from_json(json.dumps(signed(k))) for k in range(200, 500)}
    limits = sdk.RateLimit(max_reqs=1000, notes_per_minute=100_000)
    relay = sdk.LocalRelayBuilder().database(database(sdk, theirs)).rate_limit(limits).build()
    await relay.run()
    store = filled(tmp_path / "ours.db", range(300))
    try:
        report = await sync(str(await relay.url()), store, direction="both", idle_seconds=10)
        again = await sync(str(await relay.url()), store, direction="both", idle_seconds=10)
    finally:
        relay.shutdown()
        await asyncio.sleep(0.3)  # its threads end
    assert (report.downloaded, report.uploaded, report.refusals) == (200, 200, [])
    assert (again.have, again.need) == ([], [])
    assert ids_of(store) == set(theirs) == ids(range(500))
    store.close()


SCRIPT = """
import WebSocket from 'ws'
import { readFileSync } from 'node:fs'
import { nip77 } from 'nostr-tools'
import { Relay, useWebSocketImplementation } from 'nostr-tools/relay'
useWebSocketImplementation(WebSocket)
const [url, file] = process.argv.slice(2)
const storage = new nip77.NegentropyStorageVector()
for (const [at, id] of JSON.parse(readFileSync(file, 'utf8'))) storage.insert(at, id)
storage.seal()
const relay = await Relay.connect(url)
const have = [], need = []
await new Promise(done => new nip77.NegentropySync(relay, storage, {kinds: [1]}, {
  onhave: id => have.push(id), onneed: id => need.push(id), onclose: done
}).start())
process.stdout.write(JSON.stringify({have, need}), () => process.exit(0))
"""


@pytest.fixture(scope="session")
def nostr_tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which node finds nostr-tools."""
    if shutil.which("npm") is None or shutil.which("node") is None:
        pytest.skip("node and npm are not here")
    folder = tmp_path_factory.mktemp("node")
    command = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", str(folder)]
    done = subprocess.run([*command, "nostr-tools", "ws"], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"nostr-tools can't be installed: {done.stderr[-300:]}")
    (folder / "sync.mjs").write_text(SCRIPT)
    return folder


@asynchronous
async def test_the_client_of_javascript_reconciles_with_our_relay(tmp_path: Path, nostr_tools: Path) -> None:
    store = filled(tmp_path / "relay.db", range(3000))
    theirs = [signed(k) for k in range(1000, 3500)]
    items = tmp_path / "items.json"
    items.write_text(json.dumps([[event["created_at"], event["id"]] for event in theirs]))
    async with serve(store, port=0) as relay:
        node = await asyncio.create_subprocess_exec(
            "node", str(nostr_tools / "sync.mjs"), relay.url, str(items), stdout=subprocess.PIPE
        )
        output, _ = await node.communicate()
    found = json.loads(output)
    assert set(found["have"]) == ids(range(3000, 3500))
    assert set(found["need"]) == ids(range(1000))
    store.close()
