"""Completion of recordings whose processes ended before their journal was recorded."""

from __future__ import annotations

import os
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType

from kiebitz.dissectors.registry import ProtocolClashError, protocol_files
from kiebitz.services.decode_as import DecodeAsError, parse_decode_as
from kiebitz.services.progress import OnProgress, counting
from kiebitz.services.protocol_files import add_received
from kiebitz.services.recording.note import Note, decode_note
from kiebitz.services.recording.recovery import recover_journal
from kiebitz.services.recording.task import Backlog, Report, Task, sessions_of
from kiebitz.services.recording.unfinished import INSPECTION_S, recovery_command, unfinished
from kiebitz.services.standard_streams import is_stderr_terminal, print_error_line
from kiebitz.services.supervision.journal_folder import JournalFolder
from kiebitz.services.supervision.supervisor import start_connected
from kiebitz.storage.database.schema import StorageError

_FEW = 1000
"""Number of messages below which the rest is recorded without a notice."""


class Remaining:
    """Reports the number of messages left to record if they are many; on a terminal with a progress bar."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._most = 0
        self._on_progress: OnProgress | None = None

    def __enter__(self) -> Remaining:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        self._stack.close()

    def show(self, messages: int) -> None:
        """Report the approximate number of messages left."""
        if not self._most and messages < _FEW:
            return
        if not self._most:
            print_error_line(
                f"kiebitz: about {messages:,} messages are left to be recorded; Ctrl-C postpones it"
            )
        self._most = max(self._most, messages, 1)
        if not is_stderr_terminal():
            return
        if self._on_progress is None:
            self._on_progress = self._stack.enter_context(counting("recording", "messages"))
        self._on_progress(self._most - messages, self._most)


def resume_recording(folder: str, database: str | None = None, *, is_anonymized: bool = False) -> bool:
    """Record what is left in a folder; return True if everything is recorded, otherwise it remains there.

    With a `database` that is not the recording's, what its sessions lack is recorded there; likewise if it
    `is_anonymized` only from now on. Raises StorageError, and KeyboardInterrupt.
    """
    try:
        journal_folder, text = _hold(Path(folder).absolute())
    except FileNotFoundError as error:
        raise StorageError(f"{folder}: this folder contains no unfinished recording") from error
    except BlockingIOError as error:
        raise StorageError(f"{folder}: this recording is still running") from error
    except OSError as error:
        raise StorageError(f"{folder}: it cannot be resumed: {error.strerror}") from error
    journal_folder.keep()
    try:
        task = _task(journal_folder, text, folder, database, is_anonymized)
        if is_recorded := _record(task):
            journal_folder.discard_recorded()
    finally:
        journal_folder.discard()
    return is_recorded


def _hold(folder: Path) -> tuple[JournalFolder, bytes | None]:
    """Hold a folder, retrying once if another command is just inspecting it."""
    try:
        return JournalFolder.left(folder)
    except BlockingIOError:
        time.sleep(INSPECTION_S)
        return JournalFolder.left(folder)


def recover(database: str) -> None:
    """Recover the unfinished recordings into `database`. Raises StorageError if one of them remains."""
    for folder in list(unfinished(database, INSPECTION_S)):
        print_error_line(f"kiebitz: a recording into {database} is unfinished; it is recovered first")
        if not resume_recording(folder):
            raise StorageError(
                f"{folder}: this recording into {database} could not be recovered; "
                f"{recovery_command(folder)} tries again; remove the folder to discard it, or name another "
                "database"
            )


def _record(task: Task) -> bool:
    process, connection = start_connected(recover_journal, task)
    try:
        connection.send(None)
        with Remaining() as remaining, suppress(EOFError, OSError):
            while True:
                report: Report = connection.recv()
                if isinstance(report, Backlog):
                    remaining.show(report.messages)
        process.join()
    except KeyboardInterrupt:
        process.kill()
        process.join()
        raise
    finally:
        connection.close()
    return process.exitcode == 0


def _task(
    journal_folder: JournalFolder, text: bytes | None, folder: str, database: str | None, is_anonymized: bool
) -> Task:
    note = None if text is None else decode_note(text, folder)
    if note is None and database is None:
        raise StorageError(
            f"{folder}: its note is missing: give the database with -w, and --anonymize if "
            "it must be anonymized"
        )
    if note is None:
        assert database is not None
        note = Note(os.path.basename(database), "", "recovered", None, (), None, (), False, is_rest=True)
    try:
        add_received(note.protocol_files)
        parse_decode_as(note.decode_as)
    except (DecodeAsError, ProtocolClashError) as error:
        # A plug-in may have been uninstalled.
        raise StorageError(f"{folder}: it cannot be resumed: {error}") from error
    try:
        there = os.stat(journal_folder.journal, follow_symlinks=False)
        identity = there.st_dev, there.st_ino
    except OSError:
        # The reader reports it if it matters.
        identity = 0, 0
    beside = os.path.dirname(os.path.normpath(folder))
    is_elsewhere = database is not None and not any(
        os.path.abspath(database) == os.path.abspath(os.path.join(beside, name)) for name in note.databases
    )
    return Task(
        journal_folder.journal,
        identity,
        database if database is not None and is_elsewhere else os.path.join(beside, note.database),
        note.source,
        note.name,
        None if is_elsewhere else note.limits,
        note.decode_as,
        None,
        sessions_of(note, beside),
        started_ns=note.started_ns,
        is_anonymized=note.is_anonymized or is_anonymized,
        is_left=True,
        is_rest=note.is_rest or is_elsewhere,
        protocol_files=note.protocol_files or protocol_files(),
    )
