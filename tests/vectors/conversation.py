"""How a recorded run came about: two sides pass messages to and fro until the initiator is done."""

from __future__ import annotations

from typing import NamedTuple, Protocol


class Side(Protocol):
    """One of the two; `reconcile` returns message, have and need, and None for a message when it is done."""

    def initiate(self) -> bytes: ...
    def reconcile(self, message: bytes) -> tuple[bytes | None, list[bytes], list[bytes]]: ...


class Conversation(NamedTuple):
    messages: list[bytes]  # the initiator's first, then alternating
    have: list[bytes]  # as the initiator reported them: an id may come back
    need: list[bytes]

    @property
    def rounds(self) -> int:
        return len(self.messages) // 2

    @property
    def bytes_up(self) -> int:
        return sum(map(len, self.messages[0::2]))

    @property
    def bytes_down(self) -> int:
        return sum(map(len, self.messages[1::2]))


def converse(initiator: Side, responder: Side, most_rounds: int = 5_000) -> Conversation:
    talk = Conversation([], [], [])
    message: bytes | None = initiator.initiate()
    while message is not None:
        assert talk.rounds < most_rounds, "no end in sight"
        answer, _, _ = responder.reconcile(message)
        assert answer is not None, "a responder always answers"
        talk.messages.extend([message, answer])
        message, have, need = initiator.reconcile(answer)
        talk.have.extend(have)
        talk.need.extend(need)
    return talk
