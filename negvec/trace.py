"""What happened in each round of a reconciliation, as arrays.

A `Trace` is passed as `watch` to a `Negentropy`, whose messages, ranges and times it then keeps:

>>> import negvec.workloads
>>> from negvec.trace import Trace
>>> ours, theirs = (negvec.seal(*side) for side in negvec.workloads.pair("clustered", 5000))
>>> trace = Trace()
>>> _ = negvec.reconcile(ours, theirs, watch=trace)
>>> trace.messages[["round", "down", "ranges", "bytes"]].tolist()[:2]
[(1, False, 16, 315), (1, True, 83, 1588)]

Nothing of it is done, and nothing is taken from anyone's time, where no trace watches.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from negvec.items import ID_SIZE
from negvec.protocol.codec import FINGERPRINT, FINGERPRINT_SIZE, ID_LIST, MODE_NAMES, SKIP, Layout, Ranges, decode
from negvec.protocol.stages import Heard
from negvec.storage.seam import Bytes

UNKNOWN, MATCHED, MISMATCHED, UNANSWERED, UNREAD = range(5)
OUTCOMES = ("unknown", "matched", "mismatched", "unanswered", "unread")
"""What came of a range. Fingerprints that come in match ours or do not; those that the initiator sends have matched, or
not, by the answer, or the answer had no room for them. Ranges of a message that a full frame left unread are unread.
All else is unknown, such as Fingerprints of nothing that the initiator sends."""

SIDES = ("responder", "initiator")
DIRECTIONS = ("up", "down")

RANGE = np.dtype(
    [
        ("round", "<u4"),
        ("down", "?"),
        ("initiator", "?"),
        ("mode", "u1"),
        ("outcome", "u1"),
        ("lo", "<i8"),
        ("hi", "<i8"),
        ("lower", "<u8"),
        ("upper", "<u8"),
        ("ids", "<i8"),
        ("bytes", "<i8"),
    ]
)
"""A range of a message: its round, from 1; whether it went down, to the initiator; whether the initiator saw it, or the
responder; the mode, 0 Skip, 1 Fingerprint, 2 IdList; what came of it (an index of `OUTCOMES`); the watched side's own
items [lo, hi) in it, -1 where it is unread (of a Fingerprint that closes a full frame, those that it sums up); the
timestamps of its bounds, 2**64 - 1 being infinity; the ids that it lists; its bytes."""

MESSAGE = np.dtype(
    [
        ("round", "<u4"),
        ("down", "?"),
        ("initiator", "?"),
        ("ranges", "<i8"),
        ("bytes", "<i8"),
        ("skip_bytes", "<i8"),
        ("fingerprint_bytes", "<i8"),
        ("id_list_bytes", "<i8"),
        ("ids", "<i8"),
        ("matched", "<i8"),
        ("mismatched", "<i8"),
    ]
)
"""A message: as `RANGE`; the bytes of all, of which one is the version, and of the ranges of each mode; the ids listed;
the Fingerprints that matched and those that did not."""

STAGE = np.dtype([("round", "<u4"), ("initiator", "?"), ("stage", "U16"), ("seconds", "<f8")])
"""The time that one stage took of a side in one round (see `negvec.protocol.round`). What an initiator does with an
answer, and with the message that it sends next, belongs to the answer's round."""


class Frames(NamedTuple):
    """A trace as pandas DataFrames, with words in place of numbers."""

    ranges: Any
    messages: Any
    stages: Any


class Trace:
    """Keeps what happens on one side, or both; to be passed as `watch` to `negvec.Negentropy`."""

    def __init__(self) -> None:
        self._seen: list[tuple[tuple[int, bool, bool], npt.NDArray[np.void]]] = []  # of each message its ranges
        self._seconds: dict[tuple[int, bool, str], float] = {}
        self._rounds = {True: 0, False: 0}  # of the initiator, and of the responder
        self._side = True  # whose time is counted: whether the initiator's
        self._asked = np.empty(0, RANGE)  # what the initiator sent last
        self._last = 0.0

    @property
    def ranges(self) -> npt.NDArray[np.void]:
        """All ranges of all messages, in order, of dtype `RANGE`."""
        return np.concatenate([np.empty(0, RANGE), *(ranges for _, ranges in self._seen)])

    @property
    def messages(self) -> npt.NDArray[np.void]:
        """All messages, in order, of dtype `MESSAGE`."""
        messages = np.zeros(len(self._seen), MESSAGE)
        for row, (key, ranges) in zip(messages, self._seen, strict=True):
            row["round"], row["down"], row["initiator"] = key
            row["ranges"], row["bytes"], row["ids"] = len(ranges), 1 + ranges["bytes"].sum(), ranges["ids"].sum()
            for mode, name in enumerate(("skip_bytes", "fingerprint_bytes", "id_list_bytes")):
                row[name] = ranges["bytes"][ranges["mode"] == mode].sum()
            row["matched"] = (ranges["outcome"] == MATCHED).sum()
            row["mismatched"] = (ranges["outcome"] == MISMATCHED).sum()
        return messages

    @property
    def stages(self) -> npt.NDArray[np.void]:
        """The time of every stage, of dtype `STAGE`."""
        return np.array([(*key, seconds) for key, seconds in self._seconds.items()], STAGE)

    def to_pandas(self) -> Frames:
        """The three tables as DataFrames; modes and outcomes as words, directions as "up" and "down".

        Raises
        ------
        ImportError
            pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError("a trace becomes DataFrames with pandas: pip install pandas") from error
        frames = []
        for table in (self.ranges, self.messages, self.stages):
            frame = pd.DataFrame({name: table[name] for name in table.dtype.names or ()})
            frame.insert(1, "side", pd.Categorical.from_codes(frame.pop("initiator").astype(int), SIDES))
            for column, words in (("mode", MODE_NAMES), ("outcome", OUTCOMES)):
                if column in frame:
                    frame[column] = pd.Categorical.from_codes(frame[column], words)
            if "down" in frame:
                frame.insert(2, "direction", pd.Categorical.from_codes(frame.pop("down").astype(int), DIRECTIONS))
            frames.append(frame)
        return Frames(*frames)

    # ---- What a Negentropy tells: see negvec.protocol.stages

    def __call__(self, stage: str) -> None:
        """Count the time since the last stage as this stage's."""
        now = time.perf_counter()
        key = max(self._rounds[self._side], 1), self._side, stage
        self._seconds[key] = self._seconds.get(key, 0.0) + now - self._last
        self._last = now

    def begin(self, initiates: bool) -> None:
        """A call of the initiator or the responder begins: with its next round, if it is the responder's."""
        self._side = initiates
        if not initiates:
            self._rounds[False] += 1
        self._last = time.perf_counter()

    def heard(self, initiates: bool, message: Bytes, heard: Heard) -> None:
        """A message came in; `heard` is what was read of it."""
        ranges = decode(message)
        rows = _table(ranges, self._key(initiates, down=initiates))
        read = len(heard.upper)
        rows["lo"][:read], rows["hi"][:read] = heard.lower, heard.upper
        hashed = np.flatnonzero(rows["mode"][:read] == FINGERPRINT)
        rows["outcome"][hashed] = np.where(heard.differs[hashed], MISMATCHED, MATCHED)
        rows["outcome"][read:] = UNREAD
        rows["lo"][read:] = rows["hi"][read:] = -1
        if initiates:
            _judge(self._asked, rows[:read], read == len(rows))
        self._keep(initiates, initiates, rows)

    def said(self, initiates: bool, message: bytes, layout: Layout) -> None:
        """A message goes out; the initiator's last one, in which there is nothing, does not."""
        if initiates:
            if not len(layout.modes):
                return
            self._rounds[True] += 1
        rows = _table(decode(np.frombuffer(message, np.uint8)), self._key(initiates, down=not initiates))
        rows["lo"], rows["hi"] = layout.lo, layout.hi
        skips = rows["mode"] == SKIP  # of these a layout knows only where they end
        rows["lo"][skips] = np.concatenate([[0], rows["hi"][:-1]])[skips]
        if initiates:
            self._asked = rows
        self._keep(initiates, not initiates, rows)

    def _key(self, initiates: bool, down: bool) -> tuple[int, bool, bool]:
        return self._rounds[initiates], down, initiates

    def _keep(self, initiates: bool, down: bool, rows: npt.NDArray[np.void]) -> None:
        self._seen.append((self._key(initiates, down), rows))
        self._last = time.perf_counter()  # what this took is nobody's time


def _table(ranges: Ranges, key: tuple[int, bool, bool]) -> npt.NDArray[np.void]:
    rows = np.zeros(len(ranges.modes), RANGE)
    rows["round"], rows["down"], rows["initiator"] = key
    rows["mode"], rows["ids"] = ranges.modes, ranges.counts
    rows["upper"] = ranges.bounds.created_at
    rows["lower"][1:] = ranges.bounds.created_at[:-1]
    ends = ranges.payloads + ranges.counts * ID_SIZE + np.where(ranges.modes == FINGERPRINT, FINGERPRINT_SIZE, 0)
    rows["bytes"] = np.diff(ends, prepend=1)
    return rows


def _judge(asked: npt.NDArray[np.void], answer: npt.NDArray[np.void], complete: bool) -> None:
    """Fill in what came of the Fingerprints asked for: the range of the answer that holds their first item decides.

    What the answer does not go into is passed over, or unread where the answer is not `complete`.
    """
    hashed = np.flatnonzero((asked["mode"] == FINGERPRINT) & (asked["hi"] > asked["lo"]))
    lo, hi = asked["lo"][hashed], asked["hi"][hashed]
    by = np.searchsorted(answer["hi"], lo, "right")
    answered = by < len(answer)
    outcome = np.full(len(hashed), MATCHED if complete else UNREAD, np.uint8)
    row = answer[by[answered]]
    whole = (row["lo"] >= lo[answered]) & (row["hi"] <= hi[answered])
    cut = row["hi"] < hi[answered]  # only what differs is answered in parts
    said = np.select(
        [cut, row["mode"] == SKIP, row["mode"] == ID_LIST, row["outcome"] == MATCHED, whole],
        [MISMATCHED, MATCHED, MISMATCHED, np.where(whole, MISMATCHED, MATCHED), MISMATCHED],
        UNANSWERED,
    )
    outcome[answered] = said
    asked["outcome"][hashed] = outcome
