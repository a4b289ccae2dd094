"""Standard output that cannot be written, and standard error: one sentence, status 1 and no traceback.

Python keeps what is written in a buffer, and fails over it when it ends; so these are real processes, without
PYTHONUNBUFFERED.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from command import CAPTURES, ROOT, TINY, kiebitz
from corpora import add_here
from imported_databases import copy_of_database
from processes_and_rows import KIEBITZ, PATIENCE_S, free_port
from strength import a_few, times
from tables import tried_commands

from kiebitz.cli.main import COMMANDS
from kiebitz.cli.main import kiebitz as program

OTHER = str(CAPTURES / "maexchen-old-20110928-seed-tiny.pcap")

WRITING = [*map(tuple, tried_commands("test_standard_output"))]
ELSEWHERE = {
    "import": "it writes only to stderr",
    "redissect": "it writes only to stderr",
    "sniff": "it takes the right to capture; its view is that of replay to a live peer",
    "collect": "it takes a server; its view is that of replay to a live peer",
    "watch": "it takes a terminal",
}
"""Commands that are not above, and why."""

UNWRITABLE = {
    "a full disk": (
        "> /dev/full",
        "kiebitz: standard output: the disk is full: free some space, or write to another disk",
    ),
    "closed": (">&-", "kiebitz: standard output: it is closed"),
}
FEW = [
    *("relay -h", "messages DB --json", "state DB --svg -", "follow DB 1 --raw", "replay DB --speed 0"),
    "export DB -T parquet",
]
"""Different ways to write, which `make test` tries with a full disk."""


NO_READER = {
    "reader gone": "| true; exit ${PIPESTATUS[0]}",
    "errors full": "2> /dev/full",
    "errors closed": "2>&-",
    "both closed": ">&- 2>&-",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("output")
    copy_of_database(Path(TINY).name, folder / "game.db")
    add_here(folder / "corpus", [Path(TINY)])
    return folder


def in_shell(folder: Path, command: tuple[str, ...], redirected: str) -> subprocess.CompletedProcess[str]:
    """Run a command whose output the shell redirects."""
    names = {"DB": "game.db", "CORPUS": "corpus", "PORT": str(free_port("tcp"))}
    files = {part: str(ROOT / part) for part in command if part.startswith(("captures/", "docs/"))}
    arguments = [{**names, **files}.get(part, part) for part in command]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    environment.pop("PYTHONUNBUFFERED", None)
    return subprocess.run(
        ["bash", "-c", f'"$@" {redirected}', "bash", *KIEBITZ, *arguments],
        capture_output=True,
        text=True,
        # Some of them write bytes.
        errors="replace",
        timeout=PATIENCE_S,
        cwd=folder,
        env=environment,
    )


def test_each_command_is_tried() -> None:
    commands = {name for section in COMMANDS.values() for name in section}
    assert commands == {command[0] for command in WRITING} & commands | ELSEWHERE.keys()


@pytest.mark.full(but=1)
@pytest.mark.parametrize(
    ("name", "way"),
    a_few(
        [(" ".join(command), way) for command in WRITING for way in UNWRITABLE],
        lambda row: row[0] in (["check DB"] if row[1] == "closed" else FEW),
    ),
)
def test_a_write_error_is_reported_once(name: str, way: str, folder: Path) -> None:
    redirected, sentence = UNWRITABLE[way]
    done = in_shell(folder, tuple(name.split(" ")), redirected)
    told = done.stderr.splitlines()
    assert done.returncode == 1, done
    assert told.count(sentence) == 1
    assert len([line for line in told if "output" in line or "disk" in line]) == 1
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


@pytest.mark.full
@pytest.mark.parametrize(
    ("name", "way"),
    a_few(
        # `serve` writes until it is ended.
        [(" ".join(command), way) for command in WRITING if command[0] != "serve" for way in NO_READER],
        lambda row: row[0] == "messages DB --json" and row[1] in ("reader gone", "both closed"),
    ),
)
def test_no_reader_and_no_errors(name: str, way: str, folder: Path) -> None:
    done = in_shell(folder, tuple(name.split(" ")), NO_READER[way])
    assert done.stderr == "" or way == "reader gone"
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
    assert "output" not in done.stderr
    if way == "both closed":
        assert done.returncode == 1
    elif way != "reader gone":
        expected = in_shell(folder, tuple(name.split(" ")), "")
        # Further on, what is compressed has the time in it.
        assert (done.returncode, done.stdout[:500]) == (expected.returncode, expected.stdout[:500])
    assert done.returncode in (0, 1, 3)


@pytest.mark.full
def test_a_file_does_not_take_the_place_of_a_closed_stream(folder: Path) -> None:
    """Else sentences and listings would be written into it."""
    target = folder / "closed.db"
    for redirected in ("<&- >&- 2>&-", "<&- 2>&-", ">&- 2>&-")[: times(3, 1)]:
        # With sentences, and a second session.
        assert in_shell(folder, ("import", OTHER, TINY, "-w", "closed.db"), redirected).returncode == 0
        listed = kiebitz("events", f"{target}:2")
        assert (listed.status, listed.out) == (0, kiebitz("events", TINY).out)
        target.unlink()


@pytest.mark.full
def test_a_recording_continues_when_its_view_cannot_be_written(folder: Path) -> None:
    done = in_shell(folder, ("sniff", "-i", "-", "-w", "live.db"), f"< {TINY} > /dev/full")
    assert UNWRITABLE["a full disk"][1] in done.stderr
    assert "output stopped; everything is still recorded" in done.stderr
    assert "Traceback" not in done.stderr
    assert done.returncode == 1
    assert kiebitz("events", str(folder / "live.db")).out == kiebitz("events", TINY).out


@pytest.mark.full
def test_a_relay_whose_view_cannot_be_written_ends_with_1(tmp_path: Path) -> None:
    port, database = free_port("udp"), tmp_path / "live.db"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server, open("/dev/full", "w") as full:
        server.bind(("127.0.0.1", 0))
        server.settimeout(PATIENCE_S)
        mode = f"reverse:udp://127.0.0.1:{server.getsockname()[1]}@{port}"
        forced = f"udp.port=={server.getsockname()[1]},maexchen"
        command = [*KIEBITZ, "relay", "-m", mode, "-d", forced, "-w", str(database)]
        with subprocess.Popen(command, stdout=full, stderr=subprocess.PIPE, text=True) as relay:
            assert relay.stderr is not None
            while "listening on" not in relay.stderr.readline():
                assert relay.poll() is None
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
                client.settimeout(PATIENCE_S)
                client.sendto(b"REGISTER;alice", ("127.0.0.1", port))
                _, address = server.recvfrom(65_535)
                server.sendto(b"REGISTERED;0", address)
                assert client.recv(65_535) == b"REGISTERED;0"
            relay.send_signal(signal.SIGINT)
            said = relay.stderr.read()
        assert UNWRITABLE["a full disk"][1] in said
        assert relay.returncode == 1
    assert "alice" in kiebitz("events", str(database)).out


# A file called -.


def options() -> Iterator[tuple[tuple[str, ...], str]]:
    def below(names: tuple[str, ...], command: click.Command) -> Iterator[tuple[tuple[str, ...], str]]:
        if isinstance(command, click.Group):
            with click.Context(command) as context:
                for name in command.list_commands(context):
                    found = command.get_command(context, name)
                    assert found is not None
                    yield from below((*names, name), found)
        for option in command.params:
            if isinstance(option, click.Option) and option.opts[0] in OPTIONS:
                yield names, option.opts[0]

    return below((), program)


PATHS = {"TINY": TINY, "PLAN": str(ROOT / "docs/examples/interop/plan.toml")}
OPTIONS = {"-w", "-o", "--svg", "--report", "--keep", "--mapping-file", "--junit", "--baseline"}
TO_OUTPUT = {
    *(("draft", "-o"), ("export", "-o"), ("protocols", "-o"), ("sequence", "-o")),
    *(("state", "--svg"), ("stats", "--svg")),
}


def test_no_option_names_a_file_called_dash(tmp_path: Path) -> None:
    """`-` is standard output, or an error, in every command."""
    needed = {command: options for command, *options in tried_commands("test_standard_output: dash")}
    seen = set()
    before = os.getcwd()
    os.chdir(tmp_path)
    try:
        for names, name in options():
            seen.add((names[0], name))
            done = kiebitz(*names, *(PATHS.get(word, word) for word in needed[names[0]]), name, "-")
            if (names[0], name) in TO_OUTPUT:
                assert done.status == 0, done.err
                assert done.out.startswith(("<?xml", "time,", "# Drafted", "-- A dissector"))
            else:
                assert (done.status, done.out) == (2, ""), (names, name)
                assert f"'{name}': " in done.err
                assert "name a file" in done.err
    finally:
        os.chdir(before)
    assert seen >= TO_OUTPUT | {("import", "-w"), ("relay", "-w"), ("probe", "--keep"), ("replay", "--svg")}
    assert list(tmp_path.iterdir()) == []
