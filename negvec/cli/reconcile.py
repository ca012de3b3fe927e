"""`negvec reconcile`: the whole protocol, in process, between two files."""

from __future__ import annotations

import logging
import os
import time
from typing import Any

import click

import negvec
from negvec import kernels
from negvec.cli.files import write_ids
from negvec.cli.picture import ClockedTrace, drawing
from negvec.cli.profile import StageClock, checked_limit
from negvec.cli.progress import Loaded, read, seal
from negvec.cli.window_options import window_options
from negvec.items import ID_SIZE
from negvec.protocol import Result, drive
from negvec.storage import MappedVector

logger = logging.getLogger(__name__)


@click.command()
@click.argument("ours", type=click.Path(allow_dash=True))
@click.argument("theirs", type=click.Path(allow_dash=True))
@click.option("--have", type=click.Path(allow_dash=True), help="Write the ids that only OURS has: hex lines, or .npy.")
@click.option(
    "--need", type=click.Path(allow_dash=True), help="Write the ids that only THEIRS has: hex lines, or .npy."
)
@click.option(
    "--frame-size-limit",
    type=int,
    default=0,
    metavar="BYTES",
    callback=checked_limit,
    help="Largest message of either side; 0 (the default) for none, else 4096 or more.",
)
@window_options
@click.option(
    "--plot",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Draw what happened to which ranges, round by round, over time: .png, .svg or .pdf (needs the extra "
    "negvec[plot]).",
)
@click.option("--skip-bad", is_flag=True, help="Count malformed lines and pass over them.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--quiet", is_flag=True, help="Print no report; the exit status tells.")
def reconcile(
    ours: str,
    theirs: str,
    have: str | None,
    need: str | None,
    frame_size_limit: int,
    since: int | None,
    until: int | None,
    plot: str | None,
    skip_bad: bool,
    as_json: bool,
    quiet: bool,
) -> int:
    """Find what OURS and THEIRS lack of each other.

    Both files are read and sealed, unless `negvec index` has done that ahead, and two sides in this process exchange
    the messages that two machines would. Where --have or --need writes to standard output (-), the report goes to
    standard error.

    A .npy is a structured array with the fields created_at (integers) and id (32 bytes, or (32,) uint8); an .npz has
    the arrays created_at and ids.

    \b
    Examples:
      negvec reconcile ours.jsonl.gz theirs.jsonl.gz
      negvec reconcile ours.csv theirs.csv --have only-ours.txt --need only-theirs.txt
      negvec reconcile a.npy b.npy --frame-size-limit 60000 --json
      negvec reconcile a.negvec b.negvec --since 1700000000
      negvec reconcile a.negvec b.negvec --plot ranges.svg

    Exit status: 0 the same ids, 1 different, 2 trouble.
    """
    if ours == theirs == "-":
        raise click.UsageError("only one of the two files can be standard input")
    if have is not None and need is not None and os.path.realpath(have) == os.path.realpath(need) != os.devnull:
        raise click.UsageError("--have and --need would write to the same file")
    draw = drawing(plot, [ours, theirs, have, need]) if plot is not None else None
    seconds: dict[str, float] = {}

    def timed(stage: str, call: Any, *arguments: Any, **options: Any) -> Any:
        started = time.perf_counter()
        result = call(*arguments, **options)
        seconds[stage] = time.perf_counter() - started
        return result

    show = not (quiet or as_json)
    files = [
        timed(f"read {side}", read, path, skip_bad=skip_bad, show=show)
        for side, path in (("ours", ours), ("theirs", theirs))
    ]
    strided = any(isinstance(file, MappedVector) and file.stride > 1 for file in files)
    timed("load kernels", kernels.load, kernels.ROUND + ("strides",) * strided)
    right: Loaded = timed("seal theirs", seal, files.pop(), since, until)  # what was read goes once it is sorted
    left: Loaded = timed("seal ours", seal, files.pop(), since, until)
    clock = StageClock()
    trace = ClockedTrace(clock) if draw is not None else None
    initiator = negvec.Negentropy(left.storage, frame_size_limit, watch=trace or clock)
    responder = negvec.Negentropy(right.storage, frame_size_limit, watch=clock)
    result: Result = clock.measure(drive, initiator, responder, _log_round)
    seconds |= {f"reconcile: {stage}": spent for stage, spent in clock.seconds.items()}

    for path, ids in ((have, result.have), (need, result.need)):
        if path is not None:
            write_ids(path, ids)
    if as_json or not quiet:
        tell = _as_json if as_json else _report
        click.echo(tell(left, right, result, seconds), err="-" in (have, need))
    if draw is not None and trace is not None:  # last, since it may go wrong, and all else be wanted
        draw(trace)
    return int(bool(len(result.have) or len(result.need)))


def _log_round(rounds: int, up: int, down: int) -> None:
    logger.info("round %d: %d bytes up and %d down so far", rounds, up, down)


def _all_ids(left: Loaded, right: Loaded) -> int:
    """Bytes of the plain way: the smaller side sends all its ids, and learns of the rest."""
    return ID_SIZE * min(len(left.storage), len(right.storage))


def _as_json(left: Loaded, right: Loaded, result: Result, seconds: dict[str, float]) -> str:
    import orjson  # here, since only --json needs it

    def side(loaded: Loaded) -> dict[str, Any]:
        return {
            "file": loaded.name,
            "items": len(loaded.storage),
            "repeats": loaded.repeats,
            "skipped": loaded.skipped,
        }

    return orjson.dumps(
        {
            "ours": side(left),
            "theirs": side(right),
            "have": len(result.have),
            "need": len(result.need),
            "rounds": result.rounds,
            "bytes_up": result.bytes_up,
            "bytes_down": result.bytes_down,
            "bytes_all_ids": _all_ids(left, right),
            "seconds": seconds,
        }
    ).decode()


def _report(left: Loaded, right: Loaded, result: Result, seconds: dict[str, float]) -> str:
    lines = []
    for role, loaded in (("ours", left), ("theirs", right)):
        notes = [f"{loaded.repeats:,} there twice"] * bool(loaded.repeats)
        notes += [f"{loaded.skipped:,} bad lines skipped"] * bool(loaded.skipped)
        told = f" ({', '.join(notes)})" if notes else ""
        lines.append(f"{role:7} {len(loaded.storage):>12,} items  {loaded.name}{told}")
    up, down = result.bytes_up, result.bytes_down
    lines += [
        f"have    {len(result.have):>12,} ids that only ours has",
        f"need    {len(result.need):>12,} ids that only theirs has",
        f"rounds  {result.rounds:>12,}        {up:,} bytes up, {down:,} down, {up + down:,} in all",
    ]
    plain = _all_ids(left, right)
    if plain:
        lines.append(f"        {(up + down) / plain:>12.1%} of the {plain:,} bytes that sending all ids would take")
    lines.append("time")
    lines += [f"        {1e3 * spent:>12,.1f} ms     {stage}" for stage, spent in seconds.items() if spent >= 5e-5]
    return "\n".join(lines)
