"""`negvec profile` says what was reconciled, splits its time into stages, and refuses what it can't do."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

import pytest
import vectors
from click.testing import CliRunner, Result

from negvec.cli.profile import FRAME_STAGES, STAGES, Cost, StageClock, Workload, library, median_cost, profile

module = importlib.import_module("negvec.cli.profile")  # its package may hold the command under this name

N = 20_000
RECORDS = {(run["shape"], run["client_limit"], run["server_limit"]): run for run in vectors.shapes() if run["n"] == N}


def run(*arguments: str) -> Result:
    return CliRunner().invoke(profile, ["--n", str(N), "--runs", "2", *arguments])


@pytest.mark.parametrize("limits", [(0, 500_000), (4096, 4096)])
@pytest.mark.parametrize("shape", ["contiguous", "identical", "scattered", "clustered"])
def test_the_json_tells_what_the_reference_needed(shape: str, limits: tuple[int, int]) -> None:
    options = ["--shape", shape, "--initiator-limit", str(limits[0]), "--responder-limit", str(limits[1])]
    result = run(*options, "--json")
    assert result.exit_code == 0, result.output
    told, record = json.loads(result.output), RECORDS[(shape, *limits)]
    assert (told["n"], told["shape"], told["runs"], told["salt"]) == (N, shape, 2, 0)
    assert (told["initiator_limit"], told["responder_limit"]) == limits
    assert (told["initiator_items"], told["responder_items"]) == (record["client_size"], record["server_size"])
    layer = told["layers"]["library"]
    assert [layer[key] for key in ("rounds", "bytes_up", "bytes_down", "have", "need")] == [
        record[key] for key in ("rounds", "bytes_up", "bytes_down", "have_count", "need_count")
    ]
    for side in ("initiator", "responder"):
        assert list(layer[side]) == list(STAGES)
        assert all(seconds >= 0 for seconds in layer[side].values())
    assert layer["responder"]["compare"] == 0  # only the initiator learns the difference
    assert layer["initiator"]["compare"] > 0  # at the least, the last pass over what was found


def test_the_table_names_the_shape_and_every_stage() -> None:
    result = run("--shape", "scattered", "--responder-limit", "0")
    assert result.exit_code == 0, result.output
    heading, *tables = result.output.split("\n\n")
    assert heading.startswith("20,000 scattered: ")
    assert "frames without limit" in heading
    record = RECORDS["scattered", 0, 0]
    layers = {"library": STAGES, "NIP-77 text frames": (*STAGES, *FRAME_STAGES)}
    for table, (layer, stages) in zip(tables, layers.items(), strict=True):
        assert f"{layer}: {record['rounds']} rounds, {record['bytes_up']:,} bytes up" in table
        assert f"{record['have_count']:,} have, {record['need_count']:,} need" in table
        rows = {line[:14].strip(): line[14:].split() for line in table.splitlines()[3:]}
        assert list(rows) == [*stages, "all stages"]
        for side in range(3):
            shares = [float(rows[stage][2 * side + 1].rstrip("%")) for stage in stages]
            assert sum(shares) == pytest.approx(100, abs=0.1 * len(stages))
            times = [float(rows[stage][2 * side]) for stage in stages]
            assert sum(times) == pytest.approx(float(rows["all stages"][2 * side]), abs=0.001 * len(stages))


def test_the_first_run_is_not_counted_and_stages_are_medians() -> None:
    spent = iter([900.0, 1.0, 5.0, 3.0])

    def layer(work: Workload) -> Cost:
        seconds = next(spent)
        return Cost({"decode": seconds}, {"decode": 10 * seconds}, 1, 2, 3, 4, 5)

    cost = median_cost(layer, None, runs=3)  # type: ignore[arg-type]
    assert cost == Cost({"decode": 3.0}, {"decode": 30.0}, 1, 2, 3, 4, 5)


def test_a_stage_is_what_passed_since_the_one_before(monkeypatch: pytest.MonkeyPatch) -> None:
    now = iter([10.0, 11.0, 13.0, 17.0, 20.0, 28.0])
    monkeypatch.setattr(module.time, "perf_counter", lambda: next(now))
    clock = StageClock()
    assert clock.measure(lambda: [clock("decode"), clock("plan")] and "result") == "result"
    assert clock.measure(str, 5) == "5"
    assert {stage: seconds for stage, seconds in clock.seconds.items() if seconds} == {
        "decode": 1.0,
        "plan": 2.0,
        "other": 4.0 + 8.0,
    }


def test_the_library_layer_finds_the_difference() -> None:
    import negvec

    ids = ["aa" * 32, "bb" * 32, "cc" * 32]
    cost = library(Workload(negvec.seal([1, 2], ids[:2]), negvec.seal([2, 3], ids[1:]), 0, 0))
    assert (cost.rounds, cost.have, cost.need) == (1, 1, 1)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--shape", "round"], "'round' is not one of 'contiguous'"),
        (["--initiator-limit", "4095"], "4095 is neither 0 (no limit) nor at least 4096"),
        (["--responder-limit", "-1"], "-1 is neither 0"),
        (["--n", "0"], "0 is not in the range x>=1"),
        (["--runs", "0"], "0 is not in the range x>=1"),
    ],
)
def test_a_wrong_option_is_refused_with_the_reason(arguments: list[str], said: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert said in result.output


def test_a_flame_graph_without_the_profiler_is_refused_before_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyinstrument", None)
    monkeypatch.setattr(module, "pair", None)  # calling it would fail
    result = run("--html", "flames.html")
    assert result.exit_code == 2
    assert "pip install 'negvec[profile]'" in result.output


def test_a_flame_graph_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyinstrument")
    monkeypatch.setattr(module, "FLAME_SECONDS", 0.1)
    path = tmp_path / "flames.html"
    result = run("--html", str(path))
    assert result.exit_code == 0, result.output
    assert str(path) in result.output
    page = path.read_text(encoding="utf-8")
    assert page.lstrip().startswith("<!DOCTYPE html>")
    assert "reconcile" in page


def test_a_flame_graph_that_can_not_be_written_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyinstrument")
    monkeypatch.setattr(module, "FLAME_SECONDS", 0.1)
    result = run("--html", str(tmp_path / "no" / "folder.html"))
    assert result.exit_code == 1
    assert "Could not open file" in result.output
