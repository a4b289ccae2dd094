"""The recorder's process of a live session: its journal, its start, its end, and another one if it dies.

The forwarder writes `RecorderProcess.journal`; the process, which runs `worker`, records it.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from multiprocessing.context import SpawnProcess
from pathlib import Path
from types import TracebackType

import msgspec

from kiebitz.proxy.journal.follower import start_child
from kiebitz.proxy.journal.writer import JournalWriter
from kiebitz.proxy.system.deferred_signals import POLL_INTERVAL_S, Interrupted, check_signals
from kiebitz.proxy.taps.tee_journal import TeeJournal
from kiebitz.services.recording.journal_folder import Spool, tidy
from kiebitz.services.recording.note import decode_note
from kiebitz.services.recording.resume import Remaining
from kiebitz.services.recording.rotation import Limits
from kiebitz.services.recording.task import (
    FULL,
    GAVE_UP,
    Begun,
    GoesOn,
    Left,
    OutputFailed,
    Refused,
    Report,
    Said,
    Task,
    ViewFactory,
    sessions_of,
)
from kiebitz.services.recording.unfinished import recovering_command, refuse_if_unfinished
from kiebitz.services.recording.worker import record_journal
from kiebitz.services.standard_streams import tell
from kiebitz.storage.database.schema import StorageError
from kiebitz.storage.recording.disk_space import may_wait_beside

_ENDED_TWICE_S = 1.0
"""Two signals in so short a time are one."""

_CALL_OFF_S = 2.0
"""So long a recorder may take to end when it is called off: to be loaded, or to close an empty session."""


class RecorderProcess:
    """A journal beside `database`, and from `start` on the process that records it there.

    When the process dies, another one carries on its session, and what is forwarded meanwhile waits in the
    journal. One that dies before it has committed anything would meet the same end again and again: then the
    journal is abandoned, and nothing more is recorded. A journal that is not recorded whole stays on disk,
    and another command recovers it.

    `on_trouble` is told in a sentence when the journal cannot be written, and when it can again. With `tell`
    whatever else there is to say goes there; without, to stderr. `forwarder` is what goes on whatever
    happens, in words. All that is journaled goes into `tap`, too. As a context it ends with `discard`. Raises
    StorageError.
    """

    def __init__(
        self,
        database: str,
        *,
        on_trouble: Callable[[str], None],
        tell: Callable[[str], None] | None = None,
        forwarder: str = "the relay",
        tap: JournalWriter | None = None,
    ) -> None:
        self._database = database
        self._own_tell = tell
        self._forwarder = forwarder
        self._process: SpawnProcess | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._may_start_again = True
        self._has_given_up = False
        self._is_over = False
        """True once the journal is of no more use."""
        self.has_output_failed = False
        """True once the process could not write to standard output."""
        self.streams_before = 0
        """From `start` on, how many streams the database had before this session's."""
        self._remaining = Remaining()
        refuse_if_unfinished(database)
        try:
            self._file = Path(database).absolute()
            self._spool = Spool(self._file)
        except OSError as error:
            raise StorageError(f"{database}: nothing can be written beside it: {error.strerror}") from error
        try:
            make = JournalWriter if tap is None else partial(TeeJournal, tap=tap)
            self.journal: JournalWriter = make(
                self._spool.journal,
                on_trouble=on_trouble,
                has_room=lambda: may_wait_beside(database),
            )
        except BaseException:
            self._spool.discard()
            raise

    def __enter__(self) -> RecorderProcess:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        self.discard()

    def discard(self) -> None:
        """Kill the process if it was not finished, and remove the journal if all of it is recorded."""
        if self._process is not None and self._process.exitcode is None:
            # Else it would wait for the end of this process, and this process for its.
            self._process.kill()
            self._process.join()
        if not self._is_over and self.journal.streams:
            self._spool.keep()
        self._spool.discard()

    def start(
        self,
        source: str,
        *,
        limits: Limits | None = None,
        decode_as: tuple[str, ...] = (),
        view: ViewFactory | None = None,
        max_size: int | None = None,
        is_anonymized: bool = False,
    ) -> None:
        """Start recording a session from `source`; it is open when this returns. Raises StorageError.

        Raises Interrupted if a signal that is held comes meanwhile; then no session is left without an end.
        With `limits` it goes on in one database after the other, named after the one that was given. When all
        of them and the journal take `max_size` (bytes), nothing more is recorded. No other process carries on
        what is anonymized. The process shows its findings in the `view`, if there is one.
        """
        name = f"relay {time.strftime('%Y-%m-%d %H:%M:%S')}"
        self._task = Task(
            self._spool.journal,
            self.journal.identity,
            self._database,
            source,
            name,
            limits,
            decode_as,
            view,
            max_size=max_size,
            is_anonymized=is_anonymized,
        )
        self._may_start_again = not is_anonymized
        self._spawn(self._task)
        try:
            while not self._connection.poll(POLL_INTERVAL_S):
                check_signals()
            report: Report = self._connection.recv()
        except EOFError:
            report = Refused("the recorder did not start")
        except Interrupted:
            self._call_off()
            raise
        if isinstance(report, Refused):
            raise StorageError(report.reason)
        assert isinstance(report, Begun)
        self.streams_before = report.streams_before
        self._goes_on_in(report)
        tidy(self._file)

    @property
    def folder(self) -> Path:
        """The folder in which the journal is, ours alone."""
        return self._spool.folder

    @property
    def session(self) -> str:
        """The session that is recorded, as commands take it: `DB:N`."""
        database, number = self._task.sessions[-1]
        return f"{database}:{number}"

    def attend(self, loop: asyncio.AbstractEventLoop) -> None:
        """From here on, hear the process on this loop, and start another one if it dies."""
        self._loop = loop
        self._watch()

    def leave(self) -> None:
        """Hear it no more on the loop: what it has to say is left for `finish`."""
        self._unwatch()
        self._loop = None
        # The loop does not let a file block that it watches.
        os.set_blocking(self._connection.fileno(), True)

    def finish(self) -> bool:
        """Wait until all is recorded, the journal being closed; whether it is.

        Ctrl-C ends the process at once, and keeps the journal for `carry_on`: KeyboardInterrupt is raised.
        """
        try:
            with self._remaining:
                self._hear_for(_ENDED_TWICE_S)
                while not self._has_given_up:
                    with suppress(OSError):
                        # From here on the process gives up what it cannot write.
                        self._connection.send(None)
                    if self._exit_status() == 0:
                        self._is_over = True
                        return True
                    self._start_again()
        except KeyboardInterrupt:
            self._keep()
            raise
        return False

    def _hear_for(self, seconds: float) -> None:
        """Hear the process for so long, or to its end.

        Ctrl-C means nothing meanwhile: some, such as timeout(1), send it twice.
        """
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        end = time.monotonic() + seconds
        try:
            with suppress(OSError):
                self._connection.send(None)
            while (left := end - time.monotonic()) > 0 and self._connection.poll(left) and self._hear():
                pass
        finally:
            signal.signal(signal.SIGINT, before)

    def _keep(self) -> None:
        """End the process at once, and say where the journal is."""
        assert self._process is not None
        self._process.kill()
        self._process.join()
        if not self._has_given_up:
            self._tell(f"kiebitz: ended at once: {self._kept()}")

    def _kept(self) -> str:
        folder = str(Path(self._database).parent / self._spool.folder.name)
        names = ", names and all, as it was sent," if self._task.is_anonymized else ""
        return f"what is not recorded yet is kept{names} in {folder}; {recovering_command(folder)} records it"

    def _call_off(self) -> None:
        """Let the process end that is about to open a session, or has just done so and will close it."""
        assert self._process is not None
        self.journal.close()
        with suppress(OSError):
            self._connection.send(None)
        self._process.join(_CALL_OFF_S)

    def _spawn(self, task: Task) -> None:
        self._connection, theirs = multiprocessing.Pipe()
        # This holds up the loop for a millisecond or two; from a thread it would, too.
        self._process = start_child(record_journal, task, theirs, self._own_tell is not None)
        theirs.close()

    def _watch(self) -> None:
        assert self._loop is not None
        assert self._process is not None
        self._loop.add_reader(self._connection.fileno(), self._hear)
        # When the pipe is at its end the process is not: it has an exit status yet to come.
        self._loop.add_reader(self._process.sentinel, self._died)

    def _unwatch(self) -> None:
        if self._loop is not None and self._process is not None and not self._has_given_up:
            self._loop.remove_reader(self._connection.fileno())
            self._loop.remove_reader(self._process.sentinel)

    def _hear(self) -> bool:
        """Take what the process reports next, waiting for it; False if nothing more comes."""
        try:
            report: Report = self._connection.recv()
        except (EOFError, OSError):
            if self._loop is not None:
                self._loop.remove_reader(self._connection.fileno())
            return False
        if isinstance(report, Said):
            self._tell(report.sentence)
        elif isinstance(report, Left):
            self._remaining.show(report.messages)
        elif isinstance(report, OutputFailed):
            self.has_output_failed = True
        else:
            self._may_start_again = not self._task.is_anonymized
        if isinstance(report, GoesOn):
            self._goes_on_in(report)
        return True

    def _goes_on_in(self, report: Begun | GoesOn) -> None:
        """Another process would have to carry on from here."""
        sessions = (*self._task.sessions, (report.database, report.session))
        self._task = msgspec.structs.replace(self._task, sessions=sessions)

    def _exit_status(self) -> int | None:
        """Hear the process to its end, and wait for that."""
        assert self._process is not None
        while self._hear():
            pass
        self._connection.close()
        self._process.join()
        return self._process.exitcode

    def _died(self) -> None:
        self._unwatch()
        self._exit_status()
        self._start_again()
        if not self._has_given_up:
            self._watch()

    def _start_again(self) -> None:
        """Let another process carry on after one that has died, or give up."""
        assert self._process is not None
        if self._process.exitcode == FULL:
            # It has said so itself, and what is in the journal would not fit in either.
            self._has_given_up = self._is_over = True
            self.journal.abandon()
            self._spool.discard_journal()
            return
        if self._may_start_again and self._process.exitcode != GAVE_UP:
            self._may_start_again = False
            self._tell(
                "kiebitz: the recorder has died and is started again; "
                f"{self._forwarder} goes on, and what it passes on waits to be recorded"
            )
            with suppress(OSError, StorageError):
                self._read_note()
                self._spawn(self._task)
                return
        self._has_given_up = True
        self.journal.abandon()
        if self._loop is not None:
            self._tell(
                f"kiebitz: the recorder has died; {self._forwarder} goes on, but nothing more is recorded. "
                "Stop it and start again to record."
            )
        if self._process.exitcode != GAVE_UP:
            # Else it has said itself what is not recorded.
            self._tell(f"kiebitz: the recorder has died; {self._kept()}")

    def _read_note(self) -> None:
        """Read which sessions there are: a report of the last one may be lost.

        Raises OSError, StorageError.
        """
        text = self._spool.read_note()
        if text is not None:
            note = decode_note(text, self._spool.folder)
            folder = os.path.dirname(self._database)
            self._task = msgspec.structs.replace(
                self._task, sessions=sessions_of(note, folder), started_ns=note.started_ns
            )

    def _tell(self, sentence: str) -> None:
        if self._own_tell is not None:
            self._own_tell(sentence)
        else:
            tell(sentence)
