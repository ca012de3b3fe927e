"""The picture of `negvec reconcile --plot`: kept track of while it reconciles, and written at the end."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from negvec.cli.profile import StageClock
from negvec.trace import Trace

FORMATS = (".png", ".svg", ".pdf")


class ClockedTrace(Trace):
    """A trace of one side, which passes on to a clock of both what each stage took."""

    def __init__(self, clock: StageClock) -> None:
        super().__init__()
        self._clock = clock
        clock.seconds["trace"] = 0.0

    def __call__(self, stage: str) -> None:
        """A stage has ended."""
        self._clock(stage)
        super().__call__(stage)

    def heard(self, *what: Any) -> None:
        """See `Trace.heard`."""
        super().heard(*what)
        self._clock("trace")

    def said(self, *what: Any) -> None:
        """See `Trace.said`."""
        super().said(*what)
        self._clock("trace")


def drawing(path: str, others: list[str | None]) -> Callable[[Trace], None]:
    """What draws a trace into a file, which is none of the others; what can be seen ahead to go wrong is refused.

    Raises
    ------
    click.UsageError
        matplotlib is not installed.
    click.BadParameter
        The file's name tells no format, or it can't be written.
    """
    if Path(path).suffix.lower() not in FORMATS:
        raise click.BadParameter(f"--plot draws {', '.join(FORMATS)}, not {Path(path).name!r}")
    folder = Path(path).parent
    if not os.access(path if Path(path).exists() else folder, os.W_OK):
        raise click.BadParameter(f"--plot can't write {path!r}: there is no such folder, or no right to")
    if os.path.realpath(path) in [os.path.realpath(other) for other in others if other is not None]:
        raise click.UsageError(f"--plot would write to {path!r}, which is read or written besides")
    try:
        from negvec.plot import range_tree
        from negvec.plot.style import style
    except ImportError:
        raise click.UsageError(
            "--plot draws with matplotlib, which is not installed: pip install 'negvec[plot]' (in a clone: '.[plot]')"
        ) from None

    def draw(trace: Trace) -> None:
        try:
            with style():
                range_tree(trace).savefig(path)
        except OSError as error:
            raise click.FileError(path, error.strerror) from error

    return draw
