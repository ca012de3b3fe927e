"""The range tree of a reconciliation, round by round: a band for each message, from what is asked to what is left.

A band is as long as the set, over time or over the items, and is drawn column by column: each column of pixels is
filled from below with what its ranges came to, each by its share of the column, and a quarter of it at least for what
differs or is listed. So a band of a hundred thousand ranges still shows where it differs, and how much of it does.
Where a band is white its message has ended: the rest is as good as skipped.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter, date2num
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import EngFormatter, MaxNLocator

from negvec.plot.style import GREEN, SKY, VERMILION, YELLOW, figure, head, in_bytes, one_side, plural, style, told_bytes
from negvec.protocol.codec import FINGERPRINT, ID_LIST, INFINITY
from negvec.trace import MATCHED, MISMATCHED, Trace

COLUMNS = 900  # of a band: no more than it has pixels, so that none is lost
BAND, GAP = 24, 6  # pixels of its height, and below it
MOST_MESSAGES = 480  # that there is room for; of more rounds, every second or third, and so on, is drawn
SLIVER = 0.25  # of a band's height at least for what differs or is listed in a column, however little that is
SEAM = 6  # pixels that a range takes at least for its end to be shown

LABELLED = 24  # messages, up to which each has its size written beside it
TALLEST = 11.0  # inches

# Timestamps from 1973 on, by what they count: the least, and how many make a second. Others are told as numbers.
CLOCKS = ((10**17, 10**9), (10**14, 10**6), (10**11, 10**3), (10**8, 1))
LATEST_DATE = 2**63  # nanoseconds to 2262; beyond, a number is no date

DIFFERS, LISTED, OPEN, SAME, PASSED = range(5)  # from below
COLOURS = (VERMILION, GREEN, YELLOW, SKY, "#E8E8E8")
NAMES = (
    "Fingerprint: differs",
    "IdList",
    "Fingerprint: not answered yet",
    "Fingerprint: the same",
    "Skip",
)


class Axis(NamedTuple):
    """Where ranges begin and end along the picture: column names of `negvec.trace.RANGE`, and what is shown of it.

    What is shown goes from `first` to `last`, counted from `origin`; `clock` is how many make a second, of dates.
    """

    begin: str
    end: str
    origin: int
    first: float
    last: float
    label: str
    clock: int = 0


def range_tree(trace: Trace, *, x: str = "time") -> Figure:
    """Draw what happened to which ranges, message by message.

    Parameters
    ----------
    trace : Trace
        That of an initiator; a responder's does too.
    x : {"time", "items"}
        What lies from left to right: the timestamps of the bounds, or the watched side's own items in their order,
        which shows ranges by the items that they hold, and is taken where all items have one timestamp.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ValueError
        The trace has seen nothing, or `x` is no axis.
    """
    if x not in ("time", "items"):
        raise ValueError(f'x is "time" or "items", not {x!r}')
    messages, ranges = one_side(trace)
    rounds, total, count = int(messages["round"].max()), int(messages["bytes"].sum()), int(messages["ranges"].sum())
    axis = _axis(ranges, x)
    every = -(-len(messages) // MOST_MESSAGES)
    if every > 1:
        shown = np.flatnonzero((messages["round"] - 1) % every == 0)
        messages, ranges = messages[shown], [ranges[k] for k in shown]
    with style():
        height = min(2.4 + 0.32 * len(messages), TALLEST)
        drawn = figure(11, height)
        tree, sizes = drawn.subplots(1, 2, sharey=True, width_ratios=(5, 1))
        image = np.full((len(messages), BAND + GAP, COLUMNS, 3), 255, np.uint8)
        for place, part in zip(image, ranges, strict=True):
            place[:BAND] = _band(part, axis)
        tree.imshow(
            image.reshape(-1, COLUMNS, 3),
            extent=(axis.first, axis.last, len(messages), 0.0),
            aspect="auto",
            interpolation="nearest" if len(messages) <= LABELLED else "antialiased",
        )
        _label_rounds(tree, messages)
        _label_axis(tree, axis)
        _draw_sizes(sizes, messages)
        told = f"{plural(rounds, 'round')}, {told_bytes(total)}, {plural(count, 'range')}"
        head(drawn, f"Ranges by round: {told}" + f"; every {every}th round is shown" * (every > 1))
        drawn.legend(
            handles=[
                *(Patch(facecolor=colour, label=name) for colour, name in zip(COLOURS, NAMES, strict=True)),
                Patch(facecolor="white", edgecolor="#BBBBBB", label="not spoken of any more"),
            ],
            loc="outside lower center",
            ncols=len(NAMES) + 1,
            fontsize="small",
        )
    return drawn


def _axis(ranges: list[npt.NDArray[np.void]], x: str) -> Axis:
    ends = np.unique(np.concatenate([part["upper"] for part in ranges]))
    ends = ends[(ends > 0) & (ends < INFINITY)]
    if x == "time" and len(ends) and ends[0] < ends[-1]:
        origin, latest = int(ends[0]), int(ends[-1])
        pad = 0.03 * (latest - origin)
        clock = next((a_second for least, a_second in CLOCKS if least <= origin and latest < LATEST_DATE), 0)
        if clock:
            label = "created_at (UTC)"
        else:
            label = "created_at" if latest < 10**8 else f"created_at - {origin:,}"
            pad, origin = (pad, 0) if latest < 10**8 else (pad, origin)
        begins = float(int(ends[0]) - origin)
        label += "; the first and the last range are open"
        return Axis("lower", "upper", origin, begins - pad, float(latest - origin) + pad, label, clock)
    items = max(int(part["hi"].max(initial=1)) for part in ranges)
    return Axis("lo", "hi", 0, 0.0, float(items), "own items, oldest first")


def _along(values: npt.NDArray[Any], axis: Axis) -> npt.NDArray[np.float64]:
    """Where timestamps or indices lie, in columns."""
    values = values.astype(np.uint64)
    before = values < np.uint64(axis.origin)  # the first range begins at 0, far outside
    offset = np.where(before, 0, values - np.uint64(axis.origin)).astype(np.float64)
    offset[before] = -np.inf
    return np.clip((offset - axis.first) * (COLUMNS / (axis.last - axis.first)), 0, COLUMNS)


def _band(ranges: npt.NDArray[np.void], axis: Axis) -> npt.NDArray[np.uint8]:
    """The picture of one message, (BAND, COLUMNS, 3)."""
    ranges = ranges[ranges["lo"] >= 0]  # what was not read is not placed
    begin, end = (_along(ranges[name], axis) for name in (axis.begin, axis.end))
    kinds = _kinds(ranges)
    shares = np.zeros((len(COLOURS), COLUMNS))
    seams = np.zeros(COLUMNS, np.bool_)
    seams[end[(end - begin >= SEAM) & (end < COLUMNS)].astype(np.int64)] = True
    for kind in range(len(COLOURS)):
        here = kinds == kind
        shares[kind] = _covered(begin[here], end[here])
        if kind <= OPEN:  # be it of no length at all, such as a range within one second
            touched = np.minimum(begin[here].astype(np.int64), COLUMNS - 1)
            shares[kind, touched] = np.maximum(shares[kind, touched], SLIVER)
            seams[touched[(end - begin)[here] < SEAM]] = False
    tops = np.minimum(np.cumsum(shares, axis=0), 1.0)
    heights = (BAND - 0.5 - np.arange(BAND)) / BAND
    above = (heights[None, :, None] >= tops[:, None, :]).sum(axis=0)  # how many kinds end below each pixel
    palette = np.array([to_rgb(colour) for colour in (*COLOURS, "white")])
    band: npt.NDArray[np.uint8] = np.round(255 * palette).astype(np.uint8)[above]
    band[:, seams] = 255
    return band


def _kinds(ranges: npt.NDArray[np.void]) -> npt.NDArray[np.int64]:
    outcome = ranges["outcome"]
    hashed = np.select([outcome == MATCHED, outcome == MISMATCHED], [SAME, DIFFERS], OPEN)
    kinds: npt.NDArray[np.int64] = np.select(
        [ranges["mode"] == FINGERPRINT, ranges["mode"] == ID_LIST], [hashed, LISTED], PASSED
    )
    return kinds


def _covered(begin: npt.NDArray[np.float64], end: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """What share of each column some ranges cover that follow one another, (COLUMNS,)."""
    if not len(begin):
        return np.zeros(COLUMNS)
    places = np.stack([begin, end], axis=1).ravel()
    lengths = np.stack([np.zeros(len(begin)), end - begin], axis=1).ravel()
    covered: npt.NDArray[np.float64] = np.diff(np.interp(np.arange(COLUMNS + 1), places, np.cumsum(lengths)))
    return covered


def _label_rounds(axes: Axes, messages: npt.NDArray[np.void]) -> None:
    every = -(-len(messages) // (2 * LABELLED))
    shown = np.arange(0, len(messages), max(every, 1))
    axes.set_yticks(shown + 0.4, [_message(messages[k]) for k in shown])
    axes.tick_params(axis="y", length=0)
    axes.set_ylabel("round (↑ up, ↓ down)")
    for side in ("left", "bottom"):
        axes.spines[side].set_visible(False)


def _message(row: Any) -> str:
    return f"{row['round']} {'↓' if row['down'] else '↑'}"


def _label_axis(axes: Axes, axis: Axis) -> None:
    axes.set_xlabel(axis.label)
    if not axis.clock:
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.xaxis.set_major_formatter(EngFormatter())
        return
    seconds = ((axis.origin + at) / axis.clock for at in (axis.first, axis.last))
    first, last = (date2num(np.datetime64("1970-01-01")) + at / 86_400 for at in seconds)
    image = axes.images[0]
    image.set_extent((first, last, *image.get_extent()[2:]))
    locator = AutoDateLocator()
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))


def _draw_sizes(axes: Axes, messages: npt.NDArray[np.void]) -> None:
    at = np.arange(len(messages)) + 0.4
    axes.barh(at, messages["bytes"], height=0.75, color="#777777")
    axes.set_xlabel("bytes of the message")
    axes.xaxis.set_major_formatter(in_bytes())
    axes.xaxis.set_major_locator(MaxNLocator(3))
    axes.tick_params(axis="y", length=0, labelleft=False)
    axes.spines["left"].set_visible(False)
    if len(messages) <= LABELLED:
        for y, size in zip(at, messages["bytes"].tolist(), strict=True):
            told: dict[str, Any] = {"textcoords": "offset points", "va": "center", "fontsize": "small"}
            axes.annotate(told_bytes(size), (size, y), (3, 0), **told)
        axes.margins(x=0.35)
