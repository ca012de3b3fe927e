"""Events in SQLite, and live indexes of them: one writer, whose batches are committed together, and many readers.

An event's key is (2^64 - 1 - created_at, big-endian) and its id: 40 bytes in whose order the newest come first, and the
lowest id of a second, as NIP-01 has it. A filter's items are read as the keys of an index, joined by SQLite itself into
one blob, so that no row becomes a Python object.

Live indexes, one of all events and one of each kind, follow every commit; they answer what only asks for times and
kinds. A `Vector` of anything else is scanned.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import negvec
from negvec.relay.events import DELETION, Event
from negvec.relay.filters import Filter
from negvec.relay.holding import hold
from negvec.storage import Snapshot, Window
from negvec.storage.seam import Bytes, Storage, Words

VERSION = 1

SCHEMA = """
CREATE TABLE events(
    seq INTEGER PRIMARY KEY, key BLOB NOT NULL, id BLOB NOT NULL, kind INTEGER NOT NULL, pubkey BLOB NOT NULL,
    address TEXT, expires INTEGER, json BLOB NOT NULL);
CREATE UNIQUE INDEX events_id ON events(id);
CREATE INDEX events_key ON events(key);
CREATE INDEX events_kind ON events(kind, key);
CREATE INDEX events_pubkey ON events(pubkey, kind, key);
CREATE UNIQUE INDEX events_address ON events(pubkey, kind, address) WHERE address IS NOT NULL;
CREATE INDEX events_expires ON events(expires) WHERE expires IS NOT NULL;
CREATE TABLE tags(name TEXT, value TEXT, key BLOB, seq INTEGER, PRIMARY KEY(name, value, key)) WITHOUT ROWID;
CREATE INDEX tags_seq ON tags(seq);
CREATE TABLE deleted(id BLOB, pubkey BLOB, PRIMARY KEY(id, pubkey)) WITHOUT ROWID;
CREATE TABLE deleted_addresses(pubkey BLOB, kind INTEGER, address TEXT, until INTEGER,
    PRIMARY KEY(pubkey, kind, address)) WITHOUT ROWID;
"""

_TABLES = {"events", "tags", "deleted", "deleted_addresses"}  # many programs' files have the same version number

KEY_SIZE = 40  # bytes
KERNELS = ("blocks", "edits", "order", "plans", "single", "sums")  # what a write to its live indexes needs
_STEPS = 10_000  # of SQLite's machine, half a millisecond or so, after which a query looks at the clock
_PAGE = 500  # keys looked up at once
_JOINED = 20_000_000  # keys that one blob holds: SQLite's limit is a gigabyte


_Change = tuple[bool, int, int, bytes]  # whether it was added, else removed; kind, created_at and id


class Outcome(NamedTuple):
    """What became of an event: whether the client is told OK, why, and whether it was new."""

    ok: bool
    reason: str
    new: bool


_STORED = Outcome(True, "", True)
_DUPLICATE = Outcome(True, "duplicate: already have this event", False)


def key_of(created_at: int, id: bytes) -> bytes:
    """The key by which an event is ordered: the newest first, and of a second the lowest id."""
    return (2**64 - 1 - created_at).to_bytes(8, "big") + id


class QueryTimeout(Exception):
    """A query that took longer than it may."""


class EventStore:
    """Events in an SQLite file, which it holds until it is closed.

    Writes come from one thread at a time; reads from any.

    Parameters
    ----------
    path : str or path-like
        A file, which is made if it is not there.

    Raises
    ------
    ValueError
        The file is another program's, or a later version's.
    OSError
        It can't be opened; or, as `negvec.relay.holding.StoreInUse`, another store of this or another process holds it.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = str(path)
        self._local = threading.local()
        self._opened: list[sqlite3.Connection] = []
        self._opening = threading.Lock()
        self._writing = threading.Lock()
        self._lock = hold(self.path)
        self.everything = negvec.LiveIndex()
        self.kinds: dict[int, negvec.LiveIndex] = {}
        try:
            self._writer = self._open()
            self._prepare()  # first, so that another program's file stays as it is
            self._set_up(self._writer)
            self._remove_expired()
            self._fill_indexes()
            self._next_expiry = self._first_expiry()
        except sqlite3.Error as error:
            self.close()
            raise OSError(f"{self.path}: {error}") from error
        except BaseException:
            self.close()
            raise

    def __len__(self) -> int:
        """Number of events."""
        return len(self.everything)

    def close(self) -> None:
        """Close the file; nobody may use the store any more."""
        with self._opening:
            for connection in self._opened:
                connection.close()
            self._opened = []
        self._lock.release()

    # ---- opening

    def _open(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, check_same_thread=False, isolation_level=None, timeout=30)
        with self._opening:
            self._opened.append(connection)
        return connection

    def _set_up(self, connection: sqlite3.Connection) -> None:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")  # what was committed survives a power cut, not only a kill
        connection.execute("PRAGMA cache_size = -65536")

    def _reader(self) -> sqlite3.Connection:
        """A connection of the thread's own."""
        if not hasattr(self._local, "connection"):
            self._local.connection = self._open()
            self._set_up(self._local.connection)
            self._local.connection.set_progress_handler(self._overdue, _STEPS)
        connection: sqlite3.Connection = self._local.connection
        return connection

    def _prepare(self) -> None:
        (version,) = self._writer.execute("PRAGMA user_version").fetchone()
        tables = {name for (name,) in self._writer.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if version == VERSION and tables >= _TABLES:
            return
        if version or tables:
            raise ValueError(f"{self.path} is no event store of this version of negvec's; give another file")
        self._writer.executescript(f"BEGIN; {SCHEMA} PRAGMA user_version = {VERSION}; COMMIT;")

    def _fill_indexes(self) -> None:
        for (kind,) in self._writer.execute("SELECT DISTINCT kind FROM events").fetchall():
            created_at, ids = self._scan(self._writer, "SELECT key FROM events WHERE kind = ?", [kind], None)
            self._index_of(kind).insert(created_at, ids)
            self.everything.insert(created_at, ids)
        self.everything.fingerprint(0, len(self.everything))  # so that no client waits until all kinds are sorted

    def _index_of(self, kind: int) -> negvec.LiveIndex:
        return self.kinds.setdefault(kind, negvec.LiveIndex())

    # ---- writing

    def put(self, events: Iterable[Event]) -> list[Outcome]:
        """Store events in one transaction, in order; when this returns, they are on the disk.

        Replaceable and addressable events replace older ones, deletions delete (NIP-09), and what has expired or is
        deleted is refused. Ephemeral events are the caller's.

        Raises
        ------
        OSError
            They could not be written, and none of them is stored: the disk is full, say.
        """
        with self._writing:
            changes: list[_Change] = []
            try:
                with self._transaction():
                    outcomes = [self._put(event, changes) for event in events]
            except sqlite3.IntegrityError:  # no fault of the disk's
                raise
            except sqlite3.DatabaseError as error:
                raise OSError(f"{self.path}: {error}") from error
            self._apply(changes)
        return outcomes

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._writer.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._writer.execute("COMMIT")
        except BaseException:
            if self._writer.in_transaction:  # SQLite itself may have rolled it back, as on a full disk
                self._writer.execute("ROLLBACK")
            raise

    def expire(self, now: float | None = None) -> int:
        """Remove what has expired (NIP-40); returns the number of events removed."""
        with self._writing:
            changes = self._remove_expired(now)
            self._apply(changes)
            self._next_expiry = self._first_expiry()
        return len(changes)

    def _remove_expired(self, now: float | None = None) -> list[_Change]:
        changes: list[_Change] = []
        with self._transaction():
            self._remove("expires <= ?", [int(time.time() if now is None else now)], changes)
        return changes

    def _first_expiry(self) -> int | None:
        row = self._writer.execute("SELECT min(expires) FROM events WHERE expires NOT NULL").fetchone()
        first: int | None = row[0]
        return first

    def _due(self) -> bool:
        return self._next_expiry is not None and self._next_expiry <= time.time()

    def expire_if_due(self) -> None:
        """Remove what has expired, if anything has: before every read, so that it is not served."""
        if self._due():
            self.expire()

    def _put(self, event: Event, changes: list[_Change]) -> Outcome:
        execute = self._writer.execute
        if event.expires is not None and event.expires <= time.time():
            return Outcome(False, "invalid: the event has expired", False)
        if execute("SELECT 1 FROM events WHERE id = ?", [event.id]).fetchone():
            return _DUPLICATE
        gone = execute("SELECT 1 FROM deleted WHERE id = ? AND pubkey = ?", [event.id, event.pubkey]).fetchone()
        if gone and event.kind != DELETION:  # a deletion of a deletion has no effect, whichever comes first
            return Outcome(False, "blocked: the author has deleted this event", False)
        key, address = key_of(event.created_at, event.id), event.address
        if address is not None:
            place = [event.pubkey, event.kind, address]
            where = "pubkey = ? AND kind = ? AND address = ?"
            gone = execute(f"SELECT until FROM deleted_addresses WHERE {where}", place).fetchone()
            if gone and event.created_at <= gone[0]:
                return Outcome(False, "blocked: the author has deleted this event", False)
            held = execute(f"SELECT key FROM events WHERE {where}", place).fetchone()
            if held and held[0] < key:
                return Outcome(True, "duplicate: have a newer event", False)
            if held:
                self._remove(where, place, changes)
        row = [key, event.id, event.kind, event.pubkey, address, event.expires, event.json]
        seq = execute(
            "INSERT INTO events(key, id, kind, pubkey, address, expires, json) VALUES(?,?,?,?,?,?,?)", row
        ).lastrowid
        letters = [(tag[0], tag[1], key, seq) for tag in event.tags if len(tag) > 1 and len(tag[0]) == 1]
        if letters:
            self._writer.executemany("INSERT OR IGNORE INTO tags VALUES(?,?,?,?)", letters)
        changes.append((True, event.kind, event.created_at, event.id))
        if event.expires is not None:
            self._next_expiry = min(self._next_expiry or event.expires, event.expires)
        if event.kind == DELETION:
            self._delete(event, changes)
        return _STORED

    def _delete(self, event: Event, changes: list[_Change]) -> None:
        """NIP-09: the author's own events, by id or by address; deletions can't be deleted."""
        for tag in event.tags:
            value = tag[1] if len(tag) > 1 else ""
            if tag[0] == "e" and len(value) == 64:
                try:
                    id = bytes.fromhex(value)
                except ValueError:
                    continue
                held = self._writer.execute("SELECT pubkey, kind FROM events WHERE id = ?", [id]).fetchone()
                if held and (held[0] != event.pubkey or held[1] == DELETION):
                    continue
                self._writer.execute("INSERT OR IGNORE INTO deleted VALUES(?, ?)", [id, event.pubkey])
                self._remove("id = ?", [id], changes)
            elif tag[0] == "a" and value.count(":") >= 2:
                kind, author, address = value.split(":", 2)
                if not (kind.isascii() and kind.isdigit() and len(kind) < 6) or author != event.pubkey.hex():
                    continue
                place = [event.pubkey, int(kind), address]
                self._writer.execute(
                    "INSERT INTO deleted_addresses VALUES(?,?,?,?) "
                    "ON CONFLICT DO UPDATE SET until = max(until, excluded.until)",
                    [*place, event.created_at],
                )
                where = "pubkey = ? AND kind = ? AND address = ? AND key >= ?"
                self._remove(where, [*place, key_of(event.created_at, bytes(32))], changes)

    def _remove(self, where: str, values: list[Any], changes: list[_Change]) -> None:
        for seq, key, kind in self._writer.execute(
            f"SELECT seq, key, kind FROM events WHERE {where}", values
        ).fetchall():
            self._writer.execute("DELETE FROM tags WHERE seq = ?", [seq])
            self._writer.execute("DELETE FROM events WHERE seq = ?", [seq])
            changes.append((False, kind, 2**64 - 1 - int.from_bytes(key[:8], "big"), key[8:]))

    def _apply(self, changes: list[_Change]) -> None:
        """Let the live indexes follow a commit, in its order."""
        if not changes:
            return
        _apply_to(self.everything, changes)
        kinds = {kind for _, kind, _, _ in changes}
        for kind in kinds:
            _apply_to(self._index_of(kind), changes if len(kinds) == 1 else [c for c in changes if c[1] == kind])

    # ---- reading

    @contextmanager
    def query_limit(self, seconds: float) -> Iterator[None]:
        """Cut short what this thread reads meanwhile, if it takes longer.

        Raises
        ------
        QueryTimeout
        """
        self._local.deadline = time.monotonic() + seconds
        try:
            yield
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_INTERRUPT:
                raise
            raise QueryTimeout(f"the query took longer than {seconds:g} seconds") from None
        finally:
            self._local.deadline = None

    def _overdue(self) -> bool:
        deadline = getattr(self._local, "deadline", None)
        return deadline is not None and time.monotonic() >= deadline

    def keys(self, asked: Filter, most: int) -> list[bytes]:
        """The keys of stored events that match, the newest first, up to `most` or the filter's own limit."""
        self.expire_if_due()
        rows, values = rows_of(asked)
        limit = most if asked.limit is None else min(asked.limit, most)
        return [key for (key,) in self._reader().execute(f"{rows} ORDER BY key LIMIT ?", [*values, limit])]

    def page(self, keys: list[bytes], most_bytes: int) -> tuple[list[bytes], int]:
        """The JSON of the first of some events, and of how many keys: as `most_bytes` allow, and of one at least.

        Keys ascend; an event that has been removed meanwhile is left out.
        """
        some, found, size = keys[:_PAGE], [], 0
        sql = f"SELECT key, json FROM events WHERE key IN ({','.join('?' * len(some))}) ORDER BY key"
        with closing(self._reader().execute(sql, some)) as rows:
            for key, json in rows:
                found.append(json)
                size += len(json)
                if size >= most_bytes:
                    return found, some.index(key) + 1
        return found, len(some)

    def events(self, ids: list[bytes]) -> list[tuple[bytes, bytes]]:
        """The ids and JSON of those events that are stored, the newest first."""
        self.expire_if_due()
        sql = f"SELECT id, json FROM events WHERE id IN ({','.join('?' * len(ids))}) ORDER BY key"
        return self._reader().execute(sql, ids).fetchall()

    def ready(self, asked: Filter) -> Storage | None:
        """The items that match, where that is known in O(1): of all kinds, or of one; else None."""
        return None if self._due() else self._live(asked)

    def storage(self, asked: Filter, most: int) -> Storage:
        """The items that match, as a storage; more than `most` may be left out once there is one more than that.

        What asks for times alone is answered in O(1), for one kind too, and for several in one pass.
        """
        self.expire_if_due()
        live = self._live(asked)
        if live is not None:
            return live
        if asked.kinds is not None and _only_times_and_kinds(asked):
            return self._of_kinds(sorted(asked.kinds), asked.since, asked.until)
        rows, values = rows_of(asked)
        if asked.limit is None and most < _JOINED:  # in whatever order the best index has them
            created_at, ids = _columns(self._joined(self._reader(), f"{rows} LIMIT ?", [*values, most + 1]))
        else:
            limit = most + 1 if asked.limit is None else min(asked.limit, most + 1)
            created_at, ids = self._scan(self._reader(), rows, values, limit)
        return negvec.seal(created_at[::-1], ids[::-1], copy=False)

    def _live(self, asked: Filter) -> Storage | None:
        """A window of one live index, if the filter asks for no more than that."""
        if not _only_times_and_kinds(asked):
            return None
        index: negvec.LiveIndex | None = self.everything
        if asked.kinds is not None:
            index = self.kinds.get(next(iter(asked.kinds))) if len(asked.kinds) == 1 else None
        return None if index is None else index.snapshot().window(asked.since, asked.until)

    def _of_kinds(self, kinds: list[int], since: int, until: int) -> Storage:
        snapshots: list[Snapshot] = [self.kinds[kind].snapshot() for kind in kinds if kind in self.kinds]
        windows: list[Window] = [snapshot.window(since, until) for snapshot in snapshots]
        if not windows:
            return negvec.seal([], [])
        return negvec.seal(np.concatenate([w.created_at for w in windows]), np.concatenate([w.ids for w in windows]))

    def _scan(self, reader: sqlite3.Connection, rows: str, values: list[Any], limit: int | None) -> tuple[Words, Bytes]:
        """The items of what a query selects, in the order of keys; a scan cut short is an error, not a smaller set."""
        pieces, after, left = [], b"", limit
        while left is None or left > 0:
            count = _JOINED if left is None else min(left, _JOINED)
            keys = self._joined(reader, f"{rows} AND key > ? ORDER BY key LIMIT ?", [*values, after, count])
            pieces.append(keys)
            found = len(keys) // KEY_SIZE
            if found < count:
                break
            after = keys[-KEY_SIZE:]
            left = None if left is None else left - found
        return _columns(b"".join(pieces))

    def _joined(self, reader: sqlite3.Connection, rows: str, values: list[Any]) -> bytes:
        """The keys that a query selects, one after another: joined by SQLite, so that none becomes an object."""
        joined = f"SELECT count(*), CAST(group_concat(key, '') AS BLOB) FROM ({rows})"
        found, keys = reader.execute(joined, values).fetchone()
        if found and len(keys) != KEY_SIZE * found:
            raise sqlite3.DatabaseError(f"{found} keys came as {len(keys)} bytes: the file is damaged")
        return keys if found else b""


def _only_times_and_kinds(asked: Filter) -> bool:
    return asked.ids is None and asked.authors is None and not asked.tags and asked.limit is None


def _columns(keys: bytes) -> tuple[Words, Bytes]:
    """Timestamps and ids of keys, in their order."""
    rows = np.frombuffer(keys, np.uint8).reshape(-1, KEY_SIZE)
    created_at = ~rows[:, :8].copy().view(">u8").ravel().astype(np.uint64)
    return created_at, rows[:, 8:].copy()


def _apply_to(index: negvec.LiveIndex, changes: list[_Change]) -> None:
    if len(changes) == 1:
        ((add, _, created_at, id),) = changes
        (index.insert if add else index.erase)(created_at, id)
        return
    ids = np.frombuffer(b"".join(change[3] for change in changes), np.uint8).reshape(-1, 32)
    created_at_ = np.array([change[2] for change in changes], np.uint64)
    index.apply(created_at_, ids, np.array([change[0] for change in changes], np.bool_))


def rows_of(asked: Filter) -> tuple[str, list[Any]]:
    """The query for the keys of what matches a filter, to which further conditions may be added, and its values."""
    selected, column = "key FROM events", "seq"
    clauses: list[str] = []
    values: list[Any] = []
    times = [key_of(asked.until, b""), key_of(asked.since, b"\xff" * 32)]

    def one_of(name: str, chosen: Iterable[Any]) -> None:
        listed = sorted(chosen)
        clauses.append(f"{name} IN ({','.join('?' * len(listed))})")
        values.extend(listed)

    for name, chosen in (("id", asked.ids), ("pubkey", asked.authors), ("kind", asked.kinds)):
        if chosen is not None:
            one_of(name, chosen)
    tags = sorted(asked.tags.items())
    if tags and not clauses:  # the rows of a tag have the keys, in their order: no event has to be looked up
        (letter, of_tag), *tags = tags
        selected, column = "key FROM tags" if len(of_tag) == 1 else "DISTINCT key FROM tags", "key"
        one_of("name", [letter])
        one_of("value", of_tag)
    for letter, of_tag in tags:
        marks = ",".join("?" * len(of_tag))
        rows = f"SELECT {column} FROM tags WHERE name = ? AND value IN ({marks}) AND key BETWEEN ? AND ?"
        clauses.append(f"{column} IN ({rows})")
        values.extend([letter, *sorted(of_tag), *times])
    clauses.append("key BETWEEN ? AND ?")
    values.extend(times)
    return f"SELECT {selected} WHERE {' AND '.join(clauses)}", values
