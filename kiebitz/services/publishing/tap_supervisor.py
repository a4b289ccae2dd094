"""The tap of a recording: its second journal, and the child process that publishes it.

The journal of a tapped relay: each record is also written to a second journal, which is published.

Both have their own reader, limits and errors: if one is full, the other continues.
"""

from __future__ import annotations

import secrets
import signal
from collections.abc import Callable
from functools import partial
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path

import msgspec

from kiebitz.dissectors.model import Direction, Transport
from kiebitz.proxy.alterer import Mark
from kiebitz.proxy.journal.item_writer import ItemWriter
from kiebitz.proxy.journal.writer import JournalWriter
from kiebitz.proxy.taps.wire_format import MAX_DATA
from kiebitz.services.publishing.tap_target import TapTarget
from kiebitz.services.publishing.worker import DAMAGED, KEPT, Note, Task, publish_journal
from kiebitz.services.standard_streams import print_error_line
from kiebitz.services.supervision.supervisor import Supervisor, start_connected


class TeeJournal(JournalWriter):
    """A writer for the journal in `directory` and for `tap`; streams have the same numbers in both."""

    def __init__(
        self,
        directory: Path,
        tap: JournalWriter,
        *,
        on_trouble: Callable[[str], None],
        has_room: Callable[[], bool],
    ) -> None:
        super().__init__(directory, on_trouble=on_trouble, has_room=has_room)
        self._tap = tap

    def open(self, transport: Transport, client: str, server: str, ts_ns: int) -> int:
        self._tap.open(transport, client, server, ts_ns)
        return super().open(transport, client, server, ts_ns)

    def chunk(self, number: int, direction: Direction, ts_ns: int, offset: int, data: bytes) -> None:
        """Write bytes to both; the tap's journal gets them in pieces that fit into one message."""
        for start in range(0, len(data) or 1, MAX_DATA):
            self._tap.chunk(number, direction, ts_ns, offset + start, data[start : start + MAX_DATA])
        super().chunk(number, direction, ts_ns, offset, data)

    def fault(self, number: int, direction: Direction, ts_ns: int, offset: int, code: str, text: str) -> None:
        self._tap.fault(number, direction, ts_ns, offset, code, text)
        super().fault(number, direction, ts_ns, offset, code, text)

    def altered(
        self, number: int, direction: Direction, ts_ns: int, offset: int, length: int, mark: Mark
    ) -> None:
        self._tap.altered(number, direction, ts_ns, offset, length, mark)
        super().altered(number, direction, ts_ns, offset, length, mark)

    def end(self, number: int, ts_ns: int, reason: str) -> None:
        self._tap.end(number, ts_ns, reason)
        super().end(number, ts_ns, reason)

    def flush(self) -> None:
        self._tap.flush()
        super().flush()

    def close(self) -> None:
        self._tap.close()
        super().close()


_SEGMENT_BYTES = 1 << 20
"""Size of a segment in bytes; after a restart, as much is published again and skipped by collectors."""


class TapSupervisor(Supervisor):
    """A journal in the folder of `database`, and from `start` on the process that publishes it.

    The journal is written together with the recording's own, or with `items`. Raises StorageError.
    """

    final_statuses = (KEPT, DAMAGED)
    restarting = (
        "kiebitz: the publishing process has died and is restarted; "
        "what is recorded meanwhile is published later"
    )

    def __init__(self, tapping: TapTarget, database: str) -> None:
        self._tapping = tapping
        self._is_full = False
        self._run = secrets.token_hex(8)
        # Not named after the database: the next tap in this folder publishes the rest, whatever its database.
        self._beside = Path(database).absolute().parent / f"tap-{tapping.name}"
        note = msgspec.json.encode(Note(str(tapping.place), tapping.name, self._run))
        make = partial(JournalWriter, segment_bytes=_SEGMENT_BYTES)
        super().__init__(database, self._beside, make, self._journal_trouble, print_error_line, note)
        self.items = ItemWriter(self.journal)
        self.tee = partial(TeeJournal, tap=self.journal)
        """Makes the recording's own journal, whose data is also written to this one."""

    def start(self) -> None:
        """Start publishing. Raises OSError."""
        self._start()

    def look(self) -> None:
        self.journal.flush()
        super().look()

    def finish(self) -> bool:
        """Wait until everything is published, or publishing is abandoned for now."""
        signal.signal(signal.SIGINT, signal.default_int_handler)
        return super().finish()

    def _start_child(self) -> tuple[SpawnProcess, Connection]:
        task = Task(self._tapping, self._run, self._beside, self._folder.journal, self.journal.identity)
        return start_connected(publish_journal, task)

    def _take(self, report: None) -> None:
        self._may_restart = True

    def _report_given_up(self, status: int | None) -> None:
        self._is_over = status == DAMAGED
        if not self._is_ending:
            self._notify("kiebitz: the publishing process has died; publishing has stopped")

    def _report_kept(self) -> None:
        self._notify(
            f"kiebitz: unpublished data is kept in {self._folder.folder}; the next recording in "
            f"that folder with --publish {self._tapping.place} --tap {self._tapping.name} publishes it first"
        )

    def _journal_trouble(self, _: str) -> None:
        if self._is_full == self.journal.is_dropping:
            return
        self._is_full = not self._is_full
        if self._is_full:
            print_error_line(
                f"kiebitz: the backlog for {self._tapping.place} is full: "
                "new data is still recorded here, but becomes a gap there"
            )
        else:
            print_error_line("kiebitz: the backlog has room again: new data will be published")
