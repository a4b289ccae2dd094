"""Benchmark of the recording TCP relay, compared with a direct connection, socat and mitmdump.

A Schafkopf server asks every client the same question repeatedly, and each client answers at once. Then one
client sends as much as it can.
"""

from __future__ import annotations

import hashlib
import select
import socket
import sqlite3
import statistics
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby

from relays import (
    HOST,
    SECONDS,
    SPAWN,
    START_SECONDS,
    Kind,
    Load,
    Measured,
    Passed,
    Sent,
    compare,
    exchange,
    free_port,
    measure,
    median,
    present,
    process,
    summed_up,
)
from report import Report, new_table
from rich.table import Table

QUESTION = b"!MODUS\nGEIER\n!END\n"
ANSWER = b"!KONTRA\nNEIN\n!END\n"
CLIENTS = (1, 32, 500)

CROWD = 2000
"""Promised number of connections. mitmdump is left out there: it stalled in one run of two."""

BULK_BYTES = 128 << 20
BLOCK = b"nothing that any game says\n" * 4096
"""Bulk data: the recorder stores it without any message to dissect."""

ALL_CAME = b"."


class Bulk(Sent):
    """Throughput in million bytes per second."""

    rate: float


def serve(port: int) -> None:
    """Run a server that sends a question to each client, and again after each answer."""
    poll = select.epoll()
    answering: dict[int, tuple[socket.socket, int]] = {}
    with listening(port) as listener:
        poll.register(listener, select.EPOLLIN)
        while True:
            for number, _ in poll.poll():
                if number == listener.fileno():
                    sock, _ = listener.accept()
                    answering[sock.fileno()] = sock, 0
                    poll.register(sock, select.EPOLLIN)
                    sock.send(QUESTION)
                    continue
                sock, came = answering[number]
                data = _received(sock)
                if data:
                    answering[number] = sock, came + len(data)
                    if (came + len(data)) % len(ANSWER) == 0:
                        sock.send(QUESTION)
                else:
                    del answering[number]
                    sock.close()


def _received(sock: socket.socket) -> bytes:
    try:
        return sock.recv(65_536)
    except ConnectionResetError:
        return b""


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


class Player:
    """A player's connection and its byte counts."""

    def __init__(self, port: int) -> None:
        self.socket = connected(port)
        self.answers = 0
        self.came = 0
        self.sent_ns = 0
        self.waiting = True
        while self.waiting:
            self.receive()

    def send(self, now: int) -> None:
        self.sent_ns = now
        self.socket.send(ANSWER)
        self.answers += 1
        self.waiting = True

    def receive(self) -> None:
        data = self.socket.recv(65_536)
        if not data:
            raise RuntimeError("the connection was closed")
        self.came += len(data)
        self.waiting = self.came < (self.answers + 1) * len(QUESTION)

    def passed(self) -> Iterator[tuple[str, bytes]]:
        yield "c2s", _digest([ANSWER] * self.answers)
        yield "s2c", _digest([QUESTION] * (self.answers + 1))


def play(port: int, clients: int, seconds: float) -> Load:
    """Let this many players answer repeatedly for `seconds`."""
    players = [Player(port) for _ in range(clients)]
    times, lost, took = exchange(players, seconds, START_SECONDS)
    passed: Passed = Counter(part for player in players for part in player.passed())
    messages = sum(2 * player.answers + 1 for player in players)
    return summed_up(times, lost, took, passed=passed, messages=messages, finished=clients)


def pour(port: int) -> Bulk:
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
    passed = {("c2s", _digest([BLOCK] * blocks)): 1, ("s2c", _digest([ALL_CAME])): 1}
    return Bulk(passed=passed, finished=1, rate=blocks * len(BLOCK) / took / 1e6)


def _digest(parts: Sequence[bytes]) -> bytes:
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
        (direction, _digest([data for *_, data in chunks]))
        for (_, direction), chunks in groupby(rows, lambda row: row[:2])
    )


TCP = Kind("tcp", socat, "SELECT count(*) FROM streams WHERE closed_ns IS NOT NULL", recorded)


def in_bulk(rounds: list[dict[str, Measured[Bulk]]]) -> Table:
    """Return the medians, and the ratios to a direct connection's rate."""
    result = new_table(
        f"TCP relay, one client sends {BULK_BYTES >> 20} MiB", "MB/s|× direct|recorder behind s"
    )
    for name in rounds[0]:
        mine = [found[name] for found in rounds]
        result.add_row(
            name,
            f"{statistics.median(one.load.rate for one in mine):,.0f}",
            median(
                [found[name].load.rate / found["direct"].load.rate for found in rounds if "direct" in found]
            ),
            median([one.recording.behind for one in mine if one.recording is not None]),
        )
    return result


def compared(report: Report, rounds: int) -> None:
    """Run with one client (latency), many (throughput), and one that sends in bulk."""
    names = present()
    server, sink = free_port("tcp"), free_port("tcp")
    with process(serve, server), process(swallow, sink), SPAWN.Pool(1) as pool:

        def put(port: int, clients: int) -> Load:
            load: Load = pool.apply(play, (port, clients, SECONDS))
            return load

        def put_bulk(port: int) -> Bulk:
            bulk: Bulk = pool.apply(pour, (port,))
            return bulk

        compare(report, TCP, server, names, rounds, CLIENTS, put)
        compare(report, TCP, server, [name for name in names if name != "mitmdump"], rounds, (CROWD,), put)
        report.show(
            in_bulk([{name: measure(name, TCP, sink, put_bulk) for name in names} for _ in range(rounds)])
        )
