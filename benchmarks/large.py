"""A hundred million items a side, sealed and reconciled on one machine: `python benchmarks/large.py` (not asv's).

Prints seconds, and the peak of memory. With the default 100,000,000 items a side at stride 16 it wants some 16 GB.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import negvec
from negvec.workloads import pair


def peak() -> float:
    """Gigabytes that this process has had resident at most."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=100_000_000, help="items a side")
    parser.add_argument("--stride", type=int, default=16)
    parser.add_argument("--shape", default="clustered")
    asked = parser.parse_args()

    n = asked.items if asked.shape in ("scattered", "clustered") else asked.items * 5 // 4
    started = time.perf_counter()
    sides = list(pair(asked.shape, n))
    print(f"{n:,} items made in {time.perf_counter() - started:.1f} s; peak {peak():.1f} GB")
    storages = []
    while sides:
        started = time.perf_counter()
        storages.append(negvec.seal(*sides.pop(), copy=False, stride=asked.stride))
        spent, storage = time.perf_counter() - started, storages[-1]
        size = f"{len(storage):,} items, {storage.nbytes / len(storage):.1f} bytes each"
        print(f"sealed in {spent:.1f} s: {size}; peak {peak():.1f} GB")
    theirs, ours = storages
    started = time.perf_counter()
    initiator, responder = negvec.Negentropy(ours), negvec.Negentropy(theirs, 500_000)
    found = negvec.protocol.drive(initiator, responder)
    spent = time.perf_counter() - started
    print(
        f"reconciled in {spent:.1f} s, {found.rounds} rounds, {found.bytes_up + found.bytes_down:,} bytes: "
        f"have {len(found.have):,}, need {len(found.need):,}; peak {peak():.1f} GB"
    )
    assert len(ours) - len(found.have) == len(theirs) - len(found.need)
    assert not len(np.intersect1d(found.have[:1000, :8].view("<u8"), found.need[:1000, :8].view("<u8")))


if __name__ == "__main__":
    main()
