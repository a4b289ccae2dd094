"""Schafkopf on real sockets: relayed, sniffed and captured by tcpdump, in whole messages and single bytes."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from processes_and_rows import Said, rows, spoken_three_ways, story
from schafkopf_script import Script


@pytest.mark.full
@pytest.mark.parametrize("bytewise", [False, True], ids=["whole messages", "single bytes"])
def test_relay_sniff_and_tcpdump_tell_the_same_story(tmp_path: Path, bytewise: bool) -> None:
    if os.geteuid() != 0:
        pytest.skip("sniffing needs root")
    if shutil.which("tcpdump") is None:
        pytest.skip("tcpdump is not installed")
    script = Script(11, ("Anna", "Bärbel", "Carl"))
    for modus in (
        ("SAUSPIELgras", "WENZ", "NICHTS") if bytewise else ("SAUSPIELherz", "HOCHZEIT", "SI", "SOLOgrasDU")
    ):
        script.round(modus)
    script.leave()
    said = [Said(step.client, step.direction, step.data) for step in script.steps]
    databases = spoken_three_ways(tmp_path, said, bytewise)
    told = {name: story(database) for name, database in databases.items()}
    assert told["relay"] == told["sniff"]
    assert told["relay"] == told["import"]
    assert len(told["relay"]["games"]) == len(script.rounds)
    assert len(rows(databases["relay"], "SELECT id FROM messages WHERE name != 'unreadable'")) == len(
        script.steps
    )
    assert rows(databases["relay"], "SELECT id FROM diagnostics WHERE severity != 'note'") == []
    for database in databases.values():
        assert {reason for (reason,) in rows(database, "SELECT close_reason FROM streams")} == {"closed"}
