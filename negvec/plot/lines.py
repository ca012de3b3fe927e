"""Costs as lines: a fingerprint's over the width of its range, a reconciliation's over the density of differences.

They draw what `negvec.costs` measures.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, LogLocator, NullFormatter

from negvec.costs import least_bytes
from negvec.plot.style import BLACK, LINES, figure, style


def fingerprint_costs(costs: npt.NDArray[np.void]) -> Figure:
    """Draw what a fingerprint costs over the width of its range, a line for each way to compute it.

    Where the line of the first way crosses another's, that is marked and told: from there on the other costs less.

    Parameters
    ----------
    costs : ndarray of `negvec.costs.FINGERPRINT`
        From `negvec.costs.measure_fingerprints`, of one call or several, concatenated.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ValueError
        Nothing was measured.
    """
    ways = list(dict.fromkeys(costs["way"].tolist()))
    if not ways:
        raise ValueError("there is nothing measured to be drawn")
    costs = np.sort(costs, order="width")
    with style():
        drawn = figure(9, 5)
        axes = drawn.subplots()
        for way, (colour, mark, stroke) in zip(ways, itertools.cycle(LINES), strict=False):
            rows = costs[costs["way"] == way]
            width = crossing(costs, ways[0], way) if way != ways[0] else None
            label = way
            if width is not None and width > rows["width"][0]:
                label += f": less from {width:,.0f} items on"
                axes.axvline(width, color=colour, linewidth=0.8, linestyle=":")
            axes.plot(rows["width"], rows["seconds"], color=colour, marker=mark, linestyle=stroke, label=label)
        axes.set(xscale="log", yscale="log", xlabel="width of the range (items)", ylabel="time of a fingerprint")
        axes.xaxis.set_major_formatter(EngFormatter())
        axes.yaxis.set_major_formatter(EngFormatter(unit="s"))
        axes.grid(color="#DDDDDD", linewidth=0.6)
        axes.set_title("A fingerprint's cost over the width of its range")
        axes.legend()
    return drawn


def crossing(costs: npt.NDArray[np.void], one: str, other: str) -> float | None:
    """From which width on `one` costs more than `other`, by the widths at which both were measured; None if nowhere.

    Between two measured widths it is interpolated on logarithms.
    """
    ours, theirs = (costs[costs["way"] == way] for way in (one, other))
    _, rows, other_rows = np.intersect1d(ours["width"], theirs["width"], return_indices=True)
    ours, theirs = ours[rows], theirs[other_rows]
    ratio = np.log(ours["seconds"] / theirs["seconds"])
    below = np.flatnonzero(ratio <= 0)
    k = int(below[-1]) if len(below) else -1
    if k < 0 or k + 1 == len(ratio):
        return float(ours["width"][0]) if k < 0 and len(ratio) else None
    widths = np.log(ours["width"][k : k + 2])
    return float(np.exp(widths[0] - ratio[k] * (widths[1] - widths[0]) / (ratio[k + 1] - ratio[k])))


def policy_costs(runs: npt.NDArray[np.void]) -> Figure:
    """Draw bytes and rounds over the density of differences, a line for each policy, with the least bytes.

    Runs without any difference have no place in it.

    Parameters
    ----------
    runs : ndarray of `negvec.costs.RUN`
        From `negvec.costs.compare_policies`.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ValueError
        There is no run with differences.
    """
    runs = runs[runs["density"] > 0]
    policies = list(dict.fromkeys(runs["policy"].tolist()))
    if not policies:
        raise ValueError("there is no run with differences to be drawn")
    with style():
        drawn = figure(11, 4.8)
        sizes, rounds = drawn.subplots(1, 2)
        for policy, (colour, mark, stroke) in zip(policies, itertools.cycle(LINES), strict=False):
            rows = np.sort(runs[runs["policy"] == policy], order="density")
            line: dict[str, Any] = {"color": colour, "marker": mark, "linestyle": stroke, "label": policy}
            sizes.plot(rows["density"], (rows["bytes_up"] + rows["bytes_down"]) / (rows["have"] + rows["need"]), **line)
            rounds.plot(rows["density"], rows["rounds"], **line)
        densities = np.unique(runs["density"])
        for reference, stroke in ((True, "--"), (False, ":")):
            label = "least, responder as the reference" if reference else "least, any responder"
            least = least_bytes(densities, reference=reference) / densities
            sizes.plot(densities, least, color=BLACK, linestyle=stroke, label=label)
        sizes.set_title("Bytes for each difference, both ways")
        rounds.set_title("Rounds")
        for axes in (sizes, rounds):
            axes.set(xscale="log", yscale="log", xlabel="differences per item of the initiator's")
            axes.grid(color="#DDDDDD", linewidth=0.6)
            axes.xaxis.set_major_formatter("{x:g}")
        sizes.yaxis.set_major_formatter(EngFormatter(unit="B"))
        rounds.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        rounds.yaxis.set_major_formatter("{x:g}")
        rounds.yaxis.set_minor_formatter(NullFormatter())
        rounds.set_ylim(0.9, 1.2 * runs["rounds"].max(initial=1))
        sizes.legend(fontsize="small")
    return drawn
