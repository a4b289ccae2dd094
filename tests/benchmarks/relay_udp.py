"""Benchmark of the recording UDP relay, compared with a direct connection, socat and mitmdump.

Every client registers at a Mäxchen server, waits for the answer, registers again.
"""

from __future__ import annotations

import socket
import sqlite3
import time
from collections.abc import Sequence

from relays import (
    HOST,
    SECONDS,
    SPAWN,
    START_SECONDS,
    Kind,
    Load,
    Passed,
    compare,
    exchange,
    free_port,
    present,
    process,
    summed_up,
)
from report import Report

LOST_SECONDS = 0.5
ANSWER = b"REGISTERED"
CLIENTS = (1, 32)


def serve(port: int) -> None:
    """Run a server that accepts every registration."""
    with udp_socket() as sock:
        sock.bind((HOST, port))
        while True:
            _, client = sock.recvfrom(65_535)
            sock.sendto(ANSWER, client)


def udp_socket() -> socket.socket:
    return socket.socket(socket.AF_INET, socket.SOCK_DGRAM)


class Player:
    """A player's socket, its message, and when it sent the last one."""

    def __init__(self, number: int, port: int) -> None:
        self.says = b"REGISTER;player-number-%03d" % number
        self.sent = 0
        self.received = 0
        self.sent_ns = 0
        self.waiting = False
        self.socket = self._connected(port)

    def send(self, now: int) -> None:
        self.sent_ns = now
        self.socket.send(self.says)
        self.sent += 1
        self.waiting = True

    def receive(self) -> None:
        self.socket.recv(65_535)
        self.received += 1
        self.waiting = False

    def _connected(self, port: int) -> socket.socket:
        """Return a socket that has received an answer, as a starting relay may lose a new client's data."""
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end:
            # A new one each time: the peers may still hold an earlier client's port to be closed.
            sock = udp_socket()
            sock.settimeout(0.1)
            sock.connect((HOST, port))
            try:
                sock.send(self.says)
                self.sent += 1
                sock.recv(65_535)
                self.received += 1
            except (TimeoutError, ConnectionRefusedError):
                sock.close()
                time.sleep(0.05)
            else:
                sock.setblocking(False)
                return sock
        raise RuntimeError(f"nothing comes back from port {port}")


def register(port: int, count: int, seconds: float) -> Load:
    """Let this many players register repeatedly for `seconds`."""
    players = [Player(number, port) for number in range(count)]
    times, lost, took = exchange(players, seconds, LOST_SECONDS)
    passed: Passed = {("c2s", player.says): player.sent for player in players}
    passed["s2c", ANSWER] = sum(player.received for player in players)
    messages = sum(passed.values())
    return summed_up(times, lost, took, passed=passed, messages=messages, finished=messages)


def socat(port: int, server: int) -> Sequence[str]:
    # 600 seconds as ours: without it, each client's process stays for ever.
    return "-T", "600", f"UDP-LISTEN:{port},bind={HOST},fork", f"UDP:{HOST}:{server}"


def recorded(connection: sqlite3.Connection) -> Passed:
    rows = connection.execute("SELECT direction, data, count(*) FROM chunks GROUP BY direction, data")
    return {(direction, data): number for direction, data, number in rows}


# The last number is found at once, while counting would take its part of the machine.
UDP = Kind("udp", socat, "SELECT max(id) FROM chunks", recorded)


def compared(report: Report, rounds: int) -> None:
    """Run with one client, which shows latency, and with many, which show throughput."""
    server = free_port("udp")
    with process(serve, server), SPAWN.Pool(1) as pool:

        def put(port: int, clients: int) -> Load:
            load: Load = pool.apply(register, (port, clients, SECONDS))
            return load

        compare(report, UDP, server, present(), rounds, CLIENTS, put)
