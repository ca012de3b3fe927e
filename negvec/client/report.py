"""What a sync did, counted while it runs."""

from __future__ import annotations

from dataclasses import dataclass, field

from negvec.nip77 import Refusal


@dataclass
class Report:
    """What a sync did.

    Attributes
    ----------
    have, need : list of bytes
        Ids that the store has and the relay lacks; and the other way round.
    rounds, bytes_up, bytes_down : int
        Of all sessions; bytes of messages before hex.
    windows : int
        Stretches of time that were reconciled, each in a session.
    paged : int
        Stretches that were read by REQ instead, because the relay does not reconcile.
    downloaded, uploaded : int
        Events that are in the store, or accepted by the relay, because of this.
    withheld : int
        Needed events that the relay did not give when asked by id.
    unwanted : int
        Events that the relay gave and the store did not take: invalid, deleted or replaced.
    rejected : int
        Events that the relay did not take.
    crowded : int
        Seconds that hold more events than the relay gives at once, where it does not reconcile: some may be missing.
    refusals : list of Refusal
        Why stretches were not reconciled.
    seconds : float
    """

    have: list[bytes] = field(default_factory=list, repr=False)
    need: list[bytes] = field(default_factory=list, repr=False)
    rounds: int = 0
    bytes_up: int = 0
    bytes_down: int = 0
    windows: int = 0
    paged: int = 0
    downloaded: int = 0
    uploaded: int = 0
    withheld: int = 0
    unwanted: int = 0
    rejected: int = 0
    crowded: int = 0
    refusals: list[Refusal] = field(default_factory=list)
    seconds: float = 0.0
