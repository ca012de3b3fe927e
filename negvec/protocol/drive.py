"""Both sides in one process: the shortest way to a difference, and what tests, benchmarks and the command line run."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from negvec.items import Ids
from negvec.protocol.negentropy import Negentropy
from negvec.protocol.policy import PacingPolicy, SplitPolicy
from negvec.protocol.stages import Watch
from negvec.storage.seam import Storage


class Result(NamedTuple):
    """The outcome of a whole reconciliation.

    Attributes
    ----------
    have, need : ndarray of uint8, shape (k, 32)
        As in `Step`.
    rounds : int
        Messages of the initiator that were answered.
    bytes_up, bytes_down : int
        Bytes of all messages from the initiator to the responder, and back.
    """

    have: Ids
    need: Ids
    rounds: int
    bytes_up: int
    bytes_down: int


def drive(
    initiator: Negentropy, responder: Negentropy, on_round: Callable[[int, int, int], None] | None = None
) -> Result:
    """Carry messages between the two until the initiator is done.

    Parameters
    ----------
    initiator, responder : Negentropy
    on_round : callable, optional
        Called after each round with the number of rounds and the bytes up and down so far.
    """
    message: bytes | None = initiator.initiate()
    rounds = up = down = 0
    while True:
        assert message is not None
        up += len(message)
        answer = responder.reconcile(message).message
        assert answer is not None
        down += len(answer)
        rounds += 1
        if on_round is not None:
            on_round(rounds, up, down)
        step = initiator.reconcile(answer)
        if step.message is None:
            return Result(step.have, step.need, rounds, up, down)
        message = step.message


def reconcile(
    ours: Storage,
    theirs: Storage,
    frame_size_limit: int = 0,
    *,
    policy: SplitPolicy | PacingPolicy | None = None,
    watch: Watch | None = None,
) -> Result:
    """Reconcile two storages at hand over the whole protocol.

    Parameters
    ----------
    ours, theirs : Storage
        Sealed.
    frame_size_limit : int, default 0
        For both sides, as in `Negentropy`.
    policy : SplitPolicy or PacingPolicy, optional
        For both sides, as in `Negentropy`.
    watch : callable, optional
        Watches the initiator, as in `Negentropy`.

    Returns
    -------
    Result
    """
    initiator = Negentropy(ours, frame_size_limit, policy=policy, watch=watch)
    return drive(initiator, Negentropy(theirs, frame_size_limit, policy=policy))
