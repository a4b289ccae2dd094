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
from conversation_files import blocks, check
from damaged_databases import READING, small_database, writing
from snapshots import DATA
from strength import a_few, every
from transcripts import shown

SCHEMAS = blocks(DATA / "hostile_schemas.txt")
RESPELT = ", respelt"
"""SQLite runs objects all the same that are called by their kinds in another spelling."""
SPOILT = [title for title in SCHEMAS if ":" not in title]
SPOILT += [f"{title}{RESPELT}" for title in SPOILT if "trigger" in title or "view" in title]


def spoilt(folder: Path, title: str) -> str:
    """Return a database with a hostile schema."""
    path = str(shutil.copy(small_database(), folder / "spoilt.db"))
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        for step in SCHEMAS[title.removesuffix(RESPELT)].steps:
            old, arrow, new = step.removeprefix("sessions: ").partition(" => ")
            changed = "sql = replace(replace(sql, '\"', ''), ?, ?) WHERE name = 'sessions'"
            connection.execute(*((f"UPDATE sqlite_schema SET {changed}", (old, new)) if arrow else (step,)))
        if title.endswith(RESPELT):
            connection.execute(
                "UPDATE sqlite_schema SET type = upper(type) WHERE type IN ('trigger', 'view')"
            )
    return path


@pytest.mark.full
@pytest.mark.parametrize("title", every(24, SCHEMAS))
def test_nothing_is_written(title: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    lines: dict[str, None] = {}
    for spelling in [title, *({f"{title}{RESPELT}"} & {*SPOILT})]:
        before = Path(spoilt(tmp_path, spelling)).read_bytes()
        commands = [*writing("spoilt.db"), ["redissect", "spoilt.db"]]
        if title.startswith("not read: "):
            commands += [[command, "spoilt.db", *options] for command, *options in READING]
            commands += [["import", "spoilt.db", "-w", "new.db"]]
        lines |= dict.fromkeys(line for command in commands for line in shown(kiebitz(*command)))
        assert Path("spoilt.db").read_bytes() == before
        assert [entry.name for entry in tmp_path.iterdir()] == ["spoilt.db"]
    said = "\n".join([*SCHEMAS[title].steps, *lines])
    check(SCHEMAS[title], said)


@pytest.mark.full(but=1)
@pytest.mark.parametrize("title", every(5, SPOILT))
def test_its_bytes_are_read_into_a_new_database(title: str, tmp_path: Path) -> None:
    path, new = spoilt(tmp_path, title), str(tmp_path / "new.db")
    done = kiebitz("import", path, "-w", new)
    assert done.status == 0, done.err
    chunks = []
    for database in (new, small_database()):
        with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
            chunks.append(connection.execute("SELECT data FROM chunks ORDER BY id").fetchall())
    assert chunks[0] == chunks[1]
    assert kiebitz("diff", new, str(small_database())).status == 0
    assert kiebitz("redissect", new).status == 0


@pytest.mark.full
@pytest.mark.parametrize("command", a_few(READING, [["events"]], " ".join))
def test_it_is_read_as_if_nothing_were_wrong(command: list[str], tmp_path: Path) -> None:
    expected = kiebitz(command[0], str(small_database()), *command[1:])
    for title in SPOILT:
        if title == "a column more" and "jsonl" in command:
            continue
        path = spoilt(tmp_path, title)
        before = Path(path).read_bytes()
        done = kiebitz(command[0], path, *command[1:])
        assert done.status == expected.status, (title, done.err)
        assert done.out.replace(path, str(small_database())) == expected.out, title
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
