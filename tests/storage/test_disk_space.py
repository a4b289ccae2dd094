"""A limit on what is recorded, and what of a disk is left to others: what came until then is whole."""

from __future__ import annotations

import gzip
import os
import sqlite3
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path

import pytest
from command import kiebitz, spawn
from processes_and_rows import PATIENCE_S, rows
from recording_relays import CAPTURE, assert_sound, recorded, relaying, run, small_disk
from udp_relays import eventually

from kiebitz.storage.recording import disk_space as room
from kiebitz.storage.recording.disk_space import (
    DiskNearlyFullError,
    check_reserve,
    has_journal_space,
    size_text,
)

MOST = 10_000_000
"""10 MB in bytes."""
SLACK = 4_000_000


def files(folder: Path) -> int:
    size = 0
    for path in folder.rglob("*"):
        # A journal of SQLite's is gone in a moment.
        with suppress(FileNotFoundError):
            size += path.stat().st_size if path.is_file() else 0
    return size


def assert_ended(database: Path) -> None:
    """The session is whole, up to its end."""
    assert_sound(database)
    assert rows(database, "SELECT count(*) FROM sessions WHERE ended_ns IS NULL") == [(0,)]
    ends = "sum(length) OVER (PARTITION BY stream_id, direction ORDER BY id)"
    chunks = rows(database, f"SELECT offset + length, {ends} FROM chunks")
    assert [end for end, expected in chunks if end != expected] == []
    assert kiebitz("messages", str(database), "--nl").status == 0


@pytest.mark.parametrize(
    "rotating", [pytest.param(False, marks=pytest.mark.full), True], ids=["one database", "-b"]
)
@pytest.mark.full
def test_a_relay_records_no_more_than_it_is_reported_and_forwards_on(tmp_path: Path, rotating: bool) -> None:
    options = ("--max-size", "10MB", *(("-b", "filesize:3000") if rotating else ()))
    most = 0
    with relaying(tmp_path / "game.db", {}, *options) as echo:
        for number in range(200):
            # Slowly enough that the recorder keeps up.
            echo.round_trip(b"%d" % number + b"x" * 60_000)
            most = max(most, files(tmp_path))
            if number % 20 == 19:
                time.sleep(0.2)
        echo.wait_for("--max-size 10 MB is reached: allow more, or use another database")
        before = files(tmp_path)
        for number in range(100):
            echo.round_trip(b"%d" % number + b"y" * 60_000)
        assert files(tmp_path) == before
        assert echo.stop() == 1
    assert "the recorder has died" not in echo.said
    assert "Traceback" not in echo.said
    # A log of what is being committed comes on top for a moment.
    assert most < 2 * MOST + SLACK
    assert MOST / 4 < before < MOST + SLACK
    databases = sorted(tmp_path.iterdir())
    assert [path.suffix for path in databases] == [".db"] * (len(databases) if rotating else 1)
    assert (len(databases) > 1) == rotating
    for path in databases:
        assert_sound(path)
    if not rotating:
        assert_ended(databases[0])
        said = recorded(databases[0])
        assert said == [b"%d" % (at // 2) + b"x" * 60_000 for at in range(len(said))]


@pytest.mark.full
def test_a_flood_is_recorded_as_far_as_there_is_room(tmp_path: Path) -> None:
    """The client sends as fast as possible, without waiting."""
    with relaying(tmp_path / "game.db", {}, "--max-size", "20MB") as echo, ThreadPoolExecutor() as threads:
        is_reached = threading.Event()

        def flood() -> None:
            # The system drops most of them, as no reader is fast enough.
            for _ in range(100_000):
                echo.client.sendto(b"x" * 50_000, ("127.0.0.1", echo.port))
                if is_reached.is_set():
                    return

        flooding = threads.submit(flood)
        try:
            echo.wait_for("--max-size 20 MB is reached")
        finally:
            is_reached.set()
        flooding.result()
        eventually(lambda: files(tmp_path) < 20_000_000 + 2 * SLACK)
        eventually(lambda: [path.suffix for path in tmp_path.iterdir() if path.is_file()] == [".db"])
        echo.server.setblocking(False)
        with suppress(BlockingIOError):
            while echo.server.recv(65_535):
                pass
        echo.server.settimeout(PATIENCE_S)
        echo.round_trip(b"somebody still plays")
        assert echo.stop() == 1
    assert_ended(tmp_path / "game.db")


_BOMB_PAYLOAD = 60


def bomb() -> bytes:
    """Return a small file that unpacks to a big capture: one datagram, once a second, 150,000 times."""
    capture = CAPTURE.read_bytes()
    begin = int.from_bytes(capture[24:28], "little")
    # The Ethernet, IP and UDP headers of the first packet, with the lengths of a longer one.
    ethernet, ip, udp = bytearray(capture[40:54]), bytearray(capture[54:74]), bytearray(capture[74:82])
    ip[2:4] = (28 + _BOMB_PAYLOAD).to_bytes(2)
    udp[4:8] = (8 + _BOMB_PAYLOAD).to_bytes(2) + bytes(2)
    packet = bytes(ethernet + ip + udp) + bytes(_BOMB_PAYLOAD)
    size = len(packet).to_bytes(4, "little") * 2
    records = ((begin + second).to_bytes(4, "little") + bytes(4) + size + packet for second in range(150_000))
    return gzip.compress(capture[:24] + b"".join(records))


@pytest.mark.full
def test_an_import_keeps_what_was_read_until_there_was_no_more_room(tmp_path: Path) -> None:
    file, database = tmp_path / "bomb.pcap.gz", tmp_path / "game.db"
    file.write_bytes(bomb())
    assert file.stat().st_size < 1_000_000
    done = run("import", str(file), "-w", str(database), "--max-size", "10MB")
    assert done.returncode == 1
    assert "--max-size 10 MB is reached" in done.stderr
    assert "everything read so far is kept" in done.stderr
    assert MOST / 2 < database.stat().st_size < MOST + SLACK
    assert_ended(database)
    # What is there already counts.
    again = run("import", str(CAPTURE), str(CAPTURE), "-w", str(database), "--max-size", "10MB")
    assert again.returncode in (0, 1)
    assert database.stat().st_size < MOST + SLACK


@pytest.mark.full
def test_a_large_import_in_two_processes_has_the_same_limit(tmp_path: Path) -> None:
    file, database = tmp_path / "large.pcap", tmp_path / "game.db"
    file.write_bytes(gzip.decompress(bomb()))
    done = run("import", str(file), "-w", str(database), "--max-size", "10MB")
    assert done.returncode == 1
    assert database.stat().st_size < MOST + 2 * SLACK
    assert_ended(database)


@pytest.mark.full
def test_a_sniff_through_a_pipe_ends_there(tmp_path: Path) -> None:
    database = tmp_path / "game.db"
    with spawn(
        "sniff", "-q", "-i", "-", "-w", str(database), "--max-size", "10MB", stdin=subprocess.PIPE
    ) as sniff:
        _, said = sniff.communicate(gzip.decompress(bomb()), timeout=60)
    assert sniff.returncode == 1
    assert b"--max-size 10 MB is reached" in said
    assert b"Traceback" not in said
    assert database.stat().st_size < MOST + SLACK
    assert_ended(database)


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 bytes"), (999, "999 bytes"), (1500, "1.5 kB"), (2 * 10**9, "2 GB"), (10**16, "1e+04 TB")],
)
def test_a_size_in_words(size: int, text: str) -> None:
    assert size_text(size) == text


# What of a disk is left to others.


def leave(disk: Path, free: int) -> Path:
    ballast = disk / "ballast"
    state = os.statvfs(disk)
    ballast.write_bytes(b"x" * (state.f_bavail * state.f_frsize - free))
    return ballast


def test_a_part_of_a_small_disk_and_a_gigabyte_of_a_large_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with small_disk(tmp_path / "disk", "4m") as disk:
        database = str(disk / "game.db")
        ballast = leave(disk, 300_000)
        check_reserve(database)
        assert has_journal_space(database)
        ballast.unlink()
        leave(disk, 100_000)
        with pytest.raises(DiskNearlyFullError, match="and 210 kB are reserved"):
            check_reserve(database)
        assert not has_journal_space(database)
        monkeypatch.setattr(room, "RESERVE_BYTES", 80_000)
        check_reserve(database)


@pytest.mark.full
def test_an_import_leaves_some_of_the_disk(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "8m") as disk:
        database = disk / "game.db"
        (tmp_path / "bomb.pcap.gz").write_bytes(bomb())
        done = run("import", str(tmp_path / "bomb.pcap.gz"), "-w", str(database))
        assert done.returncode == 1
        assert "the disk is nearly full" in done.stderr or "the disk is full" in done.stderr
        assert_sound(database)


@pytest.mark.full
def test_a_relay_waits_while_the_disk_is_low_and_continues(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "40m") as disk:
        database = disk / "game.db"
        sent = [b"REGISTER;alice"]
        with relaying(database) as echo:
            echo.round_trip(sent[0])
            eventually(lambda: len(recorded(database)) == 2)
            ballast = leave(disk, 1_500_000)
            for number in range(20):
                sent.append(b"%d" % number)
                echo.round_trip(sent[-1])
            echo.wait_for("are reserved")
            assert len(recorded(database)) == 2
            ballast.unlink()
            echo.wait_for("the database can be written again")
            assert echo.stop() == 0
        assert recorded(database) == [data for data in sent for _ in range(2)]


@pytest.mark.full
def test_a_relay_that_ends_while_the_disk_is_low_keeps_the_rest(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "40m") as disk:
        database = disk / "game.db"
        with relaying(database) as echo:
            echo.round_trip(b"REGISTER;alice")
            eventually(lambda: len(recorded(database)) == 2)
            ballast = leave(disk, 1_500_000)
            echo.round_trip(b"LATER")
            echo.wait_for("are reserved")
            assert echo.stop() == 1
        assert "stopped retrying" in echo.said
        assert recorded(database) == [b"REGISTER;alice"] * 2
        ballast.unlink()
        (folder,) = disk.glob(".*-spool-*")
        assert f"kiebitz import {folder} records it" in echo.said
        assert kiebitz("import", str(folder)).status == 0
        assert recorded(database) == [b"REGISTER;alice"] * 2 + [b"LATER"] * 2
        with closing(sqlite3.connect(database)) as connection:
            ended = connection.execute("SELECT ended_ns IS NOT NULL FROM sessions").fetchall()
        assert ended == [(1,)]
        assert [path.name for path in disk.iterdir()] == ["game.db"]


@pytest.mark.full
def test_a_journal_leaves_some_of_the_disk(tmp_path: Path) -> None:
    """While another program keeps the database locked, all goes to the journal."""
    with small_disk(tmp_path / "disk", "60m") as disk:
        database = disk / "game.db"
        with relaying(database) as echo:
            echo.round_trip(b"REGISTER;alice")
            eventually(lambda: len(recorded(database)) == 2)
            with closing(sqlite3.connect(database)) as other:
                other.execute("BEGIN IMMEDIATE")
                for number in range(600):
                    echo.round_trip(b"%d" % number + b"x" * 60_000)
                echo.wait_for("Traffic is forwarded but not recorded")
                state = os.statvfs(disk)
                # Half of a twentieth, but for what was flushed at once.
                assert state.f_bavail * state.f_frsize > 1_200_000
                # The relay itself continues.
                echo.round_trip(b"somebody still plays")
        assert_sound(database)
