"""What must hold of the findings of any items, whatever the bytes: nothing lost, nothing left in the air."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.grammar import UNREADABLE
from kiebitz.dissectors.inspector import CUT_OFF
from kiebitz.dissectors.records import Chunk, Diagnostic, Direction, End, Findings, Gap, Item, Message
from kiebitz.dissectors.state import State, apply

Place = tuple[int, Direction, int]
"""Stream, direction and offset."""


def check_accounted(items: Sequence[Item], found: Findings) -> None:
    """Every byte of a server whose protocol is known is in one message, or was said to be cut off.

    What cannot be read has a diagnostic, or stands beside a gap, which has one.
    """
    come = [
        (item.stream.id, item.direction, item.offset, _size(item))
        for item in items
        if isinstance(item, Chunk)
    ]
    streams = {item.stream.id for item in items}
    pieces: list[Message | Diagnostic] = [*found.messages]
    pieces += [flaw for flaw in found.diagnostics if flaw.code == CUT_OFF]
    told = [(p.stream.id, p.direction, p.offset, p.length) for p in pieces if p.stream.id in streams]
    if any(item.stream.transport == "udp" for item in items):
        # Each datagram for itself, the empty ones too.
        assert sorted(told) == sorted(come)
    else:
        assert _runs(told) == _runs(come)
    blamed = {d.message_id for d in found.diagnostics}
    edges = {*_edges(items)}
    for message in found.messages:
        if message.name == UNREADABLE and message.id not in blamed and message.stream.id in streams:
            begin: Place = (message.stream.id, message.direction, message.offset)
            end: Place = (message.stream.id, message.direction, message.offset + message.length)
            assert {begin, end} & edges


def check_in_order(items: Iterable[Item]) -> None:
    """Each direction's bytes and gaps come one after another, and nothing comes once a stream has ended."""
    ends: dict[tuple[int, Direction], int] = {}
    ended: set[int] = set()
    for item in items:
        assert item.stream.id not in ended
        if isinstance(item, End):
            ended.add(item.stream.id)
        elif isinstance(item, Chunk | Gap):
            key = (item.stream.id, item.direction)
            assert item.offset == ends.get(key, 0)
            ends[key] = item.offset + _size(item)


def check_sound(dissector: Dissector, found: Findings) -> None:
    """All that is named is there, each event can be told, and its changes lead to a small state."""
    events = {event.id for event in found.events}
    games = {game.id for game in found.games}
    assert [event.id for event in found.events] == sorted(events)
    for message in found.messages:
        assert message.event_id is None or message.event_id in events
        assert message.game_id is None or message.game_id in games
    protocols = {info.id: info.protocol for info in found.tables}
    states: dict[int, State] = {}
    for event in found.events:
        assert protocols[event.table_id] == dissector.protocol
        assert set(event.data) >= set(dissector.grammar.events[event.kind].fields)
        dissector.describe(event)
        apply(states.setdefault(event.table_id, {}), event.changes)
    for state in states.values():
        # Of the games that are over hardly any is left.
        assert len(state.get("games", {})) <= 4
    for diagnostic in found.diagnostics:
        assert diagnostic.offset >= 0
        assert diagnostic.length >= 0


def _runs(pieces: Iterable[tuple[int, Direction, int, int]]) -> dict[tuple[int, Direction], list[list[int]]]:
    """Where each direction's bytes stand, as [begin, end], with what lies beside each other in one.

    Pieces that overlap stay apart, so that what comes twice is seen.
    """
    runs: dict[tuple[int, Direction], list[list[int]]] = {}
    for stream, direction, offset, length in sorted(piece for piece in pieces if piece[3]):
        known = runs.setdefault((stream, direction), [])
        if known and known[-1][1] == offset:
            known[-1][1] += length
        else:
            known.append([offset, offset + length])
    return runs


def _edges(items: Iterable[Item]) -> Iterable[Place]:
    """Both ends of each gap, and the end of each direction."""
    ends: dict[tuple[int, Direction], int] = {}
    for item in items:
        if isinstance(item, Chunk | Gap):
            end = item.offset + _size(item)
            ends[item.stream.id, item.direction] = end
            if isinstance(item, Gap):
                yield item.stream.id, item.direction, item.offset
                yield item.stream.id, item.direction, end
    for (stream, direction), end in ends.items():
        yield stream, direction, end


def _size(item: Chunk | Gap) -> int:
    """The bytes of its direction that an item stands for."""
    return len(item.data) + item.missing if isinstance(item, Chunk) else item.length or 0
