"""The UDP relay with real sockets on the loopback: what one end sends the other gets, and the journal has."""

from __future__ import annotations

import errno
import os
import socket
import time
from contextlib import ExitStack
from pathlib import Path
from typing import ClassVar

import pytest
from tcp_relays import LOOPS, NewLoop
from udp_relays import V4, V6, Echo, ask, client_of, eventually, mode_problem, name, relaying, to

from kiebitz.dissectors.model import Chunk, End, Fault
from kiebitz.proxy.forwarder import Forwarder
from kiebitz.proxy.journal.writer import JournalWriter
from kiebitz.proxy.relay.endpoints import RelayError, resolve
from kiebitz.proxy.relay.modes import parse_mode


@LOOPS
@pytest.mark.parametrize(("ours", "theirs"), [(V4, V4), (V6, V6), (V4, V6), (V6, V4)])
def test_all_sizes_reach_both_ends_and_the_journal(
    tmp_path: Path, ours: socket.AddressFamily, theirs: socket.AddressFamily, new_loop: NewLoop
) -> None:
    sent = [os.urandom(size) for size in (0, 1, 2, 1399, 1500, 9000, 0, 32_768, 65_506, 65_507)]
    with (
        Echo(theirs) as server,
        relaying(tmp_path, to(server, ours), new_loop=new_loop) as relay,
        client_of(relay.address(), ours) as client,
    ):
        for data in sent:
            assert ask(client, data) == data
        me = name(client)
    assert [data for data, _ in server.came] == sent
    for direction in ("c2s", "s2c"):
        chunks = relay.chunks(direction, me)
        assert [chunk.data for chunk in chunks] == sent
        assert [chunk.offset for chunk in chunks] == [sum(map(len, sent[:i])) for i in range(len(sent))]
        assert all(chunk.stream.server == server.name for chunk in chunks)
    assert [type(item) for item in relay.items[:2]] == [Chunk, Chunk]
    ends = [item for item in relay.items if isinstance(item, End)]
    assert [end.reason for end in ends] == ["end"]
    assert relay.notices == []


def test_many_clients_each_with_a_port_of_their_own_that_stays(tmp_path: Path) -> None:
    with Echo() as server, relaying(tmp_path, to(server)) as relay, ExitStack() as stack:
        clients = [stack.enter_context(client_of(relay.address())) for _ in range(100)]
        for turn in range(5):
            for i, client in enumerate(clients):
                client.send(f"{i} {turn}".encode())
            for i, client in enumerate(clients):
                assert client.recv(100) == f"{i} {turn}".encode()
        names = [name(client) for client in clients]
    ports: dict[bytes, set[tuple[str, int]]] = {}
    for data, address in server.came:
        ports.setdefault(data.split()[0], set()).add(address)
    assert {len(addresses) for addresses in ports.values()} == {1}
    assert len(set().union(*ports.values())) == 100
    for i, client_name in enumerate(names):
        sent = [f"{i} {turn}".encode() for turn in range(5)]
        assert [chunk.data for chunk in relay.chunks("c2s", client_name)] == sent
        assert [chunk.data for chunk in relay.chunks("s2c", client_name)] == sent


def test_a_burst_keeps_its_order_both_ways(tmp_path: Path) -> None:
    with Echo() as server, relaying(tmp_path, to(server)) as relay, client_of(relay.address()) as client:
        sent = [str(i).encode() for i in range(200)]
        for data in sent:
            client.send(data)
        assert [client.recv(100) for _ in sent] == sent
        me = name(client)
    assert [data for data, _ in server.came] == sent
    assert [chunk.data for chunk in relay.chunks("c2s", me)] == sent
    assert [chunk.data for chunk in relay.chunks("s2c", me)] == sent


def test_the_server_may_speak_first_and_only_the_server(tmp_path: Path) -> None:
    with Echo() as server, relaying(tmp_path, to(server)) as relay, client_of(relay.address()) as client:
        ask(client, b"HELLO")
        _, port = server.came[0]
        with socket.socket(V4, socket.SOCK_DGRAM) as stranger:
            stranger.sendto(b"I am the server", port)
        server.socket.sendto(b"ROUND STARTING", port)
        assert client.recv(100) == b"ROUND STARTING"
        me = name(client)
    assert [chunk.data for chunk in relay.chunks("s2c", me)] == [b"HELLO", b"ROUND STARTING"]


def test_silence_ends_an_association_and_talk_keeps_it(tmp_path: Path) -> None:
    with (
        Echo() as server,
        relaying(tmp_path, to(server), idle_seconds=0.3) as relay,
        client_of(relay.address()) as silent,
        client_of(relay.address()) as talking,
    ):
        ask(silent, b"a")
        for _ in range(10):
            ask(talking, b"t")
            time.sleep(0.05)
        ask(silent, b"b")
        mine, other = name(silent), name(talking)
    ports = [address for data, address in server.came if data != b"t"]
    assert ports[0] != ports[1]
    assert len({address for data, address in server.came if data == b"t"}) == 1
    first, second = relay.chunks("c2s", mine)
    assert (first.data, first.offset, second.data, second.offset) == (b"a", 0, b"b", 0)
    assert first.stream is not second.stream
    reasons = [(item.stream.client, item.reason) for item in relay.items if isinstance(item, End)]
    assert reasons == [(mine, "idle"), (other, "end"), (mine, "end")]


def test_the_longest_silent_client_gives_way(tmp_path: Path) -> None:
    with Echo() as server, relaying(tmp_path, to(server), max_clients=2) as relay, ExitStack() as stack:
        a, b, c = (stack.enter_context(client_of(relay.address())) for _ in range(3))
        for client in (a, b, a, c, a):
            assert ask(client, b"x") == b"x"
        evicted = name(b)
    ends = [(item.stream.client, item.reason) for item in relay.items if isinstance(item, End)]
    assert ends[0] == (evicted, "evicted")
    assert [reason for _, reason in ends] == ["evicted", "end", "end"]


@pytest.mark.parametrize("family", [V4, V6])
@LOOPS
def test_a_server_that_is_not_there_yet(
    tmp_path: Path, family: socket.AddressFamily, new_loop: NewLoop
) -> None:
    with Echo(family) as server:
        mode = to(server, family)
    with (
        relaying(tmp_path, mode, new_loop=new_loop) as relay,
        client_of(relay.address(), family) as client,
    ):
        for i in range(3):
            client.send(b"anybody?")
            eventually(lambda i=i: len(relay.notices) > i)  # type: ignore[misc]  # mypy: no lambda with defaults
        with Echo(family, mode.port) as server:
            assert ask(client, b"here") == b"here"
            for _ in range(3):
                assert ask(client, b"still") == b"still"
    assert {code for code, _ in relay.notices} == {"port-unreachable"}
    assert "no program listens on that port" in relay.notices[0][1]
    faults = [item for item in relay.items if isinstance(item, Fault)]
    assert [(fault.direction, fault.code, fault.offset) for fault in faults] == [
        ("c2s", "port-unreachable", 8),
        ("c2s", "port-unreachable", 16),
        ("c2s", "port-unreachable", 24),
    ]
    assert len({fault.stream.id for fault in faults}) == 1
    assert len([item for item in relay.items if isinstance(item, End)]) == 1


class Troubled(socket.socket):
    """A socket whose next sends fail with the errors in `errors`, one each; with `full`, all fail."""

    errors: ClassVar[list[int]] = []
    full = False

    def send(self, data: bytes, *_: int) -> int:  # type: ignore[override]  # one of its two forms is enough
        if Troubled.full:
            raise OSError(errno.ENOBUFS, "No buffer space available")
        if Troubled.errors:
            number = Troubled.errors.pop()
            raise OSError(number, os.strerror(number))
        return super().send(data)


def test_a_datagram_sent_after_an_icmp_error_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error of one datagram is reported in place of sending the next, which must then be sent again."""
    with Echo() as server, relaying(tmp_path, to(server)) as relay, client_of(relay.address()) as client:
        monkeypatch.setattr(socket, "socket", Troubled)
        ask(client, b"before")
        monkeypatch.setattr(Troubled, "errors", [errno.ECONNREFUSED])
        assert ask(client, b"after") == b"after"
    assert [code for code, _ in relay.notices] == ["port-unreachable"]


def test_a_datagram_too_big_for_the_way_there_is_a_fault_only(tmp_path: Path) -> None:
    with (
        Echo() as server,
        relaying(tmp_path, to(server, V6)) as relay,
        client_of(relay.address(), V6) as client,
    ):
        client.send(bytes(65_527))  # as much as UDP over IPv6 takes, and 20 bytes too much for IPv4
        assert ask(client, b"next") == b"next"
    faults = [item for item in relay.items if isinstance(item, Fault)]
    assert [(fault.code, fault.direction) for fault in faults] == [("too-big", "c2s")]


def test_a_full_socket_queues_the_rest_in_order_and_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Echo() as server, relaying(tmp_path, to(server)) as relay, client_of(relay.address()) as client:
        monkeypatch.setattr(socket, "socket", Troubled)
        ask(client, b"open")
        monkeypatch.setattr(Troubled, "full", True)
        for i in range(266):
            client.send(str(i).encode())
        eventually(lambda: len(relay.notices) == 10)
        monkeypatch.setattr(Troubled, "full", False)
        assert [client.recv(100) for _ in range(256)] == [str(i).encode() for i in range(10, 266)]
        assert ask(client, b"last") == b"last"
        me = name(client)
    assert {code for code, _ in relay.notices} == {"overflow"}
    assert len(relay.chunks("c2s", me)) == 268


def test_running_out_of_sockets_is_reported_and_survived(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none_left(*_: object) -> socket.socket:
        raise OSError(errno.EMFILE, "Too many open files")

    with (
        Echo() as server,
        relaying(tmp_path, to(server)) as relay,
        client_of(relay.address()) as a,
        client_of(relay.address()) as b,
    ):
        ask(a, b"x")
        with monkeypatch.context() as patch:
            patch.setattr(socket, "socket", none_left)
            b.send(b"dropped")
            eventually(lambda: relay.notices)
            assert ask(a, b"y") == b"y"
        assert ask(b, b"z") == b"z"
    assert [code for code, _ in relay.notices] == ["no-socket"]
    assert "Too many open files" in relay.notices[0][1]


def test_why_it_cannot_start(tmp_path: Path) -> None:
    with Echo() as other:
        taken = f"reverse:udp://127.0.0.1:9@{other.port}"
        assert f"udp {other.name}: the port is in use" in mode_problem(taken, tmp_path / "a")
    elsewhere = mode_problem("reverse:udp://127.0.0.1:9@192.0.2.1:9001", tmp_path / "b")
    assert "udp 192.0.2.1:9001: this machine does not have that address" in elsewhere
    assert "is not a valid name" in mode_problem(f"reverse:udp://{'a' * 70}.b:1@2000", tmp_path / "f")


def test_an_unknown_name_and_a_port_for_the_administrator_are_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    class Unprivileged(socket.socket):
        def bind(self, _: object) -> None:
            raise PermissionError(errno.EACCES, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr(socket, "getaddrinfo", unknown)
        problem = mode_problem("reverse:udp://game.example:9@9001", tmp_path / "a")
    assert problem.startswith("The host 127.0.0.1 cannot be resolved: Name or service not known.")
    monkeypatch.setattr(socket, "socket", Unprivileged)
    problem = mode_problem("reverse:udp://127.0.0.1:9000@53", tmp_path / "b")
    assert "udp 127.0.0.1:53: this port is reserved for the administrator" in problem


def test_a_refused_mode_leaves_no_port_taken(tmp_path: Path) -> None:
    with Echo() as other, socket.socket(V4, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        modes = [parse_mode(f"reverse:udp://127.0.0.1:9@{p}") for p in (port, other.port)]
        journal = JournalWriter(tmp_path / "journal", on_trouble=print)
        with pytest.raises(RelayError):
            Forwarder(modes, journal, on_notice=lambda code, text: None)
        with socket.socket(V4, socket.SOCK_DGRAM) as again:
            again.bind(("127.0.0.1", port))


def test_a_name_with_both_kinds_of_address_follows_the_listener(monkeypatch: pytest.MonkeyPatch) -> None:
    both = [(V6, 2, 17, "", ("::1", 9, 0, 0)), (V4, 2, 17, "", ("127.0.0.1", 9))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: both)
    assert resolve("game", 9, "udp") == (V6, ("::1", 9, 0, 0))
    assert resolve("game", 9, "udp", prefer=V4) == (V4, ("127.0.0.1", 9))
