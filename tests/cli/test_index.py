"""`negvec index` and `negvec verify`: files that open at once, and what the other commands make of them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import negvec
from negvec import kernels
from negvec.cli import cli

SAMPLES = Path(__file__).parents[2] / "samples"
OURS, THEIRS = str(SAMPLES / "ours.jsonl.gz"), str(SAMPLES / "theirs.jsonl.gz")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments, standalone_mode=False)


@pytest.fixture
def sealed(tmp_path: Path) -> tuple[str, str]:
    ours, theirs = str(tmp_path / "ours.negvec"), str(tmp_path / "theirs.negvec")
    assert run("index", OURS, ours).return_value == 0
    assert run("index", THEIRS, theirs, "--stride", "16").return_value == 0
    return ours, theirs


def test_an_index_holds_what_the_file_does(sealed: tuple[str, str]) -> None:
    told = run("index", OURS, sealed[0], "--force").output
    assert told == f"4,126 items, {Path(sealed[0]).stat().st_size:,} bytes in {sealed[0]}\n"
    lines = [run("fingerprint", path).output.split("  ")[:2] for path in (OURS, sealed[0])]
    assert lines[0] == lines[1]
    assert negvec.open(sealed[1]).stride == 16


@pytest.mark.parametrize("window", [[], ["--since", "1719800000"], ["--until", "1719900000"]])
def test_reconcile_takes_them_in_any_mix_and_finds_the_same(sealed: tuple[str, str], window: list[str]) -> None:
    told = []
    for ours in (OURS, sealed[0]):
        for theirs in (THEIRS, sealed[1]):
            result = run("reconcile", ours, theirs, "--json", *window)
            report = json.loads(result.output)
            told.append([report[key] for key in ("have", "need", "rounds", "bytes_up", "bytes_down")])
            told[-1] += [report[side]["items"] for side in ("ours", "theirs")]
    assert all(report == told[0] for report in told)
    if not window:
        assert told[0][:2] == [123, 164]


def test_a_window_is_that_of_the_timestamps(sealed: tuple[str, str]) -> None:
    opened = negvec.open(sealed[0])
    middle = int(opened.created_at[2000])
    count = int((opened.created_at >= middle).sum())
    for path in (OURS, sealed[0]):
        assert f"{count:,} items" in run("fingerprint", "--since", str(middle), path).output


def test_an_index_of_an_index_may_have_another_stride(sealed: tuple[str, str], tmp_path: Path) -> None:
    again = str(tmp_path / "again.negvec")
    assert run("index", sealed[1], again, "--stride", "1").return_value == 0
    assert run("index", OURS, str(tmp_path / "direct.negvec")).return_value == 0
    assert Path(again).read_bytes() != Path(sealed[1]).read_bytes()
    assert Path(sealed[0]).read_bytes() == (tmp_path / "direct.negvec").read_bytes()
    assert run("verify", again).return_value == 0


def test_sums_are_made_as_the_file_is_written(sealed: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Not kept in memory before, where they would take as much as all the rest, nearly."""
    sizes: list[int] = []
    save = negvec.PrefixSumVector.save
    told = lambda self, *path, **how: (sizes.append(self.nbytes), save(self, *path, **how))  # noqa: E731
    monkeypatch.setattr(negvec.PrefixSumVector, "save", told)
    assert run("index", OURS, sealed[0], "--force").return_value == 0
    assert sizes == [40 * 4126 + 32]
    negvec.open(sealed[0]).verify()


def test_strided_files_load_their_kernels_before_the_clock_of_a_reconciliation_runs(
    sealed: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded: list[tuple[str, ...]] = []
    load = kernels.load
    monkeypatch.setattr(kernels, "load", lambda names: (loaded.append(names), load(names)))
    for files in (sealed, (sealed[0], sealed[0])):
        assert run("reconcile", *files, "--quiet").exception is None
    assert ["strides" in names for names in loaded] == [True, False]


def test_standard_input_is_indexed(tmp_path: Path) -> None:
    target = tmp_path / "piped.negvec"
    command = [sys.executable, "-m", "negvec", "index", "-", str(target)]
    done = subprocess.run(command, input=Path(OURS).read_bytes(), capture_output=True, check=True)
    assert done.stdout.startswith(b"4,126 items")
    assert len(negvec.open(target)) == 4126


def test_what_is_there_is_not_replaced_unasked(sealed: tuple[str, str]) -> None:
    before = Path(sealed[0]).read_bytes()
    result = run("index", THEIRS, sealed[0])
    assert "exists already (--force replaces it)" in str(result.exception)
    assert Path(sealed[0]).read_bytes() == before
    assert run("index", THEIRS, sealed[0], "--force", "--quiet").output == ""
    assert len(negvec.open(sealed[0])) == 4167


def test_bad_lines_are_counted_or_refused(tmp_path: Path) -> None:
    lines = tmp_path / "items.csv"
    lines.write_text("created_at,id\n1," + "ab" * 32 + "\nx,y\n1," + "ab" * 32 + "\n")
    target = str(tmp_path / "items.negvec")
    assert f"{lines}:3" in str(run("index", str(lines), target).exception)
    assert not Path(target).exists()
    assert run("index", str(lines), target, "--skip-bad").output.endswith("(1 there twice, 1 bad lines skipped)\n")


# ---- verify


def test_sound_files_are_said_to_be_sound(sealed: tuple[str, str]) -> None:
    result = run("verify", *sealed)
    assert result.return_value == 0
    assert [line.split() for line in result.output.splitlines()] == [
        ["sound", "4,126", "items,", "stride", "1", sealed[0]],
        ["sound", "4,167", "items,", "stride", "16", sealed[1]],
    ]
    assert run("verify", "--quiet", *sealed).output == ""


@pytest.mark.parametrize("at", [70, 40_000, -1])
def test_a_damaged_file_is_named_and_the_others_are_checked(sealed: tuple[str, str], at: int) -> None:
    content = bytearray(Path(sealed[0]).read_bytes())
    content[at] ^= 4
    Path(sealed[0]).write_bytes(content)
    result = run("verify", *sealed)
    assert result.return_value == 1
    assert sealed[0] in result.stderr
    assert "sound" in result.stdout
    assert sealed[1] in result.stdout


def test_a_file_cut_off_is_trouble_for_all_commands(sealed: tuple[str, str]) -> None:
    content = Path(sealed[0]).read_bytes()
    Path(sealed[0]).write_bytes(content[:1000])
    assert run("verify", sealed[0]).return_value == 1
    for command in (["reconcile", sealed[0], sealed[1]], ["fingerprint", sealed[0]], ["index", sealed[0], "x"]):
        assert "cut off" in str(run(*command).exception)


def test_a_file_that_is_not_there_is_trouble(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "negvec", "verify", str(tmp_path / "none")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "none" in done.stderr


def test_a_sealed_file_through_a_pipe_is_refused_with_the_reason(sealed: tuple[str, str]) -> None:
    command = [sys.executable, "-m", "negvec", "fingerprint", "-"]
    done = subprocess.run(command, input=Path(sealed[0]).read_bytes(), capture_output=True, check=False)
    assert done.returncode == 2
    assert b"give its path" in done.stderr
