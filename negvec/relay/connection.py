"""One client of a relay: its messages answered in order, its subscriptions fed, its NEG sessions held.

All that goes out goes through `negvec.relay.outgoing`. Answers wait for room there, and with them the client's next
messages; an event of a live subscription does not wait: a client that reads so slowly that there is no room is cut off.
"""

from __future__ import annotations

import asyncio
import logging
import re
import sqlite3
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import orjson

from negvec.nip77 import Refused, ServerSessions, notice
from negvec.relay import filters
from negvec.relay.events import Event, InvalidEvent
from negvec.relay.filters import Filter, InvalidFilter
from negvec.relay.outgoing import Outgoing
from negvec.relay.policy import Denied, Peer
from negvec.relay.store import Outcome, QueryTimeout
from negvec.storage.seam import Storage

if TYPE_CHECKING:
    from websockets.asyncio.server import ServerConnection

    from negvec.relay.server import Relay

logger = logging.getLogger("negvec.relay")

LONGEST_SUBSCRIPTION = 64  # signs of a REQ's id (NIP-01)
PAGE_BYTES = 1 << 18  # of stored events that are read at once
_NEG_HEAD = re.compile(rb'[ \t\r\n]*\[[ \t\r\n]*"NEG-')  # others are JSON, and may turn out to be one of these too
_PACE_SECONDS = 10.0  # over which a client's messages are counted


class Connection:
    """A client's connection; `run` is its life."""

    def __init__(self, relay: Relay, socket: ServerConnection) -> None:
        self._relay, self._socket = relay, socket
        address = socket.remote_address[0] if socket.remote_address else "unknown"
        headers = dict(socket.request.headers.raw_items()) if socket.request else {}
        self.peer = Peer(address, {name.lower(): value for name, value in headers.items()})
        self.subscriptions: dict[str, list[Filter]] = {}
        self.sessions = ServerSessions(self._resolve, relay.settings.neg_limits, self._ready)
        self._outgoing = Outgoing(socket, relay.settings, self._cut_off)
        self._owed = 0  # events that have no OK yet
        self._negotiating = False
        self._credit, self._credited = relay.settings.messages_per_second * _PACE_SECONDS, time.monotonic()

    async def run(self) -> None:
        """Answer until the connection ends."""
        sender = asyncio.create_task(self._outgoing.run())
        try:
            while True:
                message = await self._socket.recv(decode=False)
                await self._pace()
                await self._take(message)
        finally:
            self.sessions.close()
            self.subscriptions.clear()
            sender.cancel()
            await asyncio.gather(sender, return_exceptions=True)

    def feed(self, event: Event) -> None:
        """Send an event to each live subscription that it matches."""
        for name, asked in list(self.subscriptions.items()):
            if any(each.matches(event) for each in asked):
                self._outgoing.offer(_event_frame(name, event.json))

    def expire_sessions(self, now: float) -> None:
        """Close NEG sessions that have been idle."""
        if self._negotiating:  # a thread is at them, and they are not idle
            return
        for frame in self.sessions.expire(now):
            self._outgoing.offer(frame)

    # ---- out

    def _cut_off(self, reason: str) -> None:
        logger.warning("connection cut off peer=%s reason=%s", self.peer.address, reason)
        self._relay.metrics.slow_readers.inc()

    async def _room(self) -> None:
        """Wait until the OKs that are owed and what waits to be sent leave half of the room free."""
        most = self._relay.settings.send_queue // 2
        while not self._outgoing.over and len(self._outgoing) + self._owed > most:
            await self._outgoing.sent()

    async def _say(self, *elements: Any) -> None:
        await self._outgoing.put(orjson.dumps(elements))

    # ---- in

    async def _pace(self) -> None:
        """Make a client wait that sends more than it may."""
        rate, now = self._relay.settings.messages_per_second, time.monotonic()
        self._credit = min(self._credit + rate * (now - self._credited), rate * _PACE_SECONDS) - 1
        self._credited = now
        if self._credit < 0:
            await asyncio.sleep(-self._credit / rate)

    async def _take(self, message: bytes) -> None:
        if _NEG_HEAD.match(message):
            await self._negotiate(message)
            return
        try:
            elements = orjson.loads(message)
        except orjson.JSONDecodeError as error:
            await self._outgoing.put(notice(f"ERROR: bad msg: it is no JSON: {error}"))
            return
        if not isinstance(elements, list) or not elements or not isinstance(elements[0], str):
            await self._outgoing.put(notice("ERROR: bad msg: a message is a JSON array with a label"))
            return
        label, *rest = elements
        if label == "EVENT":
            await self._event(rest)
        elif label == "REQ":
            await self._request(rest)
        elif label == "CLOSE":
            if rest and isinstance(rest[0], str):
                self.subscriptions.pop(rest[0], None)
        elif label.startswith("NEG-"):
            await self._negotiate(message)
        else:
            await self._outgoing.put(notice("ERROR: bad msg: unknown cmd"))

    async def _event(self, rest: list[Any]) -> None:
        if not rest or not isinstance(rest[0], dict):
            await self._outgoing.put(notice("ERROR: bad msg: EVENT has an event"))
            return
        given = rest[0]
        named = given["id"][:64] if isinstance(given.get("id"), str) else ""
        settings = self._relay.settings
        if isinstance(given.get("tags"), list) and len(given["tags"]) > settings.max_event_tags:
            await self._say("OK", named, False, f"invalid: more than {settings.max_event_tags} tags")
        elif isinstance(given.get("content"), str) and len(given["content"]) > settings.max_content:
            await self._say("OK", named, False, f"invalid: content of more than {settings.max_content} signs")
        else:
            await self._room()
            self._owed += 1
            await self._relay.ingest.submit(given, self._accept, partial(self._acknowledge, named))

    def _accept(self, event: Event) -> None:
        if event.created_at > time.time() + self._relay.settings.max_future:
            raise InvalidEvent("invalid: created_at is too far in the future")
        self._relay.policy.write(self.peer, event)

    def _acknowledge(self, named: str, outcome: Outcome) -> None:
        self._owed -= 1
        known = "known" if outcome.ok else "refused"
        self._relay.metrics.events.labels("new" if outcome.new else known).inc()
        self._outgoing.offer(orjson.dumps(["OK", named, outcome.ok, outcome.reason]))

    async def _request(self, rest: list[Any]) -> None:
        settings = self._relay.settings
        if not rest or not isinstance(rest[0], str) or not 0 < len(rest[0]) <= LONGEST_SUBSCRIPTION:
            await self._outgoing.put(notice(f"ERROR: bad req: a subscription id has 1 to {LONGEST_SUBSCRIPTION} signs"))
            return
        name, *given = rest
        self.subscriptions.pop(name, None)
        try:
            if len(self.subscriptions) >= settings.max_subscriptions:
                raise InvalidFilter(f"rate-limited: more than {settings.max_subscriptions} subscriptions")
            if not 0 < len(given) <= settings.max_filters:
                raise InvalidFilter(f"invalid: a REQ has 1 to {settings.max_filters} filters")
            asked = [self._readable(each) for each in given]
        except (InvalidFilter, Denied) as error:
            await self._say("CLOSED", name, str(error))
            return
        self.subscriptions[name] = asked  # before the stored ones: an event that comes meanwhile may come twice
        try:
            await self._show(name, asked)
        except (sqlite3.Error, QueryTimeout) as error:
            self.subscriptions.pop(name, None)
            await self._say("CLOSED", name, self._reason_of(error))
        else:
            await self._say("EOSE", name)

    async def _show(self, name: str, asked: list[Filter]) -> None:
        """Send what is stored, a page at a time: no more than that is held for a client that reads slowly."""
        run = partial(asyncio.get_running_loop().run_in_executor, self._relay.readers)
        keys = await run(self._stored_keys, asked)
        while keys:
            found, count = await run(self._page, keys)
            del keys[:count]
            for json in found:
                await self._outgoing.put(_event_frame(name, json))

    def _stored_keys(self, asked: list[Filter]) -> list[bytes]:
        store, settings = self._relay.store, self._relay.settings
        with store.query_limit(settings.query_seconds):
            return sorted({key for each in asked for key in store.keys(each, settings.max_limit)})  # in NIP-01's order

    def _page(self, keys: list[bytes]) -> tuple[list[bytes], int]:
        store = self._relay.store
        with store.query_limit(self._relay.settings.query_seconds):
            return store.page(keys, PAGE_BYTES)

    def _reason_of(self, error: Exception) -> str:
        """What a client is told whose query failed: never a part of the answer as if it were all."""
        if isinstance(error, QueryTimeout):
            logger.info("query cut short peer=%s: %s", self.peer.address, error)
            return f"blocked: this query is too big: it took longer than {self._relay.settings.query_seconds:g} seconds"
        logger.error("a query failed", exc_info=error)
        return "error: the store could not be read"

    def _readable(self, given: Any) -> Filter:
        """A filter as the policy lets it be read: REQ and NEG-OPEN alike."""
        asked = filters.parse(given, self._relay.settings.max_filter_values)
        return self._relay.policy.read(self.peer, asked)

    # ---- NIP-77

    async def _negotiate(self, message: bytes) -> None:
        if not self._relay.settings.negentropy:
            await self._outgoing.put(notice("ERROR: bad msg: negentropy disabled"))
            return
        started, rounds = time.perf_counter(), self.sessions.rounds
        frames = self.sessions.receive_at_once(message, time.monotonic())
        if frames is None:
            self._negotiating = True
            try:
                frames = await asyncio.get_running_loop().run_in_executor(
                    self._relay.readers, self.sessions.receive, message, time.monotonic()
                )
            finally:
                self._negotiating = False
        self._relay.metrics.neg_seconds.observe(time.perf_counter() - started)
        self._relay.metrics.neg_rounds.inc(self.sessions.rounds - rounds)
        for frame in frames:
            self._relay.metrics.neg_bytes.inc(len(frame))
            await self._outgoing.put(frame)

    def _ready(self, given: dict[str, Any], most: int) -> Storage | None:
        return self._relay.store.ready(self._negotiable(given))

    def _resolve(self, given: dict[str, Any], most: int) -> Storage:
        asked = self._negotiable(given)
        store = self._relay.store
        try:
            with store.query_limit(self._relay.settings.query_seconds):
                return store.storage(asked, most)
        except (sqlite3.Error, QueryTimeout) as error:
            raise Refused(self._reason_of(error)) from error

    def _negotiable(self, given: dict[str, Any]) -> Filter:
        try:
            return self._readable(given)
        except (InvalidFilter, Denied) as error:
            raise Refused(str(error)) from None


def _event_frame(name: str, json: bytes) -> bytes:
    return b'["EVENT",' + orjson.dumps(name) + b"," + json + b"]"
