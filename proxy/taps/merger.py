"""Merging of many taps' messages into the items of one session: each once, in one order, by one clock.

Items are numbered within a run of a tap, so repeated ones are dropped, and early ones are held. Between runs,
times give the order. So an item waits until all other taps have reported that they have sent everything up to
its time, but at most `WAIT_NS`; later ones are inserted where they arrive. A run's times are shifted by the
difference between its tap's clock and JetStream's. It is measured by the message with the shortest transit
time up to the run's first item.

Pure: the reader passes in the messages and the server's time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from heapq import heappop, heappush, nsmallest
from typing import NamedTuple

import msgspec

from kiebitz.dissectors.model import DIRECTIONS, Direction, End, Gap, Item, Stream
from kiebitz.proxy.taps.jetstream import START_POSITION, MessagePosition, ReceivedMessage
from kiebitz.proxy.taps.wire_format import (
    AlteredRecord,
    Batch,
    ChunkRecord,
    EndRecord,
    GapRecord,
    Record,
    RunEndRecord,
    StreamRecord,
    TapError,
    decode,
    rewrite_loopback,
    shift_time,
    to_item,
)

WAIT_NS = 3_000_000_000
"""Longest wait for other taps; a tap that has been silent for that long is no longer waited for."""

LOST_NS = 10_000_000_000
"""Longest wait for an item after later ones of its run arrived; then it counts as lost."""

MAX_HELD = 64
"""Maximum number of a run's batches held for an earlier one; more are never in transit."""

MAX_WAITING = 50_000
MAX_WAITING_BYTES = 32 << 20
"""Limits of the queue; beyond them the earliest items no longer wait."""

MAX_RUNS = 1000
"""Maximum number of runs of one tap in one database."""

MAX_TAPS = 4096

MAX_STREAMS = 16_384
"""Maximum number of open streams of a tap, more than relays support."""

_MIN_REPORTED_SHIFT_NS = 1_000_000_000

RunKey = tuple[str, str]
"""A tap's name, and the id of a run."""


class RunProgress(msgspec.Struct):
    """The recorded part of a run; streams are given by their number in the run.

    Attributes:
        items: Number of items.
        clock_ns: Shift of its times.
        streams: Open streams.
        ends: Number of bytes received of each stream and direction.
    """

    items: int = 0
    clock_ns: int | None = None
    streams: dict[int, Stream] = msgspec.field(default_factory=dict)
    ends: dict[tuple[int, Direction], int] = msgspec.field(default_factory=dict)


class _QueuedRecord(NamedTuple):
    """A queued record, ordered by its time `key`; of equal ones the run that was seen first comes first."""

    key: int
    order: int
    number: int
    record: Record
    stream: StreamRecord | None
    position: MessagePosition


class _Run(msgspec.Struct, eq=False):
    """State of a run of a tap; all times are by the server's clock.

    Attributes:
        next: Number of the first item that has not arrived.
        known: Progress up to the last item emitted.
        has_begun: True once an item has arrived; from then on its clock shift is fixed.
        heard_ns: Time of its latest message.
        until_ns: Time up to which it has sent all its items.
        is_over: True if it has ended.
        held: Batches that arrived early, by their first item.
        held_since: Time since which an item is missing.
    """

    key: RunKey
    order: int
    machine: int
    known: RunProgress
    next: int
    has_begun: bool
    latest_key: int = 0
    latest_ns: int = 0
    heard_ns: int = 0
    until_ns: int = 0
    is_over: bool = False
    held: dict[int, tuple[Batch, ReceivedMessage]] = msgspec.field(default_factory=dict)
    held_since: int = 0


class Merger:
    """Merges the items of all runs of all taps.

    Args:
        stream_ids: Source of ids for streams.
        known: Progress of the runs recorded already.
        taps: Names of the taps in the order in which they first appeared; the first keeps its loopback
            addresses.
        on_notice: Callback with a short code and a sentence, for taps that come and go, and for lost items.
    """

    def __init__(
        self,
        stream_ids: Iterator[int],
        known: Mapping[RunKey, RunProgress],
        taps: list[str],
        on_notice: Callable[[str, str], None],
    ) -> None:
        self._stream_ids = stream_ids
        self._taps = {name: machine for machine, name in enumerate(dict.fromkeys(taps))}
        self._on_notice = on_notice
        self._runs: dict[RunKey, _Run] = {}
        self._in_order: list[_Run] = []
        self._runs_of: Counter[str] = Counter()
        self._streams_of: Counter[str] = Counter()
        """Number of runs, and of open streams in them, by tap."""
        for key, progress in known.items():
            self._add(key, progress)
        self._waiting: list[_QueuedRecord] = []
        self._waiting_bytes = 0
        self._held_bytes = 0
        self._latest = START_POSITION
        self._progress: dict[RunKey, RunProgress] = {}
        self._opened: list[tuple[RunKey, int, Stream]] = []

    def feed(self, arrived: ReceivedMessage) -> None:
        """Process a message. Raises TapError if no tap of that name can have published it."""
        self._latest = arrived.position
        batch = decode(arrived.data)
        if batch.tap != arrived.name:
            raise TapError(f"it names another tap, {batch.tap}")
        run = self._runs.get((batch.tap, batch.run)) or self._add_new_run((batch.tap, batch.run))
        if not run.has_begun:
            clock_ns = arrived.stored_ns - batch.sent_ns
            known = run.known
            known.clock_ns = clock_ns if known.clock_ns is None else min(known.clock_ns, clock_ns)
        run.heard_ns = max(run.heard_ns, arrived.stored_ns)
        if batch.first + len(batch.items) < run.next:
            return
        if batch.first > run.next:
            if not batch.items:
                return
            if not run.held:
                run.held_since = arrived.stored_ns
            before = run.held.get(batch.first)
            if before is None or len(before[0].items) < len(batch.items):
                run.held[batch.first] = batch, arrived
                self._held_bytes += len(arrived.data) - (len(before[1].data) if before is not None else 0)
            if len(run.held) > MAX_HELD or self._held_bytes > MAX_WAITING_BYTES:
                self._skip_lost(run)
            return
        self._append(run, batch, arrived)
        self._append_held(run)

    def ready(self, now_ns: int) -> list[Item]:
        """Return the items that need not wait any more, in order, given the server's time."""
        for run in self._in_order:
            if run.held and now_ns - run.held_since > LOST_NS:
                self._skip_lost(run)
        items: list[Item] = []
        waiting = self._waiting
        # The two that are furthest behind, of those that may send more.
        behind = (
            (run.until_ns, run.order)
            for run in self._in_order
            if not run.is_over and now_ns - run.heard_ns <= WAIT_NS
        )
        slowest = nsmallest(2, behind)
        while waiting and (
            waiting[0].key <= next((until for until, order in slowest if order != waiting[0].order), now_ns)
            or waiting[0].key + WAIT_NS <= now_ns
            or len(waiting) > MAX_WAITING
            or self._waiting_bytes > MAX_WAITING_BYTES
        ):
            queued = heappop(waiting)
            self._waiting_bytes -= _size(queued.record)
            self._emit(self._in_order[queued.order], queued, items)
        return items

    def flush(self) -> list[Item]:
        """Return all remaining items and the ends of all streams, without waiting."""
        items = self.ready(1 << 63)
        for run in self._in_order:
            items += self._ends(run, run.latest_ns)
        return items

    def recorded_to(self) -> MessagePosition:
        """Return the position up to which all messages were emitted."""
        pending = [one.position for one in self._waiting]
        pending += [arrived.position for run in self._in_order for _, arrived in run.held.values()]
        if not pending:
            return self._latest
        first = min(pending)
        return first._replace(sequence=first.sequence - 1)

    def progress(self) -> dict[RunKey, RunProgress]:
        """Return the progress of runs with items emitted since the last call."""
        progress, self._progress = self._progress, {}
        return progress

    def opened(self) -> list[tuple[RunKey, int, Stream]]:
        """Return the streams opened since the last call, each with its run and its number in it."""
        opened, self._opened = self._opened, []
        return opened

    def _add_new_run(self, key: RunKey) -> _Run:
        name, _ = key
        if self._runs_of[name] >= MAX_RUNS or (name not in self._taps and len(self._taps) >= MAX_TAPS):
            raise TapError("the database has too many runs: collect into another one")
        self._on_notice(f"heard {name}", f"receiving from the tap {name}")
        return self._add(key, RunProgress())

    def _add(self, key: RunKey, known: RunProgress) -> _Run:
        name, _ = key
        machine = self._taps.setdefault(name, len(self._taps))
        run = _Run(key, len(self._in_order), machine, known, known.items, known.items > 0)
        run.latest_ns = max((stream.opened_ns for stream in known.streams.values()), default=0)
        self._runs[key] = run
        self._in_order.append(run)
        self._runs_of[name] += 1
        self._streams_of[name] += len(known.streams)
        return run

    def _append(self, run: _Run, batch: Batch, arrived: ReceivedMessage) -> None:
        """Queue the new items of a batch."""
        if not run.has_begun and batch.items:
            run.has_begun = True
            self._report_clock(run)
        clock_ns = run.known.clock_ns or 0
        streams = {stream.number: stream for stream in batch.streams}
        earliest = arrived.stored_ns - WAIT_NS
        for record in batch.items[run.next - batch.first :]:
            in_time = min(max(record.ts_ns + clock_ns, earliest), arrived.stored_ns)
            key = run.latest_key = max(run.latest_key, in_time)
            stream = None if isinstance(record, RunEndRecord) else streams[record.stream]
            heappush(self._waiting, _QueuedRecord(key, run.order, run.next, record, stream, arrived.position))
            self._waiting_bytes += _size(record)
            run.next += 1
            run.is_over = isinstance(record, RunEndRecord)
        if batch.until_ns:
            run.until_ns = max(run.until_ns, batch.until_ns + clock_ns)

    def _append_held(self, run: _Run) -> None:
        """Queue held batches that are next now."""
        while run.held and (first := min(run.held)) <= run.next:
            batch, arrived = run.held.pop(first)
            self._held_bytes -= len(arrived.data)
            if first + len(batch.items) > run.next:
                self._append(run, batch, arrived)

    def _skip_lost(self, run: _Run) -> None:
        """Skip items that are lost."""
        first = min(run.held)
        self._on_notice(
            f"lost {run.key[0]}",
            f"items {run.next + 1} to {first} of the tap {run.key[0]} are lost: JetStream does not have them",
        )
        run.next = first
        self._append_held(run)

    def _report_clock(self, run: _Run) -> None:
        clock_ns = run.known.clock_ns or 0
        if abs(clock_ns) >= _MIN_REPORTED_SHIFT_NS:
            way = "behind" if clock_ns > 0 else "ahead of"
            self._on_notice(
                f"clock {run.key[0]}",
                f"the clock of the tap {run.key[0]} is {abs(clock_ns) / 1e9:.1f} s {way} the server's; "
                "its times are corrected",
            )

    def _emit(self, run: _Run, queued: _QueuedRecord, items: list[Item]) -> None:
        """Append the item of a record to `items`, after a gap for bytes missing before it."""
        known = run.known
        known.items = queued.number + 1
        self._progress[run.key] = known
        record, clock_ns = queued.record, known.clock_ns or 0
        if isinstance(record, RunEndRecord):
            items += self._ends(run, shift_time(record.ts_ns, clock_ns))
            self._on_notice(f"over {run.key[0]}", f"the tap {run.key[0]} has ended")
            return
        assert queued.stream is not None
        stream = known.streams.get(record.stream)
        if stream is None:
            if isinstance(record, EndRecord):
                return
            if self._streams_of[run.key[0]] >= MAX_STREAMS:
                self._on_notice(
                    f"streams {run.key[0]}",
                    f"the tap {run.key[0]} has over {MAX_STREAMS:,} open streams: further ones are left out",
                )
                return
            stream = self._open(run, queued.stream, clock_ns)
        item = to_item(record, stream, clock_ns)
        run.latest_ns = max(run.latest_ns, item.ts_ns)
        if isinstance(record, EndRecord):
            self._close(run, record.stream)
        elif isinstance(record, ChunkRecord | GapRecord):
            key = record.stream, DIRECTIONS[record.direction]
            end = known.ends.get(key, 0)
            if record.offset > end:
                items.append(Gap(stream, key[1], item.ts_ns, end, record.offset - end))
            known.ends[key] = max(end, record.offset + _length(record))
        items.append(item)

    def _open(self, run: _Run, record: StreamRecord, clock_ns: int) -> Stream:
        stream = run.known.streams[record.number] = Stream(
            next(self._stream_ids),
            record.transport,
            rewrite_loopback(record.client, run.machine),
            rewrite_loopback(record.server, run.machine),
            shift_time(record.opened_ns, clock_ns),
        )
        self._streams_of[run.key[0]] += 1
        self._opened.append((run.key, record.number, stream))
        return stream

    def _close(self, run: _Run, number: int) -> None:
        """Remove an ended stream, as its number may be reused."""
        del run.known.streams[number]
        self._streams_of[run.key[0]] -= 1
        for direction in DIRECTIONS:
            run.known.ends.pop((number, direction), None)

    def _ends(self, run: _Run, ts_ns: int) -> list[Item]:
        """Remove a run's open streams, and return their ends."""
        open_streams = [*run.known.streams.items()]
        for number, _ in open_streams:
            self._close(run, number)
        return [End(stream, ts_ns, "end") for _, stream in open_streams]


def _length(record: ChunkRecord | GapRecord) -> int:
    """Return the number of bytes that a record covers in its direction."""
    if isinstance(record, ChunkRecord):
        return len(record.data) + record.missing
    return record.length or 0


def _size(record: Record) -> int:
    """Return the approximate memory of a record in bytes."""
    if isinstance(record, ChunkRecord):
        return len(record.data)
    if isinstance(record, AlteredRecord):
        return len(record.original or b"") + len(record.fields_json or "")
    return 0
