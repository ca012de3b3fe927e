"""The store against a plain list of events: what is kept, what filters show, and that live indexes follow."""

from __future__ import annotations

import random
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import orjson
import pytest

import negvec
from negvec.relay import EventStore, events, filters
from negvec.relay.events import Event
from negvec.relay.holding import StoreInUse

from . import pubkey, relay_process, signed, stored_json


@pytest.fixture
def store(tmp_path: Path) -> Iterator[EventStore]:
    opened = EventStore(tmp_path / "events.db")
    yield opened
    opened.close()


def parsed(*given: dict[str, Any]) -> list[Event]:
    return [events.parse(each) for each in given]


def shown(store: EventStore, asked: dict[str, Any] | None = None) -> list[str]:
    """Ids of what a REQ shows, after checking that a reconciliation has the same set."""
    checked = filters.parse(asked or {})
    ids = [orjson.loads(json)["id"] for json in stored_json(store, checked)]
    storage = store.storage(checked, 10_000)
    assert sorted(ids) == sorted(id.hex() for id in (bytes(row) for row in storage.items(0, len(storage))["id"]))
    return ids


def check_indexes(store: EventStore) -> None:
    """The live indexes hold what the file does."""
    everything = store.everything.snapshot()
    with closing(sqlite3.connect(store.path)) as connection:
        rows = connection.execute("SELECT key, kind FROM events ORDER BY key DESC").fetchall()
    held = [(2**64 - 1 - int.from_bytes(key[:8], "big"), key[8:], kind) for key, kind in rows]
    assert [(int(at), bytes(id)) for at, id in everything.items(0, len(everything)).tolist()] == sorted(
        (at, id) for at, id, _ in held
    )
    for kind, index in store.kinds.items():
        assert [bytes(id) for id in index.ids] == [id for at, id, k in sorted(held) if k == kind]


def test_the_newest_come_first_and_of_a_second_the_lowest_id(store: EventStore) -> None:
    given = [signed(k, at=1000 + k // 3) for k in range(20)]
    random.Random(1).shuffle(given)
    assert all(outcome == (True, "", True) for outcome in store.put(parsed(*given)))
    expected = [each["id"] for each in sorted(given, key=lambda each: (-each["created_at"], each["id"]))]
    assert shown(store) == expected
    assert shown(store, {"limit": 7}) == expected[:7]
    assert shown(store, {"since": 1002, "until": 1004}) == [
        each["id"]
        for each in sorted(given, key=lambda e: (-e["created_at"], e["id"]))
        if 1002 <= each["created_at"] <= 1004
    ]
    check_indexes(store)


def test_every_mix_of_attributes_shows_what_matches(store: EventStore) -> None:
    chance = random.Random(2)
    given = [
        signed(k, chance.choice([1, 2, 7]), [["e", chance.choice("ab")], ["t", chance.choice("xyz")]], author=k % 3)
        for k in range(120)
    ]
    kept = parsed(*given)
    store.put(kept)
    parts: list[dict[str, Any]] = [
        {"kinds": [1, 7]}, {"authors": [pubkey(0), pubkey(2)]}, {"#e": ["a"]}, {"#t": ["x", "y"]},
        {"since": 1_700_000_020}, {"until": 1_700_000_090}, {"ids": [each["id"] for each in given[::2]]}, {"limit": 9},
    ]  # fmt: skip
    for _ in range(120):
        asked: dict[str, Any] = {}
        for part in chance.sample(parts, chance.randint(0, 4)):
            asked |= part
        checked = filters.parse(asked)
        expected = sorted((e for e in kept if checked.matches(e)), key=lambda e: (-e.created_at, e.id))
        assert shown(store, asked) == [event.id.hex() for event in expected[: asked.get("limit", 1000)]]


def test_an_event_with_several_of_the_values_asked_for_comes_once(store: EventStore) -> None:
    both, one, other = (signed(k, 1, [["t", sign] for sign in signs]) for k, signs in enumerate(("xyx", "x", "z")))
    store.put(parsed(both, one, other, signed(9, 1, [["p", "x"]])))
    assert shown(store, {"#t": ["x", "y"]}) == [one["id"], both["id"]]
    assert shown(store, {"#t": ["x", "y"], "limit": 1}) == [one["id"]]
    assert shown(store, {"#t": ["x", "y", "z"], "kinds": [1], "until": 1_700_000_000}) == [both["id"]]
    assert shown(store, {"#t": []}) == []


def test_what_is_there_is_told_and_not_stored_again(store: EventStore) -> None:
    (event,) = parsed(signed(1))
    assert [outcome.new for outcome in store.put([event, event])] == [True, False]
    (again,) = store.put([event])
    assert (again.ok, again.reason.startswith("duplicate:"), len(store)) == (True, True, 1)


@pytest.mark.parametrize("kind", [0, 3, 10_002, 30_023])
def test_of_a_replaceable_event_the_newest_is_kept_and_of_a_second_the_lowest_id(store: EventStore, kind: int) -> None:
    given = [signed(k, kind, [["d", "x"]], at=1000 + k // 4) for k in range(12)]
    others = [signed(1, kind, [["d", "x"]], author=1), signed(1, 1)]
    if kind == 30_023:
        others.append(signed(1, kind, [["d", "y"]]))
    random.Random(kind).shuffle(given)
    for event in parsed(*given, *others):
        store.put([event])
        check_indexes(store)
    best = min(given, key=lambda each: (-each["created_at"], each["id"]))
    assert set(shown(store)) == {best["id"], *(each["id"] for each in others)}
    (refused,) = store.put(parsed(given[0] if given[0] is not best else given[1]))
    assert not refused.new


def test_deletions_take_the_authors_own_by_id_and_they_stay_away(store: EventStore) -> None:
    mine, theirs, later = signed(1), signed(2, author=1), signed(3)
    deletion = signed(10, 5, [["e", mine["id"]], ["e", theirs["id"]], ["e", later["id"]], ["e", "zz"], ["e"]])
    store.put(parsed(mine, theirs))
    store.put(parsed(deletion))
    assert set(shown(store)) == {theirs["id"], deletion["id"]}
    for gone in (mine, later):
        (outcome,) = store.put(parsed(gone))
        assert (outcome.ok, outcome.new) == (False, False)
    store.put(parsed(signed(11, 5, [["e", deletion["id"]]])))
    assert deletion["id"] in shown(store), "a deletion of a deletion has no effect"
    late = signed(12, 5, [["e", "00" * 32]])
    store.put(parsed(signed(13, 5, [["e", late["id"]]])))
    assert store.put(parsed(late))[0].new, "whichever comes first"
    check_indexes(store)


def test_deletions_by_address_take_what_is_not_newer(store: EventStore) -> None:
    old, new = signed(1, 30_023, [["d", "a:b"]], at=1000), signed(2, 30_023, [["d", "a:b"]], at=3000)
    deletion = signed(3, 5, [["a", f"30023:{pubkey(0)}:a:b"], ["a", f"30023:{pubkey(1)}:z"], ["a", "x"]], at=2000)
    store.put(parsed(old, deletion))
    assert shown(store) == [deletion["id"]]
    assert not store.put(parsed(old))[0].ok
    assert store.put(parsed(new))[0].new
    check_indexes(store)


def test_what_expires_is_refused_or_goes(store: EventStore) -> None:
    now = int(time.time())
    gone, soon = signed(1, tags=[["expiration", str(now - 5)]]), signed(2, tags=[["expiration", str(now + 1)]])
    outcomes = store.put(parsed(gone, soon, signed(3)))
    assert [outcome.ok for outcome in outcomes] == [False, True, True]
    assert len(shown(store)) == 2
    time.sleep(1.1 + now + 1 - time.time() if now + 1 > time.time() else 0.1)
    assert shown(store) == [signed(3)["id"]]
    check_indexes(store)


def test_it_is_all_there_when_the_file_is_opened_again(tmp_path: Path) -> None:
    first = EventStore(tmp_path / "a.db")
    first.put(parsed(*(signed(k, k % 3) for k in range(50)), signed(60, 5, [["e", signed(4, 1)["id"]]])))
    before, fingerprint = shown(first), first.everything.fingerprint(0, len(first))
    first.close()
    again = EventStore(tmp_path / "a.db")
    assert shown(again) == before
    assert again.everything.fingerprint(0, len(again)) == fingerprint
    assert not again.put(parsed(signed(4, 1)))[0].ok
    check_indexes(again)
    again.close()


def test_a_batch_that_fails_leaves_nothing(store: EventStore) -> None:
    good = parsed(signed(1), signed(2))
    broken = good[1]._replace(json=None)  # type: ignore[arg-type]
    with pytest.raises(sqlite3.Error):
        store.put([good[0], broken])
    assert (len(store), shown(store)) == (0, [])
    assert store.put(good)[1].new


def test_a_full_disk_is_an_error_of_the_system_and_the_next_batch_goes_on(store: EventStore) -> None:
    batch = parsed(*(signed(k) for k in range(300)))
    (pages,) = store._writer.execute("PRAGMA page_count").fetchone()
    store._writer.execute(f"PRAGMA max_page_count = {pages + 10}")
    with pytest.raises(OSError, match=r"events\.db: database or disk is full"):
        store.put(batch)
    assert (len(store), shown(store)) == (0, [])
    store._writer.execute("PRAGMA max_page_count = 1000000")
    assert all(outcome.new for outcome in store.put(batch))
    check_indexes(store)


@pytest.mark.parametrize("version", [0, 1, 7])
def test_another_programs_file_is_refused_and_left_as_it_is(tmp_path: Path, version: int) -> None:
    path = tmp_path / "bookmarks.db"
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE events(title TEXT)")
        other.execute(f"PRAGMA user_version = {version}")
        other.commit()
    before = path.read_bytes()
    with pytest.raises(ValueError, match="is no event store of this version"):
        EventStore(path)
    assert path.read_bytes() == before


def test_a_store_in_memory_is_refused() -> None:
    with pytest.raises(OSError, match=":memory: is no file"):
        EventStore(":memory:")


def test_a_key_that_is_damaged_is_said_to_be(tmp_path: Path) -> None:
    path = tmp_path / "events.db"
    with closing(EventStore(path)) as store:
        store.put(parsed(signed(1), signed(2)))
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE events SET key = x'00' WHERE seq = 1")
        connection.commit()
    with pytest.raises(OSError, match="damaged"):
        EventStore(path)


def test_a_scan_over_the_most_has_one_more_and_is_not_a_smaller_set(store: EventStore) -> None:
    store.put(parsed(*(signed(k) for k in range(20))))
    asked = filters.parse({"authors": [pubkey(0)]})
    assert [len(store.storage(asked, most)) for most in (19, 20, 21)] == [20, 20, 20]
    assert len(store.storage(asked, 5)) == 6


def test_a_store_is_held_by_one_and_let_go_of_even_by_kill_9(tmp_path: Path) -> None:
    path, link = tmp_path / "events.db", tmp_path / "link.db"
    with relay_process(path) as (_, process):
        link.symlink_to(path)
        for name in (path, link):
            with pytest.raises(StoreInUse, match=f"{name.name} is in use: a relay"):
                EventStore(name)
        process.kill()
        process.wait()
        store = EventStore(path)
    with pytest.raises(StoreInUse):
        EventStore(path)
    store.close()
    EventStore(path).close()


def test_a_place_that_can_hold_no_store_is_told(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"a\.db: there is no folder .*missing; make it first"):
        EventStore(tmp_path / "missing" / "a.db")
    with pytest.raises(OSError, match=r"is a folder; give a file in it, such as .*events\.db"):
        EventStore(tmp_path)
    (tmp_path / "damaged.db").write_bytes(b"SQLite format 3\0" + bytes(84) + b"\xff" * 4000)
    for _ in range(2):
        with pytest.raises(OSError, match=r"damaged\.db"):
            EventStore(tmp_path / "damaged.db")


@pytest.mark.parametrize("content", [b"no database at all, but long enough to be one" * 40, None])
def test_a_file_of_another_program_is_refused_and_left_alone(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "other.db"
    if content is None:
        with closing(sqlite3.connect(path)) as other:
            other.execute("CREATE TABLE theirs(x)")
    else:
        path.write_bytes(content)
    with pytest.raises((ValueError, OSError), match=r"other\.db"):
        EventStore(path)
    assert content is None or path.read_bytes() == content


def test_sets_of_several_kinds_are_one_storage(store: EventStore) -> None:
    store.put(parsed(*(signed(k, k % 4) for k in range(40))))
    storage = store.storage(filters.parse({"kinds": [1, 2, 99], "since": 1_700_000_010}), 1000)
    assert isinstance(storage, negvec.PrefixSumVector)
    assert len(storage) == sum(1 for k in range(10, 40) if k % 4 in (1, 2))


def test_a_page_ends_with_the_bytes_that_it_may_have_and_passes_over_what_is_gone(store: EventStore) -> None:
    given = [signed(k, content="x" * 1000) for k in range(10)]
    store.put(parsed(*given))
    keys = store.keys(filters.parse({}), 100)
    assert [(len(found), count) for found, count in (store.page(keys, most) for most in (1, 3000, 10**6))] == [
        (1, 1),
        (3, 3),
        (10, 10),
    ]
    store.put(parsed(signed(20, 5, [["e", given[9]["id"]], ["e", given[7]["id"]]])))
    found, count = store.page(keys, 3000)
    assert ([orjson.loads(json)["created_at"] - 1_700_000_000 for json in found], count) == ([8, 6, 5], 5)


def test_a_set_is_ready_where_a_live_index_has_it_whole(store: EventStore) -> None:
    now = int(time.time())
    store.put(
        parsed(*(signed(k, 1 + k % 2) for k in range(10)), signed(3, tags=[["expiration", str(now + 1)]], at=now))
    )
    for asked, size in (({}, 11), ({"kinds": [2]}, 5), ({"kinds": [1], "until": 1_700_000_004}, 3)):
        ready = store.ready(filters.parse(asked))
        assert ready is not None
        assert len(ready) == size
    for asked in ({"kinds": [1, 2]}, {"kinds": [7]}, {"authors": [pubkey(0)]}, {"limit": 5}, {"#t": ["x"]}):
        assert store.ready(filters.parse(asked)) is None
    time.sleep(max(now + 1.05 - time.time(), 0))
    assert store.ready(filters.parse({})) is None, "what has expired is to be removed first"
    assert len(store.storage(filters.parse({}), 100)) == 10
    assert store.ready(filters.parse({})) is not None
