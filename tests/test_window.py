"""Windows: which items they hold, and what they refuse. That they answer as storages is tested with all the others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import negvec
from negvec.storage import Windowed

LARGEST = 2**64 - 2
INFINITY = 2**64 - 1

timestamps = st.one_of(st.integers(0, 5), st.just(LARGEST))
items = st.lists(st.tuples(timestamps, st.sampled_from([bytes([k]) * 32 for k in range(3)])), unique=True, max_size=12)


def sealed(drawn: list[tuple[int, bytes]], live: bool = False) -> Any:
    columns = np.array([at for at, _ in drawn], np.uint64), [id for _, id in drawn]
    if not live:
        return negvec.seal(*columns)
    storage = negvec.LiveIndex()
    storage.insert(*columns)
    return storage


def items_of(storage: Any) -> list[tuple[int, bytes]]:
    found = storage.items(0, len(storage))
    assert storage.created_at.tolist() == found["created_at"].tolist()
    assert storage.ids.tolist() == found["id"].tolist()
    return [(int(at), id.tobytes()) for at, id in zip(found["created_at"], found["id"], strict=True)]


ends = st.one_of(st.none(), timestamps, st.just(INFINITY), st.just(2**70))


@given(items, ends, ends, st.booleans())
def test_both_ends_of_a_window_are_inclusive(
    drawn: list[Any], since: int | None, until: int | None, live: bool
) -> None:
    window = sealed(drawn, live).window(since, until)
    first, last = since or 0, INFINITY if until is None else until
    assert items_of(window) == sorted(item for item in drawn if first <= item[0] <= last)


@given(items, st.lists(ends, min_size=4, max_size=4), st.booleans())
def test_a_window_of_a_window_is_what_both_hold(drawn: list[Any], chosen: list[int | None], live: bool) -> None:
    storage = sealed(drawn, live)
    both = storage.window(*chosen[:2]).window(*chosen[2:])
    within = [set(items_of(storage.window(*pair))) for pair in (chosen[:2], chosen[2:])]
    assert items_of(both) == sorted(within[0] & within[1])


bounds = st.tuples(st.one_of(timestamps, st.just(INFINITY)), st.sampled_from([b"", b"\1", b"\1" * 32, b"\2\3"]))


@given(items, bounds, bounds)
def test_between_two_bounds(drawn: list[Any], lower: tuple[int, bytes], upper: tuple[int, bytes]) -> None:
    window = sealed(drawn).between(lower, upper)
    low, high = ((at, prefix.ljust(32, b"\0")) for at, prefix in (lower, upper))
    assert items_of(window) == sorted(item for item in drawn if low <= item < high)


def test_a_window_of_a_live_index_stays_as_it_was() -> None:
    live = sealed([(1, bytes(32))], live=True)
    window = live.window(0, 5)
    live.insert(2, bytes(32))
    assert (len(window), len(live.window(0, 5))) == (1, 2)


def test_windows_of_two_days_are_reconciled_and_nothing_else() -> None:
    ours, theirs = sealed([(1, b"a" * 32), (5, b"b" * 32)]), sealed([(5, b"c" * 32), (9, b"d" * 32)])
    found = negvec.reconcile(ours.window(4, 6), theirs.window(4, 6))
    assert (found.have.tobytes(), found.need.tobytes()) == (b"b" * 32, b"c" * 32)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda storage: storage.window(-1), ValueError),
        (lambda storage: storage.window(0, -5), ValueError),
        (lambda storage: storage.window(1.5), TypeError),
        (lambda storage: storage.between((0, b""), (5, bytes(33))), ValueError),
        (lambda storage: storage.between((-1, b""), (5, b"")), ValueError),
        (lambda storage: negvec.storage.Window(storage, 1, 0), ValueError),
        (lambda storage: negvec.storage.Window(storage, 0, 3), ValueError),
        (lambda storage: storage.window(1, 1).items(0, 2), ValueError),
    ],
)
def test_what_is_no_window_is_refused(call: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        call(sealed([(1, b"a" * 32), (2, b"b" * 32)]))


def test_any_storage_has_windows_and_goes_into_a_file(tmp_path: Path) -> None:
    """Also one that inherits nothing from ours."""

    class Foreign:
        def __init__(self) -> None:
            self.kept = sealed([(at, b"a" * 32) for at in range(10)])

        def __len__(self) -> int:
            return len(self.kept)

        def __getattr__(self, name: str) -> Any:
            if name not in ("items", "id_lists", "lower_bounds", "minimal_bounds", "fingerprints"):
                raise AttributeError(name)
            return getattr(self.kept, name)

    foreign: Any = Foreign()
    window = Windowed.window(foreign, 3, 5)
    assert [at for at, _ in items_of(window)] == [3, 4, 5]
    window.verify()
    window.save(tmp_path / "window")
    assert items_of(negvec.open(tmp_path / "window")) == items_of(window)


def test_verify_finds_sums_that_are_not_those_of_the_ids_in_any_storage() -> None:
    storage = sealed([(at, bytes([at]) * 32) for at in range(100)])
    storage._limbs.flags.writeable = True
    storage._limbs[50] ^= np.uint64(1)
    for view in (storage, storage.window(30, 60), storage.window(49, 49), storage.window(50, 50)):
        with pytest.raises(negvec.DamagedStorage, match="sum of ids is wrong"):
            view.verify()
    for view in (storage.window(0, 48), storage.window(51, None)):
        view.verify()


def test_an_unsealed_storage_has_no_windows() -> None:
    with pytest.raises(negvec.SealError):
        negvec.PrefixSumVector().window(1, 2)
