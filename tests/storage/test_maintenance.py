"""Deletion of sessions, also while one is recorded, and packed copies of captures."""

from __future__ import annotations

import gzip
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from command import CAPTURES, ODD, TINY, kiebitz
from imported_databases import database_of

from kiebitz.storage.database.schema import SESSION_CONDITIONS
from kiebitz.storage.recording.recorder import Recorder

THREE = ("maexchen-head-tiny.pcap", "okey-seed-tiny.pcap.gz", "maexchen-head-odd.pcap")


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "game.db"
    shutil.copyfile(database_of(THREE[0]), path)
    for name in THREE[1:]:
        assert kiebitz("import", str(CAPTURES / name), "-w", str(path)).status == 0
    return path


@pytest.mark.full
def test_nothing_of_a_deleted_session_is_left(database: Path) -> None:
    assert kiebitz("sessions", str(database), "--rename", "1", "called so once").status == 0
    assert kiebitz("sessions", str(database), "--rename", "1", THREE[0]).status == 0
    others = {command: kiebitz(command, f"{database}:3", "--json").out for command in ("messages", "games")}
    with closing(sqlite3.connect(database)) as connection:
        of_session = f"SELECT data FROM chunks WHERE {SESSION_CONDITIONS['chunks']} AND length > 12"
        sent = [data for (data,) in connection.execute(of_session, (2,))]
    assert sent
    assert kiebitz("sessions", str(database), "--delete", "2", "--yes").status == 0
    with closing(sqlite3.connect(database)) as connection:
        for table in SESSION_CONDITIONS:
            rows = connection.execute(f"SELECT count(*) FROM {table} WHERE {SESSION_CONDITIONS[table]}", (2,))
            assert rows.fetchone() == (0,)
    held = b"".join(path.read_bytes() for path in database.parent.iterdir())
    assert [data for data in [*sent, b"okey", b"called so once"] if data in held] == []
    for command, out in others.items():
        assert kiebitz(command, f"{database}:3", "--json").out == out
    assert kiebitz("diff", f"{database}:3", ODD).status == 0


@pytest.mark.full
def test_a_database_being_recorded_is_left_alone(database: Path) -> None:
    recorder = Recorder(str(database), "relay", "made up", started_ns=1)
    try:
        for arguments in (["--delete", "1", "--yes"], ["--note", "1", "x"], ["--rename", "1", "x"]):
            done = kiebitz("sessions", str(database), *arguments)
            assert done.status == 1
            assert "another kiebitz is recording into it" in done.err
    finally:
        recorder.release()


def test_a_packed_copy_of_a_capture_is_the_same_traffic(tmp_path: Path) -> None:
    database, other = str(tmp_path / "game.db"), tmp_path / "another name.pcap.gz"
    shutil.copyfile(database_of(THREE[0]), database)
    other.write_bytes(gzip.compress(Path(TINY).read_bytes()))
    done = kiebitz("import", str(other), "-w", database)
    assert f"{other}: {database} already has this traffic as session 1;" in done.err
