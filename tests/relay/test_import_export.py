"""`negvec import` and `negvec export`: what is stored, what is refused and why, and that it all comes out again."""

from __future__ import annotations

import gzip
import time
from pathlib import Path
from typing import Any

import orjson
import pytest
import zstandard
from click.testing import CliRunner, Result

from negvec.cli import cli
from negvec.cli.streams import FileError
from negvec.relay import EventStore

from . import relay_process, signed


def run(*arguments: str, stdin: bytes | None = None) -> Result:
    return CliRunner().invoke(cli, list(arguments), input=stdin, standalone_mode=False)


def lines(events: list[dict[str, Any]]) -> bytes:
    return b"".join(orjson.dumps(event) + b"\n" for event in events)


def imported(*arguments: str, stdin: bytes | None = None) -> dict[str, Any]:
    result = run("import", *arguments, "--json", stdin=stdin)
    assert result.exception is None, result.output
    counts: dict[str, Any] = orjson.loads(result.stdout)
    assert counts.pop("seconds") > 0
    return counts | {"status": result.return_value}


EVENTS = [signed(k, (1, 4, 7)[k % 3]) for k in range(3000)]


@pytest.mark.parametrize("packed", [bytes, gzip.compress, zstandard.ZstdCompressor().compress])
def test_what_is_imported_is_exported_the_oldest_first(tmp_path: Path, packed: Any) -> None:
    source, store, target = tmp_path / "events.jsonl", str(tmp_path / "events.db"), tmp_path / "out.jsonl"
    source.write_bytes(packed(b"\xef\xbb\xbf" + lines(EVENTS[::-1]) + b"\n  \n"))
    told = run("import", str(source), "--store", store)
    assert told.return_value == 0
    assert "3,000 stored" in told.stdout
    assert run("export", "--store", store, "-o", str(target)).return_value == 0
    assert target.read_bytes() == lines(EVENTS)
    again = imported(str(source), "--store", store)
    assert again == {"stored": 0, "duplicate": 3000, "refused": 0, "reasons": {}, "status": 0}


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.ZstdCompressor().compress])
def test_what_comes_before_the_break_of_a_file_is_stored(tmp_path: Path, pack: Any) -> None:
    source, store = tmp_path / "events.jsonl", str(tmp_path / "events.db")
    packed = pack(lines(EVENTS))
    source.write_bytes(packed[: len(packed) * 9 // 10])
    with pytest.raises(FileError, match="truncated"):
        raise run("import", str(source), "--store", store).exception or AssertionError
    opened = EventStore(store)
    assert 2000 < len(opened) < 3000
    opened.close()


def test_what_is_no_valid_event_ends_the_import_or_is_counted(tmp_path: Path) -> None:
    now = int(time.time())
    store = str(tmp_path / "events.db")
    bad = [signed(1) | {"content": "changed"}, signed(2) | {"sig": "00" * 64}, {"id": 5}]
    refused = [signed(3, tags=[["expiration", str(now - 10)]]), signed(4, 20_001)]
    text = lines([signed(5), *refused]) + b"{\n[1]\n" + lines([*bad, signed(6), signed(6)])
    with pytest.raises(FileError, match=r"<stdin>:4: invalid: no JSON.*\(--skip-bad passes over bad lines\)") as caught:
        raise run("import", "-", "--store", store, stdin=text).exception or AssertionError
    assert caught.value.line == 4
    with_all = imported("-", "--store", store, "--skip-bad", stdin=text)
    assert (with_all["stored"], with_all["duplicate"], with_all["refused"], with_all["status"]) == (1, 2, 7, 1)
    reasons = " ".join(with_all["reasons"])
    for words in ("no JSON", "an event is an object", "not the hash", "signature", "has no", "expired", "ephemeral"):
        assert words in reasons
    told = run("import", "-", "--store", store, "--skip-bad", stdin=text).stdout
    assert "1 invalid: the signature is wrong (first in line 7)" in told
    opened = EventStore(store)
    assert len(opened) == 2
    opened.close()


def test_a_store_that_is_served_is_exported_and_not_imported_into(tmp_path: Path) -> None:
    source, store = tmp_path / "events.jsonl", tmp_path / "events.db"
    source.write_bytes(lines(EVENTS[:20]))
    assert imported(str(source), "--store", str(store))["stored"] == 20
    with relay_process(store):
        held = run("import", str(source), "--store", str(store))
        assert isinstance(held.exception, OSError)
        assert "is in use: a relay or a sync has it open" in str(held.exception)
        newest = run("export", "--store", str(store), "--filter", '{"kinds":[1],"limit":3}', "--quiet")
    assert [orjson.loads(line) for line in newest.stdout.splitlines()] == EVENTS[12:20:3]


def test_what_has_expired_is_not_exported(tmp_path: Path) -> None:
    store = str(tmp_path / "events.db")
    soon = int(time.time()) + 2
    both = lines([signed(1), signed(2, tags=[["expiration", str(soon)]])])
    assert imported("-", "--store", store, stdin=both)["stored"] == 2
    assert len(run("export", "--store", store).stdout.splitlines()) == 2
    time.sleep(max(soon + 0.05 - time.time(), 0))
    assert run("export", "--store", store, "--quiet").stdout_bytes == lines([signed(1)])


def test_what_is_no_store_is_not_exported(tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    other.write_bytes(b"something else, and long enough to be looked at" * 40)
    for path, words in ((other, "not a database"), (tmp_path / "none.db", "there is no such file")):
        result = run("export", "--store", str(path))
        assert isinstance(result.exception, OSError)
        assert words in str(result.exception)
