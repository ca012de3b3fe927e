"""The commands as a user meets them: what they print, what they write and their exit status."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import orjson
import pytest
from click.testing import CliRunner, Result

import negvec
from negvec.cli import cli
from negvec.cli.files import read_items

ROOT = Path(__file__).parents[2]
OURS, THEIRS = str(ROOT / "samples/ours.jsonl.gz"), str(ROOT / "samples/theirs.jsonl.gz")


def run(*arguments: str, stdin: bytes | None = None) -> Result:
    """In process, but with the exit status that `negvec.cli.main` would give."""
    return CliRunner().invoke(cli, list(arguments), input=stdin, standalone_mode=False)


def negvec_process(*arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "negvec", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, **options)  # type: ignore[call-overload, no-any-return]


def ids_of(path: str) -> set[str]:
    return {item_id.tobytes().hex() for item_id in read_items(path).ids}


@pytest.fixture
def small(tmp_path: Path) -> tuple[str, str]:
    ours, theirs = tmp_path / "ours.csv", tmp_path / "theirs.csv"
    ours.write_text("created_at,id\n" + "".join(f"{i},{i:064x}\n" for i in range(100)))
    theirs.write_text("".join(f"{i},{i:064x}\n" for i in range(50, 200)))
    return str(ours), str(theirs)


# ---- reconcile


def test_the_samples_differ_as_their_sets_do(tmp_path: Path) -> None:
    have, need = tmp_path / "have.txt", tmp_path / "need.npy"
    result = run("reconcile", OURS, THEIRS, "--have", str(have), "--need", str(need))
    assert result.return_value == 1
    ours, theirs = ids_of(OURS), ids_of(THEIRS)
    assert set(have.read_text().split()) == ours - theirs
    assert {item_id.tobytes().hex() for item_id in np.load(need)} == theirs - ours
    for told in (f"{len(ours):,} items", f"{len(ours - theirs)} ids that only ours has", "bytes up", "ms"):
        assert told in result.output


def test_the_same_set_is_status_0(small: tuple[str, str]) -> None:
    result = run("reconcile", small[0], small[0])
    assert result.return_value == 0
    assert "0 ids that only ours has" in result.output


def test_json_for_scripts(small: tuple[str, str]) -> None:
    result = run("reconcile", *small, "--json", "--frame-size-limit", "4096")
    told = orjson.loads(result.output)
    assert result.return_value == 1
    assert (told["have"], told["need"], told["ours"]["items"], told["theirs"]["items"]) == (50, 100, 100, 150)
    assert told["rounds"] >= 1
    assert told["bytes_up"] > 0
    assert told["bytes_all_ids"] == 3200
    assert "reconcile: decode" in told["seconds"]


def test_quiet_prints_nothing(small: tuple[str, str]) -> None:
    result = run("reconcile", *small, "--quiet")
    assert (result.output, result.return_value) == ("", 1)


def test_standard_input_is_a_dash(small: tuple[str, str]) -> None:
    data = Path(small[1]).read_bytes()
    assert run("reconcile", small[0], "-", "--quiet", stdin=data).return_value == 1
    assert run("reconcile", small[1], "-", "--quiet", stdin=data).return_value == 0
    done = negvec_process("reconcile", "-", "-")
    assert done.returncode == 2
    assert "standard input" in done.stderr


def test_bad_lines_are_refused_or_skipped(tmp_path: Path, small: tuple[str, str]) -> None:
    bad = tmp_path / "bad.csv"
    bad.write_text(Path(small[0]).read_text() + "-1," + "0" * 64 + "\n7,xyz\n")
    done = negvec_process("reconcile", str(bad), small[0])
    assert done.returncode == 2
    assert "bad.csv:102:" in done.stderr
    assert "--skip-bad" in done.stderr
    assert "Traceback" not in done.stderr
    result = run("reconcile", str(bad), small[0], "--skip-bad")
    assert result.return_value == 0
    assert "2 bad lines skipped" in result.output


def test_items_there_twice_are_told(tmp_path: Path) -> None:
    twice = tmp_path / "twice.csv"
    twice.write_text(f"1,{1:064x}\n1,{1:064x}\n2,{2:064x}\n")
    assert "1 there twice" in run("reconcile", str(twice), str(twice)).output


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["reconcile", "no-such-file", "no-such-file"], "no-such-file"),
        (["reconcile", OURS], "THEIRS"),
        (["reconcile", OURS, THEIRS, "--frame-size-limit", "100"], "4096"),
        (["reconcile", OURS, THEIRS, "--frame-size-limit", "many"], "many"),
        (["reconcile", OURS, THEIRS, "--have", "/no/such/folder/have.txt"], "/no/such/folder"),
        (["no-such-command"], "no-such-command"),
        (["inspect", "61000002ff"], "byte 4"),
        (["inspect", "6"], "odd"),
        (["inspect", "61xx"], "digit 2"),
        (["inspect", "5f"], "version byte"),
        (["inspect", '["REQ","x"]'], "NEG-MSG"),
        (["inspect", '["NEG-MSG","x"]'], "no message"),
        (["inspect", "[1"], "JSON"),
    ],
)
def test_trouble_is_status_2_and_a_line_that_says_what(arguments: list[str], told: str) -> None:
    done = negvec_process(*arguments)
    assert done.returncode == 2
    assert told in done.stderr
    assert "Traceback" not in done.stderr


# ---- fingerprint


def test_a_set_in_one_line_whatever_its_order(small: tuple[str, str], tmp_path: Path) -> None:
    shuffled = tmp_path / "shuffled.csv"
    lines = Path(small[0]).read_text().splitlines()[1:]
    shuffled.write_text("\n".join(reversed(lines)))
    first, second = run("fingerprint", small[0], str(shuffled)).output.splitlines()
    items = read_items(small[0])
    expected = negvec.seal(items.created_at, items.ids).fingerprints(0, 100)[0].tobytes().hex()
    assert first.split()[:2] == second.split()[:2] == [expected, "100"]
    told = orjson.loads(run("fingerprint", small[0], "--json").output)
    assert (told["fingerprint"], told["items"]) == (expected, 100)


def test_an_empty_set_has_the_fingerprint_of_nothing(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.write_bytes(b"")
    assert run("fingerprint", str(empty)).output.startswith("7f9c9e31ac8256ca2f258583df262dbc ")


# ---- inspect


def test_a_message_as_a_table() -> None:
    storage = negvec.seal(
        np.arange(1700000000, 1700000100), np.arange(3200, dtype=np.uint64).astype("u1").reshape(-1, 32)
    )
    message = negvec.Negentropy(storage).initiate().hex()
    output = run("inspect", message).output
    assert output.count("Fingerprint") == 17  # 16 ranges and the summary
    assert "2023-11-14 22:13:27" in output
    assert "infinity" in output
    frame = json.dumps(["NEG-OPEN", "sub", {"kinds": [1]}, message])
    assert run("inspect", frame).output == run("inspect", "-", stdin=frame.encode()).output == output


def test_ids_and_prefixes_are_shown() -> None:
    message = "61" + "06" + "02abcd" + "00" + "00" + "00" + "02" + "03" + "11" * 32 + "22" * 32 + "33" * 32
    output = run("inspect", message).output
    assert "5 abcd" in output
    assert "3 ids: 1111111111111111.. 2222222222222222.. ... 1 more" in output
    skip, listed = map(json.loads, run("inspect", message, "--json").output.splitlines())
    assert (skip["mode"], skip["upper"], listed["ids"], listed["bytes"]) == ("Skip", "5 abcd", 3, 100)


def test_another_version_is_told() -> None:
    assert "version 2" in run("inspect", "62ab").output


# ---- the rest


def test_warmup_tells_where_the_kernels_are() -> None:
    assert "kernel modules ready" in run("warmup").output


def test_help_is_there_at_once_and_teaches() -> None:
    code = (
        "import sys, negvec.cli\ntry: negvec.cli.cli(['--help'])\nexcept SystemExit: assert 'numba' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=-3)
    for command in ("reconcile", "fingerprint", "inspect", "warmup"):
        assert "negvec" in negvec_process(command, "--help").stdout
    assert negvec.__version__ in negvec_process("--version").stdout


def test_a_reader_that_has_seen_enough_is_no_error(small: tuple[str, str]) -> None:
    command = f"{sys.executable} -m negvec reconcile {small[0]} {small[1]} --need - | head -n 1"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, env=environment)
    assert len(done.stdout.strip()) == 64
    assert "Traceback" not in done.stderr
