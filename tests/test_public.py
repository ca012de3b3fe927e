"""The public face: the names of design.md, what importing them costs, and the errors that leave the library."""

from __future__ import annotations

import copy
import doctest
import json
import pickle
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import negvec

NAMES = [
    "AdaptivePolicy",
    "ITEM",
    "Negentropy",
    "PrefixSumVector",
    "ProtocolError",
    "ReferencePolicy",
    "SealError",
    "Storage",
    "UnsupportedVersion",
    "Vector",
    "seal",
]


def fresh_python(code: str) -> Any:
    """What a new interpreter prints, as JSON, when it runs `code`."""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


# ---- names


@pytest.mark.parametrize("name", NAMES)
def test_the_names_of_the_design_are_there(name: str) -> None:
    assert name in negvec.__all__
    assert getattr(negvec, name).__doc__


def test_all_that_is_public_exists() -> None:
    assert len(set(negvec.__all__)) == len(negvec.__all__)
    assert all(hasattr(negvec, name) for name in negvec.__all__)
    assert negvec.__version__.count(".") == 2


@pytest.mark.parametrize("module", [negvec, sys.modules[negvec.Vector.__module__]], ids=lambda module: module.__name__)
def test_the_examples_are_true(module: ModuleType) -> None:
    failed, attempted = doctest.testmod(module)
    assert attempted > 0
    assert failed == 0


def test_the_public_face_works_as_the_design_writes_it(tmp_path: Path) -> None:
    generator = np.random.default_rng(1)
    created_at, ids = np.arange(500, dtype=np.uint64), generator.integers(0, 256, (500, 32), np.uint8)

    storage = negvec.seal(created_at[5:], ids[5:])
    assert isinstance(storage, negvec.PrefixSumVector)
    other = negvec.PrefixSumVector()
    for at, id in zip(created_at[:490].tolist(), ids[:490], strict=True):
        other.insert(at, id.tobytes() if at % 2 else id.tobytes().hex())
    other.seal()
    fingerprints = storage.fingerprints(np.array([0, 5]), np.array([5, 495]))
    assert (fingerprints.dtype, fingerprints.shape) == (np.dtype(np.uint8), (2, 16))

    ne, responder = negvec.Negentropy(storage, frame_size_limit=0), negvec.Negentropy(other)
    message = ne.initiate()
    assert isinstance(message, bytes)
    while True:
        answer = responder.reconcile(message)
        assert isinstance(answer.message, bytes)
        assert answer.have.shape == answer.need.shape == (0, 32), "only the initiator learns the difference"
        step = ne.reconcile(answer.message)
        if step.message is None:
            break
        message = step.message
    assert step.have.dtype == step.need.dtype == np.uint8
    assert sorted(step.have.tolist()) == sorted(ids[490:].tolist())
    assert sorted(step.need.tolist()) == sorted(ids[:5].tolist())

    live = negvec.LiveIndex()
    live.insert(created_at, ids)
    live.erase(int(created_at[0]), ids[0].tobytes())
    window = live.snapshot().window(since=10, until=19)
    assert window.items(0, len(window))["created_at"].tolist() == list(range(10, 20))
    window.save(tmp_path / "window.negvec")
    storage = negvec.open(tmp_path / "window.negvec")
    storage.verify()
    assert len(storage) == 10


def test_the_default_policy_is_the_references() -> None:
    storage = negvec.seal(range(500), [k.to_bytes(32, "big") for k in range(500)])
    message = negvec.Negentropy(storage).initiate()
    assert negvec.Negentropy(storage, policy=negvec.ReferencePolicy()).initiate() == message


def test_an_item_is_a_timestamp_and_an_id_packed() -> None:
    assert np.dtype([("created_at", "<u8"), ("id", "u1", (32,))]) == negvec.ITEM
    assert negvec.seal(np.zeros(1, negvec.ITEM)).items(0, 1).dtype == negvec.ITEM


# ---- import


def test_importing_negvec_compiles_nothing_and_imports_no_more_than_numpy() -> None:
    loaded = set(fresh_python("import json, sys, negvec; print(json.dumps(sorted(sys.modules)))"))
    assert "numpy" in loaded
    assert not loaded & {"numba", "llvmlite", "click", "orjson", "tqdm", "zstandard", "negvec.cli", "negvec.harness"}
    assert not {name for name in loaded if name.startswith("negvec.kernels.")}, (
        "kernels are loaded before they are used"
    )


def test_negvec_works_without_what_only_its_command_line_needs() -> None:
    code = """
import sys
for name in ("click", "orjson", "tqdm", "zstandard"):
    sys.modules[name] = None  # an import of it fails
import negvec
ours, theirs = negvec.seal([1, 2], ["aa" * 32, "bb" * 32]), negvec.seal([2, 3], ["bb" * 32, "cc" * 32])
result = negvec.reconcile(ours, theirs)
print([len(result.have), len(result.need)])
"""
    assert fresh_python(code) == [1, 1]


# ---- errors


def test_whose_fault_an_error_is_shows_in_its_class() -> None:
    assert issubclass(negvec.UnsupportedVersion, negvec.ProtocolError)
    for error in (negvec.ProtocolError, negvec.SealError):
        assert not issubclass(error, (ValueError, TypeError, OSError))
    assert not issubclass(negvec.SealError, negvec.ProtocolError)


def test_a_protocol_error_says_what_is_wrong_and_where() -> None:
    error = negvec.ProtocolError("a prefix of 33 bytes", 17)
    assert (error.reason, error.offset) == ("a prefix of 33 bytes", 17)
    assert str(error) == "a prefix of 33 bytes (at byte 17 of the message)"
    assert negvec.ProtocolError("empty").offset == 0


def test_an_unsupported_version_says_which_and_where() -> None:
    error = negvec.UnsupportedVersion(2)
    assert (error.version, error.offset) == (2, 0)
    assert "version 2" in str(error)
    ne = negvec.Negentropy(negvec.seal([], []))
    ne.initiate()
    with pytest.raises(negvec.UnsupportedVersion) as caught:
        ne.reconcile(b"\x65")
    assert caught.value.version == 5


@pytest.mark.parametrize(
    "error",
    [
        negvec.ProtocolError("a prefix of 33 bytes", 17),
        negvec.UnsupportedVersion(2),
        negvec.SealError("not sealed"),
    ],
    ids=lambda error: type(error).__name__,
)
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_errors_come_whole_out_of_another_process(error: Exception, protocol: int) -> None:
    for other in (pickle.loads(pickle.dumps(error, protocol)), copy.copy(error), copy.deepcopy(error)):
        assert type(other) is type(error)
        assert str(other) == str(error)
        assert vars(other) == vars(error)


def test_no_storage_is_refused_before_the_first_message() -> None:
    for wrong in (None, [], 5, np.zeros(3, negvec.ITEM), negvec.Vector):
        with pytest.raises((TypeError, ValueError)):
            negvec.Negentropy(wrong)  # type: ignore[arg-type]
    with pytest.raises(negvec.SealError):
        negvec.Negentropy(negvec.Vector())


@pytest.mark.parametrize("limit", [-1, 1, 4095])
def test_a_frame_size_limit_that_holds_no_answer_is_refused(limit: int) -> None:
    with pytest.raises(ValueError, match="at least 4096"):
        negvec.Negentropy(negvec.seal([], []), frame_size_limit=limit)
