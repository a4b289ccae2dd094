"""Selection of a part of a session: a game, a time range, the matches of a filter, or their intersection.

A message that reports an event follows its event, so all copies of a broadcast stay together; any other
message is selected by its time. A game includes the messages outside of games between its first and last
message, on its streams. A filter selects exactly the messages that `kiebitz messages` lists with it.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.errors import KiebitzError
from kiebitz.dissectors.grammar.field_type import UNWRITABLE
from kiebitz.dissectors.grammar.grammar import UNREADABLE, to_json
from kiebitz.dissectors.model import Game
from kiebitz.dissectors.registry import dissector_of
from kiebitz.dissectors.session_numbering import Numbered
from kiebitz.storage.database.schema import SESSION_CONDITIONS
from kiebitz.storage.read.conditions import sql_condition
from kiebitz.storage.read.seek import Position, find_game, first_event, last_event
from kiebitz.storage.read.timeline import Timeline, check_ascending

if TYPE_CHECKING:
    from kiebitz.dissectors.filters import Filter

_BEFORE_ALL, _AFTER_ALL = -(1 << 63), (1 << 63) - 1


class SelectionError(KiebitzError):
    """A selection without any messages or events."""


class PartRequest(msgspec.Struct, frozen=True):
    """A requested part; `number` is a game's; criteria that are None do not narrow it."""

    number: int | None = None
    begin: Position | None = None
    end: Position | None = None
    wanted: Filter | None = None


class RowIds:
    """A sorted set of row ids that takes eight bytes for each."""

    def __init__(self, numbers: Iterable[int]) -> None:
        self._numbers = array("q", sorted(numbers))

    def __contains__(self, number: object) -> bool:
        if not isinstance(number, int):
            return False
        place = bisect_left(self._numbers, number)
        return place < len(self._numbers) and self._numbers[place] == number

    def __iter__(self) -> Iterator[int]:
        return iter(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)

    @property
    def span(self) -> tuple[int, int]:
        """The first and the last id; an empty range if there are none."""
        return (self._numbers[0], self._numbers[-1]) if self._numbers else (1, 0)


class Selection(msgspec.Struct, frozen=True):
    """The rows of a part: its messages and events, with their streams and games.

    `preamble` are: earlier messages that introduce the players. `between` has the times (ns) of the
    part's first and last message, None if a filter chose them. `is_a_game` is True if the part is exactly one
    whole game.
    """

    messages: RowIds
    events: RowIds
    preamble: RowIds
    streams: frozenset[int]
    games: frozenset[int]
    between: tuple[int, int] | None
    is_a_game: bool

    def again(self, timeline: Timeline, other: Timeline) -> Selection:
        """Return the same part of another session derived from the same bytes, with equal numbers.

        Raises SelectionError if the derived rows differ, as after an update of Kiebitz.
        """
        if _counts(timeline) != _counts(other):
            raise SelectionError(
                "this session's rows do not follow from its bytes, so no part of it can be selected; "
                "kiebitz redissect rebuilds them"
            )

        def ids(table: Numbered, found: Iterable[int]) -> Iterator[int]:
            return (other.numbers.row_id(table, timeline.numbers.number(table, one)) for one in found)

        return msgspec.structs.replace(
            self,
            messages=RowIds(ids("messages", self.messages)),
            events=RowIds(ids("events", self.events)),
            preamble=RowIds(ids("messages", self.preamble)),
            streams=frozenset(ids("streams", self.streams)),
            games=frozenset(ids("games", self.games)),
        )

    def includes_time(self, stream: int, ts_ns: int) -> bool:
        """Return True if a row without a message belongs to the part, by its stream and time."""
        if self.between is None or stream not in self.streams:
            return False
        first, last = self.between
        return first <= ts_ns <= last


def select(timeline: Timeline, part: PartRequest) -> Selection:
    """Return the rows of a part. Raises SelectionError if there are none, and PositionError."""
    game = find_game(timeline, part.number) if part.number is not None else None
    stretch = _range_of(timeline, part)
    is_a_game = game is not None and part == PartRequest(number=part.number)
    # Only the id of each message is kept, as a session may have millions of them.
    messages = array("q")
    events: dict[int, int | None] = {}
    streams, games = set[int](), set[int | None]()
    first_ns, last_ns = _AFTER_ALL, _BEFORE_ALL
    for row in _messages(timeline, game, stretch, part.wanted):
        messages.append(row.id)
        streams.add(row.stream_id)
        games.add(row.game_id)
        first_ns, last_ns = min(first_ns, row.ts_ns), max(last_ns, row.ts_ns)
        if row.event_id is not None:
            events[row.event_id] = row.game_id
    if part.wanted is None:
        # Some events have no message.
        events.update(_events(timeline, game, stretch))
    if not messages and not events:
        raise SelectionError("this part of the session is empty: nothing is written")
    games.update(events.values())
    before: Iterable[int] = ()
    if messages and (game is not None or part.begin is not None):
        before = _preamble_messages(timeline, streams, messages[0])
    kept: Iterable[int] = messages
    if part.wanted is None and messages:
        late = _orphaned_answers(timeline, RowIds([*before, *messages]), messages[-1])
        kept = (number for number in messages if number not in late)
        before = [number for number in before if number not in late]
    return Selection(
        RowIds(kept),
        RowIds(events),
        RowIds(before),
        frozenset(streams),
        frozenset(number for number in games if number),
        (first_ns, last_ns) if part.wanted is None and messages else None,
        is_a_game,
    )


def _counts(timeline: Timeline) -> tuple[int, ...]:
    """Return the numbers of messages, events and games of a session."""
    return tuple(
        timeline.scalar(
            f"SELECT count(*) FROM {table} WHERE {SESSION_CONDITIONS[table]}", timeline.session.id
        )
        for table in ("messages", "events", "games")
    )


class _Range(NamedTuple):
    """A range of event ids, and a range of times (ns) for rows without an event."""

    events: tuple[int, int]
    times: tuple[int, int]


class _SelectedMessage(NamedTuple):
    """The columns of a selected message."""

    id: int
    stream_id: int
    ts_ns: int
    game_id: int | None
    event_id: int | None


def _range_of(timeline: Timeline, part: PartRequest) -> _Range | None:
    """Return the range between a part's two positions; None if it has none. Raises PositionError."""
    if part.begin is None and part.end is None:
        return None
    first, begin_ns = 0, _BEFORE_ALL
    if part.begin is not None:
        first = first_event(timeline, part.begin)
        begin_ns = _time_of(timeline, part.begin)
    last, end_ns = _AFTER_ALL, _AFTER_ALL
    if part.end is not None:
        last = last_event(timeline, part.end)
        end_ns = _time_of(timeline, part.end)
    return _Range((first, last), (begin_ns, end_ns))


def _time_of(timeline: Timeline, moment: Position) -> int:
    if moment.event is not None:
        event_id = timeline.numbers.row_id("events", moment.event)
        return next(timeline.events("e.id = ?", [event_id])).ts_ns
    return _AFTER_ALL if moment.elapsed_ns is None else timeline.started_ns + moment.elapsed_ns


def _messages(
    timeline: Timeline, game: Game | None, stretch: _Range | None, wanted: Filter | None
) -> Iterator[_SelectedMessage]:
    condition, known = sql_condition(timeline, wanted, "messages")
    parameters: list[str | int | float] = [timeline.session.id, *known]
    if game is not None:
        # The filter's condition uses the alias m, so the subqueries for the game use none.
        condition += (
            " AND (m.game_id = ? OR m.game_id IS NULL"
            " AND m.stream_id IN (SELECT stream_id FROM messages WHERE game_id = ?)"
            " AND m.id BETWEEN (SELECT min(id) FROM messages WHERE game_id = ?)"
            " AND (SELECT max(id) FROM messages WHERE game_id = ?))"
        )
        parameters += [game.id] * 4
    if stretch is not None:
        condition += " AND (m.event_id BETWEEN ? AND ? OR m.event_id IS NULL AND m.ts_ns BETWEEN ? AND ?)"
        parameters += [*stretch.events, *stretch.times]
    rows = timeline.connection.execute(
        "SELECT m.id, m.stream_id, m.ts_ns, m.game_id, m.event_id FROM messages AS m"
        f" WHERE +m.stream_id IN (SELECT id FROM streams WHERE session_id = ?) AND {condition} ORDER BY m.id",
        parameters,
    )
    return map(_SelectedMessage._make, check_ascending(rows))


def _events(timeline: Timeline, game: Game | None, stretch: _Range | None) -> dict[int, int | None]:
    condition, parameters = "1", list[int]()
    if game is not None:
        condition, parameters = "e.game_id = ?", [game.id]
    if stretch is not None:
        condition, parameters = f"{condition} AND e.id BETWEEN ? AND ?", [*parameters, *stretch.events]
    return {event.id: event.game_id for event in timeline.stored_events(condition, parameters)}


def _preamble_messages(timeline: Timeline, streams: Collection[int], first: int) -> list[int]:
    """Return the ids of the preamble's messages before message `first` on these streams.

    The preamble tells a reader of the part who plays: names, lobbies, seats. It is every earlier message
    outside of games, which needs no knowledge of a protocol: each stored message says its game, if any.

    Errors without an event are left out, as they do not concern the part.
    """
    rows = timeline.connection.execute(
        "SELECT id FROM messages AS m WHERE id < ? AND game_id IS NULL AND name != ?"
        " AND +stream_id IN (SELECT value FROM json_each(?)) AND (event_id IS NOT NULL OR NOT EXISTS"
        " (SELECT 1 FROM diagnostics WHERE message_id = m.id AND severity = 'error')) ORDER BY id",
        (first, UNREADABLE, to_json(sorted(streams))),
    )
    return [number for (number,) in check_ascending(rows)]


def _orphaned_answers(timeline: Timeline, kept: Collection[int], last: int) -> set[int]:
    """Return those messages of `kept`, up to `last`, that answer a message that is not kept.

    They belong to no game or event, and refer to an identifier that the server introduced on the same stream
    in a message that is not kept: in Mäxchen, for example, a token of the previous round.
    """
    named: dict[tuple[int, str, Any], bool] = {}
    """True if the message in which the server introduced an identifier is kept, by stream, kind and value."""
    late: set[int] = set()
    for number, stream, direction, is_free, names in _messages_with_identifiers(timeline, last):
        keys = [(stream, title, value) for title, value in names]
        if direction == "s2c":
            for key in keys:
                named.setdefault(key, number in kept)
        elif is_free and number in kept and any(named.get(key) is False for key in keys):
            late.add(number)
    return late


def _messages_with_identifiers(
    timeline: Timeline, last: int
) -> Iterator[tuple[int, int, str, bool, list[tuple[str, Any]]]]:
    """Yield the messages up to `last` that contain per-stream identifiers, in order.

    Each as id, stream, direction, True if it has neither game nor event, and its identifiers.
    """
    rows = timeline.connection.execute(
        "SELECT m.id, m.stream_id, m.direction, m.name, m.fields, s.protocol,"
        " m.game_id IS NULL AND m.event_id IS NULL FROM messages AS m JOIN streams AS s ON s.id = m.stream_id"
        " WHERE m.id <= ? AND +s.session_id = ? AND s.protocol IS NOT NULL ORDER BY m.id",
        (last, timeline.session.id),
    )
    known: dict[str, tuple[Dissector, frozenset[str]] | None] = {}
    for number, stream, direction, name, fields, protocol, is_free in check_ascending(rows):
        if protocol not in known:
            known[protocol] = _identifying_messages(protocol)
        dissector, naming = known[protocol] or (None, frozenset())
        if dissector is None or name not in naming:
            continue
        said = msgspec.json.decode(fields)
        row = dissector.grammar.row_of(name, direction, said)
        if row is None:
            continue
        try:
            named = row.identifiers(said)
        except UNWRITABLE:
            # A field of the wrong type has no identifier.
            continue
        names = [(handle.title, value) for handle, value in named if handle.per_stream]
        yield number, stream, direction, bool(is_free), names


def _identifying_messages(protocol: str) -> tuple[Dissector, frozenset[str]] | None:
    """Return a protocol and its messages that contain per-stream identifiers; None if it has none."""
    dissector = dissector_of(protocol)
    if dissector is None:
        return None
    naming = frozenset(
        row.name
        for row in dissector.grammar.rows
        if any(handle.per_stream for field in row.fields for handle in field.type.identifiers())
    )
    return (dissector, naming) if naming else None
