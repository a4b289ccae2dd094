"""Execution of database queries in threads, with a time limit.

There are separate threads for quick queries (a picture, a window of a list), slow ones (filters) and event
streams, so that slow filters do not delay pictures.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from functools import partial
from queue import Empty, SimpleQueue
from typing import Literal, TypeVar, cast
from weakref import WeakValueDictionary

from kiebitz.cli.web.admission import BusyError, Holder
from kiebitz.cli.web.reader import Reader, ServedSession
from kiebitz.dissectors.registry import using_copies
from kiebitz.storage.database.schema import StorageError
from kiebitz.storage.filters.sql import original_error

Found = TypeVar("Found")

Kind = Literal["quick", "slow", "news"]

_THREADS = {"quick": 2, "slow": 2, "news": 1}

_MAX_SLOW = 100
"""Maximum number of slow queries that wait for a thread. `Admission` limits the others."""

_MAX_SLOW_OF_CLIENT = 80
"""Maximum number of those of one client."""

_AT_ONCE = 2
"""Maximum number of queries of a kind that one client has running or queued at once; its others wait.

The threads are busy with as many, so a client that is alone loses nothing.
"""

_ENDED = "the server has ended"
"""Why queries are cancelled on shutdown."""


class QueryTimeoutError(StorageError):
    """A query cancelled at the time limit."""


class _RunningQuery:
    """A query in a thread, which can be cancelled."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._connection: sqlite3.Connection | None = None

    def begin(self, connection: sqlite3.Connection) -> None:
        """Mark the query as running on this connection."""
        with self._guard:
            self._connection = connection

    def end(self) -> None:
        """Mark the query as complete, so that it cannot be interrupted any more."""
        with self._guard:
            self._connection = None

    def cancel(self) -> None:
        """Interrupt the query."""
        with self._guard:
            if self._connection is not None:
                self._connection.interrupt()


class _Workers:
    """Daemon threads that run calls in order. Unlike those of concurrent.futures they delay no exit."""

    def __init__(self, kind: Kind, count: int) -> None:
        self._calls: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._count = count
        for _ in range(count):
            threading.Thread(target=self._run, name=kind, daemon=True).start()

    def submit(self, call: Callable[[], None]) -> None:
        """Run a call, which raises nothing, when a thread is free."""
        self._calls.put(call)

    def close(self) -> None:
        """Discard the waiting calls, and end each thread after its current one."""
        with suppress(Empty):
            while True:
                self._calls.get_nowait()
        for _ in range(self._count):
            self._calls.put(None)

    def _run(self) -> None:
        while (call := self._calls.get()) is not None:
            call()


class QueryExecutor:
    """Runs queries in threads, each for at most `limit_s`.

    A session with a protocol file has threads of its own, as a stranger's file may be slow in any query.
    """

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._workers: dict[tuple[int, Kind], _Workers] = {}
        self._own = threading.local()
        self._unfinished: set[Callable[[StorageError], None]] = set()
        """Functions that cancel the running and the waiting queries for a reason; of the event loop."""
        self._is_closed = False
        self._slow: Counter[Holder | None] = Counter()
        """Number of slow queries of each client."""
        self._turns: WeakValueDictionary[tuple[Holder, Kind], asyncio.Semaphore] = WeakValueDictionary()

    async def ask(
        self,
        served: ServedSession,
        question: Callable[[Reader], Found],
        kind: Kind = "quick",
        client: Holder | None = None,
    ) -> Found:
        """Run a query of a client, or of the server itself, and return its result.

        Raises BusyError, QueryTimeoutError, StorageError, sqlite3.Error, and exceptions of the query.
        """
        if kind == "slow" and (
            self._slow.total() >= _MAX_SLOW or (client and self._slow[client] >= _MAX_SLOW_OF_CLIENT)
        ):
            raise BusyError("too many queries are waiting: try again in a moment")
        self._slow[client] += kind == "slow"
        try:
            async with self._turn(client, kind):
                return await self._run(served, question, kind)
        finally:
            self._slow[client] -= kind == "slow"
            if not self._slow[client]:
                del self._slow[client]

    def _turn(self, client: Holder | None, kind: Kind) -> AbstractAsyncContextManager[object]:
        """Return the context in which a query may run, so that no client delays all others."""
        if client is None:
            return nullcontext()
        return self._turns.setdefault((client, kind), asyncio.Semaphore(_AT_ONCE))

    async def _run(self, served: ServedSession, question: Callable[[Reader], Found], kind: Kind) -> Found:
        """Run a query in a thread."""
        if self._is_closed:
            raise StorageError(_ENDED)
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Found] = loop.create_future()
        call = _RunningQuery()
        timer: asyncio.TimerHandle | None = None

        def begin() -> None:
            nonlocal timer
            why = QueryTimeoutError(f"the query was cancelled after {self._limit_s:g} s: request less")
            timer = loop.call_later(self._limit_s, give_up, why)

        def give_up(why: StorageError) -> None:
            # The thread may be busy with something that cannot be interrupted.
            call.cancel()
            if not answer.done():
                answer.set_exception(why)

        def finish(found: Found | None, error: BaseException | None) -> None:
            self._unfinished.discard(give_up)
            if answer.done():
                return
            if error is not None:
                answer.set_exception(error)
            else:
                answer.set_result(cast(Found, found))

        def run() -> None:
            found = error = None
            try:
                found = self._answer(served, question, call, partial(loop.call_soon_threadsafe, begin))
            except BaseException as raised:
                error = raised
            # The loop may have ended.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(finish, found, error)

        self._unfinished.add(give_up)
        try:
            key = id(served) if served.copies else 0, kind
            if key not in self._workers:
                self._workers[key] = _Workers(kind, 1 if served.copies else _THREADS[kind])
            self._workers[key].submit(run)
            return await answer
        finally:
            if timer is not None:
                timer.cancel()

    def close(self) -> None:
        """Accept no more queries, and cancel the running and the waiting ones."""
        self._is_closed = True
        for workers in self._workers.values():
            workers.close()
        for give_up in self._unfinished:
            give_up(StorageError(_ENDED))

    def _answer(
        self,
        served: ServedSession,
        question: Callable[[Reader], Found],
        call: _RunningQuery,
        begin: Callable[[], object],
    ) -> Found:
        readers: dict[int, Reader] = self._own.__dict__.setdefault("readers", {})
        with using_copies(served.copies):
            # Spectators' delayed copies have the numbers of their sessions.
            reader = readers.get(id(served))
            if reader is None:
                reader = readers[id(served)] = Reader(served)
            try:
                reader.look()
                # The time limit does not include the wait for a thread.
                call.begin(reader.timeline.connection)
                begin()
                return question(reader)
            except sqlite3.Error as error:
                # SQLite's error code belongs to this thread's connection, so it is read here.
                raise original_error(error) from error
            finally:
                call.end()
