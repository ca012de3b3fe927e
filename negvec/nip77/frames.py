"""NEG-OPEN, NEG-MSG, NEG-CLOSE and NEG-ERR (NIP-77) as the bytes of a text frame, and back.

A payload is most of a frame, up to a megabyte of hex digits. It is written once, straight into the buffer that is
sent, and read straight from the bytes that came. For the reader that means: the head of a frame, up to the payload's
first digit, is matched by a pattern; the quote that ends it is searched for; and what is between is decoded in place.
Whatever does not look like that, white space and escapes in the payload or a short array, is read as any JSON is, and
either has the same meaning or is an error that says what is wrong.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import orjson

from negvec import kernels

Frame: TypeAlias = "bytes | bytearray | memoryview | str"

LABELS = ("NEG-OPEN", "NEG-MSG", "NEG-CLOSE", "NEG-ERR")

BRIEF_FRAME = 2048
"""Bytes of the longest frame that either end takes at once: see `ServerSessions.receive_at_once`."""

_SPACE = rb"[ \t\r\n]*"
_STRING = rb'"(?:[^"\\\x00-\x1f]|\\.)*"'
_MSG_HEAD = re.compile(_SPACE + rb"\[" + _SPACE + rb'"NEG-MSG"' + _SPACE + rb",(" + _SPACE + _STRING + rb")" + _SPACE
                       + rb"," + _SPACE + rb'"')  # fmt: skip
_TAIL = re.compile(_SPACE + rb"\]" + _SPACE)
_LONGEST_HEAD = 4096  # bytes; a head that is longer is read as JSON


class FrameError(ValueError):
    """A frame that starts as one of NIP-77's, or as any message, and is none.

    Attributes
    ----------
    kind : str
        "json": no JSON array; "label": its first element is no string; "short": elements are missing; "type": one has
        the wrong type; "hex": the payload has an odd number of digits, or something else among them.
    label : str
        The first element, as far as it is known.
    subscription : str or None
        The second, if it is a string.
    sign : str
        The sign in the payload that is no hex digit, if there is one.
    """

    def __init__(
        self, kind: str, reason: str, label: str = "", subscription: str | None = None, *, sign: str = ""
    ) -> None:
        super().__init__(f"{label or 'frame'}: {reason}")
        self.kind, self.reason, self.label, self.subscription, self.sign = kind, reason, label, subscription, sign


class NegOpen(NamedTuple):
    """A client begins: what the set is, and its first message."""

    subscription: str
    filter: dict[str, Any]
    message: bytes


class NegMsg(NamedTuple):
    """A message of either side."""

    subscription: str
    message: bytes


class NegClose(NamedTuple):
    """A client ends a session."""

    subscription: str


class NegErr(NamedTuple):
    """A relay ends a session, or refuses it; `cap` is the most items it takes, where it says so."""

    subscription: str
    reason: str
    cap: int | None


class Other(NamedTuple):
    """A message of another NIP, as parsed: its first element is its label."""

    elements: list[Any]


Message: TypeAlias = NegOpen | NegMsg | NegClose | NegErr | Other


# ---- writing


def neg_msg(subscription: str, message: bytes) -> bytearray:
    """Write a NEG-MSG; the message's hex digits go into the buffer that is returned, and nowhere else."""
    return _with_payload(b'["NEG-MSG",' + _string(subscription) + b',"', message)


def neg_open(subscription: str, subscription_filter: dict[str, Any], message: bytes) -> bytearray:
    """Write a NEG-OPEN.

    Raises
    ------
    TypeError
        The filter is no dict that JSON can express.
    """
    if not isinstance(subscription_filter, dict):
        raise TypeError(f"a filter is a dict, not {type(subscription_filter).__name__}")
    head = b'["NEG-OPEN",' + _string(subscription) + b"," + orjson.dumps(subscription_filter) + b',"'
    return _with_payload(head, message)


def neg_close(subscription: str) -> bytes:
    """Write a NEG-CLOSE."""
    return b'["NEG-CLOSE",' + _string(subscription) + b"]"


def neg_err(subscription: str, reason: str, cap: int | None = None) -> bytes:
    """Write a NEG-ERR; `cap` becomes a fourth element, as strfry has it."""
    rest = b"" if cap is None else b",%d" % cap
    return b'["NEG-ERR",' + _string(subscription) + b"," + _string(reason) + rest + b"]"


def notice(text: str) -> bytes:
    """Write a NOTICE (NIP-01)."""
    return b'["NOTICE",' + _string(text) + b"]"


def _string(text: str) -> bytes:
    if not isinstance(text, str):
        raise TypeError(f"a subscription id or reason is a str, not {type(text).__name__}")
    try:
        return orjson.dumps(text)
    except orjson.JSONEncodeError as error:  # half a surrogate pair
        raise ValueError(f"{text!r} is no text that UTF-8 can express") from error


def _with_payload(head: bytes, message: bytes) -> bytearray:
    data = np.frombuffer(message, np.uint8)
    frame = bytearray(len(head) + 2 * len(data) + 2)
    frame[: len(head)] = head
    frame[-2:] = b'"]'
    kernels.hex.encode(data, np.frombuffer(frame, np.uint8), len(head))
    return frame


# ---- reading


def read(frame: Frame) -> Message:
    """Read a message of a client or relay.

    White space, escapes, further elements and upper-case digits are taken as JSON and hex have them.

    Parameters
    ----------
    frame : bytes, bytearray, memoryview or str
        The text of one websocket message.

    Raises
    ------
    FrameError
        It is no JSON array that begins with a label, or one of NIP-77's four that is not as it has to be.
    """
    data = _as_bytes(frame)
    head = _MSG_HEAD.match(data, 0, _LONGEST_HEAD)
    if head is not None:
        end = data.find(b'"', head.end())
        if end >= 0 and _TAIL.fullmatch(data, end + 1):
            message = _decoded(data, head.end(), end)
            if message is not None:
                subscription = _parsed(head[1])
                return NegMsg(subscription, message)
    return _of_elements(_parsed(data))


def _as_bytes(frame: Frame) -> bytes | bytearray:
    if isinstance(frame, (bytes, bytearray)):
        return frame
    if isinstance(frame, memoryview):
        return frame.tobytes()
    if isinstance(frame, str):
        try:
            return frame.encode()
        except UnicodeEncodeError:
            raise FrameError("json", "it is no text that UTF-8 can express") from None
    raise TypeError(f"a frame is bytes or str, not {type(frame).__name__}")


def _parsed(data: bytes | bytearray) -> Any:
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise FrameError("json", f"it is no JSON: {error}") from None


def _decoded(data: bytes | bytearray, start: int, end: int) -> bytes | None:
    """The payload between two offsets; None if it is not hex digits alone."""
    if (end - start) % 2:
        return None
    out = np.empty((end - start) // 2, np.uint8)
    if not kernels.hex.decode(np.frombuffer(data, np.uint8), start, out):
        return None
    return out.tobytes()


def _of_elements(elements: Any) -> Message:
    if not isinstance(elements, list) or not elements:
        raise FrameError("json", "a message is a JSON array with a label")
    label, *rest = elements
    if not isinstance(label, str):
        raise FrameError("label", "the first element of a message is its label, a string")
    if label not in LABELS:
        return Other(elements)
    subscription = rest[0] if rest and isinstance(rest[0], str) else None
    least = {"NEG-OPEN": 3, "NEG-MSG": 2, "NEG-CLOSE": 1, "NEG-ERR": 2}[label]
    if len(rest) < least:
        raise FrameError("short", f"it has {least + 1} elements at least, not {len(elements)}", label, subscription)
    if subscription is None:
        raise FrameError("type", "its subscription id is a string", label)
    if label == "NEG-CLOSE":
        return NegClose(subscription)
    if label == "NEG-ERR":
        return _neg_err(subscription, rest)
    if label == "NEG-OPEN" and not isinstance(rest[1], dict):
        raise FrameError("type", "its filter is an object", label, subscription)
    message = _payload(rest[least - 1], label, subscription)
    return NegMsg(subscription, message) if label == "NEG-MSG" else NegOpen(subscription, rest[1], message)


def _neg_err(subscription: str, rest: list[Any]) -> NegErr:
    if not isinstance(rest[1], str):
        raise FrameError("type", "its reason is a string", "NEG-ERR", subscription)
    stated = rest[2] if len(rest) > 2 else None
    cap = stated if isinstance(stated, int) and not isinstance(stated, bool) and stated >= 0 else None
    return NegErr(subscription, rest[1], cap)


def _payload(text: Any, label: str, subscription: str) -> bytes:
    if not isinstance(text, str):
        raise FrameError("type", "its payload is a string of hex digits", label, subscription)
    digits = text.encode(errors="replace")
    message = _decoded(digits, 0, len(digits)) if len(digits) == len(text) else None
    if message is None:
        sign = next((sign for sign in text if sign not in "0123456789abcdefABCDEF"), "")
        odd = f"its payload has an odd number of hex digits: {len(text)}"
        reason = f"{sign!r} in its payload is no hex digit" if sign else odd
        raise FrameError("hex", reason, label, subscription, sign=sign)
    return message
