"""`negvec profile`: what a reconciliation costs, layer by layer, split by stage.

A layer is a way to carry the messages of one reconciliation: a function that runs it once and reports each side's
time by stage (see `Layer`). The first is the library alone; frames and sockets add layers, and stages, of their own.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import click
import orjson

import negvec
from negvec.protocol.negentropy import SMALLEST_FRAME
from negvec.workloads import DESCRIPTIONS, SHAPES, pair

STAGES = ("decode", "locate", "fingerprint", "compare", "plan", "encode", "other")
"""The stages of a round in their order (see negvec.protocol.round), and what is left of a call's time."""

FRAME_STAGES = ("read frame", "write frame")
"""What NIP-77's text frames add: JSON and hex, in one pass each way."""

FLAME_SECONDS = 2.0  # how long a reconciliation is run again and again under the profiler
FLAME_INTERVAL = 0.0002  # seconds between two samples; a whole reconciliation may take a millisecond


class Workload(NamedTuple):
    """What is reconciled: two sealed sets and the frame size limits of their sides."""

    ours: negvec.Storage
    theirs: negvec.Storage
    initiator_limit: int
    responder_limit: int


class Cost(NamedTuple):
    """What one reconciliation took: seconds by stage of each side, and what went over the wire."""

    initiator: dict[str, float]
    responder: dict[str, float]
    rounds: int
    bytes_up: int
    bytes_down: int
    have: int
    need: int


Layer = Callable[[Workload], Cost]


class StageClock:
    """Adds up the time of each stage; `Negentropy` tells it as `watch` when one ends."""

    def __init__(self, more: tuple[str, ...] = ()) -> None:
        self.seconds = dict.fromkeys(STAGES + more, 0.0)
        self._last = 0.0

    def __call__(self, stage: str) -> None:
        """Count the time since the last stage as this stage's."""
        now = time.perf_counter()
        self.seconds[stage] += now - self._last
        self._last = now

    def measure(self, call: Callable[..., Any], *arguments: Any, stage: str = "other") -> Any:
        """Call, and count what no stage took as `stage`."""
        self._last = time.perf_counter()
        result = call(*arguments)
        self(stage)
        return result


def library(work: Workload) -> Cost:
    """Messages handed over as they are, in one process."""
    clocks = StageClock(), StageClock()
    return _carry(work, clocks, lambda message, sender, receiver: message)


def text_frames(work: Workload) -> Cost:
    """Messages as the NEG-MSG text frames of NIP-77, in one process."""
    from negvec.nip77 import NegMsg, neg_msg, read

    def carry(message: bytes, sender: StageClock, receiver: StageClock) -> bytes:
        frame = sender.measure(neg_msg, "profile", message, stage="write frame")
        found = receiver.measure(read, frame, stage="read frame")
        assert isinstance(found, NegMsg)
        return found.message

    return _carry(work, (StageClock(FRAME_STAGES), StageClock(FRAME_STAGES)), carry)


def _carry(
    work: Workload,
    clocks: tuple[StageClock, StageClock],
    carry: Callable[[bytes, StageClock, StageClock], bytes],
) -> Cost:
    """Reconcile once, each message brought over by `carry`."""
    asking, answering = clocks
    initiator = asking.measure(lambda: negvec.Negentropy(work.ours, work.initiator_limit, watch=asking))
    responder = answering.measure(lambda: negvec.Negentropy(work.theirs, work.responder_limit, watch=answering))
    message: bytes | None = asking.measure(initiator.initiate)
    rounds = up = down = 0
    while message is not None:
        answer = answering.measure(responder.reconcile, carry(message, asking, answering)).message
        rounds, up, down = rounds + 1, up + len(message), down + len(answer)
        step: negvec.Step = asking.measure(initiator.reconcile, carry(answer, answering, asking))
        message = step.message
    return Cost(asking.seconds, answering.seconds, rounds, up, down, len(step.have), len(step.need))


LAYERS: dict[str, Layer] = {"library": library, "NIP-77 text frames": text_frames}
"""What `negvec profile` goes through, in this order."""


def median_cost(layer: Layer, work: Workload, runs: int) -> Cost:
    """The median of each stage over some runs, after one that is not counted: it may compile."""
    first = layer(work)
    costs = [layer(work) for _ in range(runs)]

    def medians(side: str) -> dict[str, float]:
        stages = [getattr(cost, side) for cost in costs]
        return {stage: statistics.median(seconds[stage] for seconds in stages) for stage in stages[0]}

    return first._replace(initiator=medians("initiator"), responder=medians("responder"))


def checked_limit(ctx: click.Context, param: click.Parameter, value: int) -> int:
    """Refuse what is no frame size limit, before any work is done."""
    if value < 0 or 0 < value < SMALLEST_FRAME:
        raise click.BadParameter(f"{value} is neither 0 (no limit) nor at least {SMALLEST_FRAME}")
    return value


@click.command()
@click.option("--n", "n", type=click.IntRange(min=1), default=1_000_000, show_default=True, help="Items in all.")
@click.option(
    "--shape",
    type=click.Choice(SHAPES),
    default="contiguous",
    show_default=True,
    help="How the two sides differ: " + "; ".join(f"{shape}, {DESCRIPTIONS[shape]}" for shape in SHAPES) + ".",
)
@click.option("--salt", type=click.IntRange(0, 2**64 - 1), default=0, show_default=True, help="Another one, other ids.")
@click.option(
    "--initiator-limit",
    type=int,
    metavar="BYTES",
    callback=checked_limit,
    default=0,
    show_default=True,
    help="The initiator's frame size limit in bytes; 0 means none.",
)
@click.option(
    "--responder-limit",
    type=int,
    metavar="BYTES",
    callback=checked_limit,
    default=500_000,
    show_default=True,
    help="The responder's; the default is that of strfry's relays.",
)
@click.option("--runs", type=click.IntRange(min=1), default=9, show_default=True, help="Runs to take the medians of.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, with times in seconds, and no table.")
@click.option(
    "--html",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Also write a flame graph (the timeline of pyinstrument, which the extra negvec[profile] installs).",
)
def profile(
    n: int,
    shape: str,
    salt: int,
    initiator_limit: int,
    responder_limit: int,
    runs: int,
    as_json: bool,
    html: Path | None,
) -> None:
    """Show where the time of a reconciliation goes.

    Two synthetic sets are reconciled in this process again and again. For each layer the table says what each stage
    of a round costs either side, in milliseconds and as a share: medians, without compilation and without the seal.
    """
    profiler = _profiler() if html is not None else None
    layers = LAYERS | _over_sockets()
    ours, theirs = pair(shape, n, salt)
    work = Workload(negvec.seal(*ours), negvec.seal(*theirs), initiator_limit, responder_limit)
    if as_json:
        asked = {"n": n, "shape": shape, "salt": salt, "runs": runs}
        limits = {"initiator_limit": initiator_limit, "responder_limit": responder_limit}
        sizes = {"initiator_items": len(work.ours), "responder_items": len(work.theirs)}
        by_layer = {name: median_cost(layer, work, runs)._asdict() for name, layer in layers.items()}
        click.echo(orjson.dumps(asked | limits | sizes | {"layers": by_layer}))
    else:
        click.echo(_heading(n, shape, work, runs))
        for name, layer in layers.items():
            click.echo(f"\n{_table(name, median_cost(layer, work, runs))}")
    if html is not None:
        _write_flame_graph(profiler, work, html)
        if not as_json:
            click.echo(f"\nThe flame graph is in {html}.")


def _heading(n: int, shape: str, work: Workload, runs: int) -> str:
    def limit(size: int) -> str:
        return f"frames of {size:,} bytes" if size else "frames without limit"

    return (
        f"{n:,} {shape}: {DESCRIPTIONS[shape]}\n"
        f"initiator {len(work.ours):,} items, {limit(work.initiator_limit)}; "
        f"responder {len(work.theirs):,} items, {limit(work.responder_limit)}\n"
        f"medians of {runs} runs, each stage by itself"
    )


def _table(name: str, cost: Cost) -> str:
    rounds = "1 round" if cost.rounds == 1 else f"{cost.rounds:,} rounds"
    lines = [
        f"{name}: {rounds}, {cost.bytes_up:,} bytes up, {cost.bytes_down:,} bytes down, "
        f"{cost.have:,} have, {cost.need:,} need",
        f"{'':<14}{'initiator':>19}{'responder':>19}{'both':>19}",
        f"{'stage':<14}" + f"{'ms':>11}{'share':>8}" * 3,
    ]
    both = {stage: seconds + cost.responder[stage] for stage, seconds in cost.initiator.items()}
    columns = cost.initiator, cost.responder, both
    totals = [sum(column.values()) for column in columns]

    def row(label: str, seconds: list[float]) -> str:
        cells = (
            f"{1000 * part:>11.3f}{part / total if total else 0:>8.1%}"
            for part, total in zip(seconds, totals, strict=True)
        )
        return f"{label:<14}" + "".join(cells)

    lines += [row(stage, [column[stage] for column in columns]) for stage in both]
    return "\n".join([*lines, row("all stages", totals)])


def _over_sockets() -> dict[str, Layer]:
    """The layers over a websocket, if websockets is installed."""
    over_sockets: dict[str, Layer]
    try:
        from negvec.cli.profile_sockets import LAYERS as over_sockets
    except ImportError:
        return {}
    return dict(over_sockets)


def _profiler() -> Any:
    """A profiler that is not running yet.

    Raises
    ------
    click.UsageError
        pyinstrument is not installed.
    """
    try:
        import pyinstrument
    except ImportError:
        raise click.UsageError(
            "--html draws with pyinstrument, which is not installed: "
            "pip install 'negvec[profile]' (in a clone: '.[profile]')"
        ) from None
    return pyinstrument.Profiler(interval=FLAME_INTERVAL)


def _write_flame_graph(profiler: Any, work: Workload, path: Path) -> None:
    end = time.perf_counter() + FLAME_SECONDS
    with profiler:
        while time.perf_counter() < end:
            for layer in LAYERS.values():
                layer(work)
    try:
        path.write_text(profiler.output_html(), encoding="utf-8")
    except OSError as error:
        raise click.FileError(str(path), error.strerror) from error
