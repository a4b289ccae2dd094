"""Catan on real sockets: recorded games spoken again, relayed, sniffed and captured by tcpdump."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from inspected_captures import items_of
from processes_and_rows import Said, rows, spoken_three_ways, story

from kiebitz.dissectors.model import Chunk


@pytest.mark.parametrize(
    ("name", "bytewise"),
    [
        pytest.param("catan-yaks-g1-3p", False, id="game", marks=pytest.mark.full),
        pytest.param("catan-yaks-lobby", True, id="single bytes"),
    ],
)
def test_relay_sniff_and_tcpdump_tell_the_same_story(tmp_path: Path, name: str, bytewise: bool) -> None:
    if os.geteuid() != 0:
        pytest.skip("sniffing needs root")
    if shutil.which("tcpdump") is None:
        pytest.skip("tcpdump is not installed")
    said = [
        Said(item.stream.client, item.direction, item.data)
        for item in items_of(f"{name}.pcap.gz")
        if isinstance(item, Chunk)
    ]
    databases = spoken_three_ways(tmp_path, said, bytewise)
    told = {kind: story(database) for kind, database in databases.items()}
    assert told["relay"] == told["sniff"]
    assert told["relay"] == told["import"]
    messages = sum(one.data.count(b"\n") for one in said)
    assert len(rows(databases["relay"], "SELECT id FROM messages WHERE name != 'unreadable'")) == messages
    assert rows(databases["relay"], "SELECT id FROM diagnostics WHERE severity = 'error'") == []
