"""`negvec fingerprint`: a set in one line."""

from __future__ import annotations

import click

from negvec.cli.progress import read, seal
from negvec.cli.window_options import window_options


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(allow_dash=True))
@window_options
@click.option("--skip-bad", is_flag=True, help="Count malformed lines and pass over them.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object a line.")
def fingerprint(files: tuple[str, ...], since: int | None, until: int | None, skip_bad: bool, as_json: bool) -> int:
    """Print the fingerprint and the number of items of each of FILES.

    The fingerprint is Negentropy's: two machines whose lines are the same hold the same ids.

    \b
    Examples:
      negvec fingerprint ours.jsonl.gz
      strfry export | negvec fingerprint -
      negvec fingerprint --since 1700000000 ours.negvec
    """
    for path in files:
        loaded = seal(read(path, skip_bad=skip_bad, show=not as_json), since, until)
        count = len(loaded.storage)
        digest = loaded.storage.fingerprints(0, count)[0].tobytes().hex()
        if as_json:
            import orjson  # here, since only --json needs it

            click.echo(
                orjson.dumps(
                    {
                        "file": loaded.name,
                        "fingerprint": digest,
                        "items": count,
                        "repeats": loaded.repeats,
                        "skipped": loaded.skipped,
                    }
                )
            )
        else:
            notes = f"  ({loaded.skipped:,} bad lines skipped)" if loaded.skipped else ""
            click.echo(f"{digest}  {count:>12,} items  {loaded.name}{notes}")
    return 0
