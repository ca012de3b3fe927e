"""What a fresh process pays before its first reconciliation. NumPy's own import is not counted."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile

IMPORT = """
import time
import numpy
begin = time.perf_counter()
import negvec
print(time.perf_counter() - begin)
"""

FIRST_RECONCILIATION = """
import time
import numpy as np
begin = time.perf_counter()
import negvec
ids = np.zeros((1000, 32), np.uint8)
ids[:, :2] = np.arange(1000, dtype=">u2").view(np.uint8).reshape(-1, 2)
order = np.random.default_rng(1).permutation(900)
ours, theirs = negvec.seal(np.arange(900)[order], ids[:900][order]), negvec.seal(np.arange(100, 1000), ids[100:])
result = negvec.reconcile(ours, theirs)
print(time.perf_counter() - begin)
assert result.have.tobytes() == ids[:100].tobytes() and result.need.tobytes() == ids[900:].tobytes()
"""


def seconds(program: str, **environment: str) -> float:
    """Run a program in a fresh interpreter; it prints the seconds that it took."""
    child = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=os.environ | environment
    )
    return float(child.stdout)


class ColdStart:
    unit = "seconds"
    timeout = 600

    def setup(self) -> None:
        seconds(FIRST_RECONCILIATION)  # fills the caches of bytecode and kernels

    def track_import(self) -> float:
        return statistics.median(seconds(IMPORT) for _ in range(5))

    def track_first_reconciliation(self) -> float:
        return statistics.median(seconds(FIRST_RECONCILIATION) for _ in range(5))

    def track_first_reconciliation_ever(self) -> float:
        """Of a machine: every kernel is compiled."""
        with tempfile.TemporaryDirectory() as empty:
            return seconds(FIRST_RECONCILIATION, NUMBA_CACHE_DIR=empty)
