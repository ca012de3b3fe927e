"""Reading a store's file without holding the store: also while a relay runs on it."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path

from negvec.relay.filters import Filter
from negvec.relay.store import VERSION, rows_of

_PAGE = 500  # events looked up at once


class Archive:
    """The stored events that match a filter, as they are at one moment.

    Attributes
    ----------
    count : int
        How many there are; some may have expired.
    """

    def __init__(self, connection: sqlite3.Connection, asked: Filter) -> None:
        self._connection = connection
        rows, values = rows_of(asked)
        if asked.limit is not None:
            rows, values = f"SELECT key FROM ({rows} ORDER BY key LIMIT ?)", [*values, asked.limit]
        (self.count,) = connection.execute(f"SELECT count(*) FROM ({rows})", values).fetchone()
        self._keys = connection.execute(f"{rows} ORDER BY key DESC", values)

    def __iter__(self) -> Iterator[bytes]:
        """Their JSON, the oldest first; once."""
        while keys := [key for (key,) in islice(self._keys, _PAGE)]:
            among = f"key IN ({','.join('?' * len(keys))}) AND (expires IS NULL OR expires > ?)"
            sql = f"SELECT json FROM events WHERE {among} ORDER BY key DESC"
            for (json,) in self._connection.execute(sql, [*keys, int(time.time())]):
                yield json


@contextmanager
def open_archive(path: str, asked: Filter) -> Iterator[Archive]:
    """Open the file of a store for reading.

    Raises
    ------
    OSError
        There is none, or it can't be read.
    ValueError
        It is something else.
    """
    place = Path(path)
    if not place.is_file():
        raise FileNotFoundError(f"{path}: there is no such file")
    try:
        with closing(sqlite3.connect(f"{place.resolve().as_uri()}?mode=ro", uri=True, isolation_level=None)) as opened:
            opened.execute("BEGIN")  # all that is read is of one moment
            (version,) = opened.execute("PRAGMA user_version").fetchone()
            if version != VERSION:
                raise ValueError(f"{path} is no event store of this version of negvec's")
            yield Archive(opened, asked)
    except sqlite3.Error as error:
        raise OSError(f"{path}: {error}") from error
