"""What a sealed storage takes, what sealing takes beside it for a while, and the peak of a whole process."""

from __future__ import annotations

import subprocess
import sys

import numpy as np

import negvec
from negvec.workloads import pair

from .runs import N, recorded, shuffled

SEAL_IN_A_FRESH_PROCESS = """
import sys
import numpy as np, negvec
from negvec.workloads import pair

def peak():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")) * 1024

created_at, ids = pair("identical", int(sys.argv[1]) * 5 // 4).ours
negvec.seal(created_at[:1000], ids[:1000][::-1])
if sys.argv[2] == "shuffled":
    order = np.random.default_rng(1).permutation(len(created_at))
    created_at, ids = created_at[order], ids[order]
    del order
open("/proc/self/clear_refs", "w").write("5")  # the peak begins anew
before = peak()
storage = negvec.seal(created_at, ids)
assert len(storage) == len(created_at)
print(peak() - before - storage.nbytes)
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
            raise NotImplementedError("the peak of a process can only be reset on Linux")

    def track_transient_bytes_an_item(self, order: str) -> float:
        n = max(N, 500_000)  # of fewer items too little to be told from what a process takes anyway
        command = [sys.executable, "-c", SEAL_IN_A_FRESH_PROCESS, str(n), order]
        return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout) / n

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
