"""The recorder process of a relay: reads the journal, inspects, writes and shows findings.

If it dies, the relay starts another one, which resumes the same session. If both are killed, another command
recovers what is left.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import closing, suppress
from multiprocessing.connection import Connection

import msgspec

from kiebitz.dissectors.model import TableInfo
from kiebitz.proxy.journal.follower import follow, lower_priority
from kiebitz.proxy.journal.reader import JournalError, JournalReader
from kiebitz.proxy.system.clock import now_ns
from kiebitz.services.anonymizing import anonymizer_if, pseudonyms_if
from kiebitz.services.decode_as import parse_decode_as
from kiebitz.services.faults import infrequent_gc, reporting_faults
from kiebitz.services.protocol_files import add_received
from kiebitz.services.recording.journal_recording import Recording
from kiebitz.services.recording.note import NoteFile
from kiebitz.services.recording.rotation import Rotation
from kiebitz.services.recording.task import GAVE_UP, Begun, Refused, Task, note_of, sentence_reporter
from kiebitz.services.supervision.journal_folder import hold
from kiebitz.storage.database.opening import open_existing
from kiebitz.storage.database.schema import StorageError
from kiebitz.storage.read.timeline import sessions
from kiebitz.storage.recording.resuming import ResumedRecorder
from kiebitz.storage.recording.rotation import RotatingRecorder


@reporting_faults
@infrequent_gc()
def record_journal(relay: Connection, task: Task, tells_relay: bool) -> None:
    """Record a journal while it is written, to its end; run by `start_connected`.

    Sends reports to `relay`, which becomes readable when the relay has ended. Sentences go there if it
    `tells_relay`, otherwise to stderr.
    """
    lower_priority()
    add_received(task.protocol_files)
    # Held until this process ends, as the relay may end before it.
    folder = hold(task.journal.parent)
    tell = sentence_reporter(relay if tells_relay else None)
    if task.sessions:
        _resume(task, folder, relay, tell)
    else:
        _begin(task, folder, relay, tell)


def _begin(task: Task, folder: int, relay: Connection, tell: Callable[[str], None]) -> None:
    """Record a journal as a new session."""
    forced = parse_decode_as(task.decode_as)
    anonymizer = anonymizer_if(pseudonyms_if(task.is_anonymized), forced)
    task = msgspec.structs.replace(task, started_ns=now_ns())

    def begin(database: str) -> RotatingRecorder:
        return RotatingRecorder(
            database,
            "relay",
            task.source,
            name=task.name,
            started_ns=task.started_ns,
            decode_as=forced,
            anonymizer=anonymizer,
        )

    if relay.poll():
        # The relay has already ended.
        return
    rotation = Rotation(task.database, task.limits) if task.limits is not None else None
    note = NoteFile(folder, note_of(task))
    try:
        recorder = begin(task.database) if rotation is None else rotation.begin(begin)
        # The relay forwards nothing until this can be recovered.
        note.add(recorder.path, recorder.session_id)
    except StorageError as error:
        relay.send(Refused(str(error)))
        return
    before = next(recorder.stream_ids) - 1
    reader = JournalReader(task.journal, base=before, identity=task.identity)
    relay.send(Begun(recorder.session_id, recorder.path, before))
    if rotation is not None:
        tell(f"recording into {recorder.path}")
    Recording(task, folder, note, recorder, reader, relay, tell, rotation).run(follow(reader))


def _resume(task: Task, folder: int, relay: Connection, tell: Callable[[str], None]) -> None:
    """Resume the session of the previous process."""
    try:
        resumed = resume(task, folder, relay, tell)
    except (StorageError, JournalError) as error:
        tell(f"kiebitz: {error}")
        raise SystemExit(GAVE_UP) from error
    if resumed is not None:
        recording, reader, tables = resumed
        recording.run(follow(reader), tables)


def resume(
    task: Task, folder: int, relay: Connection, tell: Callable[[str], None]
) -> tuple[Recording, JournalReader, list[TableInfo]] | None:
    """Return the resumed last session of a task, with its tables; None if it has ended.

    Raises StorageError if it cannot be resumed, JournalError if the journal cannot be read.
    """
    task = msgspec.structs.replace(task, sessions=_begun_sessions(task.sessions))
    assert task.started_ns is not None
    path, number = task.sessions[-1]
    recorder = ResumedRecorder(task.databases, number, parse_decode_as(task.decode_as))
    try:
        if len(task.sessions) == 1 and recorder.started_ns != task.started_ns:
            raise StorageError(f"{path}: its session {number} is not the one that was recorded")
        if recorder.is_over:
            # The previous process died after finishing.
            recorder.release()
            return None
        base = next(recorder.stream_ids) - 1
        reader = JournalReader(
            task.journal, base=base, skip=recorder.items, known=recorder.open_streams, identity=task.identity
        )
    except BaseException:
        recorder.release()
        raise
    rotation = Rotation(task.database, task.limits, number) if task.limits is not None else None
    note = NoteFile(folder, note_of(task))
    return Recording(task, folder, note, recorder, reader, relay, tell, rotation), reader, recorder.tables


def _begun_sessions(all_of_task: tuple[tuple[str, int], ...]) -> tuple[tuple[str, int], ...]:
    """Return the sessions, without the last one if the recorder died while creating its database."""
    *before, last = all_of_task
    if before and is_ended(*last) is None and is_ended(*before[-1]) is False:
        return tuple(before)
    return all_of_task


def is_ended(database: str, number: int, started_ns: int | None = None) -> bool | None:
    """Return True if a session has ended, False if not, None if the database has no such session.

    With `started_ns` it must have begun then.
    """
    if not os.path.exists(database) or not os.path.getsize(database):
        return None
    with suppress(StorageError), closing(open_existing(database)) as connection:
        for session in sessions(connection):
            if session.id == number and started_ns in (None, session.started_ns):
                return session.ended_ns is not None
    return None
