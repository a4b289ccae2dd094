"""Benchmark of the recording UDP relay, compared with a direct connection, socat and mitmdump.

Every client registers at a Mäxchen server, waits for the answer, registers again.
"""

from __future__ import annotations

import socket
import sqlite3
import time
from collections.abc import Sequence

from relays import HOST, START_SECONDS, Kind, Load, Passed, Player, compare, exchange, installed, report_all
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


class Registering(Player):
    """A player who registers, and the number of its answers."""

    def __init__(self, number: int, port: int) -> None:
        super().__init__(b"REGISTER;player-number-%03d" % number)
        self.received = 0
        self._connect(port)

    def receive(self) -> None:
        self.socket.recv(65_535)
        self.received += 1
        self.waiting = False

    def _connect(self, port: int) -> None:
        """Wait for an answer, as a starting relay may lose a new client's data."""
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end:
            # A new socket each time: the peers may still hold an earlier client's port to be closed.
            self.socket = udp_socket()
            self.socket.settimeout(0.1)
            self.socket.connect((HOST, port))
            try:
                self.send(0)
                self.receive()
            except (TimeoutError, ConnectionRefusedError):
                self.socket.close()
                time.sleep(0.05)
            else:
                self.socket.setblocking(False)
                return
        raise RuntimeError(f"nothing comes back from port {port}")


def register(port: int, count: int) -> Load:
    """Let this many players register repeatedly."""
    players = [Registering(number, port) for number in range(count)]
    load = exchange(players, LOST_SECONDS)
    load.passed = {("c2s", player.says): player.sent for player in players}
    load.passed["s2c", ANSWER] = sum(player.received for player in players)
    load.messages = load.finished = sum(load.passed.values())
    return load


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
    for title, found in compare(installed(UDP), serve, register, CLIENTS, rounds):
        report_all(report, title, found)
