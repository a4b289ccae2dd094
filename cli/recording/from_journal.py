"""The recorder's process of a relay: reads the journal, inspects, writes and shows what happens.

If the database cannot be written (disk full, locked by another program), it says so once and tries again;
what comes meanwhile waits in the journal. The relay itself never waits for it. If the process dies, the relay
starts another one, which carries on the same session.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path

import msgspec

from kiebitz.cli.faults import telling_faults
from kiebitz.cli.importing.garbage import collecting_seldom
from kiebitz.cli.options.anonymizing import anonymizer_if, stand_ins_if
from kiebitz.cli.options.decode_as import parse_decode_as
from kiebitz.cli.options.recording import summary
from kiebitz.cli.recording.live import LiveView
from kiebitz.cli.recording.rotation import Limits, Rotation
from kiebitz.cli.recording.spool import hold
from kiebitz.cli.terminal import console
from kiebitz.dissectors.records import TableInfo
from kiebitz.proxy.clock import now_ns
from kiebitz.proxy.journal_reader import JournalError, JournalReader
from kiebitz.proxy.processes import follow, give_way
from kiebitz.storage.conditions import compile_wanted
from kiebitz.storage.recorder import COMMIT_EVERY_S
from kiebitz.storage.resuming import ResumedRecorder
from kiebitz.storage.room import DiskLow, Room, spare
from kiebitz.storage.rotation import RotatingRecorder
from kiebitz.storage.schema import StorageError

RETRY_S = 0.5
GIVE_UP_S = 10.0
"""How long a database that cannot be written is tried once the relay itself is over."""

BEHIND_S = 3.0
"""A recorder that is so far behind says so."""

_SOON_S = COMMIT_EVERY_S / 5
"""So soon after the last commit what has come is committed."""

_LOOK_EVERY_S = 0.5
_TELL_EVERY_S = 10.0

GAVE_UP = 3
"""Exit status where another process would fare no better."""

FULL = 4
"""Exit status where all is recorded that there may be."""


class Task(msgspec.Struct, frozen=True):
    """What is to be recorded: the journal in a folder, into which database, and what is shown of it.

    `identity` is that folder's: nothing else is read, should another be in its place by then.
    With `limits` into several, named after `database`. `session` is the number of a session that a process
    which died has begun in the last of `databases`, and which is carried on; None begins one. The databases
    and the journal together take `max_size` (bytes); None leaves it to the disk. One that is anonymized is
    never carried on: what stands for whom has died with the process.
    """

    journal: Path
    identity: tuple[int, int]
    database: str
    source: str
    name: str
    limits: Limits | None
    decode_as: tuple[str, ...]
    wanted: str | None
    quiet: bool
    databases: tuple[str, ...] = ()
    session: int | None = None
    max_size: int | None = None
    is_anonymized: bool = False


class Begun(msgspec.Struct, frozen=True):
    """A session is open in a new database, or in the one that was given.

    Its first stream is the one behind `streams_before`.
    """

    session: int
    database: str
    streams_before: int


class GoesOn(msgspec.Struct, frozen=True):
    """The session goes on in another database."""

    session: int
    database: str


class Refused(msgspec.Struct, frozen=True):
    """The new session cannot be opened."""

    reason: str


class Committed(msgspec.Struct, frozen=True):
    """What had come when the process started, or some of it, is recorded."""


class Left(msgspec.Struct, frozen=True):
    """The relay is over, and about so many messages are left to be recorded."""

    messages: int


class Said(msgspec.Struct, frozen=True):
    """A sentence for whoever runs the relay."""

    sentence: str


Report = Begun | GoesOn | Refused | Committed | Left | Said
"""What the process tells the relay. The first one of a new session is whether it is open."""


@telling_faults
@collecting_seldom()
def record_journal(task: Task, relay: Connection, tells_relay: bool) -> None:
    """Record a journal to its end, as one session; to be run by `start_child`.

    Sends reports to `relay`; sentences only if it `tells_relay`, else they go to stderr. Something can be
    read from `relay` when the relay is over: what it sends, or the end.
    """
    give_way()
    # Until this process is over, as the relay may be over before it.
    hold(task.journal.parent)
    tell = _teller(relay if tells_relay else None)
    if task.session is not None:
        _carry_on(task, task.session, relay, tell)
        return

    forced = parse_decode_as(task.decode_as)
    anonymizer = anonymizer_if(stand_ins_if(task.is_anonymized), forced)

    def begin(database: str) -> RotatingRecorder:
        return RotatingRecorder(
            database,
            "relay",
            task.source,
            name=task.name,
            started_ns=now_ns(),
            decode_as=forced,
            anonymizer=anonymizer,
        )

    if relay.poll():
        # The relay was ended before it began, or is gone.
        return
    rotation = Rotation(task.database, task.limits) if task.limits is not None else None
    try:
        recorder = begin(task.database) if rotation is None else rotation.begin(begin)
    except StorageError as error:
        relay.send(Refused(str(error)))
        return
    before = next(recorder.stream_ids) - 1
    reader = JournalReader(task.journal, base=before, identity=task.identity)
    relay.send(Begun(recorder.session_id, recorder.path, before))
    if rotation is not None:
        tell(f"recording into {recorder.path}")
    _record(task, recorder, reader, rotation, relay, tell)


def _carry_on(task: Task, session: int, relay: Connection, tell: Callable[[str], None]) -> None:
    """Take up a session where the process before this one left it."""
    try:
        recorder = ResumedRecorder(task.databases, session, parse_decode_as(task.decode_as))
        if recorder.is_over:
            # The one before died when all was done.
            return
        reader = JournalReader(
            task.journal,
            base=next(recorder.stream_ids) - 1,
            skip=recorder.items,
            known=recorder.open_streams,
            identity=task.identity,
        )
    except (StorageError, JournalError) as error:
        tell(f"kiebitz: {error}")
        raise SystemExit(GAVE_UP) from error
    rotation = Rotation(task.database, task.limits, session) if task.limits is not None else None
    _record(task, recorder, reader, rotation, relay, tell, recorder.tables)


def _record(
    task: Task,
    recorder: RotatingRecorder,
    reader: JournalReader,
    rotation: Rotation | None,
    relay: Connection,
    tell: Callable[[str], None],
    tables: Sequence[TableInfo] = (),
) -> None:
    """Record what the journal has and what comes; `tables` are there already."""
    view = LiveView(recorder, compile_wanted(task.wanted), task.quiet, tables)
    room = Room(task.max_size, [str(task.journal), *task.databases[:-1]])
    is_full = False
    lag = _Lag(reader, relay, tell, is_behind=task.session is not None)
    is_damaged = False
    is_pending = False
    reported = False
    committed = time.monotonic()
    try:
        for items in follow(reader):
            if rotation is not None and rotation.is_due(recorder):
                items = recorder.record_until_settled(items)
                if recorder.is_settled or rotation.is_overdue:
                    view.show(recorder.gather())
                    _write(recorder, task.journal, relay, tell)
                    before = recorder.path
                    if _rotate(recorder, rotation, relay, tell):
                        room.add(before)
            recorder.record(items)
            is_pending |= bool(items)
            now = time.monotonic()
            # Half the promised time: the commit itself takes some, too. Who watches waits for each commit.
            if recorder.full or now - committed >= (_SOON_S if is_pending else COMMIT_EVERY_S / 2):
                view.show(recorder.gather())
                _write(recorder, task.journal, relay, tell)
                reader.release()
                committed = now
                is_pending = False
                is_full = room.is_used_up(recorder)
                if is_full:
                    break
                if not reported:
                    _report(relay, Committed())
                    reported = True
                lag.look(items[-1].ts_ns if items else None)
    except JournalError as error:
        tell(f"kiebitz: {error}; what was recorded until then is kept")
        is_damaged = True
    view.show(recorder.finish())
    _write(recorder, task.journal, relay, tell)
    reader.release()
    reader.close()
    recorder.release()
    tell(f"recorded {summary(recorder)}")
    if is_full:
        tell(f"kiebitz: {room.says}; what comes from here on is passed on, but not recorded")
        raise SystemExit(FULL)
    if is_damaged:
        raise SystemExit(GAVE_UP)
    if not reader.stopped:
        tell("kiebitz: the relay has died; what it had passed on until then is recorded")


class _Lag:
    """Says how far a recorder is behind what is passed on, while it is."""

    def __init__(
        self, reader: JournalReader, relay: Connection, tell: Callable[[str], None], *, is_behind: bool
    ) -> None:
        self._reader = reader
        self._relay = relay
        self._tell = tell
        self._is_behind = is_behind
        self._looked = self._told = 0.0

    def look(self, latest_ns: int | None) -> None:
        """See how it stands, now that what came at `latest_ns` is recorded; None if nothing came."""
        if self._reader.is_at_end:
            if self._is_behind:
                self._tell("kiebitz: the recorder has caught up: what was passed on meanwhile is recorded")
                self._is_behind = False
            return
        now = time.monotonic()
        if latest_ns is None or now - self._looked < _LOOK_EVERY_S:
            return
        self._looked = now
        messages, seconds = self._reader.waiting(), (now_ns() - latest_ns) / 1e9
        if self._relay.poll():
            _report(self._relay, Left(messages))
        elif seconds >= BEHIND_S and now - self._told >= _TELL_EVERY_S:
            self._told = now
            self._is_behind = True
            waiting = f"about {messages:,} messages wait to be recorded"
            self._tell(f"kiebitz: the recorder is {seconds:.0f} s behind: {waiting}")


def _rotate(
    recorder: RotatingRecorder, rotation: Rotation, relay: Connection, tell: Callable[[str], None]
) -> bool:
    """Go on in the next database, if it can be made; whether it was."""
    recorded = summary(recorder)
    try:
        rotation.begin(recorder.go_on_in)
    except StorageError as error:
        if rotation.postpone():
            tell(f"kiebitz: {error}; the recording goes on in {recorder.path}")
        return False
    _report(relay, GoesOn(recorder.session_id, recorder.path))
    tell(f"recorded {recorded}; recording into {recorder.path}")
    return True


def _teller(relay: Connection | None) -> Callable[[str], None]:
    def tell(sentence: str) -> None:
        if relay is None:
            console.tell(sentence)
        else:
            _report(relay, Said(sentence))

    return tell


def _report(relay: Connection, report: Report) -> None:
    # A relay that has died hears nothing.
    with suppress(OSError):
        relay.send(report)


def _end(recorder: RotatingRecorder) -> None:
    """End a session as well as that goes: what little it takes there is room for."""
    with suppress(StorageError):
        if not recorder.is_finished:
            recorder.finish()
        recorder.write()
        recorder.release()


def _write(recorder: RotatingRecorder, journal: Path, relay: Connection, tell: Callable[[str], None]) -> None:
    """Write what was gathered, trying again until it works, or the relay is over and it is of no use."""
    failed_since: float | None = None
    while True:
        try:
            spare(recorder.path, str(journal))
            recorder.write()
        except StorageError as error:
            now = time.monotonic()
            if failed_since is None:
                failed_since = now
                tell(f"kiebitz: {error}; the relay goes on, and what it passes on waits to be recorded")
            if relay.poll() and now - failed_since > GIVE_UP_S:
                if isinstance(error, DiskLow):
                    _end(recorder)
                tell("kiebitz: gave up writing; the end of this session is not recorded")
                raise SystemExit(GAVE_UP) from error
            time.sleep(RETRY_S)
        else:
            if failed_since is not None:
                tell("kiebitz: the database can be written again; nothing is missing")
            return
