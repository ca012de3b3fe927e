"""NIP-77 without sockets: frames as bytes, and the two ends of its sessions.

A client, given what arrives on a connection as bytes or str, and sending what it gives:

    session = ClientSession(storage, "sub", {"kinds": [1]})
    send(session.open())
    while not session.over:
        for frame in session.receive(arrived()):
            send(frame)
        have, need = session.take()     # ids that this has shown, each once
    session.refusal                     # None, or why the relay would not

A relay's end holds all the sessions of one connection:

    def resolve(subscription_filter, most):     # the set that a REQ would show, up to `most` items
        return live.snapshot()

    sessions = ServerSessions(resolve)
    for frame in sessions.receive(arrived()):
        send(frame)

Layers: this imports the protocol, and nothing of relays or clients; it knows no sockets, clocks or threads.
"""

from negvec.nip77.client import ClientSession, Refusal
from negvec.nip77.frames import (
    FrameError,
    NegClose,
    NegErr,
    NegMsg,
    NegOpen,
    neg_close,
    neg_err,
    neg_msg,
    neg_open,
    notice,
    read,
)
from negvec.nip77.server import Limits, Refused, ServerSessions

__all__ = [
    "ClientSession",
    "FrameError",
    "Limits",
    "NegClose",
    "NegErr",
    "NegMsg",
    "NegOpen",
    "Refusal",
    "Refused",
    "ServerSessions",
    "neg_close",
    "neg_err",
    "neg_msg",
    "neg_open",
    "notice",
    "read",
]
