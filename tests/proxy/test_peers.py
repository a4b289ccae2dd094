from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import wraps
from itertools import count
from typing import ParamSpec

import pytest

from kiebitz.dissectors.model import Chunk, Direction, End, Item, Transport
from kiebitz.proxy.peers import sockets
from kiebitz.proxy.peers.connections import (
    RESET,
    Connected,
    DataReceived,
    Disconnected,
    PeerError,
    PeerEvent,
    Peers,
)
from kiebitz.proxy.relay.endpoints import RelayError

PATIENCE_S = 30.0
P = ParamSpec("P")


class Recorded:
    def __init__(self, plays: Direction, max_clients: int = 9) -> None:
        self.items: list[Item] = []
        self.peers = Peers(plays, count(1), self.items.append, max_clients)
        self.port = 0

    @property
    def said(self) -> list[tuple[Direction, int, bytes]]:
        return [(item.direction, item.offset, item.data) for item in self.items if isinstance(item, Chunk)]

    @property
    def ends(self) -> list[str]:
        return [item.reason for item in self.items if isinstance(item, End)]

    async def happens(self) -> PeerEvent:
        async with asyncio.timeout(PATIENCE_S):
            return await self.peers.events.get()


def in_loop(trial: Callable[P, Awaitable[None]]) -> Callable[P, None]:
    """Return a test that runs in an event loop, for a limited time."""

    @wraps(trial)
    def run(*args: P.args, **named: P.kwargs) -> None:
        async def bounded() -> None:
            async with asyncio.timeout(4 * PATIENCE_S):
                await trial(*args, **named)

        asyncio.run(bounded())

    return run


@asynccontextmanager
async def listening(transport: Transport = "tcp", max_clients: int = 9) -> AsyncIterator[Recorded]:
    server = Recorded("s2c", max_clients)
    address = await sockets.listen(server.peers, transport, "127.0.0.1", 0, "the game")
    server.port = int(address.rpartition(":")[2])
    yield server
    server.peers.close()


@asynccontextmanager
async def linked(transport: Transport = "tcp") -> AsyncIterator[tuple[Recorded, int, Recorded, int]]:
    """Yield a server and a client that has said hello, each with the number of their connection."""
    async with listening(transport) as server:
        client = Recorded("c2s")
        number = await sockets.connect(client.peers, transport, "127.0.0.1", server.port)
        client.peers.send(number, b"hello")
        came = await server.happens()
        assert isinstance(came, Connected)
        assert came.server == "the game"
        assert await server.happens() == DataReceived(came.connection, b"hello")
        yield server, came.connection, client, number
        client.peers.close()


@pytest.mark.full(but=1)
@pytest.mark.parametrize("transport", ["tcp", "udp"])
@pytest.mark.parametrize("is_freed", [True, False])
@in_loop
async def test_a_port_may_be_in_use_for_a_moment(transport: Transport, is_freed: bool) -> None:
    """A child process that is being started holds a closed listener until it runs."""
    with socket.socket(type=socket.SOCK_STREAM if transport == "tcp" else socket.SOCK_DGRAM) as sock:
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]
        if transport == "tcp":
            sock.listen()
        server = Recorded("s2c")
        trying = sockets.listen(server.peers, transport, "127.0.0.1", port, "it")
        if is_freed:
            asyncio.get_running_loop().call_later(0.2, sock.close)
            assert await trying == f"127.0.0.1:{port}"
        else:
            with pytest.raises(RelayError, match="the port is in use"):
                await trying
        server.peers.close()


@pytest.mark.parametrize("transport", ["tcp", "udp"])
@in_loop
async def test_a_server_and_a_client_communicate(transport: Transport) -> None:
    async with linked(transport) as (server, connection, client, number):
        server.peers.send(connection, b"who")
        assert await client.happens() == DataReceived(number, b"who")
        client.peers.send(number, b" it is me")
        assert await server.happens() == DataReceived(connection, b" it is me")
        expected = [("c2s", 0, b"hello"), ("s2c", 0, b"who"), ("c2s", 5, b" it is me")]
        assert server.said == client.said == expected
        server.peers.close()
        client.peers.close()
        assert server.ends == client.ends == ["end"]
        # Whose connection is over, is not spoken to.
        assert client.peers.send(number, b"late")
        assert client.said == expected


@in_loop
async def test_both_hang_up() -> None:
    async with linked() as (server, connection, client, number):
        hanging = asyncio.create_task(client.peers.hang_up(number))
        assert await server.happens() == Disconnected(connection, "has hung up")
        # The other direction continues until this side closes, too.
        server.peers.send(connection, b"bye")
        await server.peers.hang_up(connection)
        await hanging
        assert await client.happens() == DataReceived(number, b"bye")
        assert server.ends == client.ends == ["closed"]


@in_loop
async def test_a_half_closed_connection_still_hears() -> None:
    async with linked() as (server, connection, client, number):
        client.peers.half_close(number)
        assert await server.happens() == Disconnected(connection, "has hung up")
        server.peers.send(connection, b"still here")
        assert await client.happens() == DataReceived(number, b"still here")


@in_loop
async def test_a_reset_is_distinguished_from_an_end() -> None:
    async with linked() as (server, connection, client, number):
        client.peers.reset(number)
        assert await server.happens() == Disconnected(connection, RESET)
        assert client.ends == ["reset"]


@in_loop
async def test_a_client_that_never_reads_is_dropped() -> None:
    async with listening() as server:
        with socket.create_connection(("127.0.0.1", server.port)):
            came = await server.happens()
            assert isinstance(came, Connected)
            assert server.peers.send(came.connection, b"short")
            assert not server.peers.send(came.connection, bytes(64 << 20))
            with pytest.raises(PeerError, match=r"has read nothing for 0\.2 s"):
                await server.peers.drain(came.connection, 0.2)


@in_loop
async def test_no_more_clients_than_can_be_looked_after() -> None:
    async with listening(max_clients=2) as server:
        clients = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(4)]
        assert await clients[-1][0].read() == b""
        assert len(server.peers.streams) == 2
        for _, writer in clients:
            writer.close()
            await writer.wait_closed()
    async with listening("udp", max_clients=2) as server:
        senders = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(3)]
        for sock in senders:
            sock.sendto(b"me", ("127.0.0.1", server.port))
        heard = [await server.happens() for _ in range(4)]
        assert [type(one) for one in heard] == [Connected, DataReceived, Connected, DataReceived]
        await asyncio.sleep(0.05)
        assert server.peers.events.empty()
        for sock in senders:
            sock.close()


@pytest.mark.parametrize(
    ("backlog", "says"), [(None, "Connection refused"), (0, "the server did not answer")]
)
@in_loop
async def test_a_server_that_cannot_be_reached(
    backlog: int | None, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sockets, "CONNECT_SECONDS", 0.3)
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        waiting = [socket.socket() for _ in range(3)]
        if backlog is not None:
            # Unaccepted clients fill the queue; the next one gets no answer.
            full.listen(backlog)
            for sock in waiting:
                sock.setblocking(False)
                sock.connect_ex(full.getsockname())
        client = Recorded("c2s")
        with pytest.raises(PeerError, match=f"Cannot connect to tcp .*: {says}"):
            await sockets.connect(client.peers, "tcp", *full.getsockname())
        assert not client.items
        for sock in waiting:
            sock.close()
