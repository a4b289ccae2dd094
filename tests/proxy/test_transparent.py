"""The transparent relay on machines of the tests' own: clients who know nothing of it are recorded.

What is recorded is compared with what tcpdump captures at the server.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path

import pytest
from command import kiebitz
from maexchen_programs import Player, Server, play
from networks import (
    CLIENT,
    GATEWAY,
    GATEWAY_INSIDE,
    PORT,
    SERVER,
    Network,
    at,
    inside,
    network,
    redirecting,
    skip_unless_possible,
)
from processes_and_rows import KIEBITZ, PATIENCE_S, Said, rows, running, speak, story
from schafkopf_script import Script
from strength import a_few
from udp_relays import mode_problem
from udp_relays import relaying as forwarding

from kiebitz.dissectors.model import Chunk
from kiebitz.proxy.relay import tcp as relay_tcp
from kiebitz.proxy.relay.modes import Transparent

UDP_PORT, TCP_PORT = 9000, 35555
MODE = f"transparent@{PORT}"
TPROXY = "TPROXY by nftables"
NOBODY = 65_534
NAMES = ("alice", "bluff", "carl")
TOOLS = ("nft", "iptables", "tcpdump", "setpriv")
FAMILIES = {4: socket.AF_INET, 6: socket.AF_INET6}


@contextmanager
def relaying(
    machine: str, database: Path, *options: str, rights: bool = True
) -> Iterator[subprocess.Popen[str]]:
    """Yield a relay with the one right that it takes to be transparent, or with none."""
    only = ["setpriv", "--bounding-set=-all,+net_admin" if rights else "--bounding-set=-all"]
    command = at(machine, *only, *KIEBITZ, "relay", "-q", "-w", str(database), *options)
    with running(*command, ready="listening on tcp") as process:
        yield process


@contextmanager
def redirected(
    database: Path,
    machine: str,
    way: str,
    rules: str,
    *flags: str,
    echo: tuple[int, ...] = (),
    spoilt: tuple[str, str] = ("", ""),
    rights: bool = True,
    mode: str = MODE,
) -> Iterator[tuple[Network, subprocess.Popen[str]]]:
    """Yield machines, and a relay on one of them to which its rules redirect; the server may echo."""
    with network() as net:
        place = getattr(net, machine)
        with (
            redirecting(place, way, "-m", mode, *rules.split(), *flags, spoilt=spoilt),
            echoing(net.server, *echo),
            relaying(place, database, "-m", mode, *flags, rights=rights) as relay,
        ):
            yield net, relay


def hears(process: subprocess.Popen[str], text: str) -> str:
    assert process.stderr is not None
    patience = threading.Timer(PATIENCE_S, process.kill)
    patience.start()
    try:
        line = next((line for line in process.stderr if text in line), None)
    finally:
        patience.cancel()
    assert line is not None, f"it never said '{text}'"
    return line


@contextmanager
def capturing(machine: str, capture: Path) -> Iterator[None]:
    # At once, and in small frames, of which more fit in its buffer.
    command = at(machine, "tcpdump", "--immediate-mode", "-s", "2048", "-i", "eth0", "-U", "-w", str(capture))
    with running(*command, ready="listening on"):
        yield
        # Data not received before it is stopped is lost.
        size = -1
        while size < (size := capture.stat().st_size):
            time.sleep(0.5)


def play_maexchen(net: Network, version: int) -> Server:
    """Run a game over UDP with the server itself; return the server, with all that it sent and received."""
    with inside(net.server):
        server = Server(expected=len(NAMES), rounds=2, address=(SERVER[version], UDP_PORT))
    with inside(net.client):
        players = [
            Player(name, (SERVER[version], UDP_PORT), bluffs=name == "bluff", host=CLIENT[version])
            for name in NAMES
        ]
    play(server, players)
    return server


def play_schafkopf(net: Network, version: int) -> set[str]:
    """Return a game over TCP, whose clients turn to the server itself; the addresses that the server saw."""
    script = Script(11, ("Anna", "Bärbel", "Carl"))
    script.round("WENZ")
    script.leave()
    said = [Said(step.client, step.direction, step.data) for step in script.steps]
    seen: set[str] = set()

    class Listener(socket.socket):
        def accept(self) -> tuple[socket.socket, object]:
            sock, address = super().accept()
            seen.add(address[0])
            return sock, address

    with inside(net.server):
        listener = Listener(FAMILIES[version], socket.SOCK_STREAM)
    with listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((SERVER[version], TCP_PORT))
        listener.listen()
        listener.settimeout(PATIENCE_S)
        with inside(net.client):
            server = (SERVER[version], TCP_PORT)
            speak(said, listener, partial(socket.create_connection, server, PATIENCE_S))
    return seen


def imported(capture: Path) -> Path:
    database = capture.with_suffix(".db")
    assert kiebitz("import", str(capture), "-w", str(database)).status == 0
    return database


def assert_same_story(one: Path, other: Path, games: int = 3) -> None:
    """Check that both contain the same games, without violations.

    The order of simultaneous messages in two conversations may differ between observers.
    """
    told, compared = story(one), story(other)
    assert told["messages"] == compared["messages"]
    assert len(told["games"]) == games
    diff = kiebitz("diff", str(one), str(other))
    assert "are the same" in diff.out, diff.out
    for database in (one, other):
        assert rows(database, "SELECT text FROM diagnostics WHERE severity != 'note'") == []


def ends(database: Path) -> set[tuple[str, str, str]]:
    """Transport, client's address and server of each stream."""
    return {
        (transport, client.rpartition(":")[0].strip("[]"), server)
        for transport, client, server in rows(database, "SELECT transport, client, server FROM streams")
    }


def endpoint(version: int, port: int) -> str:
    return f"{SERVER[version]}:{port}" if version == 4 else f"[{SERVER[version]}]:{port}"


@pytest.mark.full(but=1)
@pytest.mark.parametrize(
    ("machine", "way", "version", "flags"),
    [
        # A machine with its rules, the version of IP, and options of the relay.
        *(("client", TPROXY, 6, ""), ("client", TPROXY, 4, ""), ("client", "TPROXY by iptables", 4, "")),
        *(("gateway", TPROXY, version, flags) for version in (4, 6) for flags in ("", "--keep-source")),
        *(("gateway", "TPROXY by iptables", *more) for more in ((4, "--keep-source"), (6, ""))),
        *(("gateway", "REDIRECT by nftables", 4, ""), ("gateway", "REDIRECT by iptables", 6, "")),
        *(("client", "REDIRECT by nftables", 6, ""), ("client", "REDIRECT by iptables", 4, "")),
    ],
)
def test_traffic_is_recorded_as_the_server_receives_it(
    tmp_path: Path, machine: str, way: str, version: int, flags: str
) -> None:
    skip_unless_possible(*TOOLS)
    relayed, capture = tmp_path / "relay.db", tmp_path / "server.pcap"
    has_udp, is_local = way.startswith("TPROXY"), machine == "client"
    rules = f"-i {'lo' if is_local else 'players0'} --port tcp/{TCP_PORT - 1}-{TCP_PORT}"
    # TCP alone needs no rights on a gateway if it is redirected.
    rights = has_udp or is_local
    with redirected(
        relayed,
        machine,
        way,
        rules + f" --port {UDP_PORT}" * has_udp,
        *flags.split(),
        rights=rights,
        mode=MODE if rights else f"transparent@{'[::]' if version == 6 else '0.0.0.0'}:{PORT}",
    ) as (net, _):
        if has_udp and not is_local:
            # A careful firewall lets nothing pass that seems to belong to no connection.
            rule = "iptables -A INPUT -m conntrack --ctstate INVALID -j DROP"
            subprocess.run(at(net.gateway, *rule.split()), check=True)
        with capturing(net.server, capture):
            server = play_maexchen(net, version) if has_udp else None
            seen = play_schafkopf(net, version)
    source = CLIENT[version] if is_local or flags else GATEWAY[version]
    assert seen == {source}
    expected = {("tcp", CLIENT[version], endpoint(version, TCP_PORT))}
    if server is not None:
        assert {address[0] for address in server.log.received} == {source}
        expected.add(("udp", CLIENT[version], endpoint(version, UDP_PORT)))
    assert ends(relayed) == expected
    assert_same_story(relayed, imported(capture), games=3 if has_udp else 1)
    if flags:
        clients = "SELECT client FROM streams ORDER BY id"
        assert rows(relayed, clients) == rows(capture.with_suffix(".db"), clients)


@pytest.mark.full
@pytest.mark.parametrize(
    ("tool", "mark", "owner"),
    [
        ("nftables", "meta mark != 0x4b", "meta skuid != 0"),
        ("iptables", "-m mark ! --mark 0x4b", "-m owner ! --uid-owner 0"),
    ],
)
def test_a_relay_without_rights_is_known_by_its_user(
    tmp_path: Path, tool: str, mark: str, owner: str
) -> None:
    skip_unless_possible(*TOOLS)
    database, rules = tmp_path / "relay.db", "-i lo --port tcp/9000"
    with redirected(
        database, "client", f"REDIRECT by {tool}", rules, echo=(9000,), spoilt=(mark, owner), rights=False
    ) as (net, _):
        assert ask(net.client, socket.SOCK_STREAM, SERVER[4], 9000, user=NOBODY) == [b"hello 9000"]
    assert rows(tmp_path / "relay.db", "SELECT server FROM streams") == [(endpoint(4, 9000),)]


@contextmanager
def echoing(machine: str, *ports: int) -> Iterator[None]:
    """Servers on a machine, over TCP and UDP, that send back what comes, once, and then their port."""
    stop = threading.Event()

    def serve(sock: socket.socket) -> None:
        sock.settimeout(0.1)
        own = str(sock.getsockname()[1]).encode()
        while not stop.is_set():
            with suppress(TimeoutError):
                if sock.type == socket.SOCK_DGRAM:
                    data, address = sock.recvfrom(100)
                    sock.sendto(data + own, address)
                else:
                    client, _ = sock.accept()
                    with client:
                        client.settimeout(PATIENCE_S)
                        if data := client.recv(100):
                            client.sendall(data + own)

    with ExitStack() as stack:
        threads = []
        for port in ports:
            for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
                with inside(machine):
                    sock = stack.enter_context(socket.socket(socket.AF_INET, kind))
                sock.bind(("0.0.0.0", port))
                if kind == socket.SOCK_STREAM:
                    sock.listen()
                threads.append(threading.Thread(target=serve, args=(sock,), daemon=True))
        for thread in threads:
            thread.start()
        yield
        stop.set()
        for thread in threads:
            thread.join(PATIENCE_S)


def ask(
    machine: str,
    kind: socket.SocketKind,
    host: str,
    *ports: int,
    user: int = 0,
    patience_s: float = PATIENCE_S,
) -> list[bytes]:
    answers = []
    with inside(machine), ExitStack() as stack:
        local: tuple[str, int] = ("", 0)
        for port in ports:
            # Whose a socket is was settled when it was made.
            os.seteuid(user)
            try:
                sock = stack.enter_context(socket.socket(socket.AF_INET, kind))
            finally:
                os.seteuid(0)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.settimeout(patience_s)
            sock.bind(local)
            sock.connect((host, port))
            local = sock.getsockname()
            sock.send(b"hello ")
            try:
                answers.append(sock.recv(100))
            except OSError:
                answers.append(b"")
    return answers


KINDS = {socket.SOCK_STREAM: "tcp", socket.SOCK_DGRAM: "udp"}
BOTH = pytest.mark.parametrize("kind", a_few(KINDS, [socket.SOCK_DGRAM], KINDS.__getitem__))


@pytest.mark.full
@pytest.mark.parametrize(
    ("kind", "flags"),
    [(kind, flags) for kind in KINDS for flags in ((), ("--keep-source",))],
)
def test_one_port_may_speak_to_several_servers(
    tmp_path: Path, kind: socket.SocketKind, flags: tuple[str, ...]
) -> None:
    skip_unless_possible("nft", "setpriv")
    rules = "-i players0 --port 9000-9002"
    with redirected(tmp_path / "relay.db", "gateway", TPROXY, rules, *flags, echo=(9000, 9002)) as (net, _):
        assert ask(net.client, kind, SERVER[4], 9000, 9002) == [b"hello 9000", b"hello 9002"]
    recorded = rows(tmp_path / "relay.db", "SELECT DISTINCT client FROM streams")
    assert len(recorded) == 1
    servers = rows(tmp_path / "relay.db", "SELECT server FROM streams ORDER BY id")
    assert servers == [(endpoint(4, 9000),), (endpoint(4, 9002),)]


# Without the exemption of what the relay itself sends.
LOOPING = ("meta mark != 0x4b ", "")


@pytest.mark.full
@BOTH
def test_a_loop_is_noticed_and_goes_no_further(tmp_path: Path, kind: socket.SocketKind) -> None:
    skip_unless_possible("nft", "setpriv")
    with redirected(
        tmp_path / "relay.db", "client", TPROXY, "--port 9000 -i lo", echo=(9000,), spoilt=LOOPING
    ) as (net, relay):
        assert ask(net.client, kind, SERVER[4], 9000, patience_s=1) == [b""]
        said = hears(relay, "redirected to it, and rejected")
    assert f"traffic to {KINDS[kind]} {endpoint(4, 9000)}" in said
    assert len(rows(tmp_path / "relay.db", "SELECT id FROM streams")) == 1
    assert len(rows(tmp_path / "relay.db", "SELECT id FROM chunks WHERE direction = 'c2s'")) <= 1


@BOTH
def test_a_loop_with_a_kept_source(
    tmp_path: Path, kind: socket.SocketKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    skip_unless_possible("nft", "setpriv")
    monkeypatch.setattr(relay_tcp, "CONNECT_SECONDS", 0.5)
    rules = ("-m", f"transparent@{PORT}", "--keep-source", "--port", "9000", "-i", "players0", "-i", "lo")
    with (
        network() as net,
        redirecting(net.gateway, TPROXY, *rules, spoilt=LOOPING),
        echoing(net.server, 9000),
        inside(net.gateway),
        forwarding(tmp_path, Transparent(None, PORT), max_connections=9, keep_source=True) as relay,
    ):
        assert ask(net.client, kind, SERVER[4], 9000, patience_s=1) == [b""]
    ((code, sentence),) = relay.notices
    if kind == socket.SOCK_DGRAM:
        assert code == "loop"
    else:
        # The kernel takes it for a packet of the client's own connection: nothing comes back.
        assert code == "timeout"
        assert "With --keep-source the server's answers must be routed through this machine" in sentence
    assert sum(isinstance(item, Chunk) for item in relay.items) == (kind == socket.SOCK_DGRAM)


@pytest.mark.full
@pytest.mark.parametrize("kind", a_few(KINDS, [socket.SOCK_STREAM], KINDS.__getitem__))
def test_a_client_without_redirect_is_rejected(tmp_path: Path, kind: socket.SocketKind) -> None:
    skip_unless_possible("setpriv")
    mode = f"transparent@0.0.0.0:{PORT}"
    with network() as net, relaying(net.gateway, tmp_path / "relay.db", "-m", mode) as relay:
        assert ask(net.client, kind, GATEWAY_INSIDE[4], PORT, patience_s=1) == [b""]
        assert f"own address, {GATEWAY_INSIDE[4]}:{PORT}" in hears(relay, "only redirected traffic")
    assert rows(tmp_path / "relay.db", "SELECT id FROM streams") == []


@pytest.mark.full
def test_a_server_on_the_gateway_itself(tmp_path: Path) -> None:
    skip_unless_possible("nft", "setpriv")
    rules = "-i players0 --port 9000"
    with (
        redirected(tmp_path / "relay.db", "gateway", TPROXY, rules, "--keep-source") as (net, relay),
        echoing(net.gateway, 9000),
    ):
        assert ask(net.client, socket.SOCK_STREAM, GATEWAY_INSIDE[4], 9000) == [b"hello 9000"]
        assert "--keep-source has no effect here" in hears(relay, "is on this machine")
        assert ask(net.client, socket.SOCK_DGRAM, GATEWAY_INSIDE[4], 9000, patience_s=1) == [b""]
        assert "with -m reverse:udp://" in hears(relay, "only the server can send")


@pytest.mark.full
def test_a_server_that_is_not_there_is_reported_as_by_any_relay(tmp_path: Path) -> None:
    skip_unless_possible("nft", "setpriv")
    with redirected(tmp_path / "relay.db", "gateway", TPROXY, "-i players0 --port 9000") as (net, relay):
        assert ask(net.client, socket.SOCK_STREAM, SERVER[4], 9000, patience_s=1) == [b""]
        assert endpoint(4, 9000) in hears(relay, "no program listens on that port")
        assert ask(net.client, socket.SOCK_DGRAM, SERVER[4], 9000, patience_s=1) == [b""]
    codes = rows(tmp_path / "relay.db", "SELECT code, blame FROM diagnostics ORDER BY id")
    assert codes == [("refused", "network"), ("port-unreachable", "network")]


@pytest.mark.full
def test_forbidden_actions_are_reported(tmp_path: Path) -> None:
    skip_unless_possible("setpriv")
    command = [*KIEBITZ, "relay", "-q", "-w", str(tmp_path / "relay.db"), "-m", f"transparent@{PORT}"]
    with network() as net:
        less = at(net.gateway, "setpriv", "--bounding-set=-all")
        refused = subprocess.run(
            [*less, *command, "--keep-source"], capture_output=True, text=True, timeout=20, check=False
        )
        assert refused.returncode == 1
        assert refused.stderr.startswith("kiebitz: --keep-source needs the privilege to send")
        with running(*less, *command, ready="there is no UDP and no TPROXY") as relay:
            hears(relay, f"listening on tcp [::1]:{PORT}, for redirected traffic")


def test_elsewhere_than_on_linux_a_sentence_points_to_other_modes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    problem = mode_problem(f"transparent@{PORT}", tmp_path / "journal")
    assert "needs Linux. Use one of mitmproxy's modes: -m transparent, -m local or -m wireguard" in problem
