"""The progress of a collection: items, streams and clock of each run, and the JetStream position.

It is committed together with the items. So a killed collector continues after the last recorded item, and one
that is started later on the same database records nothing twice.
"""

from __future__ import annotations

import os
from contextlib import closing
from itertools import count
from typing import Literal

import msgspec

from kiebitz.dissectors.inspection.inspector import DecodeAs
from kiebitz.dissectors.model import Direction, Stream, TableInfo
from kiebitz.storage.database.opening import open_existing, recover
from kiebitz.storage.database.schema import scalar
from kiebitz.storage.read.timeline import sessions
from kiebitz.storage.recording.recorder import Recorder, SessionKind
from kiebitz.storage.recording.resuming import ResumedRecorder

_KIND: SessionKind = "collect"


class RecordedRun(msgspec.Struct):
    """A run of the tap `name`: the number of its recorded items, and the shift of its times (ns).

    `id` is its row in the continued session, None in a new one. `streams` are those that are open there, by
    their number in the run, and `ends` the numbers of recorded bytes by direction.
    """

    name: str
    run: str
    items: int
    clock_ns: int
    id: int | None = None
    streams: dict[int, Stream] = msgspec.field(default_factory=dict)
    ends: dict[tuple[int, Direction], int] = msgspec.field(default_factory=dict)


class CollectedSession:
    """A session collected from `source` into the database at `path`, with its `recorder` and `runs`.

    A session whose collector was killed is continued; otherwise a new one begins, called `name`. `position`
    is the next position to read: the creation time of the JetStream stream, and the sequence number of its
    last recorded message. `stream_ids` numbers the streams, `tables` are those already recorded. Raises
    StorageError.
    """

    def __init__(self, path: str, source: str, name: str, decode_as: DecodeAs) -> None:
        self._runs: dict[tuple[str, str], RecordedRun] = {}
        self.position: tuple[int, int] = (0, 0)
        unfinished = self._read_progress(path, source) if os.path.lexists(path) else None
        self.recorder: Recorder
        self.tables: list[TableInfo] = []
        if unfinished is None:
            self.recorder = Recorder(path, _KIND, source, name=name, decode_as=decode_as)
        else:
            recorder = ResumedRecorder((path,), unfinished, decode_as)
            self.recorder = recorder
            self.tables = recorder.tables
            self._restore_streams({stream.id: stream for stream in recorder.open_streams})
        self.is_new = unfinished is None
        self.stream_ids = count(self._last("streams") + 1)
        self._last_id = self._last("taps")
        self._ids = {key: run.id for key, run in self._runs.items() if run.id is not None}

    @property
    def runs(self) -> list[RecordedRun]:
        """The progress of each run, in the order of their first appearance."""
        return [*self._runs.values()]

    def note(self, name: str, run: str, items: int, clock_ns: int, origin_ns: int, sequence: int) -> None:
        """Add a run's progress, and the position in JetStream, to the next commit."""
        row = self._id(name, run), self.recorder.session_id, name, run, items, clock_ns, origin_ns, sequence
        self.recorder.note("taps", row)

    def note_stream(self, name: str, run: str, number: int, stream: Stream) -> None:
        """Add the session's stream for a run's stream to the next commit."""
        self.recorder.note("tapped", (stream.id, self._id(name, run), number))

    def _last(self, table: Literal["streams", "taps"]) -> int:
        return int(scalar(self.recorder.connection, f"SELECT coalesce(max(id), 0) FROM {table}"))

    def _id(self, name: str, run: str) -> int:
        key = name, run
        if key not in self._ids:
            self._last_id += 1
            self._ids[key] = self._last_id
        return self._ids[key]

    def _read_progress(self, path: str, source: str) -> int | None:
        """Read the recorded progress, and return the session to continue, if any. Raises StorageError."""
        if not recover(path):
            return None
        with closing(open_existing(path)) as connection:
            found = sessions(connection)
            last = found[-1] if found else None
            goes_on = (
                last.id
                if last is not None and (last.kind, last.source, last.ended_ns) == (_KIND, source, None)
                else None
            )
            for name, run, items, clock_ns, session_id, row_id, *position in connection.execute(
                "SELECT t.name, t.run, t.items, t.clock_ns, t.session_id, t.id, t.origin_ns, t.sequence"
                " FROM taps AS t JOIN sessions AS s ON s.id = t.session_id WHERE s.kind = ? AND s.source = ?"
                " ORDER BY t.id",
                (_KIND, source),
            ):
                here = row_id if session_id == goes_on else None
                # A run that occurs again was continued in a later session.
                self._runs[name, run] = RecordedRun(name, run, items, clock_ns, here)
                self.position = max(self.position, tuple(position))
        return goes_on

    def _restore_streams(self, open_streams: dict[int, Stream]) -> None:
        """Restore the open streams of the continued session. Raises sqlite3.Error."""
        by_id = {run.id: run for run in self._runs.values() if run.id is not None}
        connection = self.recorder.connection
        for stream_id, tap_id, number in connection.execute("SELECT id, tap_id, number FROM tapped"):
            if stream_id in open_streams and tap_id in by_id:
                run = by_id[tap_id]
                run.streams[number] = open_streams[stream_id]
                for direction, end in connection.execute(
                    "SELECT direction, max(offset + coalesce(length, 0)) FROM chunks WHERE stream_id = ?"
                    " GROUP BY direction",
                    (stream_id,),
                ).fetchall():
                    run.ends[number, direction] = end
