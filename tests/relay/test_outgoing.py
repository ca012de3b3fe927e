"""What waits for one client: bounded, in order, and never waited for where nothing can be sent any more."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.asyncio.server import ServerConnection
from websockets.asyncio.server import serve as serve_websockets
from websockets.exceptions import ConnectionClosed

from negvec.relay import Settings
from negvec.relay.outgoing import Outgoing

from .test_relay import asynchronous

PIECE = bytes(100_000)
MANY = 200  # pieces: more than sockets and websockets hold between them


@asynccontextmanager
async def outgoing(faults: list[str], **settings: float) -> AsyncIterator[tuple[Outgoing, ClientConnection]]:
    """The relay's end of a connection, and the client that is to read."""
    ready: asyncio.Future[Outgoing] = asyncio.get_running_loop().create_future()

    async def serve(socket: ServerConnection) -> None:
        queue = Outgoing(socket, Settings(**settings), faults.append)  # type: ignore[arg-type]
        sender = asyncio.create_task(queue.run())
        ready.set_result(queue)
        await socket.wait_closed()
        sender.cancel()
        await asyncio.gather(sender, return_exceptions=True)

    async with (
        serve_websockets(serve, "127.0.0.1", 0, compression=None) as server,
        connect(
            f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}", compression=None, max_queue=1, close_timeout=0.1
        ) as client,
    ):
        yield await ready, client


async def put_many(queue: Outgoing, put: list[None]) -> None:
    for _ in range(MANY):
        await queue.put(PIECE)
        put.append(None)


@asynchronous
async def test_what_waits_is_bounded_in_bytes_and_half_of_the_room_is_for_what_can_not_wait() -> None:
    faults: list[str] = []
    async with outgoing(faults, send_queue_bytes=1_000_000) as (queue, client):
        client.transport.pause_reading()
        put: list[None] = []
        putting = asyncio.create_task(put_many(queue, put))
        before = -1
        while before != len(put):
            before = len(put)
            await asyncio.sleep(0.1)
        assert 0 < len(put) < MANY, "one is being sent, since nobody reads"
        for _ in range(4):
            queue.offer(PIECE)
        more = asyncio.create_task(queue.put(PIECE))
        await asyncio.sleep(0.05)
        assert (len(queue), more.done()) == (3, False), "half of the room is taken: two are being sent"
        for _ in range(5):
            queue.offer(PIECE)
        assert (len(queue), faults) == (8, [])
        queue.offer(b"short")
        assert (faults, queue.over) == (["slow-reader"], True)
        queue.offer(PIECE)
        await asyncio.wait_for(asyncio.gather(putting, more, return_exceptions=True), 5)
        assert (len(queue), faults) == (0, ["slow-reader"]), "it is cut off once, and nothing is kept or waited for"


@asynchronous
async def test_one_message_may_be_longer_than_the_room() -> None:
    async with outgoing([], send_queue_bytes=1000) as (queue, client):
        for _ in range(3):
            await queue.put(PIECE)
            queue.offer(PIECE)
            assert [len(await client.recv(decode=False)) for _ in range(2)] == [len(PIECE)] * 2


@asynchronous
async def test_all_of_it_comes_in_order_whichever_way_it_went_in() -> None:
    async with outgoing([], send_queue=8) as (queue, client):

        async def put() -> None:
            for number in range(0, 3000, 3):
                await queue.put(b"%d" % number)
                if len(queue) < 6:
                    queue.offer(b"%d" % (number + 1))
                    await asyncio.sleep(0)

        putting = asyncio.create_task(put())
        heard = []
        while not heard or heard[-1] < 2997:
            heard.append(int(await client.recv(decode=False)))
        await putting
        assert heard == sorted(heard)
        assert {number for number in heard if number % 3 == 0} == set(range(0, 3000, 3))


@asynchronous
async def test_who_does_not_take_a_message_in_time_is_cut_off() -> None:
    faults: list[str] = []
    async with outgoing(faults, send_timeout=0.2) as (queue, client):
        client.transport.pause_reading()
        await put_many(queue, [])
        assert faults == ["send-timeout"]
        client.transport.resume_reading()
        with pytest.raises(ConnectionClosed):  # noqa: PT012
            for _ in range(MANY):
                await client.recv()
