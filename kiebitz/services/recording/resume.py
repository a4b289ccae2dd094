"""Completion of recordings whose processes ended before their journal was recorded.

The process that records what killed or interrupted processes have left in a journal.

It resumes the recording's last session if possible. It cannot if another session has begun since, if its
database is gone, or if it is anonymized, as the pseudonyms are lost. Then everything that the sessions lack
becomes a session of its own, anonymized anew if they were.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, suppress
from multiprocessing.connection import Connection
from pathlib import Path

import msgspec

from kiebitz.dissectors.model import Altered, Chunk, Direction, Gap, Item
from kiebitz.dissectors.registry import ProtocolClashError, protocol_files
from kiebitz.proxy.journal.follower import lower_priority, read_rest
from kiebitz.proxy.journal.reader import JournalError, JournalReader
from kiebitz.services.decode_as import DecodeAsError, parse_decode_as
from kiebitz.services.faults import infrequent_gc, reporting_faults
from kiebitz.services.progress import OnProgress, counting
from kiebitz.services.protocol_files import add_received
from kiebitz.services.recording.note import (
    INSPECTION_S,
    Note,
    NoteFile,
    decode_note,
    recovery_command,
    unfinished,
)
from kiebitz.services.recording.task import (
    GAVE_UP,
    Backlog,
    Report,
    Task,
    sentence_reporter,
)
from kiebitz.services.recording.worker import Recording, is_ended, new_recorder, resume
from kiebitz.services.standard_streams import is_stderr_terminal, print_error_line
from kiebitz.services.supervision.journal_folder import JournalFolder, hold
from kiebitz.services.supervision.supervisor import start_connected
from kiebitz.storage.database.opening import open_existing, open_to_change
from kiebitz.storage.database.recorder_lock import exclusive_connection
from kiebitz.storage.database.schema import StorageError
from kiebitz.storage.read.timeline import Timeline, sessions

_END = (
    "UPDATE sessions SET ended_ns = max(started_ns, coalesce((SELECT max(c.ts_ns) FROM chunks AS c"
    " JOIN streams AS s ON s.id = c.stream_id WHERE s.session_id = sessions.id), 0)) WHERE id = ?"
)
"""Ends a session that will not be resumed, at the time of its last bytes."""

StreamDirection = tuple[int, Direction]
"""A direction of a stream, by the stream's number in the journal."""


@reporting_faults
@infrequent_gc()
def recover_journal(parent: Connection, task: Task) -> None:
    """Record the rest of a journal without a writer; run by `start_connected`.

    Sends reports to `parent`; sentences go to stderr. Raises SystemExit with `GAVE_UP` if something of the
    journal remains.
    """
    lower_priority()
    add_received(task.note.protocol_files)
    folder = hold(task.journal.parent)
    tell = sentence_reporter(None)
    for database in {*task.databases}:
        # Opening rolls back the recorder's unfinished write; an unreadable database is reported later.
        with suppress(StorageError):
            open_to_change(database).close()
    try:
        if not (task.note.is_rest or task.note.is_anonymized):
            try:
                resumed = resume(task, folder, parent, tell)
            except StorageError as error:
                tell(f"kiebitz: {error}; what it lacks becomes a session of its own")
            else:
                if resumed is not None:
                    recording, reader, tables = resumed
                    recording.run(read_rest(reader), tables)
                    # A recorder may have died after beginning one session and before ending the previous.
                    _end_sessions(task.sessions[:-1], task.note.started_ns)
                return
        # An ended session is complete: its recorder was killed before it removed the journal.
        if not (task.sessions and is_ended(*task.sessions[-1], task.note.started_ns)):
            _record_rest(task, folder, parent, tell)
    except (StorageError, JournalError) as error:
        tell(f"kiebitz: {error}")
        raise SystemExit(GAVE_UP) from error


def _record_rest(task: Task, folder: int, parent: Connection, tell: Callable[[str], None]) -> None:
    """Record everything that the sessions of a task lack as a session of its own."""
    lacking = _MissingItems(task.sessions, task.note.started_ns)
    recorder = new_recorder(task.note, task.database, " (rest)")
    note = NoteFile(folder, task.note)
    if os.path.abspath(os.path.dirname(recorder.path)) == str(task.journal.parent.parent):
        # If this recovery is killed too, the next one continues from here.
        note.add(recorder.path, recorder.session_id, is_rest=True)
    before = next(recorder.stream_ids) - 1
    reader = JournalReader(task.journal, base=before, skip=None, identity=task.identity)
    recording = Recording(task, folder, note, recorder, reader, parent, tell)
    recording.run([*lacking.of(items, before)] for items in read_rest(reader))
    _end_sessions(task.sessions, task.note.started_ns)


def _end_sessions(recorded: Sequence[tuple[str, int]], started_ns: int | None) -> None:
    """End the sessions that are open, the first of which began at `started_ns`."""
    for place, (database, number) in enumerate(recorded):
        if is_ended(database, number, None if place else started_ns) is False:
            with suppress(StorageError), exclusive_connection(database) as connection, connection:
                connection.execute(_END, (number,))


class _MissingItems:
    """Selects the items that `recorded` sessions lack.

    It compares offsets, which are the same in an anonymized session. Sessions that did not begin at
    `started_ns` belong to other recordings. Raises StorageError.
    """

    def __init__(self, recorded: Sequence[tuple[str, int]], started_ns: int | None) -> None:
        self._ends: dict[StreamDirection, int] = {}
        """Number of recorded bytes of each direction."""
        self._over: dict[int, bool] = {}
        """The recorded streams; True if their end is recorded."""
        self._begun: set[StreamDirection] = set()
        for database, number in recorded:
            if not os.path.exists(database):
                continue
            # If it cannot be read now, nothing is recorded, as it may have everything.
            with closing(open_existing(database)) as connection:
                for session in sessions(connection):
                    if session.id == number and (session.continues or session.started_ns == started_ns):
                        self._look(Timeline(connection, session))

    def _look(self, timeline: Timeline) -> None:
        number = timeline.numbers
        of_session = (timeline.session.id,)
        query = "SELECT id, closed_ns IS NOT NULL FROM streams WHERE session_id = ?"
        for stream, is_over in timeline.connection.execute(query, of_session):
            self._over[number.number("streams", stream)] = bool(is_over)
        query = (
            "SELECT c.stream_id, c.direction, max(c.offset + coalesce(c.length, 0)) FROM chunks AS c"
            " JOIN streams AS s ON s.id = c.stream_id WHERE s.session_id = ? GROUP BY 1, 2"
        )
        for stream, direction, end in timeline.connection.execute(query, of_session):
            way = number.number("streams", stream), direction
            self._ends[way] = max(end, self._ends.get(way, 0))

    def of(self, items: Sequence[Item], before: int) -> Iterator[Item]:
        """Yield those of `items` that are lacking; streams are numbered from `before` on.

        A direction that was recorded in part begins with a gap.
        """
        for item in items:
            stream = item.stream.id - before
            if not isinstance(item, Chunk | Gap | Altered):
                # Of a fully recorded stream only the end may be lacking.
                if not self._over.get(stream, False):
                    yield item
                continue
            way = stream, item.direction
            recorded = self._ends.get(way, 0)
            length = _length(item)
            if item.offset + length < recorded or (recorded and length and item.offset + length == recorded):
                continue
            if recorded and way not in self._begun:
                yield Gap(item.stream, item.direction, item.ts_ns, 0, recorded)
            self._begun.add(way)
            yield _remainder(item, recorded)


def _length(item: Chunk | Gap | Altered) -> int:
    if isinstance(item, Chunk):
        return len(item.data) + item.missing
    return item.length or 0


def _remainder(item: Item, recorded: int) -> Item:
    """Return the part of an item after the recorded bytes."""
    if isinstance(item, Chunk) and item.offset < recorded:
        skipped = min(recorded - item.offset, len(item.data))
        return msgspec.structs.replace(item, offset=item.offset + skipped, data=item.data[skipped:])
    if isinstance(item, Gap) and item.length is not None and item.offset < recorded:
        skipped = recorded - item.offset
        return msgspec.structs.replace(item, offset=recorded, length=item.length - skipped)
    return item


_FEW = 1000
"""Number of messages below which the rest is recorded without a notice."""


class Remaining(ExitStack):
    """Reports the number of messages left to record if they are many; on a terminal with a progress bar."""

    def __init__(self) -> None:
        super().__init__()
        self._most = 0
        self._on_progress: OnProgress | None = None

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
            self._on_progress = self.enter_context(counting("recording", "messages"))
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
    note = msgspec.structs.replace(
        note,
        is_anonymized=note.is_anonymized or is_anonymized,
        protocol_files=note.protocol_files or protocol_files(),
    )
    path = os.path.join(beside, note.database)
    if database is not None and is_elsewhere:
        path = database
        note = msgspec.structs.replace(note, database=os.path.basename(path), limits=None, is_rest=True)
    return Task(journal_folder.journal, identity, path, beside, note, is_left=True)
