"""What the pictures have in common: colours, type, and numbers with their units."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import matplotlib
import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter

from negvec.trace import Trace

BLACK, ORANGE, SKY, GREEN, YELLOW, BLUE, VERMILION, PURPLE, GREY = (
    *("#000000", "#E69F00", "#56B4E9", "#009E73", "#F0E442", "#0072B2", "#D55E00", "#CC79A7"),
    "#BBBBBB",
)
"""Okabe and Ito's palette, and a grey."""

LINES = ((BLUE, "o", "-"), (VERMILION, "s", "--"), (GREEN, "^", "-."), (PURPLE, "D", ":"), (ORANGE, "v", "-"))
"""Colour, mark and stroke of each line of a picture, in order."""

_SETTINGS = {
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "figure.dpi": 110,
    "svg.fonttype": "none",  # text stays text
    "legend.frameon": False,
}


@contextmanager
def style() -> Iterator[None]:
    """Draw in this project's style, whatever the user's own is."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_SETTINGS)
        yield


def figure(width: float, height: float) -> Figure:
    """A figure of that size in inches, laid out by constraints, which pyplot does not know of."""
    return Figure(figsize=(width, height), layout="constrained")


def head(drawn: Figure, text: str) -> None:
    """Write what a figure shows above it, on the left."""
    drawn.suptitle(text, x=0.01, ha="left")


def in_bytes() -> EngFormatter:
    """Sizes as 348 B, 1.6 kB, 14.8 MB: powers of 1,000."""
    return EngFormatter(unit="B", places=None)


def told_bytes(size: float) -> str:
    """A size in three digits."""
    power = 0
    while size >= 999.5 and power < 4:
        size, power = size / 1000, power + 1
    return f"{size:.3g} {('B', 'kB', 'MB', 'GB', 'TB')[power]}"


def plural(count: int, word: str) -> str:
    """A count of things."""
    return f"{count:,} {word}" + "s" * (count != 1)


def one_side(trace: Trace) -> tuple[npt.NDArray[np.void], list[npt.NDArray[np.void]]]:
    """The messages of a trace as its initiator saw them, or its responder, if it watched no other; the ranges of each.

    Raises
    ------
    ValueError
        There is none.
    """
    messages = trace.messages
    if not len(messages):
        raise ValueError("the trace has seen no message: pass it as `watch` to a Negentropy, and reconcile")
    ranges = np.split(trace.ranges, np.cumsum(messages["ranges"])[:-1])
    kept = messages["initiator"] == messages["initiator"].any()
    return messages[kept], [part for part, keep in zip(ranges, kept, strict=True) if keep]
