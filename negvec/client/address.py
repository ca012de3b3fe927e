"""How a relay is reached."""

from __future__ import annotations

import ipaddress
from typing import Literal
from urllib.parse import urlsplit

from websockets.asyncio.client import connect

LARGEST_MESSAGE = 64 << 20  # bytes that the relay may send at once
CLOSING_SECONDS = 1.0  # a relay that is in the midst of sending when a sync ends is not read to its farewell


def connecting(url: str, seconds: float | None = 10.0) -> connect:
    """A websocket to a relay, to be entered, as a sync wants it.

    Hex hardly deflates, so that no compression is asked for. And no proxy leads to this machine itself; to look for one
    takes 0.1 ms.
    """
    proxy: Literal[True] | None = None if of_this_machine(url) else True
    return connect(
        url,
        max_size=LARGEST_MESSAGE,
        compression=None,
        proxy=proxy,
        open_timeout=seconds,
        close_timeout=CLOSING_SECONDS,
    )


def of_this_machine(url: str) -> bool:
    """Whether a URL names this machine itself."""
    try:
        host = urlsplit(url).hostname or ""
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:  # a name, or no URL at all
        return False
