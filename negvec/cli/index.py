"""`negvec index`: a file that opens at once."""

from __future__ import annotations

import os

import click

from negvec import kernels
from negvec.cli.progress import counting, read, seal
from negvec.cli.streams import FileError, system_errors
from negvec.storage.sealed_file import MOST_STRIDE


@click.command()
@click.argument("source", metavar="IN", type=click.Path(allow_dash=True))
@click.argument("target", metavar="OUT", type=click.Path(dir_okay=False))
@click.option(
    "--stride",
    type=click.IntRange(1, 2**31 - 1),
    default=1,
    show_default=True,
    help="Keep the sum of every so many items only: 72 bytes an item at 1, 42 at 16, and somewhat slower.",
)
@click.option("--force", is_flag=True, help="Replace OUT if it is there.")
@click.option("--skip-bad", is_flag=True, help="Count malformed lines and pass over them.")
@click.option("--quiet", is_flag=True, help="Print nothing.")
def index(source: str, target: str, stride: int, force: bool, skip_bad: bool, quiet: bool) -> int:
    """Sort and sum the items of IN once, and write them to OUT.

    IN is any file that `negvec reconcile` reads. OUT opens without being read, whatever its size: it is mapped into
    memory, and what a reconciliation asks for is read. It is written beside its place and moved there when it is
    whole.

    That takes 50 bytes of memory an item, 90 where items are not sorted yet; an IN that is such a file itself takes
    next to none.

    \b
    Examples:
      negvec index events.jsonl.gz events.negvec
      strfry export | negvec index - events.negvec --stride 16 --force
      negvec reconcile events.negvec other.jsonl
    """
    if os.path.exists(target) and not force:
        raise FileError(target, "exists already (--force replaces it)")
    items = read(source, skip_bad=skip_bad, show=not quiet)
    kernels.load(("checks", "strides"))
    loaded = seal(items, stride=MOST_STRIDE)  # sums are made when the file is written, and never all in memory
    del items
    with counting(target, not quiet) as progress, system_errors(target):
        loaded.storage.save(target, stride=stride, progress=progress)
    if not quiet:
        notes = [f"{loaded.repeats:,} there twice"] * bool(loaded.repeats)
        notes += [f"{loaded.skipped:,} bad lines skipped"] * bool(loaded.skipped)
        told = f" ({', '.join(notes)})" if notes else ""
        click.echo(f"{len(loaded.storage):,} items, {os.path.getsize(target):,} bytes in {target}{told}")
    return 0
