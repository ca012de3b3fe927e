"""`Negentropy`: one side of a reconciliation, as its users know it from the other libraries."""

from __future__ import annotations

import operator
from typing import Any, NamedTuple, TypeGuard, cast

import numpy as np

from negvec.errors import ProtocolError, UnsupportedVersion
from negvec.items import ID_SIZE, Ids
from negvec.protocol.adaptive import AdaptivePolicy
from negvec.protocol.codec import VERSION, VERSIONS
from negvec.protocol.findings import Findings
from negvec.protocol.policy import TINIEST_FRAME, PacingPolicy, ReferencePolicy, SplitPolicy
from negvec.protocol.round import Round, as_bytes
from negvec.protocol.stages import Watch
from negvec.protocol.stream import FindingsStream
from negvec.protocol.worklist import PacedRound
from negvec.storage.seam import Storage

SMALLEST_FRAME = 4096  # bytes; less may not hold one answer (reference, and NIP-77's relays)

LARGEST_FRAME = 2**62  # bytes; more is no limit

RESERVE = 200  # bytes of a frame that the reference keeps free for the range that closes it
WIDEST_BOUND = 45  # bytes of a Skip before a range, at most

STALLED_ROUNDS = 64
"""Rounds without a find or a settled item after which a peer is given up. A range of all items that there can be is
down to a list after 16 rounds of 16 buckets, so a peer that plays by the protocol always gets further sooner."""

NO_IDS = np.empty((0, ID_SIZE), np.uint8)
NO_IDS.flags.writeable = False


class Step(NamedTuple):
    """What one call of `Negentropy.reconcile` gave.

    Attributes
    ----------
    message : bytes or None
        To be sent to the peer; None when the initiator is done.
    have : ndarray of uint8, shape (k, 32)
        Ids that we hold and the peer lacks, in the order of our items. Filled in the initiator's last step, where
        `message` is None, and empty before: only then is it certain that no id comes twice, or is in both lists. With
        `stream` on, what each message has shown, and no step before has given.
    need : ndarray of uint8, shape (k, 32)
        Ids that the peer holds and we lack, in the order in which the peer sent them; likewise.
    """

    message: bytes | None
    have: Ids
    need: Ids


class Negentropy:
    """One side of a reconciliation over Negentropy Protocol V1.

    The side that calls `initiate` is the initiator, and learns the difference. An instance that never does is a
    responder: a pure function of its storage and the message, which may answer many peers in turn, from several
    threads at once.

    Parameters
    ----------
    storage : Storage
        Sealed.
    frame_size_limit : int, default 0
        Largest message to send, in bytes (before hex): 0 for no limit, else 4096 or more. Limits make more rounds, and
        lose nothing.
    stream : bool, default False
        Give have and need as they are found, each id once, instead of with the last step. What is given can't be taken
        back: an id that both sides hold under different timestamps may be in one of the lists, or in both.
    policy : SplitPolicy or PacingPolicy, optional
        How ranges are split; by default as the C++ reference does (`ReferencePolicy`), or, with `tiny`, as
        `AdaptivePolicy` does. One policy may serve any number of instances.
    watch : callable, optional
        Called with the name of each stage of a round as it ends; for profiles. A `negvec.trace.Trace` keeps all that
        happens.
    tiny : bool, default False
        Allow limits from 128 bytes on, for radios and meshes; the policy is `AdaptivePolicy` then. A limit is on what
        this side sends: two tiny ends that find each other both have it, while a peer of another implementation
        understands tiny messages, but sends frames of 4096 bytes and more. A tiny responder with limits below 200 may
        need such an initiator, too: where ids agree in all but their last bytes, one that asks about everything at
        once, as others do, leaves no room for an id in the answer.

    Raises
    ------
    ValueError
        The limit is between 1 and 4095 (or 127, with `tiny`), or negative; or the policy's answer to one range may be
        longer than the limit.
    SealError
        The storage is not sealed.
    """

    def __init__(
        self,
        storage: Storage,
        frame_size_limit: int = 0,
        *,
        stream: bool = False,
        policy: SplitPolicy | PacingPolicy | None = None,
        watch: Watch | None = None,
        tiny: bool = False,
    ) -> None:
        limit = operator.index(frame_size_limit)
        policy = policy or (AdaptivePolicy() if tiny else ReferencePolicy())
        _check_limit(limit, policy, tiny)
        if not issubclass(type(storage), Storage):  # see _paces
            raise TypeError(f"storage is a sealed storage such as negvec.seal makes, not {type(storage).__name__}")
        len(storage)  # raises SealError before the seal
        limit = min(limit, LARGEST_FRAME)
        self._round: Round | PacedRound
        if _paces(policy):
            self._round = PacedRound(storage, limit, policy, watch)
        else:
            self._round = Round(storage, limit, cast(SplitPolicy, policy), watch)
        self._findings: Findings | None = None  # the initiator's
        self._stream = stream
        self._done = False
        self._furthest = -1  # own index up to which items were settled at the best
        self._stalled = 0  # rounds without progress
        self._listing = 0  # rounds whose only progress was that the peer listed ids
        self._patience = 3 * STALLED_ROUNDS  # such rounds until it is looked whether those were new ones
        self._distinct = 0

    def initiate(self) -> bytes:
        """Begin as the initiator; returns the first message.

        Raises
        ------
        ValueError
            It has begun already: a new reconciliation takes a new instance.
        """
        if self._findings is not None:
            raise ValueError("this reconciliation has begun already; use a new Negentropy for another one")
        self._findings = (FindingsStream if self._stream else Findings)(self._round.storage)
        return self._round.first_message()

    def reconcile(self, message: Any) -> Step:
        """Take the peer's message and answer it.

        Parameters
        ----------
        message : bytes-like

        Returns
        -------
        Step
            The answer, and on the initiator's last step what both sides lack.

        Raises
        ------
        ProtocolError
            The message breaks the protocol, or the peer has made no progress for `STALLED_ROUNDS` rounds.
        UnsupportedVersion
            The responder speaks another version (initiator only; a responder answers with its own version).
        ValueError
            The reconciliation is over.
        """
        data = as_bytes(message)
        if self._done:
            raise ValueError("this reconciliation is over; use a new Negentropy for another one")
        if len(data) == 0:
            raise ProtocolError("the message is empty: no version byte", 0)
        if data[0] not in VERSIONS:
            raise ProtocolError(f"0x{data[0]:02x} is no version byte", 0)
        if data[0] != VERSION:
            if self._findings is not None:
                raise UnsupportedVersion(int(data[0]) - VERSIONS.start)
            return Step(bytes([VERSION]), NO_IDS, NO_IDS)
        findings = self._findings
        if findings is None:
            answer, _ = self._round.answer(data, None)
            return Step(answer, NO_IDS, NO_IDS)
        marked, needed = findings.marked, findings.needed
        answer, settled = self._round.answer(data, findings)
        if len(answer) == 1:
            self._done = True
            have, need = findings.finish()
            self._round.watch("compare")
            return Step(None, have, need)
        if settled > self._furthest or findings.marked > marked:
            self._furthest = max(self._furthest, settled)
            self._stalled = self._listing = 0
        elif findings.needed > needed:
            self._stalled = 0
            self._listing += 1
        else:
            self._stalled += 1
        self._check_progress(findings)
        if isinstance(findings, FindingsStream):
            return Step(answer, *findings.take())
        return Step(answer, NO_IDS, NO_IDS)

    def _check_progress(self, findings: Findings) -> None:
        """Give up a peer that can't be playing by the protocol.

        Its lists are a kind of progress only if they bring ids that it has not listed before, one in four rounds at
        least; that is looked up after twice as many rounds each time, so that it costs little.
        """
        if self._listing >= self._patience:
            distinct = findings.distinct_needs()
            if distinct < self._distinct + self._listing // 4:
                self._stalled = STALLED_ROUNDS
            self._distinct = distinct
            self._patience *= 2
            self._listing = 0
        if self._stalled >= STALLED_ROUNDS:
            raise ProtocolError(
                f"the peer's last {STALLED_ROUNDS} answers settled nothing: it does not follow the protocol; giving up"
            )


def _paces(policy: SplitPolicy | PacingPolicy) -> TypeGuard[PacingPolicy]:
    # Python keeps the answer for a type, while isinstance looks up all names of a Protocol each time (before 3.12):
    # 20 of the 75 microseconds that beginning a session took.
    return issubclass(type(policy), PacingPolicy)


def _check_limit(limit: int, policy: SplitPolicy | PacingPolicy, tiny: bool) -> None:
    """Refuse a limit in which an answer may not fit."""
    if limit == 0:
        return
    if tiny and limit < TINIEST_FRAME:
        raise ValueError(
            f"frame_size_limit is 0 (no limit) or at least {TINIEST_FRAME} bytes, not {limit}: "
            "less may not hold one id with its bounds"
        )
    if not tiny and limit < SMALLEST_FRAME:
        raise ValueError(
            f"frame_size_limit is 0 (no limit) or at least {SMALLEST_FRAME} bytes, not {limit}; "
            f"tiny=True allows limits from {TINIEST_FRAME} bytes on, between two ends that both have it"
        )
    if _paces(policy):
        return
    if limit < SMALLEST_FRAME:
        raise ValueError(f"frames of {limit} bytes take a policy that paces itself, such as negvec.AdaptivePolicy()")
    largest = getattr(policy, "largest_answer", 0) + RESERVE + WIDEST_BOUND
    if limit < largest:
        raise ValueError(
            f"the answer to one range may take {largest} bytes with {policy!r}, more than the frame_size_limit of "
            f"{limit}: no range would ever be answered; choose fewer buckets, shorter lists, or a larger limit"
        )
