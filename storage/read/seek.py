"""Positions in a session: their notation, and the state of tables at a position.

A position is written `12.5s` or `12.5` (seconds since the session's start), `#EVENT` (just after that event)
or `end`. A finished game is no longer part of its table's state; requested by number, it is shown as of its
last event.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import msgspec

from kiebitz.dissectors.errors import KiebitzError
from kiebitz.dissectors.game.state import State, apply
from kiebitz.dissectors.model import Change, Event, Game, TableInfo
from kiebitz.storage.read.timeline import Timeline
from kiebitz.storage.read.visibility import Visibility

_SECONDS = re.compile(r"(\d{1,12}(?:\.\d*)?)s?", re.ASCII)
_EVENT = re.compile(r"#(\d{1,18})", re.ASCII)

POSITION_NOTATIONS = "12.5s (seconds since the session's start), #7 (just after event 7) or end"
"""The notations of a position, for help and errors."""


class PositionError(KiebitzError):
    """An invalid position, or a game or position that the session lacks; the message says what it has."""


class Position(msgspec.Struct, frozen=True):
    """A requested position: after an event, or at a time (nanoseconds since the session's start).

    The event is given by its number in the session. With neither it is the end.
    """

    event: int | None = None
    elapsed_ns: int | None = None


END = Position()


class TablePosition(msgspec.Struct, eq=False):
    """A table after its event number `seq`; `event` is that event, None before the first.

    `state` is the table's; if one game was requested, its `games` contains only that.
    """

    table: TableInfo
    seq: int
    event: Event | None
    state: State


def parse_position(text: str) -> Position:
    """Parse a position. Raises PositionError, which lists the notations."""
    written = text.strip()
    if written == "end":
        return END
    if (seconds := _SECONDS.fullmatch(written)) is not None:
        return Position(elapsed_ns=int(Decimal(seconds[1]) * 1_000_000_000))
    if (event := _EVENT.fullmatch(written)) is not None:
        return Position(event=int(event[1]))
    raise PositionError(f"{text!r} is not a position: write {POSITION_NOTATIONS}")


def last_event(timeline: Timeline, moment: Position) -> int:
    """Return the id of the session's last event not after a position; 0 if there is none.

    Raises PositionError for an event that the session does not have.
    """
    if moment.event is not None:
        return _event_id(timeline, moment.event)
    if moment.elapsed_ns is not None:
        return timeline.event_at(timeline.started_ns + moment.elapsed_ns)
    return timeline.last_event()


def first_event(timeline: Timeline, moment: Position) -> int:
    """Return the id of the session's first event not before a position; one past the last if there is none.

    Raises PositionError for an event that the session does not have.
    """
    if moment.event is not None:
        return _event_id(timeline, moment.event)
    if moment.elapsed_ns is not None:
        return timeline.event_at(timeline.started_ns + moment.elapsed_ns - 1) + 1
    return timeline.last_event() + 1


def tables_at(timeline: Timeline, moment: Position) -> list[TablePosition]:
    """Return every table at a position. Raises PositionError for an event that the session does not have."""
    event_id = last_event(timeline, moment)
    return [
        _table_position(timeline, table, timeline.seq_upto(table.id, event_id)) for table in timeline.tables()
    ]


def game_at(timeline: Timeline, number: int, moment: Position) -> TablePosition:
    """Return a game's table at a position, or at the game's last event if it is over by then.

    Raises PositionError if the session has no such game, or if it has not begun by then.
    """
    game = find_game(timeline, number)
    table = timeline.table(game.table_id)
    span = timeline.span(game.id)
    before = timeline.first_seq(table.id)
    if _part(timeline.state_at(table.id, before), game.id) is not None:
        # It was already running when the database was created.
        first_seq, last_seq = before, span[1].seq if span is not None else before
    elif span is not None:
        first_seq, last_seq = span[0].seq, span[1].seq
    else:
        raise PositionError(f"nothing of game {number} was recorded")
    seq = min(timeline.seq_upto(table.id, last_event(timeline, moment)), last_seq)
    if seq < first_seq:
        assert span is not None
        first, last = span
        raise PositionError(
            f"game {number} has not begun by then: it runs from {_elapsed(timeline, first)} to "
            f"{_elapsed(timeline, last)}"
        )
    found = _table_position(timeline, table, seq)
    state = state_of_game(Visibility(timeline), None, table.id, game.id, seq, found.state)
    return msgspec.structs.replace(found, state=state)


def state_of_game(
    visibility: Visibility, player: str | None, table_id: int, game_id: int, seq: int, state: State
) -> State:
    """Return the state that a player sees after event `seq` with a single game, if need be as it ended."""
    part, timeline = _part(state, game_id), visibility.timeline
    first_seq = timeline.first_seq(table_id)
    if part is None and (left := timeline.seq_of_removal(game_id, table_id, first_seq, seq)) is not None:
        part = _last_part(visibility, player, table_id, game_id, left)
    return _with_game(state, game_id, part)


def state_with_last_game(
    visibility: Visibility, player: str | None, table_id: int, seq: int, state: State
) -> State:
    """Return the state that a player sees; if event `seq` is about a game that is over, with that."""
    game = _ended_game(visibility.timeline, table_id, seq, state)
    if game is None:
        return state
    return _with_game(state, game[0], _last_part(visibility, player, table_id, *game), state.get("games"))


def _ended_game(timeline: Timeline, table_id: int, seq: int, state: State) -> tuple[int, int] | None:
    """Return the row id of the last event's game if it is over, and the number of its removal."""
    last = timeline.last_game_event(table_id, seq)
    if last is None or _part(state, last[0]) is not None:
        return None
    game, last_seq = last
    left = timeline.seq_of_removal(game, table_id, last_seq, seq)
    return None if left is None else (game, left)


def _last_part(visibility: Visibility, player: str | None, table_id: int, game: int, left: int) -> Any:
    """Return a game's part of the state as a player saw it when the event number `left` removed it."""
    (event,) = visibility.timeline.events_between(table_id, left - 1, left)
    changes = visibility.changes(event, player) if visibility.seen(event, player) is not None else ()
    return _apply_to_game(visibility.state(player, table_id, left - 1), changes, game)


def _apply_to_game(state: State, changes: Iterable[Change], game: int) -> Any:
    """Apply changes; return the part of a game after them, or as it was when they removed it."""
    part = None
    for path, value in changes:
        if value is None and path == ["games", str(game)]:
            part = _part(state, game)
        apply(state, [(path, value)])
    return _part(state, game) or part


class SeenTable:
    """A table followed from event to event as a player sees it (None: as it is).

    Args:
        visibility: The players of the session.
        player: The player's label.
        table_id: The row id of the table.
        first: The number of the event after which the table is followed.

    Attributes:
        state: What the player sees of the state after the latest event, valid until the next step.
    """

    def __init__(self, visibility: Visibility, player: str | None, table_id: int, first: int) -> None:
        self._visibility, self._player = visibility, player
        self.state = visibility.state(player, table_id, first)
        self._game: int | None = None
        self._part: Any = None
        self._is_over = False
        if (ended := _ended_game(visibility.timeline, table_id, first, {})) is not None:
            self._game, self._is_over = ended[0], True
            self._part = _last_part(visibility, player, table_id, *ended)

    def step(self, event: Event) -> Event | None:
        """Apply the table's next event; return it as the player sees it, None if it is hidden."""
        visibility, player = self._visibility, self._player
        seen = visibility.seen(event, player)
        changes = visibility.changes(event, player) if seen is not None else ()
        if event.game_id is not None:
            self._game, self._is_over = event.game_id, False
        removed = ["games", str(self._game)]
        if self._game is not None and any(value is None and path == removed for path, value in event.changes):
            self._part, self._is_over = _apply_to_game(self.state, changes, self._game), True
        else:
            apply(self.state, changes)
        if seen is not None:
            apply(self.state, visibility.revealed(event, player))
        return seen

    def state_with_last_game(self) -> State:
        """Return the same as the function of this name, valid until the next step."""
        if self._is_over and self._game is not None and not self.state.get("games"):
            return _with_game(self.state, self._game, self._part)
        return self.state


def find_game(timeline: Timeline, number: int) -> Game:
    """Return a game by its number in the session. Raises PositionError, which lists the existing games."""
    numbers = timeline.numbers
    game = timeline.game(numbers.row_id("games", number))
    if game is None:
        known = [numbers.number("games", game.id) for game in timeline.games()]
        having = f"games {known[0]} to {known[-1]}" if known else "no games"
        raise PositionError(f"there is no game {number} in this session: it has {having}")
    return game


def _event_id(timeline: Timeline, number: int) -> int:
    numbers = timeline.numbers
    event_id = numbers.row_id("events", number)
    if not timeline.has_event(event_id):
        first = next(timeline.events(), None)
        having = "it has no events"
        if first is not None:
            last = numbers.number("events", timeline.last_event())
            having = f"its events are #{numbers.number('events', first.id)} to #{last}"
        raise PositionError(f"there is no event #{number} in this session: {having}")
    return event_id


def _table_position(timeline: Timeline, table: TableInfo, seq: int) -> TablePosition:
    event = next(iter(timeline.recent(table.id, seq, 1)), None)
    return TablePosition(table, seq, event, timeline.state_at(table.id, seq))


def _part(state: State, game: int) -> Any:
    return state.get("games", {}).get(str(game))


def _with_game(state: State, game: int, part: Any, others: State | None = None) -> State:
    """Return a table's state with a game, present or restored, and none but these others."""
    return {**state, "games": {**(others or {}), **({str(game): part} if part is not None else {})}}


def _elapsed(timeline: Timeline, event: Event) -> str:
    elapsed = timeline.seconds(event.ts_ns)
    return f"{elapsed:.3f}s (#{timeline.numbers.number('events', event.id)})"
