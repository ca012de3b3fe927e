"""One sync: windows of time reconciled one after another, while what they show is brought over.

A reader task takes all that the relay says, and gives it to whom it is for; what goes out has its own bounds (see
`transfer`). The reader never waits until something is sent: a relay that is sending itself may not read meanwhile, and
each would wait for the other. What it has to say goes out through a task of its own, besides the uploads. An id is
fetched once in a run, whatever window shows it.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import orjson
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidProxy, InvalidURI

from negvec.client.address import connecting
from negvec.client.information import Information
from negvec.client.report import Report
from negvec.client.transfer import Downloads, Uploads
from negvec.client.windows import EVERYTHING, Window, cut
from negvec.nip77 import ClientSession, Refusal
from negvec.nip77.client import DEFAULT_FRAME_SIZE, legible
from negvec.protocol import AdaptivePolicy
from negvec.relay import filters
from negvec.relay.filters import Filter
from negvec.relay.store import EventStore
from negvec.storage.seam import Storage

logger = logging.getLogger("negvec.client")

DIRECTIONS = ("down", "up", "both", "none")

MOST_WINDOWS = 4096  # of one sync; a relay that finds every one too large is not asked for ever
PAGE = 500  # events of a REQ where there is no negentropy
MOST_PAGES = 100_000  # of a window: fifty million events
MOST_PAGE = 32_000  # of a single second; relays give less
MOST_PAGE_BYTES = 256 << 20  # of one answer, which is held until its end
MOST_ANSWERS = 64  # that wait to be sent; a relay that reads them leaves no more than four requests and a session's

Progress = Callable[[Report], None]


class SyncError(Exception):
    """A sync that could not be done: no connection, or the relay refused or fell silent; the message says why."""


async def sync(
    url: str,
    store: EventStore,
    subscription_filter: dict[str, Any] | None = None,
    *,
    direction: str = "down",
    frame_size_limit: int | None = None,
    idle_seconds: float = 30.0,
    progress: Progress | None = None,
) -> Report:
    """Sync a store with a relay.

    Parameters
    ----------
    url : str
        ws:// or wss://.
    store : EventStore
    subscription_filter : dict, optional
        What to sync (NIP-01); everything by default. It has no limit.
    direction : str
        "down" fetches what the store lacks, "up" sends what the relay lacks, "both" does, "none" only finds it.
    frame_size_limit : int, optional
        Bytes of the largest message to send, before hex; by default 60,000, or more where the relay's NIP-11 document
        allows it.
    idle_seconds : float
        How long the relay may say nothing that belongs to this, before it is given up.
    progress : callable, optional
        Called with the report as it grows.

    Returns
    -------
    Report

    Raises
    ------
    SyncError
        There is no connection, or the relay refuses all of it.
    ValueError
        The filter, the direction or the limit is none.
    TypeError
        The store is none.

    Examples
    --------
    ::

        store = negvec.relay.EventStore("mine.db")
        report = asyncio.run(negvec.client.sync("ws://127.0.0.1:7777", store, {"kinds": [1]}))
        store.close()
    """
    if direction not in DIRECTIONS:
        raise ValueError(f"direction is one of {', '.join(DIRECTIONS)}, not {direction!r}")
    if not isinstance(store, EventStore):
        raise TypeError(f"store is an EventStore, such as EventStore('events.db'), not {type(store).__name__}")
    given = dict(subscription_filter or {})
    if "limit" in given:
        raise ValueError("a set has no limit: take it out of the filter")
    asked = filters.parse(given)
    if not url.startswith(("ws://", "wss://")):
        raise SyncError(f"{url}: a relay's URL begins with ws:// or wss://")
    started = time.perf_counter()
    try:
        async with connecting(url, idle_seconds) as socket:
            parts = socket, Information(url), store
            run = _Sync(*parts, given, asked, direction, frame_size_limit, idle_seconds, progress)
            try:
                await run.run()
            finally:
                await run.close()
            run.report.seconds = time.perf_counter() - started
    except (OSError, InvalidURI, InvalidProxy, InvalidHandshake, TimeoutError) as error:
        raise SyncError(f"{url}: {_told(url, error)}") from error
    except ConnectionClosed as error:
        raise SyncError(f"{url}: the relay ended the connection: {error}") from error
    return run.report


def _told(url: str, error: Exception) -> str:
    """Why there is no connection; what a TLS handshake ends with where nobody speaks TLS has no words of its own."""
    told = str(error) or type(error).__name__
    broken_off = isinstance(error, (EOFError, ConnectionError)) and not isinstance(error, ConnectionRefusedError)
    return f"{told}: no TLS there, as it seems; is it ws://?" if broken_off and url.startswith("wss://") else told


class _Sync:
    def __init__(
        self,
        socket: ClientConnection,
        information: Information,
        store: EventStore,
        given: dict[str, Any],
        asked: Filter,
        direction: str,
        frame_size: int | None,
        idle_seconds: float,
        progress: Progress | None,
    ) -> None:
        self._socket, self._information = socket, information
        self._store, self._given, self._asked = store, given, asked
        self._direction, self._frame_size, self._idle_seconds = direction, frame_size, idle_seconds
        self._progress = progress
        self.report = Report()
        self._answers: asyncio.Queue[bytes | bytearray] = asyncio.Queue(MOST_ANSWERS)
        self._downloads = Downloads(store, asked, self.report, self._answer)
        self._uploads = Uploads(store, self.report, self._send)
        self._session: ClientSession | None = None
        self._page: list[dict[str, Any]] | None = None
        self._page_name = ""
        self._page_bytes = 0
        self._page_closed: str | None = None  # the relay's words, where it would not give the page
        self._needed: set[bytes] = set()
        self._had: set[bytes] = set()
        self._heard = time.monotonic()
        self._turn = asyncio.Event()  # set whenever a session or page gets further
        self._prefix = secrets.token_hex(4)  # no session of another run, or relay, has these ids
        self._names = 0

    async def run(self) -> None:
        reader, sender = asyncio.create_task(self._read()), asyncio.create_task(self._send_answers())
        work = asyncio.create_task(self._work())
        try:
            while not work.done():
                await asyncio.wait({reader, sender, work}, timeout=0.5, return_when=asyncio.FIRST_COMPLETED)
                for task in (reader, sender):
                    if task.done() and not work.done():
                        await task  # raises what ended it
                        return
                if time.monotonic() - self._heard > self._idle_seconds and not work.done():
                    raise SyncError(f"the relay said nothing of this for {self._idle_seconds:g} seconds")
            await work
        finally:
            for task in (reader, sender, work):
                task.cancel()
            await asyncio.gather(reader, sender, work, return_exceptions=True)

    async def close(self) -> None:
        await self._downloads.close()

    async def _send(self, frame: bytes | bytearray) -> None:
        await self._socket.send(frame, text=True)

    def _answer(self, frame: bytes | bytearray) -> None:
        """Have a frame sent, without waiting for it."""
        try:
            self._answers.put_nowait(frame)
        except asyncio.QueueFull:
            raise SyncError("the relay goes on talking, and does not read what it is answered") from None

    async def _send_answers(self) -> None:
        while True:
            await self._send(await self._answers.get())

    # ---- what the relay says

    async def _read(self) -> None:
        while True:
            message = await self._socket.recv(decode=False)
            if b'"NEG-' in message[:16]:
                await self._hear_session(message)
                continue
            try:
                elements = orjson.loads(message)
            except orjson.JSONDecodeError:
                logger.debug("the relay sent what is no JSON")
                continue
            if not isinstance(elements, list) or not elements:
                continue
            label, *rest = elements
            if label in ("EVENT", "EOSE", "CLOSED") and self._page is not None and rest[:1] == [self._page_name]:
                self._hear_page(label, rest, len(message))
            elif label in ("EVENT", "EOSE", "CLOSED") and _is_get(rest[:1]):
                if await self._downloads.hear(label, rest):
                    self._heard = time.monotonic()
                    self._downloads.ask()
            elif label == "OK":
                if self._uploads.hear(rest):
                    self._heard = time.monotonic()
            elif label in ("NOTICE", "CLOSED"):
                logger.info("the relay says: %s", legible(rest[-1]) if rest and isinstance(rest[-1], str) else "")
                await self._hear_session(message)
            self._tell()

    async def _hear_session(self, message: bytes) -> None:
        session = self._session
        if session is None:
            return
        before = session.rounds, session.over
        frames = session.receive_at_once(message, time.monotonic())
        if frames is None:
            if self._frame_size is None:  # from here on, messages may be long
                self._frame_size = await self._information.frame_size()
                session.limit_frames(self._frame_size)
            frames = await asyncio.to_thread(session.receive, message, time.monotonic())
        for frame in frames:
            self._answer(frame)
        if (session.rounds, session.over) != before:
            self._heard = time.monotonic()
            have, need = session.take()
            self._found([row.tobytes() for row in have], [row.tobytes() for row in need])
            if self._direction in ("down", "both"):
                self._downloads.ask()
            self._turn.set()

    def _found(self, have: list[bytes], need: list[bytes]) -> None:
        fresh_need = [id for id in need if id not in self._needed]
        fresh_have = [id for id in have if id not in self._had]
        self._needed.update(fresh_need)
        self._had.update(fresh_have)
        self.report.need += fresh_need
        self.report.have += fresh_have
        if self._direction in ("down", "both"):
            self._downloads.want(fresh_need)
        if self._direction in ("up", "both"):
            self._uploads.offer(fresh_have)

    def _tell(self) -> None:
        if self._progress is not None:
            self._progress(self.report)

    # ---- what is asked of it

    async def _work(self) -> None:
        since, until = self._asked.since, self._asked.until
        windows = [Window(max(since, EVERYTHING.since), min(until, EVERYTHING.until))]
        while windows:
            if self.report.windows + self.report.paged > MOST_WINDOWS:
                raise SyncError(f"the relay finds even the {MOST_WINDOWS}th part of it too large; narrow the filter")
            window = windows.pop()
            refusal = await self._reconcile(window)
            if refusal is None:
                continue
            self.report.refusals.append(refusal)
            logger.info("refused since=%d until=%d kind=%s: %s", *window, refusal.kind, legible(refusal.reason))
            if refusal.kind == "size":
                pieces = cut(window, refusal, self._own(window))
                if not pieces:
                    await self._page_through(window)
                windows += reversed(pieces)
            elif refusal.kind == "unsupported":
                await self._page_through(window)
            else:
                raise SyncError(f"the relay refuses ({refusal.kind}): {legible(refusal.reason)}")
        await self._downloads.finish()
        await self._uploads.finish()
        self._tell()

    def _filter_of(self, window: Window) -> dict[str, Any]:
        bounds: dict[str, Any] = {}
        if window.since > EVERYTHING.since:
            bounds["since"] = window.since
        if window.until < EVERYTHING.until:
            bounds["until"] = window.until
        return {name: value for name, value in self._given.items() if name not in ("since", "until")} | bounds

    def _asked_of(self, window: Window) -> Filter:
        return self._asked._replace(since=window.since, until=window.until)

    def _own(self, window: Window) -> Storage:
        return self._store.storage(self._asked_of(window), 2**40)

    async def _reconcile(self, window: Window) -> Refusal | None:
        """Reconcile a window; returns why not, if not."""
        self.report.windows += 1
        self._names += 1
        own = self._store.ready(self._asked_of(window))
        if own is None:
            own = await asyncio.to_thread(self._own, window)
        name = f"neg-{self._prefix}-{self._names}"
        # Relays answer as the reference does, in frames of 500,000 bytes: half of the bytes and rounds, and less.
        policy = AdaptivePolicy()
        size = DEFAULT_FRAME_SIZE if self._frame_size is None else self._frame_size
        session = ClientSession(own, name, self._filter_of(window), size, policy=policy)
        self._session, self._heard = session, time.monotonic()
        self._turn.clear()
        await self._send(session.open(time.monotonic()))  # 16 ranges of a set that is sealed
        while not session.over:
            await self._turn.wait()
            self._turn.clear()
        self._session = None
        self.report.rounds += session.rounds
        self.report.bytes_up += session.bytes_up
        self.report.bytes_down += session.bytes_down
        if session.refusal is not None:
            return session.refusal
        await self._uploads.send()
        return None

    async def _page_through(self, window: Window) -> None:
        """Read all events of a window, the newest first, where the relay does not reconcile."""
        self.report.paged += 1
        own = await asyncio.to_thread(self._own, window)
        held = {bytes(id) for id in own.items(0, len(own))["id"]}
        missing = held.copy()
        seen: set[bytes] = set()
        until, limit, pages = window.until, PAGE, 0
        while until >= window.since:
            events = await self._one_page(self._filter_of(Window(window.since, until)) | {"limit": limit})
            fresh = {  # whatever else comes was not asked for
                bytes.fromhex(event["id"]): event
                for event in events
                if _has_id(event) and window.since <= event["created_at"] <= until
            }
            pages += 1
            if pages > MOST_PAGES:
                raise SyncError(f"the relay's pages do not end, after {MOST_PAGES} of them")
            if not fresh:
                break
            new = [id for id in fresh if id not in seen]
            seen.update(new)
            missing.difference_update(new)
            await self._take_page(fresh, [id for id in new if id not in held and id not in self._needed])
            oldest = min(event["created_at"] for event in fresh.values())
            if oldest < until:
                until, limit = oldest, PAGE  # once more, since events of the oldest second may have been cut off
            elif new and len(fresh) >= PAGE and limit < MOST_PAGE:
                limit *= 4  # a second with more events than a page
            else:
                largest = await self._information.largest_page()
                whole = largest is not None and len(fresh) < largest
                self.report.crowded += len(fresh) >= PAGE and not whole
                until, limit = oldest - 1, PAGE
        self._found(sorted(missing), [])

    async def _take_page(self, events: dict[bytes, dict[str, Any]], need: list[bytes]) -> None:
        self._needed.update(need)  # they have come: nothing is left to be asked for
        self.report.need += need
        if self._direction in ("down", "both"):
            for id in need:
                await self._downloads.store(events[id])

    async def _one_page(self, asked: dict[str, Any]) -> list[dict[str, Any]]:
        self._names += 1
        self._page, self._page_name = [], f"page-{self._prefix}-{self._names}"
        self._page_bytes, self._page_closed = 0, None
        self._turn.clear()
        self._heard = time.monotonic()
        await self._send(orjson.dumps(["REQ", self._page_name, asked]))
        await self._turn.wait()
        events, self._page = self._page, None
        if self._page_closed is not None:  # that is not the end of the events
            raise SyncError(f"the relay refuses to be read: {self._page_closed}")
        await self._send(orjson.dumps(["CLOSE", self._page_name]))
        return events

    def _hear_page(self, label: str, rest: list[Any], size: int) -> None:
        self._heard = time.monotonic()
        assert self._page is not None
        if label == "EVENT":
            self._page_bytes += size
            if self._page_bytes > MOST_PAGE_BYTES:
                raise SyncError(f"the relay's page does not end, after {MOST_PAGE_BYTES >> 20} MiB")
            self._page += [event for event in rest[1:2] if isinstance(event, dict)]
            return
        if label == "CLOSED":
            self._page_closed = legible(rest[1]) if len(rest) > 1 and isinstance(rest[1], str) else "closed"
        self._turn.set()


def _is_get(names: list[Any]) -> bool:
    return bool(names) and isinstance(names[0], str) and names[0].startswith("get")


def _has_id(event: dict[str, Any]) -> bool:
    with suppress(ValueError, TypeError, KeyError):
        return len(bytes.fromhex(event["id"])) == 32 and type(event["created_at"]) is int
    return False
