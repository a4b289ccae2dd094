"""Recorded games in which one message cannot be read, while the other side goes on as recorded."""

from __future__ import annotations

import gc
import itertools
import os
import pickle
import random
import re
import warnings
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from typing import NamedTuple, TypeVar

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
WINDOW = 1500
"""Number of items that are inspected after a mutated message: two games and more."""

_TOKEN = re.compile(rb"[A-Za-z0-9_:#.\-]+")

_VALUE = re.compile(rb"(?<![A-Za-z0-9.:])\d+(?::[A-Z]+)?(?![A-Za-z0-9.:])")
_VALUES = (*(str(number).encode() for number in range(7)), b"5:BLACK", b"0:RED")

T = TypeVar("T")

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
    found = _Inspection({}, dissectors).read(items)
    transports = {stream.server: stream.transport for stream in found.streams}
    named = {dissector.protocol: dissector for dissector in dissectors}
    protocols: DecodeAs = {
        (transports[table.server], port_of(table.server)): named[table.protocol] for table in found.tables
    }
    readable = [one for one in _Inspection(protocols).read(items).messages if one.name != "unreadable"]
    return Game(items, readable, protocols)


def mutations(game: Game, direction: Direction) -> Iterator[Mutation]:
    """Yield all mutations of one side's messages."""
    for message, frame in _frames(game, direction):
        for kind, changed in _changed(frame, message):
            if changed != frame:
                yield Mutation(kind, message, changed)


def _frames(game: Game, direction: Direction) -> Iterator[tuple[Message, bytes]]:
    """Yield one side's messages with their bytes."""
    data: dict[tuple[int, Direction], bytearray] = {}
    for item in game.items:
        if isinstance(item, Chunk):
            sent = data.setdefault((item.stream.id, item.direction), bytearray())
            sent[item.offset :] = bytes(max(0, item.offset - len(sent))) + item.data
    for message in game.messages:
        if message.direction == direction:
            sent = data[message.stream.id, direction]
            yield message, bytes(sent[message.offset : message.offset + message.length])


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


def other_values(game: Game, chance: random.Random) -> Iterator[Mutation]:
    """Yield mutations of the server's messages that have another number or tile, and can mostly be read."""
    for message, frame in _frames(game, "s2c"):
        values = [*_VALUE.finditer(frame)]
        if values:
            old, new = chance.choice(values), chance.choice([*_VALUES, *(value[0] for value in values)])
            yield Mutation("other value", message, frame[: old.start()] + new + frame[old.end() :])


def blamed(game: Game, side: str) -> set[Accusation]:
    """Return the accusations of a side in the recorded game."""
    return {accusation for accusation, _ in _accusations(_Inspection(game.protocols).read(game.items), side)}


def blamed_after_each(
    game: Game, mutations: Iterable[Mutation], readable: bool = False
) -> Iterator[tuple[Mutation, dict[Accusation, str] | None]]:
    """Yield each mutation with the accusations of the other side and their texts.

    The accusations are None if the mutated message is readable; with `readable`, if it is not. The recorded
    items are inspected once: at each mutated message, a copy of this process inspects the mutation and what
    follows.
    """
    due: dict[int, list[Mutation]] = {}
    positions = _positions(game)
    for mutation in mutations:
        message = mutation.message
        offsets, numbers = positions[message.stream.id, message.direction]
        due.setdefault(numbers[bisect_right(offsets, message.offset) - 1], []).append(mutation)
    inspection = _Inspection(game.protocols)
    for position, item in enumerate(game.items):
        for mutation in due.get(position, ()):
            rest = game.items[position : position + WINDOW]
            inspection.drain()
            yield mutation, _in_copy(partial(_blamed_after, inspection, rest, mutation, readable))
        inspection.feed(item)


def _positions(game: Game) -> dict[tuple[int, Direction], tuple[list[int], list[int]]]:
    """Return the offsets and the numbers of the items with bytes, by stream and direction."""
    found: dict[tuple[int, Direction], tuple[list[int], list[int]]] = {}
    for number, item in enumerate(game.items):
        if isinstance(item, Chunk):
            offsets, numbers = found.setdefault((item.stream.id, item.direction), ([], []))
            offsets.append(item.offset)
            numbers.append(number)
    return found


def _in_copy(function: Callable[[], T]) -> T:
    """Return the result of a function that runs in a copy of this process, which thereby stays unchanged."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        # The copy waits for none of this process's other threads: it computes, writes and ends.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if not child:
        gc.disable()
        status = 1
        try:
            with open(writing, "wb") as result:
                pickle.dump(function(), result)
            status = 0
        finally:
            os._exit(status)
    os.close(writing)
    with open(reading, "rb") as result:
        data = result.read()
    assert os.waitpid(child, 0)[1] == 0
    found: T = pickle.loads(data)
    return found


def _blamed_after(
    inspection: _Inspection, items: Sequence[Item], mutation: Mutation, readable: bool
) -> dict[Accusation, str] | None:
    message, data = mutation.message, mutation.data
    shift = 0 if data is None else len(data) - message.length
    found = inspection.read(_mutated(items, message, data, shift))
    if (data is not None and _is_readable(found, message, len(data))) is not readable:
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


class _Inspection:
    """An inspection of items, whose streams it does not change."""

    def __init__(self, protocols: DecodeAs, dissectors: Sequence[Dissector] = BUILT_IN) -> None:
        self._inspector = Inspector(dissectors, Ids(), protocols)
        self._streams: dict[int, Stream] = {}
        self.drain = self._inspector.drain

    def feed(self, item: Item) -> None:
        stream = self._streams.setdefault(item.stream.id, msgspec.structs.replace(item.stream))
        self._inspector.feed(msgspec.structs.replace(item, stream=stream))

    def read(self, items: Iterable[Item]) -> Findings:
        """Return the findings in the last items."""
        for item in items:
            self.feed(item)
        self._inspector.finish()
        return self._inspector.drain()


def _accusations(found: Findings, side: str) -> Iterator[tuple[Accusation, str]]:
    for one in found.diagnostics:
        if one.severity != "note" and one.blame == side:
            yield (one.stream.id, one.direction, one.offset, one.code), one.text
