"""`negvec profile` over a websocket of this machine: both ends in one process, and each in its own.

What a side's stages do not account for of the time from a frame sent to its answer received is "socket": sending,
waking and receiving of both, and, with two processes, how long they wait for one another.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import time
from contextlib import asynccontextmanager
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import TYPE_CHECKING, Any

from websockets.asyncio.client import connect
from websockets.asyncio.server import serve

import negvec
from negvec.cli.profile import FRAME_STAGES, Cost, StageClock, Workload
from negvec.nip77 import NegMsg, neg_msg, read

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from negvec.cli.profile import Layer

STAGES = (*FRAME_STAGES, "socket")
_NAME = "profile"


class _Responder:
    """The responder at a socket; after each reconciliation it is asked for its clock."""

    def __init__(self, storage: negvec.Storage, limit: int) -> None:
        self._storage, self._limit = storage, limit
        self.port = 0

    async def _serve(self, socket: Any) -> None:
        clock = StageClock(STAGES)
        responder = clock.measure(lambda: negvec.Negentropy(self._storage, self._limit, watch=clock))
        async for frame in socket:
            if frame == "clock":
                await socket.send(json.dumps(clock.seconds))
                continue
            found = clock.measure(read, frame, stage="read frame")
            answer = clock.measure(responder.reconcile, found.message).message
            await socket.send(clock.measure(neg_msg, _NAME, answer, stage="write frame"), text=True)

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[int]:
        async with serve(self._serve, "127.0.0.1", 0, compression=None, max_size=None) as server:
            yield next(iter(server.sockets)).getsockname()[1]


async def _ask(work: Workload, port: int) -> Cost:
    """The initiator at a socket."""
    clock = StageClock(STAGES)
    async with connect(f"ws://127.0.0.1:{port}", compression=None, max_size=None) as socket:
        initiator = clock.measure(lambda: negvec.Negentropy(work.ours, work.initiator_limit, watch=clock))
        message: bytes | None = clock.measure(initiator.initiate)
        rounds = up = down = 0
        waited = 0.0
        while message is not None:
            frame = clock.measure(neg_msg, _NAME, message, stage="write frame")
            started = time.perf_counter()
            await socket.send(frame, text=True)
            received = await socket.recv(decode=False)
            waited += time.perf_counter() - started
            found = clock.measure(read, received, stage="read frame")
            assert isinstance(found, NegMsg)
            rounds, up, down = rounds + 1, up + len(message), down + len(found.message)
            step: negvec.Step = clock.measure(initiator.reconcile, found.message)
            message = step.message
        await socket.send("clock")
        answering: dict[str, float] = json.loads(await socket.recv())
    clock.seconds["socket"] = max(waited - sum(answering.values()), 0.0)
    return Cost(clock.seconds, answering, rounds, up, down, len(step.have), len(step.need))


def one_process(work: Workload) -> Cost:
    """Both ends in this process."""

    async def run() -> Cost:
        async with _Responder(work.theirs, work.responder_limit).listening() as port:
            return await _ask(work, port)

    return asyncio.run(run())


def two_processes(work: Workload) -> Cost:
    """The responder in a process of its own, which stays for the next run of the same work."""
    key = id(work.theirs)
    if key not in _ports:
        ours, theirs = multiprocessing.Pipe()
        items = work.theirs.items(0, len(work.theirs))
        for _, _, other in _ports.values():
            other.terminate()
        _ports.clear()
        context = multiprocessing.get_context("spawn")
        process = context.Process(target=_respond, args=(theirs, items, work.responder_limit), daemon=True)
        process.start()
        _ports[key] = ours.recv(), work.theirs, process  # the storage is kept, so that no other has its identity
    return asyncio.run(_ask(work, _ports[key][0]))


_ports: dict[int, tuple[int, negvec.Storage, BaseProcess]] = {}


def _respond(pipe: Connection, items: Any, limit: int) -> None:
    async def run() -> None:
        async with _Responder(negvec.seal(items), limit).listening() as port:
            pipe.send(port)
            await asyncio.Event().wait()

    asyncio.run(run())


LAYERS: dict[str, Layer] = {"websocket, one process": one_process, "websocket, two processes": two_processes}
