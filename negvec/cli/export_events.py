"""`negvec export`: the events of a store as a file."""

from __future__ import annotations

from typing import Any

import click

from negvec.cli.files import writing
from negvec.cli.filter_option import filter_option
from negvec.cli.missing import missing
from negvec.cli.progress import counting


@click.command("export")
@click.option("--store", "path", required=True, type=click.Path(dir_okay=False), help="The SQLite file of the events.")
@filter_option("Which events")
@click.option(
    "-o", "--output", type=click.Path(allow_dash=True), default="-", help="Where to; standard output by default."
)
@click.option("--quiet", is_flag=True, help="Show no progress, and say nothing of how many there were.")
def export_events(path: str, asked: dict[str, Any], output: str, quiet: bool) -> int:
    """Write the events of a store as JSON lines, one event a line, the oldest first.

    They are those of one moment, also while a relay serves the store. A file is replaced once all is written. What has
    expired is left out; of a filter with a limit the newest so many are written.

    \b
    Examples:
      negvec export --store events.db -o events.jsonl
      negvec export --store events.db --filter '{"kinds":[1],"since":1700000000}' | zstd > notes.jsonl.zst
      negvec export --store events.db | negvec fingerprint -

    Exit status: 0 done, 2 trouble.
    """
    try:
        from negvec.relay import filters
        from negvec.relay.archive import open_archive
    except ImportError as error:
        raise missing("a store", error) from None
    count = 0
    with (
        open_archive(path, filters.parse(asked)) as events,
        counting(path, not quiet) as progress,
        writing(output) as stream,
    ):
        for count, json in enumerate(events, 1):
            stream.write(json + b"\n")
            if progress and count % 1000 == 0:
                progress(count, events.count)
    if not quiet:
        click.echo(f"{count:,} events of {path}", err=True)
    return 0
