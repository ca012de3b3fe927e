"""The relay itself: a websocket server, what it says over HTTP, and its clean end."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any

import orjson
from websockets.asyncio.server import Server, ServerConnection
from websockets.asyncio.server import serve as serve_websockets
from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosed
from websockets.extensions.permessage_deflate import ServerPerMessageDeflateFactory
from websockets.http11 import Request, Response

import negvec
from negvec import kernels
from negvec.relay.compression import SparingDeflateFactory
from negvec.relay.connection import LONGEST_SUBSCRIPTION, Connection
from negvec.relay.events import Event
from negvec.relay.ingest import Ingest
from negvec.relay.metrics import Metrics
from negvec.relay.policy import Policy
from negvec.relay.settings import Settings
from negvec.relay.store import KERNELS, EventStore

logger = logging.getLogger("negvec.relay")

HOUSEKEEPING_SECONDS = 1.0
COMPRESSION = {"level": 1, "memLevel": 5}  # zlib: most of the gain at a fraction of the time


class Relay:
    """What the connections of a relay share.

    Attributes
    ----------
    store : EventStore
    settings : Settings
    policy : Policy
    metrics : Metrics
    connections : set of Connection
    url : str
        Where it listens; the port is the one that the system gave if none was asked for.
    """

    def __init__(self, store: EventStore, settings: Settings, policy: Policy) -> None:
        self.store, self.settings, self.policy = store, settings, policy
        self.metrics = Metrics()
        self.connections: set[Connection] = set()
        self.readers = ThreadPoolExecutor(max(4, os.cpu_count() or 1), thread_name_prefix="negvec-read")
        self.ingest = Ingest(store, self._spread)
        self.url = ""

    async def serve(self, socket: ServerConnection) -> None:
        """Serve one connection to its end."""
        if len(self.connections) >= self.settings.max_connections:
            self.metrics.turned_away.inc()
            await socket.close(1013, "too many connections")
            return
        connection = Connection(self, socket)
        self.connections.add(connection)
        self.metrics.connections.set(len(self.connections))
        logger.info("connection opened peer=%s", connection.peer.address)
        try:
            await connection.run()
        except ConnectionClosed as closed:
            logger.debug("connection ended: %s", closed)
        finally:
            self.connections.discard(connection)
            self.metrics.connections.set(len(self.connections))
            logger.info("connection closed peer=%s", connection.peer.address)

    def over_http(self, socket: ServerConnection, request: Request) -> Response | None:
        """Answer what is no websocket: NIP-11, and `/metrics`."""
        if request.headers.get("Upgrade", "").lower() == "websocket":
            return None
        if request.path.split("?")[0] == "/metrics":
            self.metrics.stored.set(len(self.store))
            return _page(self.metrics.page(), "text/plain; version=0.0.4; charset=utf-8")
        if "application/nostr+json" in request.headers.get("Accept", ""):
            return _page(orjson.dumps(self.information()), "application/nostr+json")
        return _page(b"This is a Nostr relay; it speaks websocket.\n", "text/plain; charset=utf-8")

    def information(self) -> dict[str, Any]:
        """What is true of this relay (NIP-11)."""
        settings = self.settings
        document: dict[str, Any] = {
            "name": settings.name,
            "description": settings.description,
            "supported_nips": [1, 9, 11, 40, *([77] if settings.negentropy else [])],
            "software": "negvec",
            "version": negvec.__version__,
            "limitation": {
                "max_message_length": settings.max_message,
                "max_subscriptions": settings.max_subscriptions,
                "max_filters": settings.max_filters,
                "max_limit": settings.max_limit,
                "max_subid_length": LONGEST_SUBSCRIPTION,
                "max_event_tags": settings.max_event_tags,
                "max_content_length": settings.max_content,
                "created_at_upper_limit": settings.max_future,
                "auth_required": False,
                "payment_required": False,
            },
        }
        if settings.negentropy:
            document["negentropy"] = 1
            document["limitation"]["max_neg_sessions"] = settings.neg_limits.sessions
            document["limitation"]["max_neg_items"] = settings.neg_limits.items
        return document | {name: value for name in ("contact", "pubkey") if (value := getattr(settings, name))}

    def _spread(self, event: Event) -> None:
        for connection in list(self.connections):
            connection.feed(event)

    async def _keep_house(self) -> None:
        """Remove what has expired, close what is idle."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(HOUSEKEEPING_SECONDS)
            try:
                await loop.run_in_executor(self.readers, self.store.expire_if_due)
                for connection in list(self.connections):
                    connection.expire_sessions(time.monotonic())
            except Exception:  # the next second is another one
                logger.exception("housekeeping failed")


@asynccontextmanager
async def serve(
    store: EventStore,
    host: str = "127.0.0.1",
    port: int = 7777,
    *,
    settings: Settings | None = None,
    policy: Policy | None = None,
) -> AsyncIterator[Relay]:
    """Run a relay for as long as the context lasts.

    Parameters
    ----------
    store : EventStore
        The caller closes it, afterwards.
    host : str
    port : int
        0 for any that is free; see `Relay.url`.
    settings : Settings, optional
    policy : Policy, optional

    Yields
    ------
    Relay
    """
    await asyncio.to_thread(kernels.load, (*kernels.ROUND, *KERNELS, "hex"))  # no first client waits for a compiler
    relay = Relay(store, settings or Settings(), policy or Policy())
    factory = ServerPerMessageDeflateFactory if relay.settings.compress_negentropy else SparingDeflateFactory
    server: Server = await serve_websockets(
        relay.serve,
        host,
        port,
        process_request=relay.over_http,
        compression=None,
        extensions=[factory(compress_settings=COMPRESSION)],
        max_size=relay.settings.max_message,
        server_header=None,
    )
    name, bound = next(iter(server.sockets)).getsockname()[:2]
    relay.url = f"ws://[{name}]:{bound}" if ":" in name else f"ws://{name}:{bound}"
    logger.info("relay listens url=%s events=%d", relay.url, len(store))
    housekeeping = asyncio.create_task(relay._keep_house())
    try:
        yield relay
    finally:
        housekeeping.cancel()
        server.close(code=1001, reason="the relay shuts down")
        await server.wait_closed()
        await relay.ingest.close()
        relay.readers.shutdown()
        logger.info("relay stopped url=%s events=%d", relay.url, len(store))


def _page(body: bytes, kind: str) -> Response:
    headers = Headers(
        {
            "Content-Type": kind,
            "Content-Length": str(len(body)),
            "Access-Control-Allow-Origin": "*",
            "Connection": "close",
        }
    )
    return Response(HTTPStatus.OK, "OK", headers, body)
