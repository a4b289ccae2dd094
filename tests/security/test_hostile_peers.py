"""Peers that mean no good to a live relay, or know no better: what they take is bounded, others play on."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import ExitStack
from ipaddress import IPv4Address
from pathlib import Path

import pytest
from inspected_captures import items_of
from networks import GATEWAY_INSIDE, at, inside, network, skip_unless_possible
from processes_and_rows import KIEBITZ, PATIENCE_S, accept, free_port, rows, running
from relay_processes import HAS_PROC
from strength import a_few
from tcp_relays import MOSTLY_UVLOOP, NewLoop, connect, connected, receive, resident_bytes, serving
from tcp_relays import to as to_tcp
from udp_relays import V4, Echo, ask, client_of, eventually, relaying

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.inspection.inspector import Inspector
from kiebitz.dissectors.model import Chunk, End, Ids, Stream
from kiebitz.dissectors.registry import dissector_of
from kiebitz.proxy.relay import tcp as relay_tcp
from kiebitz.storage.recording.recorder import Recorder


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


# Readers that never read.


@pytest.mark.full
@MOSTLY_UVLOOP
@pytest.mark.parametrize("deaf", a_few(["client", "server"], ["client"]))
def test_readers_that_never_read_cost_little(tmp_path: Path, deaf: str, new_loop: NewLoop) -> None:
    with (
        serving() as server,
        relaying(tmp_path, to_tcp(server), new_loop=new_loop) as relay,
        ExitStack() as stack,
    ):
        before = resident_bytes()
        for _ in range(20):
            client, there = stack.enter_context(connected(relay, server))
            writer = there if deaf == "client" else client
            writer.settimeout(0.1)
            with pytest.raises(TimeoutError):
                writer.sendall(b"x" * (64 << 20))
        # What waits beyond is in the buffers of the system.
        assert resident_bytes() - before < 20 << 20
        with connected(relay, server) as (client, there):
            for _ in range(50):
                client.sendall(b"!DRAN\n0\n!END\n")
                assert receive(there, 13) == b"!DRAN\n0\n!END\n"
                there.sendall(b"!ENDE\n")
                assert receive(client, 6) == b"!ENDE\n"


# Clients that connect and stay silent, or disconnect at once.


@pytest.mark.full
@pytest.mark.parametrize("greeted", [False, True], ids=["silent server", "speaks first"])
def test_idle_clients_are_evicted_before_players(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, greeted: bool
) -> None:
    # However slow this machine is, they have just come.
    monkeypatch.setattr(relay_tcp, "UNVERIFIED_SECONDS", 600)
    limit = 100
    with (
        serving() as server,
        relaying(tmp_path, to_tcp(server), max_connections=limit) as relay,
        ExitStack() as stack,
    ):
        player, their_end = stack.enter_context(connected(relay, server))
        player.sendall(b"LOGI alice\r\n")
        assert receive(their_end, 12) == b"LOGI alice\r\n"
        their_end.sendall(b"+LOGI alice\r\n")
        assert receive(player, 13) == b"+LOGI alice\r\n"
        # Both ends, here and at the relay, are closed with the others.
        without_player = open_files() - 4
        for _ in range(limit - 1):
            silent, there = stack.enter_context(connected(relay, server))
            if greeted:
                there.sendall(b"NAME\r\n")
                assert receive(silent, 6) == b"NAME\r\n"
        with connect(relay) as surplus:
            # Those who have just come have their time to speak.
            assert surplus.recv(1) == b""
        monkeypatch.setattr(relay_tcp, "UNVERIFIED_SECONDS", 0.3)
        time.sleep(0.4)
        for number in range(1000):
            client, there = connect(relay), server.accept()[0]
            stack.callback(client.close)
            stack.callback(there.close)
            if number % (limit - 1) == limit - 2:
                time.sleep(0.4)
        time.sleep(0.4)
        with connected(relay, server) as (newcomer, there):
            newcomer.sendall(b"is there room")
            assert receive(there, 13) == b"is there room"
        player.sendall(b"PING\r\n")
        assert receive(their_end, 6) == b"PING\r\n"
        own_name = player.getsockname()[1]
        stack.close()
        eventually(lambda: open_files() <= without_player)
        with connected(relay, server) as (newcomer, there):
            newcomer.sendall(b"room again")
            assert receive(there, 10) == b"room again"
    reasons = {item.stream.client: item.reason for item in relay.items if isinstance(item, End)}
    assert reasons[f"127.0.0.1:{own_name}"] == "closed"
    assert sum(reason == "evicted" for reason in reasons.values()) >= 1000 - limit
    assert {code for code, _ in relay.notices} == {"max-connections"}
    assert "not both sides had sent anything, was closed" in relay.notices[-1][1]


@pytest.mark.full
def test_a_machine_that_vanishes_is_noticed(tmp_path: Path) -> None:
    """Its last word is no FIN: only the system's own questions, which here come soon, find that out."""
    skip_unless_possible()
    database = tmp_path / "game.db"
    with network() as net:
        with inside(net.gateway):
            for setting, value in (("time", 1), ("intvl", 1), ("probes", 2)):
                Path(f"/proc/sys/net/ipv4/tcp_keepalive_{setting}").write_text(str(value))
            listener = socket.create_server(("127.0.0.1", 0))
            listener.settimeout(PATIENCE_S)
        mode = f"reverse:tcp://127.0.0.1:{listener.getsockname()[1]}@{GATEWAY_INSIDE[4]}:9001"
        command = at(net.gateway, *KIEBITZ, "relay", "-q", "-m", mode, "-w", str(database))
        with listener, running(*command, ready="listening on"):
            with inside(net.client):
                client = socket.create_connection((GATEWAY_INSIDE[4], 9001), PATIENCE_S)
            with client, accept(listener) as there:
                client.sendall(b"PING\r\n")
                assert receive(there, 6) == b"PING\r\n"
                subprocess.run(["ip", "-n", net.client, "link", "set", "eth0", "down"], check=True)
                with pytest.raises(ConnectionResetError):
                    there.recv(1)
    assert rows(database, "SELECT close_reason FROM streams") == [("reset",)]
    assert rows(database, "SELECT code FROM diagnostics WHERE grp = 'network'") == [("timeout",)]


# A sender from ten thousand addresses.


@HAS_PROC
@pytest.mark.full
def test_the_command_survives_a_flood_from_many_ports(tmp_path: Path) -> None:
    """The whole command: forwarder, recorder, notices, and recording."""
    database = tmp_path / "game.db"
    flood = 10_000
    with Echo() as server:
        port = free_port("udp")
        said = tmp_path / "said"
        command = [
            *KIEBITZ,
            "relay",
            "-m",
            f"reverse:udp://127.0.0.1:{server.port}@{port}",
            "-w",
            str(database),
        ]
        with said.open("wb") as stderr:
            relay = subprocess.Popen(
                [*command, "--max-size", "10MB"],
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                start_new_session=True,
            )
        try:
            eventually(lambda: "listening on" in said.read_text())
            with client_of(("127.0.0.1", port)) as player:
                assert ask(player, b"REGISTER;alice") == b"REGISTER;alice"
                assert ask(player, b"JOIN;1") == b"JOIN;1"
                before = resident_of(relay.pid)
                for number in range(flood):
                    with socket.socket(V4, socket.SOCK_DGRAM) as stranger:
                        stranger.bind((str(IPv4Address("127.1.0.0") + number), 0))
                        stranger.sendto(b"REGISTER;nobody" + b"x" * 1000, ("127.0.0.1", port))
                    if number % 100 == 99:
                        time.sleep(0.02)
                assert ask(player, b"ROLL;2") == b"ROLL;2"
                # The player is still at the same address for the server.
                own = {address for data, address in server.came if data in (b"REGISTER;alice", b"ROLL;2")}
                assert len(own) == 1
                # 4,096 associations, with what the interpreter has for each.
                assert resident_of(relay.pid) - before < 64 << 20
                assert len(os.listdir(f"/proc/{relay.pid}/fd")) < 4096 + 64
            relay.send_signal(signal.SIGINT)
            assert relay.wait(30) in (0, 1)
        finally:
            relay.kill()
            relay.wait()
    told = said.read_text().splitlines()
    assert len(told) < 20
    assert any("was evicted to admit another one" in line for line in told)
    assert "Traceback" not in "".join(told)
    # 10,000 datagrams there and back are twice as much, with their rows.
    assert database.stat().st_size < 20_000_000
    assert rows(database, "SELECT count(*) FROM sessions WHERE ended_ns IS NOT NULL") == [(1,)]
    assert len({client for (client,) in rows(database, "SELECT client FROM streams")}) > 100
    assert [path.name for path in tmp_path.iterdir() if path.suffix != ".db"] == ["said"]


def resident_of(process: int) -> int:
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


# Segments of a single byte.

BYTES = 10_000

ROW_BYTES = 50
"""A byte that comes alone takes no more of the database than this, with its row and the row's index."""

SPOKEN = {
    "schafkopf": "schafkopf-1.3-2humans.pcap",
    "catan": "catan-yaks-g1-3p.pcap.gz",
    "okey": "okey-head-game-win.pcap.gz",
    "cgml": "cgml-hands.pcap.gz",
}
each_over_tcp = pytest.mark.parametrize("protocol", a_few(SPOKEN, ["schafkopf"]))


def conversation(protocol: str) -> tuple[Stream, list[Chunk]]:
    """Return the longest of a capture, up to `BYTES` bytes."""
    chunks = [item for item in items_of(SPOKEN[protocol]) if isinstance(item, Chunk)]
    sizes: dict[int, int] = {}
    for chunk in chunks:
        sizes[chunk.stream.id] = sizes.get(chunk.stream.id, 0) + len(chunk.data)
    longest = max(sizes, key=sizes.__getitem__)
    taken: list[Chunk] = []
    left = BYTES
    for chunk in chunks:
        if chunk.stream.id == longest and left:
            taken.append(Chunk(chunk.stream, chunk.direction, chunk.ts_ns, chunk.offset, chunk.data[:left]))
            left -= len(taken[-1].data)
    return taken[0].stream, taken


def speak_bytewise(chunks: list[Chunk], port: int, listener: socket.socket) -> None:
    """Speak both sides of a conversation; no byte is sent before the one before it has come."""
    with socket.create_connection(("127.0.0.1", port), PATIENCE_S) as client, accept(listener) as server:
        for sock in (client, server):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for chunk in chunks:
            sender, receiver = (client, server) if chunk.direction == "c2s" else (server, client)
            for at in range(len(chunk.data)):
                sender.sendall(chunk.data[at : at + 1])
                assert receiver.recv(10) == chunk.data[at : at + 1]
        client.shutdown(socket.SHUT_WR)
        assert server.recv(1) == b""
        server.shutdown(socket.SHUT_WR)
        assert client.recv(1) == b""


@pytest.mark.full
@each_over_tcp
def test_a_byte_in_each_segment(tmp_path: Path, protocol: str) -> None:
    stream, chunks = conversation(protocol)
    port = int(stream.server.rpartition(":")[2])
    relayed, at_once = tmp_path / "relayed.db", tmp_path / "at_once.db"
    with serving() as server:
        listen = free_port("tcp")
        server_port = server.getsockname()[1]
        mode = f"reverse:tcp://127.0.0.1:{server_port}@{listen}"
        force = ("-d", f"tcp.port=={server_port},{protocol}")
        with running(*KIEBITZ, "relay", "-q", "-m", mode, "-w", str(relayed), *force, ready="listening on"):
            speak_bytewise(chunks, listen, server)
    dissector = dissector_of(protocol)
    assert dissector is not None
    recorder = Recorder(str(at_once), "import", "at once", decode_as={("tcp", port): dissector})
    recorder.record([*chunks, End(stream, chunks[-1].ts_ns, "closed")])
    recorder.close()
    for query in (
        "SELECT direction, name, fields, offset, length FROM messages ORDER BY direction, offset",
        "SELECT direction, severity, code, offset, length FROM diagnostics ORDER BY direction, offset, code",
    ):
        assert rows(relayed, query) == rows(at_once, query)
    size = sum(len(chunk.data) for chunk in chunks)
    assert rows(relayed, "SELECT count(*), sum(length) FROM chunks") == [(size, size)]
    assert relayed.stat().st_size - at_once.stat().st_size < size * ROW_BYTES


@pytest.mark.full
def test_a_byte_in_each_datagram(tmp_path: Path) -> None:
    database = tmp_path / "game.db"
    with (
        socket.socket(V4, socket.SOCK_DGRAM) as server,
        socket.socket(V4, socket.SOCK_DGRAM) as client,
    ):
        server.bind(("127.0.0.1", 0))
        for sock in (server, client):
            sock.settimeout(PATIENCE_S)
        port, server_port = free_port("udp"), server.getsockname()[1]
        mode = f"reverse:udp://127.0.0.1:{server_port}@{port}"
        force = ("-d", f"udp.port=={server_port},maexchen")
        with running(*KIEBITZ, "relay", "-q", "-m", mode, "-w", str(database), *force, ready="listening on"):
            client.connect(("127.0.0.1", port))
            for number in range(BYTES):
                client.send(b"%c" % (number % 256))
                assert len(server.recv(10)) == 1
    assert rows(database, "SELECT count(*) FROM messages WHERE name = 'unreadable'") == [(BYTES,)]
    # Each is a message with a diagnostic.
    assert database.stat().st_size < BYTES * (ROW_BYTES + 350)


@pytest.mark.full
@each_over_tcp
def test_the_work_for_single_bytes_grows_with_their_number_only(protocol: str) -> None:
    dissector = dissector_of(protocol)
    assert dissector is not None
    _, chunks = conversation(protocol)
    for data in (b"".join(chunk.data for chunk in chunks if chunk.direction == "c2s"), b"x" * BYTES):
        few, many = (calls(dissector, data, count) for count in (1, 4))
        assert many < 4.4 * few


def calls(dissector: Dissector, data: bytes, count: int) -> int:
    inspector = Inspector([dissector], Ids(), {("tcp", 4711): dissector})
    stream = Stream(1, "tcp", "127.0.0.1:5", "127.0.0.1:4711", 0)
    called = 0

    def note(_frame: object, event: str, _argument: object) -> None:
        nonlocal called
        called += event in ("call", "c_call")

    said = data * count
    items = [Chunk(stream, "c2s", at, at, said[at : at + 1]) for at in range(len(said))]
    sys.setprofile(note)
    try:
        for item in items:
            inspector.feed(item)
    finally:
        sys.setprofile(None)
    return called
