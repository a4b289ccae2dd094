"""The whole way on real sockets: a game relayed, sniffed and captured by tcpdump, all three the same."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from maexchen_live import Player, Server

KIEBITZ = [sys.executable, "-m", "cli"]
NAMES = ("alice", "bob", "carl", "bluff", "kaos")


def free_port() -> int:
    with closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def running(*command: str, ready: str) -> Iterator[subprocess.Popen[str]]:
    """A program that is told to end after the block, and must do so well."""
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stderr is not None
    line = ""
    try:
        while ready not in line:
            line = process.stderr.readline()
            assert line, f"{command} ended before it said '{ready}'"
        yield process
    finally:
        process.send_signal(signal.SIGINT)
        try:
            rest = process.stderr.read()
            status = process.wait(20)
        finally:
            process.kill()
            process.stderr.close()
    assert status == 0, rest


def play(server: Server, port: int) -> list[Player]:
    """A whole game through `port`; the players when it is over."""
    players = [
        Player(name, ("127.0.0.1", port), bluffs=name == "bluff", babbles=name == "kaos") for name in NAMES
    ]
    server.start()
    for player in players:
        player.start()
        time.sleep(0.02)
    server.join(60)
    assert not server.is_alive()
    for player in players:
        player.stop()
    return players


def rows(database: Path, query: str) -> list[Any]:
    with closing(sqlite3.connect(database)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        return connection.execute(query).fetchall()


def story(database: Path) -> dict[str, Any]:
    """All that was found, but for times and for the clients' ports, which a relay changes."""
    streams = [row[0] for row in rows(database, "SELECT id FROM streams ORDER BY id")]
    return {
        "messages": [
            rows(
                database,
                "SELECT direction, name, fields, offset, length FROM messages"
                f" WHERE stream_id = {stream} AND direction = '{direction}' ORDER BY offset, id",
            )
            for stream in streams
            for direction in ("c2s", "s2c")
        ],
        "events": rows(database, "SELECT seq, game_id, kind, actor, data FROM events ORDER BY id"),
        "games": rows(database, "SELECT label, result FROM games ORDER BY id"),
        "diagnostics": rows(
            database,
            "SELECT stream_id, direction, severity, grp, code, text, offset, length, expected, clause, blame"
            " FROM diagnostics ORDER BY stream_id, direction, offset, code",
        ),
    }


def recorded_bytes(database: Path) -> dict[tuple[str, str], list[bytes]]:
    """Datagrams by (client, direction)."""
    found: dict[tuple[str, str], list[bytes]] = {}
    query = (
        "SELECT s.client, c.direction, c.data FROM chunks c JOIN streams s ON s.id = c.stream_id"
        " ORDER BY c.id"
    )
    for client, direction, data in rows(database, query):
        found.setdefault((client, direction), []).append(data)
    return found


def test_relay_sniff_and_tcpdump_tell_the_same_story(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("sniffing needs root")
    tcpdump = shutil.which("tcpdump")
    if tcpdump is None:
        pytest.skip("tcpdump is not installed")
    server = Server(expected=len(NAMES), rounds=6)
    port = free_port()
    bpf = f"udp port {server.port}"
    relayed, sniffed, imported = (tmp_path / f"{name}.db" for name in ("relay", "sniff", "import"))
    capture = tmp_path / "game.pcap"
    mode = f"reverse:udp://127.0.0.1:{server.port}@{port}"
    with (
        running(tcpdump, "-i", "lo", "-U", "-w", str(capture), "-B", "8192", bpf, ready="listening on"),
        running(*KIEBITZ, "sniff", "-i", "lo", "-f", bpf, "-w", str(sniffed), ready="capturing on"),
        running(*KIEBITZ, "relay", "-m", mode, "-w", str(relayed), ready="listening on"),
    ):
        players = play(server, port)
        time.sleep(0.5)
    subprocess.run([*KIEBITZ, "import", str(capture), "-w", str(imported)], check=True, capture_output=True)

    # Bytes: what each end got is what the other sent, and what was recorded.
    recorded = recorded_bytes(relayed)
    upstream = {tuple(got): address for address, got in server.log.received.items()}
    for player in players:
        sent = player.log.sent[player.server]
        got = player.log.received[player.server]
        address = upstream[tuple(sent)]
        assert server.log.sent[address] == got
        client = f"127.0.0.1:{player.address[1]}"
        assert recorded[client, "c2s"] == sent
        assert recorded[client, "s2c"] == got

    relay_story = story(relayed)
    assert relay_story == story(sniffed)
    assert relay_story == story(imported)

    # And the story is the game's.
    assert len(relay_story["games"]) == 6
    assert all(json.loads(result)["losers"] for _, result in relay_story["games"])
    errors = rows(
        relayed,
        "SELECT s.client, d.blame FROM diagnostics d JOIN streams s ON s.id = d.stream_id"
        " WHERE severity = 'error'",
    )
    kaos = next(player for player in players if player.player == "kaos")
    assert set(errors) == {(f"127.0.0.1:{kaos.address[1]}", "client")}
