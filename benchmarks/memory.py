"""What a sealed storage takes, what sealing takes beside it for a while, and the peak of a whole process."""

from __future__ import annotations

import subprocess
import sys
import tempfile

import numpy as np

import negvec
from negvec.workloads import pair

from .runs import N, recorded, shuffled

SEAL_IN_A_FRESH_PROCESS = """
import sys
import numpy as np, negvec

def resident(what):  # not getrusage, whose peak a process takes over from its parent
    with open("/proc/self/status") as status:
        return next(1024 * int(line.split()[1]) for line in status if line.startswith(what))

negvec.seal(np.arange(1000)[::-1], np.zeros((1000, 32), np.uint8))  # loads every kernel
with open(sys.argv[1], "rb") as columns:
    created_at, ids = np.load(columns), np.load(columns)
before = resident("VmRSS")
storage = negvec.seal(created_at, ids)
print(resident("VmHWM") - before - storage.nbytes)
assert len(storage) == len(created_at)
"""


class Sealed:
    def setup(self) -> None:
        self.side = pair("contiguous", N).ours
        self.storage = negvec.seal(*self.side)
        assert len(self.storage) == len(self.side.ids)

    def track_bytes_an_item(self) -> float:
        return self.storage.nbytes / len(self.storage)

    track_bytes_an_item.unit = "bytes"  # type: ignore[attr-defined]


class Transient:
    """Bytes an item that sealing needs for a while, beside the sealed storage and what it was given."""

    params = ("sorted", "shuffled")
    param_names = ("order",)

    def setup(self, order: str) -> None:
        if not sys.platform.startswith("linux"):
            raise NotImplementedError("the peak is read from /proc")

    def track_transient_bytes_an_item(self, order: str) -> float:
        side = pair("identical", max(N, 500_000)).ours  # of fewer it can't be told from what a process takes anyway
        with tempfile.NamedTemporaryFile() as columns:
            for column in side if order == "sorted" else shuffled(side):
                np.save(columns, column)
            columns.flush()
            command = [sys.executable, "-c", SEAL_IN_A_FRESH_PROCESS, columns.name]
            child = subprocess.run(command, capture_output=True, text=True, check=True)
        return int(child.stdout) / len(side.ids)

    track_transient_bytes_an_item.unit = "bytes"  # type: ignore[attr-defined]


class Peak:
    """Peak memory of a process: interpreter, NumPy, numba and the sets themselves included."""

    def setup(self) -> None:
        self.side = shuffled(pair("contiguous", N).ours)

    def peakmem_interpreter(self) -> None:
        """What there is before any of it."""

    def peakmem_seal(self) -> None:
        storage = negvec.seal(*self.side)
        assert (np.diff(storage.created_at.view(np.int64)) >= 0).all()

    def peakmem_reconcile(self) -> None:
        recorded("contiguous", N, (0, 500_000))
