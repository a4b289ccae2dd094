"""Benchmark of the recording TCP relay, compared with a direct connection, socat and mitmdump.

A Schafkopf server asks every client the same question repeatedly, and each client answers at once. Then one
client sends as much as it can.
"""

from __future__ import annotations

import asyncio
import hashlib
import socket
import sqlite3
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby, repeat
from typing import cast

import uvloop
from relays import (
    HOST,
    START_SECONDS,
    Kind,
    Load,
    Passed,
    Player,
    compare,
    exchange,
    installed,
    report_all,
    table,
)
from report import Report

QUESTION = b"!MODUS\nGEIER\n!END\n"
ANSWER = b"!KONTRA\nNEIN\n!END\n"
CLIENTS = (1, 32, 500)

CROWD = 2000
"""Promised number of connections. mitmdump is left out there: it stalled in one run of two."""

BULK_BYTES = 128 << 20
BLOCK = b"nothing that any game says\n" * 4096
"""Bulk data: the recorder stores it without any message to dissect."""

ALL_CAME = b"."


class Asking(asyncio.Protocol):
    """A server's connection: it sends a question, and again after each answer."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.WriteTransport, transport)
        self._came = 0
        self._transport.write(QUESTION)

    def data_received(self, data: bytes) -> None:
        self._came += len(data)
        if self._came % len(ANSWER) == 0:
            self._transport.write(QUESTION)


def serve(port: int) -> None:
    """Run a server that asks all clients."""

    async def run() -> None:
        listener = listening(port)
        await (await asyncio.get_running_loop().create_server(Asking, sock=listener)).serve_forever()

    uvloop.run(run())


def swallow(port: int) -> None:
    """Run a server that reads all that a client sends and then confirms it."""
    space = bytearray(1 << 20)
    with listening(port) as listener:
        while True:
            sock, _ = listener.accept()
            with sock:
                came = False
                while sock.recv_into(space):
                    came = True
                # A relay may connect only to see that the server is there.
                if came:
                    sock.sendall(ALL_CAME)


def listening(port: int) -> socket.socket:
    listener = socket.create_server((HOST, port), backlog=4096)
    # What is accepted has it, too.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def connected(port: int) -> socket.socket:
    """Return a connection to a relay, which may be starting."""
    end = time.monotonic() + START_SECONDS
    while True:
        try:
            sock = socket.create_connection((HOST, port), START_SECONDS)
        except ConnectionRefusedError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)
        else:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return sock


class Answering(Player):
    """A player who answers, and the number of bytes that it has received."""

    def __init__(self, port: int) -> None:
        super().__init__(ANSWER)
        self.socket = connected(port)
        self.came = 0
        self.waiting = True
        while self.waiting:
            self.receive()

    def receive(self) -> None:
        data = self.socket.recv(65_536)
        if not data:
            raise RuntimeError("the connection was closed")
        self.came += len(data)
        self.waiting = self.came < (self.sent + 1) * len(QUESTION)


def play(port: int, count: int) -> Load:
    """Let this many players answer repeatedly."""
    players = [Answering(port) for _ in range(count)]
    load = exchange(players, START_SECONDS)
    passed = Counter(("c2s", _digest(repeat(ANSWER, player.sent))) for player in players)
    passed.update(("s2c", _digest(repeat(QUESTION, player.sent + 1))) for player in players)
    load.passed, load.finished = passed, count
    load.messages = sum(2 * player.sent + 1 for player in players)
    return load


def pour(port: int, _count: int) -> Load:
    """Send much, as quickly as it is taken."""
    blocks = BULK_BYTES // len(BLOCK)
    with connected(port) as sock:
        begin = time.perf_counter()
        for _ in range(blocks):
            sock.sendall(BLOCK)
        sock.shutdown(socket.SHUT_WR)
        if sock.recv(1) != ALL_CAME:
            raise RuntimeError(f"not all came through port {port}")
        took = time.perf_counter() - begin
    passed = {("c2s", _digest(repeat(BLOCK, blocks))): 1, ("s2c", _digest([ALL_CAME])): 1}
    return Load(passed=passed, rate=blocks * len(BLOCK) / took / 1e6)


def _digest(parts: Iterable[bytes]) -> bytes:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return digest.digest()


def socat(port: int, server: int) -> Sequence[str]:
    listen = f"TCP-LISTEN:{port},bind={HOST},fork,reuseaddr,nodelay,backlog=1024"
    return listen, f"TCP:{HOST}:{server},nodelay"


def recorded(connection: sqlite3.Connection) -> Passed:
    """Return all bytes by stream and direction."""
    rows = connection.execute(
        "SELECT stream_id, direction, data FROM chunks ORDER BY stream_id, direction, id"
    )
    return Counter(
        (direction, _digest(data for *_, data in chunks))
        for (_, direction), chunks in groupby(rows, lambda row: row[:2])
    )


TCP = Kind("tcp", socat, "SELECT count(*) FROM streams WHERE closed_ns IS NOT NULL", recorded)


def compared(report: Report, rounds: int) -> None:
    """Run with one client (latency), many (throughput), and one that sends in bulk."""
    relays = installed(TCP)
    for title, found in compare(relays, serve, play, CLIENTS, rounds):
        report_all(report, title, found)
    for title, found in compare(
        {name: relay for name, relay in relays.items() if name != "mitmdump"}, serve, play, (CROWD,), rounds
    ):
        report_all(report, title, found)
    for _, found in compare(relays, swallow, pour, (1,), rounds):
        title = f"TCP relay, one client sends {BULK_BYTES >> 20} MiB"
        report.show(table(title, found, "MB/s|× direct|recorder behind s"))
