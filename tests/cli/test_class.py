"""`kiebitz class`: mistakes in its file, and a lesson on real sockets whose programs crash and come back."""

from __future__ import annotations

import os
import re
import signal
import socket
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from command import kiebitz
from processes_and_rows import PATIENCE_S, free_port, until
from served_pages import Serving

SERVER = """
import socket, sys
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sock.bind(("127.0.0.1", int(sys.argv[1])))
print("ready")
while True:
    data, client = sock.recvfrom(65535)
    if data == b"DIE":
        sys.exit("told to die")
    sock.sendto(b"REGISTERED" if data.startswith(b"REGISTER") else data, client)
"""
"""A server that ends when it is told to."""


def test_a_port_in_use_is_a_mistake_at_its_place(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        path = tmp_path / "class.toml"
        path.write_text(
            f'[[group]]\nname = "a"\nlisten = "127.0.0.1:{port}"\nserver = "h:1"\nprotocol = "okey"\n'
        )
        done = kiebitz("class", str(path), "--check")
    assert done.status == 2
    assert f"{path}:3:10: tcp port {port}: another program uses it" in done.err


@contextmanager
def lesson(path: Path) -> Iterator[Serving]:
    """Run a lesson; it must end well at Ctrl-C."""
    running = Serving(str(path), command="class")
    try:
        yield running.ready()
        assert running.end(patience_s=PATIENCE_S) == 0, running.err
    finally:
        running.kill()
    assert "Traceback" not in running.err


def ask(port: int, data: bytes) -> bytes:
    """Send a datagram until there is an answer."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(0.3)
        for _ in range(60):
            client.sendto(data, ("127.0.0.1", port))
            try:
                return client.recv(65_535)
            except (TimeoutError, ConnectionRefusedError):
                continue
    raise AssertionError(f"no answer to {data!r}")


def relay_of(process: int, port: int) -> int:
    """Return the process id of the relay at a port."""
    for child in Path(f"/proc/{process}/task").glob("*/children"):
        for pid in child.read_text().split():
            words = Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")
            if "relay" in words and any(word.endswith(f":{port}") for word in words):
                return int(pid)
    raise AssertionError(f"no relay at {port}")


def test_one_group_s_trouble_is_that_group_s(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(SERVER)
    page, first, second = free_port("tcp"), free_port("udp"), free_port("udp")
    path = tmp_path / "lesson.toml"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        server.settimeout(PATIENCE_S)
        path.write_text(
            f'page = "127.0.0.1:{page}"\nfolder = "monday"\ndelay = "2s"\n'
            f'[[group]]\nname = "Gruppe 1 – Ida"\nlisten = "127.0.0.1:{first}"\n'
            f'command = "{sys.executable} server.py {{port}}"\nprotocol = "maexchen"\n'
            f'[[group]]\nname = "Gruppe 2 <שרה>"\nlisten = "127.0.0.1:{second}"\n'
            f'server = "127.0.0.1:{server.getsockname()[1]}"\n'
        )
        assert kiebitz("class", str(path), "--sheet").status == 0
        sheet = (tmp_path / "monday" / "sheet.html").read_text()
        assert "Gruppe 2 &lt;שרה&gt;" in sheet
        assert f"127.0.0.1:{second}" in sheet
        assert sheet.count("<svg") == 2
        with lesson(path) as running:
            key = running.key
            assert ask(first, b"REGISTER;ida") == b"REGISTERED"
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
                client.sendto(b"REGISTER;sara", ("127.0.0.1", second))
                server.recvfrom(65_535)
            labels = [one["session"]["label"] for one in running.well("api/home", key=key)["sessions"]]
            assert labels == ["Gruppe 1 – Ida", "Gruppe 2 <שרה>"]
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
                client.sendto(b"DIE", ("127.0.0.1", first))
            said = "Gruppe 1 – Ida: the server has ended (exit status 1); its last output: told to die"
            until(lambda: said in running.err, "the crash is told")
            assert ask(first, b"REGISTER;ida") == b"REGISTERED"
            os.kill(relay_of(running.process.pid, second), signal.SIGKILL)
            until(
                lambda: "Gruppe 2 <שרה>: the relay has ended; it is started again" in running.err,
                "it is told",
            )
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
                until(lambda: _arrives(client, second, server), "the other relay is back")
        for number, name in ((1, "Ida"), (2, "שרה")):
            assert re.search(
                rf"Gruppe {number} .*: recorded .+ -> .*0{number}-Gruppe-{number}-{name}\.db:\d", running.err
            )
        with lesson(path) as again:
            assert again.key == key, "links stay valid"
            assert again.get("api/sessions", None, "GET", key=key).status == 200
    for database in (tmp_path / "monday").glob("*.db"):
        with closing(sqlite3.connect(database)) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def _arrives(client: socket.socket, port: int, server: socket.socket) -> bool:
    client.sendto(b"REGISTER;sara", ("127.0.0.1", port))
    server.settimeout(0.3)
    try:
        return bool(server.recv(65_535))
    except TimeoutError:
        return False
