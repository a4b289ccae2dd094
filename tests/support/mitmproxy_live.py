"""A game over TCP for the tests of mitmproxy's modes."""

from __future__ import annotations

import os
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from imported_databases import database_of
from maexchen_programs import Player
from networks import SERVER, at
from processes_and_rows import (
    KIEBITZ,
    PATIENCE_S,
    Said,
    free_port,
    rows,
    running,
    speak,
)
from python_socks.sync import Proxy
from schafkopf_script import Script

from kiebitz.cli.options.session import open_database
from kiebitz.dissectors.model import Direction, Transport
from kiebitz.proxy.relay.endpoints import endpoint_text


def game(*players: str) -> list[Said]:
    """Return a game of Schafkopf; its server speaks first."""
    script = Script(11, players)
    for modus in ("SAUSPIELherz", "HOCHZEIT", "SOLOgrasDU"):
        script.round(modus)
    script.leave()
    return [Said(step.client, step.direction, step.data) for step in script.steps]


@contextmanager
def listening(host: str = "127.0.0.1") -> Iterator[socket.socket]:
    """Yield a game server's listening socket."""
    with socket.socket() as listener:
        listener.bind((host, 0))
        listener.listen(4096)
        listener.settimeout(PATIENCE_S)
        yield listener


def by_socks(port: int, server: tuple[str, int]) -> socket.socket:
    """Return a connection to `server` by way of the SOCKS proxy on a port of this machine."""
    return Proxy.from_url(f"socks5://127.0.0.1:{port}").connect(*server, timeout=PATIENCE_S)


def assert_recorded(database: Path, players: Sequence[Player]) -> None:
    """Check that each player has a stream with all its datagrams."""
    for player in players:
        client = endpoint_text(player.address)
        recorded: dict[str, list[bytes]] = {"c2s": [], "s2c": []}
        for direction, data in rows(
            database,
            "SELECT direction, data FROM chunks c JOIN streams s ON s.id = c.stream_id"
            f" WHERE transport = 'udp' AND client = '{client}' ORDER BY c.id",
        ):
            recorded[direction].append(data)
        assert recorded == {"c2s": player.log.sent[player.server], "s2c": player.log.received[player.server]}


def relayed_plainly(database: Path, said: list[Said], bytewise: bool = False) -> None:
    """Record the conversations in the mode that is not mitmproxy's."""
    with listening() as listener:
        port = free_port("tcp")
        mode = f"reverse:tcp://127.0.0.1:{listener.getsockname()[1]}@{port}"
        with running(*KIEBITZ, "relay", "-m", mode, "-w", str(database), "-q", ready="listening on"):
            speak(said, listener, lambda: socket.create_connection(("127.0.0.1", port), PATIENCE_S), bytewise)


class Sent(NamedTuple):
    """Data sent at once."""

    direction: Direction
    ts_ns: int
    data: bytes


def sent_on(name: str, stream: int) -> tuple[Transport, list[Sent], list[tuple[Direction, str, int, int]]]:
    """Return a captured stream's data, and its messages: direction, name, offset and length."""
    connection = open_database(database_of(name))
    with closing(connection):
        query = "SELECT direction, ts_ns, data FROM chunks WHERE stream_id = ? ORDER BY id"
        sent = [Sent(*row) for row in connection.execute(query, (stream,))]
        query = "SELECT direction, name, offset, length FROM messages WHERE stream_id = ? ORDER BY id"
        messages = connection.execute(query, (stream,)).fetchall()
        query = "SELECT transport FROM streams WHERE id = ?"
        return connection.execute(query, (stream,)).fetchone()[0], sent, messages


CONVERSATIONS = {
    name: sent_on(name, stream)
    for name, stream in (
        ("maexchen-head-tiny.pcap", 2),
        ("schafkopf-1.3-badcard.pcap", 2),
        ("catan-niedlichepixel-framing.pcap.gz", 1),
        ("okey-head-malformed.pcap.gz", 1),
        ("cgml-tiny.pcap.gz", 2),
    )
}


def with_tls(client: socket.socket, trusted: Path) -> socket.socket:
    return ssl.create_default_context(cafile=trusted).wrap_socket(client, server_hostname="127.0.0.1")


def mitmproxys(folder: Path) -> Path:
    """Return the certificate that clients of mitmproxy trust."""
    return folder / "keys" / "mitmproxy-ca-cert.pem"


DEVICE = f"kiebitz{os.getpid()}"


@contextmanager
def tunnel(machine: str, folder: Path, configuration: dict[str, str]) -> Iterator[str]:
    """Tunnel the machine's traffic to the server through the relay by WireGuard; yield its inner address."""
    peer = "".join(f"{name} = {configuration[name]}\n" for name in ("PublicKey", "AllowedIPs", "Endpoint"))
    path = folder / "peer.conf"
    path.write_text(f"[Interface]\nPrivateKey = {configuration['PrivateKey']}\n[Peer]\n{peer}")
    process = subprocess.Popen(
        at(machine, "wireguard-go", "-f", DEVICE), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        end = time.monotonic() + PATIENCE_S
        # Once it can be asked, it is there.
        while subprocess.run(at(machine, "wg", "show", DEVICE), capture_output=True, check=False).returncode:
            assert time.monotonic() < end, "wireguard-go does not start"
            time.sleep(0.05)
        for command in (
            f"wg setconf {DEVICE} {path}",
            f"ip address add {configuration['Address']} dev {DEVICE}",
            f"ip link set {DEVICE} mtu 1400 up",
            f"ip route add {SERVER[4]}/32 dev {DEVICE}",
            f"ip route add {configuration['DNS']}/32 dev {DEVICE}",
        ):
            subprocess.run(at(machine, *command.split()), check=True)
        yield configuration["Address"].partition("/")[0]
    finally:
        process.terminate()
        process.wait(PATIENCE_S)
