"""The whole way on real sockets: a game relayed, sniffed and captured by tcpdump, all three the same."""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from pathlib import Path

import pytest
from inspected_captures import errors, inspected, items_of
from maexchen_programs import NAMES, Server, play, players_of
from processes_and_rows import Said, free_port, recorded_three_ways, rows, spoken_three_ways, story

from kiebitz.dissectors.grammar.grammar import UNREADABLE
from kiebitz.dissectors.model import Chunk


@pytest.fixture(autouse=True)
def _tools() -> None:
    if os.geteuid() != 0:
        pytest.skip("sniffing needs root")
    if shutil.which("tcpdump") is None:
        pytest.skip("tcpdump is not installed")


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


@pytest.mark.full
def test_relay_sniff_and_tcpdump_record_the_same(tmp_path: Path) -> None:
    server = Server(expected=len(NAMES), rounds=6)
    port = free_port("udp")
    mode = f"reverse:udp://127.0.0.1:{server.port}@{port}"
    with recorded_three_ways(tmp_path, f"udp port {server.port}", mode) as databases:
        players = players_of(port)
        play(server, players)
    relayed, sniffed, imported = databases.values()

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


RECORDED = [
    ("catan-yaks-lobby.pcap.gz", True),
    ("catan-yaks-g1-3p.pcap.gz", False),
    ("cgml-tiny.pcap.gz", False),
    ("cgml-tiny.pcap.gz", True),
    ("okey-head-game-win.pcap.gz", False),
    ("okey-seed-tiny.pcap.gz", True),
    ("schafkopf-1.3-1human-round.pcap", False),
    ("schafkopf-1.3-1human-tiny.pcap", True),
]
"""A capture, and whether each byte of it is sent by itself."""


@pytest.mark.full
@pytest.mark.parametrize(("capture", "bytewise"), RECORDED)
def test_a_recorded_game_is_the_same_relayed_sniffed_and_captured(
    tmp_path: Path, capture: str, bytewise: bool
) -> None:
    chunks = [item for item in items_of(capture) if isinstance(item, Chunk)]
    ((server, _),) = Counter(chunk.stream.server for chunk in chunks).most_common(1)
    chunks = [chunk for chunk in chunks if chunk.stream.server == server]
    said = [Said(chunk.stream.client, chunk.direction, chunk.data) for chunk in chunks]
    databases = spoken_three_ways(tmp_path, said, bytewise)
    told = {kind: story(database) for kind, database in databases.items()}
    assert told["relay"] == told["sniff"] == told["import"]
    found = inspected(chunks)
    messages = [message.name for message in found.messages if message.name != UNREADABLE]
    sent = rows(databases["relay"], f"SELECT name FROM messages WHERE name != '{UNREADABLE}'")
    assert sorted(name for (name,) in sent) == sorted(messages)
    codes = rows(databases["relay"], "SELECT code FROM diagnostics WHERE severity = 'error'")
    assert sorted(code for (code,) in codes) == sorted(diagnostic.code for diagnostic in errors(found))
    for database in databases.values():
        reasons = {reason for (reason,) in rows(database, "SELECT close_reason FROM streams")}
        assert reasons == {"closed"}
