"""The supervisor of a journal and of the child process that reads it."""

from __future__ import annotations

import asyncio
import multiprocessing
import signal
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any, ClassVar, Concatenate, ParamSpec, Self

from kiebitz.proxy.journal.follower import start_child
from kiebitz.proxy.journal.writer import JournalWriter
from kiebitz.proxy.system.deferred_signals import signals_handled
from kiebitz.services.supervision.journal_folder import JournalFolder
from kiebitz.storage.database.schema import StorageError
from kiebitz.storage.recording.disk_space import has_journal_space

_CHECK_INTERVAL_S = 0.1
"""Interval (seconds) of checks on the child."""

_DOUBLE_SIGNAL_S = 1.0
"""Two signals within this time (seconds) count as one: some programs, such as timeout(1), send two."""

P = ParamSpec("P")


def start_connected(
    target: Callable[Concatenate[Connection, P], None], *args: P.args, **kwargs: P.kwargs
) -> tuple[SpawnProcess, Connection]:
    """Run `target` in a child process with one end of a pipe; return the child and the other end.

    Raises OSError.
    """
    connection, theirs = multiprocessing.Pipe()
    with theirs:
        return start_child(target, theirs, *args, **kwargs), connection


class Supervisor(ABC):
    """A journal next to a database, and the child process that reads it from `start` on.

    If the child dies, it is restarted, and the journal keeps what arrives meanwhile. A child that dies before
    it has made progress would fail again: then the journal is abandoned. A journal that was not read to its
    end remains on disk. As a context, it ends with `discard`. Raises StorageError.
    """

    restarting: str
    """Sentence that reports a restart."""

    final_statuses: ClassVar[tuple[int, ...]]
    """Exit statuses after which another child would fail in the same way."""

    def __init__(
        self,
        database: str,
        beside: Path,
        make_journal: Callable[..., JournalWriter],
        on_trouble: Callable[[str], None],
        tell: Callable[[str], None],
        note: bytes | None = None,
    ) -> None:
        self._notify = tell
        self._process: SpawnProcess | None = None
        self._may_restart = True
        self._has_given_up = False
        self._is_ending = False
        self._is_over = False
        """True once the journal is not needed any more."""
        self._progress: AbstractContextManager[object] = nullcontext()
        """Progress display of `finish`."""
        try:
            self._folder = JournalFolder(beside)
        except OSError as error:
            raise StorageError(f"{database}: no files can be created next to it: {error.strerror}") from error
        try:
            if note is not None:
                self._folder.note(note)
            self.journal = make_journal(
                self._folder.journal, on_trouble=on_trouble, has_room=lambda: has_journal_space(database)
            )
        except BaseException:
            self._folder.discard()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.discard()

    def attend(self, loop: asyncio.AbstractEventLoop) -> None:
        """Check the child regularly on this loop."""

        def look() -> None:
            self.look()
            self._timer = loop.call_later(_CHECK_INTERVAL_S, look)

        self._timer = loop.call_later(_CHECK_INTERVAL_S, look)

    def leave(self) -> None:
        """Stop checking the child."""
        self._timer.cancel()

    def look(self) -> None:
        """Receive the child's reports, and restart it if it has died."""
        if self._process is None or self._has_given_up:
            return
        while self._connection.poll() and self._receive():
            pass
        if self._process.exitcode is not None:
            self._restart(self._exit_status())

    def finish(self) -> bool:
        """Wait until the child has read the closed journal; return True if it has read everything.

        Ctrl-C raises KeyboardInterrupt, but is ignored in the first second. `discard` then kills the child.
        """
        self._is_ending = True
        if self._has_given_up:
            return False
        with self._progress:
            end = time.monotonic() + _DOUBLE_SIGNAL_S
            with signals_handled(signal.SIGINT, handler=signal.SIG_IGN):
                self._send_end()
                while (
                    (left := end - time.monotonic()) > 0 and self._connection.poll(left) and self._receive()
                ):
                    pass
            while not self._has_given_up:
                self._send_end()
                if (status := self._exit_status()) == 0:
                    self._is_over = True
                    return True
                self._restart(status)
        return False

    def discard(self) -> None:
        """Kill the child if it has not finished; remove the journal if it is not needed any more."""
        if self._process is not None and self._process.exitcode is None:
            # It would wait for this process's end, and this process for its.
            self._process.kill()
            self._process.join()
        if not self._is_over and self.journal.streams:
            self._folder.keep()
            self._report_kept()
        self._folder.discard()

    @abstractmethod
    def _start_child(self) -> tuple[SpawnProcess, Connection]:
        """Start a child with a pipe. Raises OSError, StorageError."""

    @abstractmethod
    def _take(self, report: Any) -> None:
        """Process a report of the child."""

    @abstractmethod
    def _report_given_up(self, status: int | None) -> None:
        """Report that the child is not restarted."""

    @abstractmethod
    def _report_kept(self) -> None:
        """Report that the journal remains on disk."""

    def _start(self) -> None:
        self._process, self._connection = self._start_child()

    def _send_end(self) -> None:
        """Tell the child that the journal is complete."""
        with suppress(OSError):
            self._connection.send(None)

    def _receive(self) -> bool:
        """Process the child's next report, waiting for it; return False if there is none."""
        try:
            report = self._connection.recv()
        except (EOFError, OSError):
            return False
        self._take(report)
        return True

    def _exit_status(self) -> int | None:
        """Receive the child's remaining reports and wait for its exit."""
        assert self._process is not None
        while self._receive():
            pass
        self._connection.close()
        self._process.join()
        return self._process.exitcode

    def _restart(self, status: int | None) -> None:
        """Start another child after one that has died, or give up."""
        if self._may_restart and status not in self.final_statuses:
            self._may_restart = False
            self._notify(self.restarting)
            with suppress(OSError, StorageError):
                self._start()
                return
        self._has_given_up = True
        self.journal.abandon()
        self._report_given_up(status)
