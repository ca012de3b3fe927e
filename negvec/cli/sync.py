"""`negvec sync`: bring a store and a relay to the same set."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Any

import click

from negvec.cli.filter_option import filter_option
from negvec.cli.missing import missing
from negvec.cli.profile import checked_limit

if TYPE_CHECKING:
    from negvec.client import Report

COMPLETE, DIFFERENT = 0, 1  # exit status


@click.command()
@click.argument("url")
@click.option("--store", "path", required=True, type=click.Path(dir_okay=False), help="The SQLite file of the events.")
@filter_option("What to sync")
@click.option(
    "--direction",
    type=click.Choice(["down", "up", "both", "none"]),
    default="down",
    show_default=True,
    help="Fetch what the store lacks, send what the relay lacks, both, or only count.",
)
@click.option("--dry-run", is_flag=True, help="Move nothing; print the ids, + for those to fetch, - for those to send.")
@click.option(
    "--frame-size-limit",
    type=int,
    callback=lambda ctx, param, value: value if value is None else checked_limit(ctx, param, value),
    help="Bytes of the largest message to send, before hex: 0 for no limit, else 4096 or more. By default 60,000, or "
    "what the relay says that it takes.",
)
@click.option(
    "--idle",
    type=click.FloatRange(0, min_open=True),
    default=30.0,
    show_default=True,
    help="Seconds of silence until it is given up.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, of counts; no ids.")
@click.option("--quiet", is_flag=True, help="Print nothing but errors.")
def sync(
    url: str,
    path: str,
    asked: dict[str, Any],
    direction: str,
    dry_run: bool,
    frame_size_limit: int | None,
    idle: float,
    as_json: bool,
    quiet: bool,
) -> int:
    """Bring a store of events and the relay at URL to the same set (NIP-77).

    What each lacks is found first, in a few rounds, and brought over meanwhile. Whatever is stored stays stored: a
    sync that was broken off goes on where it was when it is run again. A relay that finds a set too large is asked for
    stretches of time, and one that knows no negentropy is read page by page.

    \b
    Examples:
      negvec sync wss://relay.example.com --store events.db
      negvec sync ws://127.0.0.1:7777 --store events.db --filter '{"kinds":[1],"since":1700000000}'
      negvec sync ws://127.0.0.1:7777 --store events.db --direction both
      negvec sync ws://127.0.0.1:7777 --store events.db --dry-run

    Exit status: 0 the sets are the same now (with --dry-run: were), 1 something is left, 2 trouble.
    """
    import orjson

    try:
        from negvec.client import SyncError
        from negvec.client import sync as run
        from negvec.relay import EventStore
    except ImportError as error:
        raise missing("a sync", error) from None
    store = EventStore(path)
    moving = "none" if dry_run else direction
    try:
        with _bar(not (quiet or as_json)) as progress:
            options = {"frame_size_limit": frame_size_limit, "idle_seconds": idle, "progress": progress}
            report = asyncio.run(run(url, store, asked, direction=moving, **options))
    except SyncError as error:
        raise click.ClickException(str(error)) from None
    finally:
        store.close()
    if as_json:
        counts = {name: value for name, value in vars(report).items() if isinstance(value, (int, float))}
        click.echo(orjson.dumps({"have": len(report.have), "need": len(report.need)} | counts))
    elif not quiet:
        if dry_run:
            for sign, ids in (("+", report.need), ("-", report.have)):
                for id in ids:
                    click.echo(f"{sign}{id.hex()}")
        click.echo(_told(report), err=dry_run)
    return _status(report, moving)


def _status(report: Report, direction: str) -> int:
    left = 0
    if direction in ("up", "none"):
        left += len(report.need)
    if direction in ("down", "none"):
        left += len(report.have)
    left += report.withheld + report.unwanted + report.rejected + report.crowded
    return DIFFERENT if left else COMPLETE


def _told(report: Report) -> str:
    lines = [
        f"have       {len(report.have):>12,} that the relay lacked, {report.uploaded:,} uploaded",
        f"need       {len(report.need):>12,} that the store lacked, {report.downloaded:,} downloaded",
        f"rounds     {report.rounds:>12,} in {report.windows:,} windows, {report.bytes_up:,} bytes up, "
        f"{report.bytes_down:,} down, in {report.seconds:.2f} s",
    ]
    for count, words in (
        (report.withheld, "withheld by the relay"),
        (report.unwanted, "not taken by the store"),
        (report.rejected, "not taken by the relay"),
        (report.crowded, "seconds with more events than the relay gives at once: some may be missing"),
        (report.paged, "windows read page by page, since the relay does not reconcile"),
    ):
        if count:
            lines.append(f"           {count:>12,} {words}")
    return "\n".join(lines)


class _bar:
    """A progress bar, where somebody looks on."""

    def __init__(self, show: bool) -> None:
        self._show = show and sys.stderr.isatty()
        self._bar: Any = None

    def __enter__(self) -> Any:
        if not self._show:
            return None
        from tqdm import tqdm

        self._bar = tqdm(unit=" events", leave=False, delay=0.5)
        return self._advance

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def _advance(self, report: Report) -> None:
        done = report.downloaded + report.uploaded
        self._bar.total = len(report.need) + len(report.have)
        self._bar.set_postfix_str(
            f"{report.rounds} rounds, {report.bytes_up + report.bytes_down:,} bytes, "
            f"have {len(report.have):,}, need {len(report.need):,}",
            refresh=False,
        )
        self._bar.update(done - self._bar.n)
