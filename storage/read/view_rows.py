"""Rows of a session in a view that pass a filter: windows of them, and searches for them.

In a player's view, filters see only what that player could know (`SeenRows`); in the full view they are SQL
conditions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Literal, get_args

import msgspec

from kiebitz.dissectors.grammar.grammar import to_json
from kiebitz.dissectors.model import PUBLIC, Event, Message, Severity, TableInfo
from kiebitz.storage.database.schema import OF_SESSION
from kiebitz.storage.read.conditions import sql_condition
from kiebitz.storage.read.message_queries import (
    Parameters,
    StoredDiagnostic,
    diagnostics_by_id,
    diagnostics_numbered,
    messages,
    messages_numbered,
    placeholders,
    visible_groups,
)
from kiebitz.storage.read.search import MatchAll, Search
from kiebitz.storage.read.seen_rows import DiagnosticNumbers, SeenRows
from kiebitz.storage.read.visibility import Visibility

if TYPE_CHECKING:
    from kiebitz.dissectors.filters import Filter, Target

AT_TABLE = "(s.protocol IS NULL OR s.server = ? AND s.protocol = ?)"
"""SQL condition for the streams of a table; those of no table are shown at each."""

_Condition = tuple[str, Parameters]
"""An SQL condition with its parameters."""


class ViewRows:
    """The rows of a view that pass a filter.

    Args:
        visibility: The players of the session.
        player: The player whose view it is; None for the full view.
        wanted: The filter; None if all rows pass.
        game: Row id of the only game whose events are shown; None for all.
        between: Ids of the first and the last event that are shown; None for all.
    """

    def __init__(
        self,
        visibility: Visibility,
        player: str | None,
        wanted: Filter | None,
        game: int | None = None,
        between: tuple[int, int] | None = None,
    ) -> None:
        self._timeline = visibility.timeline
        self._visibility = visibility
        self.player = player
        self.wanted = wanted
        self._game = game
        self._between = between
        self._seen = SeenRows(visibility, player, wanted) if player is not None else None

    def events(self, table_id: int, after: int | None, upto: int | None, order: str = "") -> Iterator[Event]:
        """Yield the events of a table, numbered and ordered as by `Timeline.events_between`."""
        found = self._timeline.events_between(table_id, after, upto, *self._event_condition(), order)
        return found if self._seen is None else filter(None, map(self._seen.event, found))

    def messages(
        self, table: TableInfo | None, after: int | None, before: int | None, order: str = ""
    ) -> Iterator[Message]:
        """Yield the messages of a table or of all, in the order of `message_queries.messages`."""
        found = messages(self._timeline, *self._condition("messages", table), after, before, order)
        return found if self._seen is None else filter(None, map(self._seen.message, found))

    def diagnostics(
        self,
        table: TableInfo | None,
        after: int | None,
        before: int | None,
        order: str = "",
        severities: Sequence[Severity] = get_args(Severity),
        among: _Condition = ("1", ()),
    ) -> Iterator[StoredDiagnostic]:
        """Yield the diagnostics of some severities that meet a condition (alias d), in such an order.

        In a player's view, the ids are numbers in that view.
        """
        condition, parameters = self._condition("diagnostics", table)
        condition = f"d.severity IN ({placeholders(severities)}) AND {among[0]} AND {condition}"
        parameters = [*severities, *among[1], *parameters]
        if self.player is None or self._seen is None:
            yield from diagnostics_by_id(self._timeline, condition, parameters, after, before, order)
            return
        numbers = DiagnosticNumbers(self._visibility, self.player)
        after, before = (None if number is None else numbers.row_id(number) for number in (after, before))
        found = diagnostics_by_id(self._timeline, condition, parameters, after, before, order)
        for row in filter(None, map(self._seen.diagnostic, found)):
            yield msgspec.structs.replace(row, id=numbers.number(row.id))

    def search_events(self, table_id: int) -> Search:
        """Return the search for the events of a table, by their numbers there."""
        condition, parameters = self._event_condition()

        def lookup(after: int, upto: int) -> Sequence[int]:
            if self._seen is None:
                return self._timeline.seqs(table_id, after, upto, condition, parameters)
            return [event.seq for event in self.events(table_id, after, upto)]

        return Search(lookup, self._timeline.first_seq(table_id))

    def search_messages(self, table: TableInfo | None) -> Search:
        """Return the search for the messages of a table or of all, by id."""
        seen = self._seen
        # Of the messages on a player's own streams, all are visible.
        if seen is None or (self.wanted is None and self.player != PUBLIC):
            return self._search("messages", table)
        return self._search(
            "messages",
            table,
            lambda found: [
                row.id for row in messages_numbered(self._timeline, found) if seen.message(row) is not None
            ],
        )

    def search_diagnostics(self, table: TableInfo | None) -> Search:
        """Return the search for the diagnostics of a table or of all, by id."""
        seen = self._seen
        if seen is None or self.wanted is None:
            return self._search("diagnostics", table)
        return self._search(
            "diagnostics",
            table,
            lambda found: [
                row.id
                for row in diagnostics_numbered(self._timeline, found)
                if seen.diagnostic(row) is not None
            ],
        )

    def _search(
        self,
        target: Literal["messages", "diagnostics"],
        table: TableInfo | None,
        passing: Callable[[Sequence[int]], Sequence[int]] = lambda found: found,
    ) -> Search:
        """Return the search for rows that meet the condition; `passing` selects among their ids."""
        timeline = self._timeline
        # Earlier sessions' rows are skipped in steps, as none of them matches.
        first = timeline.scalar(f"SELECT coalesce(min(id), 1) FROM {target}")
        is_alone = timeline.scalar("SELECT count(*) FROM sessions") == 1
        if target == "messages" and (self.player, self.wanted, table) == (None, None, None) and is_alone:
            return MatchAll(first)
        alias = target[0]
        condition, parameters = self._condition(target, table)
        query = (
            f"SELECT {alias}.id FROM {target} AS {alias} WHERE {alias}.id > ? AND {alias}.id <= ?"
            f" AND {OF_SESSION.format(alias)} AND {condition} ORDER BY {alias}.id"
        )

        def lookup(after: int, upto: int) -> Sequence[int]:
            rows = timeline.connection.execute(query, [after, upto, timeline.session.id, *parameters])
            return passing([number for (number,) in rows])

        return Search(lookup, first - 1)

    def _event_condition(self) -> _Condition:
        condition, parameters = self._passing_condition("events")
        if self._game is not None:
            condition, parameters = f"e.game_id = ? AND {condition}", [self._game, *parameters]
        if self._between is not None:
            condition, parameters = (
                f"e.id BETWEEN ? AND ? AND {condition}",
                [*self._between, *parameters],
            )
        return condition, parameters

    def _condition(self, target: Literal["messages", "diagnostics"], table: TableInfo | None) -> _Condition:
        """Return the condition for rows on the streams of a table and of the player."""
        condition, parameters = self._passing_condition(target)
        stream = f"+{target[0]}.stream_id"
        # The plus keeps SQLite from taking the index by stream, and sorting all of it.
        if table is not None:
            condition = f"{stream} IN (SELECT s.id FROM streams AS s WHERE {AT_TABLE}) AND {condition}"
            parameters = [table.server, table.protocol, *parameters]
        if self.player is not None and (target, self.player) != ("messages", PUBLIC):
            own = sorted(self._visibility.streams_of(self.player))
            condition = f"{stream} IN (SELECT value FROM json_each(?)) AND {condition}"
            parameters = [to_json(own), *parameters]
        if target == "diagnostics" and self.player is not None:
            groups = visible_groups(self.player)
            condition, parameters = (
                f"d.grp IN ({placeholders(groups)}) AND {condition}",
                [*groups, *parameters],
            )
        return condition, parameters

    def _passing_condition(self, target: Target) -> _Condition:
        """Return the filter as a condition; a player's view is filtered row by row."""
        return sql_condition(self._timeline, self.wanted if self._seen is None else None, target)
