"""A Nostr relay that reconciles: websockets, an SQLite store, NIP-01, 09, 11, 40 and 77.

It needs the extra `negvec[relay]`. `serve` runs one; `negvec relay` does so from the command line.
"""

from negvec.relay.policy import Policy
from negvec.relay.server import serve
from negvec.relay.settings import Settings
from negvec.relay.store import EventStore

__all__ = ["EventStore", "Policy", "Settings", "serve"]
