"""The relay as a WireGuard server, with a peer in user space on machines of the tests' own."""

from __future__ import annotations

import socket
import subprocess
from functools import partial
from pathlib import Path

import pytest
from maexchen_programs import Player, Server, play
from mitmproxy_live import assert_recorded, game, relayed_plainly, tunnel
from networks import GATEWAY_INSIDE, SERVER, at, inside, network, skip_unless_possible
from processes_and_rows import KIEBITZ, PATIENCE_S, rows, running, speak

UDP_PORT, TCP_PORT = 9000, 35555
NAMES = ("alice", "bob", "carl")
ADDRESS_OF_LOCALHOST = b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x09localhost\x00\x00\x01\x00\x01"
"""A question for a name server (RFC 1035, 4)."""


def read_configuration(relay: subprocess.Popen[str]) -> dict[str, str]:
    """Return the peer's configuration, as the relay prints it."""
    assert relay.stderr is not None
    values: dict[str, str] = {}
    for line in relay.stderr:
        name, equals, value = line.strip().partition(" = ")
        if equals:
            values[name] = value
        if name == "Endpoint":
            return values
    raise AssertionError("the relay has ended")


@pytest.mark.full
def test_games_through_the_tunnel(tmp_path: Path) -> None:
    skip_unless_possible("wireguard-go", "wg")
    if not Path("/dev/net/tun").exists():
        pytest.skip("there is no /dev/net/tun")
    said = game("Anna", "Bärbel", "Carl")
    database = tmp_path / "game.db"
    with network() as net:
        command = at(
            net.gateway,
            *KIEBITZ,
            *("relay", "-m", f"wireguard@{GATEWAY_INSIDE[4]}:51820", "-w", str(database), "-q"),
            *("--set", f"confdir={tmp_path / 'keys'}"),
        )
        with running(*command, ready="listening on udp") as relay:
            configuration = read_configuration(relay)
            assert configuration["Endpoint"] == f"{GATEWAY_INSIDE[4]}:51820"
            with tunnel(net.client, tmp_path, configuration) as host:
                with inside(net.server):
                    server = Server(expected=3, rounds=2, address=(SERVER[4], UDP_PORT))
                with inside(net.client):
                    players = [Player(name, (SERVER[4], UDP_PORT), host=host) for name in NAMES]
                play(server, players)
                with inside(net.client):
                    asking = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
                with asking:
                    asking.settimeout(PATIENCE_S)
                    asking.sendto(ADDRESS_OF_LOCALHOST, (configuration["DNS"], 53))
                    assert asking.recv(512).endswith(b"\x7f\x00\x00\x01")
                with inside(net.server):
                    listener = socket.create_server((SERVER[4], TCP_PORT))
                listener.settimeout(PATIENCE_S)
                with listener, inside(net.client):
                    speak(
                        said, listener, partial(socket.create_connection, (SERVER[4], TCP_PORT), PATIENCE_S)
                    )
    assert_recorded(database, players)
    # What the name server inside the tunnel was asked is no stream.
    assert rows(database, "SELECT count(*) FROM streams") == [(6,)]
    assert rows(database, "SELECT count(*) FROM games WHERE protocol = 'maexchen'") == [(2,)]
    assert rows(database, "SELECT count(*) FROM diagnostics WHERE severity != 'note'") == [(0,)]

    relayed_plainly(tmp_path / "plain.db", said)
    query = (
        "SELECT name, fields, offset FROM messages m JOIN streams s ON s.id = m.stream_id"
        " WHERE transport = 'tcp' ORDER BY m.id"
    )
    assert rows(database, query) == rows(tmp_path / "plain.db", query)
    assert rows(database, "SELECT count(*) FROM streams WHERE close_reason = 'closed'") == [(3,)]
