"""`negvec inspect` shows every byte of a message once, to people and to scripts, and refuses what is none."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner, Result

import negvec
from negvec.cli import cli

THREE_IDS = "61" + "06" + "02abcd" + "00" + "00" + "00" + "02" + "03" + "11" * 32 + "22" * 32 + "33" * 32


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["inspect", *arguments], standalone_mode=False)


def rows(message: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in run(message, "--json").output.splitlines()]


def test_json_has_bounds_as_numbers_and_all_ids() -> None:
    skip, listed = rows(THREE_IDS)
    assert (skip["created_at"], skip["prefix"], skip["payload"]) == (5, "abcd", None)
    assert (listed["created_at"], listed["prefix"]) == (None, "")
    assert listed["payload"] == ["11" * 32, "22" * 32, "33" * 32]
    assert (skip["range"], listed["range"]) == (0, 1)


@pytest.mark.parametrize("size", [0, 1, 31, 32, 1000])
def test_ranges_follow_each_other_without_a_gap_to_the_end(size: int) -> None:
    numbers = np.arange(size, dtype=np.uint64)
    storage = negvec.seal(numbers, np.repeat(numbers, 4).view(np.uint8).reshape(-1, 32))
    message = negvec.Negentropy(storage).initiate()
    told = rows(message.hex())
    assert [row["offset"] for row in told] == [1, *(row["offset"] + row["bytes"] for row in told[:-1])]  # type: ignore[operator]
    assert told[-1]["offset"] + told[-1]["bytes"] == len(message)  # type: ignore[operator]
    assert [row["lower"] for row in told] == ["0", *(row["upper"] for row in told[:-1])]
    assert f"{len(message):,} bytes, {len(told)} ranges" in run(message.hex()).output


def test_a_fingerprint_is_that_of_its_items() -> None:
    storage = negvec.seal(np.arange(160), np.arange(640, dtype=np.uint64).view(np.uint8).reshape(-1, 32))
    told = rows(negvec.Negentropy(storage).initiate().hex())
    lo = np.arange(0, 160, 10)
    expected = [fingerprint.tobytes().hex() for fingerprint in storage.fingerprints(lo, lo + 10)]
    assert [row["payload"] for row in told] == expected


@pytest.mark.parametrize("created_at", [0, 999_999_999, 10**10, 2**64 - 2])
def test_a_date_is_shown_only_where_it_is_plausible(created_at: int) -> None:
    varint = [created_at + 1 & 127]
    while (created_at + 1) >> 7 * len(varint):
        varint.append(0x80 | (created_at + 1) >> 7 * len(varint) & 127)
    output = run("61" + bytes(varint[::-1]).hex() + "0000").output
    assert f"{created_at} " in output
    assert "Z)" not in output


def test_another_version_is_told_to_scripts_too() -> None:
    assert json.loads(run("62ab", "--json").output) == {"version": 2}


def test_a_version_byte_alone_has_no_ranges() -> None:
    assert "version 1, 1 bytes, 0 ranges (none)" in run("61").output
    assert rows("61") == []


def test_every_truncation_is_an_error_with_the_offset_or_a_whole_message() -> None:
    for end in range(2, len(THREE_IDS), 2):
        result = run(THREE_IDS[:end])
        if result.exception is None:
            assert end in (2, 12), "only after the version byte and after the Skip is it whole"
        else:
            assert isinstance(result.exception, negvec.ProtocolError)
            assert 1 <= result.exception.offset <= end // 2


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[" * 100_000, "JSON"),
        ("[]", "NEG-MSG"),
        ("[[]]", "NEG-MSG"),
        ('["NEG-MSG","sub",5]', "no message"),
        ('["NEG-OPEN","sub",{}]', "no message"),
        ('["NEG-MSG","sub","6z"]', "digit 1"),
        ("", "version byte"),
        ("00", "version byte"),
    ],
)
def test_what_is_no_message_is_refused(text: str, told: str) -> None:
    error = run(text).exception
    assert isinstance(error, (ValueError, negvec.ProtocolError))
    assert told in str(error)
