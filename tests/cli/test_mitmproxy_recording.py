from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from command import kiebitz
from dice_file import write_file
from maexchen_programs import Player, Server, play
from mitmproxy_live import assert_recorded, game, listening, relayed_plainly
from processes_and_rows import PATIENCE_S, accept, child_of, free_port, receive, rows, speak, story
from strength import a_few
from udp_relays import eventually

MITMDUMP = str(Path(sys.executable).with_name("mitmdump"))


class Mitmdump:
    """A running mitmdump that records; its log is read line by line."""

    def __init__(self, process: subprocess.Popen[str], database: Path) -> None:
        self.process = process
        self.database = database
        self.log = ""

    def hears(self, text: str) -> str:
        """Return the next line of the log that has this text in it."""
        assert self.process.stdout is not None
        patience = threading.Timer(PATIENCE_S, self.process.kill)
        patience.start()
        try:
            for line in self.process.stdout:
                self.log += line
                if text in line:
                    return line
        finally:
            patience.cancel()
        raise AssertionError(f"it never said '{text}': {self.log}")

    def end(self, number: signal.Signals = signal.SIGINT) -> None:
        self.process.send_signal(number)
        rest, _ = self.process.communicate(timeout=20)
        self.log += rest


@contextmanager
def mitmdump(
    folder: Path,
    *modes: str,
    settings: Sequence[str] = (),
    before: str = "",
    ready: str = "Kiebitz records into",
    **environment: str,
) -> Iterator[Mitmdump]:
    """Run mitmdump with Kiebitz's script, after the script `before`, until the end of the block."""
    first = folder / "first.py"
    first.write_text(before)
    ours = kiebitz("addon-path").out.strip()
    command = [MITMDUMP, "-s", str(first), "-s", ours]
    for mode in modes:
        command += ["--mode", mode]
    for one in (f"confdir={folder / 'keys'}", "listen_host=127.0.0.1", *settings):
        command += ["--set", one]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=folder,
        env={**os.environ, "PYTHONUNBUFFERED": "1", **environment},
    )
    running = Mitmdump(process, folder / "kiebitz.db")
    try:
        running.hears(ready)
        yield running
    finally:
        if process.poll() is None:
            running.end()
        assert process.stdout is not None
        process.stdout.close()


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """A game server's listening socket."""
    with listening() as made:
        yield made


@contextmanager
def in_front_of(listener: socket.socket, folder: Path, **how: Any) -> Iterator[tuple[Mitmdump, int]]:
    """Run mitmdump in front of a server over TCP; yield its port, too."""
    port = free_port("tcp")
    mode = f"reverse:tcp://127.0.0.1:{listener.getsockname()[1]}@{port}"
    with mitmdump(folder, mode, **how) as running:
        yield running, port


@pytest.mark.full
@pytest.mark.parametrize("number", a_few([signal.SIGINT, signal.SIGTERM], [signal.SIGTERM]))
def test_a_game_is_recorded_as_in_the_relay(
    tmp_path: Path, listener: socket.socket, number: signal.Signals
) -> None:
    said = game("Anna", "Bärbel", "Carl")
    with in_front_of(listener, tmp_path, settings=["kiebitz_db=game.db"]) as (running, port):
        speak(said, listener, partial(socket.create_connection, ("127.0.0.1", port), PATIENCE_S))
        running.end(number)
    assert running.process.returncode == 0
    assert "Kiebitz: recorded 3 streams" in running.log
    relayed_plainly(tmp_path / "plain.db", said)
    database = tmp_path / "game.db"
    assert story(database) == story(tmp_path / "plain.db")
    assert rows(database, "SELECT kind, source, ended_ns > started_ns FROM sessions") == [
        ("relay", f"reverse:tcp://127.0.0.1:{listener.getsockname()[1]}@{port}", 1)
    ]
    assert list(tmp_path.glob(".*spool*")) == []


def exchange(port: int, listener: socket.socket, data: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port), PATIENCE_S) as client:
        client.sendall(data)
        with accept(listener) as there:
            there.sendall(receive(there, len(data)))
            return receive(client, len(data))


@pytest.mark.full
def test_a_game_over_udp_and_a_message_altered_by_an_addon_before(
    tmp_path: Path, listener: socket.socket
) -> None:
    louder = (
        "class Louder:\n"
        "    def tcp_message(self, flow):\n"
        "        flow.messages[-1].content = flow.messages[-1].content.upper()\n"
        "addons = [Louder()]"
    )
    server = Server(expected=3, rounds=2)
    udp, tcp = free_port("udp"), free_port("tcp")
    modes = (
        f"reverse:udp://127.0.0.1:{server.port}@{udp}",
        f"reverse:tcp://127.0.0.1:{listener.getsockname()[1]}@{tcp}",
    )
    with mitmdump(tmp_path, *modes, before=louder) as running:
        players = [Player(name, ("127.0.0.1", udp)) for name in ("alice", "bob", "carl")]
        # No empty datagrams: mitmproxy takes them for the end of the flow.
        play(server, players)
        assert exchange(tcp, listener, b"hello") == b"HELLO"
    assert_recorded(running.database, players)
    assert rows(running.database, "SELECT count(*) FROM games") == [(2,)]
    of_tcp = "FROM chunks c JOIN streams s ON s.id = c.stream_id WHERE transport = 'tcp'"
    assert rows(running.database, f"SELECT data {of_tcp}") == [(b"HELLO",)] * 2


@pytest.mark.full
def test_a_database_that_cannot_be_opened_does_not_end_mitmdump(
    tmp_path: Path, listener: socket.socket
) -> None:
    (tmp_path / "text.db").write_text("only text\n" * 100)
    with in_front_of(
        listener, tmp_path, settings=["kiebitz_db=text.db"], ready="Kiebitz records nothing: text.db: "
    ) as (_, port):
        assert exchange(port, listener, b"hello") == b"hello"
    assert list(tmp_path.glob(".*spool*")) == []


@pytest.mark.full
def test_without_a_database_nothing_is_recorded(tmp_path: Path, listener: socket.socket) -> None:
    with in_front_of(listener, tmp_path, settings=["kiebitz_db="], ready="listening at") as (running, port):
        assert exchange(port, listener, b"hello") == b"hello"
    assert "Kiebitz" not in running.log
    assert not running.database.exists()


@pytest.mark.full
def test_a_protocol_that_there_is_not(tmp_path: Path) -> None:
    with mitmdump(
        tmp_path,
        "reverse:tcp://127.0.0.1:9@0",
        settings=["kiebitz_decode_as=tcp.port==1,schafkop"],
        ready="Kiebitz records nothing: kiebitz_decode_as: there is no protocol schafkop; did you mean",
    ) as running:
        pass
    assert not running.database.exists()


@pytest.mark.full
def test_the_recorder_is_killed(tmp_path: Path, listener: socket.socket) -> None:
    with in_front_of(listener, tmp_path) as (running, port):
        assert exchange(port, listener, b"before") == b"before"
        eventually(lambda: rows(running.database, "SELECT data FROM chunks") == [(b"before",)] * 2)
        os.kill(child_of(running.process.pid), signal.SIGKILL)
        running.hears("the recorder has died and is restarted; mitmproxy continues")
        assert exchange(port, listener, b"meanwhile") == b"meanwhile"
        running.hears("the recorder has caught up")
        assert exchange(port, listener, b"after") == b"after"
    assert running.process.returncode == 0
    said = [(b"before",), (b"meanwhile",), (b"after",)]
    assert rows(running.database, "SELECT data FROM chunks ORDER BY id") == [
        data for data in said for _ in range(2)
    ]
    assert rows(running.database, "SELECT ended_ns > started_ns FROM sessions") == [(1,)]


@pytest.mark.full
def test_mitmdump_is_killed(tmp_path: Path, listener: socket.socket) -> None:
    with (
        in_front_of(listener, tmp_path) as (running, port),
        socket.create_connection(("127.0.0.1", port), PATIENCE_S) as client,
        accept(listener) as there,
    ):
        client.sendall(b"hello")
        assert receive(there, 5) == b"hello"
        # A flush is 20 ms away.
        time.sleep(0.2)
        running.process.kill()
        running.process.wait()
    eventually(lambda: rows(running.database, "SELECT ended_ns IS NULL FROM sessions") == [(0,)])
    assert rows(running.database, "SELECT data FROM chunks") == [(b"hello",)]


@pytest.mark.full
def test_a_protocol_file(tmp_path: Path, listener: socket.socket) -> None:
    file = write_file(tmp_path)
    with in_front_of(listener, tmp_path, settings=[f"kiebitz_protocols={file}"]) as (running, port):
        assert exchange(port, listener, b"JOIN alice\n") == b"JOIN alice\n"
    assert rows(running.database, "SELECT DISTINCT protocol FROM streams") == [("dice",)]
    assert rows(running.database, "SELECT name FROM protocol_files") == [("dice",)]


@pytest.mark.full
def test_a_game_is_shown_in_the_log(tmp_path: Path) -> None:
    port = free_port("udp")
    with (
        closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as server,
        closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as client,
    ):
        server.bind(("127.0.0.1", 0))
        mode = f"reverse:udp://127.0.0.1:{server.getsockname()[1]}@127.0.0.1:{port}"
        settings = ["flow_detail=3", "kiebitz_db="]
        with mitmdump(tmp_path, mode, settings=settings, ready="listening at") as running:
            client.sendto(b"REGISTER;alice", ("127.0.0.1", port))
            running.hears("name: alice")
    assert "error" not in running.log.lower()
    assert "REGISTER\n" in running.log.replace("\r", "")


@pytest.mark.full
def test_a_mitmproxy_without_kiebitz_is_reported_in_a_sentence(tmp_path: Path) -> None:
    # Another package of that name hides ours, as in a Python where ours is not.
    (tmp_path / "kiebitz.py").write_text("")
    ready = "Kiebitz cannot be imported by this mitmproxy"
    with mitmdump(tmp_path, settings=["server=false"], ready=ready, PYTHONPATH=str(tmp_path)) as running:
        running.log += running.process.communicate(timeout=PATIENCE_S)[0]
    assert running.process.returncode == 1
    assert "mitmdump" in running.log
    assert "Traceback" not in running.log
