"""Recorded sessions as they would have been had Kiebitz altered one of their messages as it passed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import cast

import msgspec
from snapshots import as_bytes

from kiebitz.cli.options.session import open_session
from kiebitz.dissectors.model import Action, Altered, Chunk, Direction, End, Fault, Gap, Item, Message
from kiebitz.storage.derived.derived_session import recorded_protocols
from kiebitz.storage.read.message_queries import messages
from kiebitz.storage.read.recorded_items import RecordedItems
from kiebitz.storage.read.timeline import Timeline
from kiebitz.storage.recording.recorder import Recorder

RULE = "--rule 'msg == \"ROLLED\"'"


class Deed(msgspec.Struct, frozen=True):
    """The result for a message: `passed_on` are the bytes forwarded for it, delayed by this many ns.

    With `kept` the message itself is forwarded first.
    """

    message: Message
    action: Action
    passed_on: bytes = b""
    late_ns: int = 0
    kept: bool = False


class _Way:
    """One direction of a stream: the number of bytes added to the recorded ones, and the queued messages."""

    def __init__(self) -> None:
        self.more = 0
        self.begun = b""


def passed_on(items: Iterable[Item], deeds: Sequence[Deed]) -> Iterator[Item]:
    """Yield the items with these deeds done, as a relay would have recorded them."""
    ways: dict[tuple[int, Direction], _Way] = {}
    for item in items:
        if isinstance(item, End):
            yield item
            continue
        way = ways.setdefault((item.stream.id, item.direction), _Way())
        if isinstance(item, Gap | Fault):
            yield msgspec.structs.replace(item, offset=item.offset + way.more)
        elif isinstance(item, Chunk):
            mine = [
                deed
                for deed in deeds
                if (deed.message.stream.id, deed.message.direction) == (item.stream.id, item.direction)
                and deed.message.offset < item.offset + max(len(item.data), 1)
                and item.offset < deed.message.offset + max(deed.message.length, 1)
            ]
            yield from _altered(item, way, mine)


def _altered(chunk: Chunk, way: _Way, deeds: Sequence[Deed]) -> Iterator[Item]:
    at = chunk.offset
    for deed in sorted(deeds, key=lambda deed: deed.message.offset):
        begin, end = deed.message.offset, deed.message.offset + deed.message.length
        if begin > at:
            yield _piece(chunk, way, at, begin)
        upto = min(end, chunk.offset + len(chunk.data))
        way.begun += chunk.data[max(begin, at) - chunk.offset : upto - chunk.offset]
        if upto < end:
            # The rest of the message is still to come, and it is passed on when it is whole.
            at = upto
            continue
        original, way.begun = way.begun, b""
        stream, direction, ts_ns = chunk.stream, chunk.direction, chunk.ts_ns
        here = begin + way.more
        if deed.kept:
            yield Chunk(stream, direction, ts_ns, here, original)
            here += len(original)
        yield Altered(
            stream,
            direction,
            ts_ns + deed.late_ns,
            here,
            len(deed.passed_on),
            deed.action,
            RULE,
            None if deed.kept else ts_ns,
            None if deed.kept else original,
            None if deed.kept else deed.message.name,
            None if deed.kept else msgspec.json.encode(deed.message.fields).decode(),
        )
        if deed.passed_on:
            yield Chunk(stream, direction, ts_ns + deed.late_ns, here, deed.passed_on)
        way.more += len(deed.passed_on) - (0 if deed.kept else len(original))
        at = end
    end = chunk.offset + len(chunk.data)
    if at < end or not deeds:
        yield _piece(chunk, way, at, end)


def _piece(chunk: Chunk, way: _Way, start: int, end: int) -> Chunk:
    data = chunk.data[start - chunk.offset : end - chunk.offset]
    missing = chunk.missing if end == chunk.offset + len(chunk.data) else 0
    return Chunk(chunk.stream, chunk.direction, chunk.ts_ns, start + way.more, data, missing)


def altered_session(path: Path, capture: str, deeds: Sequence[Deed]) -> Timeline:
    """Record a capture into a new database, with these deeds done to its messages."""
    before = open_session(capture)
    recorded = RecordedItems(before)
    recorder = Recorder(
        str(path),
        "relay",
        "made up",
        started_ns=before.session.started_ns,
        decode_as=recorded_protocols(recorded),
    )
    recorder.record(passed_on(recorded.items(), deeds))
    recorder.close()
    before.connection.close()
    return open_session(str(path))


def done_to(capture: str, lines: Sequence[str]) -> list[Deed]:
    """Return the deeds that lines describe: `drop #3`, `double #3`, `change #3 BYTES` or `delay #3 MS`."""
    timeline = open_session(capture)
    known = {row.id: row for row in messages(timeline)}
    deeds = []
    for line in lines:
        action, number, rest = f"{line} ".split(" ", 2)
        row, rest = known[int(number.removeprefix("#"))], rest.strip()
        sent = b"" if action == "drop" else as_bytes(rest) if action == "change" else bytes_of(timeline, row)
        late_ns = int(rest) * 1_000_000 if action == "delay" else 0
        deeds.append(Deed(row, cast(Action, action), sent, late_ns, kept=action == "double"))
    timeline.connection.close()
    return deeds


def bytes_of(timeline: Timeline, row: Message) -> bytes:
    """The bytes of a message."""
    from kiebitz.storage.read.recorded_bytes import bytes_between

    end = row.offset + row.length
    stretches = bytes_between(timeline.connection, row.stream.id, row.direction, row.offset, end)
    return b"".join(stretch.data or b"" for stretch in stretches)


def some(timeline: Timeline, count: int) -> list[Message]:
    every = list(messages(timeline))
    return every[:: max(1, len(every) // count)][:count]
