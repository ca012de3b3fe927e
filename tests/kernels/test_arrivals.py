"""Items in the order of their arrival against a dict, which keeps that order and has each item once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from negvec import kernels
from negvec.kernels.arrivals import AHEAD, SECRET_WORDS

from . import LARGEST, Item, as_columns, as_items, items, thorough


def secret(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 2**64 - 1, SECRET_WORDS, np.uint64, endpoint=True)


def slots_for(count: int) -> np.ndarray:
    """As few as will do: a power of two, half of them free."""
    return np.zeros(1 << (2 * count - 1).bit_length(), np.uint32)


class Columns:
    """What `enter` fills, with room for so many items and not one more."""

    def __init__(self, room: int, seed: int) -> None:
        self.created_at, self.words = np.empty(room, np.uint64), np.empty((room, 4), np.uint64)
        self.slots, self.secret, self.count = slots_for(room), secret(seed), 0

    def enter(self, rows: list[Item]) -> None:
        self.count = kernels.arrivals.enter(
            *as_columns(rows), self.created_at, self.words, self.count, self.slots, self.secret
        )

    def renumber(self, slots: np.ndarray) -> None:
        self.slots = slots
        kernels.arrivals.number(self.created_at, self.words, self.count, slots, self.secret)

    def items(self) -> list[Item]:
        return as_items(self.created_at[: self.count], self.words[: self.count])


@thorough
@given(st.lists(st.lists(items, min_size=1, max_size=40), min_size=1, max_size=6), st.integers(0, 3), st.booleans())
@example([[(LARGEST, b"\xff" * 32)] * (AHEAD + 1), [(LARGEST, b"\xff" * 31 + b"\0")]], 0, False)
def test_each_item_is_entered_once_in_the_order_of_arrival(batches: list[list[Item]], seed: int, anew: bool) -> None:
    known: dict[Item, None] = {}
    columns = Columns(len({item for batch in batches for item in batch}), seed)
    for batch in batches:
        if anew:  # as when the table grows
            columns.renumber(np.zeros_like(columns.slots))
        columns.enter(batch)
        known.update(dict.fromkeys(batch))
        assert columns.items() == list(known)


@pytest.mark.parametrize("byte", [0, 7, 8, 15, 31])
@pytest.mark.parametrize("seed", range(3))
def test_ids_that_somebody_chose_do_not_crowd_the_table(byte: int, seed: int) -> None:
    """Ids that differ in two bytes of one word, and timestamps in their uppermost bits."""
    batch = [
        (
            at << 56,
            bytes(byte // 8 * 8)
            + bytes([low]) * (byte % 8 or 1)
            + bytes(31 - byte // 8 * 8 - (byte % 8 or 1))
            + bytes([high]),
        )
        for at in range(4)
        for low in range(32)
        for high in range(32)
    ]
    columns = Columns(len(batch), seed)
    columns.enter(batch)
    assert columns.items() == batch
    taken = np.flatnonzero(np.concatenate([columns.slots, columns.slots]) == 0)
    assert np.diff(taken).max() < 64  # a run of taken slots, of which half are; by chance it is some 20
