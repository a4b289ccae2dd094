"""Recorded games in which one message cannot be read, while the other side goes on as recorded."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from functools import cache, partial
from typing import NamedTuple

import msgspec
from inspected_captures import CAPTURES

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.inspection.inspector import DecodeAs, Inspector
from kiebitz.dissectors.model import Chunk, Direction, Findings, Gap, Ids, Item, Message, Stream, port_of
from kiebitz.dissectors.registry import BUILT_IN
from kiebitz.proxy.capture.files import open_capture
from kiebitz.proxy.flows.packet_flows import PacketFlows
from kiebitz.services.decode_as import server_ports

OTHER_SIDE = {"c2s": "server", "s2c": "client"}
_TOKEN = re.compile(rb"[A-Za-z0-9_:#.\-]+")

Accusation = tuple[int, Direction, int, str]
"""Stream, direction, offset in the recorded bytes, and code of a diagnostic."""


class Game(NamedTuple):
    """A recorded game: its items, its messages, and the protocols of its servers."""

    items: Sequence[Item]
    messages: Sequence[Message]
    protocols: DecodeAs


class Mutation(NamedTuple):
    """A message that is to be replaced; by a gap if `data` is None."""

    kind: str
    message: Message
    data: bytes | None


@cache
def game_of(capture: str, dissector: Dissector | None = None) -> Game:
    """Return the game of a capture, by the built-in protocols or a single one."""
    items: list[Item] = []

    def keep(found: list[Item]) -> None:
        items.extend(found)
        found.clear()

    flows = PacketFlows(itertools.count(1), lambda *_: None, partial(server_ports, {}), keep, from_file=True)
    with open_capture(str(CAPTURES / capture)) as packets:
        flows.take(packets)
    flows.end()
    return game_from(items, BUILT_IN if dissector is None else [dissector])


def game_from(items: Sequence[Item], dissectors: Sequence[Dissector]) -> Game:
    """Return the game of these items; each server's protocol is fixed, whatever is mutated."""
    found = _inspect(items, {}, dissectors)
    transports = {stream.server: stream.transport for stream in found.streams}
    named = {dissector.protocol: dissector for dissector in dissectors}
    protocols: DecodeAs = {
        (transports[table.server], port_of(table.server)): named[table.protocol] for table in found.tables
    }
    readable = [one for one in _inspect(items, protocols).messages if one.name != "unreadable"]
    return Game(items, readable, protocols)


def mutations(game: Game, direction: Direction) -> Iterator[Mutation]:
    """Yield all mutations of one side's messages."""
    data: dict[tuple[int, Direction], bytearray] = {}
    for item in game.items:
        if isinstance(item, Chunk):
            sent = data.setdefault((item.stream.id, item.direction), bytearray())
            sent[item.offset :] = bytes(max(0, item.offset - len(sent))) + item.data
    for message in game.messages:
        if message.direction == direction:
            sent = data[message.stream.id, direction]
            frame = bytes(sent[message.offset : message.offset + message.length])
            for kind, changed in _changed(frame, message):
                if changed != frame:
                    yield Mutation(kind, message, changed)


def _changed(frame: bytes, message: Message) -> Iterator[tuple[str, bytes | None]]:
    body = frame.rstrip(b"\r\n")
    end = frame[len(body) :]
    name, middle = message.name.encode(), len(body) // 2
    yield "byte order mark", b"\xef\xbb\xbf" + frame
    yield "other name", frame.replace(name, b"Q" + name[1:], 1)
    yield "control characters", frame[:2] + b"\0\xff" + frame[2:]
    yield "no UTF-8", body[:middle] + b"\xff" + body[middle + 1 :] + end
    yield "cut", body[:middle] + end
    yield "one field more", body + b" extra" + end
    words = [*_TOKEN.finditer(body)]
    for kind, word, other in (
        ("wrong last word", words[-1:], b"\x01?"),
        ("no last word", words[1:][-1:], b""),
        ("wrong word", words[1:][: len(words) // 2][-1:], b"999999999999x"),
    ):
        for found in word:
            yield kind, body[: found.start()] + other + body[found.end() :] + end
    if message.stream.transport == "tcp":
        yield "no end", body[:-1]
        yield "gap", None


def blamed(game: Game, side: str) -> set[Accusation]:
    """Return the accusations of a side in the recorded game."""
    return {accusation for accusation, _ in _accusations(_inspect(game.items, game.protocols), side)}


def blamed_after(game: Game, mutation: Mutation) -> dict[Accusation, str] | None:
    """Return the accusations of the other side, with their texts; None if the mutated message can be read."""
    message, data = mutation.message, mutation.data
    shift = 0 if data is None else len(data) - message.length
    found = _inspect(_mutated(game.items, message, data, shift), game.protocols)
    if data is not None and _is_readable(found, message, len(data)):
        return None
    accused: dict[Accusation, str] = {}
    for (stream, direction, offset, code), text in _accusations(found, OTHER_SIDE[message.direction]):
        if (stream, direction) == (message.stream.id, message.direction) and offset > message.offset:
            offset -= shift
        accused[stream, direction, offset, code] = text
    return accused


def _is_readable(found: Findings, message: Message, length: int) -> bool:
    begin, end = message.offset, message.offset + length
    touched = {
        one.id: one.name
        for one in found.messages
        if (one.stream.id, one.direction) == (message.stream.id, message.direction)
        and one.offset < end
        and one.offset + one.length > begin
    }
    malformed = any(
        one.message_id in touched and one.severity != "note" and one.group == "malformed"
        for one in found.diagnostics
    )
    return "unreadable" not in touched.values() and not malformed


def _mutated(items: Sequence[Item], message: Message, data: bytes | None, shift: int) -> Iterator[Item]:
    begin, end = message.offset, message.offset + message.length
    for item in items:
        if not isinstance(item, Chunk | Gap) or (item.stream.id, item.direction) != (
            message.stream.id,
            message.direction,
        ):
            yield item
        elif item.offset >= end:
            yield msgspec.structs.replace(item, offset=item.offset + shift)
        elif isinstance(item, Gap) or item.offset + len(item.data) <= begin:
            yield item
        else:
            before, after = item.data[: max(0, begin - item.offset)], item.data[end - item.offset :]
            if item.offset + len(before) == begin:
                # The message begins in this one.
                if data is None:
                    yield from (msgspec.structs.replace(item, data=before),) if before else ()
                    yield Gap(item.stream, item.direction, item.ts_ns, begin, message.length)
                else:
                    yield msgspec.structs.replace(item, data=before + data)
            if after:
                yield msgspec.structs.replace(item, data=after, offset=end + shift)


def _inspect(
    items: Iterator[Item] | Sequence[Item], protocols: DecodeAs, dissectors: Sequence[Dissector] = BUILT_IN
) -> Findings:
    streams: dict[int, Stream] = {}
    inspector = Inspector(dissectors, Ids(), protocols)
    for item in items:
        stream = streams.setdefault(item.stream.id, msgspec.structs.replace(item.stream))
        inspector.feed(msgspec.structs.replace(item, stream=stream))
    inspector.finish()
    return inspector.drain()


def _accusations(found: Findings, side: str) -> Iterator[tuple[Accusation, str]]:
    for one in found.diagnostics:
        if one.severity != "note" and one.blame == side:
            yield (one.stream.id, one.direction, one.offset, one.code), one.text
