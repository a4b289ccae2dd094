"""What the tests of mitmproxy's modes share: a game over TCP, and who speaks it."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from maexchen_programs import Player
from processes_and_rows import KIEBITZ, PATIENCE_S, Said, free_port, rows, running, speak
from python_socks.sync import Proxy
from schafkopf_script import Script

from kiebitz.proxy.relay.endpoints import endpoint_text


def game(*players: str) -> list[Said]:
    """A game of Schafkopf; its server speaks first."""
    script = Script(11, players)
    for modus in ("SAUSPIELherz", "HOCHZEIT", "SOLOgrasDU"):
        script.round(modus)
    script.leave()
    return [Said(step.client, step.direction, step.data) for step in script.steps]


@contextmanager
def listening(host: str = "127.0.0.1") -> Iterator[socket.socket]:
    """A game server's listening socket."""
    with socket.socket() as listener:
        listener.bind((host, 0))
        listener.listen(4096)
        listener.settimeout(PATIENCE_S)
        yield listener


def by_socks(port: int, server: tuple[str, int]) -> socket.socket:
    """A connection to `server` by way of the SOCKS proxy on a port of this machine."""
    return Proxy.from_url(f"socks5://127.0.0.1:{port}").connect(*server, timeout=PATIENCE_S)


def assert_recorded(database: Path, players: Sequence[Player]) -> None:
    """Each player has a stream, with every datagram that he sent and got."""
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
