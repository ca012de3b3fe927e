"""`negvec warmup`: compile ahead, for images and CI."""

from __future__ import annotations

import time

import click

from negvec import kernels


@click.command()
def warmup() -> int:
    """Compile what the first use would compile, and keep it on disk.

    Run it once after installing, as the user who will run negvec, on the machine or in the image where it will run:
    the compiled kernels are for this kind of processor. With NUMBA_CACHE_DIR set they go there.
    """
    started = time.perf_counter()
    where = kernels.load()
    click.echo(f"{len(kernels.MODULES)} kernel modules ready after {time.perf_counter() - started:.1f} s, in {where}")
    return 0
