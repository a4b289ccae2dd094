from __future__ import annotations

import ast
import os
import re
import signal
import socket
import sqlite3
import time
from contextlib import chdir, closing
from pathlib import Path

import pytest
from command import ROOT, TINY, kiebitz
from descendants import ended
from processes_and_rows import until
from recording_relays import CAPTURE, assert_sound, full, recorded, relaying, run, small_disk
from strength import a_few
from udp_relays import eventually

from kiebitz.dissectors.errors import KiebitzError
from kiebitz.dissectors.filters import FilterError
from kiebitz.proxy.journal.reader import JournalError
from kiebitz.storage.recording.disk_space import DiskNearlyFullError


def wait_until_gone(process: int) -> None:
    """Wait for the end of a process that is an orphan, and so a child of the tests."""
    until(lambda: ended(process), f"the end of process {process}")


@pytest.mark.full
def test_a_clean_end_closes_the_session(tmp_path: Path) -> None:
    database = tmp_path / "game.db"
    with relaying(database) as echo:
        echo.round_trip(b"REGISTER;alice")
        assert echo.stop() == 0
    assert_sound(database)
    assert recorded(database) == [b"REGISTER;alice"] * 2
    with closing(sqlite3.connect(database)) as connection:
        assert connection.execute("SELECT ended_ns > started_ns FROM sessions").fetchall() == [(1,)]
        assert connection.execute("SELECT close_reason FROM streams").fetchall() == [("end",)]
    assert [path.name for path in tmp_path.iterdir()] == ["game.db"]


@pytest.mark.full
def test_the_relay_is_killed(tmp_path: Path) -> None:
    database = tmp_path / "game.db"
    with relaying(database) as echo:
        recorder = echo.recorder()
        for number in range(50):
            echo.round_trip(b"%d" % number)
        time.sleep(0.2)
        echo.relay.kill()
        echo.wait_for("the relay has died")
        wait_until_gone(recorder)
    assert "Traceback" not in echo.said
    assert_sound(database)
    assert recorded(database) == [b"%d" % (number // 2) for number in range(100)]


@pytest.mark.full
def test_both_are_killed(tmp_path: Path) -> None:
    database = tmp_path / "game.db"
    with relaying(database) as echo:
        for number in range(50):
            echo.round_trip(b"%d" % number)
        time.sleep(0.3)
        echo.round_trip(b"too late to be promised")
        os.killpg(echo.relay.pid, signal.SIGKILL)
        echo.relay.wait()
        time.sleep(0.2)
    assert_sound(database)
    assert recorded(database)[:100] == [b"%d" % (number // 2) for number in range(100)]
    followed = run("messages", str(database), "-F", "--nl")
    assert followed.returncode == 0
    assert "the recording stopped without ending the session" in followed.stderr
    assert len(list(tmp_path.glob(".*spool*"))) == 1
    with relaying(database) as echo:
        assert echo.stop() == 0
    assert list(tmp_path.glob(".*spool*")) == []


@pytest.mark.full
def test_another_program_locks_the_database_for_a_while(tmp_path: Path) -> None:
    database = tmp_path / "game.db"
    with relaying(database) as echo:
        echo.round_trip(b"before")
        time.sleep(0.3)
        with closing(sqlite3.connect(database)) as other:
            other.execute("BEGIN IMMEDIATE")
            for number in range(50):
                echo.round_trip(b"%d" % number)
            echo.wait_for("another program is writing to it")
            other.rollback()
        echo.wait_for("the database can be written again")
        assert echo.stop() == 0
    assert "Traceback" not in echo.said
    assert recorded(database)[2:] == [b"%d" % (number // 2) for number in range(100)]


def assert_whole_but_for_gaps(database: Path, sent: list[bytes], from_then_on: int) -> None:
    said = b"".join(sent)
    safe = len(b"".join(sent[:from_then_on]))
    with closing(sqlite3.connect(database)) as connection:
        for direction in ("c2s", "s2c"):
            at, missing = 0, 0
            for offset, length, data in connection.execute(
                "SELECT offset, length, data FROM chunks WHERE direction = ? ORDER BY id", (direction,)
            ):
                assert offset == at
                assert data == said[offset : offset + length] if data is not None else at < safe
                missing += length if data is None else 0
                at += length
            assert at == len(said)
            assert 0 < missing <= safe


def missing_by_direction(database: Path) -> dict[str, int]:
    query = "SELECT direction, sum(length) FROM chunks WHERE data IS NULL GROUP BY direction"
    with closing(sqlite3.connect(database)) as connection:
        return dict(connection.execute(query).fetchall())


@pytest.mark.parametrize(
    ("first", "is_killed"),
    a_few(
        [
            (b"REGISTER;alice", False),
            (b"REGISTER;alice", True),
            (b"\x00no game", False),
            (b"\x00no game", True),
        ],
        [(b"REGISTER;alice", True)],
    ),
)
def test_the_disk_is_full_while_relaying(tmp_path: Path, first: bytes, is_killed: bool) -> None:
    with small_disk(tmp_path / "disk", "2m") as disk:
        database = disk / "game.db"
        sent = [first]
        with relaying(database) as echo:
            echo.round_trip(sent[0])
            eventually(lambda: len(recorded(database)) == 2)
            with full(disk):
                for number in range(40):
                    sent.append(b"%d" % number + b"x" * 10_000)
                    echo.round_trip(sent[-1])
                echo.wait_for("Traffic is forwarded but not recorded")
                if is_killed:
                    echo.kill_recorder()
            # The journal is retried after a tenth of a second, if it has new records.
            time.sleep(0.2)
            freed = len(sent)
            for number in range(40):
                sent.append(b"there is room again %d" % number)
                echo.round_trip(sent[-1])
            assert echo.stop() == 0
        assert "Traceback" not in echo.said
        assert "traffic is recorded from now on" in echo.said
        assert "nothing is missing" not in echo.said
        assert_sound(database)
        assert_whole_but_for_gaps(database, sent, freed)
        missing = missing_by_direction(database)
        total = sum(missing.values())
        ways = ", ".join(
            f"{length:,} of stream 1 {direction}" for direction, length in sorted(missing.items())
        )
        assert f"{total:,} bytes missing ({ways})" in echo.said
        (stream,) = kiebitz("streams", str(database), "--json").json
        assert {way: stream[f"missing_{way}"] for way in missing} == missing
        assert "missing c2s" in kiebitz("streams", str(database)).out
        told = kiebitz("check", str(database), "--json", "-Y", 'diag.code == "gap"')
        # As for a game's stream: no violation is reported.
        assert (told.status, {gap["severity"] for gap in told.json}) == (0, {"warning"})
        assert sum(gap["length"] for gap in told.json) == total


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (("import", str(CAPTURE), "-w", "/proc/game.db"), "/proc/game.db"),
        (("relay", "-m", "reverse:udp://127.0.0.1:9@127.0.0.1:TAKEN"), "TAKEN"),
        (("relay", "-m", "reverse:udp://no.such.host.invalid:9@0"), "no.such.host.invalid"),
        (("sniff", "-i", "nosuchif0"), "nosuchif0"),
        # Or that it lacks libpcap.
        (("sniff", "-i", "lo", "-f", "udp prt 9"), "capture filter"),
    ],
)
def test_what_the_system_refuses_gets_a_sentence(tmp_path: Path, call: tuple[str, ...], words: str) -> None:
    with closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as taken, chdir(tmp_path):
        taken.bind(("127.0.0.1", 0))
        port = str(taken.getsockname()[1])
        done = kiebitz(*(part.replace("TAKEN", port) for part in call))
    assert (done.status, done.out) == (1, "")
    assert words.replace("TAKEN", port) in done.err
    assert "Traceback" not in done.err
    assert not [path for path in tmp_path.iterdir() if path.suffix != ".db"]


ROOMS = ("cli", "dissectors", "proxy", "storage")


def test_each_error_has_the_one_base() -> None:
    classes = [
        node
        for room in ROOMS
        for page in (ROOT / room).rglob("*.py")
        if re.search(r"class \w+Error\b", source := page.read_text())
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ClassDef) and node.name.endswith("Error") and node.name != "KiebitzError"
    ]
    assert {"StorageError", "CaptureError", "FilterError"} <= {node.name for node in classes}
    for node in classes:
        bases = {ast.unparse(base) for base in node.bases}
        assert "Exception" not in bases, node.name


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (KiebitzError("it is so"), 1),
        (DiskNearlyFullError("it is so"), 1),
        (JournalError("it is so"), 1),
        (FilterError("it is so", "a == 1", 0), 2),
    ],
    ids=lambda value: type(value).__name__,
)
def test_it_is_reported_in_its_own_words(
    error: KiebitzError, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("kiebitz.cli.commands.state.open_session_as", fails)
    done = kiebitz("state", TINY)
    assert done.status == status
    assert done.err.splitlines() == ["kiebitz: it is so", *error.excerpt()]


def test_any_other_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> None:
        raise RuntimeError("it is so")

    monkeypatch.setattr("kiebitz.cli.commands.state.open_session_as", fails)
    done = kiebitz("state", TINY)
    assert done.status == 1
    assert "internal error of Kiebitz: RuntimeError('it is so')" in done.err
