"""Whatever bytes arrive end in a right answer or in `ProtocolError`, at a cost that follows the bytes received.

What a right answer is, the plain model says (see `hearing`).
"""

from __future__ import annotations

import random
import resource
import time
import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hearing import Listener, Range, ranges_of
from hypothesis import given, settings
from hypothesis import strategies as st
from model import END, FINGERPRINT, ID_LIST, SKIP, Bound, Item, Model, Writer, varint

import negvec
from negvec.protocol.negentropy import STALLED_ROUNDS

ROLES = pytest.mark.parametrize("role", ["responder", "initiator"])
INFINITY = 2**64 - 1
WRONG = b"\xa5" * 16  # a fingerprint of nothing that there is here


def item_id(number: int) -> bytes:
    return number.to_bytes(4, "big") * 8


def sealed(items: list[Item]) -> negvec.PrefixSumVector:
    storage = negvec.PrefixSumVector()
    for created_at, an_id in items:
        storage.insert(created_at, an_id)
    storage.seal()
    return storage


HELD = [(10 * i, item_id(i)) for i in range(1, 101)]
STORAGE = sealed(HELD)
LISTENERS = {limit: Listener(HELD, limit) for limit in (0, 4096)}


def negentropy(role: str, storage: negvec.Storage = STORAGE, frame_size_limit: int = 0) -> negvec.Negentropy:
    side = negvec.Negentropy(storage, frame_size_limit)
    if role == "initiator":
        side.initiate()
    return side


def message_of(*ranges: Range) -> bytes:
    out = Writer()
    for bound, mode, payload in ranges:
        out.range(bound, mode, payload)
    return bytes(out.message)


def id_list(*ids: bytes) -> bytes:
    return varint(len(ids)) + b"".join(ids)


def ids_of(found: np.ndarray) -> list[bytes]:
    return [row.tobytes() for row in found]


def refused(message: bytes, role: str, match: str) -> negvec.ProtocolError:
    with pytest.raises(negvec.ProtocolError, match=match) as refusal:
        negentropy(role).reconcile(message)
    return refusal.value


# ---- Held against the model


def conversation(ours: list[Item], theirs: list[Item], limit: int) -> Iterator[tuple[str, bytes]]:
    """The messages of a reconciliation, with the role that hears each."""
    initiator, responder = Model(ours, limit), Model(theirs, limit)
    message: bytes | None = initiator.initiate()
    while message is not None:
        yield "responder", message
        message, _, _ = responder.reconcile(message)
        assert message is not None
        yield "initiator", message
        message, _, _ = initiator.reconcile(message)


def drawn_talk(seed: int, size: int, limit: int) -> list[tuple[str, bytes]]:
    chance = random.Random(seed)
    items = [(chance.choice([5, 7, 2**40, 2**64 - 2]), chance.randbytes(32)) for _ in range(size)]
    ours, theirs = ([item for item in items if chance.random() < 0.95] for _ in range(2))
    return list(conversation(ours, theirs, limit))


TALK = [said for seed, size in enumerate([20, 60, 300, 700]) for said in drawn_talk(seed, size, 4096)]


def test_truncation_at_every_byte() -> None:
    heard = accepted = 0
    for role, message in drawn_talk(seed=1, size=60, limit=0) + drawn_talk(seed=2, size=250, limit=0):
        for stop in range(len(message)):
            accepted += LISTENERS[0].hear(message[:stop], role == "initiator")
            heard += 1
    assert heard > 2000
    assert 20 < accepted < heard / 10, "a message may end behind any of its ranges, and nowhere else"


@settings(max_examples=400)
@given(st.binary(max_size=200), st.sampled_from(["responder", "initiator"]))
def test_random_bytes(junk: bytes, role: str) -> None:
    LISTENERS[0].hear(b"\x61" + junk, role == "initiator")


RANGES = st.lists(
    st.tuples(
        st.tuples(
            st.sampled_from([0, 1, 10, 11, 500, 1000, 1001, 2**63, INFINITY - 1, INFINITY]),
            st.one_of(st.binary(max_size=32), st.sampled_from([an_id for _, an_id in HELD])),
        ),
        st.one_of(
            st.just((SKIP, b"")),
            st.binary(min_size=16, max_size=16).map(lambda fingerprint: (FINGERPRINT, fingerprint)),
            st.lists(
                st.sampled_from([an_id for _, an_id in HELD] + [item_id(0), bytes(32), b"\xff" * 32]), max_size=5
            ).map(lambda ids: (ID_LIST, id_list(*ids))),
        ),
    ),
    max_size=8,
)


@settings(max_examples=400)
@given(RANGES, st.sampled_from(["responder", "initiator"]), st.booleans())
def test_ranges_put_together_at_random(
    ranges: list[tuple[Bound, tuple[int, bytes]]], role: str, in_order: bool
) -> None:
    if in_order:
        ranges = sorted(ranges)
    message, timestamp = bytearray(b"\x61"), 0
    for (created_at, prefix), (mode, payload) in ranges:
        delta = 0 if created_at == INFINITY else max(created_at - timestamp, 0) + 1
        message += varint(delta) + varint(len(prefix)) + prefix + varint(mode) + payload
        timestamp = max(timestamp, created_at)
    LISTENERS[0].hear(bytes(message), role == "initiator")


def mutated(message: bytes, chance: random.Random) -> bytes:
    data = bytearray(message)
    for _ in range(chance.choice([1, 1, 2, 5])):
        at, width = chance.randrange(1, len(data) + 1), chance.choice([1, 1, 2, 16, 32, 49])
        kind = chance.randrange(6)
        if kind == 0 and at < len(data):
            data[at] ^= 1 << chance.randrange(8)
        elif kind == 1 and at < len(data):
            data[at] = chance.choice([0, 1, 2, 3, 0x20, 0x21, 0x7F, 0x80, 0x81, 0xFF])
        elif kind == 2:
            del data[at : at + width]
        elif kind == 3:
            data[at:at] = chance.randbytes(width)
        elif kind == 4:
            data[at:at] = data[at : at + width]
        else:
            _, other = chance.choice(TALK)
            start = chance.randrange(len(other))
            data[at:] = other[start : start + 200]
    return bytes(data)


@pytest.mark.parametrize("limit", [0, 4096])
def test_mutations_of_valid_messages(limit: int) -> None:
    accepted = 0
    for seed in range(3000):
        chance = random.Random(seed)
        _, message = chance.choice(TALK)
        accepted += LISTENERS[limit].hear(mutated(message, chance), chance.random() < 0.5)
    assert accepted > 300


@settings(max_examples=300)
@given(st.sampled_from(TALK), st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 255)), min_size=1, max_size=4))
def test_changed_bytes_of_valid_messages(said: tuple[str, bytes], changes: list[tuple[int, int]]) -> None:
    role, data = said[0], bytearray(said[1])
    for at, byte in changes:
        data[1 + at % (len(data) - 1) if len(data) > 1 else 0] = byte
    if data[0] == 0x61:
        LISTENERS[0].hear(bytes(data), role == "initiator")


# ---- What breaks the protocol, and the byte where that shows


@ROLES
@pytest.mark.parametrize(
    ("hex_ranges", "offset", "reason"),
    [
        pytest.param("80", 1, "ends in the middle", id="half-a-varint"),
        pytest.param("01", 2, "ends in the middle", id="no-prefix-length"),
        pytest.param("01 05 aabb", 3, "ends in the middle", id="half-a-prefix"),
        pytest.param("01 00", 3, "ends in the middle", id="no-mode"),
        pytest.param("01 00 01" + 15 * "aa", 4, "ends in the middle", id="half-a-fingerprint"),
        pytest.param("01 00 02", 4, "ends in the middle", id="no-count"),
        pytest.param("01 00 02 01" + 31 * "aa", 4, "more ids than", id="half-an-id"),
        pytest.param("01 00 02 a08080808000", 4, "more ids than", id="a-count-of-2^40-without-data"),
        pytest.param("01 00 02 81ffffffffffffffff7f", 4, "more ids than", id="the-largest-count"),
        pytest.param("01 00 02 82808080808080808000" + 64 * "aa", 4, "longer than 64", id="a-count-of-2^64"),
        pytest.param("82808080808080808000 00 00", 1, "longer than 64", id="a-timestamp-of-2^64"),
        pytest.param("ffffffffffffffffffff7f 00 00", 1, "longer than 64", id="a-timestamp-of-77-bits"),
        pytest.param(20 * "ff", 1, "longer than 64", id="a-varint-without-end"),
        pytest.param("01 82808080808080808000 00", 2, "longer than 64", id="a-prefix-length-of-2^64"),
        pytest.param("01 00 82808080808080808000", 3, "longer than 64", id="a-mode-of-2^64"),
        pytest.param("01 21" + 33 * "aa" + "00", 2, "longer than 32", id="a-prefix-of-33-bytes"),
        pytest.param("01 a08080808000 00", 2, "longer than 32", id="a-prefix-of-2^40-bytes"),
        pytest.param("01 00 03", 3, "unknown mode", id="mode-3"),
        pytest.param("01 00 ff7f", 3, "unknown mode", id="mode-16383"),
        pytest.param("01 02 aabb 00 01 01 aa 00", 8, "less than the bound before", id="a-prefix-that-falls"),
        pytest.param("01 20" + 31 * "00" + "02 00 01 20" + 31 * "00" + "01 00", 38, "less than", id="falls-by-one"),
        pytest.param("00 00 00 ff", 4, "ends in the middle", id="a-byte-after-infinity"),
        pytest.param("00 00 00 00 00 07", 6, "unknown mode", id="no-range-after-infinity"),
    ],
)
def test_what_breaks_the_protocol_is_refused_at_its_byte(hex_ranges: str, offset: int, reason: str, role: str) -> None:
    message = b"\x61" + bytes.fromhex(hex_ranges)
    assert refused(message, role, reason).offset == offset
    valid = message_of(((500, b""), SKIP, b""))
    shifted = bytes([0x61]) + valid[1:] + message[1:]
    if "falls" not in reason:
        assert refused(shifted, role, reason).offset == offset + len(valid) - 1


@ROLES
def test_an_empty_message(role: str) -> None:
    assert refused(b"", role, "empty").offset == 0


@ROLES
@pytest.mark.parametrize("version", [0x00, 0x01, 0x5F, 0x70, 0x7B, 0xE1, 0xFF])
def test_a_first_byte_that_is_no_version(role: str, version: int) -> None:
    assert refused(bytes([version]) + b"\0\0\0", role, f"0x{version:02x}").offset == 0


@pytest.mark.parametrize("version", [v for v in range(16) if v != 1])
def test_another_version_is_answered_with_ours(version: int) -> None:
    side = negentropy("responder")
    for rest in (b"", b"\0\0\0", b"\xff" * 50):
        step = side.reconcile(bytes([0x60 + version]) + rest)
        assert step.message == b"\x61"
        assert step.have.shape == step.need.shape == (0, 32)


@pytest.mark.parametrize("version", [v for v in range(16) if v != 1])
def test_another_version_ends_the_initiators_part(version: int) -> None:
    with pytest.raises(negvec.UnsupportedVersion, match=f"version {version}") as refusal:
        negentropy("initiator").reconcile(bytes([0x60 + version]))
    assert refusal.value.version == version
    assert isinstance(refusal.value, negvec.ProtocolError)


def test_a_refused_message_leaves_a_responder_as_it_was() -> None:
    side, good = negentropy("responder"), message_of((END, FINGERPRINT, WRONG))
    answer = negentropy("responder").reconcile(good).message
    for _, message in TALK[:4]:
        with pytest.raises(negvec.ProtocolError):
            side.reconcile(message + b"\x80")
        assert side.reconcile(good).message == answer


# ---- Ranges that no honest peer sends, and that have a right answer all the same


@ROLES
@pytest.mark.parametrize(
    "ranges",
    [
        pytest.param([(END, SKIP, b""), (END, SKIP, b"")], id="skips"),
        pytest.param([(END, SKIP, b""), (END, FINGERPRINT, WRONG)], id="a-fingerprint-of-nothing"),
        pytest.param([(END, FINGERPRINT, WRONG), (END, ID_LIST, id_list(item_id(3)))], id="an-own-id"),
        pytest.param([((INFINITY, b"b"), ID_LIST, id_list()), ((INFINITY, b"a"), FINGERPRINT, WRONG)], id="prefixes"),
        pytest.param([(END, ID_LIST, id_list(item_id(0))), (END, ID_LIST, id_list(item_id(0)))], id="lists"),
    ],
)
def test_ranges_after_infinity_are_empty(ranges: list[Range], role: str) -> None:
    assert LISTENERS[0].hear(message_of(*ranges), role == "initiator")


def found_by(*ranges: Range, items: list[Item] = HELD) -> tuple[list[bytes], list[bytes]]:
    """Have and need of an initiator whose peer answers this and nothing more."""
    step = negentropy("initiator", sealed(items)).reconcile(message_of(*ranges))
    assert step.message is None
    return ids_of(step.have), ids_of(step.need)


def test_ids_listed_again_and_again_are_needed_once() -> None:
    held = [an_id for _, an_id in HELD]
    repeated = id_list(*[item_id(0)] * 1000, *held, *held, item_id(0), *held[:5])
    assert found_by((END, ID_LIST, repeated)) == ([], [item_id(0)])


def test_ids_listed_in_several_ranges_are_needed_once() -> None:
    ranges: list[Range] = [((created_at, b""), ID_LIST, id_list(item_id(0))) for created_at in range(0, 1010, 5)]
    have, need = found_by(*ranges)
    assert have == [an_id for _, an_id in HELD]
    assert need == [item_id(0)]


def test_an_own_item_is_had_only_if_the_lists_of_its_range_leave_it_out() -> None:
    """Ids that are own elsewhere, listed outside their bounds, say nothing about the ranges where they are own."""
    elsewhere = id_list(*(an_id for created_at, an_id in HELD if created_at >= 500))
    have, need = found_by(((500, b""), ID_LIST, elsewhere))
    assert have == [an_id for created_at, an_id in HELD if created_at < 500]
    assert set(need) <= {an_id for created_at, an_id in HELD if created_at >= 500}
    have, need = found_by(((500, b""), ID_LIST, elsewhere), (END, ID_LIST, id_list()))
    assert have == [an_id for created_at, an_id in HELD if created_at < 500], "the others are in both lists"
    assert need == []
    have, need = found_by(((500, b""), SKIP, b""), (END, ID_LIST, id_list(item_id(1))))
    assert have == [an_id for created_at, an_id in HELD if created_at >= 500]
    assert set(need) <= {item_id(1)}


def test_an_id_that_both_hold_under_the_same_two_timestamps_is_not_had() -> None:
    twins = [(1, item_id(7)), (2, item_id(7)), (3, item_id(8))]
    assert found_by((END, ID_LIST, id_list(item_id(7), item_id(7))), items=twins) == ([item_id(8)], [])
    assert found_by((END, ID_LIST, id_list(item_id(8), *[item_id(7)] * 9)), items=twins) == ([], [])


@pytest.mark.parametrize(
    "first",
    [
        pytest.param(
            0, marks=pytest.mark.xfail(reason="a need stays, though a later list shows otherwise", strict=True)
        ),
        1,
    ],
    ids=["need-that-is-own", "have-that-they-hold"],
)
def test_an_id_listed_after_all_is_neither_had_nor_needed(first: int) -> None:
    """They hold our id under an earlier timestamp; a range with the one or the other comes back as part of a wider one.

    That is what frame limits do, between honest peers: see `test_a_moved_item_in_a_range_that_comes_back`.
    """
    moved = item_id(7)
    parts: list[Range] = [((50, b""), ID_LIST, id_list(moved)), (END, FINGERPRINT, WRONG)]
    if first:
        parts = [((50, b""), FINGERPRINT, WRONG), (END, ID_LIST, id_list())]
    side = negentropy("initiator", sealed([(100, moved)]))
    assert side.reconcile(message_of(*parts)).message is not None
    step = side.reconcile(message_of((END, ID_LIST, id_list(moved))))
    assert step.message is None
    assert ids_of(step.have) == ids_of(step.need) == []


@ROLES
def test_ten_thousand_ranges_of_one_item(role: str) -> None:
    items = [(i, item_id(i)) for i in range(10_000)]
    storage = sealed(items)
    lists: list[Range] = [((created_at + 1, b""), ID_LIST, id_list(an_id)) for created_at, an_id in items]
    started = time.perf_counter()
    step = negentropy(role, storage).reconcile(message_of(*lists))
    assert time.perf_counter() - started < 5
    if role == "initiator":
        assert step.message is None
        assert len(step.have) == len(step.need) == 0
    else:
        assert step.message == message_of(*lists)
    wrong: list[Range] = [(bound, FINGERPRINT, WRONG) for bound, _, _ in lists]
    assert negentropy(role, storage).reconcile(message_of(*wrong)).message == message_of(*lists)


@ROLES
@pytest.mark.parametrize("limit", [0, 4096])
@pytest.mark.parametrize(
    ("mode", "payload"), [(SKIP, b""), (ID_LIST, id_list()), (FINGERPRINT, WRONG)], ids=["skip", "list", "fingerprint"]
)
def test_a_hundred_thousand_empty_ranges(role: str, limit: int, mode: int, payload: bytes) -> None:
    message = b"\x61" + (varint(1) + varint(0) + varint(mode) + payload) * 100_000
    started = time.perf_counter()
    with memory_within(200 * len(message) + 2**20):
        step = negentropy(role, frame_size_limit=limit).reconcile(message)
    assert time.perf_counter() - started < 5
    assert step.message is None or len(step.message) <= (limit or len(message))
    assert LISTENERS[limit].hear(message, role == "initiator")


# ---- The cost follows the bytes that came, not the numbers in them


class memory_within:
    """Fails if more memory than `most` bytes is taken at any time."""

    def __init__(self, most: int) -> None:
        self.most = most

    def __enter__(self) -> None:
        self.resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        tracemalloc.start()

    def __exit__(self, *_: object) -> None:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < self.most
        # numba's own allocations are not traced
        assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - self.resident) * 1024 < self.most + 2**25


@ROLES
@pytest.mark.parametrize("exponent", [20, 31, 32, 40, 58, 59, 63])
def test_memory_is_not_taken_for_a_claim(role: str, exponent: int) -> None:
    claims = [
        b"\x61\x01\x00\x02" + varint(2**exponent) + bytes(100),
        b"\x61\x01" + varint(2**exponent) + bytes(100),
        b"\x61\x01\x00\x02\x00" * 20 + b"\x00\x00\x02" + varint(2**exponent - 1) + bytes(320),
    ]
    for claim in claims:
        with memory_within(2**18), pytest.raises(negvec.ProtocolError):
            negentropy(role).reconcile(claim)


@ROLES
@pytest.mark.parametrize("size", [10**3, 10**5, 10**6])
def test_memory_follows_the_length_of_the_message(role: str, size: int) -> None:
    chance = random.Random(size)
    junk = chance.randbytes(size // 32 * 32)
    messages = [
        b"\x61" + b"\x01\x00\x00" * (size // 3),
        b"\x61" + b"\x01\x00\x02\x00" * (size // 4),
        b"\x61\x00\x00\x02" + varint(len(junk) // 32) + junk,
        b"\x61" + (b"\x00\x20" + bytes(32) + b"\x01" + WRONG) * (size // 51),
    ]
    for message in messages:
        with memory_within(200 * len(message) + 2**18):
            negentropy(role).reconcile(message)


# ---- Peers that never come to an end


Peer = Callable[[bytes, int], bytes]  # our message and the number of the round -> its answer


def wrong_everywhere(message: bytes, _: int) -> bytes:
    """Our own ranges, with a wrong fingerprint for each."""
    return message_of(*((bound, FINGERPRINT, WRONG) for bound, mode, _ in ranges_of(message) if mode != SKIP))


def turned_over(message: bytes, _: int) -> bytes:
    """Our fingerprints with every bit flipped, and a fingerprint in place of our lists."""
    return message_of(
        *(
            (bound, FINGERPRINT, bytes(byte ^ 255 for byte in payload) if mode == FINGERPRINT else WRONG)
            for bound, mode, payload in ranges_of(message)
        )
    )


def random_to_infinity(message: bytes, number: int) -> bytes:
    return message_of((END, FINGERPRINT, random.Random(number).randbytes(16)))


def alternating(message: bytes, number: int) -> bytes:
    """Now the one half is wrong, now the other."""
    halves: list[Range] = [((500, b""), SKIP, b""), (END, FINGERPRINT, WRONG)]
    return message_of(*halves) if number % 2 else message_of(((500, b""), FINGERPRINT, WRONG))


def everything_own(message: bytes, _: int) -> bytes:
    """All our ids listed up to the last item, and a wrong fingerprint behind."""
    return message_of(((1001, b""), ID_LIST, id_list(*(an_id for _, an_id in HELD))), (END, FINGERPRINT, WRONG))


ENDLESS = [wrong_everywhere, turned_over, random_to_infinity, alternating]


def talk_to(peer: Peer, side: negvec.Negentropy, most: int) -> tuple[int, negvec.Step]:
    """Rounds until the initiator is done, and its last step."""
    message, number = side.initiate(), 0
    while True:
        assert number < most, "no end in sight"
        number += 1
        step = side.reconcile(peer(message, number))
        if step.message is None:
            return number, step
        message = step.message


@pytest.mark.parametrize("limit", [0, 4096])
@pytest.mark.parametrize("size", [0, 1, 31, 32, 100, 3000])
def test_a_peer_that_echoes_has_what_we_have(size: int, limit: int) -> None:
    side = negvec.Negentropy(sealed([(i, item_id(i)) for i in range(size)]), limit)
    rounds, step = talk_to(lambda message, _: message, side, most=1)
    assert rounds == 1
    assert len(step.have) == len(step.need) == 0


@pytest.mark.parametrize("limit", [0, 4096])
@pytest.mark.parametrize("size", [0, 1, 31, 32, 100, 3000])
@pytest.mark.parametrize("peer", ENDLESS)
def test_a_peer_that_settles_nothing_is_given_up(peer: Peer, size: int, limit: int) -> None:
    side = negvec.Negentropy(sealed([(i, item_id(i)) for i in range(size)]), limit)
    with pytest.raises(negvec.ProtocolError, match="settled nothing"):
        talk_to(peer, side, most=2 * STALLED_ROUNDS)


def test_a_peer_that_lists_what_we_have_for_ever_is_given_up() -> None:
    with pytest.raises(negvec.ProtocolError, match="settled nothing"):
        talk_to(everything_own, negvec.Negentropy(STORAGE), most=2 * STALLED_ROUNDS)


def test_a_peer_that_says_what_it_said_before_is_given_up() -> None:
    first: list[bytes] = []

    def repeating(message: bytes, number: int) -> bytes:
        first.append(wrong_everywhere(message, number))
        return first[0]

    with pytest.raises(negvec.ProtocolError, match="settled nothing"):
        talk_to(repeating, negvec.Negentropy(STORAGE), most=2 * STALLED_ROUNDS)


def test_a_peer_that_settles_an_item_a_round_is_given_up_behind_the_last() -> None:
    def slow(_: bytes, number: int) -> bytes:
        return message_of(((10 * number, b""), SKIP, b""), (END, FINGERPRINT, WRONG))

    with pytest.raises(negvec.ProtocolError, match="settled nothing"):
        talk_to(slow, negvec.Negentropy(STORAGE), most=len(HELD) + 2 * STALLED_ROUNDS)


def test_a_peer_that_lacks_an_item_more_each_round_is_given_up_behind_the_last() -> None:
    def forgetful(_: bytes, number: int) -> bytes:
        held = id_list(*(an_id for _, an_id in HELD[number:]))
        return message_of(((1001, b""), ID_LIST, held), (END, FINGERPRINT, WRONG))

    with pytest.raises(negvec.ProtocolError, match="settled nothing"):
        talk_to(forgetful, negvec.Negentropy(STORAGE), most=len(HELD) + 2 * STALLED_ROUNDS)


def test_a_peer_that_lists_the_same_id_for_ever_is_given_up() -> None:
    def insisting(_: bytes, number: int) -> bytes:
        return message_of(((5, b""), ID_LIST, id_list(item_id(0))), (END, FINGERPRINT, WRONG))

    with pytest.raises(negvec.ProtocolError, match="settled nothing"):
        talk_to(insisting, negvec.Negentropy(STORAGE), most=4 * STALLED_ROUNDS)


# ---- A caller's mistakes


@ROLES
@pytest.mark.parametrize("message", ["61", None, 97, 1.5, [0x61], object()])
def test_a_message_that_is_not_bytes(role: str, message: object) -> None:
    with pytest.raises(TypeError, match="bytes"):
        negentropy(role).reconcile(message)


def test_hex_in_place_of_bytes_is_told_the_way_out() -> None:
    with pytest.raises(TypeError, match=r"bytes\.fromhex"):
        negentropy("responder").reconcile("610000020000")


def test_a_message_with_gaps_in_memory_is_a_callers_mistake() -> None:
    with pytest.raises((TypeError, ValueError), match="contiguous"):
        negentropy("responder").reconcile(memoryview(b"\x61\0\0\0\0\0")[::2])


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview, lambda data: np.frombuffer(data, np.uint8)])
def test_a_message_may_be_any_bytes(kind: Callable[[bytes], object]) -> None:
    message = message_of((END, FINGERPRINT, WRONG))
    expected = negentropy("responder").reconcile(message).message
    assert negentropy("responder").reconcile(kind(message)).message == expected


def test_a_second_beginning_is_refused() -> None:
    side = negentropy("initiator")
    with pytest.raises(ValueError, match="begun already"):
        side.initiate()


def test_nothing_comes_after_the_end() -> None:
    side = negentropy("initiator")
    assert side.reconcile(b"\x61").message is None
    with pytest.raises(ValueError, match="over"):
        side.reconcile(b"\x61")
    with pytest.raises(ValueError, match="begun already"):
        side.initiate()


@pytest.mark.parametrize("limit", [1, 2, 100, 4095, -1, -4096, True])
def test_a_limit_that_holds_no_answer_is_refused(limit: int) -> None:
    with pytest.raises(ValueError, match="4096"):
        negvec.Negentropy(STORAGE, limit)


@pytest.mark.parametrize("limit", [4096.0, "4096", None, b"4096"])
def test_a_limit_that_is_no_integer_is_refused(limit: object) -> None:
    with pytest.raises(TypeError):
        negvec.Negentropy(STORAGE, limit)  # type: ignore[arg-type]


@pytest.mark.parametrize("limit", [4096, np.int32(4096), 2**31, 2**62])
def test_a_limit_that_holds_an_answer_is_taken(limit: int) -> None:
    assert negentropy("responder", frame_size_limit=limit).reconcile(message_of((END, ID_LIST, id_list()))).message


@pytest.mark.parametrize("limit", [2**63, 2**64, 2**100])
def test_a_limit_over_64_bits_is_no_limit_or_refused(limit: int) -> None:
    try:
        side = negentropy("responder", frame_size_limit=limit)
    except ValueError:
        return
    assert side.reconcile(message_of((END, ID_LIST, id_list()))).message


# ---- Many peers at once


def test_one_responder_answers_many_peers_at_once_as_alone() -> None:
    chance = random.Random(8)
    questions = [message for role, message in TALK if role == "responder"] * 20
    questions += [mutated(chance.choice(questions), chance) for _ in range(400)]
    chance.shuffle(questions)

    def ask(side: negvec.Negentropy, message: bytes) -> bytes | str | None:
        try:
            return side.reconcile(message).message
        except negvec.ProtocolError as error:
            return str(error)

    shared = negvec.Negentropy(STORAGE, 4096)
    alone = [ask(negvec.Negentropy(STORAGE, 4096), message) for message in questions]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda message: ask(shared, message), questions)) == alone
