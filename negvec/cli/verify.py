"""`negvec verify`: whether a sealed file is sound."""

from __future__ import annotations

import click

import negvec
from negvec.cli.progress import counting
from negvec.cli.streams import system_errors

DAMAGED = 1  # exit status


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path())
@click.option("--quiet", is_flag=True, help="Print only what is wrong.")
def verify(files: tuple[str, ...], quiet: bool) -> int:
    """Read all of FILES, which `negvec index` has made, and check that they are sound.

    Checked are the order of the items, that each is there once, the sums, and the checksums of all sections.

    \b
    Examples:
      negvec verify events.negvec
      negvec verify --quiet *.negvec && echo all are sound

    Exit status: 0 all are sound, 1 one is damaged, or not of `negvec index`, 2 trouble.
    """
    status = 0
    for path in files:
        try:
            with system_errors(path), negvec.open(path) as storage:
                with counting(path, not quiet) as progress:
                    storage.verify(progress)
                if not quiet:
                    click.echo(f"sound  {len(storage):>12,} items, stride {storage.stride}  {path}")
        except negvec.DamagedStorage as error:
            click.echo(f"negvec: {error}", err=True)
            status = DAMAGED
    return status
