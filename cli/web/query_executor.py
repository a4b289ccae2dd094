"""Execution of database queries in threads, with a time limit.

There are separate threads for quick queries (a picture, a window of a list), slow ones (filters) and event
streams, so that slow filters do not delay pictures.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Literal, TypeVar, get_args

from kiebitz.cli.web.reader import Reader, ServedSession
from kiebitz.storage.database.schema import StorageError
from kiebitz.storage.filters.sql import original_error

Found = TypeVar("Found")

Kind = Literal["quick", "slow", "news"]

_THREADS = {"quick": 2, "slow": 2, "news": 1}

_MAX_SLOW = 100
"""Maximum number of slow queries that wait for a thread. `Admission` limits the others."""


class QueryTimeoutError(StorageError):
    """A query cancelled at the time limit or refused because too many wait."""


class _RunningQuery:
    """A query in a thread, which can be cancelled."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self.is_late = False

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
            self.is_late = True
            if self._connection is not None:
                self._connection.interrupt()


class QueryExecutor:
    """Runs queries in threads, each for at most `limit_s`."""

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._pools = {kind: ThreadPoolExecutor(_THREADS[kind], kind) for kind in get_args(Kind)}
        self._own = threading.local()
        self._answering: set[_RunningQuery] = set()
        self._slow = 0

    async def ask(
        self, served: ServedSession, question: Callable[[Reader], Found], kind: Kind = "quick"
    ) -> Found:
        """Run a query and return its result.

        Raises QueryTimeoutError, StorageError, sqlite3.Error, and exceptions of the query.
        """
        if kind == "slow" and self._slow >= _MAX_SLOW:
            raise QueryTimeoutError("too many queries are waiting: try again in a moment")
        loop = asyncio.get_running_loop()
        call = _RunningQuery()
        self._slow += kind == "slow"
        timer: asyncio.TimerHandle | None = None

        def begin() -> None:
            nonlocal timer
            timer = loop.call_later(self._limit_s, call.cancel)

        try:
            pool = self._pools[kind]
            return await loop.run_in_executor(pool, self._answer, served, question, call, begin, loop)
        finally:
            self._slow -= kind == "slow"
            if timer is not None:
                timer.cancel()

    def close(self) -> None:
        """Accept no more queries, and cancel the running ones."""
        for pool in self._pools.values():
            pool.shutdown(wait=False, cancel_futures=True)
        for call in list(self._answering):
            call.cancel()

    def _answer(
        self,
        served: ServedSession,
        question: Callable[[Reader], Found],
        call: _RunningQuery,
        begin: Callable[[], None],
        loop: asyncio.AbstractEventLoop,
    ) -> Found:
        readers: dict[int, Reader] = self._own.__dict__.setdefault("readers", {})
        # Spectators' delayed copies have the numbers of their sessions.
        reader = readers.get(id(served))
        if reader is None:
            reader = readers[id(served)] = Reader(served)
        try:
            reader.look()
            # The time limit does not include the wait for a thread.
            call.begin(reader.timeline.connection)
            self._answering.add(call)
            loop.call_soon_threadsafe(begin)
            return question(reader)
        except sqlite3.Error as error:
            if call.is_late:
                raise QueryTimeoutError(
                    f"the query was cancelled after {self._limit_s:g} s: request less"
                ) from error
            # SQLite's error code belongs to this thread's connection, so it is read here.
            raise original_error(error) from error
        finally:
            self._answering.discard(call)
            call.end()
