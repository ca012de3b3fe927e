"""`negvec import`: events from a file into a store."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING

import click

from negvec import kernels
from negvec.cli.files import BOM, Progress
from negvec.cli.missing import missing
from negvec.cli.progress import reading
from negvec.cli.streams import FileError, Source, blocks, open_source

if TYPE_CHECKING:
    from negvec.relay import EventStore
    from negvec.relay.events import Event, InvalidEvent

ALL_IN, SOME_REFUSED = 0, 1  # exit status

Checked = tuple[int, "Event | InvalidEvent"]  # the number of a line, and what it holds


@dataclass
class Imported:
    """What became of the events: of those refused, how often for which reason, and in which line first."""

    stored: int = 0
    duplicate: int = 0
    refused: int = 0
    reasons: dict[str, int] = field(default_factory=dict)
    first: dict[str, int] = field(default_factory=dict)

    def refuse(self, line: int, reason: str) -> None:
        """Count a refusal."""
        self.refused += 1
        self.reasons[reason] = self.reasons.get(reason, 0) + 1
        self.first.setdefault(reason, line)


@click.command("import")
@click.argument("file", metavar="FILE", type=click.Path(allow_dash=True))
@click.option("--store", "path", required=True, type=click.Path(dir_okay=False), help="The SQLite file of the events.")
@click.option("--skip-bad", is_flag=True, help="Count lines that are no valid event, and pass over them.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--quiet", is_flag=True, help="Print nothing but errors.")
def import_events(file: str, path: str, skip_bad: bool, as_json: bool, quiet: bool) -> int:
    """Bring the Nostr events of FILE into a store, which `negvec relay` serves and `negvec sync` syncs.

    FILE has one event a line, as JSON (a strfry export); it may be compressed with gzip or zstd, or be - for standard
    input. The hash and signature of every event are checked. What is stored stays stored: an import that was broken off
    may be run again. A store that a relay is serving is refused; import before it starts.

    Events that the store has already, or a newer one in their place, are counted as duplicates. Events that have
    expired, were deleted by their authors, or are ephemeral are valid, but not stored: they are counted as refused.

    \b
    Examples:
      negvec import events.jsonl.zst --store events.db
      strfry export | negvec import - --store events.db --skip-bad
      negvec relay --store events.db

    Exit status: 0 all of it is in the store now, 1 some was refused or skipped, 2 trouble.
    """
    import orjson

    try:
        from negvec.relay import EventStore
        from negvec.relay.store import KERNELS
    except ImportError as error:
        raise missing("a store", error) from None
    with open_source(file) as source:  # before the store is made
        kernels.load(KERNELS)  # what that compiles, the first time, is no part of the speed that is told
        started = time.perf_counter()
        store = EventStore(path)
        try:
            with reading(file, not (quiet or as_json)) as progress:
                done = _bring(source, store, skip_bad, progress)
        finally:
            store.close()
    seconds = time.perf_counter() - started
    if as_json:
        counts = {"stored": done.stored, "duplicate": done.duplicate, "refused": done.refused}
        click.echo(orjson.dumps(counts | {"reasons": done.reasons, "seconds": seconds}))
    elif not quiet:
        click.echo(_told(done, path, seconds))
    return SOME_REFUSED if done.refused else ALL_IN


def _bring(source: Source, store: EventStore, skip_bad: bool, progress: Progress | None) -> Imported:
    from negvec.relay.events import InvalidEvent
    from negvec.relay.ingest import WRITTEN_TOGETHER, storable

    done = Imported()
    batch: list[tuple[int, Event]] = []

    def write() -> None:
        for (line, _), outcome in zip(batch, store.put([event for _, event in batch]), strict=True):
            if outcome.new:
                done.stored += 1
            elif outcome.ok:
                done.duplicate += 1
            else:
                done.refuse(line, outcome.reason)
        batch.clear()
        if progress:
            progress(source.position, source.size, done.stored + done.duplicate + done.refused)

    broken: list[FileError] = []  # what ended the file before its end: what came before that is stored all the same
    for line, event in _checked(_lines(source, broken)):
        if isinstance(event, InvalidEvent):
            if not skip_bad:
                write()
                raise FileError(source.name, str(event), line=line)
            done.refuse(line, str(event))
            continue
        try:
            storable(event)
        except InvalidEvent as error:
            done.refuse(line, str(error))
            continue
        batch.append((line, event))
        if len(batch) == WRITTEN_TOGETHER:
            write()
    write()
    if broken:
        raise broken[0]
    return done


def _lines(source: Source, broken: list[FileError]) -> Iterator[tuple[int, bytes]]:
    number = 1
    for block in blocks(source, broken):
        if number == 1:
            block = block.removeprefix(BOM)
        for line in block.removesuffix(b"\n").split(b"\n"):
            if line and not line.isspace():
                yield number, line
            number += 1


def _checked(lines: Iterator[tuple[int, bytes]]) -> Iterator[Checked]:
    """Check lines in threads, a few batches ahead, in order: libsecp256k1 releases the GIL."""
    from negvec.relay.ingest import CHECKED_TOGETHER

    threads = os.cpu_count() or 1
    pool = ThreadPoolExecutor(threads, thread_name_prefix="negvec-check")
    waiting: deque[Future[list[Checked]]] = deque()
    try:
        while some := list(islice(lines, CHECKED_TOGETHER)):
            waiting.append(pool.submit(_check, some))
            if len(waiting) > 4 * threads:
                yield from waiting.popleft().result()
        while waiting:
            yield from waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


def _check(lines: list[tuple[int, bytes]]) -> list[Checked]:
    import orjson

    from negvec.relay.events import InvalidEvent
    from negvec.relay.ingest import check

    checked: list[Checked] = []
    for number, line in lines:
        try:
            checked.append((number, check(orjson.loads(line))))
        except orjson.JSONDecodeError as error:
            checked.append((number, InvalidEvent(f"invalid: no JSON: {error.msg}")))
    return checked


def _told(done: Imported, path: str, seconds: float) -> str:
    count = done.stored + done.duplicate + done.refused
    lines = [
        f"{done.stored:,} stored in {path}, {done.duplicate:,} duplicates, {done.refused:,} refused, "
        f"in {seconds:.2f} s ({count / max(seconds, 1e-9):,.0f} a second)"
    ]
    for reason, times in sorted(done.reasons.items(), key=lambda item: -item[1]):
        lines.append(f"{times:>12,} {reason} (first in line {done.first[reason]:,})")
    return "\n".join(lines)
