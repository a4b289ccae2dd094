"""An import with two processes: the same rows as with one, and what happens when one of them is stopped."""

from __future__ import annotations

import os
import signal
import sqlite3
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from command import CAPTURES
from processes_and_rows import KIEBITZ, child_of, rows, until
from strength import a_few

from kiebitz.dissectors.registry import dissector_of
from kiebitz.services.importing import packets as importing
from kiebitz.services.importing.packets import import_capture
from kiebitz.storage.database.schema import TABLES, create_indexes
from kiebitz.storage.recording import recorder

GAMES = [
    "catan-niedlichepixel-game2-3p.pcap.gz",
    "cgml-hands.pcap.gz",
    "maexchen-old-20111003.pcap",
    "okey-head-game-win.pcap.gz",
    "schafkopf-1.3-badcard.pcap",
]
FILE_HEADER = 24
A_TRANSACTION = 500_000
"""Bytes of the database that only rows can take."""


def is_running(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.fixture
def long_capture(tmp_path: Path) -> Path:
    once = Path(CAPTURES, "maexchen-old-20111003.pcap").read_bytes()
    path = tmp_path / "long.pcap"
    path.write_bytes(once[:FILE_HEADER] + once[FILE_HEADER:] * 40)
    assert path.stat().st_size > importing.MIN_SIZE_FOR_PROCESS
    return path


@contextmanager
def importing_process(capture: Path, database: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Yield the command, once it has written something, and the process id of its inspector."""
    process = subprocess.Popen(
        [*KIEBITZ, "import", str(capture), "-w", str(database), "--jobs", "2"],
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        log = database.with_name(f"{database.name}-wal")
        until(lambda: log.exists() and log.stat().st_size > A_TRANSACTION, "rows are written")
        inspector = child_of(process.pid)
        yield process, inspector
    finally:
        process.kill()
        process.wait()
        assert process.stderr is not None
        process.stderr.close()
    until(lambda: not is_running(inspector), "the inspector ends")


@pytest.mark.full
@pytest.mark.parametrize("name", a_few(GAMES, GAMES[:1]))
def test_two_processes_give_the_rows_of_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    capture = str(Path(CAPTURES, name))
    databases = [tmp_path / "one.db", tmp_path / "two.db"]
    monkeypatch.setattr(importing, "MIN_SIZE_FOR_PROCESS", 0)
    for jobs, database in enumerate(databases, 1):
        # A second session's numbers continue those of the first.
        for _ in range(2):
            import_capture(capture, str(database), {}, lambda done, size: None, jobs=jobs)
    for table in TABLES:
        of_one, of_two = (rows(database, f"SELECT * FROM {table}") for database in databases)
        assert of_two == of_one, table
    assert len(rows(databases[0], "SELECT DISTINCT session_id FROM events")) == 2


def test_the_disk_has_no_room_for_indexes_until_all_rows_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importing, "MIN_SIZE_FOR_PROCESS", 0)
    outcomes = iter([sqlite3.OperationalError("database or disk is full"), None])

    def create(connection: sqlite3.Connection) -> None:
        outcome = next(outcomes)
        if outcome is not None:
            raise outcome
        create_indexes(connection)

    monkeypatch.setattr(recorder, "create_indexes", create)
    database = tmp_path / "game.db"
    import_capture(str(Path(CAPTURES, "maexchen-head-tiny.pcap")), str(database), {}, lambda done, size: None)
    assert next(outcomes, "made") == "made"
    assert rows(database, "SELECT count(*) FROM messages") == [(69,)]
    assert rows(database, "SELECT name FROM sqlite_master WHERE name = 'idx_messages_name'") != []


def test_a_port_is_said_to_be_a_protocol_s(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importing, "MIN_SIZE_FOR_PROCESS", 0)
    capture = tmp_path / "odd.pcap"
    odd = b"NO MESSAGE OF ANY GAME"
    udp = struct.pack(">HHHH", 5555, 4444, 8 + len(odd), 0) + odd
    ip = struct.pack(">BBHIBBH4s4s", 0x45, 0, 20 + len(udp), 0, 64, 17, 0, b"\x7f\0\0\1", b"\x7f\0\0\1")
    header = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101)
    capture.write_bytes(header + struct.pack("<IIII", 1, 0, 20 + len(udp), 20 + len(udp)) + ip + udp)
    maexchen = dissector_of("maexchen")
    assert maexchen is not None
    for forced, protocol in (({}, None), ({("udp", 4444): maexchen}, "maexchen")):
        database = tmp_path / f"{protocol}.db"
        import_capture(str(capture), str(database), forced, lambda done, size: None)
        assert rows(database, "SELECT protocol FROM streams") == [(protocol,)]


@pytest.mark.full
def test_the_inspector_is_killed(tmp_path: Path, long_capture: Path) -> None:
    database = tmp_path / "game.db"
    with importing_process(long_capture, database) as (process, inspector):
        os.kill(inspector, signal.SIGKILL)
        _, said = process.communicate(timeout=20)
    assert process.returncode == 1
    assert said.strip().startswith("kiebitz: the inspecting process has died")
    assert "Traceback" not in said
    assert rows(database, "SELECT count(*) FROM messages") != [(0,)]


@pytest.mark.full
def test_the_import_is_killed(tmp_path: Path, long_capture: Path) -> None:
    database = tmp_path / "game.db"
    with importing_process(long_capture, database) as (process, _):
        process.kill()
        _, said = process.communicate(timeout=20)
    assert said == ""
    assert rows(database, "SELECT ended_ns FROM sessions") == [(None,)]
