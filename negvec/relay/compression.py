"""permessage-deflate that leaves NEG frames as they are.

Deflating twelve megabytes of hex takes longer than a whole sync on a fast link. A message may be sent uncompressed on
a connection that has compression (RFC 7692, section 6): its frame lacks the bit that says otherwise.
"""

from __future__ import annotations

from typing import Any

from websockets.extensions import Extension
from websockets.extensions.permessage_deflate import ServerPerMessageDeflateFactory
from websockets.frames import Frame

_NEG = b'["NEG-'


class SparingDeflate(Extension):
    """Another compression, for all but NEG frames."""

    def __init__(self, deflate: Extension) -> None:
        self.name = deflate.name
        self._deflate = deflate

    def encode(self, frame: Frame) -> Frame:
        """See `websockets.extensions.Extension`."""
        if frame.fin and bytes(frame.data[: len(_NEG)]) == _NEG:
            return frame
        return self._deflate.encode(frame)

    def decode(self, frame: Frame, *, max_size: int | None = None) -> Frame:
        """See `websockets.extensions.Extension`."""
        return self._deflate.decode(frame, max_size=max_size)


class SparingDeflateFactory(ServerPerMessageDeflateFactory):
    """Negotiates compression as its base does."""

    def process_request_params(self, *arguments: Any) -> Any:
        """See `websockets.extensions.ServerExtensionFactory`."""
        answer, deflate = super().process_request_params(*arguments)
        return answer, SparingDeflate(deflate)
