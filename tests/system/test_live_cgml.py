"""CGML on real sockets: a recorded hand spoken again, relayed, sniffed and captured by tcpdump."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from inspected_captures import items_of
from processes_and_rows import Said, rows, spoken_three_ways, story

from kiebitz.dissectors.model import Chunk


@pytest.mark.full
@pytest.mark.parametrize("bytewise", [False, True], ids=["as recorded", "single bytes"])
def test_relay_sniff_and_tcpdump_tell_the_same_story(tmp_path: Path, bytewise: bool) -> None:
    if os.geteuid() != 0:
        pytest.skip("sniffing needs root")
    if shutil.which("tcpdump") is None:
        pytest.skip("tcpdump is not installed")
    said = [
        Said(item.stream.client, item.direction, item.data)
        for item in items_of("cgml-tiny.pcap.gz")
        if isinstance(item, Chunk) and item.stream.server.endswith(":7002")
    ]
    databases = spoken_three_ways(tmp_path, said, bytewise)
    told = {kind: story(database) for kind, database in databases.items()}
    assert told["relay"] == told["sniff"]
    assert told["relay"] == told["import"]
    assert rows(databases["relay"], "SELECT result FROM games") == [
        ('{"contract":"B100","declarer":6533,"money":{"1216":128,"6533":-256,"8678":128}}',)
    ]
    assert rows(databases["relay"], "SELECT id FROM diagnostics WHERE severity != 'note'") == []
