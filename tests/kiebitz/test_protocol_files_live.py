"""Protocol files in live recordings and in all processes that a command starts."""

from __future__ import annotations

import os
import signal
import socket
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from command import kiebitz
from dice_file import DICE, OTHER, SENTENCES, TALK, capture_game, write_file
from processes_and_rows import KIEBITZ, PATIENCE_S, child_of, rows, until
from rotating_relays import Relay
from rotating_relays import relaying as plain_relay
from served_pages import Serving, serving

from kiebitz.dissectors.model import Direction

pytestmark = pytest.mark.usefixtures("protocol_files_forgotten")


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> str:
    return capture_game(tmp_path_factory.mktemp("capture"))


class Table:
    """The game of `dice_file`, spoken through a relay by clients and a server."""

    def __init__(self, relay: int, listener: socket.socket) -> None:
        self._relay = relay
        self._listener = listener
        self._ends: dict[str, dict[Direction, socket.socket]] = {}

    def play(self, *alike: bytes) -> None:
        """Speak all messages; those that are `alike` may be changed on their way."""
        for name, direction, data in TALK:
            if name not in self._ends:
                client = socket.create_connection(("127.0.0.1", self._relay), PATIENCE_S)
                server, _ = self._listener.accept()
                server.settimeout(PATIENCE_S)
                self._ends[name] = {"c2s": client, "s2c": server}
            ends = self._ends[name]
            ends[direction].sendall(data)
            other = ends["s2c" if direction == "c2s" else "c2s"]
            found = b""
            while not found.endswith(b"\n"):
                found += other.recv(100)
            assert found == data or data in alike

    def close(self) -> None:
        for ends in self._ends.values():
            for end in ends.values():
                end.close()


@contextmanager
def relaying(database: Path, *options: str) -> Iterator[tuple[Table, Relay]]:
    """Yield a table, and the relay in front of it, which has ended after the block."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(PATIENCE_S)
        with plain_relay("tcp", listener.getsockname()[1], database, *options) as relay:
            table = Table(relay.port, listener)
            try:
                yield table, relay
            finally:
                table.close()
            assert relay.process.poll() is not None or relay.stop() == 0, relay.said


def sentences(database: Path) -> list[str]:
    done = kiebitz("events", str(database), "-Y", "kind != 'connected'", "--json")
    assert done.status == 0, done.err
    found = [event["sentence"] for event in done.json]
    return [sentence for sentence in found if "leaves" not in sentence and "disconnect" not in sentence]


@pytest.mark.full
def test_a_relay_knows_a_protocol_file(tmp_path: Path) -> None:
    database = tmp_path / "relay.db"
    with relaying(database, "-P", write_file(tmp_path)) as (table, _):
        table.play()
        # Another program reads it meanwhile, without the file.
        until(lambda: len(sentences(database)) == 4, "all is recorded")
    assert sentences(database) == SENTENCES
    assert rows(database, "SELECT name, text FROM protocol_files") == [("dice", DICE)]


@pytest.mark.full
def test_a_relay_changes_messages_of_a_protocol_file(tmp_path: Path) -> None:
    database = tmp_path / "altered.db"
    change = ("--change", "msg == 'ROLLED' && dice.pips == 5", "pips=6")
    with relaying(database, "-P", write_file(tmp_path), *change) as (table, _):
        table.play(b"ROLLED alice 5\n")
    assert sentences(database)[2] == "alice rolls 6"


@pytest.mark.full
def test_a_hook_knows_a_protocol_file(tmp_path: Path) -> None:
    database, hook = tmp_path / "hooked.db", tmp_path / "hook.py"
    hook.write_text(
        "def message(message, table):\n"
        "    return message.but(pips=1) if message.fields.get('pips') == 5 else message\n"
    )
    with relaying(database, "-P", write_file(tmp_path), "-s", str(hook)) as (table, _):
        table.play(b"ROLLED alice 5\n")
    assert sentences(database)[2] == "alice rolls 1"


@pytest.mark.full
def test_a_restarted_recorder_knows_a_protocol_file(tmp_path: Path) -> None:
    database = tmp_path / "restarted.db"
    with relaying(database, "-P", write_file(tmp_path)) as (table, relay):
        os.kill(child_of(relay.process.pid), signal.SIGKILL)
        table.play()
    assert sentences(database) == SENTENCES


@pytest.mark.full
def test_a_recovered_recording_needs_no_protocol_file(tmp_path: Path) -> None:
    database = tmp_path / "killed.db"
    file = Path(write_file(tmp_path))
    with relaying(database, "-P", str(file)) as (table, relay):
        os.kill(child_of(relay.process.pid), signal.SIGSTOP)
        table.play()
        time.sleep(0.5)
        os.killpg(relay.process.pid, signal.SIGKILL)
        relay.process.wait()
    file.unlink()
    assert kiebitz("import", *map(str, tmp_path.glob(".killed.db-*"))).status == 0
    assert sentences(database) == SENTENCES


@pytest.mark.full
def test_a_rotated_recording_has_the_file_in_each_database(tmp_path: Path) -> None:
    database = tmp_path / "rotated.db"
    with relaying(database, "-P", write_file(tmp_path), "-b", "duration:1") as (table, _):
        for _ in range(3):
            table.play()
            time.sleep(0.7)
    parts = sorted(tmp_path.glob("rotated_*.db"))
    assert len(parts) > 1
    for part in parts:
        assert rows(part, "SELECT name FROM protocol_files") == [("dice",)]
    assert all("4 rolls" in kiebitz("state", str(part)).out or sentences(part) for part in parts[:-1])
    assert "Dice" in kiebitz("state", str(parts[-1])).out


@pytest.mark.full
def test_a_sniff_knows_a_protocol_file(tmp_path: Path, capture: str) -> None:
    database = tmp_path / "sniffed.db"
    with open(capture, "rb") as packets:
        words = [*KIEBITZ, "sniff", "-i", "-", "-w", str(database), "--name", "Gruppe 1"]
        words += ["-P", write_file(tmp_path)]
        done = subprocess.run(words, stdin=packets, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    assert "alice rolls 5" in done.stdout
    assert kiebitz("sessions", str(database), "--json").json[0]["name"] == "Gruppe 1"
    assert sentences(database) == SENTENCES


@pytest.mark.full
def test_the_second_process_of_an_import_knows_a_protocol_file(
    tmp_path: Path, capture: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kiebitz.services.importing.packets.MIN_SIZE_FOR_PROCESS", 1)
    for start in ("start_fork", "start_child"):
        database = tmp_path / f"{start}.db"
        from kiebitz.proxy.journal import follower

        monkeypatch.setattr(
            "kiebitz.services.importing.process_inspection.start_fork", getattr(follower, start)
        )
        assert kiebitz("import", capture, "-w", str(database), "-P", write_file(tmp_path)).status == 0
        assert sentences(database) == SENTENCES


@pytest.mark.full
def test_a_corpus_knows_a_protocol_file(tmp_path: Path, capture: str) -> None:
    pytest.importorskip("duckdb")
    pytest.importorskip("distributed")
    file, corpus = write_file(tmp_path), str(tmp_path / "corpus")
    added = subprocess.run(
        [*KIEBITZ, "corpus", "add", corpus, capture, "-P", file], capture_output=True, text=True
    )
    assert added.returncode == 0, added.stderr
    done = kiebitz("corpus", "events", corpus, "-P", file, "-Y", "dice.pips == 5", "--json")
    assert done.status == 0, done.err
    assert [event["sentence"] for event in done.json] == ["alice rolls 5"]
    # The corpus contains the file.
    Path(file).unlink()
    done = kiebitz("corpus", "events", corpus, "-Y", "dice.pips == 5", "--json")
    assert done.status == 0, done.err
    assert [event["sentence"] for event in done.json] == ["alice rolls 5"]


# Reloading.


@contextmanager
def serving_dice(capture: str, file: str) -> Iterator[Serving]:
    with serving(capture, "-P", file, "--reload") as server:
        yield server


def shown(server: Serving) -> list[str]:
    return [event["sentence"] for event in server.well("api/tables/1/events", after=0, limit=50)["events"]]


@pytest.mark.full
def test_the_page_shows_a_saved_file(tmp_path: Path, capture: str) -> None:
    file = write_file(tmp_path)
    with serving_dice(capture, file) as server:
        assert "alice rolls 5" in shown(server)
        assert server.well("api/sessions")["sessions"][0]["dissection"] == 0
        write_file(tmp_path, OTHER)
        until(lambda: "alice throws a 5" in shown(server), "the page shows it")
        assert server.well("api/sessions")["sessions"][0]["dissection"] == 1
        write_file(tmp_path, DICE.replace("pips=pips", "pips=pipz"))
        until(lambda: "^" in server.err, "the mistake is shown")
        assert f"{file}:" in server.err
        assert "alice throws a 5" in shown(server)
        write_file(tmp_path, DICE.replace("rolls {pips}", "gets {pips}").replace('"dice"', '"pips"', 1))
        until(lambda: "alice gets 5" in shown(server), "the page shows the repaired file")
        assert server.well("api/tables")["tables"][0]["protocol"] == "pips"


@pytest.mark.full
def test_a_database_is_served_as_a_given_file_dissects_it(tmp_path: Path, capture: str) -> None:
    database, file = str(tmp_path / "stored.db"), write_file(tmp_path)
    assert kiebitz("import", capture, "-w", database, "-P", file).status == 0
    other = write_file(tmp_path, OTHER, "other.toml")
    with serving(database, "-P", other, "--reload") as server:
        assert "alice throws a 5" in shown(server)
        write_file(tmp_path, DICE, "other.toml")
        until(lambda: "alice rolls 5" in shown(server), "the page shows it")
    with closing(sqlite3.connect(database)) as connection:
        assert connection.execute("SELECT text FROM protocol_files").fetchall() == [(DICE,)]
