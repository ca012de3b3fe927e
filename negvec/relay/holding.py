"""One process holds an event store: what another one wrote, its live indexes would not notice.

The lock lies in a file beside the database. It is the system's (flock, or what Windows has), so that it ends with the
process that holds it, however that ends; the file stays. Reading needs no lock.
"""

from __future__ import annotations

import os
from pathlib import Path

from filelock import FileLock, Timeout

SUFFIX = ".lock"


class StoreInUse(OSError):
    """Somebody else holds the event store."""


def hold(path: str) -> FileLock:
    """Take the lock of a store, to be released when it is closed.

    Raises
    ------
    OSError
        There can't be such a file; or `StoreInUse`.
    """
    if path == ":memory:":  # SQLite's name for what each connection would have to itself
        raise FileNotFoundError(f"{path} is no file: what is stored is on the disk")
    place = Path(os.path.realpath(path))  # two links to one database have one lock
    if place.is_dir():
        raise IsADirectoryError(f"{path} is a folder; give a file in it, such as {Path(path) / 'events.db'}")
    if not place.parent.is_dir():
        raise FileNotFoundError(f"{path}: there is no folder {place.parent}; make it first")
    lock = FileLock(f"{place}{SUFFIX}", thread_local=False)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise StoreInUse(
            f"{path} is in use: a relay or a sync has it open, and would not notice what is written here. Stop that "
            "first. Events come into a relay that runs by way of another store: sync or import into that one, then "
            "negvec sync ws://RELAY --store OTHER --direction up"
        ) from None
    except OSError as error:
        raise type(error)(f"{path}: nothing can be written to {place.parent} ({error.strerror})") from error
    return lock
