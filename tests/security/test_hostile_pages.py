"""Databases with cyclic pages, on which reading would never end, are rejected.

A file of 150 KB claims an astronomical number of rows here; schema and values look normal.
"""

from __future__ import annotations

import resource
import shutil
import signal
import sqlite3
import struct
import subprocess
from contextlib import closing
from pathlib import Path

import pytest
from command import ODD, ROOT
from damaged_databases import small_database
from processes_and_rows import KIEBITZ
from strength import a_few
from tables import tried_commands

from kiebitz.storage.database.opening import LimitedConnection

PAGE = 4096
CHILDREN = 200
LEVELS = 9
MEMORY = 2 << 30

COMMANDS = tried_commands("test_hostile_pages")
QUICK = COMMANDS[3]
"""The command that `make test` runs on them: others read for seconds what has no end."""

FEW = ["messages", "events"]
"""Tables that `make test` reads."""

OTHERS = ["sessions", "streams", "chunks", "events", "games", "snapshots"]
"""Tables that are tried with some of the commands."""


def interior(child: int, at: int) -> bytes:
    """Return a page of a table's tree (SQLite's file format, 1.6) all of whose children are one page."""
    page = bytearray(PAGE)
    offsets = []
    end = PAGE
    for number in range(1, CHILDREN + 1):
        # The key has seven bits a byte, preceded by the page's four bytes.
        key = bytes([0x80 | number >> 7, number & 0x7F]) if number > 0x7F else bytes([number])
        cell = struct.pack(">I", child) + key
        end -= len(cell)
        page[end : end + len(cell)] = cell
        offsets.append(end)
    page[at : at + 12] = struct.pack(">BHHHBI", 5, 0, CHILDREN, end, 0, child)
    page[at + 12 : at + 12 + 2 * CHILDREN] = struct.pack(f">{CHILDREN}H", *offsets)
    return bytes(page)


def bomb(target: Path, table: str) -> None:
    """A copy of a database in which a table's rows come again and again."""
    shutil.copy(small_database(), target)
    with closing(sqlite3.connect(target)) as connection:
        (root,) = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (table,)).fetchone()
    data = bytearray(target.read_bytes())
    pages = len(data) // PAGE
    start = (root - 1) * PAGE
    leaf = data[start : start + PAGE]
    if leaf[0] == 5:
        child = struct.unpack(">I", leaf[8:12])[0]
        leaf = data[(child - 1) * PAGE : child * PAGE]
    data += leaf
    for level in range(LEVELS):
        data += interior(pages + 1 + level, 0)
    data[start : start + PAGE] = interior(pages + 1 + LEVELS, 0)
    data[28:32] = struct.pack(">I", len(data) // PAGE)
    target.write_bytes(data)


def _with_little_memory() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


@pytest.mark.full(but=1)
@pytest.mark.parametrize(
    ("table", "command"),
    a_few(
        [
            *(("messages", command) for command in COMMANDS),
            *((table, command) for table in OTHERS for command in COMMANDS[::3]),
        ],
        lambda row: row[1] == (QUICK if row[0] == "messages" else COMMANDS[0]) and row[0] in FEW,
    ),
)
def test_reading_ends(table: str, command: list[str], tmp_path: Path) -> None:
    path = tmp_path / "bomb.db"
    bomb(path, table)
    done = subprocess.run(
        [*KIEBITZ, command[0], str(path), *(ODD if word == "ODD" else word for word in command[1:])],
        capture_output=True,
        timeout=100,
        cwd=ROOT,
        preexec_fn=_with_little_memory,
    )
    assert done.returncode in (0, 1, 3), done.stderr[-2000:]
    if done.returncode == 1:
        assert b"this database is damaged" in done.stderr, done.stderr[-2000:]
        assert b"error of Kiebitz" not in done.stderr
    assert len(done.stdout) < 10_000_000


def test_calls_of_functions_count(tmp_path: Path) -> None:
    path = shutil.copy(small_database(), tmp_path)
    numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 1000000)"
    with closing(sqlite3.connect(path, factory=LimitedConnection)) as connection:
        connection.limit_steps(str(path))
        connection.create_function("same", 1, str)
        assert connection.execute(f"{numbers} SELECT count(i) FROM n").fetchone() == (1_000_000,)
        with pytest.raises(sqlite3.OperationalError, match="interrupted"):
            connection.execute(f"{numbers} SELECT count(same(i)) FROM n")


@pytest.mark.full
def test_ctrl_c_ends_a_statement(tmp_path: Path) -> None:
    path = tmp_path / "bomb.db"
    bomb(path, "messages")
    # So large that its size explains any number of steps.
    with path.open("r+b") as file:
        file.truncate(1 << 40)
    sessions = subprocess.Popen(
        [*KIEBITZ, "sessions", str(path)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=ROOT
    )
    try:
        with pytest.raises(subprocess.TimeoutExpired):
            sessions.wait(3)
        sessions.send_signal(signal.SIGINT)
        assert sessions.wait(10) == 130
    finally:
        sessions.kill()
        sessions.communicate()
