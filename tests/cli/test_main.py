"""The command line as a whole: help that can be read, a status to be trusted, logging where it is asked for."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from negvec.cli import COMMANDS, TROUBLE, cli, main

ROOT = Path(__file__).parents[2]
ONE_ITEM = f"1,{1:064x}\n"


@pytest.fixture
def one_item(tmp_path: Path) -> str:
    path = tmp_path / "one.csv"
    path.write_text(ONE_ITEM)
    return str(path)


def status_of_main(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> object:
    monkeypatch.setattr(sys, "argv", ["negvec", *arguments])
    with pytest.raises(SystemExit) as stop:
        main()
    return stop.value.code


def test_examples_stand_line_by_line_in_every_help() -> None:
    for command in ("", *COMMANDS):
        output = CliRunner().invoke(cli, [*command.split(), "--help"]).output
        assert "\\b" not in output, f"click's mark shows in the help of {command!r}"
        if command not in ("profile", "warmup"):
            start = output.splitlines().index("  Examples:") + 1
            assert output.splitlines()[start].startswith("    negvec "), command


def test_every_command_listed_can_be_loaded() -> None:
    for command in COMMANDS:
        loaded = cli.get_command(click.Context(cli), command)
        assert loaded is not None
        assert loaded.name == command


def test_status_0_1_2(monkeypatch: pytest.MonkeyPatch, one_item: str, tmp_path: Path) -> None:
    (tmp_path / "empty.csv").touch()
    assert status_of_main(monkeypatch, "reconcile", one_item, one_item, "--quiet") == 0
    assert status_of_main(monkeypatch, "reconcile", one_item, str(tmp_path / "empty.csv"), "--quiet") == 1
    assert status_of_main(monkeypatch, "reconcile", one_item, "--quiet") == TROUBLE
    assert status_of_main(monkeypatch, "--no-such-option") == TROUBLE
    assert status_of_main(monkeypatch, "--version") == 0


def test_a_fault_of_its_own_is_trouble_and_not_different(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], one_item: str
) -> None:
    def fail(*_: object) -> None:
        raise MemoryError("no more")

    monkeypatch.setattr(importlib.import_module("negvec.cli.fingerprint"), "seal", fail)
    assert status_of_main(monkeypatch, "fingerprint", one_item) == TROUBLE
    assert "MemoryError: no more" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "lines", "last"),
    [
        ("sync", 3, "Missing argument 'URL'."),
        ("sync ws://127.0.0.1:9 --store {0}/a.db --filter {{", 3, "Invalid value for '--filter': it is no JSON: "),
        ("sync ws://127.0.0.1:9 --store {0}/a.db --filter []", 3, "Invalid value for '--filter': it is no JSON object"),
        ("sync ws://127.0.0.1:9 --store {0}/a.db", 1, "ws://127.0.0.1:9: "),
        ("sync ws://127.0.0.1:9 --store {0}/a/b.db", 1, "{0}/a/b.db: there is no folder {0}/a; make it first"),
        ('sync ws://127.0.0.1:9 --store {0}/a.db --filter {{"limit":3}}', 1, "a set has no limit"),
        ("sync http://127.0.0.1:9 --store {0}/a.db", 1, "http://127.0.0.1:9: a relay's URL begins with ws://"),
        ("sync ws://127.0.0.1:9 --store {0}/a.db --idle 0", 3, "Invalid value for '--idle': "),
        ("relay --store {0}/a.db --host 999.1.1.1 --port 0", 1, "Invalid value for '--host': 999.1.1.1: "),
        ("nonsense", 3, "No such command 'nonsense'."),
        ("reconsile a b", 3, "No such command 'reconsile'. (Did you mean 'reconcile'?)"),
    ],
)
def test_what_goes_wrong_is_told_in_one_way(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, arguments: str, lines: int,
    last: str,
) -> None:  # fmt: skip
    assert status_of_main(monkeypatch, *arguments.format(tmp_path).split()) == TROUBLE
    told = capsys.readouterr().err.splitlines()
    assert told[-1].startswith(f"negvec: {last.format(tmp_path)}")
    assert len(told) >= lines


def test_without_a_command_the_help_is_shown_as_it_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status_of_main(monkeypatch) == TROUBLE
    assert capsys.readouterr().err.startswith("Usage: ")  # no "negvec: " before it


def test_an_interrupt_is_told_in_a_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], one_item: str
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(importlib.import_module("negvec.cli.fingerprint"), "read", interrupt)
    assert status_of_main(monkeypatch, "fingerprint", one_item) == 130
    assert capsys.readouterr().err.strip() == "negvec: interrupted"


@pytest.mark.parametrize("arguments", ["--help", "fingerprint {0} {0}", "reconcile {0} {0}", "inspect 6100000200"])
def test_a_broken_pipe_ends_quietly_and_never_with_status_1(arguments: str, one_item: str) -> None:
    command = [sys.executable, "-m", "negvec", *arguments.format(one_item).split()]
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            command, stdout=writing, stderr=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(ROOT)}
        )
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (TROUBLE, b"")


def test_verbose_tells_files_and_rounds_on_standard_error(one_item: str) -> None:
    for options, told in ([], False), (["--verbose"], True):
        command = [sys.executable, "-m", "negvec", *options, "reconcile", one_item, one_item]
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
        assert (f"negvec: {one_item}: 1 items read" in done.stderr) is told
        assert ("negvec: round 1: " in done.stderr) is told
        assert "negvec: " not in done.stdout
