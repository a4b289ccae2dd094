"""Okey on real sockets: relayed, sniffed and captured by tcpdump, in whole lines and single bytes."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from okey_script import Script
from okey_talk import four
from processes_and_rows import Said, rows, spoken_three_ways, story


@pytest.mark.full
@pytest.mark.parametrize("bytewise", [False, True], ids=["whole messages", "single bytes"])
def test_relay_sniff_and_tcpdump_tell_the_same_story(tmp_path: Path, bytewise: bool) -> None:
    if os.geteuid() != 0:
        pytest.skip("sniffing needs root")
    if shutil.which("tcpdump") is None:
        pytest.skip("tcpdump is not installed")
    names = ("ada", "ben", "çelik", "dilek")
    script = Script(11, head=bytewise)
    four(script, 1, *names)
    script.play(script.tables[1], 3 if bytewise else 8)
    script.chat("çelik", 'Hallo "Leute"')
    script.win(script.tables[1])
    script.logout(*names)
    said = [Said(step.client, step.direction, step.data) for step in script.steps]
    databases = spoken_three_ways(tmp_path, said, bytewise)
    told = {name: story(database) for name, database in databases.items()}
    assert told["relay"] == told["sniff"]
    assert told["relay"] == told["import"]
    assert len(rows(databases["relay"], "SELECT id FROM messages")) == len(script.steps)
    assert len(rows(databases["relay"], "SELECT id FROM events WHERE kind IN ('drew', 'put')")) == len(
        script.moves
    )
    assert rows(databases["relay"], "SELECT id FROM diagnostics WHERE severity != 'note'") == []
