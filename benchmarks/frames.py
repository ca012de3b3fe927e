"""NEG-MSG text frames of a full relay message, against what others write and read them with."""

from __future__ import annotations

import json

import numpy as np
import orjson

from negvec import nip77

SIZE = 500_000  # bytes before hex: strfry's frame size limit


class Frames:
    def setup(self) -> None:
        self.message = np.random.default_rng(1).bytes(SIZE)
        self.frame = bytes(nip77.neg_msg("subscription", self.message))
        assert self.frame == self.write_with_json() == self.write_with_orjson()
        assert nip77.read(self.frame) == ("subscription", self.message)
        assert self.read_with(json.loads) == self.read_with(orjson.loads) == self.message

    def write_with_json(self) -> bytes:
        return json.dumps(["NEG-MSG", "subscription", self.message.hex()], separators=(",", ":")).encode()

    def write_with_orjson(self) -> bytes:
        return orjson.dumps(["NEG-MSG", "subscription", self.message.hex()])

    def read_with(self, loads: object) -> bytes:
        return bytes.fromhex(loads(self.frame)[2])  # type: ignore[operator]

    def time_write(self) -> None:
        nip77.neg_msg("subscription", self.message)

    def time_write_json(self) -> None:
        self.write_with_json()

    def time_write_orjson(self) -> None:
        self.write_with_orjson()

    def time_write_plain_hex(self) -> None:
        self.message.hex()

    def time_read(self) -> None:
        nip77.read(self.frame)

    def time_read_json(self) -> None:
        self.read_with(json.loads)

    def time_read_orjson(self) -> None:
        self.read_with(orjson.loads)
