"""Messages altered in the modes that are not plain reverse ones: mitmproxy's, and transparent."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import ClassVar

import pytest
from alteration_files import cases, check_cases, play_all, play_cases, rules_of_cases
from altering_relay import Line, Relay, relaying
from certificates import Authority
from held_messages import Follower
from mitmproxy_live import by_socks, mitmproxys, tunnel, with_tls
from networks import GATEWAY_INSIDE, SERVER, Network, inside, network, redirecting, skip_unless_possible
from processes_and_rows import PATIENCE_S, free_port, until

from kiebitz.services.alteration.control_server import Act

CASES = [*cases("okey"), *cases("cgml")[:1]]
DATAGRAMS = cases("maexchen")


class BySocks(Line):
    """A client who goes by way of a SOCKS proxy, the relay's."""

    proxy: ClassVar[int]
    mode = None

    def enter(self) -> socket.socket:
        return by_socks(self.proxy, self.address)


class WithTls(Line):
    """A client and a server who speak TLS, each with the relay."""

    authority: ClassVar[Authority]
    folder: ClassVar[Path]
    stack: ClassVar[ExitStack]

    @property
    def mode(self) -> str:
        return f"reverse:tls://{self.server}@{self.port}"

    def listen(self) -> socket.socket:
        return self.stack.enter_context(self.authority.serving())

    def enter(self) -> socket.socket:
        plain = socket.create_connection(("127.0.0.1", self.port), PATIENCE_S)
        return with_tls(plain, mitmproxys(self.folder))

    def hang_up(self) -> None:
        # With TLS a half-close is impossible.
        self.end_of("s2c").close()
        while data := self.end_of("c2s").recv(65_536):
            self.got["s2c"].append(data)
        self.close()


class InNetwork(Line):
    net: ClassVar[Network]
    ports: ClassVar[Iterator[int]]
    mode = None

    def listen(self) -> socket.socket:
        kind = socket.SOCK_DGRAM if self.transport == "udp" else socket.SOCK_STREAM
        with inside(self.net.server):
            listener = socket.socket(socket.AF_INET, kind)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((SERVER[4], next(self.ports)))
        listener.settimeout(PATIENCE_S)
        if self.transport == "tcp":
            listener.listen()
        return listener

    def enter(self) -> socket.socket:
        kind = socket.SOCK_DGRAM if self.transport == "udp" else socket.SOCK_STREAM
        with inside(self.net.client):
            client = socket.socket(socket.AF_INET, kind)
        client.settimeout(PATIENCE_S)
        client.connect(self.address)
        return client


@pytest.fixture
def by_mitmproxy(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[type[Line], list[str]]]:
    """Yield the lines, and the relay's options, of a mode of mitmproxy that needs neither root nor tools."""
    kind: type[Line] = request.param
    options = ["--set", f"confdir={tmp_path / 'keys'}"]
    with ExitStack() as stack:
        if kind is BySocks:
            BySocks.proxy = free_port("tcp")
            options += ["-m", f"socks5@{BySocks.proxy}"]
        else:
            WithTls.authority, WithTls.folder, WithTls.stack = Authority(tmp_path), tmp_path, stack
            options += ["--set", f"ssl_verify_upstream_trusted_ca={WithTls.authority.path}"]
        yield kind, options


ByMitmproxy = tuple[type[Line], list[str]]

IN_BOTH = pytest.mark.parametrize(
    "by_mitmproxy",
    [pytest.param(BySocks, id="SOCKS"), pytest.param(WithTls, id="TLS", marks=pytest.mark.full)],
    indirect=True,
)

DECISIONS: list[tuple[bytes, Act, str, bytes, bytes]] = [
    (b"LOGI alice\r\n", "change", "nickname=bob", b"LOGI bob\r\n", b""),
    (b"NAME carl\r\n", "let-go", "", b"NAME carl\r\n", b""),
    (b"NAME dora\r\n", "answer", "+NAME actualname=eve", b"", b"+NAME eve\r\n"),
]
"""A message that is held, the decision about it, and what server and client receive."""


@pytest.mark.full
@IN_BOTH
def test_by_mitmproxy(by_mitmproxy: ByMitmproxy, tmp_path: Path) -> None:
    kind, options = by_mitmproxy
    play_all(CASES, tmp_path / "altered.db", *options, kind=kind)


@IN_BOTH
def test_held_messages_by_mitmproxy(by_mitmproxy: ByMitmproxy, tmp_path: Path) -> None:
    """Each decision about a held message, and a sender that has to wait as the queue behind one is full."""
    kind, options = by_mitmproxy
    database, line = tmp_path / "held.db", kind("okey")
    held = ("--hold", 'msg in {"LOGI", "NAME", "LOGO"} and dir == "c2s"')
    with relaying([line], database, *held, *options), Follower(lambda: (str(database), 1)) as follower:
        line.connect()
        for said, action, text, here, back in DECISIONS:
            line.say("c2s", said)
            until(lambda: bool(follower.held and follower.held.messages), "it is held")
            assert follower.held is not None
            (message,) = follower.held.messages
            follower.act(action, message.number, text)
            line.hear("c2s", [here])
            line.hear("s2c", [back])
            assert (line.got["c2s"][-1], line.got["s2c"][-1]) == (here, back)
        follower.act("drop", message.number)
        sent = b"LOGO\r\n" + (b"x" * 1000 + b"\r\n") * 32_768
        sender = line.end_of("c2s")
        sender.settimeout(1)
        accepted = 0
        with suppress(TimeoutError):
            while accepted < len(sent):
                accepted += sender.send(sent[accepted : accepted + 65_536])
        assert 1 << 20 <= accepted < len(sent), "the sender has to wait"
        follower.act("let-all-go")
        line.hear("c2s", [sent[:accepted]])
        assert line.got["c2s"][-1] == sent[:accepted]
        line.hang_up()


@pytest.mark.full
@IN_BOTH
def test_a_poor_network_by_mitmproxy(by_mitmproxy: ByMitmproxy, tmp_path: Path) -> None:
    kind, options = by_mitmproxy
    slow = "cut 100%, delay 20ms, rate 1Mbit/s, seed 1"
    for impairment, is_reset in ((slow, False), ("reset 100%", True)):
        database, line = tmp_path / f"{is_reset}.db", kind("okey")
        with relaying([line], database, "--impair", impairment, *options):
            line.connect()
            if is_reset:
                line.say("c2s", b"LOGI alice\r\n")
                assert line.end_of("c2s").recv(100) == b"" == line.end_of("s2c").recv(100)
                line.close()
            else:
                line.play({}, {})
                line.hang_up()


@contextmanager
def relayed_in(
    net: Network, folder: Path, mode: str, *options: str, told: str, times: int = 1
) -> Iterator[Relay]:
    """Yield a relay at the gateway when it has told something; after the block play all cases through it."""
    altered, database = CASES + DATAGRAMS, folder / "altered.db"
    InNetwork.net, InNetwork.ports = net, count(9100)
    lines = [InNetwork(case.protocol) for case in altered]
    words = [*rules_of_cases(altered, lines), "-m", mode, *options]
    with relaying(lines, database, *words, machine=net.gateway) as relay:
        until(lambda: relay.said.count(told) >= times, f"it says {told}")
        yield relay
        play_cases(altered, lines)
    check_cases(altered, lines, database)


@pytest.mark.full
def test_transparent(tmp_path: Path) -> None:
    skip_unless_possible("nft")
    mode = "transparent@9001"
    ports = ("-i", "players0", "--port", "9100-9199")
    with (
        network() as net,
        redirecting(net.gateway, "TPROXY by nftables", "-m", mode, *ports),
        # It listens over IPv4 and IPv6.
        relayed_in(net, tmp_path, mode, told="listening on udp", times=2),
    ):
        pass


@pytest.mark.full
def test_wireguard(tmp_path: Path) -> None:
    skip_unless_possible("wireguard-go", "wg")
    if not Path("/dev/net/tun").exists():
        pytest.skip("there is no /dev/net/tun")
    mode, keys = f"wireguard@{GATEWAY_INSIDE[4]}:51820", f"confdir={tmp_path / 'keys'}"
    with (
        network() as net,
        ExitStack() as stack,
        relayed_in(net, tmp_path, mode, "--set", keys, told="Endpoint") as relay,
    ):
        pairs = (line.strip().partition(" = ") for line in relay.said.splitlines())
        stack.enter_context(tunnel(net.client, tmp_path, {name: value for name, _, value in pairs}))
