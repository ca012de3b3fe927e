"""`negvec reconcile`: what it refuses before it works, where its output goes, and what it says of time and bytes."""

from __future__ import annotations

import importlib
import io
import json
import sys
from collections.abc import Iterable
from pathlib import Path

import click
import numpy as np
import pytest
from click.testing import CliRunner, Result

from negvec import kernels
from negvec.cli import cli, progress
from negvec.cli.files import read_items
from negvec.cli.streams import FileError

SAMPLES = Path(__file__).parents[2] / "samples"
OURS, THEIRS = str(SAMPLES / "ours.jsonl.gz"), str(SAMPLES / "theirs.jsonl.gz")
module = importlib.import_module("negvec.cli.reconcile")  # its package may hold the command under this name


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["reconcile", *arguments], standalone_mode=False)


def ids_of(path: str) -> set[str]:
    return {item_id.tobytes().hex() for item_id in read_items(path).ids}


@pytest.mark.parametrize("limit", ["1", "4095", "-1", "-4096"])
def test_what_is_no_frame_size_limit_is_refused_before_a_file_is_read(
    limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "read", lambda *_, **__: pytest.fail("read a file"))
    assert isinstance(run(OURS, THEIRS, "--frame-size-limit", limit).exception, click.BadParameter)


def test_a_file_that_cannot_be_read_is_refused_before_kernels_are_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "load", lambda: pytest.fail("loaded kernels"))
    assert isinstance(run(OURS, str(SAMPLES / "none")).exception, FileError)


def test_two_lists_into_one_file_are_refused(tmp_path: Path) -> None:
    for have, need in (("-", "-"), (str(tmp_path / "ids"), f"{tmp_path}/../{tmp_path.name}/ids")):
        result = run(OURS, THEIRS, "--have", have, "--need", need)
        assert isinstance(result.exception, click.UsageError)
    assert list(tmp_path.iterdir()) == []
    assert run(OURS, THEIRS, "--have", "/dev/null", "--need", "/dev/null", "--quiet").return_value == 1


def test_ids_on_standard_output_are_alone_there() -> None:
    missing = ids_of(THEIRS) - ids_of(OURS)
    result = run(OURS, THEIRS, "--need", "-")
    assert set(result.stdout.split()) == missing
    assert f"{len(missing)} ids that only theirs has" in result.stderr
    result = run(OURS, THEIRS, "--need", "-", "--json")
    assert set(result.stdout.split()) == missing
    assert json.loads(result.stderr)["need"] == len(missing)


def test_roles_turned_round_swap_have_and_need(tmp_path: Path) -> None:
    have, need = tmp_path / "have", tmp_path / "need"
    run(THEIRS, OURS, "--have", str(have), "--need", str(need), "--quiet")
    assert set(have.read_text().split()) == ids_of(THEIRS) - ids_of(OURS)
    assert set(need.read_text().split()) == ids_of(OURS) - ids_of(THEIRS)


def test_frame_limits_make_more_rounds_and_the_same_difference(tmp_path: Path) -> None:
    files = [str(tmp_path / name) for name in ("have.npy", "need.npy")]
    free, limited = (
        json.loads(run(OURS, THEIRS, "--json", "--have", files[0], "--need", files[1], *options).stdout)
        for options in ([], ["--frame-size-limit", "4096"])
    )
    assert limited["rounds"] > free["rounds"]
    assert [limited[key] for key in ("have", "need", "ours", "theirs")] == [
        free[key] for key in ("have", "need", "ours", "theirs")
    ]
    assert max(limited["bytes_up"], limited["bytes_down"]) <= 4096 * limited["rounds"]
    assert len(np.load(files[0])) == free["have"] == len(ids_of(OURS) - ids_of(THEIRS))


def test_the_keys_of_the_json_are_these() -> None:
    told = json.loads(run(OURS, THEIRS, "--json").stdout)
    assert list(told) == [
        *("ours", "theirs", "have", "need", "rounds", "bytes_up", "bytes_down", "bytes_all_ids", "seconds")
    ]
    assert list(told["ours"]) == ["file", "items", "repeats", "skipped"]
    assert list(told["seconds"])[:5] == ["read ours", "read theirs", "load kernels", "seal theirs", "seal ours"]
    assert all(isinstance(spent, float) and spent >= 0 for spent in told["seconds"].values())


def test_compilation_is_a_stage_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    load = kernels.load
    now = {"compiled": False}

    def compiling(names: Iterable[str]) -> str:
        now["compiled"] = True
        return load(names)

    def reading(path: str, **options: bool) -> object:
        assert not now["compiled"]
        return progress.read(path, **options)

    monkeypatch.setattr(kernels, "load", compiling)
    monkeypatch.setattr(module, "read", reading)
    assert "load kernels" in run(OURS, THEIRS).output
    assert now["compiled"]


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class _Bar:
    """What stands in for tqdm's bar, and keeps what was shown."""

    n, total, text, made = 0, None, "", 0

    def __init__(self, **_: object) -> None:
        _Bar.n, _Bar.made = 0, _Bar.made + 1

    def __enter__(self) -> _Bar:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def set_postfix_str(self, text: str, refresh: bool) -> None:
        _Bar.text = text

    def update(self, more: int) -> None:
        _Bar.n += more
        _Bar.total = self.total


def test_reading_shows_bytes_on_a_terminal_and_only_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tqdm.tqdm", _Bar)
    progress.read(OURS)
    assert _Bar.made == 0, "a bar where standard error is no terminal"
    monkeypatch.setattr(sys, "stderr", _Terminal())
    progress.read(OURS, show=False)
    assert _Bar.made == 0, "a bar with --quiet or --json"
    items = progress.read(OURS)
    assert _Bar.made == 1
    assert _Bar.n == _Bar.total == Path(OURS).stat().st_size
    assert _Bar.text == f"{len(items):,} items"


@pytest.mark.parametrize("suffix", [".png", ".SVG", ".pdf"])
def test_the_ranges_of_each_round_are_drawn(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"ranges{suffix}"
    result = run(OURS, THEIRS, "--plot", str(path), "--json")
    assert result.return_value == 1
    assert path.stat().st_size > 5000
    told = json.loads(result.stdout)
    plain = json.loads(run(OURS, THEIRS, "--json").stdout)
    for name in ("have", "need", "rounds", "bytes_up", "bytes_down"):
        assert told[name] == plain[name]
    assert "reconcile: trace" in told["seconds"]


def test_a_picture_that_could_not_be_written_is_refused_before_a_file_is_read(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(module, "read", lambda *_, **__: pytest.fail("read a file"))
    for path, words in (("tree.docx", ".png, .svg, .pdf"), (str(tmp_path / "none" / "tree.png"), "no such folder")):
        error = run(OURS, THEIRS, "--plot", path).exception
        assert isinstance(error, click.BadParameter)
        assert words in str(error)
    taken = str(tmp_path / "taken.png")
    assert isinstance(
        run(OURS, THEIRS, "--plot", taken, "--need", f"{tmp_path}/./taken.png").exception, click.UsageError
    )
    monkeypatch.setitem(sys.modules, "negvec.plot", None)
    error = run(OURS, THEIRS, "--plot", str(tmp_path / "tree.png")).exception
    assert isinstance(error, click.UsageError)
    assert "pip install 'negvec[plot]'" in str(error)
