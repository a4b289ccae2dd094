"""Recordings of single runs: in memory while the target plays, then as a session of the database."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from threading import Lock

from kiebitz.dissectors.inspection.inspector import DecodeAs
from kiebitz.dissectors.model import Item
from kiebitz.proxy.system.clock import now_ns
from kiebitz.services.recording.unfinished import refuse_if_unfinished
from kiebitz.storage.database.schema import MEMORY, StorageError
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


class SessionStore:
    """The database of a test run, to which several threads add sessions; None keeps none."""

    def __init__(self, database: str | None) -> None:
        self.database = database
        self._room = SpaceLimit(None)
        self._adding = Lock()
        if database is not None:
            refuse_if_unfinished(database)

    @contextmanager
    def recorder(self, source: str, decode_as: DecodeAs) -> Iterator[RunRecorder]:
        """Provide the recorder of a run."""
        recorder = RunRecorder(source, decode_as, self.database is not None)
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
        if self.database is None:
            return None
        with self._adding:
            recorder = Recorder(
                self.database,
                "replay",
                run.source,
                name=name,
                started_ns=run.begun_ns,
                decode_as=run.decode_as,
            )
            try:
                recorder.record(run.items)
                reason = self._room.stop_reason(recorder)
                if reason is not None:
                    raise StorageError(f"{reason}; no more cases are tried")
            finally:
                recorder.close()
        return f"{self.database}:{recorder.session_id}"
