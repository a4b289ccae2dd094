"""One of the two compared sessions: its tables with their events, read from the database."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING

import msgspec

from kiebitz.dissectors.diff.normalize import Reader
from kiebitz.dissectors.grammar.grammar import Grammar
from kiebitz.dissectors.model import Game, TableInfo
from kiebitz.dissectors.registry import dissector_of
from kiebitz.storage.read.conditions import sql_condition
from kiebitz.storage.read.timeline import Timeline

# The filter language loads slowly, and most comparisons have no filter.
if TYPE_CHECKING:
    from kiebitz.dissectors.filters import Filter

OUTSIDE_GAMES = 0
"""Stands for the id of a game."""


class TableSide(msgspec.Struct, eq=False):
    """A table and its events in order: their ids, readings and games.

    `ranks` has the number of the session's events before each.
    """

    row: TableInfo
    reader: Reader
    ids: array[int] = msgspec.field(default_factory=lambda: array("q"))
    readings: array[int] = msgspec.field(default_factory=lambda: array("q"))
    games: array[int] = msgspec.field(default_factory=lambda: array("q"))
    ranks: array[int] = msgspec.field(default_factory=lambda: array("q"))

    def rank(self, place: int) -> int:
        """Return the number of the session's events before an index, which may be past the end."""
        if place < len(self.ranks):
            return self.ranks[place]
        return self.ranks[-1] + 1 if self.ranks else 0

    def participants(self) -> set[int]:
        """Return the players that occur in its events."""
        readings, player_of = self.reader.readings, self.reader.cast.player_of
        parts = (part for number in set(self.readings) for part in readings[number].parts)
        stays = {
            stay for part in parts for stay in (*part.players, *(who for one in part.keyed for who, _ in one))
        }
        return {player_of[stay] for stay in stays}

    def endings(self) -> list[int]:
        """Return the indexes of the events that only report the end of a connection."""
        readings = self.reader.readings
        return [place for place, number in enumerate(self.readings) if readings[number].is_ending]

    def strands(self, without: Collection[int]) -> dict[int, list[int]]:
        """Return the indexes of all other events by game, in the order in which the games begin."""
        found: dict[int, list[int]] = {}
        for place, game in enumerate(self.games):
            if place not in without:
                found.setdefault(game, []).append(place)
        return found


class SessionSide:
    """A session's tables and games, with a digest of the compared data of its events."""

    def __init__(self, timeline: Timeline, wanted: Filter | None) -> None:
        self.timeline = timeline
        self.tables = [TableSide(row, Reader(_grammar(row.protocol))) for row in timeline.tables()]
        self.games: dict[int, Game] = {game.id: game for game in timeline.games()}
        self.digest = self._read(None if wanted is None else self._passing_events(wanted))
        _share_names(self.tables)

    def first_messages(self, event_id: int) -> dict[int, int]:
        """Return the first message of an event on each stream, by stream."""
        rows = self.timeline.connection.execute(
            "SELECT stream_id, min(id) FROM messages WHERE event_id = ? GROUP BY stream_id", (event_id,)
        )
        return dict(rows.fetchall())

    def _passing_events(self, wanted: Filter) -> set[int]:
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
            reading = table.reader.read(event.kind, event.actor, event.data)
            is_wanted = wanted is None or event.id in wanted
            if is_wanted:
                table.ids.append(event.id)
                table.games.append(game)
                table.ranks.append(rank)
                table.readings.append(reading)
            ordinal = ordinals.setdefault(game, len(ordinals))
            told = (event.table_id - first, ordinal, event.kind, event.actor, event.data, is_wanted)
            digest.update(repr(told).encode(errors="surrogatepass"))
        return digest.digest()


def _grammar(protocol: str) -> Grammar | None:
    """Return a protocol's grammar; None if its plug-in is not installed."""
    dissector = dissector_of(protocol)
    return dissector.grammar if dissector is not None else None


def _share_names(tables: Sequence[TableSide]) -> None:
    """Name players who are only a number at one table, if another table of the protocol has their name."""
    named: dict[str, dict[str, str]] = {}
    for table in tables:
        names = named.setdefault(table.row.protocol, {})
        for number, name in table.reader.cast.numbers_with_names():
            names.setdefault(number, name)
    for table in tables:
        table.reader.cast.settle(named[table.row.protocol])
