"""The result of a comparison of two sessions.

`a` and `b` are the two sides; None means that a side has nothing. Events, messages and streams are given by
their ids in the session's database. Swapping the sessions swaps the sides and changes nothing else.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from kiebitz.dissectors.diff.states import Owners
from kiebitz.dissectors.model import Blame, Direction, Game, Severity, TableInfo

DifferenceKind = Literal["changed", "only a", "only b", "order", "name", "game order"]
"""Kind of difference of two events: in fields, missing on one side, in order, or in an identifier's referent.

"game order" marks the first events of two games that were played in another order.
"""

Matching = Literal["name", "seat"]

_OTHER_KIND: dict[DifferenceKind, DifferenceKind] = {"only a": "only b", "only b": "only a"}


class PlayerPair(msgspec.Struct, frozen=True):
    """A player's name in each session."""

    a: str | None
    b: str | None

    def mirrored(self) -> PlayerPair:
        """Return the pair with the sides swapped."""
        return PlayerPair(self.b, self.a)


class TablePair(msgspec.Struct, frozen=True):
    """Two compared tables, or one that the other session lacks; `events` are the counts of each side.

    `owners` maps each side's identifiers to players, by a number that both sides share.
    """

    a: TableInfo | None
    b: TableInfo | None
    matching: Matching
    players: list[PlayerPair]
    events: tuple[int, int]
    owners: tuple[Owners, Owners] = ({}, {})

    @property
    def is_unmatched(self) -> bool:
        """True if only one session has this table."""
        return self.a is None or self.b is None

    def mirrored(self) -> TablePair:
        """Return the pair with the sides swapped."""
        players = [pair.mirrored() for pair in self.players]
        return TablePair(self.b, self.a, self.matching, players, self.events[::-1], self.owners[::-1])


class GamePair(msgspec.Struct, frozen=True):
    """Two compared games, or one that the other session lacks; `events` are the counts of each side."""

    table: int
    a: Game | None
    b: Game | None
    events: tuple[int, int]

    @property
    def is_unmatched(self) -> bool:
        """True if only one session has this game."""
        return self.a is None or self.b is None

    def mirrored(self) -> GamePair:
        """Return the pair with the sides swapped."""
        return GamePair(self.table, self.b, self.a, self.events[::-1])


class EventDifference(msgspec.Struct, frozen=True, gc=False):
    """An event that differs on the other side, or is missing there.

    `table` and `game` are indexes of the lists of pairs; outside games `game` is None. For a game that only
    one side has, it is the first event. `before` has the last events before it on each side: the last common
    ones of the same game, or else those before the game; None if there are none. `place` is the number of
    events of both sessions before it.
    """

    sort: DifferenceKind
    table: int
    game: int | None
    kind: str
    fields: tuple[str, ...]
    a: int | None
    b: int | None
    before: tuple[int | None, int | None]
    place: int

    def mirrored(self) -> EventDifference:
        """Return the difference with the sides swapped."""
        return EventDifference(
            _OTHER_KIND.get(self.sort, self.sort),
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
    """A group of `count` messages of one name, without an event, that differ in the same way.

    `fields` are those that differ, where both sides have such a message; `a` and `b` are the first ones.
    """

    table: int
    direction: Direction
    name: str
    sort: DifferenceKind
    fields: tuple[str, ...]
    count: int
    a: int | None
    b: int | None

    def mirrored(self) -> MessageDifference:
        """Return the difference with the sides swapped."""
        sort = _OTHER_KIND.get(self.sort, self.sort)
        return MessageDifference(
            self.table, self.direction, self.name, sort, self.fields, self.count, self.b, self.a
        )


class DiagnosticDifference(msgspec.Struct, frozen=True):
    """A diagnostic that only one side has, by its id there, with the name of its message.

    For streams without a table, `table` is None.
    """

    sort: DifferenceKind
    table: int | None
    severity: Severity
    code: str
    blame: Blame
    name: str | None
    a: int | None
    b: int | None

    def mirrored(self) -> DiagnosticDifference:
        """Return the difference with the sides swapped."""
        sort = _OTHER_KIND.get(self.sort, self.sort)
        return msgspec.structs.replace(self, sort=sort, a=self.b, b=self.a)


class Conversations(msgspec.Struct, frozen=True):
    """Conversations with a server that one side has more of: the player, if known, and the streams."""

    table: int
    player: str | None
    a: tuple[int, ...]
    b: tuple[int, ...]

    def mirrored(self) -> Conversations:
        """Return the conversations with the sides swapped."""
        return Conversations(self.table, self.player, self.b, self.a)


class Difference(msgspec.Struct, frozen=True):
    """The differences of two sessions. `same` is the number of equal events; `events` are in their order."""

    tables: list[TablePair]
    games: list[GamePair]
    same: int
    events: list[EventDifference]
    messages: list[MessageDifference]
    conversations: list[Conversations]
    diagnostics: list[DiagnosticDifference]

    @property
    def equal(self) -> bool:
        """True if the two sessions have no difference."""
        pairs: list[TablePair | GamePair] = [*self.tables, *self.games]
        alone = any(pair.is_unmatched for pair in pairs)
        differences = (self.events, self.messages, self.conversations, self.diagnostics)
        return not (alone or any(differences) or self.unmatched_players)

    @property
    def unmatched_players(self) -> list[tuple[int, PlayerPair]]:
        """Players who take part on one side only, with the index of their table."""
        return [
            (number, pair)
            for number, table in enumerate(self.tables)
            for pair in table.players
            if pair.a is None or pair.b is None
        ]

    def mirrored(self) -> Difference:
        """Return the difference with the sides swapped."""
        return Difference(
            [pair.mirrored() for pair in self.tables],
            [pair.mirrored() for pair in self.games],
            self.same,
            [one.mirrored() for one in self.events],
            [one.mirrored() for one in self.messages],
            [one.mirrored() for one in self.conversations],
            # Of each pair of tables, those of side a come first.
            sorted(
                (one.mirrored() for one in self.diagnostics),
                key=lambda one: (one.table is None, one.table or 0, one.sort),
            ),
        )
