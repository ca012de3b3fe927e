"""Pictures show what a trace or a measurement holds: each range in its place, each byte in its bar."""

from __future__ import annotations

import doctest
import itertools
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb

import negvec
from negvec import costs, plot
from negvec.plot import lines, style, tree
from negvec.protocol import drive
from negvec.protocol.codec import FINGERPRINT, ID_LIST, SKIP
from negvec.trace import MATCHED, MISMATCHED, RANGE, UNANSWERED, Trace
from negvec.workloads import SHAPES, Side, pair

POLICIES = pytest.mark.parametrize(
    "policy", [negvec.ReferencePolicy(), negvec.AdaptivePolicy()], ids=["reference", "adaptive"]
)


def traced(ours: Side, theirs: Side, limit: int = 0, policy: Any = None) -> Trace:
    trace = Trace()
    initiator = negvec.Negentropy(negvec.seal(*ours), limit, policy=policy, watch=trace)
    drive(initiator, negvec.Negentropy(negvec.seal(*theirs), limit))
    return trace


def rendered(figure: Any) -> Any:
    return np.asarray(FigureCanvasAgg(figure).print_to_buffer()[0])


def bytes_of(kind: int) -> Any:
    return np.round(255 * np.array(to_rgb(tree.COLOURS[kind])))


def texts(figure: Any) -> str:
    return " ".join(text.get_text() for text in figure.findobj(match=lambda part: hasattr(part, "get_text")))


@POLICIES
@pytest.mark.parametrize(("shape", "x"), [*zip(SHAPES, itertools.cycle(["time", "items"]), strict=False)])
def test_every_shape_makes_a_range_tree(shape: str, x: str, policy: Any) -> None:
    trace = traced(*pair(shape, 3000), 4096, policy)
    figure = plot.range_tree(trace, x=x)
    assert rendered(figure).size
    said = texts(figure)
    assert f"{trace.messages['round'].max()} round" in said
    assert "Fingerprint: differs" in said
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert labels[:2] == ["1 ↑", "1 ↓"]


@pytest.mark.parametrize("n", [0, 1, 2, 3])
def test_sets_of_hardly_anything_make_a_picture_too(n: int) -> None:
    assert rendered(plot.range_tree(traced(*pair("contiguous", n)))).size
    assert rendered(plot.bytes_by_round(traced(*pair("contiguous", n)))).size


def test_timestamps_that_are_no_seconds_are_numbers() -> None:
    ours, theirs = pair("clustered", 2000)
    first = int(ours.created_at[0])
    for factor, offset, dates in (
        *((1, 0, True), (10**3, 0, True), (10**6, 0, True), (10**9, 0, True)),
        *((1, 2**63, False), (1, 2**64 - 2 - first - 2000, False), (1, -first, False)),
    ):
        moved = [side.created_at * np.uint64(factor) + np.uint64(offset % 2**64) for side in (ours, theirs)]
        figure = plot.range_tree(traced(*map(Side, moved, (ours.ids, theirs.ids))))
        rendered(figure)
        axes = figure.axes[0]
        assert ("UTC" in axes.get_xlabel()) == dates
        assert len({label.get_text() for label in axes.get_xticklabels()}) > 2, "ticks tell times apart"
        image = axes.images[0].get_array()
        for colour in (tree.COLOURS[tree.DIFFERS], tree.COLOURS[tree.LISTED]):
            assert (image == np.round(255 * np.array(to_rgb(colour)))).all(axis=2).sum() > 100
    equal = plot.range_tree(traced(*pair("equal", 2000)))
    assert "items" in equal.axes[0].get_xlabel(), "of one second, time shows nothing"


def test_a_band_shows_each_range_where_it_is() -> None:
    ranges = np.zeros(5, RANGE)
    ranges["lo"], ranges["hi"] = [0, 100, 250, 400, 500], [100, 250, 400, 500, 600]
    ranges["mode"] = [FINGERPRINT, FINGERPRINT, FINGERPRINT, ID_LIST, SKIP]
    ranges["outcome"][:3] = [MATCHED, MISMATCHED, UNANSWERED]
    band = tree._band(ranges, tree.Axis("lo", "hi", 0, 0.0, 600.0, ""))
    assert band.shape == (tree.BAND, tree.COLUMNS, 3)
    kinds = tree.SAME, tree.DIFFERS, tree.OPEN, tree.LISTED, tree.PASSED
    for at, kind in zip([50, 175, 300, 450, 550], kinds, strict=True):
        np.testing.assert_allclose(band[:, at * tree.COLUMNS // 600], [bytes_of(kind)] * tree.BAND)


@pytest.mark.parametrize("lost", [0, 1, 7777, 31_000, 50_001, 77_777, 99_998, 99_999])
def test_one_lost_item_is_in_the_picture_wherever_it_is(lost: int) -> None:
    side = pair("identical", 125_000).ours
    kept = np.arange(100_000) != lost
    figure = plot.range_tree(traced(side, Side(side.created_at[kept], side.ids[kept])))
    pixels = np.frombuffer(rendered(figure), np.uint8).reshape(-1, int(figure.bbox.width), 4)
    pixels = pixels[: len(pixels) * 8 // 10, :, :3]  # without the legend
    for kind in (tree.DIFFERS, tree.LISTED):
        assert (abs(pixels.astype(int) - bytes_of(kind)).max(axis=2) < 8).any()


def test_of_very_many_rounds_some_are_drawn() -> None:
    trace = traced(*pair("scattered", 40_000), 4096)
    rounds = int(trace.messages["round"].max())
    assert rounds > tree.MOST_MESSAGES // 2
    figure = plot.range_tree(trace)
    assert "th round is shown" in texts(figure)
    assert figure.axes[0].images[0].get_array().shape[0] <= tree.MOST_MESSAGES * (tree.BAND + tree.GAP)


def test_a_single_difference_among_a_million_items_is_seen() -> None:
    ranges = np.zeros(3, RANGE)
    ranges["lower"], ranges["upper"] = [0, 500_000, 500_000], [500_000, 500_000, 10**6]  # in one second, of no length
    ranges["outcome"] = [MATCHED, MISMATCHED, MATCHED]
    ranges["mode"] = FINGERPRINT
    band = tree._band(ranges, tree.Axis("lower", "upper", 0, 0.0, 1e6, ""))
    red = (band == bytes_of(tree.DIFFERS)).all(axis=2)
    assert red.any(axis=0).sum() == 1
    assert red.sum() == round(tree.SLIVER * tree.BAND)


def test_shares_of_a_column_are_those_of_its_ranges() -> None:
    edges = np.sort(np.random.default_rng(4).uniform(0, tree.COLUMNS, 20_000))
    begin, end = edges[:-1][::3], edges[1:][::3]
    covered = tree._covered(begin, end)
    for column in (0, 1, 777, tree.COLUMNS - 1):
        expected = np.clip(np.minimum(end, column + 1) - np.maximum(begin, column), 0, None).sum()
        assert covered[column] == pytest.approx(expected, abs=1e-9)


@POLICIES
def test_the_bars_are_the_bytes_of_each_mode(policy: Any) -> None:
    trace = traced(*pair("clustered", 20_000), 0, policy)
    figure = plot.bytes_by_round(trace)
    rendered(figure)
    for axes, down in zip(figure.axes, (False, True), strict=True):
        heights = sum(bar.get_height() for bar in axes.patches)
        messages = trace.messages[trace.messages["down"] == down]
        assert heights == (messages["bytes"] - 1).sum()  # a byte of each is the version
        assert axes.get_ylabel() == "bytes"


def test_of_a_trace_of_both_sides_the_initiators_is_drawn() -> None:
    ours, theirs = (negvec.seal(*side) for side in pair("clustered", 2000))
    both, alone = Trace(), Trace()
    drive(negvec.Negentropy(ours, watch=both), negvec.Negentropy(theirs, watch=both))
    drive(negvec.Negentropy(ours, watch=alone), negvec.Negentropy(theirs))
    messages, ranges = style.one_side(both)
    np.testing.assert_array_equal(messages, alone.messages)
    np.testing.assert_array_equal(np.concatenate(ranges), alone.ranges)
    responder = Trace()
    drive(negvec.Negentropy(ours), negvec.Negentropy(theirs, watch=responder))
    assert rendered(plot.range_tree(responder)).size


def test_a_trace_that_saw_nothing_is_refused_with_what_to_do() -> None:
    for draw in (plot.range_tree, plot.bytes_by_round):
        with pytest.raises(ValueError, match="pass it as `watch`"):
            draw(Trace())
    with pytest.raises(ValueError, match='is "time" or "items", not \'space\''):
        plot.range_tree(traced(*pair("clustered", 100)), x="space")


def measured(*ways: tuple[str, list[float]]) -> Any:
    widths = [1, 10, 100, 1000]
    rows = [(way, width, s) for way, seconds in ways for width, s in zip(widths, seconds, strict=True)]
    return np.array(rows, costs.FINGERPRINT)


def test_the_break_even_is_where_lines_cross() -> None:
    walk = "walk", [1e-8, 1e-7, 1e-6, 1e-5]
    table = measured(walk, ("flat", [3.2e-7] * 4), ("always", [1e-9] * 4), ("never", [1.0] * 4))
    assert lines.crossing(table, "walk", "flat") == pytest.approx(32)
    assert lines.crossing(table, "walk", "always") == 1
    assert lines.crossing(table, "walk", "never") is None
    figure = plot.fingerprint_costs(table)
    rendered(figure)
    said = texts(figure)
    assert "flat: less from 32 items on" in said
    assert "walk" in said


def test_where_nothing_was_measured_that_is_said() -> None:
    with pytest.raises(ValueError, match="nothing measured"):
        plot.fingerprint_costs(np.empty(0, costs.FINGERPRINT))
    runs = costs.compare_policies({"reference": negvec.ReferencePolicy()}, [0.0], n=100)
    with pytest.raises(ValueError, match="no run with differences"):
        plot.policy_costs(runs)


def test_ways_measured_at_other_widths_cross_by_those_that_both_have() -> None:
    table = measured(("walk", [1e-8, 1e-7, 1e-6, 1e-5]), ("flat", [3.2e-7] * 4))
    for rows in (table[[0, 1, 2, 3, 5, 6]], table[::-1]):
        assert lines.crossing(rows, "walk", "flat") == pytest.approx(32)
        rendered(plot.fingerprint_costs(rows))
    assert lines.crossing(table[:6], "walk", "flat") is None


def test_policies_are_drawn_with_the_least_bytes() -> None:
    policies = {"reference": negvec.ReferencePolicy(), "adaptive": negvec.AdaptivePolicy()}
    runs = costs.compare_policies(policies, [0.0, 0.001, 0.1], n=5000)
    figure = plot.policy_costs(runs)
    rendered(figure)
    sizes, rounds = figure.axes
    assert [line.get_label() for line in rounds.lines] == ["reference", "adaptive"]
    assert len(sizes.lines) == 4
    drawn = sizes.lines[0].get_ydata()
    row = runs[2]
    assert drawn[0] == pytest.approx((row["bytes_up"] + row["bytes_down"]) / (row["have"] + row["need"]))


def test_sizes_are_told_in_three_digits() -> None:
    sizes = {0: "0 B", 348: "348 B", 999: "999 B", 1588: "1.59 kB", 999_600: "1 MB", 14_800_000: "14.8 MB"}
    for size, said in sizes.items():
        assert style.told_bytes(size) == said


def test_the_users_own_style_is_neither_taken_nor_changed() -> None:
    import matplotlib

    with matplotlib.rc_context({"font.size": 31.0}):
        figure = plot.bytes_by_round(traced(*pair("clustered", 500)))
        assert matplotlib.rcParams["font.size"] == 31.0
        assert figure.axes[0].get_ylabel()
        assert figure.axes[0].yaxis.label.get_fontsize() < 31


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_a_picture_becomes_a_file(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"tree{suffix}"
    plot.range_tree(traced(*pair("clustered", 1000))).savefig(path)
    assert path.stat().st_size > 5000


def test_without_matplotlib_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.delitem(sys.modules, "negvec.plot")
    with pytest.raises(ImportError, match=r"pip install 'negvec\[plot\]'"):
        import negvec.plot  # noqa: F401


def test_the_example_in_the_docstring_is_right() -> None:
    assert doctest.testmod(plot).failed == 0
