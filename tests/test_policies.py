"""Split policies: whatever a side splits and asks, both find the set difference, within their frames and in few rounds.

The plain model plays the unmodified peer, and so does the reference policy, which says byte for byte what that says.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import pytest
import vectors
from hearing import Range, ranges_of
from hypothesis import example, given, settings
from hypothesis import strategies as st
from model import END, FINGERPRINT, ID_LIST, SKIP, Item, Model, Writer, varint
from test_nothing_lost import draw_pair
from test_protocol_model import LATEST, LIMITS, SHARES, SIZES, TIMESTAMPS, crowded

import negvec
from negvec.costs import compare_policies, least_bytes
from negvec.protocol.adaptive import choose
from negvec.protocol.negentropy import STALLED_ROUNDS, TINIEST_FRAME
from negvec.workloads import pair

ADAPTIVE = negvec.AdaptivePolicy()
WRONG = b"\xa5" * 16
TINY_LIMITS = [0, 128, 129, 141, 142, 143, 150, 200, 256, 512, 1024, 2048, 4095]


def sealed(items: Iterable[Item]) -> negvec.PrefixSumVector:
    storage = negvec.PrefixSumVector()
    for created_at, item_id in items:
        storage.insert(created_at, item_id)
    storage.seal()
    return storage


class Talk(NamedTuple):
    have: set[bytes]
    need: set[bytes]
    rounds: int
    up: int
    down: int
    largest: tuple[int, int]
    stalled: int  # the most rounds in a row without progress, as the initiator counts them


class Plain:
    """The model, made to look like `negvec.Negentropy`."""

    def __init__(self, items: Iterable[Item], limit: int, lossy: bool) -> None:
        self.model, self._stalled = Model(items, limit, lossy), 0
        self.have: list[bytes] = []
        self.need: list[bytes] = []

    def initiate(self) -> bytes:
        return self.model.initiate()

    def reconcile(self, message: bytes) -> negvec.Step:
        answer, have, need = self.model.reconcile(message)
        self.have += have
        self.need += need
        found = [np.frombuffer(b"".join(set(ids)), np.uint8).reshape(-1, 32) for ids in (self.have, self.need)]
        return negvec.Step(answer, *found)


Side = negvec.Negentropy | Plain


def talk_of(initiator: Side, responder: Side, most_rounds: int = 2000) -> Talk:
    message: bytes | None = initiator.initiate()
    rounds = up = down = stalled = 0
    largest = 0, 0
    while message is not None:
        assert rounds < most_rounds, "more rounds than there can be"
        answer = responder.reconcile(message).message
        assert answer is not None
        rounds, up, down = rounds + 1, up + len(message), down + len(answer)
        largest = max(largest[0], len(message)), max(largest[1], len(answer))
        step = initiator.reconcile(answer)
        stalled = max(stalled, initiator._stalled)
        message = step.message
    have, need = ([row.tobytes() for row in ids] for ids in (step.have, step.need))
    assert len(have) == len(set(have)), "an id is given twice"
    assert len(need) == len(set(need)), "an id is given twice"
    return Talk(set(have), set(need), rounds, up, down, largest, stalled)


def side(items: list[Item], limit: int, who: str, tiny: bool = False) -> Side:
    if who in ("model", "lossy model"):
        return Plain(items, limit, lossy=who == "lossy model")
    policy = {"adaptive": ADAPTIVE, "reference": negvec.ReferencePolicy()}[who]
    return negvec.Negentropy(sealed(items), limit, policy=policy, tiny=tiny)


def assert_found(talk: Talk, ours: Iterable[Item], theirs: Iterable[Item], limits: tuple[int, int]) -> None:
    have, need = ({item_id for _, item_id in only} for only in (set(ours) - set(theirs), set(theirs) - set(ours)))
    assert talk.have - talk.need == have - need
    assert talk.need - talk.have == need - have
    for largest, limit in zip(talk.largest, limits, strict=True):
        assert limit == 0 or largest <= limit


def most_rounds(different: int, ours: int, theirs: int, limits: tuple[int, int]) -> int:
    """A bound on the rounds.

    A range is cut by one side or the other in each round that it is answered in, into 2 parts at least, down to what is
    listed: twice the binary logarithm of the items, and some for the lists. A message answers one open range at
    least, and each holds a difference; without limits, all of them.
    """
    deep = 2 * (max(ours, theirs, 2).bit_length() + 2)
    return deep if limits == (0, 0) else deep * (1 + different)


PAIRS = given(
    seed=st.integers(0, 2**32),
    size=st.sampled_from(SIZES),
    shares=st.tuples(st.sampled_from(SHARES), st.sampled_from(SHARES)),
    limits=st.tuples(st.sampled_from(LIMITS), st.sampled_from(LIMITS)),
)


def drawn_items(chance: random.Random, n: int) -> list[Item]:
    """`n` items: at one timestamp or a few, or spread; their ids alike up to the last six bytes, or not.

    With fewer free bytes, different ids of a range would come to have the same sum, and so the same fingerprint.
    """
    prefix = chance.choice([bytes(26), b"\xff" * 26, b"\x80" + bytes(25), b""])
    few = chance.sample(TIMESTAMPS, chance.choice([1, 1, 3, len(TIMESTAMPS)]))
    start = chance.choice([0, 2**53 - n // 2, LATEST + 1 - max(n, 1)])
    spread = chance.random() < 0.3
    return [
        (start + i if spread else chance.choice(few), prefix + chance.randbytes(32 - len(prefix))) for i in range(n)
    ]


def drawn_sides(seed: int, size: int, shares: tuple[float, float]) -> tuple[list[Item], list[Item]]:
    chance = random.Random(seed)
    universe = drawn_items(chance, size)
    ours, theirs = ([item for item in universe if chance.random() < share] for share in shares)
    return ours, theirs


# ---- The outcome is the set difference


WHO = pytest.mark.parametrize(
    "who",
    [
        ("adaptive", "adaptive"),
        ("adaptive", "reference"),
        ("reference", "adaptive"),
        ("adaptive", "model"),
        ("adaptive", "lossy model"),
        ("model", "adaptive"),
        ("lossy model", "adaptive"),
    ],
    ids=lambda who: f"{who[0]}-asks-{who[1]}",
)


@WHO
@settings(max_examples=120)
@PAIRS
def test_small_sets_of_every_odd_kind(
    who: tuple[str, str], seed: int, size: int, shares: tuple[float, float], limits: tuple[int, int]
) -> None:
    ours, theirs = drawn_sides(seed, size, shares)
    bound = most_rounds(len(set(ours) ^ set(theirs)), len(ours), len(theirs), limits)
    talk = talk_of(side(ours, limits[0], who[0]), side(theirs, limits[1], who[1]), bound)
    assert_found(talk, ours, theirs, limits)


@WHO
@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**32),
    size=st.integers(400, 1500),
    seconds=st.sampled_from([1, 3, 10**6]),
    shares=st.tuples(st.sampled_from(SHARES), st.sampled_from(SHARES)),
    limits=st.tuples(st.sampled_from(LIMITS), st.sampled_from(LIMITS)),
)
@example(seed=0, size=1500, seconds=1, shares=(0.5, 0.5), limits=(4096, 4096))
def test_where_frames_are_full(
    who: tuple[str, str],
    seed: int,
    size: int,
    seconds: int,
    shares: tuple[float, float],
    limits: tuple[int, int],
) -> None:
    ours, theirs = crowded(seed, size, seconds, shares)
    bound = most_rounds(len(set(ours) ^ set(theirs)), len(ours), len(theirs), limits)
    talk = talk_of(side(ours, limits[0], who[0]), side(theirs, limits[1], who[1]), bound)
    assert_found(talk, ours, theirs, limits)


@pytest.mark.parametrize("seed", range(6))
def test_larger_sets_and_items_that_moved(seed: int) -> None:
    for number in range(60):
        drawn = draw_pair(np.random.default_rng([100 + seed, number]), most=3000)
        ours, theirs = (set(vectors.rows(held)) for held in drawn[:2])
        storages = [negvec.seal(*held) for held in drawn[:2]]
        asks, answers = [(ADAPTIVE, None), (ADAPTIVE, ADAPTIVE), (None, ADAPTIVE)][number % 3]
        initiator = negvec.Negentropy(storages[0], drawn.limits[0], policy=asks)
        responder = negvec.Negentropy(storages[1], drawn.limits[1], policy=answers)
        bound = most_rounds(len(ours ^ theirs), len(ours), len(theirs), drawn.limits)
        assert_found(talk_of(initiator, responder, bound), ours, theirs, drawn.limits)


@pytest.mark.parametrize("record", vectors.reference_loses(), ids=lambda record: record["name"])
@pytest.mark.parametrize("who", [("adaptive", "lossy model"), ("lossy model", "adaptive")])
def test_nothing_is_lost_where_the_reference_loses(record: vectors.Record, who: tuple[str, str]) -> None:
    ours, theirs = (vectors.items(record[f"{name}_items"]) for name in ("client", "server"))
    limits = record["client_limit"], record["server_limit"]
    assert_found(talk_of(side(ours, limits[0], who[0]), side(theirs, limits[1], who[1])), ours, theirs, limits)


@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**32),
    size=st.sampled_from([0, 1, 2, 33, 200, 700]),
    shares=st.tuples(st.sampled_from(SHARES), st.sampled_from(SHARES)),
    buckets=st.integers(2, 40),
    list_below=st.integers(2, 100),
)
def test_the_reference_policy_with_other_numbers(
    seed: int, size: int, shares: tuple[float, float], buckets: int, list_below: int
) -> None:
    ours, theirs = drawn_sides(seed, size, shares)
    policy = negvec.ReferencePolicy(buckets, list_below)
    for limits in ((0, 0), (8192, 8192)):
        talk = talk_of(
            negvec.Negentropy(sealed(ours), limits[0], policy=policy),
            negvec.Negentropy(sealed(theirs), limits[1], policy=policy),
            most_rounds(len(set(ours) ^ set(theirs)), len(ours), len(theirs), limits),
        )
        assert_found(talk, ours, theirs, limits)


# ---- Bytes and rounds, against what the reference did


RECORDS = [record for record in vectors.shapes() if record["salt"] == 0]
SMALL = sorted((record for record in RECORDS if record["n"] < 1_000_000), key=lambda r: (r["n"], r["shape"]))


@lru_cache(maxsize=1)
def storages(shape: str, n: int) -> tuple[negvec.Storage, negvec.Storage]:
    ours, theirs = pair(shape, n)
    return negvec.seal(*ours), negvec.seal(*theirs)


def measured(record: vectors.Record, answers: negvec.AdaptivePolicy | None) -> Talk:
    ours, theirs = storages(record["shape"], record["n"])
    talk = talk_of(
        negvec.Negentropy(ours, record["client_limit"], policy=ADAPTIVE),
        negvec.Negentropy(theirs, record["server_limit"], policy=answers),
    )
    assert vectors.digest(list(talk.have)) == record["have_sha256"]
    assert vectors.digest(list(talk.need)) == record["need_sha256"]
    return talk


@pytest.mark.parametrize("answers", [None, ADAPTIVE], ids=["reference-answers", "adaptive-answers"])
@pytest.mark.parametrize("record", SMALL, ids=[record["name"] for record in SMALL])
def test_no_more_bytes_than_the_reference_takes(record: vectors.Record, answers: negvec.AdaptivePolicy | None) -> None:
    talk = measured(record, answers)
    assert talk.up + talk.down <= record["bytes_up"] + record["bytes_down"]
    if record["shape"] == "scattered":  # a round to find out how dense the differences are, or two, save half the bytes
        assert talk.rounds <= record["rounds"] + 1
        assert talk.rounds <= 3 or talk.up + talk.down < 0.66 * (record["bytes_up"] + record["bytes_down"])
    else:
        assert talk.rounds <= record["rounds"]


@pytest.mark.parametrize("answers", [None, ADAPTIVE], ids=["reference-answers", "adaptive-answers"])
@pytest.mark.parametrize("shape", ["identical", "contiguous", "clustered"])
def test_a_million_items_take_no_more_than_the_reference(shape: str, answers: negvec.AdaptivePolicy | None) -> None:
    records = [record for record in RECORDS if (record["shape"], record["n"]) == (shape, 1_000_000)]
    assert len(records) == 3
    for record in records:
        talk = measured(record, answers)
        assert talk.up + talk.down <= record["bytes_up"] + record["bytes_down"]
        assert talk.rounds <= record["rounds"]
        if shape == "identical":
            assert (talk.rounds, talk.down) == (1, 1)


@pytest.mark.parametrize("answers", [None, ADAPTIVE], ids=["reference-answers", "adaptive-answers"])
def test_a_million_scattered_items(answers: negvec.AdaptivePolicy | None) -> None:
    records = {
        (record["client_limit"], record["server_limit"]): record
        for record in RECORDS
        if (record["shape"], record["n"]) == ("scattered", 1_000_000)
    }
    relay = measured(records[0, 500_000], answers)
    assert relay.rounds <= 20
    assert relay.up + relay.down <= 15_000_000, "the bound for leaves of one width is 14.9 million"
    assert relay.largest[1] <= 500_000
    careful = measured(records[60_000, 500_000], answers)
    assert careful.rounds <= 80
    assert careful.up + careful.down <= 15_600_000
    assert careful.largest[0] <= 60_000


def test_what_a_full_frame_left_out_is_not_sent_again() -> None:
    """Every own range goes up once or twice, not once for each frame that the responder fills."""
    ours, theirs = storages("scattered", 200_000)
    initiator = negvec.Negentropy(ours, policy=negvec.AdaptivePolicy())
    responder = negvec.Negentropy(theirs, 20_000)
    message, hashed = initiator.initiate(), 0
    while message is not None:
        hashed += sum(mode == FINGERPRINT for _, mode, _ in ranges_of(message))
        message = initiator.reconcile(responder.reconcile(message).message).message
    assert hashed < 0.5 * len(ours)


def test_a_known_frame_is_filled_from_the_beginning() -> None:
    ours, theirs = storages("scattered", 200_000)
    rounds = {
        limit: talk_of(
            negvec.Negentropy(ours, policy=negvec.AdaptivePolicy(responder_limit=limit)), negvec.Negentropy(theirs, 0)
        ).rounds
        for limit in (0, 40_000)
    }
    assert rounds[0] <= 4
    assert rounds[40_000] > 30, "what is said to be the limit is kept to"


@pytest.mark.parametrize(
    ("n", "share", "most"),
    [
        *(
            (500_000, 0.0003, 1.15),
            (500_000, 0.003, 1.1),
            (500_000, 0.01, 1.1),
            (500_000, 0.03, 1.15),
            (500_000, 0.1, 1.1),
        ),
        *((150_000, 0.0015, 1.2), (200_000, 0.00135, 1.15), (200_000, 0.0025, 1.25), (300_000, 0.001, 1.15)),
    ],
)
def test_random_differences_cost_little_more_than_the_least_that_ranges_can(n: int, share: float, most: float) -> None:
    """Against a responder as the reference is, with a relay's frames."""
    run = compare_policies({"adaptive": ADAPTIVE}, [share], n=n, responder_limit=500_000)[0]
    least = float(least_bytes(run["density"], reference=True)) * run["items"]
    assert run["bytes_up"] + run["bytes_down"] <= most * least


# ---- How ranges are chosen


def test_leaves_narrow_with_the_density_of_differences() -> None:
    densities = np.array([0.0, 0.002, 0.01, 0.05, 0.1, 0.3])
    widths = np.full(len(densities), 600)
    leaf = widths / choose(widths, densities, np.zeros(len(widths), np.bool_)).buckets
    assert (np.diff(leaf) < 0).all()
    assert 2.5 < leaf[4] < 3.5
    everything = choose(np.array([620]), np.array([3.0]), np.zeros(1, np.bool_))
    assert everything.buckets[0] == 20, "where all differs, lists are as long as a responder sends them"


@given(st.integers(1, 10**9), st.floats(0, 50), st.booleans(), st.floats(1, 20))
def test_a_range_is_never_asked_about_with_one_fingerprint_for_all_of_it(
    own: int, density: float, dense: bool, cost: float
) -> None:
    choice = choose(np.array([own]), np.array([density]), np.array([dense]), cost)
    assert choice.buckets[0] == 0 if own < 2 else 2 <= choice.buckets[0] <= own
    assert np.isfinite(choice.expected).all()
    assert (choice.expected > 0).all()


@pytest.mark.parametrize("limit", [0, 128, 4096])
@given(st.lists(st.tuples(st.integers(0, 2000), st.booleans()), min_size=1, max_size=40))
def test_a_responder_never_answers_with_one_fingerprint(limit: int, ranges: list[tuple[int, bool]]) -> None:
    widths = np.array([width for width, _ in ranges])
    differs = np.array([differs for _, differs in ranges], np.uint8)
    lo = np.zeros(int(differs.sum()), np.int64)
    hi = widths[differs > 0]
    buckets = ADAPTIVE.answer_buckets(widths, differs, lo, hi, limit)
    assert ((buckets == 0) | ((buckets >= 2) & (buckets <= hi))).all()


# ---- Whose memory it is


def test_conversations_of_one_policy_know_nothing_of_each_other() -> None:
    policy = negvec.AdaptivePolicy()
    kinds = [storages_of("scattered", 6000), storages_of("contiguous", 5000), storages_of("clustered", 9000)]

    def messages(talks: list[list[bytes]], turns: Callable[[int], list[int]]) -> list[list[bytes]]:
        sides = [
            (negvec.Negentropy(ours, 4096, policy=policy), negvec.Negentropy(theirs, 4096, policy=policy))
            for ours, theirs in kinds
        ]
        now: list[bytes | None] = [initiator.initiate() for initiator, _ in sides]
        turn = 0
        while any(now):
            for k in turns(turn):
                message = now[k]
                if message is not None:
                    talks[k].append(message)
                    answer = sides[k][1].reconcile(message).message
                    assert answer is not None
                    talks[k].append(answer)
                    now[k] = sides[k][0].reconcile(answer).message
            turn += 1
        return talks

    interleaved = messages([[], [], []], lambda turn: [0, 1, 2])
    one_by_one = messages([[], [], []], lambda turn: [turn // 1000])
    assert interleaved == one_by_one


def storages_of(shape: str, n: int) -> tuple[negvec.Storage, negvec.Storage]:
    ours, theirs = pair(shape, n)
    return negvec.seal(*ours), negvec.seal(*theirs)


def test_an_adaptive_responder_is_a_pure_function_of_the_message() -> None:
    ours, theirs = storages_of("scattered", 20_000)
    responder = negvec.Negentropy(theirs, 4096, policy=ADAPTIVE)
    initiator = negvec.Negentropy(ours, 4096, policy=ADAPTIVE)
    questions, answers = [], []
    message: bytes | None = initiator.initiate()
    while message is not None:
        questions.append(message)
        answers.append(responder.reconcile(message).message)
        message = initiator.reconcile(answers[-1]).message
    order = list(range(len(questions)))
    random.Random(3).shuffle(order)
    with ThreadPoolExecutor(8) as pool:
        again = list(pool.map(lambda k: responder.reconcile(questions[k]).message, order))
    assert again == [answers[k] for k in order]


# ---- Peers that do not play by the protocol


def message_of(*ranges: Range) -> bytes:
    out = Writer()
    for bound, mode, payload in ranges:
        out.range(bound, mode, payload)
    return bytes(out.message)


def id_of(number: int) -> bytes:
    return number.to_bytes(4, "big") * 8


def wrong_everywhere(message: bytes, _: int) -> bytes:
    return message_of(*((bound, FINGERPRINT, WRONG) for bound, mode, _ in ranges_of(message) if mode != SKIP))


def wrong_to_infinity(message: bytes, number: int) -> bytes:
    return message_of((END, FINGERPRINT, random.Random(number).randbytes(16)))


def turned_over(message: bytes, _: int) -> bytes:
    return message_of(
        *(
            (bound, FINGERPRINT, bytes(byte ^ 255 for byte in payload) if mode == FINGERPRINT else WRONG)
            for bound, mode, payload in ranges_of(message)
        )
    )


def ever_finer(message: bytes, number: int) -> bytes:
    """New bounds in every round, where there is nothing."""
    return message_of(*((((1 << 40) + number * 100 + k, b""), FINGERPRINT, WRONG) for k in range(50)))


def one_id_for_ever(message: bytes, _: int) -> bytes:
    return message_of(((5, b""), ID_LIST, varint(1) + id_of(0)), (END, FINGERPRINT, WRONG))


def everything_own(message: bytes, _: int) -> bytes:
    ids = b"".join(id_of(i) for i in range(1, 101))
    return message_of(((1001, b""), ID_LIST, varint(100) + ids), (END, FINGERPRINT, WRONG))


ENDLESS = [wrong_everywhere, wrong_to_infinity, turned_over, ever_finer, one_id_for_ever, everything_own]


@pytest.mark.parametrize("limit", [0, 4096, 128])
@pytest.mark.parametrize("size", [0, 1, 2, 31, 32, 100, 3000])
@pytest.mark.parametrize("peer", ENDLESS)
def test_a_peer_that_settles_nothing_is_given_up(peer: Callable[[bytes, int], bytes], size: int, limit: int) -> None:
    initiator = negvec.Negentropy(sealed((i, id_of(i)) for i in range(1, size + 1)), limit, policy=ADAPTIVE, tiny=True)

    def talk() -> None:
        message: bytes | None = initiator.initiate()
        for number in range(12 * STALLED_ROUNDS):
            assert message is not None, "all is settled"
            assert not limit or len(message) <= limit
            message = initiator.reconcile(peer(message, number)).message

    with pytest.raises(negvec.ProtocolError, match="settled nothing"):
        talk()


@pytest.mark.parametrize("limit", [0, 4096, 128])
@pytest.mark.parametrize("size", [0, 1, 31, 32, 100, 3000])
def test_a_peer_that_echoes_has_what_we_have(size: int, limit: int) -> None:
    initiator = negvec.Negentropy(sealed((i, id_of(i)) for i in range(size)), limit, policy=ADAPTIVE, tiny=True)
    message: bytes | None = initiator.initiate()
    for _ in range(3):
        if message is not None:
            step = initiator.reconcile(message)
            message = step.message
    assert message is None
    assert len(step.have) == len(step.need) == 0


@settings(max_examples=150)
@given(st.randoms(use_true_random=False), st.sampled_from([0, 4096, 128]))
def test_answers_drawn_at_random_end_in_an_error_or_in_peace(chance: random.Random, limit: int) -> None:
    size = chance.choice([0, 1, 5, 100, 1000])
    items = [(10 * i, id_of(i)) for i in range(size)]
    initiator = negvec.Negentropy(sealed(items), limit, policy=ADAPTIVE, tiny=True)
    message: bytes | None = initiator.initiate()
    for _ in range(20 * STALLED_ROUNDS):
        ranges: list[Range] = []
        at = 0
        for _ in range(chance.randrange(6)):
            at += chance.choice([0, 1, 10, 95, 1000])
            mode = chance.choice([SKIP, FINGERPRINT, FINGERPRINT, ID_LIST])
            ids = b"".join(id_of(chance.randrange(2000)) for _ in range(3))
            payload = {SKIP: b"", FINGERPRINT: chance.randbytes(16), ID_LIST: varint(3) + ids}[mode]
            ranges.append(((at, chance.randbytes(0)), mode, payload))
        if chance.random() < 0.7:
            ranges.append((END, FINGERPRINT, WRONG))
        try:
            message = initiator.reconcile(message_of(*ranges)).message
        except negvec.ProtocolError:
            return
        if message is None:
            return
        assert not limit or len(message) <= limit
    raise AssertionError("no end in sight")


# ---- Tiny frames


@settings(max_examples=250)
@given(
    seed=st.integers(0, 2**32),
    size=st.sampled_from([0, 1, 2, 15, 31, 33, 64, 150, 300]),
    shares=st.tuples(st.sampled_from(SHARES), st.sampled_from(SHARES)),
    limits=st.tuples(*2 * [st.one_of(st.sampled_from(TINY_LIMITS), st.integers(TINIEST_FRAME, 4095))]),
)
def test_tiny_frames_lose_nothing(seed: int, size: int, shares: tuple[float, float], limits: tuple[int, int]) -> None:
    ours, theirs = drawn_sides(seed, size, shares)
    bound = most_rounds(len(set(ours) ^ set(theirs)), len(ours), len(theirs), limits)
    talk = talk_of(*(side(*sides, "adaptive", tiny=True) for sides in ((ours, limits[0]), (theirs, limits[1]))), bound)
    assert_found(talk, ours, theirs, limits)
    assert talk.stalled < STALLED_ROUNDS // 2


@pytest.mark.parametrize("seed", range(4))
def test_tiny_frames_with_bounds_of_whole_ids(seed: int) -> None:
    for number in range(50):
        chance = np.random.default_rng([200 + seed, number])
        drawn = draw_pair(chance, most=300)
        limits = int(chance.choice(TINY_LIMITS)), int(chance.choice(TINY_LIMITS))
        ours, theirs = (set(vectors.rows(held)) for held in drawn[:2])
        sides = [
            negvec.Negentropy(negvec.seal(*held), limit, tiny=True)
            for held, limit in zip(drawn[:2], limits, strict=True)
        ]
        bound = most_rounds(len(ours ^ theirs), len(ours), len(theirs), limits)
        assert_found(talk_of(sides[0], sides[1], bound), ours, theirs, limits)


@pytest.mark.parametrize("lacks", ["ours", "theirs"])
@pytest.mark.parametrize("limit", [128, 200, 1000])
def test_one_difference_in_100_000_items_over_tiny_frames(limit: int, lacks: str) -> None:
    created_at, ids = pair("identical", 125_000).ours
    whole, less = negvec.seal(created_at, ids), negvec.seal(np.delete(created_at, 77_777), np.delete(ids, 77_777, 0))
    sides = (less, whole) if lacks == "ours" else (whole, less)
    talk = talk_of(*(negvec.Negentropy(storage, limit, tiny=True) for storage in sides), most_rounds=60)
    assert talk.have | talk.need == {ids[77_777].tobytes()}
    assert max(talk.largest) <= limit
    assert talk.stalled < STALLED_ROUNDS // 2


@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**32),
    size=st.sampled_from([0, 1, 33, 150, 600]),
    shares=st.tuples(st.sampled_from(SHARES), st.sampled_from(SHARES)),
    limits=st.tuples(st.integers(TINIEST_FRAME, 4095), st.sampled_from(LIMITS)),
)
def test_a_tiny_initiator_is_understood_by_the_reference(
    seed: int, size: int, shares: tuple[float, float], limits: tuple[int, int]
) -> None:
    """What it sends is tiny; what it gets is as long as the reference's frames are."""
    ours, theirs = drawn_sides(seed, size, shares)
    talk = talk_of(side(ours, limits[0], "adaptive", tiny=True), side(theirs, limits[1], "lossy model"))
    assert_found(talk, ours, theirs, limits)


@pytest.mark.parametrize("limit", [200, 256, 500, 2000])
def test_a_tiny_responder_answers_an_initiator_with_normal_frames(limit: int) -> None:
    """With bounds as they are among hashes and timestamps in seconds; see TINIEST_FRAME for those that are not."""
    ours, theirs = storages_of("scattered", 3000)
    talk = talk_of(negvec.Negentropy(ours), negvec.Negentropy(theirs, limit, tiny=True), most_rounds=5000)
    assert talk.have == {row.tobytes() for row in negvec.reconcile(ours, theirs).have}
    assert talk.largest[1] <= limit


# ---- A caller's mistakes


@pytest.mark.parametrize("limit", [1, 100, 127, -1])
def test_a_frame_in_which_one_id_may_not_fit_is_refused(limit: int) -> None:
    with pytest.raises(ValueError, match="128 bytes"):
        negvec.Negentropy(sealed([]), limit, tiny=True)


def test_tiny_frames_are_asked_for() -> None:
    with pytest.raises(ValueError, match="tiny=True"):
        negvec.Negentropy(sealed([]), 512)
    with pytest.raises(ValueError, match="AdaptivePolicy"):
        negvec.Negentropy(sealed([]), 512, policy=negvec.ReferencePolicy(), tiny=True)


@pytest.mark.parametrize("numbers", [(1,), (0,), (-16,), (16, 1), (16, -5)])
def test_a_policy_that_could_not_split_is_refused(numbers: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="2 "):
        negvec.ReferencePolicy(*numbers)
    with pytest.raises(ValueError, match="responder_limit"):
        negvec.AdaptivePolicy(responder_limit=-1)
    with pytest.raises(TypeError):
        negvec.ReferencePolicy(2.5)  # type: ignore[arg-type]


@pytest.mark.parametrize("numbers", [(64,), (16, 200), (1000, 32)])
def test_a_frame_too_small_for_the_answer_to_one_range_is_refused(numbers: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="fewer buckets, shorter lists, or a larger limit"):
        negvec.Negentropy(sealed([]), 4096, policy=negvec.ReferencePolicy(*numbers))
    negvec.Negentropy(sealed([]), 0, policy=negvec.ReferencePolicy(*numbers))


def test_policies_say_what_they_are() -> None:
    assert repr(negvec.ReferencePolicy()) == "ReferencePolicy(buckets=16, list_below=32)"
    assert repr(negvec.AdaptivePolicy()) == "AdaptivePolicy(responder_limit=None)"
