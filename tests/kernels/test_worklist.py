"""Open ranges, what an answer tells of them, and how they are laid out, against lists of tuples."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from negvec import kernels

from . import as_ids, as_words, thorough

Bound = tuple[int, bytes]  # the id zero-padded
INFINITY = 2**64 - 1
START: Bound = (0, bytes(32))
END: Bound = (INFINITY, bytes(32))
SKIP, FINGERPRINT, ID_LIST = range(3)

worklist = kernels.worklist


def bound_columns(bounds: list[Bound]) -> tuple[Any, Any, Any]:
    lengths = [len(id.rstrip(b"\0")) for _, id in bounds]
    at = np.array([at for at, _ in bounds], np.uint64)
    return at, as_words([id for _, id in bounds]), np.array(lengths, np.uint8)


def blank_bounds(most: int) -> tuple[Any, Any, Any]:
    return np.zeros(most, np.uint64), np.zeros((most, 4), np.uint64), np.zeros(most, np.uint8)


def as_bounds(columns: tuple[Any, Any, Any], m: int) -> list[Bound]:
    return list(zip(columns[0][:m].tolist(), as_ids(columns[1][:m]), strict=True))


class Piece(NamedTuple):
    lower: Bound
    upper: Bound
    lo: int
    hi: int


def index_of(bound: Bound) -> int:
    """A made-up storage: an item at every even timestamp, with the id 8000...0."""
    at, id = bound
    item = b"\x80" + bytes(31)
    return 10**6 if at == INFINITY else (at + 1) // 2 + (at % 2 == 0 and id > item)


bounds = st.tuples(
    st.integers(0, 12), st.sampled_from([bytes(32), b"\x01" + bytes(31), bytes(9) + b"\xff" * 23, b"\xff" * 32])
)


@st.composite
def ascending(draw: st.DrawFn, most: int, repeats: bool) -> list[Bound]:
    drawn = draw(st.lists(bounds, max_size=most))
    return sorted(drawn if repeats else set(drawn))


def refined(
    pieces: list[Piece], asked: list[bool], answer: list[Bound], verdicts: list[int], joins: bool
) -> list[tuple[Piece, int, int]]:
    """Every overlap of an open range and a range of the answer that leaves something open."""
    out: list[tuple[Piece, int, int]] = []
    ends = [*answer, END]
    for i, piece in enumerate(pieces):
        for k, end in enumerate(ends):
            begin = START if k == 0 else ends[k - 1]
            verdict = verdicts[k] if k < len(answer) else worklist.PASSED
            lower, upper = max(piece.lower, begin), min(piece.upper, end)
            if lower >= upper or verdict == worklist.SETTLED or (verdict == worklist.PASSED and asked[i]):
                continue
            part = Piece(lower, upper, index_of(lower), index_of(upper))
            row = part, i, k if verdict == worklist.OPEN else -1
            if joins and out and out[-1][0].upper == lower and part.lo == part.hi and out[-1][0].lo == out[-1][0].hi:
                before = out.pop()[0]
                row = Piece(before.lower, upper, before.lo, part.hi), i, row[2]
            out.append(row)
    return out


@thorough
@given(st.data(), ascending(10, repeats=False), ascending(8, repeats=True), st.booleans(), st.booleans())
def test_refine(data: st.DataObject, cuts: list[Bound], answer: list[Bound], closed: bool, joins: bool) -> None:
    ends = [START, *(cut for cut in cuts if cut > START), END]
    pieces = [
        Piece(lower, upper, index_of(lower), index_of(upper))
        for lower, upper in pairwise(ends)
        if data.draw(st.booleans())
    ]
    asked = [data.draw(st.booleans()) for _ in pieces]
    answer = [*answer, END] if closed else answer
    verdicts = [data.draw(st.integers(0, 2)) for _ in answer]
    most = len(pieces) + len(answer)
    lower, upper = blank_bounds(most), blank_bounds(most)
    lo, hi, source, row = (np.zeros(most, np.int64) for _ in range(4))
    m = worklist.refine(
        *bound_columns([piece.lower for piece in pieces]),
        *bound_columns([piece.upper for piece in pieces]),
        *(np.array([piece.lo for piece in pieces], np.int64), np.array([piece.hi for piece in pieces], np.int64)),
        np.array(asked, np.uint8),
        *bound_columns(answer),
        *(np.array([index_of(end) for end in answer], np.int64), np.array(verdicts, np.uint8), int(joins)),
        *(*lower, *upper, lo, hi, source, row),
    )
    got = [
        (Piece(*piece), i, k)
        for *piece, i, k in zip(
            as_bounds(lower, m),
            as_bounds(upper, m),
            *(column[:m].tolist() for column in (lo, hi, source, row)),
            strict=True,
        )
    ]
    assert got == refined(pieces, asked, answer, verdicts, joins)
    for columns in (lower, upper):
        assert [len(id.rstrip(b"\0")) for _, id in as_bounds(columns, m)] == columns[2][:m].tolist()


@given(st.lists(st.one_of(st.integers(0, 40), st.integers(0, 2**62)), max_size=50))
def test_widths_are_counted_in_bins_that_ascend_and_are_an_eighth_wide(widths: list[int]) -> None:
    places = []
    for width in widths:
        counts = np.zeros(worklist.BINS, np.int64)
        worklist.count_widths(np.array([width], np.int64), counts)
        assert counts.sum() == 1
        places.append(int(np.flatnonzero(counts)[0]))
    by_width = sorted(zip(widths, places, strict=True))
    for (width, place), (other, elsewhere) in pairwise(by_width):
        assert place <= elsewhere
        if place == elsewhere:
            assert other - width <= width / 8


class Seen(NamedTuple):
    part: list[int]
    parts: list[int]
    mismatches: list[int]
    matched: list[int]
    differed: list[int]
    unanswered: int


def observed(asked: list[tuple[int, int]], answer: list[tuple[int, int, int, bool]]) -> Seen:
    """Asked range by asked range: the first of the answer that holds its first item decides."""
    part = [-1] * len(answer)
    parts, mismatches = [0] * len(asked), [0] * len(asked)
    matched: list[int] = []
    differed: list[int] = []
    unanswered = 0
    for g, (lo, hi) in enumerate(asked):
        first = next((j for j, (_, upper, _, _) in enumerate(answer) if upper > lo), None)
        if first is None or answer[first][2] == SKIP:
            matched.append(hi - lo)
            continue
        lower, upper, mode, differs = answer[first]
        if mode == ID_LIST:
            differed.append(hi - lo)
        elif lower < lo or upper > hi:
            unanswered += differs
        else:
            j = first
            while j < len(answer) and answer[j][1] <= hi and answer[j][2] == FINGERPRINT:
                lower, upper, _, differs = answer[j]
                part[j] = g
                parts[g] += 1
                mismatches[g] += differs
                if upper > lower:
                    (differed if differs else matched).append(upper - lower)
                j += 1
            if j < len(answer) and answer[j - 1][1] < hi and answer[j][2] == FINGERPRINT:
                unanswered += 1
    return Seen(part, parts, mismatches, matched, differed, unanswered)


indices = st.lists(st.integers(0, 60), min_size=2, max_size=12, unique=True).map(sorted)


@thorough
@given(st.data(), indices, st.lists(st.integers(0, 60), max_size=12).map(sorted))
def test_observe(data: st.DataObject, edges: list[int], ends: list[int]) -> None:
    asked = [pair for pair in pairwise(edges) if data.draw(st.booleans())]
    answer = []
    for lower, upper in zip([0, *ends], ends, strict=False):
        mode = data.draw(st.sampled_from([SKIP, FINGERPRINT, FINGERPRINT, ID_LIST]))
        answer.append((lower, upper, mode, mode == FINGERPRINT and data.draw(st.booleans())))
    expected = observed(asked, answer)
    part = np.zeros(len(answer), np.int64)
    parts, mismatches = np.zeros(len(asked), np.int64), np.zeros(len(asked), np.int64)
    matched, differed = np.zeros(worklist.BINS, np.int64), np.zeros(worklist.BINS, np.int64)
    unanswered = np.zeros(1, np.int64)
    worklist.observe(
        *(np.array([pair[k] for pair in asked], np.int64) for k in range(2)),
        *(np.array([row[k] for row in answer], np.int64) for k in range(2)),
        *(np.array([row[k] for row in answer], np.uint8) for k in (2, 3)),
        *(part, parts, mismatches, matched, differed, unanswered),
    )
    assert (part.tolist(), parts.tolist(), mismatches.tolist()) == (expected.part, expected.parts, expected.mismatches)
    assert unanswered[0] == expected.unanswered
    for counts, widths in ((matched, expected.matched), (differed, expected.differed)):
        told = np.zeros(worklist.BINS, np.int64)
        worklist.count_widths(np.array(widths, np.int64), told)
        np.testing.assert_array_equal(counts, told)


class Row(NamedTuple):
    lower: Bound
    upper: Bound
    lo: int
    hi: int
    buckets: int


class Out(NamedTuple):
    bound: Bound | None  # None: to be filled in, where the layout was cut
    mode: int
    lo: int
    hi: int


def varint_size(value: int) -> int:
    return max(1, -(-value.bit_length() // 7))


def size_of(layout: list[Out], cut_at: int = 0) -> int:
    """Bytes of a message; a bound that is still to be filled in counts as `cut_at`."""
    total, last = 1, 0
    for bound, mode, lo, hi in layout:
        if bound is None:
            total += cut_at
        else:
            at, id = bound
            total += varint_size(0 if at == INFINITY else at - last + 1) + 1 + len(id.rstrip(b"\0"))
            last = at
        total += 1 + {SKIP: 0, FINGERPRINT: 16, ID_LIST: varint_size(hi - lo) + 32 * (hi - lo)}[mode]
    return total


def pieces_of(row: Row) -> list[tuple[int, int]]:
    pieces = max(row.buckets, 1)
    width, larger = divmod(row.hi - row.lo, pieces)
    ends = [row.lo + piece * width + min(piece, larger) for piece in range(pieces + 1)]
    return list(pairwise(ends))


def laid_out(
    rows: list[Row], inner: dict[int, Bound], most_parts: int, limit: int, size: int, closes: bool
) -> tuple[list[Out], tuple[int, int]]:
    """Part by part, measuring the whole message anew each time."""
    room = limit or 10**12
    layout: list[Out] = []
    end, written, parts = START, 0, 0
    for number, row in enumerate(rows):
        for piece, (lo, hi) in enumerate(pieces_of(row)):
            last_piece = piece + 1 == max(row.buckets, 1)
            skip = [Out(row.lower, SKIP, row.lo, row.lo)] if piece == 0 and row.lower != end else []
            mode = FINGERPRINT if row.buckets else ID_LIST
            this = Out(row.upper if last_piece else inner[hi], mode, lo, hi)
            rest = 19 if closes and not (last_piece and number + 1 == len(rows)) else 0
            if size_of([*layout, *skip, this]) + rest <= room and parts < most_parts:
                layout += [*skip, this]
                end, written, parts = this.bound, hi, parts + 1
                continue
            if not closes:
                return layout, (number, piece)
            cut: list[Out] = []
            if mode == ID_LIST:
                for listed in range(1, hi - lo):
                    # as many bytes for the count as the longest list that could fit takes
                    most = (room - size_of([*layout, *skip]) - 19 - 44 - 1) // 32
                    spare = varint_size(max(most, 0)) - varint_size(listed)
                    some = Out(None, ID_LIST, lo, lo + listed)
                    if size_of([*layout, *skip, some], cut_at=44) + spare + 19 <= room:
                        cut = [some]
                half = Out(None, FINGERPRINT, lo, lo + (hi - lo) // 2)
                if not cut and hi - lo >= 2 and size_of([*layout, *skip, half], cut_at=44) + 19 <= room:
                    cut = [half]
            if cut or size_of([*layout, *skip]) + 19 <= room:
                layout += [*skip, *cut]
                written = cut[0].hi if cut else row.lo if skip else written
            layout.append(Out(END, ID_LIST if written == size else FINGERPRINT, written, size))
            return layout, (number, piece)
    return layout, (len(rows), 0)


@thorough
@given(
    data=st.data(),
    cuts=st.lists(
        st.tuples(st.integers(0, 10**6), st.binary(max_size=32).map(lambda id: id.ljust(32, b"\0"))), max_size=8
    ),
    limit=st.one_of(st.just(0), st.integers(128, 700)),
    most_parts=st.one_of(st.just(10**9), st.integers(1, 12)),
    closes=st.booleans(),
)
def test_lay_out(data: st.DataObject, cuts: list[Bound], limit: int, most_parts: int, closes: bool) -> None:
    ends = [START, *sorted(set(cuts) - {START}), END]
    rows: list[Row] = []
    inner: dict[int, Bound] = {}
    at = 0
    for lower, upper in pairwise(ends):
        width = data.draw(st.integers(0, 40))
        if data.draw(st.booleans()):
            rows.append(Row(lower, upper, at, at + width, data.draw(st.integers(2, 9)) if width >= 9 else 0))
            for _, cut in pieces_of(rows[-1])[:-1]:
                inner[cut] = (lower[0], lower[1][:31] + b"\xff")  # some bound; they need not ascend here
        at += width
    if closes:
        most_parts = 10**9
    size = at
    parts = [piece for row in rows for piece in pieces_of(row)]
    cut_bounds = [inner[hi] for row in rows for _, hi in pieces_of(row)[:-1]]
    most = 2 * len(rows) + len(parts) + 2
    out, modes = blank_bounds(most), np.zeros(most, np.uint8)
    lo, hi, reached = np.zeros(most, np.int64), np.zeros(most, np.int64), np.zeros(2, np.int64)
    m = worklist.lay_out(
        *(*bound_columns([row.lower for row in rows]), np.array([row.lo for row in rows], np.int64)),
        *(*bound_columns([row.upper for row in rows]), np.array([row.buckets for row in rows], np.int64)),
        *(np.array([piece[k] for piece in parts], np.int64) for k in range(2)),
        *bound_columns(cut_bounds),
        *(most_parts, limit, size, int(closes)),
        *(*out, modes, lo, hi, reached),
    )
    expected, whole = laid_out(rows, inner, most_parts, limit, size, closes)
    bounds = [
        None if length == worklist.CUT else bound
        for bound, length in zip(as_bounds(out, m), out[2][:m].tolist(), strict=True)
    ]
    got = [Out(*row) for row in zip(bounds, *(column[:m].tolist() for column in (modes, lo, hi)), strict=True)]
    assert got == expected
    assert tuple(reached.tolist()) == whole
    assert not limit or size_of(got, cut_at=44) <= limit
