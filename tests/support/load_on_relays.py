"""Numbered messages that go through a relay until it is killed."""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import subprocess
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from processes_and_rows import KIEBITZ, PATIENCE_S, child_of, free_port, rows, until

from kiebitz.dissectors.model import Direction, Transport

CLIENTS = 4
LENGTH = 100
"""Length of each message in bytes, without line ends: detection of lines would cost time."""


class Load:
    """Clients who each send a numbered message when the echo of the last one has come, and an echo server."""

    def __init__(self, transport: Transport, is_direct: bool = False, pause_s: float = 0.0) -> None:
        self.transport: Transport = transport
        self._pause_s = pause_s
        kind = socket.SOCK_DGRAM if transport == "udp" else socket.SOCK_STREAM
        self._server = socket.socket(socket.AF_INET, kind)
        self._server.bind(("127.0.0.1", 0))
        server_port = self._server.getsockname()[1]
        self.port = server_port if is_direct else free_port(transport)
        self.mode = f"reverse:{transport}://127.0.0.1:{server_port}@{self.port}"
        self.seen: defaultdict[int, dict[Direction, list[float]]]
        self.seen = defaultdict(lambda: {"c2s": [], "s2c": []})
        """When each message arrived, by the client's port and its direction."""
        self.longest_stall_s = 0.0
        """Longest time for which this process was kept from running: how busy the machine is."""
        self._is_over = False
        self._threads: list[threading.Thread] = []
        self._start(self._watch)
        if transport == "udp":
            self._start(self._serve_udp)
        else:
            self._server.listen(CLIENTS)
            self._start(self._serve_tcp)

    def begin(self) -> None:
        """Start the clients as soon as the relay listens."""
        for _ in range(CLIENTS):
            self._start(self._play)

    @property
    def is_forwarded(self) -> bool:
        return any(times["s2c"] for times in [*self.seen.values()])

    def close(self) -> None:
        self._is_over = True
        with suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(PATIENCE_S)
        self._server.close()

    def _start(self, target: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=target, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _watch(self) -> None:
        while not self._is_over:
            before = time.monotonic()
            time.sleep(0.005)
            self.longest_stall_s = max(self.longest_stall_s, time.monotonic() - before - 0.005)

    def _serve_udp(self) -> None:
        self._server.settimeout(0.05)
        while not self._is_over:
            with suppress(OSError):
                data, address = self._server.recvfrom(200)
                self.seen[int(data[:5])]["c2s"].append(time.monotonic())
                self._server.sendto(data, address)

    def _serve_tcp(self) -> None:
        while not self._is_over:
            with suppress(OSError):
                connection, _ = self._server.accept()
                self._start(self._echo, connection)

    def _echo(self, connection: socket.socket) -> None:
        with connection, suppress(OSError, ValueError):
            connection.settimeout(0.5)
            for data in _messages(connection):
                self.seen[int(data[:5])]["c2s"].append(time.monotonic())
                connection.sendall(data)

    def _play(self) -> None:
        kind = socket.SOCK_DGRAM if self.transport == "udp" else socket.SOCK_STREAM
        while not self._is_over:
            with socket.socket(socket.AF_INET, kind) as client, suppress(OSError):
                client.settimeout(0.5)
                client.connect(("127.0.0.1", self.port))
                port = client.getsockname()[1]
                times = self.seen[port]["s2c"]
                messages = _messages(client) if self.transport == "tcp" else None
                while not self._is_over:
                    message = (b"%05d %08d " % (port, len(times))).ljust(LENGTH, b".")
                    client.sendall(message)
                    answer = client.recv(200) if messages is None else next(messages, b"")
                    if answer != message:
                        break
                    times.append(time.monotonic())
                    if self._pause_s:
                        time.sleep(self._pause_s)
            # The relay does not listen yet, or no longer.
            time.sleep(0.01)


def _messages(connection: socket.socket) -> Iterator[bytes]:
    with connection.makefile("rb") as file:
        while len(message := file.read(LENGTH)) == LENGTH:
            yield message


class Killed(NamedTuple):
    """The result of a kill: forwarded and lost messages, and the age (seconds) of the oldest lost one."""

    forwarded: int
    lost: int
    oldest_s: float
    stall_s: float


@contextmanager
def group(*command: str) -> Iterator[subprocess.Popen[bytes]]:
    """Yield a program with a process group of its own, which is killed after the block."""
    process = subprocess.Popen([*KIEBITZ, *command], start_new_session=True, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def leftover(folder: Path) -> Path:
    (found,) = folder.glob(".*-spool-*")
    return found


def wait_until_all_are_gone(folder: Path) -> None:
    """Wait until no process holds the folder: the kernel ends them in its own time."""
    descriptor = os.open(leftover(folder), os.O_RDONLY)

    def is_free() -> bool:
        with suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        return False

    try:
        until(is_free, "all processes are gone")
    finally:
        os.close(descriptor)


def kill_under_load(
    transport: Transport, folder: Path, after_s: float, *options: str, stopped_s: float = 0.0
) -> tuple[Load, float]:
    """Kill a relay and its recorder `after_s` seconds after the first forwarded message; return when.

    The recorder is stopped `stopped_s` seconds before.
    """
    with ExitStack() as ending:
        load = Load(transport)
        ending.callback(load.close)
        load.begin()
        relay = ending.enter_context(
            group("relay", "-m", load.mode, "-w", str(folder / "game.db"), "-q", *options)
        )
        until(lambda: load.is_forwarded, "the first message is forwarded")
        time.sleep(after_s)
        if stopped_s:
            os.kill(child_of(relay.pid), signal.SIGSTOP)
            time.sleep(stopped_s)
        killed_at = time.monotonic()
        os.killpg(relay.pid, signal.SIGKILL)
        relay.wait()
        wait_until_all_are_gone(folder)
    return load, killed_at


def recorded_numbers(database: Path, transport: Transport) -> dict[tuple[int, Direction], list[int]]:
    """Return the numbers of the recorded messages, by the client's port and direction."""
    found: dict[tuple[int, Direction], list[bytes]] = {}
    query = "SELECT client, direction, data FROM chunks c JOIN streams s ON s.id = stream_id ORDER BY c.id"
    for client, direction, data in rows(database, query):
        found.setdefault((int(client.rpartition(":")[2]), direction), []).append(data)
    numbers = {}
    for way, parts in found.items():
        data = b"".join(parts)
        if transport == "udp":
            assert all(len(part) == LENGTH for part in parts)
        numbers[way] = [int(data[at + 6 : at + 14]) for at in range(0, len(data) - LENGTH + 1, LENGTH)]
    return numbers


def cost(load: Load, killed_at: float, database: Path) -> Killed:
    """Compare the forwarded bytes with the recorded ones; each recorded direction is a prefix."""
    recorded = recorded_numbers(database, load.transport)
    forwarded = lost = 0
    oldest_s = 0.0
    for port, seen in load.seen.items():
        for direction, times in seen.items():
            numbers = recorded.get((port, direction), [])
            assert numbers == list(range(len(numbers))), "something is missing in between, or there twice"
            missing = times[len(numbers) :]
            forwarded += len(times)
            lost += len(missing)
            oldest_s = max([oldest_s, *(killed_at - at for at in missing)])
    return Killed(forwarded, lost, oldest_s, load.longest_stall_s)
