"""A relay of UDP in this process, with a server that echoes."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import uvloop

from kiebitz.dissectors.model import Chunk, Item
from kiebitz.proxy.forwarder import Forwarder
from kiebitz.proxy.journal.reader import JournalReader
from kiebitz.proxy.journal.writer import JournalWriter
from kiebitz.proxy.relay.endpoints import RelayError, endpoint_text
from kiebitz.proxy.relay.modes import Mode, Reverse, parse_mode
from kiebitz.proxy.relay.tcp import TcpRelay
from kiebitz.proxy.relay.udp import UdpRelay

SECONDS = 60.0
"""Time limit in seconds."""
V4, V6 = socket.AF_INET, socket.AF_INET6
HOSTS = {V4: "127.0.0.1", V6: "::1"}


def eventually(true: Callable[[], object]) -> None:
    end = time.monotonic() + SECONDS
    while not true():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.01)


class Echo:
    """A server that sends everything back, and remembers from where it came."""

    def __init__(self, family: socket.AddressFamily = V4, port: int = 0) -> None:
        self.socket = socket.socket(family, socket.SOCK_DGRAM)
        self.socket.bind((HOSTS[family], port))
        self.port: int = self.socket.getsockname()[1]
        self.name = endpoint_text(self.socket.getsockname())
        self.came: list[tuple[bytes, tuple[str, int]]] = []
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while True:
            data, address = self.socket.recvfrom(65_535)
            if data == b"stop the server":
                return
            self.came.append((data, address))
            self.socket.sendto(data, address)

    def __enter__(self) -> Echo:
        return self

    def __exit__(self, *_: object) -> None:
        with socket.socket(self.socket.family, socket.SOCK_DGRAM) as own:
            own.sendto(b"stop the server", self.socket.getsockname())
        self._thread.join(SECONDS)
        self.socket.close()


class Running:
    """A forwarder in a thread. After `stop`, `items` is what its journal holds."""

    def __init__(self, directory: Path, loop: asyncio.AbstractEventLoop, forwarder: Forwarder) -> None:
        self.notices: list[tuple[str, str]] = []
        self.directory = directory
        self.forwarder = forwarder
        self.items: list[Item] = []
        self.loop = loop
        self.thread = threading.Thread(target=loop.run_until_complete, args=(forwarder.run(),), daemon=True)
        self.thread.start()

    def address(self, relay: int = 0) -> tuple[str, int]:
        running = self.forwarder.relays[relay]
        assert isinstance(running, TcpRelay | UdpRelay)
        host, _, port = running.address.rpartition(":")
        return host.strip("[]"), int(port)

    def stop(self) -> None:
        self.loop.call_soon_threadsafe(self.forwarder.stop)
        self.thread.join(SECONDS)
        assert not self.thread.is_alive()
        self.loop.close()
        reader = JournalReader(self.directory)
        while batch := reader.read():
            self.items += batch
        reader.close()

    def chunks(self, direction: str, client: str) -> list[Chunk]:
        return [
            item
            for item in self.items
            if isinstance(item, Chunk) and item.direction == direction and item.stream.client == client
        ]


@contextmanager
def relaying(
    directory: Path,
    *modes: Mode,
    new_loop: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop,
    idle_seconds: float = 600.0,
    max_clients: int = 4096,
    max_connections: int = 4096,
    keep_source: bool = False,
) -> Iterator[Running]:
    notices: list[tuple[str, str]] = []
    forwarder = Forwarder(
        modes,
        JournalWriter(directory / "journal", on_trouble=lambda text: notices.append(("journal", text))),
        on_notice=lambda code, text: notices.append((code, text)),
        idle_seconds=idle_seconds,
        max_clients=max_clients,
        max_connections=max_connections,
        keep_source=keep_source,
    )
    running = Running(directory / "journal", new_loop(), forwarder)
    running.notices = notices
    try:
        yield running
    finally:
        running.stop()


def to(server: Echo, family: socket.AddressFamily = V4) -> Reverse:
    """Return a mode that relays to `server` and listens on any port of `family`."""
    return Reverse("udp", HOSTS[server.socket.family], server.port, HOSTS[family], 0)


@contextmanager
def client_of(relay: tuple[str, int], family: socket.AddressFamily = V4) -> Iterator[socket.socket]:
    with socket.socket(family, socket.SOCK_DGRAM) as client:
        client.settimeout(SECONDS)
        client.bind((HOSTS[family], 0))
        client.connect(relay)
        yield client


def ask(client: socket.socket, data: bytes) -> bytes:
    client.send(data)
    return client.recv(65_535)


def name(client: socket.socket) -> str:
    return endpoint_text(client.getsockname())


def mode_problem(spec: str, directory: Path) -> str:
    with pytest.raises(RelayError) as refusal:
        Forwarder(
            [parse_mode(spec)],
            JournalWriter(directory, on_trouble=print),
            on_notice=lambda code, text: None,
        )
    return str(refusal.value)
