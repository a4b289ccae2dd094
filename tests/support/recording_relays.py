"""Relays that record, as processes, and disks that are small or full."""

from __future__ import annotations

import os
import signal
import socket
import sqlite3
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from types import MappingProxyType

import pytest
from command import ROOT
from processes_and_rows import (
    KIEBITZ,
    PATIENCE_S,
    accept,
    child_of,
    free_port,
    kill_all,
)

CAPTURE = ROOT / "captures" / "maexchen-head-port4711.pcap"


def run(*arguments: str, limit_s: float = 30) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*KIEBITZ, *arguments], capture_output=True, text=True, timeout=limit_s)


def assert_sound(database: Path) -> None:
    with closing(sqlite3.connect(database)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


class Echo:
    """A server, and the relay in front of it, driven datagram by datagram."""

    def __init__(self, database: Path, environment: Mapping[str, str], *options: str) -> None:
        self.server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.server.bind(("127.0.0.1", 0))
        self.server.settimeout(PATIENCE_S)
        self.client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.client.settimeout(PATIENCE_S)
        self.port = free_port("udp")
        mode = f"reverse:udp://127.0.0.1:{self.server.getsockname()[1]}@{self.port}"
        self.relay = subprocess.Popen(
            [*KIEBITZ, "relay", "-m", mode, "-w", str(database), "-q", *options],
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env={**os.environ, **environment},
        )
        self.said = ""
        self.wait_for("listening on")

    def wait_for(self, words: str) -> None:
        """Read the relay's output until these words appear."""
        assert self.relay.stderr is not None
        while words not in self.said:
            line = self.relay.stderr.readline()
            assert line, f"the relay ended and said only: {self.said}"
            self.said += line

    def round_trip(self, data: bytes, answer: bytes = b"") -> None:
        """Send a datagram, and have it answered; by default it is sent back."""
        self.client.sendto(data, ("127.0.0.1", self.port))
        got, address = self.server.recvfrom(65_535)
        assert got == data
        self.server.sendto(answer or data, address)
        assert self.client.recv(65_535) == (answer or data)

    def recorder(self) -> int:
        """Return the process id of the recorder."""
        return child_of(self.relay.pid)

    def kill_recorder(self) -> None:
        """Kill it, and wait until another one is there."""
        self.said = ""
        os.kill(self.recorder(), signal.SIGKILL)
        self.wait_for("the recorder has died and is restarted")

    def stop(self) -> int:
        """Ctrl-C; the exit status."""
        self.relay.send_signal(signal.SIGINT)
        assert self.relay.stderr is not None
        self.said += self.relay.stderr.read()
        return self.relay.wait(30)


@contextmanager
def relaying(
    database: Path, environment: Mapping[str, str] = MappingProxyType({}), *options: str
) -> Iterator[Echo]:
    echo = Echo(database, environment, *options)
    try:
        yield echo
    finally:
        kill_all(echo.relay)
        echo.server.close()
        echo.client.close()


def recorded(database: Path) -> list[bytes]:
    with closing(sqlite3.connect(database)) as connection:
        return [data for (data,) in connection.execute("SELECT data FROM chunks ORDER BY id")]


@contextmanager
def small_disk(path: Path, size: str) -> Iterator[Path]:
    if os.geteuid() != 0:
        pytest.skip("a small disk needs root, to mount it")
    path.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(path)], capture_output=True, text=True
    )
    if mounted.returncode != 0:
        pytest.skip(f"a small disk cannot be mounted here: {mounted.stderr.strip()}")
    try:
        yield path
    finally:
        subprocess.run(["umount", "-l", str(path)], check=True)


@contextmanager
def full(disk: Path) -> Iterator[None]:
    """No room on it for a while."""
    ballast = disk / "ballast"
    with suppress(OSError), ballast.open("wb", buffering=0) as file:
        while file.write(b"x" * 4096):
            pass
    try:
        yield
    finally:
        ballast.unlink()


def round_trips(echo: Echo, first: int, count: int) -> list[bytes]:
    """Register this many numbered players; return the expected recording."""
    said = []
    for number in range(first, first + count):
        said += [b"REGISTER;player%d" % number, b"REGISTERED"]
        # Many echoes alone would be no Mäxchen.
        echo.round_trip(*said[-2:])
    return said


def connected(port: int, listener: socket.socket, opened: ExitStack) -> tuple[socket.socket, socket.socket]:
    """Return both ends of a connection through the relay."""
    client = opened.enter_context(socket.create_connection(("127.0.0.1", port), PATIENCE_S))
    return client, opened.enter_context(accept(listener))
