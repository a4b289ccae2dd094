"""Help with filters: values to complete, and the number of matches of each kind."""

from __future__ import annotations

from collections.abc import Iterable
from typing import get_args

from kiebitz.cli.web import records
from kiebitz.cli.web.lists import AT_TABLE
from kiebitz.cli.web.reader import Reader, View
from kiebitz.dissectors.filters.fields import ALIASES
from kiebitz.dissectors.model import DIRECTIONS, PUBLIC, Blame, Group, Severity, TableInfo
from kiebitz.dissectors.registry import dissector_of
from kiebitz.storage.read.message_queries import visible_groups
from kiebitz.storage.read.search import search_diagnostics, search_events, search_messages

_MATCHES_S = 0.8
"""Maximum time in seconds to count the matches of each kind."""

_MAX_CODES = 500


def filter_values(reader: Reader, player: str | None, name: str) -> Iterable[str]:
    """Return the values that a name of filters can have in a session, as far as the viewer may know."""
    found = (dissector_of(table.protocol) for table in reader.tables(player))
    grammars = [dissector.grammar for dissector in found if dissector is not None]
    match ALIASES.get(name, name):
        case "kind":
            return sorted({kind for grammar in grammars for kind in grammar.events})
        case "msg":
            return sorted({row.name for grammar in grammars for row in grammar.rows})
        case "player" | "named" | "who":
            return reader.players() if player is None else [] if player == PUBLIC else [player]
        case "protocol":
            return sorted({grammar.protocol for grammar in grammars})
        case "dir":
            return DIRECTIONS
        case "diag.severity":
            return get_args(Severity)
        case "diag.group":
            return get_args(Group)
        case "diag.blame":
            return get_args(Blame)
        case "diag.code" if player is None:
            query = (
                "SELECT DISTINCT code FROM diagnostics WHERE stream_id IN"
                " (SELECT id FROM streams WHERE session_id = ?) ORDER BY code LIMIT ?"
            )
            rows = reader.timeline.connection.execute(query, (reader.timeline.session.id, _MAX_CODES))
            return [code for (code,) in rows]
    return []


def count_matches(reader: Reader, table: TableInfo, view: View) -> records.Matches:
    """Count the events, messages and diagnostics at a table that pass a filter."""
    timeline, rows = reader.timeline, reader.seen_rows(view)
    at_table = {
        stream
        for (stream,) in timeline.connection.execute(
            f"SELECT s.id FROM streams AS s WHERE s.session_id = ? AND {AT_TABLE}",
            (timeline.session.id, table.server, table.protocol),
        )
    }
    own = at_table if view.player is None else at_table & reader.visibility.streams_of(view.player)
    searches = (
        (
            search_events(
                timeline, table.id, view.wanted, None, None, rows.event if rows is not None else None
            ),
            timeline.last_seq(table.id),
        ),
        (
            search_messages(
                timeline,
                at_table if view.player == PUBLIC else own,
                view.wanted,
                rows.message if rows is not None else None,
            ),
            timeline.last_id("messages"),
        ),
        (
            search_diagnostics(
                timeline,
                own,
                view.wanted,
                visible_groups(view.player),
                rows.diagnostic if rows is not None else None,
            ),
            timeline.last_id("diagnostics"),
        ),
    )
    is_more = [search.go_on(last, _MATCHES_S) for search, last in searches]
    events, messages, diagnostics = (len(search.found) for search, _ in searches)
    return records.Matches(events, messages, diagnostics, not any(is_more))
