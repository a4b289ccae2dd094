"""Packets that the capturing machine has dropped: where users look for what is missing."""

from __future__ import annotations

import json
import sqlite3
import struct
from contextlib import closing
from pathlib import Path

import pytest
from command import TINY, kiebitz
from served_pages import serving

import kiebitz as library
from kiebitz.proxy.capture.files import open_capture

DROPPED = "17 packets were dropped by the capturing machine"


def _block(kind: int, body: bytes) -> bytes:
    body += bytes(-len(body) % 4)
    return struct.pack("<II", kind, len(body) + 12) + body + struct.pack("<I", len(body) + 12)


@pytest.fixture
def capture(tmp_path: Path) -> str:
    data = _block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))
    data += _block(1, struct.pack("<HHI", 1, 0, 0))
    with open_capture(TINY) as packets:
        for ts_ns, _, content, wirelen in packets:
            ticks = ts_ns // 1000
            head = struct.pack("<5I", 0, ticks >> 32, ticks & 0xFFFFFFFF, len(content), wirelen)
            data += _block(6, head + content)
    data += _block(5, struct.pack("<III", 0, 0, 0) + struct.pack("<HHQHHQI", 5, 8, 5, 7, 8, 12, 0))
    path = tmp_path / "drops.pcapng"
    path.write_bytes(data)
    return str(path)


def test_each_command_reports_them(capture: str, tmp_path: Path) -> None:
    database = str(tmp_path / "game.db")
    assert f"{capture}: {DROPPED}\n" in kiebitz("import", capture, "-w", database).err
    assert kiebitz("check", capture).err.count(DROPPED) == 1
    # The database remembers them.
    assert kiebitz("check", database).err.count(DROPPED) == 1
    assert DROPPED in kiebitz("sessions", database).out
    (row,) = [json.loads(line) for line in kiebitz("sessions", database, "--nl").out.splitlines()]
    assert row["lacks"] == DROPPED
    for path in (capture, database):
        with library.open(path) as session:
            assert session.lacks == DROPPED


def test_copies_keep_them_and_deleting_removes_them(capture: str, tmp_path: Path) -> None:
    database, copy, hidden = (str(tmp_path / name) for name in ("game.db", "copy.db", "hidden.db"))
    kiebitz("import", capture, "-w", database)
    assert kiebitz("import", database, "-w", copy).status == 0
    assert kiebitz("import", "--anonymize", copy, "-w", hidden).status == 0
    assert kiebitz("redissect", hidden).status == 0
    assert DROPPED in kiebitz("check", hidden).err
    assert kiebitz("sessions", database, "--delete", "1", "--yes").status == 0
    with closing(sqlite3.connect(database)) as connection:
        assert connection.execute("SELECT count(*) FROM losses").fetchone() == (0,)


def test_a_strangers_text_is_escaped(capture: str, tmp_path: Path) -> None:
    database = str(tmp_path / "game.db")
    kiebitz("import", capture, "-w", database)
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("UPDATE losses SET text = 'no\x1b[31mne'")
    for done in (kiebitz("check", database), kiebitz("sessions", database)):
        assert "\x1b" not in done.out + done.err
        assert "ne" in done.out + done.err


@pytest.mark.parametrize("is_stored", [False, True])
def test_the_page_shows_them(capture: str, is_stored: bool, tmp_path: Path) -> None:
    database = str(tmp_path / "game.db")
    kiebitz("import", capture, "-w", database)
    with serving(database if is_stored else capture) as server:
        (session,) = server.well("api/sessions")["sessions"]
        assert session["lacks"] == DROPPED
