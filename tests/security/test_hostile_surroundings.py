"""Databases in hostile surroundings, or that change; see also tests/data/commands/foreign_databases.txt."""

from __future__ import annotations

import os
import shutil
import sqlite3
import struct
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest
from command import ODD, ROOT, kiebitz
from damaged_databases import READING, small_database, writing
from processes_and_rows import KIEBITZ, PATIENCE_S, free_port, kill_all, running, until
from strength import times

IS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")


def commands(path: str) -> list[list[str]]:
    reading = [[command[0], path, *command[1:]] for command in READING]
    return [*reading, *writing(path), ["redissect", path], ["import", path, "-w", f"{path}.new"]]


@pytest.fixture
def game(tmp_path: Path) -> Path:
    return Path(shutil.copy(small_database(), tmp_path / "game.db"))


def super_journal(game: Path, victim: Path) -> bytes:
    """A journal that is to be rolled back and then has SQLite delete `victim`; see its file format, 3.

    It changes nothing of the database.
    """
    sector, page = 512, 4096
    head = struct.pack(
        ">8sIIIII", bytes.fromhex("d9d505f920a163d7"), 0, 1, game.stat().st_size // page, sector, page
    )
    name = bytes(victim)
    # The page in which locks are has the name of the super-journal.
    tail = struct.pack(">I", 0x40000000 // page + 1) + name
    tail += struct.pack(">II8s", len(name), sum(name), bytes.fromhex("d9d505f920a163d7"))
    return head.ljust(sector, b"\0") + tail


@pytest.mark.full
def test_no_command_deletes_what_a_journal_names(game: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim.txt"
    victim.write_text("all my work")
    journal = Path(f"{game}-journal")
    journal.write_bytes(super_journal(game, victim))
    for command in commands(str(game)):
        done = kiebitz(*command)
        assert (done.status, done.out) == (1, ""), command
        assert f"SQLite would delete the file that this names, {victim}: move it away" in done.err
        assert victim.read_text() == "all my work"
    assert journal.exists()
    # The bait works; newer versions of SQLite leave it.
    with closing(sqlite3.connect(game)) as connection:
        connection.execute("SELECT count(*) FROM chunks").fetchone()
    assert not victim.exists() or sqlite3.sqlite_version_info > (3, 50)


@pytest.mark.full
def test_reading_leaves_a_folder_as_it_was(game: Path, tmp_path: Path) -> None:
    before = game.read_bytes(), game.stat().st_mtime_ns
    for command in READING:
        assert kiebitz(command[0], str(game), *command[1:]).status in (0, 3)
    assert (game.read_bytes(), game.stat().st_mtime_ns) == before
    assert [path.name for path in tmp_path.iterdir()] == ["game.db"]


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    subprocess.run(["mount", "--bind", folder, folder], check=True)
    try:
        subprocess.run(["mount", "-o", "remount,ro,bind", folder], check=True)
        yield
    finally:
        subprocess.run(["umount", folder], check=True)


@pytest.mark.full
@IS_ROOT
@pytest.mark.parametrize("log", ["none", "empty", "some"])
def test_where_nothing_may_be_written(log: str, game: Path, tmp_path: Path) -> None:
    """A closed database is readable there; one with a log leads to an error with advice."""
    with suppress(FileNotFoundError), closing(sqlite3.connect(game)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("UPDATE sessions SET name = 'in the log'")
        connection.commit()
        if log == "some":
            for suffix in ("", "-wal"):
                shutil.copy(f"{game}{suffix}", tmp_path / f"copy.db{suffix}")
    if log == "some":
        for suffix in ("", "-wal"):
            os.replace(tmp_path / f"copy.db{suffix}", f"{game}{suffix}")
    elif log == "empty":
        Path(f"{game}-wal").touch()
    with read_only(tmp_path):
        # Not in this process, which may have files open there.
        command = [*KIEBITZ, "sessions", str(game)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=ROOT)
    if log == "some":
        assert done.returncode == 1
        assert "part of it is in" in done.stderr
        assert "copy both" in done.stderr
    else:
        assert done.returncode == 0, done.stderr
        assert "in the log" in done.stdout


@pytest.mark.full
def test_a_database_that_changes_while_it_is_read(game: Path) -> None:
    """Whatever is recorded, redissected or removed meanwhile: an answer, or an error."""
    rounds = " ".join(map(str, range(times(2, quick=1))))
    changing = subprocess.Popen(
        [
            "sh",
            "-c",
            f'for i in {rounds}; do "$@" import {ODD} -w {game}; "$@" redissect {game}; done',
            "sh",
            *KIEBITZ,
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        cwd=ROOT,
    )
    try:
        while changing.poll() is None:
            done = kiebitz("events", f"{game}:1", "--json")
            assert done.status == 0, done.err
            assert done.json[0]["kind"]
            assert kiebitz("export", f"{game}:1", "-T", "jsonl").status == 0
        assert changing.returncode == 0, changing.stderr and changing.stderr.read()
    finally:
        kill_all(changing)


@pytest.mark.full
@pytest.mark.parametrize(
    "new",
    [b"", b"SQLite format 3\0" + bytes(5000), os.urandom(100_000)],
    ids=["empty", "a header and zeros", "random"],
)
def test_a_database_that_is_written_over_while_it_is_followed(new: bytes, game: Path) -> None:
    with closing(sqlite3.connect(game)) as connection, connection:
        connection.execute("UPDATE sessions SET ended_ns = NULL")
    following = subprocess.Popen(
        [*KIEBITZ, "messages", str(game), "-F", "--nl"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        cwd=ROOT,
    )
    try:
        assert following.stdout is not None
        assert following.stderr is not None
        assert following.stdout.readline().startswith("{")
        game.write_bytes(new)
        assert following.wait(PATIENCE_S * 2) == 1
        said = following.stderr.read()
        assert said.startswith("kiebitz: ")
        assert "error of Kiebitz" not in said
        following.stdout.close()
    finally:
        kill_all(following)


@pytest.mark.full
def test_the_recorder_leaves_one_file(tmp_path: Path) -> None:
    game = tmp_path / "game.db"
    mode = f"reverse:udp://127.0.0.1:{free_port('udp')}@0"
    with running(*KIEBITZ, "relay", "-m", mode, "-w", str(game), ready="listening on") as relay:
        until(lambda: Path(f"{game}-wal").exists(), "it records into a log")
        # A reader that stays does not keep what is recorded from the file.
        with closing(sqlite3.connect(f"file:{game}?mode=ro", uri=True)) as reader:
            until(lambda: bool(_sessions(reader)), "there is a session")
            relay.terminate()
            assert relay.wait(PATIENCE_S) == 0
            wal = Path(f"{game}-wal")
            assert not wal.exists() or wal.stat().st_size == 0
    assert len(kiebitz("sessions", str(game), "--json").json) == 1


def _sessions(connection: sqlite3.Connection) -> list[tuple[int]]:
    with suppress(sqlite3.Error):
        return connection.execute("SELECT id FROM sessions").fetchall()
    return []
