"""The errors that leave the library. Each says whose fault it is: the peer's, or the caller's."""

from __future__ import annotations


class ProtocolError(Exception):
    """The bytes of a peer break the protocol; the reconciliation can't go on.

    Attributes
    ----------
    offset : int
        Byte offset in the message at which that showed.
    """

    def __init__(self, reason: str, offset: int = 0) -> None:
        super().__init__(f"{reason} (at byte {offset} of the message)")
        self.reason = reason
        self.offset = offset

    def __reduce__(self) -> tuple[type[ProtocolError], tuple[str, int]]:
        return type(self), (self.reason, self.offset)


class UnsupportedVersion(ProtocolError):
    """The peer speaks another version of the protocol.

    Attributes
    ----------
    version : int
        The peer's version; ours is 1.
    """

    def __init__(self, version: int) -> None:
        super().__init__(f"the peer answered with protocol version {version}, we speak version 1")
        self.version = version

    def __reduce__(self) -> tuple[type[UnsupportedVersion], tuple[int]]:  # type: ignore[override]
        return type(self), (self.version,)


class SealError(Exception):
    """A storage was used at the wrong time: before `seal()`, or changed after it."""


class DamagedStorage(ValueError):
    """A file that is no sealed storage, or a storage whose content is not what it has to be."""
