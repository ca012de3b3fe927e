"""`negvec sync` against relays: ours in its own process, scripted ones that refuse, and Rust's."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import orjson
import pytest
from websockets.asyncio.server import ServerConnection
from websockets.asyncio.server import serve as serve_websockets
from websockets.exceptions import ConnectionClosed

import negvec
from negvec.client import Report, SyncError, information, sync
from negvec.client.windows import EVERYTHING, Window, cut
from negvec.nip77 import Limits, Refusal
from negvec.relay import EventStore, Settings, events, filters, serve

from . import relay_process, signed, stored_json
from .test_relay import asynchronous


def filled(path: Path, numbers: Any, **more: Any) -> EventStore:
    store = EventStore(path)
    store.put([events.parse(signed(k, **more)) for k in numbers])
    return store


def ids_of(store: EventStore) -> set[str]:
    return {orjson.loads(json)["id"] for json in stored_json(store, filters.parse({}))}


def ids(numbers: Any) -> set[str]:
    return {signed(k)["id"] for k in numbers}


@pytest.mark.parametrize("direction", ["down", "up", "both", "none"])
@asynchronous
async def test_each_direction_moves_what_it_says(tmp_path: Path, direction: str) -> None:
    ours, theirs = filled(tmp_path / "ours.db", range(600)), filled(tmp_path / "theirs.db", range(100, 1000))
    told: list[int] = []
    async with serve(theirs, port=0) as relay:
        report = await sync(
            relay.url, ours, direction=direction, progress=lambda report: told.append(report.downloaded)
        )
    assert {id.hex() for id in report.have} == ids(range(100))
    assert {id.hex() for id in report.need} == ids(range(600, 1000))
    assert (report.downloaded, report.uploaded) == (
        400 if direction in ("down", "both") else 0,
        100 if direction in ("up", "both") else 0,
    )
    assert ids_of(ours) == ids(range(1000 if direction in ("down", "both") else 600))
    assert ids_of(theirs) == ids(range(0 if direction in ("up", "both") else 100, 1000))
    assert (report.withheld, report.unwanted, report.rejected, report.refusals, report.windows) == (0, 0, 0, [], 1)
    assert told[-1] == report.downloaded
    ours.close()
    theirs.close()


@asynchronous
async def test_a_filter_is_all_that_is_synced(tmp_path: Path) -> None:
    ours, theirs = filled(tmp_path / "ours.db", range(5)), filled(tmp_path / "theirs.db", range(100))
    theirs.put([events.parse(signed(k, 7)) for k in range(50)])
    async with serve(theirs, port=0) as relay:
        report = await sync(relay.url, ours, {"kinds": [7], "since": 1_700_000_010})
        assert report.downloaded == len(report.need) == 40
        assert len(ours) == 45
        with pytest.raises(ValueError, match="limit"):
            await sync(relay.url, ours, {"limit": 5})
        with pytest.raises(ValueError, match="direction"):
            await sync(relay.url, ours, direction="sideways")
    ours.close()
    theirs.close()


@asynchronous
async def test_a_relay_that_finds_the_set_too_large_is_asked_for_windows(tmp_path: Path) -> None:
    ours, theirs = filled(tmp_path / "ours.db", range(0, 900, 3)), filled(tmp_path / "theirs.db", range(900))
    future = [events.parse(signed(k, at=4_000_000_000 + k)) for k in range(20)]
    theirs.put(future)
    settings = Settings(neg_limits=Limits(items=50))
    async with serve(theirs, port=0, settings=settings) as relay:
        report = await sync(relay.url, ours, {"kinds": [1]})
    assert ids_of(ours) == ids_of(theirs)
    assert report.windows > 18
    assert len(report.need) == len(set(report.need)) == report.downloaded == 620
    assert {refusal.kind for refusal in report.refusals} == {"size"}
    ours.close()
    theirs.close()


@asynchronous
async def test_too_many_events_of_one_second_are_read_page_by_page(tmp_path: Path) -> None:
    ours, theirs = EventStore(tmp_path / "ours.db"), filled(tmp_path / "theirs.db", range(80), at=1_700_000_000)
    async with serve(theirs, port=0, settings=Settings(neg_limits=Limits(items=30))) as relay:
        report = await sync(relay.url, ours, {"kinds": [1]})
    assert ids_of(ours) == ids_of(theirs)
    assert report.paged == 1
    ours.close()
    theirs.close()


@asynchronous
async def test_a_relay_without_negentropy_is_read_page_by_page(tmp_path: Path) -> None:
    ours, theirs = filled(tmp_path / "ours.db", range(30)), filled(tmp_path / "theirs.db", range(20, 1300))
    async with serve(theirs, port=0, settings=Settings(negentropy=False)) as relay:
        report = await sync(relay.url, ours, direction="both")
    assert ids_of(ours) == ids_of(theirs) == ids(range(1300))
    assert (report.downloaded, report.uploaded, report.paged) == (1270, 20, 1)
    ours.close()
    theirs.close()


@pytest.mark.parametrize(("most", "crowded"), [(5000, 0), (700, 1)])
@asynchronous
async def test_a_second_of_more_than_a_page_is_read_whole_or_said_to_be_crowded(
    tmp_path: Path, most: int, crowded: int
) -> None:
    ours, theirs = EventStore(tmp_path / "ours.db"), filled(tmp_path / "theirs.db", range(1200), at=1_700_000_000)
    theirs.put([events.parse(signed(k)) for k in range(1, 50)])
    async with serve(theirs, port=0, settings=Settings(negentropy=False, max_limit=most)) as relay:
        report = await sync(relay.url, ours)
    assert report.crowded == crowded
    assert report.downloaded == len(ours) == (1249 if not crowded else 749)
    ours.close()
    theirs.close()


@asynchronous
async def test_what_a_side_will_not_take_is_counted_and_not_asked_for_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "negvec.client")
    ours, theirs = EventStore(tmp_path / "ours.db"), filled(tmp_path / "theirs.db", range(30))
    ours.put([events.parse(signed(50, 5, [["e", signed(k)["id"]] for k in range(4)]))])
    async with serve(theirs, port=0, settings=Settings(max_event_tags=2)) as relay:
        report = await sync(relay.url, ours, direction="both")
        assert (report.downloaded, report.unwanted, report.rejected) == (26, 4, 1)
        assert (
            f"the relay did not take event {signed(50, 5, [['e', signed(k)['id']] for k in range(4)])['id']}: "
            in caplog.text
        )
        again = await sync(relay.url, ours, direction="both")
        assert (again.downloaded, again.unwanted, again.rejected) == (0, 4, 1)
    ours.close()
    theirs.close()


# ---- relays that refuse, in the words of real ones


async def against(script: Callable[[list[Any]], list[Any]], store: EventStore, **options: Any) -> Report:
    """Sync with a relay that answers each message as a script does."""

    async def answer(socket: ServerConnection) -> None:
        async for message in socket:
            for reply in script(orjson.loads(message)):
                await socket.send(reply if isinstance(reply, str) else orjson.dumps(reply).decode())

    async with serve_websockets(answer, "127.0.0.1", 0) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        return await sync(f"ws://127.0.0.1:{port}", store, frame_size_limit=60_000, **options)


def refusing(*reply: Any) -> Callable[[list[Any]], list[Any]]:
    return lambda message: [[part if part != "SUB" else message[1] for part in reply]] if "NEG" in message[0] else []


@pytest.mark.parametrize(
    ("script", "told"),
    [
        (refusing("NEG-ERR", "SUB", "rate-limited: slow down"), "rate"),
        (refusing("NEG-ERR", "SUB", "blocked: go away"), "policy"),
        (refusing("CLOSED", "SUB", "auth-required: who are you"), "policy"),
        (refusing("NOTICE", "ERROR: too many concurrent NEG requests"), "rate"),
        (refusing("NEG-ERR", "SUB", "closed: timeout"), "closed"),
        (refusing("NEG-MSG", "SUB", "6100"), "protocol"),
        (refusing("NEG-MSG", "SUB", "zz"), "protocol"),
        (refusing("NEG-MSG", "other", "61"), "said nothing"),
        (refusing("NOTICE", "hello"), "said nothing"),
        (refusing("EVENT", "SUB", {"id": "00"}), "said nothing"),
        (lambda message: [], "said nothing"),
    ],
)
@asynchronous
async def test_a_refusal_ends_quickly_and_says_why(
    tmp_path: Path, script: Callable[[list[Any]], list[Any]], told: str
) -> None:
    store = filled(tmp_path / "a.db", range(100))
    with pytest.raises(SyncError, match=told):
        await asyncio.wait_for(against(script, store, idle_seconds=1.0), 10)
    store.close()


@asynchronous
async def test_a_relay_that_calls_every_window_too_large_is_given_up(tmp_path: Path) -> None:
    store = EventStore(tmp_path / "a.db")

    def script(message: list[Any]) -> list[Any]:
        if message[0] == "NEG-OPEN":
            return [["NEG-ERR", message[1], "query matches too many records (2988225 > 1000)"]]
        return [["EOSE", message[1]]] if message[0] == "REQ" else []

    with pytest.raises(SyncError, match="too large"):
        await against(script, store)
    store.close()


@pytest.mark.parametrize("created_at", [1_700_000_000, 2**63 + 5, -1])
@asynchronous
async def test_a_relay_whose_pages_ignore_what_was_asked_is_read_no_further(tmp_path: Path, created_at: int) -> None:
    store = EventStore(tmp_path / "a.db")
    same = [signed(k) | {"created_at": created_at} for k in range(3)]

    def script(message: list[Any]) -> list[Any]:
        if message[0] == "NEG-OPEN":
            return [["NOTICE", "negentropy disabled"]]
        if message[0] != "REQ":
            return []
        return [["EVENT", message[1], event] for event in same] + [["EOSE", message[1]]]

    report = await asyncio.wait_for(against(script, store, idle_seconds=5.0), 20)
    assert report.downloaded == 0 or created_at == 1_700_000_000
    store.close()


@asynchronous
async def test_what_was_not_asked_for_is_not_stored_and_what_is_withheld_is_counted(tmp_path: Path) -> None:
    store, theirs = EventStore(tmp_path / "a.db"), filled(tmp_path / "b.db", range(10))
    from negvec.nip77 import ServerSessions

    sessions = ServerSessions(lambda asked, most: theirs.storage(filters.parse(asked), most))
    extra, forged = signed(77), signed(3) | {"content": "forged"}

    def script(message: list[Any]) -> list[Any]:
        if message[0].startswith("NEG"):
            return [orjson.loads(frame) for frame in sessions.receive(orjson.dumps(message))]
        if message[0] != "REQ":
            return []
        given = [signed(k) for k in range(3)]
        return [["EVENT", message[1], event] for event in (extra, forged, *given, given[0])] + [["EOSE", message[1]]]

    report = await against(script, store)
    assert ids_of(store) == ids(range(3))
    assert (report.downloaded, report.unwanted, report.withheld) == (3, 1, 6)
    store.close()
    theirs.close()


@asynchronous
async def test_no_connection_is_an_error_that_names_the_relay(tmp_path: Path) -> None:
    store = EventStore(tmp_path / "a.db")
    for url in ("ws://127.0.0.1:9", "http://127.0.0.1:9", "nonsense"):
        with pytest.raises(SyncError, match=url):
            await sync(url, store, idle_seconds=2.0)
    store.close()


@asynchronous
async def test_where_nobody_speaks_tls_the_error_says_so(tmp_path: Path) -> None:
    store = EventStore(tmp_path / "a.db")
    server = await asyncio.start_server(lambda _, writer: writer.transport.abort(), "127.0.0.1", 0)
    url = f"wss://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    with pytest.raises(SyncError, match=rf"{url}: .+: no TLS there, as it seems; is it ws://\?"):
        await sync(url, store, idle_seconds=5.0)
    server.close()
    store.close()


@asynchronous
async def test_a_sync_broken_off_does_not_wait_for_a_relay_that_goes_on_sending(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def chatter(socket: ServerConnection) -> None:
        with suppress(ConnectionClosed):
            while True:
                await socket.send(b'["NOTICE","' + b"a" * 10_000 + b'"]', text=True)

    monkeypatch.setattr("negvec.client.address.CLOSE_SECONDS", 0.1)
    store = EventStore(tmp_path / "a.db")
    async with serve_websockets(chatter, "127.0.0.1", 0) as server:
        url = f"ws://127.0.0.1:{next(iter(server.sockets)).getsockname()[1]}"
        task = asyncio.create_task(sync(url, store))
        await asyncio.sleep(0.5)
        task.cancel()
        started = time.monotonic()
        await asyncio.gather(task, return_exceptions=True)
        assert time.monotonic() - started < 5
    store.close()


@asynchronous
async def test_a_relay_is_asked_for_its_limits_only_where_they_matter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    ours, theirs = filled(tmp_path / "ours.db", range(300)), filled(tmp_path / "theirs.db", range(300))
    async with serve(theirs, port=0) as relay:
        asked: list[bool] = []

        def watching(socket: Any, request: Any) -> Any:
            response = relay.over_http(socket, request)
            asked.append(response is not None)
            return response

        async with serve_websockets(relay.serve, "127.0.0.1", 0, process_request=watching) as server:
            url = f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            report = await sync(url, ours)
            assert (report.rounds, report.need, asked) == (1, [], [False])
            theirs.put([events.parse(signed(k)) for k in range(300, 400)])
            report = await sync(url, ours)
            assert (report.downloaded, asked) == (100, [False, False, True])
            theirs.put([events.parse(signed(400))])
            await sync(url, ours, frame_size_limit=4096)
            assert (len(ours), asked) == (401, [False, False, True, False])
    ours.close()
    theirs.close()


def paging(answer: Callable[[str], list[Any]]) -> Callable[[list[Any]], list[Any]]:
    """A relay without negentropy, and what it answers to a REQ of a name."""

    def script(message: list[Any]) -> list[Any]:
        if message[0] == "NEG-OPEN":
            return [["NOTICE", "negentropy disabled"]]
        return answer(message[1]) if message[0] == "REQ" else []

    return script


@asynchronous
async def test_a_page_that_is_refused_is_not_the_end_of_the_events(tmp_path: Path) -> None:
    store = filled(tmp_path / "a.db", range(3))
    with pytest.raises(SyncError, match="refuses to be read: auth-required: who are you"):
        await against(paging(lambda name: [["CLOSED", name, "auth-required: who are you"]]), store)
    store.close()


@asynchronous
async def test_a_page_that_does_not_end_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["negvec.client.sync"], "MOST_PAGE_BYTES", 10_000)  # not the function of that name
    store = EventStore(tmp_path / "a.db")
    with pytest.raises(SyncError, match="page does not end"):
        await against(paging(lambda name: [["EVENT", name, signed(k % 5)] for k in range(100)]), store)
    store.close()


@asynchronous
async def test_what_the_filter_does_not_ask_for_is_not_stored_whatever_the_relay_says(tmp_path: Path) -> None:
    store, theirs = EventStore(tmp_path / "a.db"), EventStore(tmp_path / "b.db")
    given = [signed(1), signed(2, 4), signed(3, author=1)]
    asked = {"kinds": [1], "authors": [signed(1)["pubkey"]]}
    theirs.put([events.parse(event) for event in given])
    script = paging(lambda name: [*(["EVENT", name, event] for event in given), ["EOSE", name]])
    report = await against(script, store, subscription_filter=asked)
    assert (report.downloaded, report.unwanted, ids_of(store)) == (1, 2, {given[0]["id"]})
    store.close()

    from negvec.nip77 import ServerSessions

    store, sessions = EventStore(tmp_path / "c.db"), ServerSessions(lambda asked, most: theirs.everything.snapshot())

    def reconciling(message: list[Any]) -> list[Any]:
        if message[0].startswith("NEG"):
            return [orjson.loads(frame) for frame in sessions.receive(orjson.dumps(message))]
        return script(message)

    report = await against(reconciling, store, subscription_filter=asked)
    assert (report.downloaded, report.unwanted, ids_of(store)) == (1, 2, {given[0]["id"]})
    store.close()
    theirs.close()


@asynchronous
async def test_a_subscription_id_that_is_a_thousand_arrays_deep_is_passed_over(tmp_path: Path) -> None:
    deep = "[" * 1000 + "]" * 1000  # str() refuses it
    store = EventStore(tmp_path / "a.db")
    strange = [f'["{label}",{deep}]' for label in ("EVENT", "CLOSED", "OK", "NOTICE")]
    assert (await against(paging(lambda name: [*strange, ["EOSE", name]]), store)).downloaded == 0
    store.close()


@asynchronous
async def test_a_store_that_can_not_be_written_ends_the_sync_and_says_so(tmp_path: Path) -> None:
    store, theirs = EventStore(tmp_path / "full.db"), filled(tmp_path / "theirs.db", range(2000))
    (pages,) = store._writer.execute("PRAGMA page_count").fetchone()
    store._writer.execute(f"PRAGMA max_page_count = {pages + 20}")  # as a full disk
    async with serve(theirs, port=0) as relay:
        with pytest.raises(SyncError, match=r"full\.db: database or disk is full"):
            await sync(relay.url, store)
        store._writer.execute("PRAGMA max_page_count = 1000000")
        report = await sync(relay.url, store)
    assert report.downloaded == len(report.need)
    assert len(store) == 2000
    store.close()
    theirs.close()


@asynchronous
async def test_a_proxy_that_is_none_is_an_error_that_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "nonsense")
    store = EventStore(tmp_path / "a.db")
    with pytest.raises(SyncError, match="nonsense isn't a valid proxy"):
        await sync("wss://relay.invalid", store, idle_seconds=2.0)
    store.close()


def test_a_document_that_comes_byte_by_byte_holds_up_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    ended, left = threading.Event(), threading.Event()

    def dripping(url: str) -> dict[str, Any]:
        ended.wait(30)
        left.set()
        return {"max_limit": 5}

    monkeypatch.setattr(information, "_SECONDS", 0.05)
    monkeypatch.setattr(information, "_stated_limits", dripping)
    assert asyncio.run(information.Information("ws://127.0.0.1:9").largest_page()) is None
    assert not left.is_set()  # the loop has ended, and its thread has not
    ended.set()
    assert left.wait(10)


@asynchronous
async def test_a_relay_that_does_not_read_while_it_sends_is_listened_to(tmp_path: Path) -> None:
    from negvec.nip77 import ServerSessions

    store, theirs = EventStore(tmp_path / "a.db"), filled(tmp_path / "b.db", range(1000, 1600))
    store.put([events.parse(signed(k, content="a" * 200_000)) for k in range(150)])  # more than the sockets hold
    sessions = ServerSessions(lambda asked, most: theirs.everything.snapshot())
    much = orjson.dumps(["EVENT", "nobody's", "a" * 200_000])

    async def answer(socket: ServerConnection) -> None:
        async for message in socket:
            label, name, *rest = orjson.loads(message)
            if label.startswith("NEG"):
                for frame in sessions.receive(message):
                    await socket.send(frame, text=True)
            elif label == "EVENT":
                await socket.send(orjson.dumps(["OK", name["id"], True, ""]), text=True)
            elif label == "REQ":
                await asyncio.sleep(0.2)  # the uploads fill the sockets
                for id in rest[0]["ids"]:
                    ((_, json),) = theirs.events([bytes.fromhex(id)])
                    await socket.send(b'["EVENT","' + name.encode() + b'",' + json + b"]", text=True)
                await socket.send(orjson.dumps(["EOSE", name]), text=True)
                for _ in range(100):
                    await socket.send(much, text=True)

    async with serve_websockets(answer, "127.0.0.1", 0) as server:
        url = f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        report = await sync(url, store, direction="both", frame_size_limit=60_000, idle_seconds=5.0)
    assert (report.downloaded, report.uploaded) == (600, 150)
    store.close()
    theirs.close()


# ---- windows


@pytest.mark.parametrize("reason", ["too many", "(2988225 > 1000)", "(5 > 0)", "(3000 > 1000)"])
@pytest.mark.parametrize("numbers", [range(0), range(5), range(2000)])
@pytest.mark.parametrize("window", [EVERYTHING, Window(0, 1_700_000_500), Window(1_700_000_000, 1_700_000_001)])
def test_pieces_cover_the_window_and_do_not_overlap(
    tmp_path: Path, reason: str, numbers: range, window: Window
) -> None:
    import negvec

    own = negvec.seal([1_700_000_000 + k // 3 for k in numbers], [k.to_bytes(32, "big") for k in numbers])
    pieces = cut(window, Refusal("size", reason), own, now=1_750_000_000)
    assert len(pieces) > 1
    assert pieces[0].since == window.since
    assert pieces[-1].until == window.until
    assert all(before.until + 1 == after.since for before, after in pairwise(pieces))
    assert all(piece.since <= piece.until for piece in pieces)


def test_one_second_can_not_be_cut() -> None:
    assert cut(Window(5, 5), Refusal("size", "too many"), negvec.seal([], []), now=100) == []


# ---- processes and peers


def negvec_sync(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "negvec", "sync", *arguments], capture_output=True, text=True, timeout=60
    )


def test_from_the_command_line(tmp_path: Path) -> None:
    filled(tmp_path / "theirs.db", range(300)).close()
    mine = str(tmp_path / "mine.db")
    with relay_process(tmp_path / "theirs.db") as (url, process):
        dry = negvec_sync(url, "--store", mine, "--dry-run")
        assert (dry.returncode, len(dry.stdout.splitlines())) == (1, 300)
        assert {line[1:] for line in dry.stdout.splitlines()} == ids(range(300))
        done = negvec_sync(url, "--store", mine, "--json")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["downloaded"] == 300
        again = negvec_sync(url, "--store", mine)
        assert again.returncode == 0
        assert "0 that the store lacked" in again.stdout
        assert negvec_sync(url, "--store", mine, "--filter", "{").returncode == 2
        held = negvec_sync(url, "--store", str(tmp_path / "theirs.db"))
        assert held.returncode == 2
        assert "theirs.db is in use: a relay or a sync has it open" in held.stderr
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
    gone = negvec_sync(url, "--store", mine)
    assert gone.returncode == 2
    assert url in gone.stderr


def test_two_relays_killed_in_mid_sync_converge_when_they_are_back(tmp_path: Path) -> None:
    """Events go from one relay to the other by way of a store, which is where a sync goes on."""
    paths = [tmp_path / "first.db", tmp_path / "second.db"]
    filled(paths[0], range(0, 3000, 2)).close()
    filled(paths[1], range(0, 3000, 3)).close()
    between = tmp_path / "between.db"

    async def until_killed(url: str, process: Any) -> None:
        store = EventStore(between)
        try:
            asyncio.get_running_loop().call_later(0.15, process.kill)
            await sync(url, store, direction="both", idle_seconds=5)
        except SyncError:
            pass
        finally:
            store.close()

    async def whole(url: str) -> Report:
        store = EventStore(between)
        try:
            return await sync(url, store, direction="both", idle_seconds=5)
        finally:
            store.close()

    for path in paths:
        with relay_process(path) as (url, process):
            asyncio.run(until_killed(url, process))
    for path in (*paths, *paths):
        with relay_process(path) as (url, _):
            report = asyncio.run(whole(url))
    assert (len(report.have), len(report.need)) == (0, 0)
    stores = [EventStore(path) for path in (*paths, between)]
    assert ids_of(stores[0]) == ids_of(stores[1]) == ids_of(stores[2]) == ids({*range(0, 3000, 2), *range(0, 3000, 3)})
    for store in stores:
        store.close()
