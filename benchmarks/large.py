"""A hundred million items a side, on one machine: `python benchmarks/large.py` (not asv's).

Both sides are made by a process of their own, which leaves them as columns in a temporary folder. Then, each by a
process of its own, whose peak of memory is told: both are sealed and reconciled in memory, and saved; and reconciled
once more as mapped files. The default at stride 16 takes some 13 GB of memory and 17 GB of disk.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import negvec
from negvec.workloads import pair


def status(what: str) -> float:
    """A line of Linux's account of this process, in gigabytes."""
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith(what)) / 1e6


class Clock:
    """Seconds since it was made, and of the processors' time, which other programs do not lengthen as much."""

    def __init__(self) -> None:
        self.started = time.perf_counter(), time.process_time()

    def __str__(self) -> str:
        spent, busy = time.perf_counter() - self.started[0], time.process_time() - self.started[1]
        return f"{spent:.1f} s ({busy:.1f} s of processors)"


def make(folder: Path, asked: argparse.Namespace) -> None:
    n = asked.items if asked.shape in ("scattered", "clustered") else asked.items * 5 // 4
    for name, side in zip(("ours", "theirs"), pair(asked.shape, n), strict=True):
        rows = np.random.default_rng(1).permutation(len(side.ids)) if asked.shuffled else slice(None)
        for column in ("created_at", "ids"):
            np.save(folder / f"{name}.{column}.npy", getattr(side, column)[rows])


def seal(folder: Path, asked: argparse.Namespace) -> None:
    negvec.kernels.load()
    storages = []
    for name in ("ours", "theirs"):
        columns = [np.load(folder / f"{name}.{column}.npy") for column in ("created_at", "ids")]
        clock = Clock()
        storage = negvec.seal(*columns, copy=False, stride=asked.stride)
        spent = str(clock)
        del columns
        size = f"{len(storage):,} items, {storage.nbytes / len(storage):.1f} bytes each"
        print(f"sealed in {spent}: {size}; peak {status('VmHWM'):.1f} GB")
        storages.append(storage)
    reconcile(*storages)
    clock = Clock()
    for name, storage in zip(("ours", "theirs"), storages, strict=True):
        storage.save(folder / name)
    print(f"both saved in {clock}; peak {status('VmHWM'):.1f} GB")


def open_files(folder: Path, asked: argparse.Namespace) -> None:
    started = time.perf_counter()
    storages = [negvec.open(folder / name) for name in ("ours", "theirs")]
    print(f"both opened in {1e3 * (time.perf_counter() - started):.1f} ms")
    reconcile(*storages)
    clock = Clock()
    for storage in storages:
        storage.verify()
    print(f"both verified in {clock}")


def reconcile(ours: negvec.Storage, theirs: negvec.Storage) -> None:
    mapped: list[float] = []

    def watch(stage: str) -> None:
        if stage == "encode":  # to look after each stage would take a second
            mapped.append(status("RssFile"))

    clock = Clock()
    initiator = negvec.Negentropy(ours, watch=watch)
    found = negvec.protocol.drive(initiator, negvec.Negentropy(theirs, 500_000))
    spent = str(clock)
    print(
        f"reconciled in {spent}, {found.rounds} rounds, {found.bytes_up + found.bytes_down:,} bytes: "
        f"have {len(found.have):,}, need {len(found.need):,}; peak {status('VmHWM'):.1f} GB, "
        f"of files (and programs) {max(mapped):.1f} GB"
    )
    assert len(ours) - len(found.have) == len(theirs) - len(found.need)
    assert not len(np.intersect1d(found.have[:1000, :8].view("<u8"), found.need[:1000, :8].view("<u8")))


STEPS = {"make": make, "seal": seal, "open": open_files}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=100_000_000, help="items a side")
    parser.add_argument("--stride", type=int, default=16)
    parser.add_argument("--shape", default="clustered")
    parser.add_argument("--shuffled", action="store_true", help="items in no order")
    parser.add_argument("--folder", help="where there is room for files; by default where temporary ones go")
    parser.add_argument("--step", choices=STEPS, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.step:
        STEPS[asked.step](Path(asked.folder), asked)
        return
    with tempfile.TemporaryDirectory(dir=asked.folder) as folder:
        for step in STEPS:
            print(f"{step}:", flush=True)
            subprocess.run([sys.executable, *sys.argv, "--folder", folder, "--step", step], check=True)


if __name__ == "__main__":
    main()
