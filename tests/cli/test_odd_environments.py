"""Commands in odd environments, and outputs that are the same in each run: nothing has the order of a set."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from command import CAPTURES, ROOT, TINY, kiebitz
from corpora import add_here
from snapshots import as_bytes
from strength import GAMES, a_few, every, times
from tables import tried_commands
from terminals import OnTerminal

Changes = Mapping[str, str | None]


def environments(where: str) -> list[Changes]:
    """Return environments; `FILE` is a file without settings, None an unset variable."""
    found: list[Changes] = []
    for line in tried_commands(f"test_odd_environments: {where}"):
        parts = [word.partition("=") for word in line]
        found.append({name: as_bytes(value).decode() if sign else None for name, sign, value in parts})
    return found


COMMANDS = {
    "events": ["events", TINY],
    "query": ["corpus", "query", "CORPUS", "select 'ü' as letter, count(*) from events"],
    "parquet": ["export", TINY, "-T", "parquet", "-o", "OUT"],
}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus") / "corpus"
    add_here(folder, [Path(TINY)])
    return folder


def environment(changes: Changes, folder: Path) -> dict[str, str]:
    file = folder / "file"
    file.write_text("[1,\n b: {{\n")
    found = {**os.environ, "PYTHONPATH": str(ROOT)}
    for name, value in changes.items():
        found.pop(name, None)
        if value is not None:
            found[name] = value.replace("FILE", str(file))
    return found


def run(command: list[str], changes: Changes, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "kiebitz", *command],
        env=environment(changes, folder),
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        timeout=120,
        stdin=subprocess.DEVNULL,
    )


@pytest.mark.full
@pytest.mark.parametrize("command", every(3, COMMANDS))
@pytest.mark.parametrize(
    "changes",
    a_few(environments("anywhere"), lambda changes: "PYTHONUTF8" in changes, str),
)
def test_a_command_does_what_it_does(command: str, changes: Changes, corpus: Path, tmp_path: Path) -> None:
    paths = {"CORPUS": str(corpus), "OUT": str(tmp_path / "out.parquet")}
    done = run([paths.get(word, word) for word in COMMANDS[command]], changes, tmp_path)
    assert "Traceback" not in done.stderr
    assert "error of Kiebitz" not in done.stderr
    assert "\x1b" not in done.stderr
    # Where letters are no UTF-8, a query may not hold them.
    assert done.returncode == 0 or (command, done.returncode) == ("query", 2), done.stderr
    assert (done.returncode == 0) == ("kiebitz: " not in done.stderr)


DASK: dict[str, Changes] = {
    "a malformed file": {"DASK_CONFIG": "FILE"},
    "no file of settings": {"DASK_ROOT_CONFIG": "FILE"},
    "no encoded settings": {"DASK_INTERNAL_INHERIT_CONFIG": "x"},
}


@pytest.mark.full
@pytest.mark.parametrize("changes", DASK)
def test_dask_is_configured_only_for_a_scheduler_of_its_own(changes: str, tmp_path: Path) -> None:
    arguments = ["corpus", "add", str(tmp_path / "corpus"), TINY]
    done = run([*arguments, "--scheduler", "tcp://127.0.0.1:1"], DASK[changes], tmp_path)
    assert done.returncode == 1
    assert "Dask does not start; check its configuration (files in ~/.config/dask, or var" in done.stderr
    assert done.stderr.count("\n") == 2
    done = run(arguments, DASK[changes], tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (0, 1), done.stderr
    assert "1 capture added" in done.stderr


@pytest.mark.parametrize("changes", a_few(environments("watching"), [{"COLUMNS": "99999999"}], str))
@pytest.mark.full
def test_the_terminal_is_filled_as_ever(changes: dict[str, str]) -> None:
    with OnTerminal("watch", TINY, columns=80, rows=24, **changes) as terminal:
        terminal.read_until(lambda written: b"q quit" in written)
        terminal.type(b"q")
        assert terminal.ended() == 0, terminal.lines


def test_a_query_that_is_no_utf_8_is_refused(corpus: Path) -> None:
    done = kiebitz("corpus", "query", str(corpus), "select '\udcfc'")
    assert (done.status, done.out, done.err) == (2, "", "kiebitz: the query is not UTF-8\n")


LISTINGS = tried_commands("test_odd_environments")
"""Commands that print a session, with the options that change their output."""

TABLES = [
    [command, form]
    for command in ("events", "messages", "check", "games", "streams", "sessions")
    for form in ("--json", "--nl", "--csv", "--tsv")
]

# A page contains the time when it was written.
EXPORTS = [["export", "-T", form] for form in ("parquet", "csv", "jsonl", "pcapng", "datasette")]


PRINTING = """
import contextlib, io, json, sys
from kiebitz.cli.main import run
for command in json.loads(sys.argv[1]):
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8") for _ in range(2))
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = run(command)
        out.flush(), err.flush()
    print(status, out.buffer.getvalue(), err.buffer.getvalue())
"""


def outputs(commands: list[list[str]], seed: str) -> list[str]:
    """Return exit statuses and outputs of commands in one process, in which texts are hashed with a seed."""
    environment = {**os.environ, "PYTHONHASHSEED": seed, "COLUMNS": "120", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", PRINTING, json.dumps(commands)]
    return subprocess.run(
        command, capture_output=True, env=environment, text=True, check=True
    ).stdout.splitlines()


IMPORTED = [["events"], ["messages", "--json"], ["check", "--csv"], ["state", "--json"], ["stats", "--json"]]
"""Listings of a capture, which is read in each run."""


@pytest.mark.parametrize("protocol", a_few(GAMES, ("catan",)))
def test_outputs_do_not_depend_on_hashes(protocol: str, tmp_path: Path) -> None:
    capture, session = str(CAPTURES / GAMES[protocol]), str(tmp_path / "game.db")
    assert kiebitz("import", capture, "-w", session).status == 0
    listings = [*LISTINGS[:: times(1, 9)], *TABLES[:: times(1, 12)], *EXPORTS[:: times(1, 4)]]
    commands = [[listing[0], session, *listing[1:]] for listing in listings]
    commands += [[listing[0], capture, *listing[1:]] for listing in IMPORTED[:: times(1, 5)]]
    commands += [["protocols", protocol, *form] for form in ([], ["-T", "lua"])]
    commands += [["probe", "server", "-d", protocol, "--list"], ["draft", capture]]
    with ThreadPoolExecutor(2) as pool:
        one, other = pool.map(outputs, [commands] * 2, ("1", "2"))
    for command, first, second in zip(commands, one, other, strict=True):
        assert not first.startswith("2 "), (command, first)
        assert first == second, command
