"""Messages altered in the modes that are not plain reverse ones: mitmproxy's, and transparent."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from itertools import count
from pathlib import Path
from typing import ClassVar

import pytest
from altering_relay import (
    Case,
    Line,
    assert_as_told,
    blamed,
    conversation,
    play_all,
    play_cases,
    relaying,
    rules_of,
)
from certificates import Authority
from held_messages import Follower
from mitmproxy_live import by_socks, mitmproxys, tunnel, with_tls
from networks import GATEWAY_INSIDE, SERVER, Network, inside, network, redirecting, skip_unless_possible
from processes_and_rows import PATIENCE_S, free_port, until

from kiebitz.services.alteration.control_server import Act

LGAM, LPLA = conversation("okey")[7].data, conversation("okey")[3].data

CASES = [
    Case("okey", 2, "--change actualname=Fatma", (b"+LOGI Fatma\r\n",)),
    Case("okey", 7, "--change gamestatus=r", (b"LGAM r\r\n",)),
    Case("okey", 7, "--drop", ()),
    Case("okey", 8, "--drop", ()),
    Case("okey", 7, "--duplicate", (LGAM, LGAM)),
    Case("okey", 4, "--delay 100ms"),
    Case("okey", 3, "--delay 100ms"),
    Case("okey", 3, "--insert PING", (LPLA, b"PING\r\n")),
    Case("okey", 3, "--insert '+LPLA playerlist=Istref'", None, (b"+LPLA Istref\r\n",)),
    Case("cgml", 9, "--change licite=NO", (b'<licite type="answer">NO</licite>\r\n\r\n',)),
]


TOKEN = b"d1c7abfb-9ef3-4df1-a3f5-50e0e9b477e6"
DATAGRAMS = [
    Case("maexchen", 8, "--change dice=2,1", (b"ROLLED;2,1;" + TOKEN,)),
    Case("maexchen", 9, "--drop", ()),
    Case("maexchen", 8, "--delay 100ms"),
    Case("maexchen", 9, "--duplicate", (b"ANNOUNCE;3,3;" + TOKEN, b"ANNOUNCE;3,3;" + TOKEN)),
    Case("maexchen", 9, "--insert 'SEE token=x'", (b"ANNOUNCE;3,3;" + TOKEN, b"SEE;x")),
    Case("maexchen", 9, "--insert 'PLAYER ROLLS name=carl'", None, (b"PLAYER ROLLS;carl",)),
]


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


@IN_BOTH
def test_by_mitmproxy(by_mitmproxy: ByMitmproxy, tmp_path: Path) -> None:
    kind, options = by_mitmproxy
    database = tmp_path / "altered.db"
    lines = [kind(case.protocol) for case in CASES]
    assert_as_told(CASES, play_all(CASES, database, *options, lines=lines), database)
    assert blamed(database) == []


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


@pytest.mark.full
def test_transparent(tmp_path: Path) -> None:
    skip_unless_possible("nft")
    database = tmp_path / "altered.db"
    cases = CASES + DATAGRAMS
    with network() as net:
        InNetwork.net, InNetwork.ports = net, count(9100)
        lines = [InNetwork(case.protocol) for case in cases]
        mode = "transparent@9001"
        ports = ("-i", "players0", "--port", "9100-9199")
        rules = rules_of(cases, lines)
        with (
            redirecting(net.gateway, "TPROXY by nftables", "-m", mode, *ports),
            relaying(lines, database, *rules, "-m", mode, machine=net.gateway) as relay,
        ):
            until(lambda: relay.said.count("listening on udp") == 2, "it listens over IPv4 and IPv6")
            play_cases(cases, lines)
    assert_as_told(cases, lines, database)
    assert blamed(database) == []


@pytest.mark.full
def test_wireguard(tmp_path: Path) -> None:
    skip_unless_possible("wireguard-go", "wg")
    if not Path("/dev/net/tun").exists():
        pytest.skip("there is no /dev/net/tun")
    database = tmp_path / "altered.db"
    cases = CASES + DATAGRAMS
    with network() as net:
        InNetwork.net, InNetwork.ports = net, count(9100)
        lines = [InNetwork(case.protocol) for case in cases]
        options = ("-m", f"wireguard@{GATEWAY_INSIDE[4]}:51820", "--set", f"confdir={tmp_path / 'keys'}")
        with relaying(lines, database, *rules_of(cases, lines), *options, machine=net.gateway) as relay:
            until(lambda: "Endpoint" in relay.said, "the peer's configuration is told")
            pairs = (line.strip().partition(" = ") for line in relay.said.splitlines())
            with tunnel(net.client, tmp_path, {name: value for name, _, value in pairs}):
                play_cases(cases, lines)
    assert_as_told(cases, lines, database)
    assert blamed(database) == []
