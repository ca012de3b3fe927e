"""IdLists and findings against Python's sets, ids chosen by an attacker included."""

from __future__ import annotations

import secrets
from collections import Counter

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from negvec import kernels
from negvec.kernels import lists
from negvec.kernels.lists import HELD, LACKED

from . import Words, as_ids, as_words, ids, thorough

MASK = 2**64 - 1
MIX = 0x9E3779B97F4A7C15  # the usual multiplier of hashes without a key

KEYS = st.lists(st.integers(0, MASK), min_size=lists.KEY_WORDS, max_size=lists.KEY_WORDS)
pool = [bytes([k]) * 32 for k in range(8)] + [bytes(31) + b"\1", b"\1" + bytes(31), bytes(24) + b"\1" * 8]
few_ids = st.lists(st.one_of(st.sampled_from(pool), ids()), max_size=20)
repeated_ids = st.lists(st.sampled_from(pool[:4]), max_size=20)
own_ids = few_ids.map(lambda drawn: list(dict.fromkeys(drawn)))


def key_of(words: list[int]) -> Words:
    return np.array(words, np.uint64)


def random_key() -> Words:
    return np.frombuffer(secrets.token_bytes(8 * lists.KEY_WORDS), np.uint64)


def of_words(word0: int, word1: int = 0, word2: int = 0, word3: int = 0) -> bytes:
    return b"".join((word & MASK).to_bytes(8, "little") for word in (word0, word1, word2, word3))


ATTACKS = {
    "multiples of 2^56": lambda k: of_words(k << 56, k >> 8),
    "high bits of every word": lambda k: of_words(k << 48, k << 48, k << 48, k << 48),
    "counting in the first word": lambda k: of_words(k),
    "counting in the last word": lambda k: of_words(0, 0, 0, k),
    "counting in the last byte": lambda k: of_words(0, 0, 0, k << 48),
    "agreeing in 24 bytes": lambda k: of_words(1, 2, 3, k * MIX),
    "equal words": lambda k: of_words(k, k, k, k),
    "halves that swap": lambda k: of_words(k | k << 32, k << 32 | k),
    "cancelling in a multiplied mix": lambda k: of_words(k * MIX, k),
}
"""Ids by which tables and filters of one kind or another could be filled into one chain; each of k = 0, 1, 2, ..."""


def attack(name: str, count: int) -> list[bytes]:
    return [ATTACKS[name](k) for k in range(count)]


# ---- difference


def difference(
    owned: list[list[bytes]], listed: list[list[bytes]], key: Words, marks: bytes | None = None, reverse: bool = False
) -> tuple[list[int], list[bytes], int]:
    """Which own items are lacked, needs, and how many marks are new, of ranges with their lists.

    The own items of the ranges follow one another; their ids lie as they do, or, as another storage may give them, the
    last range's first. Lists have other bytes around them, so that they begin at odd places.
    """
    sizes = [len(own) for own in owned]
    upper = np.cumsum(sizes, dtype=np.int64)
    lower = upper - np.array(sizes, np.int64)
    first = sum(sizes) - upper if reverse else lower
    ids_as_kept = [id for own in (reversed(owned) if reverse else owned) for id in own]

    message, payloads = bytearray(), []
    for m, entries in enumerate(listed):
        message += bytes([m]) * (1 + m % 3)
        payloads.append(len(message))
        message += b"".join(entries)
    counts = np.array([len(entries) for entries in listed], np.int64)

    have = np.frombuffer(bytearray(marks or bytes(sum(sizes))), np.uint8)
    starts, lengths = np.full((2, int(counts.sum())), -7, np.int64)
    found = np.full(3, -7, np.int64)
    kernels.lists.difference(
        *(np.frombuffer(message, np.uint8), np.array(payloads, np.int64), counts, lower, upper, first),
        *(as_words(ids_as_kept), key, have, starts, lengths, found),
    )
    runs, needs, new = found.tolist()
    need = np.full((needs, 4), 7, np.uint64)
    kernels.lists.gather(np.frombuffer(message, np.uint8), starts[:runs], lengths[:runs], need)
    assert lengths[:runs].sum() == needs
    return (have == LACKED).astype(int).tolist(), as_ids(need), new


def expected_difference(owned: list[list[bytes]], listed: list[list[bytes]]) -> tuple[list[int], list[bytes], int]:
    have = [int(id not in set(entries)) for own, entries in zip(owned, listed, strict=True) for id in own]
    need = [id for own, entries in zip(owned, listed, strict=True) for id in entries if id not in set(own)]
    return have, need, sum(have)


@thorough
@given(st.lists(st.tuples(own_ids, few_ids), max_size=5), KEYS, st.booleans())
def test_a_list_is_compared_as_a_set(ranges: list[tuple[list[bytes], list[bytes]]], key: list[int], rev: bool) -> None:
    """Needs come in the order of the list, as often as they are listed; own ids may be in several ranges."""
    owned, listed = [own for own, _ in ranges], [entries for _, entries in ranges]
    assert difference(owned, listed, key_of(key), reverse=rev) == expected_difference(owned, listed)


@thorough
@given(own_ids, few_ids, st.data())
def test_an_item_once_held_stays_held_and_only_new_lacks_are_counted(
    own: list[bytes], entries: list[bytes], data: st.DataObject
) -> None:
    marks = bytes(data.draw(st.lists(st.sampled_from([0, LACKED, HELD]), min_size=len(own), max_size=len(own))))
    missing, need, _ = expected_difference([own], [entries])
    have, needs, new = difference([own], [entries], random_key(), marks)
    assert have == [int(lacked and mark != HELD) for mark, lacked in zip(marks, missing, strict=True)]
    assert needs == need
    assert new == sum(lacked and mark == 0 for mark, lacked in zip(marks, missing, strict=True))


@pytest.mark.parametrize("times", [0, 1, 2, 3, 4])
def test_an_own_id_under_three_timestamps_is_lacked_as_often_as_it_is_not_listed(times: int) -> None:
    a, b = b"a" * 32, b"b" * 32
    have, need, new = difference([[a, b, a, a]], [[a] * times], random_key())
    assert (have[0] + have[2] + have[3], have[1], need, new) == (max(3 - times, 0), 1, [], 1 + max(3 - times, 0))


@thorough
@given(repeated_ids, repeated_ids, st.one_of(KEYS, st.just([0] * lists.KEY_WORDS)))
def test_own_ids_under_many_timestamps_are_lacked_as_often_as_they_are_not_listed(
    own: list[bytes], entries: list[bytes], key: list[int]
) -> None:
    """Whatever else is in their chain; with a key of zeros that is every id. Which of the items are marked is open."""
    have, need, new = difference([own], [entries], key_of(key))
    assert Counter(id for id, lacked in zip(own, have, strict=True) if lacked) == Counter(own) - Counter(entries)
    assert need == [id for id in entries if id not in own]
    assert new == sum(have)


def test_an_id_of_another_range_does_not_count() -> None:
    a, b = b"a" * 32, b"b" * 32
    assert difference([[a], [b]], [[b], [a]], random_key()) == ([1, 1], [b, a], 2)


@pytest.mark.parametrize("size", [0, 1, 2, 3, 4, 5, 63, 64, 65, 1000])
def test_sides_of_every_size_are_compared(size: int) -> None:
    numbered = attack("counting in the first word", 2 * size + 3)
    for entries in ([], numbered[:size], numbered[:size][::-1], numbered[1 : size + 2], numbered[size:], numbered):
        owned, listed = [numbered[:size]], [entries]
        assert difference(owned, listed, random_key()) == expected_difference(owned, listed)


@pytest.mark.parametrize("byte", range(32))
def test_one_bit_makes_another_id(byte: int) -> None:
    own, other = bytearray(b"\x55" * 32), bytearray(b"\x55" * 32)
    other[byte] ^= 0x80
    assert difference([[bytes(own)]], [[bytes(other)]], random_key()) == ([1], [bytes(other)], 1)


@pytest.mark.parametrize("name", ATTACKS)
def test_ids_chosen_by_an_attacker_are_compared_exactly(name: str) -> None:
    chosen = attack(name, 4000)
    owned, listed = [chosen[:3000], chosen[3500:]], [chosen[1000:], chosen[:10] + chosen[3600:] * 2]
    assert difference(owned, listed, random_key()) == expected_difference(owned, listed)


def test_a_key_that_puts_every_id_into_one_chain_changes_nothing_but_the_time() -> None:
    chosen = attack("agreeing in 24 bytes", 3000)
    owned, listed = [chosen[:2000]], [chosen[1000:]]
    assert difference(owned, listed, key_of([0] * lists.KEY_WORDS)) == expected_difference(owned, listed)


@thorough
@given(st.lists(st.tuples(st.sampled_from([0, LACKED, HELD]), st.integers(1, 20)), max_size=12))
def test_runs_of_lacked_items(stretches: list[tuple[int, int]]) -> None:
    have = np.array([mark for mark, length in stretches for _ in range(length)], np.uint8)
    lo, hi = np.full((2, len(have) + 1), -7, np.int64)
    runs = kernels.lists.lacked_runs(have, lo, hi)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], have == LACKED, [False]])))
    assert [*zip(lo[:runs], hi[:runs], strict=True)] == [*zip(edges[::2], edges[1::2], strict=True)]


# ---- mark_repeats


def hashed(ids: list[bytes], key: Words) -> tuple[Words, npt.NDArray[np.uint32]]:
    words = as_words(ids)
    tags = np.empty(len(words), np.uint32)
    kernels.lists.hash_ids(words, key, tags)
    return words, tags


def mark_repeats(have: list[bytes], need: list[bytes], key: Words) -> tuple[list[int], list[int]]:
    have_out, need_out = np.full(len(have), 7, np.uint8), np.full(len(need), 7, np.uint8)
    marks = kernels.lists.mark_repeats(*hashed(have, key), *hashed(need, key), have_out, need_out)
    if not marks:
        return [0] * len(have), [0] * len(need)
    assert marks == int(have_out.sum()) + int(need_out.sum())
    return have_out.tolist(), need_out.tolist()


def expected_marks(have: list[bytes], need: list[bytes]) -> tuple[list[int], list[int]]:
    """An id keeps its first mention in its list, and none if the other list has it too."""

    def marks(mentions: list[bytes], other: list[bytes]) -> list[int]:
        elsewhere, first = set(other), {id: row for row, id in reversed(list(enumerate(mentions)))}
        return [int(id in elsewhere or first[id] < row) for row, id in enumerate(mentions)]

    return marks(have, need), marks(need, have)


@thorough
@given(few_ids, few_ids, KEYS)
def test_an_id_is_left_once_or_in_neither_list(have: list[bytes], need: list[bytes], key: list[int]) -> None:
    have_marks, need_marks = mark_repeats(have, need, key_of(key))
    assert (have_marks, need_marks) == expected_marks(have, need)
    left = [id for id, mark in zip(have + need, have_marks + need_marks, strict=True) if not mark]
    assert sorted(left) == sorted(set(have) ^ set(need))


@pytest.mark.parametrize(("haves", "needs"), [(0, 0), (1, 0), (0, 1), (3, 3), (1, 5000), (5000, 1), (5000, 5000)])
def test_ids_that_are_there_once_stay(haves: int, needs: int) -> None:
    random = np.random.default_rng(haves + needs)
    drawn = [random.bytes(32) for _ in range(haves + needs)]
    assert mark_repeats(drawn[:haves], drawn[haves:], random_key()) == ([0] * haves, [0] * needs)


@pytest.mark.parametrize("name", ATTACKS)
def test_repeats_among_ids_chosen_by_an_attacker_are_found_and_no_others(name: str) -> None:
    chosen = attack(name, 4000)
    have = chosen[:2000] + chosen[500:600]
    need = chosen[1900:] + chosen[3000:3100] * 3
    assert mark_repeats(have, need, random_key()) == expected_marks(have, need)
    assert mark_repeats(chosen, [], random_key()) == ([0] * 4000, [])
    assert mark_repeats([], chosen, random_key()) == ([], [0] * 4000)


def test_repeats_are_found_when_every_id_collides_with_every_other_in_filters_and_table() -> None:
    chosen = attack("cancelling in a multiplied mix", 3000)
    have, need = chosen[:2000] + chosen[:50], chosen[1990:] + chosen[2500:]
    assert mark_repeats(have, need, key_of([0] * lists.KEY_WORDS)) == expected_marks(have, need)


def test_every_id_in_both_lists_leaves_nothing() -> None:
    random = np.random.default_rng(5)
    drawn = [random.bytes(32) for _ in range(3000)]
    assert mark_repeats(drawn, drawn[::-1], random_key()) == ([1] * 3000, [1] * 3000)


def test_an_id_mentioned_a_thousand_times_stays_once() -> None:
    assert mark_repeats([b"a" * 32] * 1000, [b"b" * 32] * 1000, random_key()) == ([0] + [1] * 999, [0] + [1] * 999)
    assert mark_repeats([b"a" * 32] * 1000, [b"a" * 32], random_key()) == ([1] * 1000, [1])


@pytest.mark.parametrize("count", [300_000, 1_000_000])
def test_repeats_among_so_many_ids_that_the_filter_is_parted(count: int) -> None:
    """Needs: all of the second half; then 50 of them again, and 50 that are in the first half, the haves."""
    random = np.random.default_rng(count)
    drawn = random.integers(0, 2**64, (count, 4), np.uint64)
    have, fresh = np.split(drawn, 2)
    again, moved = random.choice(count // 2, (2, 50), replace=False)
    need = np.concatenate([fresh, fresh[again], have[moved]])
    key, have_tags, need_tags = random_key(), np.empty(len(have), np.uint32), np.empty(len(need), np.uint32)
    kernels.lists.hash_ids(have, key, have_tags)
    kernels.lists.hash_ids(need, key, need_tags)
    have_out, need_out = np.empty(len(have), np.uint8), np.empty(len(need), np.uint8)
    assert kernels.lists.mark_repeats(have, have_tags, need, need_tags, have_out, need_out) == 150
    assert np.flatnonzero(have_out).tolist() == sorted(moved)
    assert np.flatnonzero(need_out).tolist() == list(range(len(fresh), len(need)))


@thorough
@given(st.lists(st.tuples(st.binary(min_size=32, max_size=32), st.integers(0, 1)), max_size=40))
def test_what_is_not_marked_moves_up_in_order(mentions: list[tuple[bytes, int]]) -> None:
    words = as_words([an_id for an_id, _ in mentions]).copy()
    kept = kernels.lists.drop_marked(words, np.array([mark for _, mark in mentions], np.uint8))
    assert as_ids(words[:kept]) == [an_id for an_id, mark in mentions if not mark]


# ---- linear time: chains of a keyed, strongly universal hash, whatever the ids


def slot(id: bytes, key: list[int], bits: int) -> int:
    """The multilinear-HM hash of the eight half words of an id, in Python's integers: the highest bits of its tag."""
    sums = [summand + int.from_bytes(id[4 * i : 4 * i + 4], "little") for i, summand in enumerate(key[:8])]
    total = key[8] + sum(left * right for left, right in zip(sums[::2], sums[1::2], strict=True))
    return (total & MASK) >> (64 - bits)


@thorough
@given(st.one_of(ids(), st.binary(min_size=32, max_size=32)), KEYS)
def test_a_tag_is_multilinear_over_all_32_bytes(id: bytes, key: list[int]) -> None:
    assert int(lists._tag(*as_words([id])[0], key_of(key))) == slot(id, key, 32)


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 5, 1023, 1024, 1025, 2**31 - 1, 2**31, 2**40])
def test_a_table_has_a_slot_for_every_id_and_no_more_than_twice_as_many(count: int) -> None:
    bits = lists._bits_for(count)
    assert 1 <= bits <= 32
    assert bits == min(max((count - 1).bit_length(), 1), 32)


@pytest.mark.parametrize("name", ATTACKS)
def test_no_choice_of_ids_makes_long_chains(name: str) -> None:
    """Under a strongly universal hash two ids share a slot with probability 1 / slots, whatever they are.

    So n ids in n slots make n (n - 1) / 2n pairs in the mean; five times as many, over nine keys, has no fair chance.
    A lookup goes through what shares its slot: the sum over all of them is n and twice the pairs, which is linear.
    """
    bits = 11
    chosen = attack(name, 1 << bits)
    random = np.random.default_rng(9)
    pairs = 0
    for _ in range(9):
        key = random.integers(0, MASK, lists.KEY_WORDS, np.uint64, endpoint=True).tolist()
        chains = Counter(slot(id, key, bits) for id in chosen)
        pairs += sum(length * (length - 1) // 2 for length in chains.values())
    assert pairs < 5 * 9 * len(chosen) // 2
