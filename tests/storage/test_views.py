"""The views of a database say what the listings say, in one place and in words."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from command import CAPTURES, ROOT, kiebitz
from imported_databases import database_of
from make_schema import VIEWS
from strength import GAMES, a_few

from kiebitz.dissectors.escaping import printable
from kiebitz.storage.database.schema import TABLES

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
