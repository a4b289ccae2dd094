"""One of the two compared sessions: its tables with their events, read from the database."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING

from kiebitz.dissectors.diff.compared_table import OUTSIDE_GAMES, ComparedTable
from kiebitz.dissectors.diff.normalize import Normalizer
from kiebitz.dissectors.grammar.grammar import Grammar
from kiebitz.dissectors.model import Game
from kiebitz.dissectors.registry import dissector_of
from kiebitz.storage.read.conditions import sql_condition
from kiebitz.storage.read.timeline import Timeline

# The filter language loads slowly, and most comparisons have no filter.
if TYPE_CHECKING:
    from kiebitz.dissectors.filters import Filter


class ComparedSession:
    """A session's tables and games, with a digest of the compared data of its events."""

    def __init__(self, timeline: Timeline, wanted: Filter | None) -> None:
        self.timeline = timeline
        self.tables = [ComparedTable(row, Normalizer(_grammar(row.protocol))) for row in timeline.tables()]
        self.games: dict[int, Game] = {game.id: game for game in timeline.games()}
        self.digest = self._read(None if wanted is None else self._matching_events(wanted))
        _join_stays(self.tables)

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


def _join_stays(tables: Sequence[ComparedTable]) -> None:
    """Name players who are only a number at one table, if another table of the protocol has their name."""
    named: dict[str, dict[str, str]] = {}
    for table in tables:
        names = named.setdefault(table.row.protocol, {})
        for number, name in table.normalizer.roster.numbers_with_names():
            names.setdefault(number, name)
    for table in tables:
        table.normalizer.roster.join_stays(named[table.row.protocol])
