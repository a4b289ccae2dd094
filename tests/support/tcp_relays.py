"""A relay of TCP in this process, with its servers and clients."""

from __future__ import annotations

import asyncio
import resource
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import uvloop
from udp_relays import HOSTS, SECONDS, V4, Running, relaying

from kiebitz.proxy.relay.modes import Reverse

LOOPS = pytest.mark.parametrize(
    "new_loop", [uvloop.new_event_loop, asyncio.new_event_loop], ids=["uvloop", "asyncio"]
)
MOSTLY_UVLOOP = pytest.mark.parametrize(
    "new_loop",
    [uvloop.new_event_loop, pytest.param(asyncio.new_event_loop, marks=pytest.mark.full)],
    ids=["uvloop", "asyncio"],
)
"""For what takes its time, and does not depend on the loop but by mistake."""
NewLoop = Callable[[], asyncio.AbstractEventLoop]


@contextmanager
def serving(family: socket.AddressFamily = V4, port: int = 0) -> Iterator[socket.socket]:
    """Yield a listening socket; the tests play the server themselves."""
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.settimeout(SECONDS)
        listener.bind((HOSTS[family], port))
        listener.listen(4096)
        yield listener


def to(server: socket.socket, family: socket.AddressFamily = V4) -> Reverse:
    host, port = server.getsockname()[:2]
    return Reverse("tcp", host, port, HOSTS[family], 0)


def connect(relay: Running, family: socket.AddressFamily = V4) -> socket.socket:
    client = socket.socket(family, socket.SOCK_STREAM)
    client.settimeout(SECONDS)
    client.connect(relay.address())
    return client


@contextmanager
def connected(
    relay: Running, server: socket.socket, family: socket.AddressFamily = V4
) -> Iterator[tuple[socket.socket, socket.socket]]:
    """Yield a client's socket and the server's, with the relay between them."""
    with connect(relay, family) as client:
        there, _ = server.accept()
        with there:
            there.settimeout(SECONDS)
            yield client, there


@contextmanager
def paired(
    folder: Path, new_loop: NewLoop, ours: socket.AddressFamily = V4, theirs: socket.AddressFamily = V4
) -> Iterator[tuple[Running, socket.socket, socket.socket]]:
    """Yield a relay in `folder` with a connection through it: the client's socket and the server's."""
    with (
        serving(theirs) as server,
        relaying(folder, to(server, ours), new_loop=new_loop) as relay,
        connected(relay, server, ours) as (client, there),
    ):
        yield relay, client, there


def receive(sock: socket.socket, count: int) -> bytes:
    """Receive this many bytes, or all before the end."""
    data = b""
    while len(data) < count and (piece := sock.recv(count - len(data))):
        data += piece
    return data


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
