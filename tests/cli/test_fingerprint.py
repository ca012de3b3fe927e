"""`negvec fingerprint`: a line a file, the same for the same ids, in whatever file they come."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

import negvec
from negvec.cli import cli
from negvec.cli.files import read_items
from negvec.cli.streams import FileError

OURS = str(Path(__file__).parents[2] / "samples/ours.jsonl.gz")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["fingerprint", *arguments], standalone_mode=False)


def test_it_is_the_specification_s_fingerprint() -> None:
    ids = {item_id.tobytes() for item_id in read_items(OURS).ids}
    total = sum(int.from_bytes(item_id, "little") for item_id in ids) % 2**256
    high, low = divmod(len(ids), 128)
    assert 0 < high < 128, "a varint of two bytes"
    digest = hashlib.sha256(total.to_bytes(32, "little") + bytes([128 | high, low])).digest()[:16]
    assert run(OURS).output.startswith(digest.hex() + " ")


def test_one_set_in_two_kinds_of_file_has_one_fingerprint(tmp_path: Path) -> None:
    items = read_items(OURS)
    structured = np.empty(len(items), negvec.ITEM)
    structured["created_at"], structured["id"] = items.created_at, items.ids
    np.save(tmp_path / "ours.npy", structured[::-1])
    told = [json.loads(line) for line in run(OURS, str(tmp_path / "ours.npy"), "--json").output.splitlines()]
    assert told[0]["fingerprint"] == told[1]["fingerprint"]
    assert list(told[0]) == ["file", "fingerprint", "items", "repeats", "skipped"]


def test_bad_lines_are_refused_or_counted(tmp_path: Path) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(f"1,{1:064x}\n1,{1:064x}\n2,nothing\n")
    error = run(str(path)).exception
    assert isinstance(error, FileError)
    assert (error.name, error.line) == (str(path), 3)
    assert "(1 bad lines skipped)" in run(str(path), "--skip-bad").output
    told = json.loads(run(str(path), "--skip-bad", "--json").output)
    assert (told["items"], told["repeats"], told["skipped"]) == (1, 1, 1)


def test_files_before_one_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    result = run(OURS, str(tmp_path / "none"))
    assert isinstance(result.exception, FileError)
    assert len(result.output.splitlines()) == 1


@pytest.mark.parametrize("option", [[], ["--json"]])
def test_it_takes_a_file_at_least(option: list[str]) -> None:
    assert run(*option).exception is not None
