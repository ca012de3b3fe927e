"""Events on their way into the store: checked in threads, written in batches, told when they are on the disk.

Signatures are checked by a few threads, since libsecp256k1 releases the GIL. One task takes all that is ready and has
it committed together, so that a commit's wait for the disk is shared by whoever came meanwhile.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

from negvec.relay.events import Event, InvalidEvent, parse, verify
from negvec.relay.policy import Denied
from negvec.relay.store import EventStore, Outcome

logger = logging.getLogger("negvec.relay")

T = TypeVar("T")

MOST_WAITING = 5000  # events before each of the two steps; who brings more waits
CHECKED_TOGETHER = 64  # events that a thread checks before it hands them on
WRITTEN_TOGETHER = 1000  # events of one transaction
_NOT_STORED = Outcome(False, "error: could not be stored", False)


class _Given(NamedTuple):
    """What a client sent, what else it has to pass, and whom to tell what became of it."""

    event: Any
    accept: Callable[[Event], None]
    done: Callable[[Outcome], None]


class _Checked(NamedTuple):
    event: Event
    done: Callable[[Outcome], None]


class Ingest:
    """The one writer of a relay.

    Parameters
    ----------
    store : EventStore
    stored : callable
        Told every new event once it is on the disk, and every ephemeral one.

    Attributes
    ----------
    failure : OSError or None
        What kept the last batch from being written that was not.
    """

    def __init__(self, store: EventStore, stored: Callable[[Event], None]) -> None:
        self._store, self._stored = store, stored
        self.failure: OSError | None = None
        threads = os.cpu_count() or 1
        self._checkers = ThreadPoolExecutor(threads, thread_name_prefix="negvec-check")
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="negvec-write")
        self._given: asyncio.Queue[_Given] = asyncio.Queue(MOST_WAITING)
        self._checked: asyncio.Queue[_Checked] = asyncio.Queue(MOST_WAITING)
        self._tasks = [asyncio.create_task(self._check()) for _ in range(threads)]
        self._tasks.append(asyncio.create_task(self._write()))

    async def submit(self, event: Any, accept: Callable[[Event], None], done: Callable[[Outcome], None]) -> None:
        """Have an event checked and stored, as soon as there is room for it to wait.

        Parameters
        ----------
        event : object
            As parsed from JSON.
        accept : callable
            Called with the checked event; raises `InvalidEvent` or `Denied` to refuse it.
        done : callable
            Called with the outcome: once the event is on the disk, or refused.
        """
        await self._given.put(_Given(event, accept, done))

    async def close(self) -> None:
        """Write what is waiting, and stop."""
        await self._given.join()
        await self._checked.join()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._checkers.shutdown()
        self._writer.shutdown()

    async def _check(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            batch = await _take(self._given, CHECKED_TOGETHER)
            events = await loop.run_in_executor(self._checkers, _check_all, [given.event for given in batch])
            for given, event in zip(batch, events, strict=True):
                try:
                    if isinstance(event, InvalidEvent):
                        raise event
                    given.accept(event)
                except (InvalidEvent, Denied) as error:
                    given.done(Outcome(False, str(error), False))
                except Exception:  # a fault of a policy's own must not end the relay
                    logger.exception("an event could not be judged")
                    given.done(Outcome(False, "error: could not be judged", False))
                else:
                    if event.ephemeral:
                        self._stored(event)
                        given.done(Outcome(True, "", True))
                    else:
                        await self._checked.put(_Checked(event, given.done))
                self._given.task_done()

    async def _write(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            batch = await _take(self._checked, WRITTEN_TOGETHER)
            try:
                outcomes = await loop.run_in_executor(self._writer, self._store.put, [item.event for item in batch])
            except OSError as error:  # the disk is full, say: nothing of the batch is there, and its senders are told
                logger.error("a batch of %d events could not be written: %s", len(batch), error)
                self.failure, outcomes = error, [_NOT_STORED] * len(batch)
            except Exception:
                logger.exception("a batch of %d events could not be written", len(batch))
                outcomes = [_NOT_STORED] * len(batch)
            for item, outcome in zip(batch, outcomes, strict=True):
                if outcome.new:
                    self._stored(item.event)
                item.done(outcome)
                self._checked.task_done()


async def _take(queue: asyncio.Queue[T], most: int) -> list[T]:
    """Wait for something, and take what else is there."""
    taken = [await queue.get()]
    while len(taken) < most and not queue.empty():
        taken.append(queue.get_nowait())
    return taken


def _check_all(given: list[Any]) -> list[Event | InvalidEvent]:
    return [check(each) for each in given]


def storable(event: Event) -> None:
    """Refuse what is never stored.

    Raises
    ------
    InvalidEvent
    """
    if event.ephemeral:
        raise InvalidEvent("invalid: ephemeral events are not stored")


def check(given: Any) -> Event | InvalidEvent:
    """The event, if its form, hash and signature are right; else what is wrong with it."""
    try:
        event = parse(given)
        verify(event)
    except InvalidEvent as error:
        return error
    except Exception:  # whatever bytes come, the next event is checked
        logger.exception("an event could not be checked")
        return InvalidEvent("error: could not be checked")
    return event
