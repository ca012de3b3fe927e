"""`negvec warmup` leaves nothing to be compiled, and says where the compiled kernels are."""

from __future__ import annotations

import os
import re
from pathlib import Path

import numba.core.event as numba_event
import numpy as np
from click.testing import CliRunner

import negvec
from negvec.cli import cli
from negvec.kernels import MODULES


def test_nothing_is_compiled_after_it_and_the_folder_told_holds_every_kernel() -> None:
    output = CliRunner().invoke(cli, ["warmup"], standalone_mode=False).output
    told = re.fullmatch(rf"{len(MODULES)} kernel modules ready after \d+\.\d s, in (.*)\n", output)
    assert told is not None
    cached = {path.name.split(".")[0] for path in Path(told[1]).glob("*.nbi")}
    assert cached >= set(MODULES), os.listdir(told[1])

    ids = np.random.default_rng(5).integers(0, 256, (3000, 32), np.uint8)
    created_at = np.arange(3000)
    with numba_event.install_recorder("numba:compile") as compiled:
        ours, theirs = (negvec.seal(created_at[rows], ids[rows]) for rows in (slice(0, 2000), slice(2999, 500, -1)))
        result = negvec.reconcile(ours, theirs, frame_size_limit=4096)
        negvec.Vector()
    assert (len(result.have), len(result.need)) == (501, 1000)
    assert compiled.buffer == []
