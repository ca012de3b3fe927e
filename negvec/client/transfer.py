"""Events brought over once it is known which: downloads by id, uploads with their OKs, within bounds."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

import orjson

from negvec.client.report import Report
from negvec.nip77.client import legible
from negvec.relay.events import Event, InvalidEvent
from negvec.relay.filters import Filter
from negvec.relay.ingest import Ingest, storable
from negvec.relay.store import EventStore, Outcome

logger = logging.getLogger("negvec.client")

IDS_A_REQUEST = 250  # 17 KB; relays limit filters, and what they answer one with
REQUESTS_AT_ONCE = 4
UPLOADS_AT_ONCE = 200

Send = Callable[[bytes], Awaitable[None]]


class Downloads:
    """Asks for needed events by their ids, and stores those that the filter is for; each id is asked for once."""

    def __init__(self, store: EventStore, asked: Filter, report: Report, say: Callable[[bytes], None]) -> None:
        self._store, self._filter, self._report, self._say = store, asked, report, say
        self._ingest: Ingest | None = None  # as soon as there is something to store
        self._asked: set[bytes] = set()
        self._waiting: deque[bytes] = deque()
        self._open: dict[str, set[bytes]] = {}  # ids of each request that have not come
        self._requests = self._storing = 0
        self._changed = asyncio.Event()

    def want(self, ids: list[bytes]) -> None:
        """Add ids to what is to be asked for, unless they were before."""
        fresh = [id for id in ids if id not in self._asked]
        self._asked.update(fresh)
        self._waiting.extend(fresh)

    def ask(self, whole: bool = False) -> None:
        """Send the requests for which there is room; a last one of a few ids only if `whole`."""
        while self._waiting and len(self._open) < REQUESTS_AT_ONCE:
            if len(self._waiting) < IDS_A_REQUEST and not whole:
                return
            ids = [self._waiting.popleft() for _ in range(min(IDS_A_REQUEST, len(self._waiting)))]
            self._requests += 1
            name = f"get{self._requests}"
            self._open[name] = set(ids)
            self._say(orjson.dumps(["REQ", name, {"ids": [id.hex() for id in ids]}]))

    async def hear(self, label: str, rest: list[Any]) -> bool:
        """Take an EVENT, EOSE or CLOSED; whether it was of a request that is open."""
        name = rest[0] if rest and isinstance(rest[0], str) else ""
        left = self._open.get(name)
        if left is None:
            return False
        if label == "EVENT":
            return await self._take(rest[1] if len(rest) > 1 else None, left)
        del self._open[name]
        self._report.withheld += len(left)
        if label == "EOSE":
            self._say(orjson.dumps(["CLOSE", name]))
        self._changed.set()
        return True

    async def _take(self, given: Any, left: set[bytes]) -> bool:
        id = given.get("id") if isinstance(given, dict) else None
        wanted = bytes.fromhex(id) if isinstance(id, str) and _is_id(id) else b""
        if wanted not in left:  # what was not asked for is not stored
            return False
        left.discard(wanted)
        await self.store(given)
        return True

    async def store(self, given: Any) -> None:
        """Check and store an event.

        Raises
        ------
        OSError
            The store could not be written, now or before.
        """
        if self._ingest is None:
            self._ingest = Ingest(self._store, lambda event: None)
        self._check()
        self._storing += 1
        await self._ingest.submit(given, self._accept, self._stored)

    def _accept(self, event: Event) -> None:
        storable(event)
        if not self._filter.matches(event):  # whatever the relay says, that is not what is synced
            raise InvalidEvent("invalid: the filter does not ask for this event")

    def _check(self) -> None:
        if self._ingest is not None and self._ingest.failure is not None:
            raise self._ingest.failure

    def _stored(self, outcome: Outcome) -> None:
        self._storing -= 1
        if outcome.new:
            self._report.downloaded += 1
        elif not outcome.ok:
            self._report.unwanted += 1
        self._changed.set()

    @property
    def idle(self) -> bool:
        """Whether nothing is waited for."""
        return not (self._waiting or self._open or self._storing)

    async def finish(self) -> None:
        """Ask for the rest, and wait until all of it is stored."""
        while not self.idle:
            self.ask(whole=True)
            self._changed.clear()
            if not self.idle:
                await self._changed.wait()
            self._check()

    async def close(self) -> None:
        """Store what has come."""
        if self._ingest is not None:
            await self._ingest.close()


def _is_id(text: str) -> bool:
    return len(text) == 64 and all(sign in "0123456789abcdef" for sign in text)


class Uploads:
    """Sends events that the relay lacks, so many at once as its OKs keep up with."""

    def __init__(self, store: EventStore, report: Report, send: Send) -> None:
        self._store, self._report, self._send = store, report, send
        self._waiting: deque[bytes] = deque()
        self._unanswered: set[str] = set()
        self._changed = asyncio.Event()

    def offer(self, ids: list[bytes]) -> None:
        """Add ids to what is to be sent."""
        self._waiting.extend(ids)

    async def send(self) -> None:
        """Send the events for which there is room."""
        while self._waiting and len(self._unanswered) < UPLOADS_AT_ONCE:
            room = min(UPLOADS_AT_ONCE - len(self._unanswered), len(self._waiting))
            ids = [self._waiting.popleft() for _ in range(room)]
            for id, json in await asyncio.to_thread(self._store.events, ids):
                self._unanswered.add(id.hex())
                await self._send(b'["EVENT",' + json + b"]")

    def hear(self, rest: list[Any]) -> bool:
        """Take an OK; whether it was one that was waited for."""
        if len(rest) < 2 or not isinstance(rest[0], str) or rest[0] not in self._unanswered:
            return False
        self._unanswered.discard(rest[0])
        if rest[1] is True:
            self._report.uploaded += 1
        else:
            self._report.rejected += 1
            reason = rest[2] if len(rest) > 2 and isinstance(rest[2], str) else ""
            logger.info("the relay did not take event %s: %s", rest[0], legible(reason) or "no reason given")
        self._changed.set()
        return True

    async def finish(self) -> None:
        """Send the rest, and wait for every OK."""
        while self._waiting or self._unanswered:
            await self.send()
            self._changed.clear()
            if self._unanswered:
                await self._changed.wait()
