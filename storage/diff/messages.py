"""Comparison of one table's messages without an event in two sessions, and of its conversations.

Such messages are requests, answers and chatter. It compares how often each was sent in either direction, not
their order. Heartbeats depend on the clock and are left out. Values that another game would name differently
(tokens, numbers) are not compared. Whether a message repeats an event, or is too late for that, may depend on
timing: a message without an event here and with one in the other session counts as present in both.

One of the two compared sessions: its tables with their events, read from the database.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import msgspec

from kiebitz.dissectors.diff.matching import OUTSIDE_GAMES, ComparedTable, shared_numbers
from kiebitz.dissectors.diff.normalize import Normalizer
from kiebitz.dissectors.diff.players import Match, Roster
from kiebitz.dissectors.diff.result import Conversations, DifferenceKind, MessageDifference
from kiebitz.dissectors.grammar.field_type import IdentifierKind
from kiebitz.dissectors.grammar.grammar import Grammar, to_json
from kiebitz.dissectors.model import DIRECTIONS, Direction, Game
from kiebitz.dissectors.registry import dissector_of
from kiebitz.storage.read.conditions import sql_condition
from kiebitz.storage.read.timeline import Timeline

if TYPE_CHECKING:
    from kiebitz.dissectors.filters import Filter


class ComparedSession:
    """A session's tables and games, with a digest of the compared data of its events."""

    def __init__(self, timeline: Timeline, wanted: Filter | None) -> None:
        self.timeline = timeline
        self.tables = [ComparedTable(row, Normalizer(_grammar(row.protocol))) for row in timeline.tables()]
        self.games: dict[int, Game] = {game.id: game for game in timeline.games()}
        self.digest = self._read(None if wanted is None else self._matching_events(wanted))
        # Players who are only a number at one table may have a name at another one.
        named: dict[str, dict[str, str]] = {}
        for table in self.tables:
            names = named.setdefault(table.row.protocol, {})
            for number, name in table.normalizer.roster.numbers_with_names():
                names.setdefault(number, name)
        for table in self.tables:
            table.normalizer.roster.join_stays(named[table.row.protocol])

    def first_messages(self, event_id: int) -> dict[int, int]:
        """Return the first message of an event on each stream, by stream."""
        rows = self.timeline.connection.execute(
            "SELECT stream_id, min(id) FROM messages WHERE event_id = ? GROUP BY stream_id", (event_id,)
        )
        return dict(rows.fetchall())

    def _matching_events(self, wanted: Filter) -> set[int]:
        """Return the ids of the events that pass a filter."""
        events = self.timeline.stored_events(*sql_condition(self.timeline, wanted, "events"))
        return {event.id for event in events}

    def _read(self, wanted: set[int] | None) -> bytes:
        """Read all events, keep the wanted ones, and return the digest."""
        digest = blake2b()
        for table in self.tables:
            digest.update(f"{table.row.protocol} {table.row.server}\n".encode())
        tables = {table.row.id: table for table in self.tables}
        first = min(tables, default=0)
        ordinals: dict[int, int] = {}
        for rank, event in enumerate(self.timeline.stored_events()):
            table = tables[event.table_id]
            game = event.game_id or OUTSIDE_GAMES
            # Unwanted events are read, too, as they may identify players.
            reading = table.normalizer.normalize(event.kind, event.actor, event.data)
            is_wanted = wanted is None or event.id in wanted
            if is_wanted:
                table.ids.append(event.id)
                table.games.append(game)
                table.ranks.append(rank)
                table.normalized.append(reading)
            ordinal = ordinals.setdefault(game, len(ordinals))
            told = (event.table_id - first, ordinal, event.kind, event.actor, event.data, is_wanted)
            digest.update(repr(told).encode(errors="surrogatepass"))
        return digest.digest()


def _grammar(protocol: str) -> Grammar | None:
    """Return a protocol's grammar; None if its plug-in is not installed."""
    dissector = dissector_of(protocol)
    return dissector.grammar if dissector is not None else None


class _EqualMessages(msgspec.Struct, eq=False):
    """Equal messages: the ids of those in the first session and of those in the second."""

    a: list[int]
    b: list[int]

    def offset_surplus(self, events_a: int, events_b: int) -> None:
        """Offset a surplus on one side by the other side's surplus of equal messages with an event."""
        if events_b > events_a:
            del self.a[max(len(self.b), len(self.a) - (events_b - events_a)) :]
        else:
            del self.b[max(len(self.a), len(self.b) - (events_a - events_b)) :]


class MatchedTables(msgspec.Struct, frozen=True):
    """Two tables, of the first and of the second session, and the match of their players.

    `number` is the index of the pair.
    """

    number: int
    a: ComparedTable
    b: ComparedTable
    match: Match


class _PairMessages:
    """The compared messages of a pair of tables, by direction and name, then by content."""

    def __init__(self, tables: MatchedTables) -> None:
        self.number = tables.number
        self.rows = tables.a.row, tables.b.row
        cast_a, cast_b = tables.a.normalizer.roster, tables.b.normalizer.roster
        self.normalizers = (
            _MessageNormalizer(tables.a, cast_a, range(len(cast_a.players))),
            _MessageNormalizer(tables.b, cast_b, shared_numbers(tables.match, len(cast_b.players))),
        )
        self.messages: dict[tuple[Direction, str], dict[str, _EqualMessages]] = {}
        self.with_event: dict[tuple[Direction, str], tuple[Counter[str | None], Counter[str | None]]] = {}
        """For those messages of which one side has more: how many have an event, by content, on each side."""

    def find_unequal(self) -> None:
        """Note which messages one side has more of."""
        for key, texts in self.messages.items():
            if any(len(same.a) != len(same.b) for same in texts.values()):
                self.with_event[key] = (Counter(), Counter())

    def differences(self) -> Iterator[MessageDifference]:
        """Yield the differences by direction, name and field."""
        for direction in DIRECTIONS:
            for name in sorted(name for way, name in self.messages if way == direction):
                texts = self.messages[direction, name]
                if counts := self.with_event.get((direction, name)):
                    for content, same in texts.items():
                        same.offset_surplus(counts[0][content], counts[1][content])
                yield from _differences(self.number, direction, name, texts)


def compare_messages(
    a: ComparedSession, b: ComparedSession, pairs: Sequence[MatchedTables], wanted: Filter | None
) -> list[MessageDifference]:
    """Return the differences of each pair of tables; each session's messages are read once for all pairs."""
    compared = [_PairMessages(pair) for pair in pairs]
    sides = [
        (place, side, {(pair.rows[place].protocol, pair.rows[place].server): pair for pair in compared})
        for place, side in enumerate((a, b))
    ]
    for place, side, at in sides:
        for message_id, table, direction, name, fields in _messages(side, wanted, "m.event_id IS NULL"):
            if (pair := at.get(table)) is None:
                continue
            content = pair.normalizers[place].read(direction, name, fields)
            if content is not None:
                same = pair.messages.setdefault((direction, name), {}).setdefault(
                    content, _EqualMessages([], [])
                )
                (same.b if place else same.a).append(message_id)
    for pair in compared:
        pair.find_unequal()
    names = sorted({name for pair in compared for _, name in pair.with_event})
    met = "m.event_id IS NOT NULL AND m.name IN (SELECT value FROM json_each(?))"
    for place, side, at in sides if names else ():
        for _, table, direction, name, fields in _messages(side, wanted, met, to_json(names)):
            pair = at.get(table)
            if pair is not None and (counts := pair.with_event.get((direction, name))):
                counts[place][pair.normalizers[place].read(direction, name, fields)] += 1
    return [difference for pair in compared for difference in pair.differences()]


def _differences(
    table: int, direction: Direction, name: str, by_content: dict[str, _EqualMessages]
) -> Iterator[MessageDifference]:
    """Yield the surplus of either side; one of each side together count as a changed message."""
    surplus_a: list[tuple[int, str]] = []
    surplus_b: list[tuple[int, str]] = []
    for content, same in by_content.items():
        both = min(len(same.a), len(same.b))
        surplus_a += [(message_id, content) for message_id in same.a[both:]]
        surplus_b += [(message_id, content) for message_id in same.b[both:]]
    surplus_a.sort()
    surplus_b.sort()
    groups: dict[tuple[DifferenceKind, tuple[str, ...]], list[tuple[int | None, int | None]]] = {}
    both = min(len(surplus_a), len(surplus_b))
    for (mine, content), (other, content_b) in zip(surplus_a[:both], surplus_b[:both], strict=True):
        groups.setdefault(("changed", _fields(content, content_b)), []).append((mine, other))
    for mine, _ in surplus_a[both:]:
        groups.setdefault(("only a", ()), []).append((mine, None))
    for other, _ in surplus_b[both:]:
        groups.setdefault(("only b", ()), []).append((None, other))
    for (sort, fields), pairs in groups.items():
        yield MessageDifference(table, direction, name, sort, fields, len(pairs), *pairs[0])


def _fields(content: str, content_b: str) -> tuple[str, ...]:
    """Return the fields in which two messages differ; none if they are nested too deeply to decode."""
    try:
        mine, others = msgspec.json.decode(content), msgspec.json.decode(content_b)
    except RecursionError:
        return ()
    return tuple(name for name in {**mine, **others} if mine.get(name) != others.get(name))


def _messages(
    side: ComparedSession, wanted: Filter | None, which: str, *values: str
) -> Iterator[tuple[int, tuple[str, str], Direction, str, str]]:
    """Yield the messages that meet a condition, with protocol and server of their table, by id."""
    met, parameters = sql_condition(side.timeline, wanted, "messages")
    rows = side.timeline.connection.execute(
        "SELECT m.id, s.protocol, s.server, m.direction, m.name, m.fields"
        " FROM messages AS m JOIN streams AS s ON s.id = +m.stream_id"
        f" WHERE {which} AND s.session_id = ? AND ({met}) ORDER BY m.id",
        [*values, side.timeline.session.id, *parameters],
    )
    for number, protocol, server, direction, name, fields in rows:
        yield number, (protocol, server), direction, name, fields


class _MessageNormalizer:
    """Normalizes the messages of one session so that they can be compared with the other's."""

    def __init__(self, table: ComparedTable, roster: Roster, who: Sequence[int]) -> None:
        self._dissector = dissector_of(table.row.protocol)
        self._roster = roster
        self._who = who
        self._known: dict[tuple[Direction, str, str], str | None] = {}

    def read(self, direction: Direction, name: str, fields: str) -> str | None:
        """Return a normalized message as JSON; None for a heartbeat."""
        key = (direction, name, fields)
        if key not in self._known:
            self._known[key] = self._read(direction, name, fields)
        return self._known[key]

    def _read(self, direction: Direction, name: str, fields: str) -> str | None:
        if self._dissector is None:
            return fields
        try:
            decoded: dict[str, Any] = msgspec.json.decode(fields)
            row = self._dissector.grammar.row_of(name, direction, decoded)
            if row is None:
                return fields
            return None if row.heartbeat else to_json(row.renamed(decoded, self._rename))
        except RecursionError:
            return fields

    def _rename(self, kind: IdentifierKind, value: Any) -> Any:
        """Replace a player by the shared number, and any other identifier by its kind."""
        if not kind.of_player:
            return {"": kind.title}
        known = self._roster.find(kind, value)
        return {"": self._who[known]} if known is not None else value


_Streams = dict[int, list[int]]
"""Player -> its streams."""


def compare_conversations(a: ComparedSession, b: ComparedSession, pair: MatchedTables) -> list[Conversations]:
    """Return the conversations that one side has more of.

    A conversation belongs to all players in whose name its client acts, as far as events show. How many a
    player has does not matter; for conversations without a player their number counts.
    """
    number, table_a, table_b = pair.number, pair.a, pair.b
    mine, nobodys = streams_by_player(a, table_a)
    others, nobodys_b = streams_by_player(b, table_b)
    shared = shared_numbers(pair.match, len(table_b.normalizer.roster.players))
    theirs = {shared[who] for who in others}
    found = [
        Conversations(number, table_a.normalizer.roster.players[who].name, tuple(streams), ())
        for who, streams in mine.items()
        if who not in theirs
    ]
    found += [
        Conversations(number, table_b.normalizer.roster.players[who].name, (), tuple(streams))
        for who, streams in others.items()
        if shared[who] not in mine
    ]
    both = min(len(nobodys), len(nobodys_b))
    if len(nobodys) != len(nobodys_b):
        found.append(Conversations(number, None, tuple(nobodys[both:]), tuple(nobodys_b[both:])))
    # This order does not depend on which session is named first.
    return sorted(found, key=lambda one: (one.player is None, one.player, one.a, one.b))


def streams_by_player(side: ComparedSession, table: ComparedTable) -> tuple[_Streams, list[int]]:
    """Return the streams to a table's server by acting player, and those without one."""
    streams = side.timeline.connection.execute(
        "SELECT id FROM streams WHERE session_id = ? AND protocol = ? AND server = ? ORDER BY id",
        (side.timeline.session.id, table.row.protocol, table.row.server),
    ).fetchall()
    acting = side.timeline.connection.execute(
        "SELECT DISTINCT m.stream_id, e.actor FROM messages AS m JOIN events AS e ON e.id = m.event_id"
        " WHERE e.session_id = ? AND e.table_id = ? AND m.direction = 'c2s' AND e.actor IS NOT NULL"
        " ORDER BY m.stream_id, e.id",
        (side.timeline.session.id, table.row.id),
    )
    dissector = dissector_of(table.row.protocol)
    kind = dissector.grammar.data_identifiers.get("actor") if dissector is not None else None
    found: _Streams = {}
    spoken: set[int] = set()
    for stream, actor in acting:
        who = table.normalizer.roster.find(kind, actor) if isinstance(kind, IdentifierKind) else None
        if who is not None:
            found.setdefault(who, []).append(stream)
            spoken.add(stream)
    return found, [stream for (stream,) in streams if stream not in spoken]
