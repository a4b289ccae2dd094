"""The recorder of a live session: the forwarder writes a journal, and a child process records it."""

from __future__ import annotations

import os
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path

from kiebitz.dissectors.registry import protocol_files
from kiebitz.proxy.journal.writer import JournalWriter
from kiebitz.proxy.system.deferred_signals import POLL_INTERVAL_S, Interrupted, check_signals
from kiebitz.services.recording.note import Note, Part, decode_note, recovery_command, refuse_if_unfinished
from kiebitz.services.recording.resume import Remaining
from kiebitz.services.recording.rotation import Limits
from kiebitz.services.recording.task import (
    FULL,
    GAVE_UP,
    Backlog,
    Begun,
    Continued,
    OutputFailed,
    Refused,
    Report,
    Sentence,
    Task,
    ViewFactory,
)
from kiebitz.services.recording.worker import record_journal
from kiebitz.services.sessions import default_name
from kiebitz.services.standard_streams import print_error_line as tell_on_stderr
from kiebitz.services.supervision.journal_folder import remove_leftovers
from kiebitz.services.supervision.supervisor import Supervisor, start_connected
from kiebitz.storage.database.schema import StorageError

_CANCEL_TIMEOUT_S = 2.0
"""Longest time (seconds) for a recorder to end when its start is interrupted."""


class RecorderSupervisor(Supervisor):
    """A journal next to `database`, and from `start` on the process that records it there.

    A restarted process resumes the session. An incompletely recorded journal can be recovered by another
    command.

    `on_trouble` gets a sentence when the journal cannot be written, and when it can again. All other
    sentences go to `tell`, or else to stderr. `forwarder` names the program that continues in any case.
    `make` makes its journal, as that of a tap does. Raises StorageError.
    """

    final_statuses = (FULL, GAVE_UP)

    def __init__(
        self,
        database: str,
        *,
        on_trouble: Callable[[str], None],
        tell: Callable[[str], None] | None = None,
        forwarder: str = "the relay",
        make: Callable[..., JournalWriter] = JournalWriter,
    ) -> None:
        self._database = database
        self._reports_sentences = tell is not None
        self._forwarder = forwarder
        self.restarting = (
            "kiebitz: the recorder has died and is restarted; "
            f"{forwarder} continues, and its data is kept to be recorded later"
        )
        self.has_output_failed = False
        """True once the process could not write to standard output."""
        self.streams_before = 0
        """Number of streams that the database had before this session's, known from `start` on."""
        refuse_if_unfinished(database)
        super().__init__(database, Path(database).absolute(), make, on_trouble, tell or tell_on_stderr)
        self._remaining = self._progress = Remaining()

    def start(
        self,
        source: str,
        *,
        limits: Limits | None = None,
        decode_as: tuple[str, ...] = (),
        view: ViewFactory | None = None,
        max_size: int | None = None,
        is_anonymized: bool = False,
        name: str | None = None,
    ) -> None:
        """Start recording a session from `source`; it is open when this returns.

        Args:
            source: The relay's modes.
            limits: When to continue in another database, named after the given one.
            decode_as: Values of the option -d.
            view: Makes the display of the findings in the process.
            max_size: Maximum size of all databases and the journal, in bytes; then the recording ends.
            is_anonymized: Record pseudonyms. No other process can resume such a session.
            name: Name of the session; by default the command and the time.

        Raises:
            StorageError: The session cannot be opened.
            Interrupted: A deferred signal arrived. Then no session is left without an end.
        """
        note = Note(
            os.path.basename(self._database),
            source,
            name or default_name("relay"),
            None,
            (),
            limits,
            decode_as,
            is_anonymized,
            protocol_files=protocol_files(),
        )
        folder, journal = os.path.dirname(self._database), self._folder.journal
        self._task = Task(journal, self.journal.identity, self._database, folder, note, view, max_size)
        self._may_restart = not is_anonymized
        self._start()
        try:
            while not self._connection.poll(POLL_INTERVAL_S):
                check_signals()
            report: Report = self._connection.recv()
        except EOFError:
            report = Refused("the recorder did not start")
        except Interrupted:
            # Let the process end, closing the session if it exists.
            assert self._process is not None
            self.journal.close()
            self._send_end()
            self._process.join(_CANCEL_TIMEOUT_S)
            raise
        if isinstance(report, Refused):
            raise StorageError(report.reason)
        assert isinstance(report, Begun)
        self.streams_before = report.streams_before
        self._goes_on_in(report)
        remove_leftovers(Path(self._database).absolute())

    @property
    def folder(self) -> Path:
        """The private folder of the journal."""
        return self._folder.folder

    @property
    def session(self) -> str:
        """The session being recorded, as `DB:N`."""
        database, number = self._task.sessions[-1]
        return f"{database}:{number}"

    def _start_child(self) -> tuple[SpawnProcess, Connection]:
        # A report of the last session may be lost.
        text = self._folder.read_note()
        if text is not None:
            note = decode_note(text, self._folder.folder)
            self._task = self._task.with_note(parts=note.parts, started_ns=note.started_ns)
        return start_connected(record_journal, self._task, self._reports_sentences)

    def _take(self, report: Report) -> None:
        if isinstance(report, Sentence):
            self._notify(report.sentence)
        elif isinstance(report, Backlog):
            self._remaining.show(report.messages)
        elif isinstance(report, OutputFailed):
            self.has_output_failed = True
        else:
            self._may_restart = not self._task.note.is_anonymized
        if isinstance(report, Continued):
            self._goes_on_in(report)

    def _goes_on_in(self, report: Begun | Continued) -> None:
        """Remember the session that another process would resume."""
        part = Part(os.path.basename(report.database), report.session)
        self._task = self._task.with_note(parts=(*self._task.note.parts, part))

    def _report_given_up(self, status: int | None) -> None:
        if status == FULL:
            # The process has reported it, and the rest of the journal would not fit either.
            self._is_over = True
            self._folder.discard_journal()
            return
        if not self._is_ending:
            self._notify(
                f"kiebitz: the recorder has died; {self._forwarder} continues, but nothing more is recorded. "
                "Restart it to record again."
            )
        if status != GAVE_UP:
            # Otherwise the process has reported what is not recorded.
            self._notify(f"kiebitz: the recorder has died; {self._kept()}")

    def _report_kept(self) -> None:
        if not self._has_given_up:
            self._notify(f"kiebitz: interrupted: {self._kept()}")

    def _kept(self) -> str:
        folder = str(Path(self._database).parent / self._folder.folder.name)
        names = " with the real names" if self._task.note.is_anonymized else ""
        return f"unrecorded data is kept{names} in {folder}; {recovery_command(folder)} records it"
