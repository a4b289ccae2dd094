"""Questions to the database, answered in threads, each for a limited time.

Quick ones (a picture, a window of a list), those that may take long (a filter) and those of browsers that
are told what is new have threads of their own: so nobody's filter makes others wait for their picture.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Literal, TypeVar, get_args

from kiebitz.cli.web.reader import Reader, Served
from kiebitz.storage.database.schema import StorageError
from kiebitz.storage.filters.sql import original_error

Found = TypeVar("Found")

Kind = Literal["quick", "slow", "news"]

_THREADS = {"quick": 2, "slow": 2, "news": 1}

_MAX_SLOW = 100
"""Maximum number of slow questions that wait for a thread. `Admission` limits the others."""


class TookTooLongError(StorageError):
    """A question that was given up; its sentence says so."""


class _Call:
    """A question in a thread, which may be given up."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self.is_late = False

    def begin(self, connection: sqlite3.Connection) -> None:
        """It is asked of this connection from here on."""
        with self._guard:
            self._connection = connection

    def end(self) -> None:
        """It is answered: nothing may be interrupted any more."""
        with self._guard:
            self._connection = None

    def give_up(self) -> None:
        """Interrupt it."""
        with self._guard:
            self.is_late = True
            if self._connection is not None:
                self._connection.interrupt()


class Desk:
    """Where questions are asked, for at most `limit_s` each."""

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._pools = {kind: ThreadPoolExecutor(_THREADS[kind], kind) for kind in get_args(Kind)}
        self._own = threading.local()
        self._answering: set[_Call] = set()
        self._slow = 0

    async def ask(self, served: Served, question: Callable[[Reader], Found], kind: Kind = "quick") -> Found:
        """The answer. Raises TookTooLongError, StorageError, sqlite3.Error, and what the question raises."""
        if kind == "slow" and self._slow >= _MAX_SLOW:
            raise TookTooLongError("too many questions are waiting here: try again in a moment")
        loop = asyncio.get_running_loop()
        call = _Call()
        self._slow += kind == "slow"
        timer: asyncio.TimerHandle | None = None

        def begin() -> None:
            nonlocal timer
            timer = loop.call_later(self._limit_s, call.give_up)

        try:
            pool = self._pools[kind]
            return await loop.run_in_executor(pool, self._answer, served, question, call, begin, loop)
        finally:
            self._slow -= kind == "slow"
            if timer is not None:
                timer.cancel()

    def close(self) -> None:
        """Take no more questions, and give up those that are being answered."""
        for pool in self._pools.values():
            pool.shutdown(wait=False, cancel_futures=True)
        for call in list(self._answering):
            call.give_up()

    def _answer(
        self,
        served: Served,
        question: Callable[[Reader], Found],
        call: _Call,
        begin: Callable[[], None],
        loop: asyncio.AbstractEventLoop,
    ) -> Found:
        readers: dict[int, Reader] = self._own.__dict__.setdefault("readers", {})
        reader = readers.get(served.number)
        if reader is None:
            reader = readers[served.number] = Reader(served)
        try:
            reader.look()
            # Its time counts from here: what it waited for a thread is not its own fault.
            call.begin(reader.timeline.connection)
            self._answering.add(call)
            loop.call_soon_threadsafe(begin)
            return question(reader)
        except sqlite3.Error as error:
            if call.is_late:
                raise TookTooLongError(
                    f"this takes longer than {self._limit_s:g} s here and was given up: ask for less"
                ) from error
            # Each thread keeps its own: elsewhere it would not be known any more.
            raise original_error(error) from error
        finally:
            self._answering.discard(call)
            call.end()
