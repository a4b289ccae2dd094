"""The views of a database say what the listings say, in one place and in words.

The SQL that makes a database is that of the tables and views as `make_schema.py` defines them.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from command import CAPTURES, ROOT, TINY, kiebitz
from imported_databases import database_of
from make_schema import VIEWS, convert, schema_sql
from strength import GAMES, a_few

from kiebitz.dissectors.escaping import printable
from kiebitz.storage.database.schema import MEMORY, SCHEMA, TABLES, create_tables

DATABASE = (ROOT / "docs" / "database.md").read_text()


@pytest.fixture(scope="module")
def twice(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    made = {}
    for protocol, capture in GAMES.items():
        path = made[protocol] = tmp_path_factory.mktemp("views") / f"{protocol}.db"
        for one in ("maexchen-head-tiny.pcap", capture):
            assert kiebitz("import", str(CAPTURES / one), "-w", str(path)).status == 0
    return made


def view(path: Path, name: str) -> list[dict[str, Any]]:
    """Return the rows of a view that are of the second session."""
    with closing(sqlite3.connect(path)) as connection:
        connection.row_factory = sqlite3.Row
        rows = connection.execute(f"SELECT * FROM {name} WHERE session_id = 2 ORDER BY id").fetchall()
    return [dict(row) for row in rows]


def in_session(path: Path, command: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = kiebitz(command, f"{path}:2", "--json").json
    return sorted(rows, key=lambda row: row["id"])


@pytest.mark.parametrize("protocol", a_few(GAMES, ["maexchen", "catan"]))
def test_the_views_match_the_listings(protocol: str, twice: dict[str, Path]) -> None:
    path = twice[protocol]
    events = {row["number"]: row for row in in_session(path, "events")}
    for row, listed in zip(view(path, "v_messages"), in_session(path, "messages"), strict=True):
        said = (listed[key] for key in ("id", "number", "time", "stream", "client", "player", "server"))
        names = ("id", "number", "seconds", "stream", "client", "player", "server")
        assert [row[name] for name in names] == [*said]
        assert [row[key] for key in ("name", "game", "event", "offset", "length")] == [
            listed[key] for key in ("name", "game", "event", "offset", "length")
        ]
        assert (row["sentence"] is None) == (listed["event"] not in events)
    for row, listed in zip(view(path, "v_events"), events.values(), strict=True):
        assert (row["number"], row["seconds"], row["game"], row["kind"], row["player"], row["server"]) == (
            *(listed[key] for key in ("number", "time", "game", "kind", "actor", "server")),
        )
        # The receivers of a message are known only when all its copies have arrived.
        told, known = (
            re.sub(r"^to [^:]+: ", "", text) for text in (printable(listed["sentence"]), row["sentence"])
        )
        assert told.startswith(known.partition(" to ")[0])
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", row["time"])
    started = datetime.fromisoformat(kiebitz("sessions", str(path), "--json").json[1]["started"])
    for row in view(path, "v_events"):
        elapsed = (datetime.fromisoformat(row["time"]) - started).total_seconds()
        assert elapsed == pytest.approx(row["seconds"], abs=2e-6)
    for row, listed in zip(view(path, "v_games"), in_session(path, "games"), strict=True):
        assert (row["number"], row["seconds"], row["took"], row["label"]) == (
            *(listed[key] for key in ("number", "started", "seconds", "label")),
        )
    for row, listed in zip(view(path, "v_diagnostics"), in_session(path, "check"), strict=True):
        assert (row["seconds"], row["stream"], row["message"], row["event"], row["code"], row["text"]) == (
            *(listed[key] for key in ("time", "stream", "message", "event", "code", "text")),
        )
        assert row["player"] == listed["player"]


def test_names_are_there_while_it_is_dissected_again_and_after(
    twice: dict[str, Path], tmp_path: Path
) -> None:
    path = tmp_path / "again.db"
    path.write_bytes(twice["maexchen"].read_bytes())
    before = view(path, "v_messages")
    assert kiebitz("redissect", str(path)).status == 0
    for row, old in zip(view(path, "v_messages"), before, strict=True):
        assert {**row, "id": 0} == {**old, "id": 0}


@pytest.mark.parametrize("name", VIEWS)
def test_the_page_of_the_database_has_each_view(name: str) -> None:
    section = DATABASE.partition(f"\n### The view `{name}`\n")[2].partition("\n## ")[0].partition("\n### ")[0]
    with closing(sqlite3.connect(database_of("maexchen-head-tiny.pcap"))) as connection:
        columns = [column for _, column, *_ in connection.execute(f"PRAGMA table_info({name})")]
    assert re.findall(r"`(\w+)`", section.strip().partition("\n\n")[0]) == columns


def test_each_reference_is_declared_and_holds() -> None:
    with closing(sqlite3.connect(database_of("catan-yaks-lobby.pcap.gz"))) as connection:
        for table, columns in TABLES.items():
            references = {name: column.refers_to for name, column in columns.items() if column.refers_to}
            declared = connection.execute(f"PRAGMA foreign_key_list({table})")
            assert {row[3]: row[2] for row in declared} == references
            # A row of `tapped` is called by the id of its stream.
            named = {c for c in columns if c.endswith("_id") and c != "chunk_id"}
            assert {*references} - {"id"} == named
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []


def test_the_schema_file_is_up_to_date() -> None:
    assert Path(SCHEMA).read_text() == schema_sql(), "python tests/support/make_schema.py makes it anew"


def test_a_stored_database_is_converted_when_a_column_is_added(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    assert kiebitz("import", TINY, "-w", str(path)).status == 0
    events = kiebitz("events", str(path)).out
    with closing(sqlite3.connect(path)) as connection:
        for name in VIEWS:
            connection.execute(f"DROP VIEW {name}")
        connection.execute("ALTER TABLE sessions DROP COLUMN note")
    assert "its table sessions has no note" in kiebitz("events", str(path)).err
    convert(path)
    assert kiebitz("events", str(path)).out == events
    assert kiebitz("redissect", str(path)).status == 0


def test_a_new_database_has_them_all() -> None:
    with closing(sqlite3.connect(MEMORY)) as connection:
        create_tables(connection)
        names = {
            name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
        }
    assert names == TABLES.keys()


LARGE = ("chunks", "messages", "diagnostics", "games", "events", "snapshots")
"""The tables that grow with a session."""

QUICK = [
    ("state", "--at", "5s"),
    ("state", "--at", "end"),
    ("state", "--game", "2"),
    ("events", "-Y", "game == 2"),
    ("messages", "-Y", 'msg == "ROLL"'),
    ("messages", "-Y", 'msg in {"ROLL", "SEE"} && time < 5'),
    ("messages", "-Y", 'msg == "ROLL" && player == "alice"'),
    ("messages", "-Y", "event == 3"),
    ("games",),
]


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("plans") / "two.db"
    for name in ("maexchen-head-port4711.pcap", "schafkopf-1.3-badcard.pcap"):
        assert kiebitz("import", str(CAPTURES / name), "-w", str(path)).status == 0
    return path


@contextmanager
def statements(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    asked: list[str] = []
    connect = sqlite3.connect

    def traced(*arguments: Any, **options: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*arguments, **options)
        connection.set_trace_callback(asked.append)
        return connection

    with monkeypatch.context() as patched:
        patched.setattr(sqlite3, "connect", traced)
        yield asked


@pytest.mark.parametrize("question", QUICK, ids=" ".join)
def test_no_large_table_is_read_as_a_whole(
    monkeypatch: pytest.MonkeyPatch, database: Path, question: tuple[str, ...]
) -> None:
    command, *options = question
    with statements(monkeypatch) as asked:
        done = kiebitz(command, f"{database}:1", *options)
    assert done.status == 0, done.err
    # Of the small tables some are read as a whole, to see whether they are sound.
    selects = [
        statement
        for statement in asked
        if statement.lstrip().startswith("SELECT") and any(table in statement for table in LARGE)
    ]
    assert selects
    with closing(sqlite3.connect(database)) as connection:
        for statement in selects:
            aliases = [alias for table in LARGE for alias in (table, *aliases_of(statement, table))]
            for *_, step in connection.execute(f"EXPLAIN QUERY PLAN {statement}"):
                # From the first row on is all of them, too.
                is_whole = step.startswith("SCAN ") or step.endswith("INTEGER PRIMARY KEY (rowid>?)")
                assert not (is_whole and step.split()[1] in aliases), f"{statement}\n{step}"


def aliases_of(statement: str, table: str) -> list[str]:
    words = statement.replace(",", " ").replace("(", " ").replace(")", " ").split()
    found = []
    for place, word in enumerate(words[:-1]):
        if word == table and words[place - 1] in ("FROM", "JOIN"):
            found.append(words[place + 2] if words[place + 1] == "AS" else words[place + 1])
    return found
