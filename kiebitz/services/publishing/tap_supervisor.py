"""Publishing of a recording: the process that does it, its supervisor, and the journal between them."""

from __future__ import annotations

import asyncio
import secrets
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path

import msgspec

from kiebitz.dissectors.model import Direction, Item, Transport
from kiebitz.proxy.alterer import Mark
from kiebitz.proxy.journal.follower import follow, lower_priority, read_rest
from kiebitz.proxy.journal.item_writer import ItemWriter
from kiebitz.proxy.journal.reader import JournalError, JournalReader
from kiebitz.proxy.journal.writer import JournalWriter
from kiebitz.proxy.system.clock import now_ns
from kiebitz.proxy.taps.publisher import BatchBuilder, PublishAbandoned, Publisher
from kiebitz.proxy.taps.wire_format import MAX_DATA
from kiebitz.services.faults import infrequent_gc, reporting_faults
from kiebitz.services.publishing.tap_target import TapTarget
from kiebitz.services.standard_streams import print_error_line
from kiebitz.services.supervision.journal_folder import JournalFolder, hold, private_folders
from kiebitz.services.supervision.supervisor import Supervisor, start_connected

SERVER_TIMEOUT_S = 5.0
"""Longest time to wait for a lost server after the recording has ended."""

CLOCK_INTERVAL_S = 0.2
"""Interval at which an idle tap reports its clock, so that other taps' items need not wait."""

_WRITTEN_NS = 100_000_000
"""Time after which a received item is certainly in the journal."""

KEPT = 5
"""Exit status: the rest is left for the next tap."""

DAMAGED = 6
"""Exit status: another process would fail in the same way."""


class Note(msgspec.Struct, frozen=True):
    """The note next to a journal to be published, for the next tap."""

    place: str
    name: str
    run: str


class Task(msgspec.Struct, frozen=True):
    """The journal to publish and its run; `beside` is the path prefix of this tap's folders."""

    tapping: TapTarget
    run: str
    beside: Path
    journal: Path
    identity: tuple[int, int]


@reporting_faults
@infrequent_gc()
def publish_journal(recording: Connection, task: Task) -> None:
    """Publish a journal to its end; run by `start_connected`.

    `recording` becomes readable when the recording ends. A record is sent to it after the first publication.
    """
    lower_priority()
    hold(task.journal.parent)
    try:
        asyncio.run(_publish(task, recording))
    except PublishAbandoned:
        raise SystemExit(KEPT) from None


async def _publish(task: Task, recording: Connection) -> None:
    tapping = task.tapping
    over_since: float | None = None

    def may_wait(lost_since: float) -> bool:
        nonlocal over_since
        if over_since is None and recording.poll():
            over_since = time.monotonic()
        return over_since is None or time.monotonic() - max(over_since, lost_since) < SERVER_TIMEOUT_S

    publisher = Publisher(
        tapping.place,
        tapping.credentials,
        tapping.name,
        on_notice=print_error_line,
        backlog_path=str(task.journal.parent),
        may_wait=may_wait,
    )
    try:
        for folder, note in unpublished_journals(task.beside, tapping):
            reader = JournalReader(folder.journal, skip=None)
            try:
                await _publish_all(
                    publisher,
                    reader,
                    read_rest(reader),
                    BatchBuilder(tapping.name, note.run, reader.items_before),
                )
            except JournalError as error:
                print_error_line(f"kiebitz: {error}; everything before that is published")
            finally:
                reader.close()
            folder.discard()
        reader = JournalReader(task.journal, skip=None, identity=task.identity)
        batches = BatchBuilder(tapping.name, task.run, reader.items_before)
        try:
            await _publish_all(publisher, reader, _report_first(follow(reader), recording), batches)
        except JournalError as error:
            print_error_line(f"kiebitz: {error}; everything before that is published")
            raise SystemExit(DAMAGED) from error
    finally:
        await publisher.close()


async def _publish_all(
    publisher: Publisher, reader: JournalReader, read: Iterator[list[Item]], batches: BatchBuilder
) -> None:
    """Publish everything read. Raises PublishAbandoned and JournalError."""
    latest_ns = None
    told = 0.0
    while True:
        before_ns = now_ns() - _WRITTEN_NS
        # Reading blocks; a thread keeps the connection served.
        items = await asyncio.to_thread(next, read, None)
        if items is None:
            break
        if items or time.monotonic() - told >= CLOCK_INTERVAL_S:
            is_all = reader.is_at_end or not items
            await publisher.publish(batches.batches(items, before_ns if is_all else 0))
            told = time.monotonic()
        if items:
            latest_ns = items[-1].ts_ns
            reader.release()
    if latest_ns is not None or reader.items_before:
        await publisher.publish([batches.end_of_run(now_ns() if latest_ns is None else latest_ns)])


def _report_first(read: Iterator[list[Item]], recording: Connection) -> Iterator[list[Item]]:
    """Yield what is read, and report once the first items are published."""
    has_told = False
    for items in read:
        yield items
        if items and not has_told:
            has_told = True
            # The recording process may have died.
            with suppress(OSError):
                recording.send(None)


def unpublished_journals(beside: Path, tapping: TapTarget) -> Iterator[tuple[JournalFolder, Note]]:
    """Yield, and hold, the journals of earlier taps of this name and destination."""
    for path, _ in private_folders(beside):
        try:
            folder, text = JournalFolder.left(path)
        except OSError:
            # In use by another tap, or not a journal's folder.
            continue
        try:
            note = msgspec.json.decode(text or b"", type=Note)
        except msgspec.DecodeError:
            note = None
        if note is not None and (note.place, note.name) == (str(tapping.place), tapping.name):
            yield folder, note


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
