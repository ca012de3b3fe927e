"""The relay's end of NIP-77: the sessions of one connection.

It answers as strfry does, text for text, since clients tell by them what to do. A session is nothing but a storage and
its frame size limit: the protocol's responder keeps no state, and the client leads.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from negvec.errors import ProtocolError
from negvec.nip77.frames import (
    BRIEF_FRAME,
    Frame,
    FrameError,
    NegClose,
    NegErr,
    NegMsg,
    NegOpen,
    neg_err,
    neg_msg,
    notice,
    read,
)
from negvec.protocol import Negentropy
from negvec.protocol.codec import ID_LIST, decode
from negvec.protocol.round import as_bytes
from negvec.storage.seam import Storage

logger = logging.getLogger("negvec.nip77")

PROTOCOL_ERROR = "PROTOCOL-ERROR"
TOO_MANY_ITEMS = "blocked: too many query results"
TOO_MANY_SESSIONS = "ERROR: too many concurrent NEG requests"
UNKNOWN_SESSION = "closed: unknown subscription handle"
TIMED_OUT = "closed: no message for too long"

Resolve = Callable[[dict[str, Any], int], Storage]
"""Finds the set of a filter: called with it, and the most items that are served. It returns a storage with all of
them, a snapshot or window that will not change; where there are more than the most, any that is larger will do. It
raises `Refused` for what it will not serve."""


Ready = Callable[[dict[str, Any], int], Storage | None]
"""As `Resolve`, and returns at once: None where the set has to be searched for first. The storage sums up any range in
O(1)."""


class Refused(Exception):
    """A filter that a relay does not serve, and what the client is told."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True)
class Limits:
    """What one connection may ask for; the defaults are strfry's.

    Attributes
    ----------
    frame_size : int
        Bytes of the largest message to send, before hex; 0 for no limit.
    items : int
        The largest set of a filter that is reconciled; all that there is, the filter {}, is not limited.
    sessions : int
        How many may be open at once.
    subscription_id : int
        Bytes of the longest subscription id.
    idle_seconds : float
        After so long without a message a session is closed.
    """

    frame_size: int = 500_000
    items: int = 1_000_000
    sessions: int = 200
    subscription_id: int = 71
    idle_seconds: float = 300.0


@dataclass
class _Session:
    responder: Negentropy
    heard: float
    ready: bool


class ServerSessions:
    """The sessions of one connection. Its methods are called by one thread at a time, whichever that is.

    Parameters
    ----------
    resolve : callable
        Finds the set that a filter stands for; see `Resolve`.
    limits : Limits, optional
    ready : callable, optional
        Gives the set where it is at hand; see `Ready`, and `receive_at_once`.

    Attributes
    ----------
    opened, rounds, bytes_in, bytes_out : int
        Since the connection began: sessions opened, messages answered, bytes of messages before hex.
    """

    def __init__(self, resolve: Resolve, limits: Limits | None = None, ready: Ready | None = None) -> None:
        self._resolve, self._ready = resolve, ready
        self.limits = limits or Limits()
        self._sessions: dict[str, _Session] = {}
        self.opened = self.rounds = self.bytes_in = self.bytes_out = 0

    def __len__(self) -> int:
        """Sessions that are open."""
        return len(self._sessions)

    def receive(self, frame: Frame, now: float = 0.0) -> list[bytes | bytearray]:
        """Take a frame of the client, and give what is to be sent for it, in order.

        Parameters
        ----------
        frame : bytes, bytearray, memoryview or str
            NEG-OPEN, NEG-MSG or NEG-CLOSE.
        now : float
            Seconds of any clock that does not go back; `expire` is told the same.
        """
        try:
            message = read(frame)
        except FrameError as error:
            return self._answer_fault(error)
        if isinstance(message, NegOpen):
            return self._open(message, now, self._resolve) or []
        if isinstance(message, NegMsg):
            return self._answer(message.subscription, message.message, now)
        if isinstance(message, NegClose):
            self._sessions.pop(message.subscription, None)
            return []
        label = "NEG-ERR" if isinstance(message, NegErr) else message.elements[0]
        logger.debug("label %.40r is not for this end", label)
        return [notice("ERROR: bad msg: unknown cmd")]

    def receive_at_once(self, frame: Frame, now: float = 0.0) -> list[bytes | bytearray] | None:
        """As `receive`, where that is certain to take well below a millisecond; else None, and nothing has happened.

        That is a short frame about a set that is at hand, and without an IdList, which is answered by all own ids in
        its range: a kilobyte of message has 53 Fingerprints at most, and one that differs is answered by 16 others or
        31 ids, so that 900 fingerprints are made (0.3 ms; a session's first 16 ranges take a tenth of it). An event
        loop may call this, and leave the rest to a thread.
        """
        if self._ready is None or len(frame) > BRIEF_FRAME:
            return None
        try:
            message = read(frame)
        except FrameError as error:
            return self._answer_fault(error)
        if isinstance(message, NegClose):
            self._sessions.pop(message.subscription, None)
            return []
        if not isinstance(message, (NegOpen, NegMsg)) or _lists(message.message):
            return None
        if isinstance(message, NegMsg):
            session = self._sessions.get(message.subscription)
            return None if session and not session.ready else self._answer(*message, now)
        return self._open(message, now, self._ready, ready=True)

    def expire(self, now: float) -> list[bytes]:
        """Close the sessions that have been idle for too long; gives what is to be sent."""
        last = now - self.limits.idle_seconds
        idle = [name for name, session in self._sessions.items() if session.heard < last]
        for name in idle:
            del self._sessions[name]
        return [neg_err(name, TIMED_OUT) for name in idle]

    def close(self) -> None:
        """Let go of all sessions, when the connection ends."""
        self._sessions.clear()

    def _open(self, request: NegOpen, now: float, find: Ready, ready: bool = False) -> list[bytes | bytearray] | None:
        """Begin a session; None, and nothing has happened, if `find` gives no storage."""
        name = request.subscription
        fault = self._fault_of(name)
        if fault:
            return [notice(f"ERROR: negentropy error: {fault}")]
        if name not in self._sessions and len(self._sessions) >= self.limits.sessions:
            return [notice(TOO_MANY_SESSIONS)]
        try:
            storage = find(request.filter, self.limits.items)
        except Refused as refused:
            self._sessions.pop(name, None)
            return [neg_err(name, refused.reason)]
        if storage is None:
            return None
        self._sessions.pop(name, None)
        if request.filter and len(storage) > self.limits.items:  # strfry has all that it stores prebuilt, uncapped
            return [neg_err(name, TOO_MANY_ITEMS, self.limits.items)]
        responder = Negentropy(storage, self.limits.frame_size)
        self._sessions[name] = _Session(responder, now, ready)
        self.opened += 1
        return self._answer(name, request.message, now)

    def _answer(self, name: str, message: bytes, now: float) -> list[bytes | bytearray]:
        session = self._sessions.get(name)
        if session is None:
            return [neg_err(name, UNKNOWN_SESSION)]
        session.heard = now
        try:
            answer = session.responder.reconcile(message).message
        except ProtocolError as error:
            logger.info("session %.80r ends: %s", name, error)
            del self._sessions[name]
            return [neg_err(name, PROTOCOL_ERROR)]
        assert answer is not None
        self.rounds += 1
        self.bytes_in += len(message)
        self.bytes_out += len(answer)
        return [neg_msg(name, answer)]

    def _fault_of(self, name: str) -> str | None:
        """What is wrong with a subscription id, in strfry's words."""
        if not 0 < len(name.encode()) <= self.limits.subscription_id:
            return "invalid subscription id length"
        if any(not " " <= sign < "\x7f" or sign in '"\\' for sign in name):
            return "invalid character in subscription id"
        return None

    def _answer_fault(self, error: FrameError) -> list[bytes | bytearray]:
        if error.kind in ("json", "label"):
            return [notice(f"ERROR: bad msg: {error.reason}")]
        if error.kind == "short":
            if error.subscription is None:
                return [notice("ERROR: bad msg: too few array elements")]
            return [notice("ERROR: negentropy error: negentropy query missing elements")]
        if error.subscription is None:
            return [notice("ERROR: negentropy error: NEG subscription id was not a string")]
        fault = self._fault_of(error.subscription)
        if fault:
            return [notice(f"ERROR: negentropy error: {fault}")]
        if error.kind == "type":
            part = "filter must be an object" if "filter" in error.reason else "payload must be a string"
            return [notice(f"ERROR: negentropy error: negentropy {part}")]
        if error.sign:
            return [notice(f"ERROR: negentropy error: unexpected character in from_hex: {error.sign.encode()[0]}")]
        self._sessions.pop(error.subscription, None)
        return [neg_err(error.subscription, PROTOCOL_ERROR)]


def _lists(message: bytes) -> bool:
    """Whether a message has an IdList; one that is malformed has none that is answered."""
    try:
        return bool((decode(as_bytes(message)).modes == ID_LIST).any())
    except ProtocolError:
        return False
