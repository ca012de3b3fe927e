"""A relay over real websockets: what it answers, what it bears, and what is there after it is killed."""

from __future__ import annotations

import asyncio
import json
import random
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import wraps
from pathlib import Path
from typing import Any

import orjson
import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

import negvec
from negvec.nip77 import ClientSession, Limits
from negvec.relay import EventStore, Policy, Settings, serve
from negvec.relay import filters as relay_filters
from negvec.relay.policy import Denied, Peer
from negvec.relay.server import Relay

from . import fill_with_made_up, pubkey, relay_process, signed


def asynchronous(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    @wraps(test)
    def run(*arguments: Any, **named: Any) -> None:
        asyncio.run(asyncio.wait_for(test(*arguments, **named), 60))

    return run


@asynccontextmanager
async def relay_with(path: Path, count: int = 0, policy: Policy | None = None, **settings: Any) -> AsyncIterator[Relay]:
    store = EventStore(path / "relay.db")
    store.put([relay_events(k) for k in range(count)])
    try:
        async with serve(store, port=0, settings=Settings(**settings), policy=policy) as relay:
            yield relay
    finally:
        store.close()


def relay_events(number: int) -> Any:
    from negvec.relay import events

    return events.parse(signed(number))


async def say(client: ClientConnection, *elements: Any) -> None:
    await client.send(orjson.dumps(elements), text=True)


async def hear(client: ClientConnection) -> Any:
    return orjson.loads(await asyncio.wait_for(client.recv(), 20))


async def publish(client: ClientConnection, *given: dict[str, Any]) -> dict[str, list[Any]]:
    for event in given:
        await say(client, "EVENT", event)
    answers = [await hear(client) for _ in given]
    assert all(answer[0] == "OK" for answer in answers)
    return {answer[1]: answer[2:] for answer in answers}


async def stored(client: ClientConnection, *asked: dict[str, Any]) -> list[str]:
    await say(client, "REQ", "all", *asked)
    ids = []
    while (message := await hear(client))[0] == "EVENT":
        ids.append(message[2]["id"])
    assert message == ["EOSE", "all"]
    await say(client, "CLOSE", "all")
    return ids


async def reconcile(client: ClientConnection, ours: negvec.Storage, asked: dict[str, Any], name: str = "n") -> Any:
    session = ClientSession(ours, name, asked)
    need: list[bytes] = []
    await client.send(session.open(), text=True)
    while not session.over:
        for frame in session.receive(await asyncio.wait_for(client.recv(decode=False), 20)):
            await client.send(frame, text=True)
        need += [row.tobytes() for row in session.take()[1]]
    return sorted(id.hex() for id in need), session


NOTHING = negvec.seal([], [])


@asynchronous
async def test_events_come_in_and_go_out(tmp_path: Path) -> None:
    async with relay_with(tmp_path) as relay, connect(relay.url) as client, connect(relay.url) as watcher:
        await say(watcher, "REQ", "live", {"kinds": [1]}, {"kinds": [7]})
        assert await hear(watcher) == ["EOSE", "live"]
        good, other, ephemeral = signed(1), signed(2, 3), signed(3, 20_001)
        bad = signed(4) | {"content": "changed"}
        answers = await publish(client, good, other, ephemeral, bad, good)
        assert answers[good["id"]][0] is True
        assert answers[other["id"]] == [True, ""]
        assert answers[ephemeral["id"]] == [True, ""]
        assert answers[bad["id"]] == [False, "invalid: the id is not the hash of the event"]
        assert await hear(watcher) == ["EVENT", "live", good]
        assert sorted(await stored(client, {})) == sorted([good["id"], other["id"]])
        assert await stored(client, {"kinds": [3]}, {"ids": [good["id"]]}) in (
            [other["id"], good["id"]],
            [good["id"], other["id"]],
        )
        await say(watcher, "REQ", "live", {"kinds": [20_001]})
        assert await hear(watcher) == ["EOSE", "live"]
        again = signed(5, 20_001)
        await publish(client, again)
        assert await hear(watcher) == ["EVENT", "live", again]


@asynchronous
async def test_a_negentropy_session_shows_what_a_req_shows(tmp_path: Path) -> None:
    async with relay_with(tmp_path, 300) as relay, connect(relay.url) as client:
        await publish(client, signed(5, 7), signed(6, 5, [["e", signed(10)["id"]]]))
        for asked in (
            {},
            {"kinds": [1]},
            {"kinds": [1, 7]},
            {"since": 1_700_000_100, "until": 1_700_000_200},
            {"authors": [pubkey(0)], "kinds": [1]},
            {"limit": 12},
            {"ids": [signed(3)["id"], signed(10)["id"]]},
        ):
            need, session = await reconcile(client, NOTHING, asked)
            assert session.refusal is None
            assert need == sorted(await stored(client, asked))
            assert (signed(10)["id"] in need) is False


@asynchronous
async def test_stored_events_of_several_filters_come_newest_first_whatever_the_subscription_is_called(
    tmp_path: Path,
) -> None:
    async with relay_with(tmp_path, 20) as relay, connect(relay.url) as client:
        evens, odds = ([signed(k)["id"] for k in range(start, 20, 2)] for start in (0, 1))
        await say(client, "REQ", "NEG-OPEN", {"ids": evens}, {"ids": odds + evens[:3]})
        found = [(await hear(client))[2]["created_at"] for _ in range(20)]
        assert found == sorted(found, reverse=True)
        assert await hear(client) == ["EOSE", "NEG-OPEN"]


@asynchronous
async def test_a_policy_that_fails_refuses_the_event_and_the_relay_goes_on(tmp_path: Path) -> None:
    class Broken(Policy):
        def write(self, peer: Peer, event: Any) -> None:
            if event.kind == 7:
                raise ZeroDivisionError

    async with relay_with(tmp_path, 0, Broken()) as relay, connect(relay.url) as client:
        for _ in range(10):
            event = signed(1, 7)
            assert (await publish(client, event))[event["id"]] == [False, "error: could not be judged"]
        assert (await publish(client, signed(2)))[signed(2)["id"]] == [True, ""]


@asynchronous
async def test_a_scan_that_fails_is_an_error_and_never_a_smaller_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with relay_with(tmp_path, 20) as relay, connect(relay.url) as client:
        with monkeypatch.context() as patch:
            patch.setattr(negvec.relay.store, "rows_of", lambda asked: ("SELECT no_such_column", []))
            _, session = await reconcile(client, NOTHING, {"authors": [pubkey(0)]})
        assert session.refusal == ("other", "error: the store could not be read", None)
        assert len((await reconcile(client, NOTHING, {"authors": [pubkey(0)]}))[0]) == 20


@asynchronous
async def test_a_query_that_takes_too_long_is_refused_and_never_answered_in_part(tmp_path: Path) -> None:
    fill_with_made_up(tmp_path / "relay.db", 30_000)
    long = {"authors": ["00" * 32], "until": 1_900_000_000}
    async with relay_with(tmp_path, query_seconds=1e-9, max_limit=10**6) as relay, connect(relay.url) as client:
        await say(client, "REQ", "long", long)
        told = "blocked: this query is too big: it took longer than 1e-09 seconds"
        assert await hear(client) == ["CLOSED", "long", told]
        _, session = await reconcile(client, NOTHING, long)
        assert session.refusal == ("size", told, None), "a client asks for smaller windows then"
        assert len((await reconcile(client, NOTHING, {}))[0]) == 30_000, "what live indexes answer is no query"
        assert await stored(client, {"limit": 0}) == [], "and others go on"
    async with relay_with(tmp_path, max_limit=10**6, query_seconds=60.0) as relay, connect(relay.url) as client:
        assert len((await reconcile(client, NOTHING, long))[0]) == 30_000


@asynchronous
async def test_a_malformed_message_harms_nobody(tmp_path: Path) -> None:
    chance = random.Random(3)
    wrong = """ | [ | [] | {} | ["EVENT"] | ["EVENT",5] | ["EVENT",{}] | ["REQ"] | ["REQ","a"] | [5] | ["FOO"]
        | ["REQ","a",{"ids":5}] | ["REQ","",{}] | ["CLOSE"] | ["CLOSE",[]] | ["NEG-OPEN"] | ["NEG-MSG","x"]
        | ["NEG-OPEN","s",{"kinds":"x"},"61"] | ["NEG-OPEN","s",{},"zz"]"""
    noise = [each.strip().encode() for each in wrong.split("|")]
    noise += [b"\xff\xfe", b"[" * 5000, *(chance.randbytes(30) for _ in range(30))]
    async with relay_with(tmp_path, 10) as relay, connect(relay.url) as client, connect(relay.url) as other:
        for message in noise:
            await client.send(message, text=False)
        assert len(await stored(other, {})) == 10
        answers = []
        await say(client, "REQ", "end", {"limit": 0})
        while (message := await hear(client)) != ["EOSE", "end"]:
            answers.append(message)
        assert {answer[0] for answer in answers} <= {"NOTICE", "OK", "CLOSED", "NEG-ERR"}
        assert len(answers) >= len(noise) - 3
        assert len((await reconcile(client, NOTHING, {}))[0]) == 10


@asynchronous
async def test_messages_over_the_limit_end_their_connection_and_no_other(tmp_path: Path) -> None:
    async with relay_with(tmp_path, 3, max_message=5000) as relay, connect(relay.url) as other:
        async with connect(relay.url) as client:
            await client.send('["REQ","a",{"ids":["' + "0" * 6000 + '"]}]')
            with pytest.raises(ConnectionClosed):
                await asyncio.wait_for(client.recv(), 20)
        assert len(await stored(other, {})) == 3


@asynchronous
async def test_limits_are_kept(tmp_path: Path) -> None:
    settings = {"max_connections": 2, "max_subscriptions": 2, "max_filters": 2, "max_limit": 4, "max_event_tags": 3}
    async with relay_with(tmp_path, 10, max_content=50, **settings) as relay, connect(relay.url) as client:
        assert len(await stored(client, {})) == 4
        await say(client, "REQ", "x", {}, {}, {})
        assert (await hear(client))[:2] == ["CLOSED", "x"]
        for name in ("a", "b", "c"):
            await say(client, "REQ", name, {"limit": 0})
        assert [(await hear(client))[0] for _ in range(3)] == ["EOSE", "EOSE", "CLOSED"]
        long, tagged, future = signed(50, content="x" * 51), signed(51, tags=[["t", "x"]] * 4), signed(52, at=2**40)
        answers = await publish(client, long, tagged, future)
        assert [answers[event["id"]][0] for event in (long, tagged, future)] == [False] * 3
        async with connect(relay.url), connect(relay.url) as third:
            with pytest.raises(ConnectionClosed):
                await asyncio.wait_for(third.recv(), 20)


@asynchronous
async def test_one_policy_decides_what_req_and_neg_open_show(tmp_path: Path) -> None:
    class Careful(Policy):
        def read(self, peer: Peer, asked: relay_filters.Filter) -> relay_filters.Filter:
            assert peer.address == "127.0.0.1"
            if asked.kinds and 4 in asked.kinds:
                raise Denied("restricted: private messages are not for you")
            return asked._replace(since=max(asked.since, 1_700_000_005))

        def write(self, peer: Peer, event: Any) -> None:
            if event.kind == 1984:
                raise Denied("blocked: no reports here")

    async with relay_with(tmp_path, 20, Careful()) as relay, connect(relay.url) as client:
        for asked in ({}, {"kinds": [1]}, {"authors": [pubkey(0)]}):
            shown = await stored(client, asked)
            assert len(shown) == 15
            assert (await reconcile(client, NOTHING, asked))[0] == sorted(shown)
        await say(client, "REQ", "x", {"kinds": [4]})
        assert await hear(client) == ["CLOSED", "x", "restricted: private messages are not for you"]
        _, session = await reconcile(client, NOTHING, {"kinds": [4]})
        assert session.refusal.kind == "policy"
        report = signed(1, 1984)
        assert await publish(client, report) == {report["id"]: [False, "blocked: no reports here"]}


@asynchronous
async def test_http_says_what_is_true(tmp_path: Path) -> None:
    def get(relay: Relay, path: str = "/", accept: str = "application/nostr+json") -> bytes:
        request = urllib.request.Request(relay.url.replace("ws", "http") + path, headers={"Accept": accept})
        with urllib.request.urlopen(request, timeout=10) as response:
            assert response.headers["Access-Control-Allow-Origin"] == "*"
            body: bytes = response.read()
        return body

    limits = Limits(items=5, sessions=7)
    async with relay_with(tmp_path, 6, name="mine", contact="me@example.com", neg_limits=limits) as relay:
        document = json.loads(await asyncio.to_thread(get, relay))
        assert (document["name"], document["contact"], 77 in document["supported_nips"]) == (
            "mine",
            "me@example.com",
            True,
        )
        assert document["limitation"]["max_message_length"] == relay.settings.max_message
        async with connect(relay.url) as client:
            need, _ = await reconcile(client, NOTHING, {})
            assert len(need) == 6
            _, session = await reconcile(client, NOTHING, {"kinds": [1]})
            assert session.refusal == ("size", "blocked: too many query results", 5)
            await publish(client, signed(100))
        page = (await asyncio.to_thread(get, relay, "/metrics", "*/*")).decode()
        assert 'negvec_events_total{outcome="new"} 1.0' in page
        assert "negvec_events_stored 7.0" in page
        assert "negvec_neg_rounds_total 1.0" in page
    async with relay_with(tmp_path, negentropy=False) as relay, connect(relay.url) as client:
        document = json.loads(await asyncio.to_thread(get, relay))
        assert 77 not in document["supported_nips"]
        assert "negentropy" not in document
        _, session = await reconcile(client, NOTHING, {})
        assert session.refusal.kind == "unsupported"


@pytest.mark.parametrize("compressed", [False, True])
@asynchronous
async def test_neg_frames_are_compressed_only_when_asked_for(tmp_path: Path, compressed: bool) -> None:
    async with relay_with(tmp_path, 300, compress_negentropy=compressed) as relay, connect(relay.url) as client:
        assert client.protocol.extensions, "compression was negotiated"
        bare = []
        decode = client.protocol.extensions[0].decode

        def watching(frame: Any, **options: Any) -> Any:
            bare.append((frame.rsv1, bytes(frame.data[:5])))
            return decode(frame, **options)

        client.protocol.extensions[0].decode = watching  # type: ignore[method-assign]
        assert len((await reconcile(client, NOTHING, {}))[0]) == 300
        assert all(rsv1 == compressed for rsv1, _ in bare)
        bare.clear()
        assert len(await stored(client, {"limit": 5})) == 5
        assert all(rsv1 for rsv1, _ in bare), "all else is compressed"


@asynchronous
async def test_a_client_that_never_reads_is_cut_off_and_others_are_served(tmp_path: Path) -> None:
    async with (
        relay_with(tmp_path, send_queue=50, send_timeout=1.0) as relay,
        connect(relay.url, max_queue=1, compression=None, close_timeout=0.1) as deaf,
        connect(relay.url) as client,
    ):
        deaf.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        await say(deaf, "REQ", "live", {})
        await asyncio.sleep(0.1)
        deaf.transport.pause_reading()
        for k in range(150):
            await publish(client, signed(k, content="x" * 60_000))
        for _ in range(100):
            if len(relay.connections) == 1:
                break
            await asyncio.sleep(0.1)
        assert len(relay.connections) == 1
        assert len(await stored(client, {"limit": 3})) == 3


@asynchronous
async def test_a_client_that_leaves_with_answers_queued_leaves_nothing_behind(tmp_path: Path) -> None:
    async with relay_with(tmp_path, 300, send_queue=20, max_connections=2) as relay:
        for _ in range(4):
            client = await connect(relay.url)
            for name in ("a", "b"):
                await say(client, "REQ", name, {})
            await client.recv()
            client.transport.abort()
            for _ in range(100):
                if not relay.connections:
                    break
                await asyncio.sleep(0.05)
            assert not relay.connections
        async with connect(relay.url) as client:
            assert len(await stored(client, {"limit": 3})) == 3


@asynchronous
async def test_unsigned_events_with_strange_expirations_stop_nobody(tmp_path: Path) -> None:
    async with relay_with(tmp_path) as relay, connect(relay.url) as client:
        strange = [signed(k, tags=[["expiration", "9" * 5000]]) | {"sig": "00" * 64} for k in range(10)]
        answers = await publish(client, *strange)
        assert [answer[0] for answer in answers.values()] == [False] * 10
        assert (await publish(client, signed(1)))[signed(1)["id"]] == [True, ""]


@asynchronous
async def test_too_many_messages_a_second_are_made_to_wait(tmp_path: Path) -> None:
    async with relay_with(tmp_path, messages_per_second=20.0) as relay, connect(relay.url) as client:
        loop = asyncio.get_running_loop()
        started = loop.time()
        for _ in range(220):
            await say(client, "CLOSE", "x")
        assert await stored(client, {"limit": 0}) == []
        assert loop.time() - started > 0.9


@asynchronous
async def test_a_hundred_connections_reconcile_while_events_stream_in(tmp_path: Path) -> None:
    """Each result is a set that the relay had: a whole number of batches, since one is committed at a time."""
    async with relay_with(tmp_path, 500) as relay:
        stop = asyncio.Event()

        async def stream() -> int:
            count = 500
            async with connect(relay.url) as client:
                while not stop.is_set():
                    await publish(client, *(signed(k) for k in range(count, count + 10)))
                    count += 10
            return count

        async def one(name: int) -> int:
            async with connect(relay.url) as client:
                need, session = await reconcile(client, NOTHING, {"kinds": [1]} if name % 2 else {}, f"n{name}")
                assert session.refusal is None
                numbers = {id: k for k, id in enumerate(known)}
                found = sorted(numbers[id] for id in need)
                # Events of a batch may be committed in any order, so only its last ten may be in part.
                assert found[: len(found) - 10] == list(range(len(found) - 10))
                return len(found)

        known = [signed(k)["id"] for k in range(3000)]
        streaming = asyncio.create_task(stream())
        sizes = await asyncio.gather(*(one(k) for k in range(100)))
        stop.set()
        assert min(sizes) >= 500
        assert max(sizes) <= await streaming


COMPILED_LATE = """
import asyncio, json, sys
from websockets.asyncio.client import connect
from negvec.relay import EventStore, serve

def kernels():
    return {name for name in sys.modules if name.startswith("negvec.kernels.")}

async def main():
    store = EventStore(sys.argv[1])
    async with serve(store, port=0) as relay, connect(relay.url) as client:
        before = kernels()
        frames = [["EVENT", event] for event in json.loads(sys.argv[2])]
        for frame in (*frames, ["NEG-OPEN", "n", {}, "6100000200"]):
            await client.send(json.dumps(frame))
            print(await client.recv(), file=sys.stderr)
    store.close()
    print(len(store), sorted(kernels() - before))

asyncio.run(main())
"""


def test_no_first_client_waits_for_a_compiler(tmp_path: Path) -> None:
    events = [signed(3), signed(1), signed(2), signed(3, 0), signed(4, 0), signed(5, 5, [["e", signed(1)["id"]]])]
    command = [sys.executable, "-c", COMPILED_LATE, str(tmp_path / "a.db"), json.dumps(events)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.stdout == "4 []\n", done.stderr


def test_what_got_its_ok_is_there_after_kill_9(tmp_path: Path) -> None:
    async def publish_until_killed(url: str, process: Any) -> list[str]:
        accepted: list[str] = []
        async with connect(url) as client:
            asyncio.get_running_loop().call_later(1.0, process.send_signal, signal.SIGKILL)
            with pytest.raises(ConnectionClosed):  # noqa: PT012
                for k in range(0, 100_000, 20):
                    for event in (signed(k + more) for more in range(20)):
                        await say(client, "EVENT", event)
                    for _ in range(20):
                        message = await hear(client)
                        assert message[2] is True
                        accepted.append(message[1])
        return accepted

    async def all_stored(url: str) -> set[str]:
        async with connect(url, max_size=None) as client:
            return set((await reconcile(client, NOTHING, {}))[0])

    path = tmp_path / "killed.db"
    with relay_process(path) as (url, process):
        accepted = asyncio.run(publish_until_killed(url, process))
        process.wait()
    assert len(accepted) > 20
    with relay_process(path) as (url, process):
        assert set(accepted) <= asyncio.run(all_stored(url))
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0, "it ends cleanly"


@asynchronous
async def test_an_id_that_is_no_string_is_refused_however_deep_it_is(tmp_path: Path) -> None:
    async with relay_with(tmp_path) as relay, connect(relay.url) as client:
        for id in (b"[" * 1000 + b"]" * 1000, b'{"a":1}', b"5"):
            await client.send(b'["EVENT",{"id":' + id + b"}]", text=True)
            assert await hear(client) == ["OK", "", False, "invalid: the event has no pubkey"]
