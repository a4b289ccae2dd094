"""The process of a tap: publishes a journal and deletes what is acknowledged.

It first publishes what earlier taps of its name have left in the same folder for the same destination. It
never affects the recording: what cannot be published remains in the journal.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path

import msgspec

from kiebitz.dissectors.model import Item
from kiebitz.proxy.journal.follower import follow, lower_priority, read_rest
from kiebitz.proxy.journal.reader import JournalError, JournalReader
from kiebitz.proxy.system.clock import now_ns
from kiebitz.proxy.taps.publisher import BatchBuilder, PublishAbandoned, Publisher
from kiebitz.services.faults import infrequent_gc, reporting_faults
from kiebitz.services.publishing.tap_target import TapTarget
from kiebitz.services.standard_streams import print_error_line
from kiebitz.services.supervision.journal_folder import JournalFolder, hold, private_folders

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
