"""The SQL that makes a database is that of the tables and views as `make_schema.py` defines them."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from command import TINY, kiebitz
from make_schema import schema_sql

from kiebitz.storage.database.schema import MEMORY, SCHEMA, SCHEMA_VERSION, TABLES, create_tables


def test_the_schema_file_is_up_to_date() -> None:
    assert Path(SCHEMA).read_text() == schema_sql(), "python tests/support/make_schema.py makes it anew"


def test_a_new_database_has_them_all() -> None:
    with closing(sqlite3.connect(MEMORY)) as connection:
        create_tables(connection)
        names = {
            name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
        }
    assert names == TABLES.keys()


@pytest.mark.parametrize(
    ("version", "error"),
    [
        *((early, f"written before the first release (format {early})") for early in (1, 2)),
        (SCHEMA_VERSION + 1, f"written by a newer Kiebitz (format {SCHEMA_VERSION + 1})"),
        (0, "a database, but not a session database of Kiebitz"),
    ],
)
def test_another_format_is_refused_in_a_sentence(version: int, error: str, tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    assert kiebitz("import", TINY, "-w", str(path)).status == 0
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {version}")
    before = path.read_bytes()
    for command in (["events"], ["redissect"], ["import", TINY, "-w"]):
        done = kiebitz(*command, str(path))
        assert (done.status, done.err.count("\n")) == (1, 1)
        assert error in done.err
    assert path.read_bytes() == before


def test_a_database_that_lacks_a_table_is_none(tmp_path: Path) -> None:
    path = tmp_path / "less.db"
    assert kiebitz("import", TINY, "-w", str(path)).status == 0
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DROP TABLE alterations")
    done = kiebitz("events", str(path))
    assert (done.status, "not a session database" in done.err) == (1, True)
