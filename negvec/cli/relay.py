"""`negvec relay`: a Nostr relay that reconciles."""

from __future__ import annotations

import asyncio
import gc
import signal
import socket
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any

import click

from negvec.cli.missing import missing
from negvec.cli.profile import checked_limit


@click.command()
@click.option("--store", "path", required=True, type=click.Path(dir_okay=False), help="The SQLite file of its events.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Where to listen; 0.0.0.0 is everywhere.")
@click.option("--port", type=click.IntRange(0, 65_535), default=7777, show_default=True, help="0 takes any free one.")
@click.option("--name", default="negvec", show_default=True, help="What it calls itself (NIP-11).")
@click.option("--negentropy/--no-negentropy", default=True, show_default=True, help="Whether NIP-77 is on.")
@click.option("--compress-negentropy", is_flag=True, help="Deflate NEG frames too: for slow links.")
@click.option("--max-connections", type=click.IntRange(1), default=1000, show_default=True)
@click.option("--max-message", type=click.IntRange(1024), default=1 << 20, show_default=True, help="Bytes.")
@click.option("--max-neg-items", type=click.IntRange(1), default=1_000_000, show_default=True, help="Of a filter.")
@click.option("--max-neg-sessions", type=click.IntRange(1), default=200, show_default=True, help="Of a connection.")
@click.option(
    "--query-seconds",
    type=click.FloatRange(0, min_open=True),
    default=10.0,
    show_default=True,
    help="How long one query may take, until the client is told that it is too big.",
)
@click.option(
    "--frame-size-limit",
    type=int,
    default=500_000,
    show_default=True,
    callback=checked_limit,
    help="Bytes of the largest NEG message, before hex; 0 for none, else 4096 or more.",
)
def relay(
    path: str,
    host: str,
    port: int,
    name: str,
    negentropy: bool,
    compress_negentropy: bool,
    max_connections: int,
    max_message: int,
    max_neg_items: int,
    max_neg_sessions: int,
    query_seconds: float,
    frame_size_limit: int,
) -> int:
    """Run a Nostr relay whose sets are always ready to be reconciled (NIP-77).

    Events are checked, stored in SQLite and there after a crash once they got their OK. It speaks NIP-01, 09, 11, 40
    and 77; GET /metrics is for Prometheus. Ctrl-C, or SIGTERM, ends it cleanly.

    \b
    Examples:
      negvec relay --store events.db
      negvec -v relay --store events.db --host 0.0.0.0 --port 80
      negvec sync ws://127.0.0.1:7777 --store mine.db
    """
    try:
        from negvec.relay import EventStore, Settings, serve
    except ImportError as error:
        raise missing("a relay", error) from None
    settings = Settings(
        name=name,
        negentropy=negentropy,
        compress_negentropy=compress_negentropy,
        max_connections=max_connections,
        max_message=max_message,
        query_seconds=query_seconds,
    )
    limits = replace(settings.neg_limits, items=max_neg_items, sessions=max_neg_sessions, frame_size=frame_size_limit)
    settings = replace(settings, neg_limits=limits)

    async def run() -> None:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            try:
                loop.add_signal_handler(number, stop.set)
            except NotImplementedError:  # Windows: Ctrl-C comes as KeyboardInterrupt
                break
        store = EventStore(path)
        try:
            async with serve(store, host, port, settings=settings) as running:
                gc.collect()
                gc.freeze()  # what a relay starts with, it keeps: else it is gone through for 10 ms, again and again
                click.echo(f"{running.url}  {len(store):,} events in {path}")
                await stop.wait()
        finally:
            store.close()

    try:
        _run(run())
    except socket.gaierror as error:  # which does not say of what
        raise click.BadParameter(f"{host}: {error.strerror}", param_hint="'--host'") from None
    return 0


def _run(relay: Coroutine[Any, Any, None]) -> None:
    """Run it on uvloop where that is installed: a client is connected in 0.2 ms less."""
    try:
        import uvloop
    except ImportError:
        asyncio.run(relay)
    else:
        uvloop.run(relay)
