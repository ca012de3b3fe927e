"""A client's end of one NIP-77 session, and what the words mean in which relays refuse one.

Relays do not agree on how they refuse: by NEG-ERR, by CLOSED, or by a NOTICE that names no subscription. Whoever
drives the session has to tell a set that is too large from a rate, a policy or a relay that knows no negentropy: the
first calls for a smaller window, the others do not.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np

from negvec.errors import ProtocolError
from negvec.items import Ids
from negvec.nip77.frames import (
    BRIEF_FRAME,
    Frame,
    FrameError,
    Message,
    NegErr,
    NegMsg,
    Other,
    neg_close,
    neg_msg,
    neg_open,
    read,
)
from negvec.protocol import Negentropy, PacingPolicy, SplitPolicy
from negvec.protocol.negentropy import NO_IDS
from negvec.protocol.stages import Watch
from negvec.storage.seam import Storage

DEFAULT_FRAME_SIZE = 60_000
"""Bytes before hex: strfry takes websocket messages of 131,072 bytes at most."""


class Refusal(NamedTuple):
    """Why a session ended without its result.

    Attributes
    ----------
    kind : str
        "size": the relay will not reconcile so many items. "rate": it was asked too often, or too much at once.
        "policy": it serves others, or other things. "unsupported": it knows no negentropy, or not this version.
        "closed": it has let go of the session. "protocol": one side's messages are not as they have to be.
        "other": it says so in words that are not known.
    reason : str
        Its words.
    cap : int or None
        The most items that it reconciles, where it says so.
    """

    kind: str
    reason: str
    cap: int | None = None


_KINDS = (  # in this order: "blocked: too many query results" is about size, and no policy
    (
        "unsupported",
        r"negentropy (is )?disabled|negentropy.*not (supported|enabled)|unknown (cmd|envelope|message|label)",
    ),
    ("unsupported", r"invalid client message|unrecogni[sz]ed|unsupported|unknown command|invalid message type|bad msg"),
    ("rate", r"rate.?limit|too many (concurrent|negentropy|neg|requests|subscriptions|open)|slow down|try again"),
    ("size", r"too many (query )?(results|records|events|items)|too (big|large)|max_sync_events|exceeds"),
    ("protocol", r"protocol.?error|invalid negentropy|parse|malformed"),
    ("closed", r"^closed|not found|unknown subscription|timed? ?out|idle"),
    ("policy", r"^(blocked|restricted|auth-required|mute|pow)|not allowed|forbidden|denied"),
)
COUNTS = re.compile(r"\b([0-9]{1,18})\s*>\s*([0-9]{1,18})\b")  # "(2988225 > 1000000)", as some relays have it

_OF_NEGENTROPY = ("unsupported", "rate")  # what a NOTICE, which names no subscription, may say about this session


_LONGEST_REASON = 400  # signs; what is longer is no reason, and would be searched for as long as the relay likes


def legible(reason: str) -> str:
    """A relay's words as they may be shown on a terminal: not too many, and in one line."""
    cut = reason if len(reason) <= _LONGEST_REASON else reason[:_LONGEST_REASON] + "..."
    return "".join(sign if sign.isprintable() else " " for sign in cut)


def classify(reason: str, cap: int | None = None) -> Refusal:
    """Tell what a relay means by the words in which it refuses a session; `cap` is what it gave as a number."""
    words = legible(reason).lower()
    kind = next((kind for kind, pattern in _KINDS if re.search(pattern, words)), "other")
    counts = COUNTS.search(words)
    if kind == "size" and cap is None and counts is not None:
        cap = int(counts[2])
    return Refusal(kind, reason, cap if kind == "size" else None)


class ClientSession:
    """One session of a client: it compares a storage with what a relay has of a filter.

    Parameters
    ----------
    storage : Storage
        Own items of the same filter; a snapshot or window that will not change.
    subscription : str
        Not empty; no other session or REQ of the connection has it. Relays want up to 64 signs of plain ASCII.
    subscription_filter : dict
        As in a REQ (NIP-01).
    frame_size_limit : int, default 60,000
        The largest message to send, in bytes before hex.
    policy : SplitPolicy or PacingPolicy, optional
        How ranges are split; as in `negvec.Negentropy`.
    watch : callable, optional
        Watches the initiator, as in `negvec.Negentropy`; such as a `negvec.trace.Trace`.

    Attributes
    ----------
    over : bool
        Nothing more is to come; the result is complete, or `refusal` says why it is not.
    refusal : Refusal or None
    heard : float
        When the relay last said something in this session: what `receive` was told as `now`.
    rounds, bytes_up, bytes_down : int
        Messages answered by the relay, and bytes of messages before hex.
    """

    def __init__(
        self,
        storage: Storage,
        subscription: str,
        subscription_filter: dict[str, Any],
        frame_size_limit: int = DEFAULT_FRAME_SIZE,
        *,
        policy: SplitPolicy | PacingPolicy | None = None,
        watch: Watch | None = None,
    ) -> None:
        if not subscription:
            raise ValueError("a subscription id is not empty")
        self._storage, self._policy, self._watch = storage, policy, watch
        self._initiator = Negentropy(storage, frame_size_limit, stream=True, policy=policy, watch=watch)
        self.subscription, self._filter = subscription, subscription_filter
        self._first = b""  # the message that has been sent
        self._have: list[Ids] = []
        self._need: list[Ids] = []
        self.over = False
        self.refusal: Refusal | None = None
        self.heard = 0.0
        self.rounds = self.bytes_up = self.bytes_down = 0

    def open(self, now: float = 0.0) -> bytearray:
        """The NEG-OPEN that begins the session; once."""
        message = self._first = self._initiator.initiate()
        frame = neg_open(self.subscription, self._filter, message)
        self.bytes_up += len(message)
        self.heard = now
        return frame

    def limit_frames(self, frame_size_limit: int) -> None:
        """Set another frame size limit, once it is known: before `open`, or after it and before the first answer.

        The first message is the same whatever the limit, since it has but 16 ranges or so.

        Raises
        ------
        ValueError
            The limit is none; or an answer has come; or the policy makes another first message for another limit, or
            somebody watches, who would see a second one.
        """
        if self.rounds:
            raise ValueError("the session is under way: its frame size limit is set before the first answer")
        if self._first and self._watch is not None:
            raise ValueError("the session is watched: its frame size limit is set before it opens")
        initiator = Negentropy(self._storage, frame_size_limit, stream=True, policy=self._policy, watch=self._watch)
        if self._first and initiator.initiate() != self._first:
            raise ValueError(f"with a limit of {frame_size_limit} bytes the first message had been another one")
        self._initiator = initiator

    def receive(self, frame: Frame, now: float = 0.0) -> list[bytes | bytearray]:
        """Take any frame that came on the connection, and give what is to be sent for it.

        What belongs to other subscriptions is passed over, and does not count as heard.
        """
        return [] if self.over else self._hear(_read(frame), now)

    def receive_at_once(self, frame: Frame, now: float = 0.0) -> list[bytes | bytearray] | None:
        """As `receive`, where nothing has to be compared; else None, and nothing has happened.

        That is a short frame which leaves nothing open, or refuses. An event loop may call this, and leave the rest to
        a thread.
        """
        if len(frame) > BRIEF_FRAME:
            return None
        if self.over:
            return []
        message = _read(frame)
        if isinstance(message, NegMsg) and message.subscription == self.subscription and len(message.message) > 1:
            return None
        return self._hear(message, now)

    def _hear(self, message: Message | FrameError, now: float) -> list[bytes | bytearray]:
        if isinstance(message, FrameError):
            return self._hear_fault(message, now)
        if isinstance(message, Other):
            return self._hear_other(message.elements, now)
        if message.subscription != self.subscription:
            return []
        self.heard = now
        if isinstance(message, NegMsg):
            return self._answer(message.message)
        if isinstance(message, NegErr):
            return self._refused(classify(message.reason, message.cap))
        return self._refused(Refusal("protocol", "the relay sent what only clients send"), closing=True)

    def _hear_fault(self, error: FrameError, now: float) -> list[bytes | bytearray]:
        if error.subscription != self.subscription or not error.label.startswith("NEG-"):
            return []
        self.heard = now
        return self._refused(Refusal("protocol", str(error)), closing=True)

    def close(self) -> list[bytes]:
        """Give up: the NEG-CLOSE to be sent, if the session is still open."""
        if self.over:
            return []
        self.over = True
        return [neg_close(self.subscription)]

    def take(self) -> tuple[Ids, Ids]:
        """Have and need, (k, 32) uint8 each, as found since this was asked last; each id once over the session."""
        taken = np.concatenate([NO_IDS, *self._have]), np.concatenate([NO_IDS, *self._need])
        self._have, self._need = [], []
        return taken

    def _answer(self, message: bytes) -> list[bytes | bytearray]:
        self.rounds += 1
        self.bytes_down += len(message)
        try:
            step = self._initiator.reconcile(message)
        except ProtocolError as error:
            return self._refused(Refusal("protocol", str(error)), closing=True)
        self._have.append(step.have)
        self._need.append(step.need)
        if step.message is None:
            return [*self.close()]
        self.bytes_up += len(step.message)
        return [neg_msg(self.subscription, step.message)]

    def _hear_other(self, elements: list[Any], now: float) -> list[bytes | bytearray]:
        """CLOSED of this subscription; or a NOTICE that says, before any answer, that there will be none."""
        texts = [element for element in elements[1:] if isinstance(element, str)]
        if elements[0] == "CLOSED" and texts[:1] == [self.subscription]:
            self.heard = now
            return self._refused(classify(texts[1] if len(texts) > 1 else "closed"))
        if elements[0] == "NOTICE" and texts and not self.rounds:
            refusal = classify(texts[0])
            if refusal.kind in _OF_NEGENTROPY or "negentropy" in texts[0].lower():
                return self._refused(refusal)
        return []

    def _refused(self, refusal: Refusal, closing: bool = False) -> list[bytes | bytearray]:
        self.refusal = refusal
        frames = self.close()
        return [*frames] if closing else []


def _read(frame: Frame) -> Message | FrameError:
    try:
        return read(frame)
    except FrameError as error:
        return error
