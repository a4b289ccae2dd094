"""mitmproxy's modes in the relay, with real clients: what is recorded is what the plain modes record."""

from __future__ import annotations

import contextlib
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
from certificates import Authority
from command import ROOT, kiebitz
from mitmproxy_live import by_socks, game, listening, mitmproxys, relayed_plainly, with_tls
from mitmproxy_rs.local import LocalRedirector
from processes_and_rows import KIEBITZ, PATIENCE_S, accept, free_port, receive, rows, running, speak, story
from python_socks import ProxyConnectionError, ProxyError
from relay_processes import HAS_PROC, pss_kib
from udp_relays import eventually


def options(folder: Path, mode: str, *settings: str) -> list[str]:
    """Return a relay's options in a mode of mitmproxy, with keys and game.db in `folder`."""
    command = ["relay", "-m", mode, "-w", str(folder / "game.db"), "-q"]
    for setting in (f"confdir={folder / 'keys'}", *settings):
        command += ["--set", setting]
    return command


@dataclass(frozen=True)
class Relay:
    """A running relay and its database."""

    process: subprocess.Popen[str]
    database: Path

    def says(self, words: str) -> str:
        """Return the next line on stderr that has these words."""
        assert self.process.stderr is not None
        while words not in (line := self.process.stderr.readline()):
            assert line, f"it ended before it said '{words}'"
        return line


@dataclass(frozen=True)
class Shared(Relay):
    """A running relay with two modes, `socks5` and `reverse:tls`, and the servers it was given."""

    port: int
    """Port of its SOCKS proxy; the other mode leads to `untrusted`."""
    tls_port: int
    ignored: socket.socket
    untrusted: ssl.SSLSocket


@contextlib.contextmanager
def relaying(folder: Path, mode: str, *settings: str, more: tuple[str, ...] = ()) -> Iterator[Relay]:
    with running(*KIEBITZ, *options(folder, mode, *settings), *more, ready="listening on") as process:
        yield Relay(process, folder / "game.db")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shared]:
    folder = tmp_path_factory.mktemp("shared")
    port, tls_port = free_port("tcp"), free_port("tcp")
    with (
        listening() as ignored,
        Authority(folder).serving() as untrusted,
        relaying(
            folder,
            f"socks5@{port}",
            f"ignore_hosts=:{ignored.getsockname()[1]}$",
            "tcp_hosts=no.such.host",
            more=("-m", f"reverse:tls://127.0.0.1:{untrusted.getsockname()[1]}@{tls_port}"),
        ) as relay,
    ):
        yield Shared(relay.process, relay.database, port, tls_port, ignored, untrusted)


def streams_to(relay: Relay, server: tuple[str, int], count: int = 1) -> list[int]:
    of_it = f"FROM streams WHERE server = '{server[0]}:{server[1]}'"
    ended = f"SELECT count(*) {of_it} AND close_reason IS NOT NULL"
    eventually(lambda: rows(relay.database, ended) == [(count,)])
    return [number for (number,) in rows(relay.database, f"SELECT id {of_it} ORDER BY id")]


def recorded(database: Path, stream: int, direction: str) -> bytes:
    data = b""
    of_it = f"stream_id = {stream} AND direction = '{direction}'"
    for offset, piece in rows(database, f"SELECT offset, data FROM chunks WHERE {of_it} ORDER BY id"):
        assert offset == len(data)
        data += piece
    return data


def exchange(client: socket.socket, server: socket.socket, data: bytes) -> None:
    client.sendall(data)
    assert receive(server, len(data)) == data
    server.sendall(data[::-1])
    assert receive(client, len(data)) == data[::-1]


@pytest.mark.full
@pytest.mark.parametrize("bytewise", [False, True])
def test_a_game_by_socks_is_recorded_as_in_the_plain_mode(tmp_path: Path, bytewise: bool) -> None:
    said = game("Anna", "Bärbel", "Carl")[: 60 if bytewise else None]
    with listening() as listener:
        port = free_port("tcp")
        server = listener.getsockname()
        with relaying(tmp_path, f"socks5@{port}") as relay:
            speak(said, listener, lambda: by_socks(port, server), bytewise)
    relayed_plainly(tmp_path / "plain.db", said, bytewise)
    assert story(relay.database) == story(tmp_path / "plain.db")
    assert len(rows(relay.database, "SELECT id FROM messages WHERE name != 'unreadable'")) == len(said)
    assert (
        rows(relay.database, "SELECT transport, server, close_reason FROM streams")
        == [("tcp", f"127.0.0.1:{server[1]}", "closed")] * 3
    )
    assert rows(relay.database, "SELECT kind, source FROM sessions") == [
        ("relay", f"socks5@127.0.0.1:{port}")
    ]


@pytest.mark.full
@pytest.mark.parametrize("client_speaks_tls", [True, False])
def test_a_game_behind_tls_in_which_the_server_speaks_first(tmp_path: Path, client_speaks_tls: bool) -> None:
    said = game("Anna")
    authority = Authority(tmp_path)
    with authority.serving() as listener:
        port = free_port("tcp")
        mode = f"reverse:tls://127.0.0.1:{listener.getsockname()[1]}@{port}"
        with relaying(tmp_path, mode, f"ssl_verify_upstream_trusted_ca={authority.path}") as relay:

            def connect() -> socket.socket:
                client = socket.create_connection(("127.0.0.1", port), PATIENCE_S)
                return with_tls(client, mitmproxys(tmp_path)) if client_speaks_tls else client

            speak(said, listener, connect)
            eventually(lambda: rows(relay.database, "SELECT close_reason FROM streams") == [("closed",)])
    relayed_plainly(tmp_path / "plain.db", said)
    assert story(relay.database) == story(tmp_path / "plain.db")


def test_an_untrusted_certificate(shared: Shared) -> None:
    with (
        ThreadPoolExecutor(1) as beside,
        socket.create_connection(("127.0.0.1", shared.tls_port), PATIENCE_S) as client,
    ):
        accepted = beside.submit(accept, shared.untrusted)
        client.sendall(b"!NAME\nAnna\n!END\n")
        assert client.recv(1) == b""
        assert isinstance(accepted.exception(), ssl.SSLError)
    told = shared.says("Server TLS handshake failed. Certificate verify failed")
    assert told.startswith("kiebitz: mitmproxy, 127.0.0.1:")
    (stream,) = streams_to(shared, shared.untrusted.getsockname())
    of_it = f"FROM streams WHERE id = {stream}"
    assert rows(shared.database, f"SELECT close_reason {of_it}") == [("refused",)]
    ((text,),) = rows(shared.database, f"SELECT text FROM diagnostics WHERE stream_id = {stream}")
    assert text.startswith("TLS with the server failed: Certificate verify failed")


@pytest.mark.full
@pytest.mark.parametrize("taken_off", [False, True])
def test_tls_by_socks_passes_as_it_is_unless_it_is_to_be_taken_off(tmp_path: Path, taken_off: bool) -> None:
    authority = Authority(tmp_path)
    settings = (f"ssl_verify_upstream_trusted_ca={authority.path}", "tcp_hosts=^127\\.")
    with authority.serving() as listener, ThreadPoolExecutor(1) as beside:
        port = free_port("tcp")
        with relaying(tmp_path, f"socks5@{port}", *(settings if taken_off else ())) as relay:
            accepted = beside.submit(accept, listener)
            trusted = mitmproxys(tmp_path) if taken_off else authority.path
            with (
                with_tls(by_socks(port, listener.getsockname()), trusted) as client,
                accepted.result() as there,
            ):
                exchange(client, there, b"a secret")
    said = recorded(relay.database, 1, "c2s")
    if taken_off:
        assert said == b"a secret"
    else:
        assert said.startswith(b"\x16\x03\x01")
        assert b"a secret" not in said


LOOK_ALIKES = [
    b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n",
    b"CONNECT b.example:443 HTTP/1.1\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"\x00\x1d\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x01c\x07example\x00\x00\x01\x00\x01",
    b"\x16\x03\x01\x00\x05\x01\x00\x00\x01",
]


def test_ambiguous_input_stays_bytes(shared: Shared) -> None:
    with listening() as listener:
        server = listener.getsockname()
        for data in LOOK_ALIKES:
            with by_socks(shared.port, server) as client, accept(listener) as there:
                # mitmproxy waits for the rest of what begins like a greeting with TLS.
                exchange(client, there, data + b"x" * 20_000)
    for stream, data in zip(streams_to(shared, server, len(LOOK_ALIKES)), LOOK_ALIKES, strict=True):
        assert recorded(shared.database, stream, "c2s") == data + b"x" * 20_000
        assert recorded(shared.database, stream, "s2c") == b"x" * 20_000 + data[::-1]


def test_ignored_traffic_is_forwarded_and_not_recorded(shared: Shared) -> None:
    with listening() as other:
        for listener in (shared.ignored, other):
            with by_socks(shared.port, listener.getsockname()) as client, accept(listener) as there:
                exchange(client, there, b"hello")
        (stream,) = streams_to(shared, other.getsockname())
    assert recorded(shared.database, stream, "c2s") == b"hello"
    of_it = f"WHERE server = '127.0.0.1:{shared.ignored.getsockname()[1]}'"
    assert rows(shared.database, f"SELECT id FROM streams {of_it}") == []


@pytest.mark.full
def test_an_end_of_one_direction_is_passed_on(shared: Shared) -> None:
    with listening() as listener:
        server = listener.getsockname()
        with by_socks(shared.port, server) as client, accept(listener) as there:
            client.sendall(b"my last word")
            client.shutdown(socket.SHUT_WR)
            assert receive(there, 12) == b"my last word"
            assert there.recv(1) == b""
            there.sendall(b"not mine")
            assert receive(client, 8) == b"not mine"
            there.close()
            assert client.recv(1) == b""
            (stream,) = streams_to(shared, server)
    assert rows(shared.database, f"SELECT close_reason FROM streams WHERE id = {stream}") == [("closed",)]
    assert recorded(shared.database, stream, "s2c") == b"not mine"


@pytest.mark.full
def test_a_server_that_cannot_be_reached(shared: Shared) -> None:
    nobody = free_port("tcp")
    before = rows(shared.database, "SELECT count(*) FROM streams")[0][0]
    with pytest.raises(ProxyError):
        by_socks(shared.port, ("127.0.0.1", nobody))
    told = shared.says("no program listens")
    # An unresolvable name has no stream: a stream is between two addresses.
    with pytest.raises(ProxyError):
        by_socks(shared.port, ("no.such.host.invalid", 9))
    of_name = shared.says("no.such.host.invalid")
    (stream,) = streams_to(shared, ("127.0.0.1", nobody))
    assert told.endswith(
        f" to 127.0.0.1:{nobody}: no program listens on that port. The connection was closed.\n"
    )
    assert " to no.such.host.invalid:9: " in of_name
    assert rows(shared.database, "SELECT transport, close_reason, id FROM streams ORDER BY id")[before:] == [
        ("tcp", "refused", stream)
    ]
    of_it = f"SELECT code, blame FROM diagnostics WHERE stream_id = {stream}"
    assert rows(shared.database, of_it) == [("refused", "network")]


@pytest.mark.full
def test_clients_beyond_the_limit_are_turned_away(tmp_path: Path) -> None:
    port = free_port("tcp")
    with (
        listening() as listener,
        relaying(tmp_path, f"socks5@{port}", more=("--max-connections", "2")) as relay,
    ):
        server = listener.getsockname()
        with by_socks(port, server), by_socks(port, server):
            with pytest.raises((ProxyError, ProxyConnectionError, ConnectionError)):
                by_socks(port, server)
            told = relay.says("was rejected")
        eventually(lambda: is_let_in(port, server))
    assert (
        "was rejected: mitmproxy's modes have 2 connections. Raise the limit with --max-connections." in told
    )


def is_let_in(port: int, server: tuple[str, int]) -> bool:
    with contextlib.suppress(ProxyError, ProxyConnectionError, ConnectionError), by_socks(port, server):
        return True
    return False


@pytest.mark.full
def test_open_streams_end_with_the_recording(tmp_path: Path) -> None:
    with listening() as listener:
        port = free_port("tcp")
        with relaying(tmp_path, f"socks5@{port}") as relay:
            client, there = by_socks(port, listener.getsockname()), accept(listener)
            exchange(client, there, b"hello")
        assert client.recv(1) == there.recv(1) == b""
        client.close()
        there.close()
    assert rows(relay.database, "SELECT close_reason FROM streams") == [("end",)]
    assert recorded(relay.database, 1, "s2c") == b"olleh"
    assert rows(relay.database, "SELECT ended_ns > started_ns FROM sessions") == [(1,)]


MITMPROXYS_LIBRARIES = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@pytest.mark.full
@MITMPROXYS_LIBRARIES
@pytest.mark.parametrize(
    ("setting", "status", "words"),
    [
        # The words differ between versions; those of Kiebitz are in relay.txt.
        ("key_size=big", 2, "ot an integer: big"),
        ("tcp_hosts=(", 2, "tcp_hosts is not a regular expression: "),
        ("key_size=2048", 1, "Cannot listen on tcp 127.0.0.1:PORT: the port is in use"),
    ],
)
def test_why_it_cannot_start(tmp_path: Path, setting: str, status: int, words: str) -> None:
    with listening() as taken:
        port = str(taken.getsockname()[1])
        done = kiebitz(*options(tmp_path, f"socks5@{port if 'PORT' in words else 0}", setting))
    assert done.status == status
    assert words.replace("PORT", port) in done.err
    assert list(tmp_path.glob(".*spool*")) == []
    if (tmp_path / "game.db").exists():
        assert rows(tmp_path / "game.db", "SELECT ended_ns IS NULL FROM sessions") in ([], [(0,)])


@pytest.mark.full
@MITMPROXYS_LIBRARIES
def test_where_there_is_no_local_mode(tmp_path: Path) -> None:
    if sys.platform != "linux" or hasattr(LocalRedirector, "unavailable_reason"):
        pytest.skip("this mitmproxy has a local mode")
    done = kiebitz(*options(tmp_path, "local"))
    assert done.status == 1
    assert "local: on Linux this needs mitmproxy 11.1, and so Python 3.12" in done.err


@pytest.mark.full
def test_mitmproxy_is_loaded_only_for_its_modes(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; import kiebitz.cli.commands.relay;"
        "from kiebitz.proxy.journal.writer import JournalWriter;"
        "from kiebitz.proxy.relay.modes import parse_mode; from kiebitz.proxy.forwarder import Forwarder;"
        "mode = parse_mode('reverse:udp://127.0.0.1:9@0');"
        f"journal = JournalWriter(Path({str(tmp_path / 'journal')!r}), on_trouble=print);"
        "Forwarder([mode], journal, on_notice=print).close(); print(*sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, check=True
    )
    loaded = set(done.stdout.split())
    assert "kiebitz.proxy.relay.udp" in loaded
    assert not {"mitmproxy", "mitmproxy_rs", "cryptography"} & loaded


@pytest.mark.full
@HAS_PROC
def test_two_thousand_flows_keep_memory_flat(tmp_path: Path) -> None:
    with listening() as listener, ThreadPoolExecutor(4) as clients:
        port = free_port("tcp")
        server = listener.getsockname()

        def flow(number: int) -> None:
            with by_socks(port, server) as client:
                client.sendall(b"%04d" % number + b"x" * 4096)
                assert client.recv(1) == b""

        def serve(count: int) -> None:
            for _ in range(count):
                with accept(listener) as there:
                    receive(there, 4100)

        def flows(count: int) -> None:
            serving = clients.submit(serve, count)
            list(clients.map(flow, range(count)))
            serving.result()

        with relaying(tmp_path, f"socks5@{port}") as relay:
            flows(200)
            before = pss_kib(relay.process.pid)
            flows(2000)
            after = pss_kib(relay.process.pid)
            closed = "SELECT count(*), sum(close_reason = 'closed') FROM streams"
            eventually(lambda: rows(relay.database, closed) == [(2200, 2200)])
    # Their own data is 8 MiB.
    assert after - before < 6 << 10


@pytest.mark.full
@HAS_PROC
def test_a_long_flow_keeps_memory_flat(tmp_path: Path) -> None:
    with listening() as listener:
        port = free_port("tcp")
        with (
            relaying(tmp_path, f"socks5@{port}") as relay,
            by_socks(port, listener.getsockname()) as client,
            accept(listener) as there,
            ThreadPoolExecutor(1) as beside,
        ):

            def pass_on(mebibytes: int) -> int:
                sending = beside.submit(client.sendall, b"x" * (mebibytes << 20))
                receive(there, mebibytes << 20)
                sending.result()
                return pss_kib(relay.process.pid)

            before = pass_on(32)
            after = pass_on(128)
    assert after - before < 32 << 10
