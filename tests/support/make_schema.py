"""Write `schema.sql` and convert `captures/*.db`; run as `python tests/support/make_schema.py`.

sqlite-utils makes the tables and views of an empty database; the file has their statements, as loading the
library takes longer than a command may.
"""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path

from sqlite_utils import Database
from sqlite_utils.db import Table

from kiebitz.storage.database.schema import MEMORY, SCHEMA, SCHEMA_VERSION, TABLES, create_indexes


def _moment(ns: str) -> str:
    """Return SQL that converts nanoseconds since 1970 UTC to ISO 8601."""
    second = f"strftime('%Y-%m-%dT%H:%M:%S', {ns} / 1000000000, 'unixepoch')"
    return f"{second} || printf('.%06dZ', {ns} / 1000 % 1000000)"


def _seconds(ns: str) -> str:
    """Return SQL that converts nanoseconds since 1970 UTC to seconds since the start of the session."""
    return f"({ns} - x.started_ns) / 1e9"


_WHOSE = "x.id AS session_id, x.name AS session"
_TOLD = "coalesce(e.sentence, e.kind || ' ' || e.data)"
_STREAM = "s.id - x.streams_before AS stream, s.client, s.player, s.server, s.protocol"

VIEWS = {
    "v_messages": f"""
        SELECT m.id, {_WHOSE}, m.id - x.messages_before AS number, {_moment("m.ts_ns")} AS time,
        {_seconds("m.ts_ns")} AS seconds, {_STREAM}, m.direction, m.name, m.fields, m.offset, m.length,
        m.game_id - x.games_before AS game, m.event_id - x.events_before AS event, {_TOLD} AS sentence
        FROM messages AS m JOIN streams AS s ON s.id = m.stream_id JOIN sessions AS x ON x.id = s.session_id
        LEFT JOIN events AS e ON e.id = m.event_id""",
    "v_events": f"""
        SELECT e.id, {_WHOSE}, e.id - x.events_before AS number, {_moment("e.ts_ns")} AS time,
        {_seconds("e.ts_ns")} AS seconds, t.server, t.protocol, e.game_id - x.games_before AS game, e.kind,
        e.actor AS player, {_TOLD} AS sentence, e.data
        FROM events AS e JOIN tables AS t ON t.id = e.table_id JOIN sessions AS x ON x.id = e.session_id""",
    "v_games": f"""
        SELECT g.id, {_WHOSE}, g.id - x.games_before AS number, {_moment("g.started_ns")} AS time,
        {_seconds("g.started_ns")} AS seconds, t.server, g.protocol, g.label,
        {_moment("g.ended_ns")} AS ended, (g.ended_ns - g.started_ns) / 1e9 AS took, g.result
        FROM games AS g JOIN tables AS t ON t.id = g.table_id JOIN sessions AS x ON x.id = g.session_id""",
    "v_diagnostics": f"""
        SELECT d.id, {_WHOSE}, {_moment("d.ts_ns")} AS time, {_seconds("d.ts_ns")} AS seconds, d.severity,
        d.grp, d.code, d.text, d.blame,
        CASE d.blame WHEN 'client' THEN coalesce(s.player, s.client) WHEN 'server' THEN s.server END
        AS culprit, {_STREAM}, d.direction, d.message_id - x.messages_before AS message, m.name,
        m.event_id - x.events_before AS event, d.offset, d.length, d.expected, d.clause
        FROM diagnostics AS d JOIN streams AS s ON s.id = d.stream_id
        JOIN sessions AS x ON x.id = s.session_id LEFT JOIN messages AS m ON m.id = d.message_id""",
}
"""View -> its SELECT statement."""


def schema_sql() -> str:
    """Return the statements that make the tables and views of a database."""
    with closing(sqlite3.connect(MEMORY)) as connection:
        db = Database(connection)
        for name, columns in TABLES.items():
            key: str | tuple[str, ...] = "id" if "id" in columns else ("table_id", "seq")
            foreign = [(column, one.refers_to, "id") for column, one in columns.items() if one.refers_to]
            Table(db, name).create(
                {column: one.type for column, one in columns.items()}, pk=key, foreign_keys=foreign
            )
        for name, query in VIEWS.items():
            db.create_view(name, " ".join(query.split()))
        made = connection.execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL").fetchall()
    # sqlite-utils before 4 quotes tables and columns with brackets, and views not at all.
    return re.sub(r"\[(\w+)\]|(?<=CREATE VIEW )(\w+)", r'"\1\2"', ";\n".join(sql for (sql,) in made)) + "\n"


def convert(path: Path) -> None:
    """Rewrite a database with the tables of this version; columns that it does not have are NULL."""
    converted = path.with_suffix(".new")
    with closing(sqlite3.connect(converted)) as connection:
        connection.executescript(schema_sql())
        connection.execute("ATTACH ? AS old", (str(path),))
        for table in TABLES:
            present = {name for _, name, *_ in connection.execute(f"PRAGMA old.table_info({table})")}
            shared = ", ".join(column for column in TABLES[table] if column in present)
            connection.execute(f"INSERT INTO {table} ({shared}) SELECT {shared} FROM old.{table}")
        create_indexes(connection)
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        connection.commit()
    converted.replace(path)


if __name__ == "__main__":
    Path(SCHEMA).write_text(schema_sql())
    for database in Path("captures").glob("*.db"):
        convert(database)
