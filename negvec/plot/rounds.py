"""Bytes by round and kind: what the initiator sent above, what the responder answered below."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from negvec.plot.style import BLUE, GREEN, GREY, figure, head, in_bytes, one_side, plural, style, told_bytes
from negvec.trace import Trace

KINDS = (("fingerprint_bytes", "Fingerprint", BLUE), ("id_list_bytes", "IdList", GREEN), ("skip_bytes", "Skip", GREY))
DIRECTIONS = ((False, "up, from the initiator"), (True, "down, from the responder"))


def bytes_by_round(trace: Trace) -> Figure:
    """Draw how many bytes each message spends on ranges of each mode.

    Parameters
    ----------
    trace : Trace

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ValueError
        The trace has seen nothing.
    """
    messages, _ = one_side(trace)
    with style():
        drawn = figure(9, 5)
        for axes, (down, title) in zip(drawn.subplots(2, 1, sharex=True), DIRECTIONS, strict=True):
            rows = messages[messages["down"] == down]
            base = np.zeros(len(rows))
            for column, name, colour in KINDS:
                axes.bar(rows["round"], rows[column], 0.8, base, color=colour, label=name)
                base = base + rows[column]
            axes.set_title(f"{title}: {told_bytes(int(rows['bytes'].sum()))}")
            axes.set_ylabel("bytes")
            axes.yaxis.set_major_formatter(in_bytes())
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set(xlabel="round", xlim=(0.4, messages["round"].max() + 0.6))
        rounds, total = int(messages["round"].max()), int(messages["bytes"].sum())
        head(drawn, f"Bytes by round and mode: {plural(rounds, 'round')}, {told_bytes(total)}")
        handles, labels = axes.get_legend_handles_labels()
        drawn.legend(handles, labels, loc="outside lower center", ncols=len(KINDS))
    return drawn
