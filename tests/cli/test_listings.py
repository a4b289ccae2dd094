"""The listings and follow: what they show, in which forms, and how they fail.

Listings of several sessions: captures, databases, and `DB:*` for all sessions of one.
"""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cleanup import close_after_test
from command import CAPTURES, ODD, TINY, kiebitz, spawn
from processes_and_rows import PATIENCE_S
from session_factory import Conversation, record
from strength import every

from kiebitz.storage.database.recorder_lock import lock


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("listings") / "game.db")
    assert kiebitz("import", TINY, ODD, "-w", path).status == 0
    return path


def test_a_capture_file_and_its_session_list_the_same(database: str) -> None:
    for command in ("streams", "games", "messages", "events"):
        assert kiebitz(command, TINY, "--json").json == kiebitz(command, f"{database}:1", "--json").json


def test_all_forms_are_equivalent(database: str) -> None:
    arguments = ("messages", f"{database}:1")
    rows = kiebitz(*arguments, "--json").json
    assert [json.loads(line) for line in kiebitz(*arguments, "--nl").out.splitlines()] == rows
    for form, delimiter in (("--csv", ","), ("--tsv", "\t")):
        text = kiebitz(*arguments, form).out
        listed = list(csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter))
        of_objects = ("fields", "flaws")
        assert [{**row, **{key: json.loads(row[key]) for key in of_objects}} for row in listed] == [
            {
                key: value if key in of_objects else "" if value is None else str(value)
                for key, value in row.items()
            }
            for row in rows
        ]
    assert len(kiebitz(*arguments).out.splitlines()) == len(rows) + 1


@contextmanager
def recorder_at(path: Path) -> Iterator[None]:
    descriptor = lock(str(path))
    assert descriptor is not None
    try:
        yield
    finally:
        os.close(descriptor)


@pytest.mark.full
def test_following_a_session_that_is_being_recorded(tmp_path: Path) -> None:
    path = tmp_path / "live.db"
    talk = Conversation().says(b"REGISTER;alice").hears(b"REGISTERED")
    database = record(path, talk.items, ended=False)
    with recorder_at(path):
        process = spawn("messages", database, "-F", "--nl")
        assert process.stdout is not None
        names = [json.loads(process.stdout.readline())["name"] for _ in range(2)]
        assert names == ["REGISTER", "REGISTERED"]
        with close_after_test(sqlite3.connect(path)) as connection:
            connection.execute(
                "INSERT INTO messages VALUES (3, 1, 'c2s', 1700000000003000000, 'JOIN', '{}', 14, 6, 1, 1)"
            )
        assert json.loads(process.stdout.readline())["name"] == "JOIN"
        with close_after_test(sqlite3.connect(path)) as connection:
            connection.execute("UPDATE sessions SET ended_ns = 1700000000003000000")
        connection.close()
        out, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, out, err) == (0, b"", b"")


@pytest.mark.full
def test_ctrl_c_ends_following_with_130(tmp_path: Path) -> None:
    path = tmp_path / "live.db"
    database = record(path, Conversation().says(b"REGISTER;alice").items, ended=False)
    with recorder_at(path):
        process = spawn("messages", database, "-F", "--json")
        assert process.stdout is not None
        first = b""
        while b"REGISTER" not in first:
            piece = os.read(process.stdout.fileno(), 65536)
            assert piece, first
            first += piece
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert [row["name"] for row in json.loads(first + out)] == ["REGISTER"]
    assert b"Traceback" not in err


BADCARD = str(CAPTURES / "schafkopf-1.3-badcard.pcap")
LISTINGS = ("streams", "games", "messages", "events", "check")


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("several") / "game.db")
    assert kiebitz("import", TINY, BADCARD, "-w", path).status == 0
    return path


@pytest.mark.full
@pytest.mark.parametrize("listing", every(4, LISTINGS))
def test_each_session_has_the_rows_that_it_has_by_itself(listing: str, both: str) -> None:
    rows = kiebitz(listing, f"{both}:*", ODD, "--json").json
    alone = [
        {"session": session, **row}
        for session in (f"{both}:1", f"{both}:2", ODD)
        for row in kiebitz(listing, session, "--json").json
    ]
    assert rows == alone
    assert {row["session"] for row in rows} == {f"{both}:1", f"{both}:2", ODD}
