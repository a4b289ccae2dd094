"""Recorded captures, and what an inspector finds in them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from cleanup import close_after_test
from command import ROOT
from imported_databases import database_of
from tcp_segments import items_of_packets

from kiebitz.cli.options.session import open_session
from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.inspection.inspector import Inspector
from kiebitz.dissectors.model import Chunk, Diagnostic, Direction, Findings, Gap, Ids, Item, Stream
from kiebitz.dissectors.registry import BUILT_IN, dissector_of
from kiebitz.proxy.capture.files import open_capture
from kiebitz.services.decode_as import server_ports

CAPTURES = ROOT / "captures"


def items_of(name: str, lost: Callable[[int], bool] = lambda number: False) -> list[Item]:
    """Return all items of a capture's TCP connections, without lost packets (by number, from 0)."""
    with open_capture(str(CAPTURES / name)) as capture:
        packets = [packet for number, packet in enumerate(capture) if not lost(number)]
    return items_of_packets(packets, server_ports({}, "tcp"))


def inspected(items: Iterable[Item]) -> Findings:
    inspector = Inspector(BUILT_IN, Ids())
    for item in items:
        inspector.feed(item)
    inspector.finish()
    return inspector.drain()


def errors(found: Findings) -> list[Diagnostic]:
    """Return the diagnostics that are errors."""
    return [diagnostic for diagnostic in found.diagnostics if diagnostic.severity == "error"]


def bytewise(items: Iterable[Item]) -> Iterator[Item]:
    """Yield the same, a byte at a time."""
    for item in items:
        if isinstance(item, Chunk):
            for at in range(len(item.data)):
                piece = item.data[at : at + 1]
                yield Chunk(item.stream, item.direction, item.ts_ns, item.offset + at, piece)
        else:
            yield item


def joined(items: Iterable[Item]) -> Iterator[Item]:
    """Yield the same, with what follows in one direction joined as long as the other side is silent."""
    held: Chunk | None = None
    for item in items:
        if (
            held is not None
            and isinstance(item, Chunk)
            and (item.stream, item.direction) == (held.stream, held.direction)
        ):
            held = Chunk(held.stream, held.direction, held.ts_ns, held.offset, held.data + item.data)
            continue
        if held is not None:
            yield held
        held = item if isinstance(item, Chunk) else None
        if held is None:
            yield item
    if held is not None:
        yield held


def told(found: Findings) -> list[list[Any]]:
    """Return all that was found but the times."""
    messages = [(m.stream.client, m.direction, m.name, m.fields, m.offset, m.length) for m in found.messages]
    events = [(event.kind, event.actor, event.data, event.changes) for event in found.events]
    wrong = [(d.code, d.offset, d.length, d.text) for d in found.diagnostics]
    return [sorted(messages, key=repr), events, sorted(wrong)]


def from_then_on(items: Sequence[Item], begin: int) -> list[Item]:
    """Return the items from number `begin` on, as of a capture that began there."""
    seen: set[tuple[Stream, Direction]] = set()
    late: list[Item] = []
    for item in items[begin:]:
        if isinstance(item, Chunk):
            key = (item.stream, item.direction)
            if key not in seen and item.stream.transport == "tcp":
                seen.add(key)
                late.append(Gap(item.stream, item.direction, item.ts_ns, 0, None))
        late.append(item)
    return late


def holed(items: Iterable[Item], first: int) -> list[Item]:
    """Replace every 61st segment, from number `first` on, by a gap."""
    return [
        Gap(item.stream, item.direction, item.ts_ns, item.offset, len(item.data))
        if isinstance(item, Chunk) and number % 61 == first
        else item
        for number, item in enumerate(items)
    ]


class Said(NamedTuple):
    """A message of a capture: in which protocol, from which side, and its bytes."""

    dissector: Dissector
    direction: Direction
    frame: bytes


def messages_of(name: str) -> list[Said]:
    """Return all messages of a capture, each once, whether sound or not."""
    connection = close_after_test(open_session(database_of(name)).connection)
    sent: dict[tuple[int, str], bytearray] = {}
    for stream, direction, offset, data in connection.execute(
        "SELECT stream_id, direction, offset, data FROM chunks WHERE data IS NOT NULL ORDER BY id"
    ):
        told = sent.setdefault((stream, direction), bytearray())
        told += bytes(offset - len(told)) + data
    query = (
        "SELECT protocol, stream_id, direction, offset, length FROM messages"
        " JOIN streams ON streams.id = stream_id ORDER BY messages.id"
    )
    found: dict[Said, None] = {}
    for protocol, stream, direction, offset, length in connection.execute(query):
        dissector = dissector_of(protocol)
        assert dissector is not None
        found[Said(dissector, direction, bytes(sent[stream, direction][offset : offset + length]))] = None
    return [*found]
