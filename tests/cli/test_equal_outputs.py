"""Outputs are the same in each run: nothing is shown in the order of a set."""

from __future__ import annotations

import os
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest
from command import CAPTURES
from processes_and_rows import KIEBITZ
from strength import GAMES, a_few, times

LISTINGS = [
    *(["events"], ["messages"], ["check"], ["check", "--summary"], ["state"], ["stats"]),
    *(["games", "--json"], ["streams", "--json"], ["events", "--json"], ["state", "--json"]),
    *(["messages", "--json"], ["check", "--json"], ["stats", "--json"]),
    *(["sequence"], ["sequence", "-T", "mermaid"], ["sequence", "-T", "svg"], ["show", "#3"]),
]
"""Commands that print a session, with the options that change their output."""


def output(arguments: list[str], seed: str) -> tuple[int, bytes, bytes]:
    """Return the exit status and what was printed, with the hashes of texts that follow from a seed."""
    environment = {**os.environ, "PYTHONHASHSEED": seed, "COLUMNS": "120"}
    done = subprocess.run([*KIEBITZ, *arguments], capture_output=True, env=environment, check=False)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("protocol", a_few(GAMES, ("catan",)))
def test_outputs_do_not_depend_on_hashes(protocol: str) -> None:
    capture = str(CAPTURES / GAMES[protocol])
    commands = [[listing[0], capture, *listing[1:]] for listing in LISTINGS[:: times(1, 3)]]
    commands += [["protocols", protocol, *form] for form in ([], ["-T", "lua"])]
    commands += [["probe", "server", "-d", protocol, "--list"], ["draft", capture]]
    with ThreadPoolExecutor(2) as pool:
        one, other = (pool.map(output, commands, [seed] * len(commands)) for seed in ("1", "2"))
        for command, first, second in zip(commands, one, other, strict=True):
            assert first[0] != 2, (command, first)
            assert first == second, command
