"""Recorder of what taps publish into one session.

The progress of each tap is committed together with its items, so a collector resumes by itself. JetStream
does not keep the progress.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from kiebitz.proxy.taps.jetstream import Consumer, MessagePosition, ReceivedMessage
from kiebitz.proxy.taps.merger import Merger, RunProgress
from kiebitz.proxy.taps.nats_url import NatsUrl
from kiebitz.proxy.taps.wire_format import TapError
from kiebitz.services.recording.notices import Notices
from kiebitz.services.recording.stop_conditions import StopCondition
from kiebitz.services.recording.task import View
from kiebitz.services.standard_streams import print_error_line
from kiebitz.storage.database.schema import StorageError
from kiebitz.storage.recording.disk_space import check_reserve
from kiebitz.storage.recording.recorder import COMMIT_EVERY_S, Recorder
from kiebitz.storage.recording.tap_progress import CollectedSession

_AHEAD = 2
"""Maximum number of batches read ahead."""

_LOOK_EVERY_S = 0.05
_RETRY_S = 0.5


class Collector:
    """Records what is published at `place` into `collection`, and shows it in `view`.

    It ends at `end`, or when the recording `is_full`.
    """

    def __init__(
        self,
        place: NatsUrl,
        credentials: Path | None,
        collection: CollectedSession,
        view: View,
        is_full: Callable[[Recorder], bool],
        end: StopCondition,
    ) -> None:
        self._place = place
        self._collection = collection
        self._recorder = collection.recorder
        self._view = view
        self._is_full = is_full
        self._end = end
        self._notices = Notices()
        self._consumer = Consumer(place, credentials, MessagePosition(*collection.position), print_error_line)
        self._merger = Merger(
            collection.stream_ids,
            {
                (run.name, run.run): RunProgress(run.items, run.clock_ns, run.streams, run.ends)
                for run in collection.runs
            },
            [run.name for run in collection.runs],
            self._notices,
        )
        self._server_ns = 0
        self._told_at = 0.0
        self._is_behind = True

    def run(self) -> None:
        """Record to the end and close the session. Raises StorageError."""
        asyncio.run(self._run())

    async def _run(self) -> None:
        arrived: asyncio.Queue[list[ReceivedMessage]] = asyncio.Queue(_AHEAD)
        reading = asyncio.create_task(self._consumer.run(arrived))
        committed = time.monotonic()
        try:
            while not self._end.has_come:
                with suppress(TimeoutError):
                    async with asyncio.timeout(_LOOK_EVERY_S):
                        received = await arrived.get()
                    for one in received:
                        self._take(one)
                self._recorder.record(self._merger.ready(self._now_ns()))
                now = time.monotonic()
                if self._recorder.full or now - committed >= COMMIT_EVERY_S / 2:
                    await self._commit()
                    committed = now
                    if self._is_full(self._recorder):
                        break
        finally:
            reading.cancel()
            with suppress(asyncio.CancelledError):
                await reading
        self._recorder.record(self._merger.flush())
        self._note()
        self._view.show(self._recorder.close())

    def _take(self, one: ReceivedMessage) -> None:
        self._server_ns = max(self._server_ns, one.stored_ns)
        self._told_at = time.monotonic()
        self._is_behind = one.behind > 0
        try:
            self._merger.feed(one)
        except TapError as error:
            self._notices(
                "refused",
                f"a message under {self._place.subject}.{one.name} is left out: {error}",
            )

    def _now_ns(self) -> int:
        """Return the server's time; that of the last message read while more are pending."""
        passed_s = 0.0 if self._is_behind else time.monotonic() - self._told_at
        return self._server_ns + round(passed_s * 1e9)

    async def _commit(self) -> None:
        """Commit all ordered items and the progress of each tap, retrying until it succeeds."""
        self._note()
        self._view.show(self._recorder.gather())
        failed = False
        while True:
            try:
                check_reserve(self._recorder.path)
                self._recorder.write()
            except StorageError as error:
                if self._end.has_come:
                    raise
                if not failed:
                    print_error_line(f"kiebitz: {error}; the taps' data is kept in JetStream meanwhile")
                failed = True
                await asyncio.sleep(_RETRY_S)
            else:
                if failed:
                    print_error_line(
                        "kiebitz: the database can be written again; the backlog is being recorded"
                    )
                return

    def _note(self) -> None:
        """Add the progress of each tap to the next commit."""
        progress = self._merger.progress()
        position = self._merger.recorded_to()
        for (name, run), known in progress.items():
            self._collection.note(name, run, known.items, known.clock_ns or 0, *position)
        for (name, run), number, stream in self._merger.opened():
            self._collection.note_stream(name, run, number, stream)
