"""Databases with a hostile schema: no code of it runs, and no recorded data is lost.

A database may be read if plain selects read plain tables. It is never written; its recorded bytes can be read
into a new database.
"""

from __future__ import annotations

import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from command import kiebitz
from damaged_databases import READING, small_database, writing
from strength import a_few, every

LOSE = "BEGIN DELETE FROM chunks; DELETE FROM messages; END"
FILL = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"

READABLE = {
    "a trigger": f"CREATE TRIGGER t AFTER INSERT ON sessions {LOSE}",
    "a trigger on deleting": "CREATE TRIGGER t BEFORE DELETE ON messages BEGIN DELETE FROM chunks; END",
    "a trigger without end": f"CREATE TRIGGER t AFTER INSERT ON events BEGIN INSERT INTO games(label)"
    f" SELECT hex(randomblob(1000)) FROM ({FILL} SELECT i FROM n); END",
    "an index of an expression": "CREATE INDEX i ON messages (abs(length(hex(name))))",
    "an index of some rows": "CREATE INDEX i ON messages (name) WHERE length(fields) > 0",
    "an index more": "CREATE INDEX i ON events (kind)",
    "an index in disguise": "DROP INDEX idx_messages_name;"
    " CREATE INDEX idx_messages_name ON messages (lower(name))",
    "a unique index": "DROP INDEX idx_events_game_id; CREATE UNIQUE INDEX idx_events_game_id ON events (id)",
    "a view more": f"CREATE VIEW v AS {FILL} SELECT i FROM n",
    "a table more": "CREATE TABLE more (x)",
    "a virtual table more": "CREATE VIRTUAL TABLE more USING fts5(x)",
    "statistics": "ANALYZE",
    "a column more": "ALTER TABLE games ADD COLUMN more TEXT DEFAULT 'x'",
}

REMADE = {
    "a constraint": ("name TEXT", "name TEXT CHECK (length(hex(zeroblob(100000000))) > 0)"),
    "a constraint that fails": ("kind TEXT", "kind TEXT CHECK (kind = 'import' AND id < 2)"),
    "a collation": ("name TEXT", "name TEXT COLLATE NOCASE"),
    "a collation of nobody's": ("name TEXT", "name TEXT COLLATE nobodys"),
    "a default": ("name TEXT", "name TEXT DEFAULT (hex(randomblob(9)))"),
    "conflicts that replace": ("id INTEGER PRIMARY KEY", "id INTEGER PRIMARY KEY ON CONFLICT REPLACE"),
    "a reference": ("name TEXT", "name TEXT REFERENCES games(id) ON DELETE CASCADE"),
}
"""Hostile definitions of the table `sessions` itself; these can be read, too."""

UNREADABLE = {
    "a view for a table": "ALTER TABLE games RENAME TO g; CREATE VIEW games AS SELECT * FROM g",
    "a view without end": f"DROP TABLE games; CREATE VIEW games AS {FILL} SELECT i AS id, 1 AS table_id,"
    " 1 AS session_id, '' AS protocol, '' AS label, 1 AS started_ns, 1 AS ended_ns, '{}' AS result FROM n",
    "a table that is computed": "ALTER TABLE messages ADD COLUMN more TEXT"
    " GENERATED ALWAYS AS (hex(zeroblob(1e9))) VIRTUAL",
    "a virtual table": "DROP TABLE games; CREATE VIRTUAL TABLE games USING fts5(id, label)",
    "a column less": "ALTER TABLE streams DROP COLUMN transport",
    "a table less": "DROP TABLE snapshots",
}


def spoilt(folder: Path, statements: str) -> str:
    path = shutil.copy(small_database(), folder / "spoilt.db")
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(statements)
        connection.commit()
    return str(path)


def remade(old: str, new: str) -> str:
    """Statements that write another text for the table `sessions` into the schema."""
    text = new.replace("'", "''")
    return (
        "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = replace(replace(sql, '\"', ''),"
        f" '{old}', '{text}') WHERE name = 'sessions'; PRAGMA writable_schema = OFF"
    )


def respelt(statements: str) -> str:
    """Return the same objects, called by their kinds in another spelling: SQLite runs them all the same."""
    return (
        f"{statements}; PRAGMA writable_schema = ON;"
        " UPDATE sqlite_schema SET type = upper(type) WHERE type <> 'table'; PRAGMA writable_schema = OFF"
    )


SPOILT = {
    **READABLE,
    **{
        f"{kind}, respelt": respelt(READABLE[kind])
        for kind in READABLE
        if "trigger" in kind or "view" in kind
    },
    **{kind: remade(*texts) for kind, texts in REMADE.items()},
}


def chunks(path: str) -> list[bytes]:
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        return [data for (data,) in connection.execute("SELECT data FROM chunks ORDER BY id")]


@pytest.mark.full
@pytest.mark.parametrize("kind", every(24, SPOILT))
def test_nothing_is_written_where_something_might_run(kind: str, tmp_path: Path) -> None:
    path = spoilt(tmp_path, SPOILT[kind])
    before = Path(path).read_bytes()
    for command in [*writing(path), ["redissect", path]]:
        done = kiebitz(*command)
        assert done.status == 1, done
        assert "it is not changed" in done.err
        assert f"kiebitz import {path} -w" in done.err
    assert Path(path).read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["spoilt.db"]


@pytest.mark.full(but=1)
@pytest.mark.parametrize("kind", every(5, SPOILT))
def test_its_bytes_are_read_into_a_new_database(kind: str, tmp_path: Path) -> None:
    path = spoilt(tmp_path, SPOILT[kind])
    new = str(tmp_path / "new.db")
    done = kiebitz("import", path, "-w", new)
    assert done.status == 0, done.err
    assert chunks(new) == chunks(str(small_database()))
    assert kiebitz("diff", new, str(small_database())).status == 0
    assert kiebitz("redissect", new).status == 0


@pytest.mark.full
@pytest.mark.parametrize("command", a_few(READING, [["events"]], " ".join))
def test_it_is_read_as_if_nothing_were_wrong(command: list[str], tmp_path: Path) -> None:
    expected = kiebitz(command[0], str(small_database()), *command[1:])
    for kind, statements in SPOILT.items():
        if kind == "a column more" and "jsonl" in command:
            continue
        (tmp_path / kind).mkdir()
        path = spoilt(tmp_path / kind, statements)
        before = Path(path).read_bytes()
        done = kiebitz(command[0], path, *command[1:])
        assert done.status == expected.status, (kind, done.err)
        assert done.out.replace(path, str(small_database())) == expected.out, kind
        assert Path(path).read_bytes() == before


@pytest.mark.full
@pytest.mark.parametrize("kind", every(2, UNREADABLE))
def test_non_tables_are_not_read(kind: str, tmp_path: Path) -> None:
    path = spoilt(tmp_path, UNREADABLE[kind])
    reading = [[command[0], path, *command[1:]] for command in READING]
    for command in [
        *reading,
        ["redissect", path],
        *writing(path),
        ["import", path, "-w", str(tmp_path / "new.db")],
    ]:
        done = kiebitz(*command)
        assert (done.status, done.out) == (1, ""), command
        assert "not a database made by Kiebitz" in done.err or "not a session database" in done.err


def test_tables_that_share_their_pages_are_not_written_to(tmp_path: Path) -> None:
    path = spoilt(
        tmp_path,
        "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET rootpage ="
        " (SELECT rootpage FROM sqlite_schema WHERE name = 'chunks') WHERE name = 'games'",
    )
    before = Path(path).read_bytes()
    for command in [*writing(path), ["redissect", path]]:
        done = kiebitz(*command)
        assert done.status == 1
        assert "shares the pages of another table" in done.err
    assert Path(path).read_bytes() == before


def test_a_damaged_schema_is_reported_although_its_text_is_not_utf_8(tmp_path: Path) -> None:
    path = tmp_path / "damaged.db"
    path.write_bytes(small_database().read_bytes().replace(b"CREATE TABLE", b"CREA\xd4E TABLE", 1))
    for command in ("sessions", "redissect"):
        done = kiebitz(command, str(path))
        assert (done.status, done.out) == (1, "")
        assert 'near "CREA\ufffdE": syntax error' in done.err


def test_files_of_an_older_sqlite_utils_are_accepted(tmp_path: Path) -> None:
    path = shutil.copy(small_database(), tmp_path / "old.db")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA writable_schema = ON")
        for name, sql in connection.execute("SELECT name, sql FROM sqlite_schema WHERE sql <> ''").fetchall():
            # Before version 4 names were in brackets.
            bracketed = re.sub(r'"(\w+)"', r"[\1]", sql)
            assert bracketed != sql
            connection.execute("UPDATE sqlite_schema SET sql = ? WHERE name = ?", (bracketed, name))
    done = kiebitz("redissect", str(path))
    assert done.status == 0, done.err
