"""Stretches of time, and how one that a relay finds too large is cut."""

from __future__ import annotations

import time
from typing import NamedTuple

from negvec.nip77 import Refusal
from negvec.nip77.client import COUNTS
from negvec.relay.events import LATEST
from negvec.storage.seam import Storage

MOST_PIECES = 64  # into which a window is cut at once


class Window(NamedTuple):
    """A stretch of time, both ends inclusive."""

    since: int
    until: int


def cut(window: Window, refusal: Refusal, own: Storage, now: float | None = None) -> list[Window]:
    """Cut a window that holds too many of the relay's items; the pieces cover it, those in the future too.

    Where the relay says how many there are and how many it takes, into so many pieces; else in two. They hold equal
    shares of the own items, if there are enough to go by, or are equally long. Of a window that reaches into the
    future the rest of time becomes a piece. A window of one second can't be cut: then the list is empty.
    """
    moment = int(time.time() if now is None else now)
    if window.until > moment >= window.since:
        return [*_pieces(Window(window.since, moment), 1, own), Window(moment + 1, window.until)]
    if window.since == window.until:
        return []
    counts = COUNTS.search(refusal.reason)
    wanted = 2
    if counts and int(counts[2]):
        wanted = min(max(-(-2 * int(counts[1]) // int(counts[2])), 2), MOST_PIECES)
    return _pieces(window, wanted, own)


def _pieces(window: Window, count: int, own: Storage) -> list[Window]:
    size = len(own)
    if size >= 20 * count:
        marks = [
            int(own.items(k, k + 1)["created_at"][0]) for k in (size * piece // count for piece in range(1, count))
        ]
    else:
        span = window.until - window.since + 1
        marks = [window.since + span * piece // count for piece in range(1, count)]
    starts = [window.since, *sorted({mark for mark in marks if window.since < mark <= window.until})]
    if len(starts) == 1 and count > 1:  # all own items are of one second
        starts.append(window.since + (window.until - window.since + 1) // 2)
    ends = [start - 1 for start in starts[1:]] + [window.until]
    return [Window(*ends) for ends in zip(starts, ends, strict=True)]


EVERYTHING = Window(0, LATEST)
