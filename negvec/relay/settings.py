"""What a relay allows, and what it says of itself."""

from __future__ import annotations

from dataclasses import dataclass, field

from negvec.nip77.server import Limits


@dataclass(frozen=True)
class Settings:
    """Settings of a relay; the defaults are safe on the open internet.

    Attributes
    ----------
    name, description, contact, pubkey : str
        For NIP-11.
    negentropy : bool
        Whether NIP-77 is on.
    neg_limits : Limits
        Of its sessions.
    compress_negentropy : bool
        Deflate NEG frames too, where the client takes compression. Ids do not compress, only their hex does: worth it
        on slow links alone.
    max_message : int
        Bytes of the largest websocket message taken.
    max_connections : int
        Further ones are turned away.
    max_subscriptions, max_filters, max_filter_values, max_limit : int
        Of a connection; of a REQ; values in a filter; stored events that a filter is answered with.
    max_event_tags, max_content : int
        Of an event.
    max_future : int
        Seconds by which created_at may be ahead.
    query_seconds : float
        How long one query of the store may take; then the client is told that it is too big.
    messages_per_second : float
        Of a connection, over ten seconds; more are made to wait.
    send_queue, send_queue_bytes : int
        Messages that wait for a slow reader before it is cut off, and bytes of them.
    send_timeout : float
        Seconds that one message may take to be sent.
    """

    name: str = "negvec"
    description: str = "A relay that reconciles: NIP-77 by negvec."
    contact: str = ""
    pubkey: str = ""
    negentropy: bool = True
    neg_limits: Limits = field(default_factory=Limits)
    compress_negentropy: bool = False
    max_message: int = 1 << 20
    max_connections: int = 1000
    max_subscriptions: int = 64
    max_filters: int = 16
    max_filter_values: int = 10_000
    max_limit: int = 5000
    max_event_tags: int = 2000
    max_content: int = 1 << 18
    max_future: int = 900
    query_seconds: float = 10.0
    messages_per_second: float = 2000.0
    send_queue: int = 4096
    send_queue_bytes: int = 4 << 20
    send_timeout: float = 30.0
