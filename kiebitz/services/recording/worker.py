"""The recorder process of a relay, and the recording of a journal into a database.

If it dies, the relay starts another one, which resumes the same session. If both are killed, another command
recovers what is left.

Recording of a journal into a database: items are recorded, committed and shown to its end.

If the database cannot be written (disk full, locked by another program), the recorder reports it once and
retries; the journal keeps what arrives meanwhile. The relay itself never waits for it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing, suppress
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path

from kiebitz.dissectors.model import Findings, Item, TableInfo
from kiebitz.proxy.journal.follower import follow, lower_priority
from kiebitz.proxy.journal.reader import JournalError, JournalReader
from kiebitz.proxy.system.clock import now_ns
from kiebitz.services.anonymizing import anonymizer_if, pseudonyms_if
from kiebitz.services.decode_as import parse_decode_as
from kiebitz.services.faults import infrequent_gc, reporting_faults
from kiebitz.services.protocol_files import add_received
from kiebitz.services.recording.note import Note, NoteFile, recovery_command
from kiebitz.services.recording.rotation import Rotation
from kiebitz.services.recording.summary import summary
from kiebitz.services.recording.task import (
    FULL,
    GAVE_UP,
    Backlog,
    Begun,
    Committed,
    Continued,
    OutputFailed,
    Refused,
    Task,
    report,
    sentence_reporter,
)
from kiebitz.services.standard_streams import has_output_failed
from kiebitz.services.supervision.journal_folder import hold, remove_recorded
from kiebitz.storage.database.opening import open_existing
from kiebitz.storage.database.schema import StorageError
from kiebitz.storage.read.timeline import sessions
from kiebitz.storage.recording.disk_space import SpaceLimit, check_reserve
from kiebitz.storage.recording.recorder import COMMIT_EVERY_S
from kiebitz.storage.recording.resuming import ResumedRecorder
from kiebitz.storage.recording.rotation import RotatingRecorder

RETRY_S = 0.5
GIVE_UP_S = 10.0
"""Time limit (seconds) for retrying a database that cannot be written, once the relay has ended."""

_SOON_S = COMMIT_EVERY_S / 10
"""Longest time (seconds) between commits while items arrive."""


class Recording:
    """Records the journal that `reader` reads; `folder` is the descriptor of its folder.

    `tell` receives sentences, `relay` reports; `relay` becomes readable when the relay has ended.
    """

    def __init__(
        self,
        task: Task,
        folder: int,
        note: NoteFile,
        recorder: RotatingRecorder,
        reader: JournalReader,
        relay: Connection,
        tell: Callable[[str], None],
        rotation: Rotation | None = None,
    ) -> None:
        self._task = task
        self._folder = folder
        self._note = note
        self._recorder = recorder
        self._reader = reader
        self._relay = relay
        self._notify = tell
        self._rotation = rotation
        self._room = SpaceLimit(task.max_size, [str(task.journal), *task.databases[:-1]])

    def run(self, source: Iterable[list[Item]], tables: Sequence[TableInfo] = ()) -> None:
        """Record what `source` yields of the journal; `tables` are in the database already.

        Raises SystemExit with `GAVE_UP` or `FULL` if not everything is recorded.
        """
        task, recorder, reader = self._task, self._recorder, self._reader
        view = task.view(recorder, tables) if task.view is not None else None

        def show(found: Findings) -> None:
            if view is not None:
                view.show(found)

        def commit() -> None:
            show(recorder.gather())
            self._write()

        recorder.set_on_full(commit)
        is_resumed = bool(task.sessions) and not task.is_left
        lag = _Lag(reader, self._relay, self._notify, is_behind=is_resumed)
        is_full = is_damaged = is_pending = is_reported = False
        committed = looked = time.monotonic()
        try:
            for items in source:
                if self._rotation is not None and self._rotation.is_due(recorder):
                    items = recorder.record_until_settled(items)
                    if recorder.is_settled or self._rotation.is_overdue:
                        show(recorder.gather())
                        self._write()
                        self._rotate(self._rotation)
                recorder.record(items)
                is_pending |= bool(items)
                now = time.monotonic()
                # Commit at half the promised interval, as committing takes time. Viewers wait for each
                # commit, so what arrives after a pause is committed at once.
                is_due = is_pending and now - committed >= _SOON_S
                if recorder.full or is_due or now - looked >= COMMIT_EVERY_S / 2:
                    show(recorder.gather())
                    self._write()
                    reader.release()
                    looked = now
                    if is_pending:
                        committed = now
                    is_pending = False
                    is_full = self._room.is_used_up(recorder)
                    if is_full:
                        break
                    if not is_reported:
                        report(self._relay, Committed())
                        is_reported = True
                    lag.look(items[-1].ts_ns if items else None)
        except JournalError as error:
            self._notify(f"kiebitz: {error}; everything before that is recorded")
            is_damaged = True
        if is_damaged and task.is_left:
            # The session stays open, and the folder remains.
            show(recorder.gather())
            self._write()
            raise SystemExit(GAVE_UP)
        show(recorder.finish())
        self._write()
        reader.close()
        recorder.release()
        self._notify(f"recorded {summary(recorder)}")
        if has_output_failed():
            report(self._relay, OutputFailed())
        if is_full:
            self._notify(f"kiebitz: {self._room.says}; new data is forwarded, but not recorded")
            raise SystemExit(FULL)
        if is_damaged:
            raise SystemExit(GAVE_UP)
        is_orphan = not reader.stopped and not task.is_left
        if is_orphan:
            self._notify("kiebitz: the relay has died; everything it had forwarded is recorded")
        remove_recorded(self._folder, task.journal.parent if is_orphan else None)

    def _rotate(self, rotation: Rotation) -> None:
        """Continue in the next database if it can be created."""
        recorder = self._recorder
        before, recorded = recorder.path, summary(recorder)

        def go_on(path: str) -> None:
            # Noted first: a recovery that does not find this session uses the one before.
            self._note.add(path, recorder.session_id + 1)
            try:
                recorder.continue_in(path)
            except StorageError:
                self._note.take_back()
                raise

        try:
            rotation.begin(go_on)
        except StorageError as error:
            if rotation.postpone():
                self._notify(f"kiebitz: {error}; the recording continues in {recorder.path}")
            return
        self._room.add(before)
        report(self._relay, Continued(recorder.session_id, recorder.path))
        self._notify(f"recorded {recorded}; recording into {recorder.path}")

    def _write(self) -> None:
        """Write gathered rows; retry until it succeeds, or until the time limit after the relay's end."""
        failed_since: float | None = None
        while True:
            try:
                check_reserve(self._recorder.path, str(self._task.journal))
                self._recorder.write()
            except StorageError as error:
                now = time.monotonic()
                if failed_since is None:
                    failed_since = now
                    self._notify(
                        f"kiebitz: {error}; the relay continues, and its data is kept to be recorded later"
                    )
                if self._relay.poll() and now - failed_since > GIVE_UP_S:
                    self._notify(f"kiebitz: stopped retrying; {_kept(self._task.journal.parent)}")
                    raise SystemExit(GAVE_UP) from error
                time.sleep(RETRY_S)
            else:
                if failed_since is not None:
                    self._notify("kiebitz: the database can be written again; the backlog is being recorded")
                return


def _kept(folder: Path) -> str:
    return f"unrecorded data is kept in {folder}; {recovery_command(str(folder))} records it"


_BEHIND_S = 3.0
"""Lag (seconds) from which it is reported."""

_LOOK_EVERY_S = 0.5
_REPORT_INTERVAL_S = 10.0


class _Lag:
    """Reports the lag of a recorder."""

    def __init__(
        self, reader: JournalReader, relay: Connection, tell: Callable[[str], None], *, is_behind: bool
    ) -> None:
        self._reader = reader
        self._relay = relay
        self._notify = tell
        self._is_behind = is_behind
        self._looked = self._told = 0.0

    def look(self, latest_ns: int | None) -> None:
        """Check the lag after recording items up to `latest_ns`, None if there were none."""
        if self._reader.is_at_end:
            if self._is_behind:
                self._notify("kiebitz: the recorder has caught up: the backlog is recorded")
                self._is_behind = False
            return
        now = time.monotonic()
        if latest_ns is None or now - self._looked < _LOOK_EVERY_S:
            return
        self._looked = now
        messages, seconds = self._reader.backlog(), (now_ns() - latest_ns) / 1e9
        if self._relay.poll():
            report(self._relay, Backlog(messages))
        elif seconds >= _BEHIND_S and now - self._told >= _REPORT_INTERVAL_S:
            self._told = now
            self._is_behind = True
            waiting = f"about {messages:,} messages are waiting to be recorded"
            self._notify(f"kiebitz: the recorder is {seconds:.0f} s behind: {waiting}")


@reporting_faults
@infrequent_gc()
def record_journal(relay: Connection, task: Task, tells_relay: bool) -> None:
    """Record a journal while it is written, to its end; run by `start_connected`.

    Sends reports to `relay`, which becomes readable when the relay has ended. Sentences go there if it
    `tells_relay`, otherwise to stderr.
    """
    lower_priority()
    add_received(task.note.protocol_files)
    # Held until this process ends, as the relay may end before it.
    folder = hold(task.journal.parent)
    tell = sentence_reporter(relay if tells_relay else None)
    if task.sessions:
        try:
            resumed = resume(task, folder, relay, tell)
        except (StorageError, JournalError) as error:
            tell(f"kiebitz: {error}")
            raise SystemExit(GAVE_UP) from error
        if resumed is not None:
            recording, reader, tables = resumed
            recording.run(follow(reader), tables)
    else:
        _begin(task, folder, relay, tell)


def _begin(task: Task, folder: int, relay: Connection, tell: Callable[[str], None]) -> None:
    """Record a journal as a new session."""
    task = task.with_note(started_ns=now_ns())
    if relay.poll():
        # The relay has already ended.
        return
    limits = task.note.limits
    rotation = Rotation(task.database, limits) if limits is not None else None
    note = NoteFile(folder, task.note)
    begin = partial(new_recorder, task.note)
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


def new_recorder(note: Note, database: str, ending: str = "") -> RotatingRecorder:
    """Return the recorder of a new session into `database`; `ending` is added to its name."""
    forced = parse_decode_as(note.decode_as)
    return RotatingRecorder(
        database,
        "relay",
        note.source,
        name=note.name + ending,
        started_ns=note.started_ns,
        decode_as=forced,
        anonymizer=anonymizer_if(pseudonyms_if(note.is_anonymized), forced),
    )


def resume(
    task: Task, folder: int, relay: Connection, tell: Callable[[str], None]
) -> tuple[Recording, JournalReader, list[TableInfo]] | None:
    """Return the resumed last session of a task, with its tables; None if it has ended.

    Raises StorageError if it cannot be resumed, JournalError if the journal cannot be read.
    """
    if _is_last_unbegun(task.sessions):
        task = task.with_note(parts=task.note.parts[:-1])
    assert task.note.started_ns is not None
    path, number = task.sessions[-1]
    recorder = ResumedRecorder(task.databases, number, parse_decode_as(task.note.decode_as))
    try:
        if len(task.sessions) == 1 and recorder.started_ns != task.note.started_ns:
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
    limits = task.note.limits
    rotation = Rotation(task.database, limits, number) if limits is not None else None
    note = NoteFile(folder, task.note)
    return Recording(task, folder, note, recorder, reader, relay, tell, rotation), reader, recorder.tables


def _is_last_unbegun(sessions: Sequence[tuple[str, int]]) -> bool:
    """Return True if the recorder died while creating the database of the last session."""
    *before, last = sessions
    return bool(before) and is_ended(*last) is None and is_ended(*before[-1]) is False


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
