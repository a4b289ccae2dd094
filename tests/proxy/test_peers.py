from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from itertools import count

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


class Recorded:
    def __init__(self, plays: Direction) -> None:
        self.items: list[Item] = []
        self.peers = Peers(plays, count(1), self.items.append)

    @property
    def said(self) -> list[tuple[Direction, int, bytes]]:
        return [(item.direction, item.offset, item.data) for item in self.items if isinstance(item, Chunk)]

    @property
    def ends(self) -> list[str]:
        return [item.reason for item in self.items if isinstance(item, End)]

    async def happens(self) -> PeerEvent:
        async with asyncio.timeout(PATIENCE_S):
            return await self.peers.events.get()


def run(trial: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(4 * PATIENCE_S):
            await trial()

    asyncio.run(bounded())


@pytest.mark.parametrize("transport", ["tcp", "udp"])
@pytest.mark.parametrize("is_freed", [True, False])
def test_a_port_may_be_in_use_for_a_moment(transport: Transport, is_freed: bool) -> None:
    """A child process that is being started holds a closed listener until it runs."""

    async def trial() -> None:
        with socket.socket(type=socket.SOCK_STREAM if transport == "tcp" else socket.SOCK_DGRAM) as sock:
            sock.bind(("127.0.0.1", 0))
            port = sock.getsockname()[1]
            if transport == "tcp":
                sock.listen()
            server = Recorded("s2c")
            listening = sockets.listen(server.peers, transport, "127.0.0.1", port, "it")
            if is_freed:
                asyncio.get_running_loop().call_later(0.2, sock.close)
                assert await listening == f"127.0.0.1:{port}"
            else:
                with pytest.raises(RelayError, match="the port is in use"):
                    await listening
            server.peers.close()

    run(trial)


@pytest.mark.parametrize("transport", ["tcp", "udp"])
def test_a_server_and_a_client_communicate(transport: Transport) -> None:
    async def trial() -> None:
        server, client = Recorded("s2c"), Recorded("c2s")
        address = await sockets.listen(server.peers, transport, "127.0.0.1", 0, "the game")
        number = await sockets.connect(client.peers, transport, "127.0.0.1", int(address.rpartition(":")[2]))
        client.peers.send(number, b"hello")
        came = await server.happens()
        assert isinstance(came, Connected)
        assert came.server == "the game"
        assert await server.happens() == DataReceived(came.connection, b"hello")
        server.peers.send(came.connection, b"who")
        assert await client.happens() == DataReceived(number, b"who")
        client.peers.send(number, b" it is me")
        assert await server.happens() == DataReceived(came.connection, b" it is me")
        expected = [("c2s", 0, b"hello"), ("s2c", 0, b"who"), ("c2s", 5, b" it is me")]
        assert server.said == client.said == expected
        server.peers.close()
        client.peers.close()
        assert server.ends == client.ends == ["end"]
        # Whose connection is over, is not spoken to.
        assert client.peers.send(number, b"late")
        assert client.said == expected

    run(trial)


def test_both_hang_up() -> None:
    async def trial() -> None:
        server, client = Recorded("s2c"), Recorded("c2s")
        address = await sockets.listen(server.peers, "tcp", "127.0.0.1", 0, "")
        number = await sockets.connect(client.peers, "tcp", "127.0.0.1", int(address.rpartition(":")[2]))
        came = await server.happens()
        hanging = asyncio.create_task(client.peers.hang_up(number))
        assert await server.happens() == Disconnected(came.connection, "has hung up")
        # The other direction continues until this side closes, too.
        server.peers.send(came.connection, b"bye")
        await server.peers.hang_up(came.connection)
        await hanging
        assert await client.happens() == DataReceived(number, b"bye")
        assert server.ends == client.ends == ["closed"]
        server.peers.close()
        client.peers.close()

    run(trial)


def test_a_client_that_never_reads_is_dropped() -> None:
    async def trial() -> None:
        server = Recorded("s2c")
        address = await sockets.listen(server.peers, "tcp", "127.0.0.1", 0, "")
        with socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2]))):
            came = await server.happens()
            assert isinstance(came, Connected)
            assert server.peers.send(came.connection, b"short")
            assert not server.peers.send(came.connection, bytes(64 << 20))
            with pytest.raises(PeerError, match=r"has read nothing for 0\.2 s"):
                await server.peers.drain(came.connection, 0.2)
            server.peers.close()

    run(trial)


def test_no_more_clients_than_can_be_looked_after(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sockets, "_MAX_CLIENTS", 2)

    async def trial() -> None:
        server = Recorded("s2c")
        address = await sockets.listen(server.peers, "tcp", "127.0.0.1", 0, "")
        clients = []
        for _ in range(3):
            _, writer = await asyncio.open_connection("127.0.0.1", int(address.rpartition(":")[2]))
            clients.append(writer)
        reader, writer = await asyncio.open_connection("127.0.0.1", int(address.rpartition(":")[2]))
        assert await reader.read() == b""
        assert len(server.peers.streams) == 2
        for one in (*clients, writer):
            one.close()
            await one.wait_closed()
        server.peers.close()
        server = Recorded("s2c")
        address = await sockets.listen(server.peers, "udp", "127.0.0.1", 0, "")
        senders = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(3)]
        for sock in senders:
            sock.sendto(b"me", ("127.0.0.1", int(address.rpartition(":")[2])))
        heard = [await server.happens() for _ in range(4)]
        assert [type(one) for one in heard] == [Connected, DataReceived, Connected, DataReceived]
        await asyncio.sleep(0.05)
        assert server.peers.events.empty()
        for sock in senders:
            sock.close()
        server.peers.close()

    run(trial)


@pytest.mark.parametrize("kind", ["nobody", "no answer"])
def test_a_server_that_cannot_be_reached(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sockets, "CONNECT_SECONDS", 0.3)

    async def trial() -> None:
        with socket.socket() as full:
            full.bind(("127.0.0.1", 0))
            waiting: list[socket.socket] = []
            if kind == "no answer":
                # Unaccepted clients fill the queue; the next one gets no answer.
                full.listen(0)
                for _ in range(3):
                    sock = socket.socket()
                    sock.setblocking(False)
                    sock.connect_ex(full.getsockname())
                    waiting.append(sock)
            client = Recorded("c2s")
            says = "Connection refused" if kind == "nobody" else "the server did not answer"
            with pytest.raises(PeerError, match=f"Cannot connect to tcp .*: {says}"):
                await sockets.connect(client.peers, "tcp", *full.getsockname())
            assert not client.items
            for sock in waiting:
                sock.close()

    run(trial)


def test_a_half_closed_connection_still_hears() -> None:
    async def trial() -> None:
        server, client = Recorded("s2c"), Recorded("c2s")
        address = await sockets.listen(server.peers, "tcp", "127.0.0.1", 0, "")
        number = await sockets.connect(client.peers, "tcp", "127.0.0.1", int(address.rpartition(":")[2]))
        came = await server.happens()
        client.peers.half_close(number)
        assert await server.happens() == Disconnected(came.connection, "has hung up")
        server.peers.send(came.connection, b"still here")
        assert await client.happens() == DataReceived(number, b"still here")
        server.peers.close()
        client.peers.close()

    run(trial)


def test_a_reset_is_distinguished_from_an_end() -> None:
    async def trial() -> None:
        server, client = Recorded("s2c"), Recorded("c2s")
        address = await sockets.listen(server.peers, "tcp", "127.0.0.1", 0, "")
        number = await sockets.connect(client.peers, "tcp", "127.0.0.1", int(address.rpartition(":")[2]))
        came = await server.happens()
        client.peers.reset(number)
        assert await server.happens() == Disconnected(came.connection, RESET)
        assert client.ends == ["reset"]
        server.peers.close()
        client.peers.close()

    run(trial)
