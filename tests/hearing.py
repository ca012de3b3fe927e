"""negvec and the plain model hear the same message: both refuse it, or both say the same.

The model reads more leniently: it takes varints with any number of leading zeros, and bounds that fall; and it leaves
unread what comes behind the range at which its own frame is full.
"""

from __future__ import annotations

from model import FINGERPRINT, ID_LIST, VERSION, Bound, Item, Model, Reader

import negvec

LENIENT = ("a varint is longer than 64 bits", "a bound is less than the bound before it")

Range = tuple[Bound, int, bytes]  # upper bound, mode, payload


def ranges_of(message: bytes) -> list[Range]:
    """All ranges of a message; ValueError if it can't be read."""
    reader, ranges = Reader(message), []
    reader.take(1)
    while not reader.at_end():
        bound, mode = reader.bound(), reader.varint()
        start = reader.position
        if mode == FINGERPRINT:
            reader.take(16)
        elif mode == ID_LIST:
            reader.take(32 * reader.varint())
        elif mode > ID_LIST:
            raise ValueError(f"mode {mode}")
        ranges.append((bound, mode, message[start : reader.position]))
    return ranges


class Listener:
    """negvec and the model, with the same items and frame size limit, ready to hear any number of messages."""

    def __init__(self, items: list[Item], frame_size_limit: int = 0) -> None:
        self.limit = frame_size_limit
        self.storage = negvec.PrefixSumVector()
        for created_at, item_id in items:
            self.storage.insert(created_at, item_id)
        self.storage.seal()
        self.models = {initiates: Model(items, frame_size_limit, lossy=False) for initiates in (False, True)}
        self.models[True].initiate()

    def negentropy(self, initiates: bool) -> negvec.Negentropy:
        """A side that has said nothing yet, or its first message."""
        side = negvec.Negentropy(self.storage, self.limit)
        if initiates:
            side.initiate()
        return side

    def hear(self, message: bytes, initiates: bool) -> bool:
        """Compare what the two make of a message; whether they accept it."""
        expected, refusal = None, ""
        try:
            expected = self.models[initiates].reconcile(message)
            if message[0] == VERSION:
                ranges_of(message)
        except ValueError as error:
            expected, refusal = None, str(error)
        refused: negvec.ProtocolError | None = None
        try:
            step = self.negentropy(initiates).reconcile(message)
        except negvec.ProtocolError as error:
            refused = error
        if refused is not None:
            assert 0 <= refused.offset <= len(message)
            assert refused.reason
            assert expected is None or refused.reason in LENIENT, f"the model accepts what negvec refuses: {refused}"
            return False
        assert expected is not None, f"negvec accepts what the model refuses: {refusal}"
        answer, have, need = expected
        assert (step.message and step.message.hex()) == (answer and answer.hex())
        if answer is None:
            assert sorted(row.tobytes() for row in step.have) == sorted(set(have) - set(need))
            assert sorted(row.tobytes() for row in step.need) == sorted(set(need) - set(have))
        else:
            assert len(step.have) == len(step.need) == 0
        return True
