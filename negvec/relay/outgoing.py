"""What waits to be sent to one client, bounded in messages and in bytes.

Answers wait for room, and with them the client's next messages; they leave half of the room free. That half is for
what can't wait: OKs that are owed, and events of live subscriptions.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from websockets.asyncio.server import ServerConnection

    from negvec.relay.settings import Settings

Message = bytes | bytearray


class Outgoing:
    """The messages that go to one client, in order; `run` sends them.

    Parameters
    ----------
    socket : ServerConnection
    settings : Settings
        `send_queue` and `send_queue_bytes` bound what waits, but one message alone may be longer; `send_timeout` is how
        long one may take to be sent.
    cut_off : callable
        Told why, once, when the connection is cut off because the client does not read.

    Attributes
    ----------
    over : bool
        Nothing can be sent any more.
    """

    def __init__(self, socket: ServerConnection, settings: Settings, cut_off: Callable[[str], None]) -> None:
        self._socket, self._cut_off = socket, cut_off
        self._most, self._most_bytes, self._seconds = (
            settings.send_queue,
            settings.send_queue_bytes,
            settings.send_timeout,
        )
        self._waiting: deque[Message] = deque()
        self._bytes = 0  # of what waits or is being sent
        self._filled, self._sent = asyncio.Event(), asyncio.Event()
        self.over = False

    def __len__(self) -> int:
        """Messages that wait."""
        return len(self._waiting)

    def offer(self, message: Message) -> None:
        """Take a message that can't wait for room; who leaves none is cut off."""
        if self._has_room(message, 1):
            self._take(message)
        else:
            self._end("slow-reader")

    async def put(self, message: Message) -> None:
        """Send a message as soon as there is room; where nothing can be sent any more, it goes nowhere.

        If nothing waits before it, it goes out here and now: no other task has to be woken for it.
        """
        if not (self._bytes or self.over):
            self._bytes += len(message)
            await self._send(message)
            return
        while not (self.over or self._has_room(message, 2)):
            await self.sent()
        self._take(message)

    async def sent(self) -> None:
        """Wait until a message has been sent, or none will be."""
        if not self.over:
            self._sent.clear()
            await self._sent.wait()

    async def run(self) -> None:
        """Send what waits, until the connection ends."""
        try:
            while not self.over:
                while not self._waiting:
                    self._filled.clear()
                    await self._filled.wait()
                await self._send(self._waiting.popleft())
        finally:
            self._end()

    async def _send(self, message: Message) -> None:
        try:
            async with asyncio.timeout(self._seconds):
                await self._socket.send(message, text=True)
        except TimeoutError:
            self._end("send-timeout")
        self._bytes -= len(message)
        self._sent.set()

    def _end(self, fault: str = "") -> None:
        if fault and not self.over:
            self._cut_off(fault)
            self._socket.transport.abort()
        self.over = True
        self._waiting.clear()
        self._sent.set()

    def _has_room(self, message: Message, share: int) -> bool:
        if not self._bytes:
            return True
        return len(self._waiting) < self._most // share and self._bytes + len(message) <= self._most_bytes // share

    def _take(self, message: Message) -> None:
        if not self.over:
            self._waiting.append(message)
            self._bytes += len(message)
            self._filled.set()
