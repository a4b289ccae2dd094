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
    "id": "the row in the database; the commands show the number",
    "number": "what the commands call it, as in #31: it counts within the session",
    "session": "what the session is called",
    "time": "ISO 8601 UTC",
    "seconds": "since the session began",
    "stream": "the connection's number within the session",
    "game": "the game's number within the session",
    "event": "the number of the event it tells of",
    "message": "the number of the message it is about",
    "player": "who says it, is told it, or acts",
    "client": "the client's address",
    "server": "the server's address",
    "direction": "c2s: from the client to the server; s2c: back",
    "sentence": "what happened, in words",
    "fields": "the message's fields, as JSON",
    "data": "the event's details, as JSON",
    "offset": "the first byte in that direction of the stream",
    "severity": "error: no conforming peer does that; warning; note",
    "grp": "malformed, sequence, rule, state or network",
    "culprit": "the player or the server to blame, as far as that is known",
    "expected": "what the grammar or the rules expected there",
    "clause": "of the specification",
    "took": "how long it took",
    "result": "how it ended, as JSON",
}
"""Column -> its description in any of the views."""

_VIEWS = {
    "v_messages": "What was said, message by message; each copy of a broadcast is a row.",
    "v_events": "What happened in the games, however many messages tell of it.",
    "v_games": "The games, and how they ended.",
    "v_diagnostics": "What is wrong, where, and who is to blame.",
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

_NO_TABLES_FOR_PEOPLE = ("snapshots", "chunks", "alterations")

QUERIES = (
    Query(
        "all_flaws_of_one_client",
        "All flaws of one client",
        "Everything for which a player, or an address, is to blame; * stands for anything in the name.",
        """
        SELECT session, seconds, severity, code, text, message, name, event, expected, clause
        FROM v_diagnostics WHERE culprit GLOB :culprit ORDER BY session_id, seconds, id""",
    ),
    Query(
        "flaws_by_culprit",
        "Who is to blame for what",
        "How often each player or server broke which rule, and where first.",
        """
        SELECT culprit, severity, code, count(*) AS times, session, min(message) AS first_message
        FROM v_diagnostics WHERE severity <> 'note'
        GROUP BY session_id, culprit, severity, code ORDER BY times DESC, culprit, code""",
    ),
    Query(
        "what_happened_in_a_game",
        "What happened in a game",
        "The events of one game of one session, in order.",
        """
        SELECT number, seconds, player, sentence FROM v_events
        WHERE session_id = :session_id AND game = :game ORDER BY id""",
    ),
    Query(
        "who_did_what",
        "Who did what how often",
        "The events of each kind, by the player who acts.",
        """
        SELECT protocol, player, kind, count(*) AS times FROM v_events WHERE player IS NOT NULL
        GROUP BY protocol, player, kind ORDER BY protocol, times DESC, player, kind""",
    ),
    Query(
        "longest_games",
        "The longest games",
        "The games that took longest, with what they are called and how they ended.",
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
        raise StorageError("datasette asks a database: read the capture into one with kiebitz import first")
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
                    **{table: {"hidden": True} for table in _NO_TABLES_FOR_PEOPLE},
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
