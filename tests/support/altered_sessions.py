"""Recorded sessions played again with something altered: a message lost, changed, moved, or names others."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from imported_databases import database_of

from kiebitz.cli.options.session import open_session
from kiebitz.dissectors.model import Chunk, Direction, End, Item, Stream
from kiebitz.storage.read.message_queries import messages, streams
from kiebitz.storage.read.recorded_bytes import chunks
from kiebitz.storage.read.timeline import Timeline
from kiebitz.storage.recording.recorder import Recorder


@dataclass(frozen=True)
class Said:
    """A message as bytes, with its stream, direction, time and origin in the recording.

    The origin is the message's name, and kind and number of the event that it reports, if any.
    """

    stream: int
    direction: Direction
    ts_ns: int
    name: str
    kind: str | None
    event: int | None
    data: bytes


Alter = Callable[[list[Said]], Sequence[Said]]


@dataclass(frozen=True)
class Recorded:
    """The messages and streams of a session."""

    said: tuple[Said, ...]
    streams: tuple[Stream, ...]

    def with_said(self, said: Sequence[Said]) -> Recorded:
        return dataclasses.replace(self, said=tuple(said))

    def write(self, path: Path, shift_ns: int = 0, other_ports: bool = False) -> str:
        """Record it as a session of a database; with other clients' ports if that is asked for."""
        known = {
            stream.id: Stream(
                stream.id,
                stream.transport,
                _moved(stream.client, stream.id) if other_ports else stream.client,
                stream.server,
                stream.opened_ns + shift_ns,
                stream.protocol,
                None if stream.closed_ns is None else stream.closed_ns + shift_ns,
                stream.close_reason,
            )
            for stream in self.streams
        }
        offsets: dict[tuple[int, Direction], int] = {}
        items: list[Item] = []
        # A close keeps its time even if the order of messages is altered.
        open_ones = sorted(known.values(), key=lambda stream: stream.closed_ns or 0, reverse=True)
        for one in self.said:
            while open_ones and (open_ones[-1].closed_ns or 0) < one.ts_ns + shift_ns:
                items.append(_end(open_ones.pop()))
            key = (one.stream, one.direction)
            offset = offsets.get(key, 0)
            offsets[key] = offset + len(one.data)
            items.append(Chunk(known[one.stream], one.direction, one.ts_ns + shift_ns, offset, one.data))
        items += [_end(stream) for stream in reversed(open_ones)]
        first_ns = min((stream.opened_ns for stream in known.values()), default=0)
        recorder = Recorder(str(path), "import", "altered", started_ns=first_ns)
        recorder.record(items)
        recorder.close()
        return str(path)


@cache
def recorded(capture: str) -> Recorded:
    """Return a capture, cut into messages."""
    timeline = open_session(database_of(capture))
    with closing(timeline.connection):
        return of_session(timeline)


def of_session(timeline: Timeline) -> Recorded:
    """Return a session, cut into messages."""
    rows = streams(timeline)
    sent: dict[tuple[int, Direction], bytearray] = {}
    for row in rows:
        for chunk in chunks(timeline.connection, row.id):
            if chunk.data is not None:
                sent.setdefault((row.id, chunk.direction), bytearray()).extend(chunk.data)
    kinds = {event.id: event.kind for event in timeline.events()}
    said = tuple(
        Said(
            message.stream.id,
            message.direction,
            message.ts_ns,
            message.name,
            kinds.get(message.event_id or 0),
            message.event_id,
            bytes(
                sent[message.stream.id, message.direction][message.offset : message.offset + message.length]
            ),
        )
        for message in messages(timeline)
    )
    known = tuple(
        Stream(
            row.id,
            row.transport,
            row.client,
            row.server,
            row.opened_ns,
            closed_ns=row.closed_ns,
            close_reason=row.close_reason,
        )
        for row in rows
    )
    return Recorded(said, known)


def _end(stream: Stream) -> End:
    return End(stream, stream.closed_ns or 0, stream.close_reason or "closed")


def _moved(client: str, number: int) -> str:
    host, _, _ = client.rpartition(":")
    return f"{host}:{20_000 + number}"
