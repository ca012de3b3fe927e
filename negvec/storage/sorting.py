"""Items that come in any order: which row comes where, and the items in that order."""

from __future__ import annotations

import numpy as np

from negvec import kernels
from negvec.items import Timestamps
from negvec.storage.seam import Words

AS_THEY_LIE: Words = np.empty(0, np.uint64)
"""As rows of items: they are sorted already. (Items that are not are two at least.)"""


def rows_in_order(created_at: Timestamps, words: Words) -> Words:
    """The rows of the items in order, without those that are there again; AS_THEY_LIE where that changes nothing."""
    n = len(created_at)
    if n < 2:
        return AS_THEY_LIE
    found = np.zeros(2, np.int64)
    kernels.checks.inspect(created_at, words, 0, n, found)
    if found.tolist() == [0, 0]:
        return AS_THEY_LIE
    places, spare = np.empty((2, n), np.uint64)
    return places[: kernels.order.arrange(created_at, words, places, spare)]


def gathered(created_at: Timestamps, words: Words, places: Words) -> tuple[Timestamps, Words]:
    """The items of the rows `places`."""
    to_at, to_words = np.empty(len(places), np.uint64), np.empty((len(places), 4), np.uint64)
    kernels.order.gather(created_at, words, places, to_at, to_words)
    return to_at, to_words
