"""Recordings of single runs, in memory, then as a session of the database; verdicts of earlier runs."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from io import BytesIO

import msgspec

from kiebitz.dissectors.conformance.expectations import TargetRole
from kiebitz.dissectors.inspection.inspector import DecodeAs
from kiebitz.dissectors.model import Item, Stream
from kiebitz.proxy.system.clock import now_ns
from kiebitz.services.output_files import make_folder, opened
from kiebitz.services.probing.results import WORDS
from kiebitz.services.recording.note import refuse_if_unfinished
from kiebitz.services.sessions import load
from kiebitz.storage.database.opening import recover
from kiebitz.storage.database.schema import MEMORY, StorageError
from kiebitz.storage.export.export import FORMATS
from kiebitz.storage.read.timeline import Timeline, sessions
from kiebitz.storage.recording.disk_space import SpaceLimit
from kiebitz.storage.recording.recorder import Recorder


class RunRecorder(Recorder):
    """A recorder of one run in memory, which keeps the recorded items."""

    def __init__(self, source: str, decode_as: DecodeAs, keeps_items: bool) -> None:
        self.begun_ns = now_ns()
        self.decode_as = decode_as
        super().__init__(MEMORY, "replay", source, started_ns=self.begun_ns, decode_as=decode_as)
        self.source = source
        self.items: list[Item] = []
        self._keeps_items = keeps_items

    def record(self, items: Iterable[Item]) -> None:
        items = [*items]
        if self._keeps_items:
            self.items += items
        super().record(items)

    @property
    def timeline(self) -> Timeline:
        """The recorded session."""
        return Timeline(self.connection, sessions(self.connection)[-1])

    def capture(self) -> bytes:
        """Return the recorded session as a pcapng file."""
        file = BytesIO()
        FORMATS["pcapng"](self.timeline, file)
        return file.getvalue()


class SessionStore:
    """The database of a test run and its folder for captures; None keeps nothing."""

    def __init__(self, database: str | None, folder: str | None) -> None:
        self._database = database
        self._folder = folder
        self._room = SpaceLimit(None)
        if folder is not None and os.path.lexists(folder):
            # Fail before cases run, not at the first that fails.
            make_folder(folder)
        if database is not None:
            refuse_if_unfinished(database)

    @contextmanager
    def recorder(self, source: str, decode_as: DecodeAs) -> Iterator[RunRecorder]:
        """Provide the recorder of a run."""
        recorder = RunRecorder(source, decode_as, self._database is not None)
        try:
            yield recorder
        finally:
            recorder.release()
            # A database in memory is still open.
            recorder.connection.close()

    def add(self, run: RunRecorder, name: str) -> str | None:
        """Add a run to the database under a name, and return its session, as in `probe.db:3`.

        Raises StorageError.
        """
        if self._database is None:
            return None
        recorder = Recorder(
            self._database, "replay", run.source, name=name, started_ns=run.begun_ns, decode_as=run.decode_as
        )
        try:
            recorder.record(_renumbered(run.items, recorder.stream_ids))
            reason = self._room.stop_reason(recorder)
            if reason is not None:
                raise StorageError(f"{reason}; no more cases are tried")
        finally:
            recorder.close()
        return f"{self._database}:{recorder.session_id}"

    def add_capture(self, case: str, capture: bytes) -> None:
        """Write the capture of a case to the folder. Raises StorageError."""
        if self._folder is not None:
            make_folder(self._folder)
            path = os.path.join(self._folder, case.replace("/", "-") + ".pcapng")
            with opened(path, self._database or "") as file:
                file.write(capture)


def _renumbered(items: Iterable[Item], stream_ids: Iterator[int]) -> Iterator[Item]:
    """Yield the items with other numbers of their streams."""
    streams: dict[int, Stream] = {}
    for item in items:
        number = item.stream.id
        if number not in streams:
            streams[number] = msgspec.structs.replace(item.stream, id=next(stream_ids))
        yield msgspec.structs.replace(item, stream=streams[number])


_NAME = re.compile(rf"probe (server|client) (\S+): ({'|'.join(map(re.escape, WORDS))})")


def cases_with_verdict(database: str, role: TargetRole, verdict: str) -> Sequence[str]:
    """Return the cases whose latest verdict was this one. Raises StorageError."""
    if not recover(database):
        return ()
    latest: dict[str, str] = {}
    connection, _ = load(database)
    # Before anything is recorded there: while a connection is open, none may be closed.
    with closing(connection):
        for session in sessions(connection):
            form = _NAME.fullmatch(session.name)
            if form is not None and form[1] == role:
                latest[form[2]] = form[3]
    return [case for case, word in latest.items() if word == verdict]
