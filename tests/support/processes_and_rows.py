"""Processes that run alongside a test, and queries of their databases."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import sqlite3
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from typing import Any, NamedTuple

from kiebitz.dissectors.model import Direction, Transport

PATIENCE_S = 60.0
"""Time limit in seconds for a peer."""

KIEBITZ = [sys.executable, "-m", "kiebitz"]


_worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
_first = 12_000 + _worker % 8 * 2_000
OWN_PORTS = (_first, _first + 1, _first + 2)
"""Ports of this worker that `free_port` never gives."""

_in_turn = cycle(range(_first + len(OWN_PORTS), _first + 2_000))
_later = islice(_in_turn, os.getpid() % 1_900, None)


def free_port(transport: Transport) -> int:
    """Return a free port of the loopback interface.

    Each worker has a range of its own outside of the ephemeral ports, so that no other process takes the port
    before it is used.
    """
    kind = socket.SOCK_DGRAM if transport == "udp" else socket.SOCK_STREAM
    for port in _later:
        with socket.socket(socket.AF_INET, kind) as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError("there are ports for ever")


@contextmanager
def running(*command: str, ready: str) -> Iterator[subprocess.Popen[str]]:
    """Run a program; after the block, stop it and check that it exits successfully."""
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stderr is not None
    line = ""
    try:
        while ready not in line:
            line = process.stderr.readline()
            assert line, f"{command} ended before it said '{ready}'"
        yield process
    finally:
        process.send_signal(signal.SIGINT)
        try:
            rest = process.stderr.read()
            status = process.wait(PATIENCE_S)
        finally:
            process.kill()
            process.stderr.close()
    assert status == 0, rest


def child_of(process: int) -> int:
    """Return the only child process of a `kiebitz` command: a relay's recorder, an import's inspector."""
    children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    # With the spawn method, Python's resource tracker is a second child.
    (child,) = [pid for pid in children if "resource_tracker" not in Path(f"/proc/{pid}/cmdline").read_text()]
    return int(child)


def until(true: Callable[[], bool], what: str, patience_s: float = PATIENCE_S) -> None:
    """Wait for something that takes its time."""
    end = time.monotonic() + patience_s
    while not true():
        assert time.monotonic() < end, f"{what}: it did not happen within {patience_s} s"
        time.sleep(0.02)


def kill_all(process: subprocess.Popen[str]) -> None:
    """End a program that has a session of its own, and all that it has started, if they still run."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert process.stderr is not None
    process.stderr.close()


def rows(database: Path, query: str) -> list[Any]:
    with closing(sqlite3.connect(database)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        return connection.execute(query).fetchall()


def story(database: Path) -> dict[str, Any]:
    """Return all that was found, but for times and for the clients' ports, which a relay changes."""
    streams = [row[0] for row in rows(database, "SELECT id FROM streams ORDER BY id")]
    return {
        "messages": [
            rows(
                database,
                "SELECT direction, name, fields, offset, length FROM messages"
                f" WHERE stream_id = {stream} AND direction = '{direction}' ORDER BY offset, id",
            )
            for stream in streams
            for direction in ("c2s", "s2c")
        ],
        "events": rows(database, "SELECT seq, game_id, kind, actor, data FROM events ORDER BY id"),
        "games": rows(database, "SELECT label, result FROM games ORDER BY id"),
        "diagnostics": rows(
            database,
            "SELECT stream_id, direction, severity, grp, code, text, offset, length, expected, clause, blame"
            " FROM diagnostics ORDER BY stream_id, direction, offset, code",
        ),
    }


@contextmanager
def recorded_three_ways(folder: Path, bpf: str, mode: str) -> Iterator[dict[str, Path]]:
    """Databases by how they are made: through a relay, by a sniff, and by importing what tcpdump captures.

    They are complete after the block.
    """
    tcpdump = shutil.which("tcpdump")
    assert tcpdump is not None
    databases = {name: folder / f"{name}.db" for name in ("relay", "sniff", "import")}
    capture = folder / "game.pcap"
    with (
        running(
            tcpdump,
            "-i",
            "lo",
            "-U",
            "-w",
            str(capture),
            # With --immediate-mode the buffer would hold some 500 packets. So they come, but once a second.
            "-B",
            "65536",
            f"({bpf}) or icmp[icmptype] == icmp-echo",
            ready="listening on",
        ),
        running(
            *KIEBITZ, "sniff", "-i", "lo", "-f", bpf, "-w", str(databases["sniff"]), ready="capturing on"
        ),
        running(*KIEBITZ, "relay", "-m", mode, "-w", str(databases["relay"]), ready="listening on"),
    ):
        yield databases
        _until_nothing_more_comes(capture)
        _until_all_is_captured(capture)
    subprocess.run(
        [*KIEBITZ, "import", str(capture), "-w", str(databases["import"])], check=True, capture_output=True
    )


def _until_nothing_more_comes(file: Path, settled_s: float = 0.5) -> None:
    """Wait until a file that a program writes has not grown for a while, however late that program is."""
    size, since = -1, time.monotonic()
    end = since + PATIENCE_S
    while time.monotonic() < min(since + settled_s, end):
        if file.stat().st_size != size:
            size, since = file.stat().st_size, time.monotonic()
        time.sleep(0.02)


def _until_all_is_captured(file: Path) -> None:
    """Wait until tcpdump, which may be late, has written a packet of no conversation that is sent now."""
    mark = secrets.token_bytes(16)
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as sock:
        # An echo request without a checksum, which is not answered.
        sock.sendto(bytes((8, *bytes(7))) + mark, ("127.0.0.1", 0))
    until(lambda: mark in file.read_bytes(), "tcpdump has written all that came")


def spoken_three_ways(folder: Path, said: Sequence[Said], bytewise: bool) -> dict[str, Path]:
    """Return the databases of a game over TCP, both of whose sides are spoken here."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        listener.settimeout(PATIENCE_S)
        server_port = listener.getsockname()[1]
        port = free_port("tcp")
        mode = f"reverse:tcp://127.0.0.1:{server_port}@{port}"
        with recorded_three_ways(folder, f"tcp port {server_port}", mode) as databases:
            connect = partial(socket.create_connection, ("127.0.0.1", port), PATIENCE_S)
            speak(said, listener, connect, bytewise)
    return databases


class Said(NamedTuple):
    """Data that a client, or its server, sends over TCP."""

    client: str
    direction: Direction
    data: bytes


def speak(
    said: Iterable[Said],
    listener: socket.socket,
    connect: Callable[[], socket.socket],
    bytewise: bool = False,
) -> None:
    """Send all conversations over real connections, from new client sockets to those that `listener` accepts.

    Each message is sent after the one before was received.
    """
    with ExitStack() as ending:
        # With TLS both ends must be awake at once.
        beside = ending.enter_context(ThreadPoolExecutor(1))
        clients: dict[str, socket.socket] = {}
        servers: dict[str, socket.socket] = {}
        for client, direction, data in said:
            if client not in clients:
                accepted = beside.submit(accept, listener)
                near = ending.enter_context(connect())
                far = ending.enter_context(accepted.result())
                near.settimeout(PATIENCE_S)
                for sock in (near, far):
                    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                clients[client], servers[client] = near, far
            ends = (clients[client], servers[client])
            sender, receiver = ends if direction == "c2s" else ends[::-1]
            for piece in (data[at : at + 1] for at in range(len(data))) if bytewise else (data,):
                sender.sendall(piece)
            assert receive(receiver, len(data)) == data
        for client, server in servers.items():
            if isinstance(server, ssl.SSLSocket):
                # With TLS a half-close is impossible.
                server.close()
            else:
                server.shutdown(socket.SHUT_WR)
            assert clients[client].recv(1) == b""
            clients[client].close()
            assert isinstance(server, ssl.SSLSocket) or server.recv(1) == b""


def accept(listener: socket.socket) -> socket.socket:
    """Return the next connection, which waits for nothing for long; with TLS the greeting is over."""
    accepted, _ = listener.accept()
    accepted.settimeout(PATIENCE_S)
    if isinstance(accepted, ssl.SSLSocket):
        try:
            accepted.do_handshake()
        except OSError:
            accepted.close()
            raise
    return accepted


def receive(sock: socket.socket, length: int) -> bytes:
    data = b""
    while len(data) < length:
        piece = sock.recv(length - len(data))
        assert piece, "the connection was closed too early"
        data += piece
    return data
