"""The SQL that makes a database is that of the tables and views as the code names them.

`KIEBITZ_SNAPSHOTS=write pytest tests/storage/test_schema.py` makes it anew.
"""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

from kiebitz.storage.database.schema import MEMORY, REFERENCES, SCHEMA, TABLES, create_tables, make_tables
from kiebitz.storage.database.views import make_views


def test_the_file_says_what_sqlite_utils_makes_of_the_tables() -> None:
    with closing(sqlite3.connect(MEMORY)) as connection:
        make_tables(connection, TABLES, REFERENCES)
        make_views(connection)
        made = [sql for (sql,) in connection.execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL")]
    text = ";\n".join(made) + "\n"
    if os.environ.get("KIEBITZ_SNAPSHOTS") == "write":
        Path(SCHEMA).write_text(text)
    assert Path(SCHEMA).read_text() == text, f"KIEBITZ_SNAPSHOTS=write pytest {__file__} makes it anew"


def test_a_new_database_has_them_all() -> None:
    with closing(sqlite3.connect(MEMORY)) as connection:
        create_tables(connection)
        names = {
            name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
        }
    assert names == TABLES.keys()
