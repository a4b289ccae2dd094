"""What a comparison of two sessions finds.

`a` and `b` are the two sides; None is where one of them has nothing. Events, messages and streams stand here
by their ids in the session's database. Exchanging the sessions exchanges the sides and nothing else.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from kiebitz.dissectors.diff.states import Owners
from kiebitz.dissectors.model import Direction, Game, TableInfo

Sort = Literal["changed", "only a", "only b", "order", "name", "game order"]
"""How two events differ: in fields, one side has none, they stand in another order, or they name another.

Or else they are the first of two games that were played in another order.
"""

Matching = Literal["name", "seat"]

_OTHER_SORT: dict[Sort, Sort] = {"only a": "only b", "only b": "only a"}


class PlayerPair(msgspec.Struct, frozen=True):
    """A player as the one session calls him and as the other does."""

    a: str | None
    b: str | None

    def mirrored(self) -> PlayerPair:
        return PlayerPair(self.b, self.a)


class TablePair(msgspec.Struct, frozen=True):
    """Two tables that were compared, or one that the other session lacks; `events` are those of each side.

    `owners` tells of each side whom a value of a handle calls: a player, by a number that both sides share.
    """

    a: TableInfo | None
    b: TableInfo | None
    matching: Matching
    players: list[PlayerPair]
    events: tuple[int, int]
    owners: tuple[Owners, Owners] = ({}, {})

    @property
    def is_unmatched(self) -> bool:
        """Whether only one session has this table."""
        return self.a is None or self.b is None

    def mirrored(self) -> TablePair:
        players = [pair.mirrored() for pair in self.players]
        return TablePair(self.b, self.a, self.matching, players, self.events[::-1], self.owners[::-1])


class GamePair(msgspec.Struct, frozen=True):
    """Two games that were compared, or one that the other session lacks; `events` are those of each side."""

    table: int
    a: Game | None
    b: Game | None
    events: tuple[int, int]

    @property
    def is_unmatched(self) -> bool:
        """Whether only one session has this game."""
        return self.a is None or self.b is None

    def mirrored(self) -> GamePair:
        return GamePair(self.table, self.b, self.a, self.events[::-1])


class EventDifference(msgspec.Struct, frozen=True, gc=False):
    """An event that is another one on the other side, or not there.

    `table` and `game` are places in the lists of pairs; outside games `game` is None. Of a game that only one
    side has, it is the first event. `before` are the last events before it, on each side: those of the same
    game that both have, or else what comes before the game; None if nothing does. `place` is how many events
    of both sessions come before.
    """

    sort: Sort
    table: int
    game: int | None
    kind: str
    fields: tuple[str, ...]
    a: int | None
    b: int | None
    before: tuple[int | None, int | None]
    place: int

    def mirrored(self) -> EventDifference:
        return EventDifference(
            _OTHER_SORT.get(self.sort, self.sort),
            self.table,
            self.game,
            self.kind,
            self.fields,
            self.b,
            self.a,
            self.before[::-1],
            self.place,
        )


class MessageDifference(msgspec.Struct, frozen=True):
    """Messages of one name that made no event and differ in the same way: `count` of them.

    `fields` are those that differ, where both sides have such a message; `a` and `b` are the first ones.
    """

    table: int
    direction: Direction
    name: str
    sort: Sort
    fields: tuple[str, ...]
    count: int
    a: int | None
    b: int | None

    def mirrored(self) -> MessageDifference:
        sort = _OTHER_SORT.get(self.sort, self.sort)
        return MessageDifference(
            self.table, self.direction, self.name, sort, self.fields, self.count, self.b, self.a
        )


class Conversations(msgspec.Struct, frozen=True):
    """Conversations with a server that one side has more of: whose, if that is known, and which streams."""

    table: int
    player: str | None
    a: tuple[int, ...]
    b: tuple[int, ...]

    def mirrored(self) -> Conversations:
        return Conversations(self.table, self.player, self.b, self.a)


class Difference(msgspec.Struct, frozen=True):
    """How two sessions differ. `same` events are the same on both sides; `events` stand in their order."""

    tables: list[TablePair]
    games: list[GamePair]
    same: int
    events: list[EventDifference]
    messages: list[MessageDifference]
    conversations: list[Conversations]

    @property
    def equal(self) -> bool:
        """Whether the two sessions mean the same."""
        pairs: list[TablePair | GamePair] = [*self.tables, *self.games]
        alone = any(pair.is_unmatched for pair in pairs)
        return not (alone or self.events or self.messages or self.conversations or self.unmatched_players)

    @property
    def unmatched_players(self) -> list[tuple[int, PlayerPair]]:
        """Players who take part on one side only, with the place of their table."""
        return [
            (number, pair)
            for number, table in enumerate(self.tables)
            for pair in table.players
            if pair.a is None or pair.b is None
        ]

    def mirrored(self) -> Difference:
        """The same with the sides exchanged."""
        return Difference(
            [pair.mirrored() for pair in self.tables],
            [pair.mirrored() for pair in self.games],
            self.same,
            [one.mirrored() for one in self.events],
            [one.mirrored() for one in self.messages],
            [one.mirrored() for one in self.conversations],
        )
