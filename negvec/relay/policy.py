"""What a connection may read and write: one hook for REQ and NEG-OPEN, and one for EVENT."""

from __future__ import annotations

from typing import NamedTuple

from negvec.relay.events import Event
from negvec.relay.filters import Filter


class Peer(NamedTuple):
    """Whom a policy is asked about.

    Attributes
    ----------
    address : str
        Where the connection comes from.
    headers : dict
        Of the websocket's opening request, names in lower case.
    """

    address: str
    headers: dict[str, str]


class Denied(Exception):
    """What a policy does not allow, with the reason that the client is told, such as "restricted: members only"."""


class Policy:
    """Everybody may read and write everything. Derive from it, and give `serve` an instance."""

    def read(self, peer: Peer, asked: Filter) -> Filter:
        """The filter that is answered instead of the one that was asked: the same, or a narrower one.

        REQ and NEG-OPEN go through this alike, so that the set which is reconciled is the one that REQ would show.

        Raises
        ------
        Denied
        """
        return asked

    def write(self, peer: Peer, event: Event) -> None:
        """Let an event in, whose hash and signature have been checked, or refuse it.

        Raises
        ------
        Denied
        """
