"""Datasette metadata for a database: descriptions of its tables and columns, units, and prepared queries.

`datasette game.db -m metadata.json` reads it: https://docs.datasette.io/en/stable/metadata.html
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from kiebitz.dissectors.escaping import encodable
from kiebitz.dissectors.queries import Query
from kiebitz.dissectors.registry import dissector_of
from kiebitz.storage.database.schema import MEMORY, StorageError, create_tables
from kiebitz.storage.read.timeline import Timeline

_COLUMNS = {
    "id": "row id in the database; the commands show the number",
    "number": "number within the session, as the commands show it: #31",
    "session": "name of the session",
    "time": "ISO 8601 UTC",
    "seconds": "since the start of the session",
    "stream": "number of the connection within the session",
    "game": "number of the game within the session",
    "event": "number of the event that it reports",
    "message": "number of the message concerned",
    "player": "the sender or receiver, or the player who acts",
    "client": "address of the client",
    "server": "address of the server",
    "direction": "c2s: from the client to the server; s2c: back",
    "sentence": "description of the event",
    "fields": "fields of the message, as JSON",
    "data": "details of the event, as JSON",
    "offset": "the first byte in that direction of the stream",
    "severity": "error (no conforming peer does that), warning or note",
    "grp": "malformed, sequence, rule, state or network",
    "culprit": "the player or server to blame, if known",
    "expected": "the expectation of the grammar or the rules",
    "clause": "of the specification",
    "took": "duration",
    "result": "final result, as JSON",
}
"""Column -> its description in any of the views."""

_VIEWS = {
    "v_messages": "All messages; each copy of a broadcast is a row.",
    "v_events": "The events of the games, one row each, however many messages report it.",
    "v_games": "The games and their results.",
    "v_diagnostics": "Violations and notes, with their location and the side to blame.",
}

_UNITS = {"seconds": "s", "took": "s", "offset": "byte", "length": "byte"}

_LABELS = {
    "sessions": "name",
    "streams": "client",
    "tables": "server",
    "games": "label",
    "events": "sentence",
    "messages": "name",
}
"""Table -> the column that labels links to its rows."""

_HIDDEN_TABLES = ("snapshots", "chunks", "alterations")

QUERIES = (
    Query(
        "all_diagnostics_of_one_client",
        "All diagnostics of one client",
        "All diagnostics that blame a player or an address; * matches any part of the name.",
        """
        SELECT session, seconds, severity, code, text, message, name, event, expected, clause
        FROM v_diagnostics WHERE culprit GLOB :culprit ORDER BY session_id, seconds, id""",
    ),
    Query(
        "diagnostics_by_culprit",
        "Diagnostics by culprit",
        "Number of violations by player or server and rule, with the first message.",
        """
        SELECT culprit, severity, code, count(*) AS times, session, min(message) AS first_message
        FROM v_diagnostics WHERE severity <> 'note'
        GROUP BY session_id, culprit, severity, code ORDER BY times DESC, culprit, code""",
    ),
    Query(
        "what_happened_in_a_game",
        "Events of a game",
        "The events of one game of one session, in order.",
        """
        SELECT number, seconds, player, sentence FROM v_events
        WHERE session_id = :session_id AND game = :game ORDER BY id""",
    ),
    Query(
        "who_did_what",
        "Events by player and kind",
        "Number of events of each kind by the player who acts.",
        """
        SELECT protocol, player, kind, count(*) AS times FROM v_events WHERE player IS NOT NULL
        GROUP BY protocol, player, kind ORDER BY protocol, times DESC, player, kind""",
    ),
    Query(
        "longest_games",
        "The longest games",
        "The games with the longest duration, with their labels and results.",
        """
        SELECT session, number, label, took, result FROM v_games
        WHERE took IS NOT NULL ORDER BY took DESC, id LIMIT 100""",
    ),
)
"""Queries that fit any protocol."""


def metadata(timeline: Timeline) -> dict[str, Any]:
    """Return the metadata of a session's database, with the queries of its protocols.

    Raises StorageError if the database is not a file.
    """
    connection = timeline.connection
    path = _path(connection)
    if not path:
        raise StorageError("datasette needs a database: read the capture into one with kiebitz import first")
    spoken = connection.execute("SELECT DISTINCT protocol FROM tables ORDER BY protocol")
    dissectors = filter(None, (dissector_of(protocol) for (protocol,) in spoken))
    queries = [*QUERIES, *(query for dissector in dissectors for query in dissector.presentation.queries)]
    return {
        "title": "Recorded games",
        "source": "Kiebitz",
        "databases": {
            encodable(Path(path).stem): {
                "queries": {query.name: _query(query) for query in queries},
                "tables": {
                    **{table: {"label_column": column} for table, column in _LABELS.items()},
                    **{table: {"hidden": True} for table in _HIDDEN_TABLES},
                    **_views(),
                },
            }
        },
    }


def _path(connection: sqlite3.Connection) -> str:
    """Return the path of the database; empty if it is in memory."""
    # Read it as bytes, as a file name need not be UTF-8.
    ((path,),) = connection.execute("SELECT CAST(file AS BLOB) FROM pragma_database_list WHERE name = 'main'")
    return os.fsdecode(path)


def write(timeline: Timeline, file: BinaryIO) -> None:
    """Write the metadata as JSON. Raises StorageError as `metadata` does."""
    file.write(msgspec.json.format(msgspec.json.encode(metadata(timeline)), indent=2) + b"\n")


def _query(query: Query) -> dict[str, str]:
    lines = [line.removeprefix(" " * 8) for line in query.sql.strip("\n").splitlines()]
    return {"title": query.title, "description": query.about, "sql": "\n".join(lines)}


def _views() -> dict[str, dict[str, Any]]:
    """Describe the views of a new database, as a file's own views are not trusted."""
    from sqlite_utils import Database
    from sqlite_utils.db import View

    described = {}
    with closing(sqlite3.connect(MEMORY)) as reference:
        create_tables(reference)
        for view, about in _VIEWS.items():
            has = View(Database(reference), view).columns_dict
            described[view] = {
                "description": about,
                "columns": {name: _COLUMNS[name] for name in has if name in _COLUMNS},
                "units": {name: _UNITS[name] for name in has if name in _UNITS},
            }
    return described
