"""Outputs are the same in each run: nothing is shown in the order of a set."""

from __future__ import annotations

import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from command import CAPTURES
from processes_and_rows import KIEBITZ
from strength import GAMES, a_few, times

LISTINGS = [
    *(
        ["events"],
        ["messages"],
        ["check"],
        ["check", "--summary"],
        ["state"],
        ["stats"],
        ["games"],
        ["streams"],
    ),
    *(["state", "--json"], ["stats", "--json"], ["show", "#3"], ["sequence"], ["sessions"]),
    *(["follow", "1"], ["sequence", "-T", "mermaid"], ["sequence", "-T", "svg"], ["follow", "1", "--hex"]),
    *(["follow", "1", "--raw"], ["sequence", "-T", "plantuml"]),
]
"""Commands that print a session, with the options that change their output."""

TABLES = [
    [command, form]
    for command in ("events", "messages", "check", "games", "streams", "sessions")
    for form in ("--json", "--nl", "--csv", "--tsv")
]

# A page contains the time when it was written.
EXPORTS = [["export", "-T", form] for form in ("csv", "jsonl", "pcapng", "datasette")]


def output(arguments: list[str], seed: str) -> tuple[int, bytes, bytes]:
    """Return the exit status and what was printed, with the hashes of texts that follow from a seed."""
    environment = {**os.environ, "PYTHONHASHSEED": seed, "COLUMNS": "120"}
    done = subprocess.run([*KIEBITZ, *arguments], capture_output=True, env=environment, check=False)
    return done.returncode, done.stdout, done.stderr


IMPORTED = [["events"], ["messages", "--json"], ["check", "--csv"], ["state", "--json"], ["stats", "--json"]]
"""Listings of a capture, which is read in each run."""


@pytest.mark.parametrize("protocol", a_few(GAMES, ("catan",)))
def test_outputs_do_not_depend_on_hashes(protocol: str, tmp_path: Path) -> None:
    capture, session = str(CAPTURES / GAMES[protocol]), str(tmp_path / "game.db")
    assert output(["import", capture, "-w", session], "1")[0] == 0
    listings = [*LISTINGS[:: times(1, 9)], *TABLES[:: times(1, 12)], *EXPORTS[:: times(1, 4)]]
    commands = [[listing[0], session, *listing[1:]] for listing in listings]
    commands += [[listing[0], capture, *listing[1:]] for listing in IMPORTED[:: times(1, 5)]]
    commands += [["protocols", protocol, *form] for form in ([], ["-T", "lua"])]
    commands += [["probe", "server", "-d", protocol, "--list"], ["draft", capture]]
    with ThreadPoolExecutor(2) as pool:
        one, other = (pool.map(output, commands, [seed] * len(commands)) for seed in ("1", "2"))
        for command, first, second in zip(commands, one, other, strict=True):
            assert first[0] != 2, (command, first)
            assert first == second, command
