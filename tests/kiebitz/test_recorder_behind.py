from __future__ import annotations

import json
import os
import shlex
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from command import ROOT, TINY, kiebitz
from load_on_relays import wait_until_all_are_gone
from processes_and_rows import KIEBITZ, PATIENCE_S, child_of, free_port, kill_all, rows, until
from recording_relays import recorded, relaying
from rotating_relays import Relay
from strength import a_few

MANY = 12_000
"""Datagrams: more than a recorder takes at once."""

AT_ONCE = 20

SAID = b"REGISTER;alice"


class Stopped(Relay):
    """A relay whose recorder is stopped before many datagrams are forwarded."""

    def __init__(self, folder: Path) -> None:
        self.database = folder / "game.db"
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
            server.bind(("127.0.0.1", 0))
            server.settimeout(PATIENCE_S)
            super().__init__("udp", server.getsockname()[1], self.database)
            self.recorder = child_of(self.process.pid)
            os.kill(self.recorder, signal.SIGSTOP)
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
                client.connect(("127.0.0.1", self.port))
                for _ in range(MANY // AT_ONCE):
                    for _ in range(AT_ONCE):
                        client.send(SAID)
                    for _ in range(AT_ONCE):
                        server.recv(100)

    def interrupt(self) -> None:
        self.process.send_signal(signal.SIGINT)

    def go_on(self) -> None:
        os.kill(self.recorder, signal.SIGCONT)

    def interrupt_twice(self) -> Path:
        """Return the folder in which the rest is kept."""
        self.interrupt()
        until(lambda: _waits(self.process.pid), "it waits for its recorder")
        # Sooner it would be the same one.
        time.sleep(1.5)
        self.interrupt()
        assert self.process.wait(PATIENCE_S) == 130
        self.wait_for(" records it")
        sentence = next(line for line in self.said.splitlines() if "interrupted: " in line)
        command = shlex.split(sentence.partition("; kiebitz ")[2].removesuffix(" records it"))
        assert command[0] == "import"
        return Path(command[1])

    def recorded(self) -> int:
        ((count,),) = rows(self.database, "SELECT count(*) FROM chunks WHERE data IS NOT NULL")
        return int(count)


@pytest.fixture
def stopped(tmp_path: Path) -> Iterator[Stopped]:
    relay = Stopped(tmp_path)
    try:
        yield relay
    finally:
        kill_all(relay.process)


def _waits(process: int) -> bool:
    return str(process) not in subprocess.run(["ss", "-unap"], capture_output=True, text=True).stdout


def left_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.full
def test_a_recorder_that_is_behind_reports_it(stopped: Stopped) -> None:
    # What came last has to be so old.
    time.sleep(4)
    stopped.go_on()
    stopped.wait_for("s behind: about")
    stopped.wait_for("the recorder has caught up")
    stopped.interrupt()
    assert stopped.process.wait(PATIENCE_S) == 0
    assert stopped.recorded() == MANY


@pytest.mark.full
def test_ctrl_c_reports_the_rest(stopped: Stopped, tmp_path: Path) -> None:
    stopped.interrupt()
    until(lambda: _waits(stopped.process.pid), "it waits for its recorder")
    stopped.go_on()
    assert stopped.process.wait(3 * PATIENCE_S) == 0
    assert "messages are left to be recorded; Ctrl-C postpones it" in stopped.said
    assert stopped.recorded() == MANY
    assert left_in(tmp_path) == ["game.db"]


@pytest.mark.full
def test_a_second_ctrl_c_puts_it_off(stopped: Stopped, tmp_path: Path) -> None:
    folder = stopped.interrupt_twice()
    assert stopped.recorded() < MANY
    # Nothing else goes into the database before.
    done = kiebitz("import", TINY, "-w", str(stopped.database))
    assert done.status == 1
    assert f"kiebitz import {folder} recovers it" in done.err
    carried_on = subprocess.run(
        [*KIEBITZ, "import", str(folder)], capture_output=True, text=True, cwd=ROOT, timeout=60
    )
    assert carried_on.returncode == 0, carried_on.stderr
    assert stopped.recorded() == MANY
    assert rows(stopped.database, "SELECT count(*), ended_ns IS NULL FROM sessions") == [(1, 0)]
    assert left_in(tmp_path) == ["game.db"]


@pytest.mark.full
def test_a_signal_that_comes_twice_at_once_is_one(tmp_path: Path) -> None:
    mode = f"reverse:udp://127.0.0.1:9@127.0.0.1:{free_port('udp')}"
    relay = [*KIEBITZ, "relay", "-m", mode, "-w", str(tmp_path / "game.db"), "-q"]
    process = subprocess.Popen(relay, stderr=subprocess.PIPE, start_new_session=True)
    with process:
        assert process.stderr is not None
        assert any(b"listening on" in line for line in process.stderr)
        # As timeout does it: its child, and then the group that both are in.
        os.kill(process.pid, signal.SIGINT)
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(PATIENCE_S) == 0
    assert left_in(tmp_path) == ["game.db"]


def test_forwarded_data_is_unchanged_and_recorded_data_anonymous(tmp_path: Path) -> None:
    database = tmp_path / "game.db"
    with relaying(database, {}, "--anonymize") as echo:
        # Each comes back as it was sent.
        echo.round_trip(b"REGISTER;alice")
        echo.round_trip(b"HELLO;alice and bob\n")
        assert echo.stop() == 0
    there, back, *others = recorded(database)
    assert there == back
    assert there.startswith(b"REGISTER;")
    assert there[len(b"REGISTER;") :] in others[0]
    for path in tmp_path.iterdir():
        assert b"alice" not in path.read_bytes()
    ((name, fields),) = rows(database, "SELECT name, fields FROM messages LIMIT 1")
    assert (name, json.loads(fields)["name"].encode()) == ("REGISTER", there[len(b"REGISTER;") :])
    assert rows(database, "SELECT name, source FROM sessions") == [("anonymized 1", "anonymized")]


@pytest.mark.parametrize(
    "ending", a_few(["recorder killed", "both killed", "ended at once"], ["both killed"])
)
@pytest.mark.full
def test_recovered_data_is_anonymized(ending: str, tmp_path: Path) -> None:
    """In a session of its own: the recorder's pseudonyms are lost with its process."""
    database = tmp_path / "game.db"
    with relaying(database, {}, "--anonymize") as echo:
        echo.round_trip(b"REGISTER;alice")
        until(lambda: len(recorded(database)) == 2, "it is recorded")
        os.kill(echo.recorder(), signal.SIGSTOP)
        echo.round_trip(b"REGISTER;alice2")
        # It is in the journal.
        time.sleep(0.2)
        if ending == "recorder killed":
            os.kill(echo.recorder(), signal.SIGKILL)
            echo.wait_for("nothing more is recorded")
            # It continues.
            echo.round_trip(b"REGISTER;bob")
            assert echo.stop() == 1
        elif ending == "both killed":
            os.killpg(echo.relay.pid, signal.SIGKILL)
        else:
            echo.relay.send_signal(signal.SIGINT)
            time.sleep(1.5)
            echo.relay.send_signal(signal.SIGINT)
            echo.wait_for("is kept with the real names in")
            echo.relay.wait(PATIENCE_S)
    wait_until_all_are_gone(tmp_path)
    (folder,) = tmp_path.glob(".*-spool-*")
    assert f"kiebitz import {folder}" in kiebitz("sessions", str(database)).err
    assert kiebitz("import", str(folder)).status == 0
    assert [path.name for path in tmp_path.iterdir()] == ["game.db"]
    assert b"alice" not in database.read_bytes()
    assert [len(data) for data in recorded(database) if data] == [14, 14, 15, 15]
    assert rows(database, "SELECT name, source, ended_ns >= started_ns FROM sessions") == [
        ("anonymized 1", "anonymized", 1),
        ("anonymized 2", "anonymized", 1),
    ]
