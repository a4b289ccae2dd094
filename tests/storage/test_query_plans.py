from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from command import CAPTURES, kiebitz

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
