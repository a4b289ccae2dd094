"""Databases that an older Kiebitz has written: read as they are, and brought up to date when written to.

`data/of-format-2.db.gz` was made by the commit 2c862a9, the last with that format, which imported
`captures/maexchen-head-tiny.pcap` twice.
"""

from __future__ import annotations

import gzip
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from command import ROOT, TINY, kiebitz, without_session

from kiebitz.storage.database import formats
from kiebitz.storage.database.schema import SCHEMA_VERSION

_FORMAT_2 = ROOT / "tests" / "data" / "of-format-2.db.gz"

FORMATS = (1, 2)


@pytest.fixture(params=FORMATS)
def old(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A database of each of these formats, with two sessions of the same game."""
    path = tmp_path / "old.db"
    path.write_bytes(gzip.decompress(_FORMAT_2.read_bytes()))
    if request.param == 1:
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("DROP TABLE alterations")
            connection.execute("PRAGMA user_version = 1")
    return path


def _format_of(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        version: int = connection.execute("PRAGMA user_version").fetchone()[0]
        return version


def _rows(path: Path, table: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(f"SELECT * FROM {table} ORDER BY rowid").fetchall()


@pytest.mark.parametrize("number", [1, 2])
def test_an_old_database_is_read_and_not_written(number: int, old: Path) -> None:
    before = old.read_bytes()
    session = f"{old}:{number}"
    for command in (
        *(["messages"], ["messages", "--altered"], ["events"], ["check"], ["streams"], ["state"]),
        *(["follow"], ["diff", "--alterations"], ["whatif", "--drop", "#26"], ["export", "-T", "csv"]),
        *(["events", "-Y", "event == 7 && game == 1"], ["state", "--at", "#7"]),
    ):
        given = [*(["1"] if command[0] == "follow" else []), *command[1:]]
        done, expected = kiebitz(command[0], session, *given), kiebitz(command[0], TINY, *given)
        found = done.out.replace(session, TINY)
        assert (done.status, without_session(found)) == (
            expected.status,
            without_session(expected.out),
        ), (command, done.err)
    assert kiebitz("export", session, "-T", "jsonl").status == 0
    assert kiebitz("diff", session, TINY).status == 0
    assert old.read_bytes() == before


@pytest.mark.parametrize("command", [("import", TINY, "-w"), ("redissect",)], ids=["import", "redissect"])
def test_what_is_written_to_is_brought_up_to_date(command: tuple[str, ...], old: Path) -> None:
    before = {table: _rows(old, table) for table in ("chunks", "streams")}
    assert kiebitz(*command, str(old)).status == 0
    assert _format_of(old) == SCHEMA_VERSION
    for table, rows in before.items():
        now = _rows(old, table)[: len(rows)]
        assert [row[: len(known)] for row, known in zip(now, rows, strict=True)] == rows
    for number in range(1, 3 + (command[0] == "import")):
        assert kiebitz("diff", f"{old}:{number}", TINY).status == 0
        listed, expected = kiebitz("messages", f"{old}:{number}"), kiebitz("messages", TINY)
        assert listed.out == expected.out
    # It is now as if it had always been of this format: the next one is as welcome.
    assert kiebitz("import", TINY, "-w", str(old)).status == 0
    with closing(sqlite3.connect(old)) as connection:
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert [
            name for (name,) in connection.execute("SELECT name FROM sqlite_master") if "old" in name
        ] == []


def test_one_that_cannot_be_brought_up_to_date_stays_as_it_was(
    old: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {table: _rows(old, table) for table in ("sessions", "messages", "events")}
    version = _format_of(old)

    rebuild = formats._rebuild

    def fails(connection: sqlite3.Connection, number: int) -> None:
        rebuild(connection, number)
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(formats, "_rebuild", fails)
    done = kiebitz("redissect", str(old))
    assert done.status == 1
    assert "the disk is full" in done.err
    assert "an older Kiebitz wrote it" in done.err
    assert _format_of(old) == version
    assert {table: _rows(old, table) for table in before} == before


def test_a_database_that_lacks_what_its_format_has_is_none(old: Path) -> None:
    with closing(sqlite3.connect(old)) as connection:
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    done = kiebitz("events", str(old))
    assert done.status == 1
    assert "Kiebitz" in done.err
