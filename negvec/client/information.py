"""What a relay says that it takes (NIP-11)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import orjson

from negvec.client.address import of_this_machine
from negvec.nip77.client import DEFAULT_FRAME_SIZE
from negvec.protocol.negentropy import SMALLEST_FRAME

LARGEST_FRAME = 500_000  # bytes before hex, however much the relay would take
ENVELOPE = 2000  # bytes of a websocket message that are left for what is around the hex

_SECONDS = 3  # until the document is given up
_LARGEST_DOCUMENT = 1 << 20  # bytes


class Information:
    """The limits of a relay's NIP-11 document, which is asked for when first needed, and once.

    For sets that turn out to be equal it never is: that would take longer than the rest.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._limits: dict[str, Any] | None = None

    async def limits(self) -> dict[str, Any]:
        """The limits, as far as there are any."""
        if self._limits is None:
            try:
                self._limits = await asyncio.wait_for(_in_daemon(_stated_limits, self._url), _SECONDS)
            except TimeoutError:
                self._limits = {}
        return self._limits

    async def frame_size(self) -> int:
        """Bytes of the largest message to send to it, before hex."""
        most = (await self.limits()).get("max_message_length")
        if type(most) is not int:
            return DEFAULT_FRAME_SIZE
        return min(max((most - ENVELOPE) // 2, SMALLEST_FRAME), LARGEST_FRAME)

    async def largest_page(self) -> int | None:
        """Events that it gives at once, if it says so."""
        most = (await self.limits()).get("max_limit")
        return most if type(most) is int else None


async def _in_daemon(ask: Callable[[str], dict[str, Any]], url: str) -> dict[str, Any]:
    """What `ask` gives, in a thread that nobody has to wait for: a relay may send its document byte by byte."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[dict[str, Any]] = loop.create_future()

    def tell(limits: dict[str, Any]) -> None:
        if not answer.done():
            answer.set_result(limits)

    def run() -> None:
        limits = ask(url)
        with suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(tell, limits)

    threading.Thread(target=run, daemon=True, name="negvec-nip11").start()
    return await answer


def _stated_limits(url: str) -> dict[str, Any]:
    import urllib.request

    handlers = [urllib.request.ProxyHandler({})] if of_this_machine(url) else []
    try:
        request = urllib.request.Request("http" + url[2:], headers={"Accept": "application/nostr+json"})
        with urllib.request.build_opener(*handlers).open(request, timeout=_SECONDS) as response:
            limits = orjson.loads(response.read(_LARGEST_DOCUMENT))["limitation"]
    except Exception:  # whatever goes wrong, defaults do
        return {}
    return limits if isinstance(limits, dict) else {}
