"""The sample files are what two relays could hold: right ids, right signatures, and the differences that they claim."""

import gzip
import hashlib
import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest
from coincurve import PublicKeyXOnly

from negvec.cli.files import read_items

SAMPLES = Path(__file__).parent.parent / "samples"
FILES = ["ours.jsonl.gz", "theirs.jsonl.gz"]


def lines_of(name: str) -> list[str]:
    return gzip.decompress((SAMPLES / name).read_bytes()).decode().splitlines()


@pytest.fixture(scope="module", params=FILES)
def events(request: pytest.FixtureRequest) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines_of(request.param)]


def test_every_id_is_the_hash_of_its_event(events: list[dict[str, Any]]) -> None:
    for event in events:
        fields = [0, event["pubkey"], event["created_at"], event["kind"], event["tags"], event["content"]]
        serialized = json.dumps(fields, separators=(",", ":"), ensure_ascii=False)
        assert hashlib.sha256(serialized.encode()).hexdigest() == event["id"]


def test_every_signature_is_valid(events: list[dict[str, Any]]) -> None:
    for event in events:
        key = PublicKeyXOnly(bytes.fromhex(event["pubkey"]))
        assert key.verify(bytes.fromhex(event["sig"]), bytes.fromhex(event["id"]))
    other = bytes.fromhex(events[1]["id"])
    assert not PublicKeyXOnly(bytes.fromhex(events[0]["pubkey"])).verify(bytes.fromhex(events[0]["sig"]), other)


def test_events_are_of_many_kinds_and_some_share_a_second(events: list[dict[str, Any]]) -> None:
    assert {event["kind"] for event in events} == {0, 1, 3, 7}
    created_at = [event["created_at"] for event in events]
    assert created_at == sorted(created_at)
    assert len(created_at) - len(set(created_at)) > 200


def test_the_differences_are_those_that_the_script_tells() -> None:
    ours, theirs = ({id.tobytes() for id in read_items(SAMPLES / name).ids} for name in FILES)
    assert (len(ours), len(theirs)) == (4126, 4167)
    assert (len(ours & theirs), len(ours - theirs), len(theirs - ours)) == (4003, 123, 164)


def test_the_script_makes_the_same_files_again() -> None:
    spec = importlib.util.spec_from_file_location("make_samples", SAMPLES / "make_samples.py")
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    assert list(script.make()) == [lines_of(name) for name in FILES]
