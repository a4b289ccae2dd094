"""Marks with notes on messages and events: set through the API of the page, kept in the database."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from command import TINY, kiebitz
from conversation_files import blocks
from page_queries import data_of, exported
from request_files import compare
from served_pages import post, serving
from snapshots import DATA

import kiebitz as library

HOSTILE = "\x1b[2J\u202e<script>"

EVENT = {"kind": "event", "number": 3, "note": ""}
MESSAGE = {"kind": "message", "number": 2, "note": "alice bluffs"}
PLACED = [MESSAGE | {"table": None, "seq": None}, EVENT | {"table": 1, "seq": 3}]


def stored(path: Path) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("SELECT kind, number, note FROM marks ORDER BY number").fetchall()


@pytest.fixture
def game(tmp_path: Path) -> Path:
    path = tmp_path / "game.db"
    library.import_capture(TINY, str(path)).close()
    return path


def test_marks_are_kept_by_the_database_and_by_nothing_that_is_passed_on(game: Path, tmp_path: Path) -> None:
    with serving(str(game)) as server:
        assert server.well("api/marks") == {"marks": []}
        for mark in (MESSAGE | {"note": "?"}, EVENT, MESSAGE):
            assert post(server, mark, path="api/marks").status == 200
        assert server.well("api/marks") == {"marks": PLACED}
        for view in ("alice", "public"):
            assert server.well("api/marks", as_=view) == {"marks": []}
        compare(blocks(DATA / "requests.txt")["marks: what is refused"], server)
        assert server.well("api/marks") == {"marks": PLACED}
    assert data_of(exported(str(game), tmp_path / "all.html"))["marks"] == PLACED
    assert data_of(exported(str(game), tmp_path / "hers.html", "--as", "alice"))["marks"] == []
    for name, options in (("copy.db", []), ("anonymous.db", ["--anonymize"])):
        assert kiebitz("import", str(game), "-w", str(tmp_path / name), *options).status == 0
        assert b"alice bluffs" not in (tmp_path / name).read_bytes()
    assert kiebitz("redissect", str(game)).status == 0
    assert stored(game) == [("message", 2, "alice bluffs"), ("event", 3, "")]
    with serving(str(game), "--read-only") as server:
        assert server.well("api/marks") == {"marks": PLACED}
        assert post(server, EVENT | {"note": None}, path="api/marks").status == 403
    with serving(str(game)) as server:
        assert post(server, EVENT | {"note": None}, path="api/marks").json == {"marks": PLACED[:1]}
    assert kiebitz("sessions", str(game), "--delete", "1", "--yes").status == 0
    assert stored(game) == []
    assert b"alice bluffs" not in game.read_bytes()


@pytest.mark.full
def test_marks_of_a_hostile_database_are_bounded(game: Path) -> None:
    with serving(str(game)) as server:
        post(server, MESSAGE, path="api/marks")
    with closing(sqlite3.connect(game)) as connection, connection:
        rows: list[tuple[Any, ...]] = [("message", n, 0, "x" * 100_000) for n in range(100, 3000)]
        rows += [
            ("rowid", 1, 0, ""),
            ("event", "one", 0, ""),
            ("event", 1, b"x", ""),
            ("event", 2, 0, b"\xff"),
        ]
        connection.executemany("INSERT INTO marks VALUES (1,?,?,?,?)", rows)
        (moment,) = connection.execute("SELECT ts_ns FROM events WHERE id = 4").fetchone()
        # The row with another time is found by its time.
        connection.execute("INSERT INTO marks VALUES (1,'event',77,?,?)", (moment, HOSTILE))
        connection.execute("DELETE FROM marks WHERE kind = 'message' AND number > 1000")
    with serving(str(game)) as server:
        found = server.well("api/marks")["marks"]
        assert [(one["kind"], one["number"]) for one in found if one["note"] == HOSTILE] == [("event", 4)]
        assert all(len(one["note"]) <= 1000 for one in found)
