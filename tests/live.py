"""What the tests of the whole way share: programs that run beside them, and what a database tells."""

from __future__ import annotations

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

from dissectors.records import Transport

KIEBITZ = [sys.executable, "-m", "cli"]


def free_port(transport: Transport) -> int:
    """A port of the loopback that nobody listens on."""
    kind = socket.SOCK_DGRAM if transport == "udp" else socket.SOCK_STREAM
    with socket.socket(socket.AF_INET, kind) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


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


@contextmanager
def recorded_three_ways(folder: Path, bpf: str, mode: str) -> Iterator[dict[str, Path]]:
    """Databases by how they are made: through a relay, by a sniff, and by importing what tcpdump captures.

    They are complete after the block.
    """
    tcpdump = shutil.which("tcpdump")
    assert tcpdump is not None
    databases = {name: folder / f"{name}.db" for name in ("relay", "sniff", "import")}
    capture = folder / "game.pcap"
    with (
        running(
            tcpdump,
            "-i",
            "lo",
            "-U",
            "-w",
            str(capture),
            "-B",
            "65536",
            bpf,
            ready="listening on",
        ),
        running(
            *KIEBITZ, "sniff", "-i", "lo", "-f", bpf, "-w", str(databases["sniff"]), ready="capturing on"
        ),
        running(*KIEBITZ, "relay", "-m", mode, "-w", str(databases["relay"]), ready="listening on"),
    ):
        yield databases
        # The kernel hands its packets to tcpdump once a second.
        time.sleep(1.2)
    subprocess.run(
        [*KIEBITZ, "import", str(capture), "-w", str(databases["import"])], check=True, capture_output=True
    )
