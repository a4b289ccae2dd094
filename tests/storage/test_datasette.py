from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from command import TINY, kiebitz
from imported_databases import database_of
from make_schema import VIEWS
from strength import a_few

from kiebitz.dissectors.registry import BUILT_IN
from kiebitz.storage.database.schema import TABLES
from kiebitz.storage.export.datasette import QUERIES

GAMES = {
    "maexchen": "maexchen-head-odd.pcap",
    "schafkopf": "schafkopf-1.3-2humans.pcap",
    "catan": "catan-yaks-g1-3p.pcap.gz",
    "okey": "okey-seed-game-win.pcap.gz",
    "cgml": "cgml-hands.pcap.gz",
}
"""A capture of each protocol in which enough happens."""

GIVEN = {"culprit": "odd", "session_id": 1, "game": 1}

EMPTY = {
    *((protocol, "all_diagnostics_of_one_client") for protocol in GAMES if protocol != "maexchen"),
    *((protocol, "diagnostics_by_culprit") for protocol in ("cgml", "okey", "schafkopf", "catan")),
}
"""Questions to which a capture may have no answer."""


def metadata(path: Path) -> dict[str, Any]:
    done = kiebitz("export", str(path), "-T", "datasette")
    assert done.status == 0, done.err
    (found,) = done.json["databases"].items()
    assert found[0] == path.stem
    said: dict[str, Any] = found[1]
    return said


def asked(path: Path, query: dict[str, str]) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
        return connection.execute(query["sql"], GIVEN).fetchall()


@pytest.mark.parametrize("protocol", a_few(GAMES, ["maexchen", "okey"]))
def test_each_question_has_an_answer(protocol: str) -> None:
    path = Path(database_of(GAMES[protocol]))
    (dissector,) = (dissector for dissector in BUILT_IN if dissector.protocol == protocol)
    queries = metadata(path)["queries"]
    assert [*queries] == [query.name for query in (*QUERIES, *dissector.presentation.queries)]
    assert dissector.presentation.queries
    for name, query in queries.items():
        assert query["title"]
        assert asked(path, query) or (protocol, name) in EMPTY, name


def test_the_most_frequent_bluffer_is_counted() -> None:
    path = Path(database_of(GAMES["maexchen"]))
    rolled: dict[str, str] = {}
    bluffs: dict[str, list[bool]] = {}
    for event in kiebitz("events", str(path), "--json").json:
        if event["kind"] == "rolled":
            rolled[event["actor"]] = event["data"]["dice"]
        elif event["kind"] == "announced" and event["actor"] in rolled:
            said = event["data"]["dice"] != rolled[event["actor"]]
            bluffs.setdefault(event["actor"], []).append(said)
    found = asked(path, metadata(path)["queries"]["who_bluffed_most"])
    assert {player: (lies, said) for player, lies, said, _ in found} == {
        player: (sum(told), len(told)) for player, told in bluffs.items()
    }


def test_it_speaks_of_what_is_there() -> None:
    tables = metadata(Path(database_of(GAMES["catan"])))["tables"]
    with closing(sqlite3.connect(Path(database_of(GAMES["catan"])))) as connection:
        assert set(tables) <= {*TABLES, *VIEWS}
        for name, told in tables.items():
            columns = {column for _, column, *_ in connection.execute(f"PRAGMA table_info({name})")}
            assert {*told.get("columns", ()), *told.get("units", ())} <= columns
            assert told.get("label_column", "id") in columns | {"id"}
    assert set(tables) >= {*VIEWS}


def test_a_file_that_is_no_database_has_no_sessions() -> None:
    done = kiebitz("export", TINY, "-T", "datasette")
    assert (done.status, done.out) == (1, "")
    assert "read the capture into one with kiebitz import" in done.err
