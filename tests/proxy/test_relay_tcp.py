"""The TCP relay with real sockets on the loopback: what one end sends the other gets, and the journal has."""

from __future__ import annotations

import errno
import os
import random
import resource
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest
from processes_and_rows import KIEBITZ, free_port, rows, running
from tcp_relays import (
    LOOPS,
    MOSTLY_UVLOOP,
    NewLoop,
    connect,
    connected,
    paired,
    receive,
    resident_bytes,
    serving,
    to,
)
from udp_relays import HOSTS, SECONDS, V4, V6, Running, eventually, mode_problem, relaying

from kiebitz.dissectors.model import Chunk, End, Fault
from kiebitz.proxy.forwarder import Forwarder
from kiebitz.proxy.journal.writer import JournalWriter
from kiebitz.proxy.relay import tcp as relay_tcp
from kiebitz.proxy.relay.endpoints import endpoint_text
from kiebitz.proxy.relay.modes import Reverse


@contextmanager
def deaf() -> Iterator[socket.socket]:
    """Yield a server whose queue is full: what comes then is not even refused."""
    with socket.socket(V4, socket.SOCK_STREAM) as listener, ExitStack() as stack:
        listener.bind((HOSTS[V4], 0))
        listener.listen(0)
        for _ in range(3):
            waiting = stack.enter_context(socket.socket(V4, socket.SOCK_STREAM))
            waiting.setblocking(False)
            waiting.connect_ex(listener.getsockname())
        yield listener


def until_end(sock: socket.socket) -> bytes:
    return b"".join(iter(lambda: sock.recv(65_536), b""))


def reset(sock: socket.socket) -> None:
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()


def assert_reset(sock: socket.socket) -> None:
    with pytest.raises(ConnectionResetError):
        until_end(sock)


def journaled(relay: Running, direction: str, client: str | None = None) -> bytes:
    data = b""
    for item in relay.items:
        if isinstance(item, Chunk) and item.direction == direction and client in (None, item.stream.client):
            assert item.offset == len(data)
            data += item.data
    return data


def ends(relay: Running) -> list[str]:
    return [item.reason for item in relay.items if isinstance(item, End)]


def faults(relay: Running) -> list[Fault]:
    return [item for item in relay.items if isinstance(item, Fault)]


def on_disk(relay: Running) -> str:
    """Return the journal as it is now."""
    return (relay.directory / "00000001.journal").read_bytes().decode("latin-1")


def send(sock: socket.socket, data: bytes, seed: int) -> threading.Thread:
    sizes = random.Random(seed)

    def run() -> None:
        at = 0
        while at < len(data):
            size = int(2 ** sizes.uniform(0, 18))
            sock.sendall(data[at : at + size])
            at += size
        sock.shutdown(socket.SHUT_WR)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread


@pytest.mark.full(but=3)
@LOOPS
@pytest.mark.parametrize(("ours", "theirs"), [(V4, V4), (V6, V6), (V4, V6), (V6, V4)])
def test_bytes_of_both_ways_at_once_reach_the_other_end_and_the_journal(
    tmp_path: Path, ours: socket.AddressFamily, theirs: socket.AddressFamily, new_loop: NewLoop
) -> None:
    up, down = os.urandom(3_000_000), os.urandom(3_000_001)
    with paired(tmp_path, new_loop, ours, theirs) as (relay, client, there):
        threads = [send(client, up, 1), send(there, down, 2)]
        got: list[bytes] = []
        reader = threading.Thread(target=lambda: got.append(until_end(client)))
        reader.start()
        assert until_end(there) == up
        for thread in (*threads, reader):
            thread.join(SECONDS)
        assert got == [down]
        names = endpoint_text(client.getsockname()), endpoint_text(there.getsockname())
    assert journaled(relay, "c2s") == up
    assert journaled(relay, "s2c") == down
    assert {(item.stream.transport, item.stream.client, item.stream.server) for item in relay.items} == {
        ("tcp", *names)
    }
    assert ends(relay) == ["closed"]
    assert relay.notices == []


@LOOPS
@pytest.mark.parametrize("first", ["client", "server"])
def test_one_end_stops_sending_and_the_other_continues(tmp_path: Path, first: str, new_loop: NewLoop) -> None:
    with paired(tmp_path, new_loop) as (relay, client, there):
        one, other = (client, there) if first == "client" else (there, client)
        one.sendall(b"this is all")
        one.shutdown(socket.SHUT_WR)
        assert until_end(other) == b"this is all"
        for _ in range(20):
            other.sendall(b"and this")
            assert receive(one, 8) == b"and this"
        other.close()
        assert until_end(one) == b""
    chunks = [item for item in relay.items if isinstance(item, Chunk)]
    assert [chunk.data for chunk in chunks] == [b"this is all", *[b"and this"] * 20]
    assert [chunk.ts_ns for chunk in chunks] == sorted(chunk.ts_ns for chunk in chunks)
    assert (ends(relay), faults(relay)) == (["closed"], [])


@LOOPS
def test_a_client_that_sends_everything_before_the_server_is_reached(
    tmp_path: Path, new_loop: NewLoop
) -> None:
    with serving() as server, relaying(tmp_path, to(server), new_loop=new_loop) as relay:
        for i in range(50):
            with connect(relay) as client:
                client.sendall(b"all at once %d" % i)
                client.shutdown(socket.SHUT_WR)
                there, _ = server.accept()
                with there:
                    there.sendall(b"so do I")
                    there.shutdown(socket.SHUT_WR)
                    assert until_end(there) == b"all at once %d" % i
                    assert until_end(client) == b"so do I"
    assert ends(relay) == ["closed"] * 50


@MOSTLY_UVLOOP
@pytest.mark.parametrize("first", ["client", "server"])
@pytest.mark.parametrize("last_words", [b"", b"!BYE\n"])
def test_a_reset_is_passed_on_with_what_came_before(
    tmp_path: Path, first: str, last_words: bytes, new_loop: NewLoop
) -> None:
    with serving() as server, relaying(tmp_path, to(server), new_loop=new_loop) as relay:
        for i in range(20):
            with connected(relay, server) as (client, there):
                one, other = (client, there) if first == "client" else (there, client)
                one.sendall(b"%2d" % i)
                assert receive(other, 2) == b"%2d" % i
                if i % 2:
                    # The relay then finds the bytes and the reset at once.
                    relay.loop.call_soon_threadsafe(time.sleep, 0.02)
                one.sendall(last_words)
                reset(one)
                assert receive(other, len(last_words)) == last_words
                assert_reset(other)
    assert ends(relay) == ["reset"] * 20
    assert faults(relay) == []
    assert relay.notices == []
    said = [item.data for item in relay.items if isinstance(item, Chunk)]
    assert b"".join(said) == b"".join(b"%2d" % i + last_words for i in range(20))


@pytest.mark.full(but=1)
@LOOPS
def test_last_words_beneath_a_flood(tmp_path: Path, new_loop: NewLoop) -> None:
    """A client closes while the server sends: the system then resets the connection."""
    with serving() as server, relaying(tmp_path, to(server), new_loop=new_loop) as relay:
        names = []
        for _ in range(30):
            with connected(relay, server) as (client, there):
                names.append(endpoint_text(client.getsockname()))
                flood = threading.Thread(target=_flood, args=(there,), daemon=True)
                flood.start()
                client.recv(1)
                client.sendall(b"!BYE\n")
                client.close()
                flood.join(SECONDS)
                assert not flood.is_alive()
                assert receive(there, 5) == b"!BYE\n"
    assert [journaled(relay, "c2s", name) for name in names] == [b"!BYE\n"] * 30
    assert set(ends(relay)) == {"reset"}


def _flood(sock: socket.socket) -> None:
    with suppress(ConnectionError):
        while True:
            sock.sendall(b"!DRAN\n0\n!END\n" * 10)


@pytest.mark.full(but=1)
@MOSTLY_UVLOOP
@pytest.mark.parametrize("slow", ["client", "server"])
def test_a_slow_reader_slows_its_peer_and_fills_no_memory(
    tmp_path: Path, slow: str, new_loop: NewLoop
) -> None:
    with paired(tmp_path, new_loop) as (relay, client, there):
        reader, writer = (client, there) if slow == "client" else (there, client)
        block = b"x" * (1 << 20)
        before = resident_bytes()
        writer.setblocking(False)
        sent, stuck_since = 0, time.monotonic()
        while time.monotonic() - stuck_since < 0.5:
            assert sent < 200 << 20, "nothing ever slows the writer"
            try:
                sent += writer.send(block)
                stuck_since = time.monotonic()
            except BlockingIOError:
                time.sleep(0.005)
        assert resident_bytes() - before < 4 << 20
        # The other direction is not slowed by it.
        for _ in range(20):
            reader.sendall(b"!DRAN\n0\n!END\n")
            writer.settimeout(SECONDS)
            assert receive(writer, 13) == b"!DRAN\n0\n!END\n"
        writer.shutdown(socket.SHUT_WR)
        assert sum(map(len, iter(lambda: reader.recv(1 << 20), b""))) == sent
        reader.shutdown(socket.SHUT_WR)
        assert writer.recv(1) == b""
    assert len(journaled(relay, "c2s" if slow == "server" else "s2c")) == sent
    assert ends(relay) == ["closed"]


@LOOPS
def test_what_arrives_after_the_relay_has_ended_a_connection_is_ignored(
    tmp_path: Path, new_loop: NewLoop
) -> None:
    # The loop may have read bytes of a socket before it was aborted. They would damage the journal.
    with serving() as server, relaying(tmp_path, to(server), new_loop=new_loop) as relay:
        with connected(relay, server) as (client, there):
            client.sendall(b"before\n")
            assert there.recv(100) == b"before\n"

            def end() -> None:
                (tcp,) = relay.forwarder.relays
                assert isinstance(tcp, relay_tcp.TcpRelay)
                (connection,) = tcp._connections
                sides = connection.client, connection.server
                tcp.connection_ended(connection, "evicted")
                for side in sides:
                    side.data_received(b"after\n")
                    tcp.fault(connection, side.direction, 7, OSError(errno.EIO, "Input/output error"))
                    side.transport.abort()

            relay.loop.call_soon_threadsafe(end)
            assert until_end(client) == b""
        with connected(relay, server) as (client, there):
            client.sendall(b"another\n")
            assert there.recv(100) == b"another\n"
            client.close()
            assert there.recv(100) == b""
    assert ends(relay)[0] == "evicted"
    assert [item.data for item in relay.items if isinstance(item, Chunk)] == [b"before\n", b"another\n"]
    assert faults(relay) == []


@LOOPS
def test_a_target_that_refuses(tmp_path: Path, new_loop: NewLoop) -> None:
    with serving() as server:
        mode = to(server)
    with relaying(tmp_path, mode, new_loop=new_loop) as relay:
        for _ in range(3):
            with connect(relay) as client:
                assert client.recv(100) == b""
        with serving(port=mode.port) as server, connected(relay, server) as (client, there):
            client.sendall(b"now")
            assert there.recv(100) == b"now"
            client.close()
            assert there.recv(100) == b""
    assert {code for code, _ in relay.notices} == {"refused"}
    assert relay.notices[0][1].endswith(
        f" to 127.0.0.1:{mode.port}: no program listens on that port. The connection was closed."
    )
    assert [(fault.direction, fault.offset, fault.code) for fault in faults(relay)] == [
        ("c2s", 0, "refused")
    ] * 3
    assert ends(relay)[:3] == ["refused"] * 3
    assert [type(item) for item in relay.items[:6]] == [Fault, End] * 3


def test_a_target_that_cannot_be_reached(tmp_path: Path) -> None:
    # A multicast address has no host: the system refuses at once, and nothing leaves this machine.
    mode = Reverse("tcp", "224.0.0.1", 9, "127.0.0.1", 0)
    with relaying(tmp_path, mode) as relay, connect(relay) as client:
        assert client.recv(100) == b""
    assert ([fault.code for fault in faults(relay)], ends(relay)) == (["network-unreachable"], ["refused"])


@LOOPS
def test_a_target_that_does_not_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, new_loop: NewLoop
) -> None:
    monkeypatch.setattr(relay_tcp, "CONNECT_SECONDS", 0.3)
    with (
        deaf() as server,
        relaying(tmp_path, to(server), new_loop=new_loop) as relay,
        connect(relay) as client,
    ):
        client.sendall(b"unheard")
        assert_reset(client)
    assert [(fault.code, fault.text) for fault in faults(relay)] == [("timeout", "the server did not answer")]
    assert (ends(relay), journaled(relay, "c2s")) == (["refused"], b"")


@pytest.mark.full
def test_two_thousand_connections_at_once(tmp_path: Path) -> None:
    """All are silent at first, as in a loop of relays, which these are not."""
    count = 2000
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 4 * count + 200:
        pytest.skip(f"both ends and the relay need {4 * count} open files here, the limit is {hard}")
    with serving() as server, relaying(tmp_path, to(server)) as relay, ExitStack() as stack:
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 4 * count + 200), hard))
        clients = [stack.enter_context(connect(relay)) for _ in range(count)]
        theirs = [stack.enter_context(server.accept()[0]) for _ in range(count)]
        for i, client in enumerate(clients):
            client.sendall(b"%d" % i)
        for there in theirs:
            there.settimeout(SECONDS)
            there.sendall(there.recv(100) * 2)
        for i, client in enumerate(clients):
            assert client.recv(100) == b"%d" % i * 2
        names = [endpoint_text(client.getsockname()) for client in clients]
    assert relay.notices == []
    came: dict[tuple[str, str], bytes] = {}
    for item in relay.items:
        if isinstance(item, Chunk):
            came[item.stream.client, item.direction] = item.data
    for i, name in enumerate(names):
        assert came[name, "c2s"] == b"%d" % i
        assert came[name, "s2c"] == b"%d" % i * 2
    assert len(ends(relay)) == count


def test_clients_beyond_the_limit_are_turned_away(tmp_path: Path) -> None:
    with (
        serving() as server,
        relaying(tmp_path, to(server), max_connections=2) as relay,
        connected(relay, server) as (a, there_a),
        connected(relay, server) as (b, there_b),
    ):
        for _ in range(3):
            with connect(relay) as surplus:
                assert surplus.recv(100) == b""
        for client, there in ((a, there_a), (b, there_b)):
            client.sendall(b"still here")
            assert there.recv(100) == b"still here"
        for sock in (a, there_a):
            sock.shutdown(socket.SHUT_WR)
        assert a.recv(1) == there_a.recv(1) == b""
        with connected(relay, server) as (c, there_c):
            c.sendall(b"a place is free")
            assert there_c.recv(100) == b"a place is free"
    assert {code for code, _ in relay.notices} == {"max-connections"}
    assert len(relay.notices) == 3
    assert "it has 2 connections. Raise the limit with --max-connections." in relay.notices[0][1]
    assert len(ends(relay)) == 3


def test_a_low_limit_of_open_files_lowers_the_limit_of_connections(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kiebitz.proxy.forwarder.allow_open_files", lambda count: min(count, 74))
    with serving() as server, relaying(tmp_path, to(server), max_connections=1000) as relay:
        for _ in range(4):
            with connected(relay, server) as (client, there):
                client.sendall(b"x")
                assert there.recv(1) == b"x"
        with ExitStack() as stack:
            for _ in range(4):
                stack.enter_context(connected(relay, server))
            with connect(relay) as surplus:
                assert surplus.recv(1) == b""
    first, last = relay.notices
    assert first[0] == "open-files"
    assert "allows this process 74 open files" in first[1]
    assert "4 connections at most, not 1000" in first[1]
    assert last[0] == "max-connections"


@LOOPS
def test_temporarily_no_client_is_accepted(tmp_path: Path, new_loop: NewLoop) -> None:
    with (
        serving() as server,
        relaying(tmp_path, to(server), new_loop=new_loop) as relay,
        connected(relay, server) as (client, there),
        ExitStack() as stack,
    ):
        before = resource.getrlimit(resource.RLIMIT_NOFILE)
        waiting = stack.enter_context(socket.socket(V4, socket.SOCK_STREAM))
        waiting.settimeout(SECONDS)
        try:
            with Path("/dev/null").open() as highest:
                resource.setrlimit(resource.RLIMIT_NOFILE, (highest.fileno(), before[1]))
            waiting.connect(relay.address())
            eventually(lambda: len(relay.notices) >= 2)
            client.sendall(b"unhurt")
            assert there.recv(100) == b"unhurt"
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, before)
        waiting.sendall(b"at last")
        late = stack.enter_context(server.accept()[0])
        late.settimeout(SECONDS)
        assert late.recv(100) == b"at last"
    assert {code for code, _ in relay.notices} <= {"accept", "no-socket"}
    assert "Too many open files" in relay.notices[0][1]


@LOOPS
def test_a_connection_without_a_word(tmp_path: Path, new_loop: NewLoop) -> None:
    with serving() as server, relaying(tmp_path, to(server), new_loop=new_loop) as relay:
        with connected(relay, server) as (client, there):
            client.close()
            assert there.recv(1) == b""
            there.close()
        eventually(lambda: "closed" in on_disk(relay))
    (end,) = relay.items
    assert isinstance(end, End)
    assert end.reason == "closed"


@LOOPS
def test_stopping_ends_all_streams(tmp_path: Path, new_loop: NewLoop) -> None:
    with ExitStack() as stack:
        server = stack.enter_context(serving())
        with relaying(tmp_path, to(server), new_loop=new_loop) as relay:
            pairs = [stack.enter_context(connected(relay, server)) for _ in range(3)]
            for client, there in pairs:
                client.sendall(b"x")
                assert there.recv(1) == b"x"
        for client, there in pairs:
            assert client.recv(1) == there.recv(1) == b""
    assert ends(relay) == ["end"] * 3


def test_stopping_while_the_server_is_being_reached(tmp_path: Path) -> None:
    with deaf() as server, ExitStack() as stack:
        with relaying(tmp_path, to(server)) as relay:
            client = stack.enter_context(connect(relay))
            eventually(lambda: "tcp" in on_disk(relay))
        assert client.recv(1) == b""
    assert ends(relay) == ["end"]


def test_why_it_cannot_start(tmp_path: Path) -> None:
    with serving() as other:
        port = other.getsockname()[1]
        taken = mode_problem(f"reverse:tcp://127.0.0.1:9@{port}", tmp_path / "a")
        assert f"tcp 127.0.0.1:{port}: the port is in use" in taken
    unknown = mode_problem("reverse:tcp://no.such.host.invalid:9@0", tmp_path / "c")
    assert unknown.startswith("The host no.such.host.invalid cannot be resolved")


def test_its_port_is_free_again_at_once(tmp_path: Path) -> None:
    with serving() as server:
        with relaying(tmp_path, to(server)) as relay, connected(relay, server):
            port = relay.address()[1]
        mode = Reverse("tcp", "127.0.0.1", server.getsockname()[1], "127.0.0.1", port)
        Forwarder([mode], JournalWriter(tmp_path / "again", on_trouble=print), on_notice=print).close()


def test_the_command_records_what_was_sent(tmp_path: Path) -> None:
    database = tmp_path / "game.db"
    with serving() as server:
        port, target = free_port("tcp"), endpoint_text(server.getsockname())
        options = ("-m", f"reverse:tcp://{target}@{port}", "-w", str(database), "--max-connections", "1")
        with running(*KIEBITZ, "relay", *options, ready="listening on tcp"):
            client = socket.create_connection(("127.0.0.1", port), SECONDS)
            there, _ = server.accept()
            with there, socket.create_connection(("127.0.0.1", port), SECONDS) as surplus:
                assert surplus.recv(1) == b""
                client.sendall(b"!BYE\n")
                assert there.recv(100) == b"!BYE\n"
                reset(client)
                assert_reset(there)
    query = "SELECT transport, server, close_reason, data FROM streams s JOIN chunks ON stream_id = s.id"
    assert rows(database, query) == [("tcp", target, "reset", b"!BYE\n")]
