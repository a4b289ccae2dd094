"""A command run to its end, and what it cost: CPU, time and memory."""

from __future__ import annotations

import os
import select
import sqlite3
import subprocess
import sys
import time
from collections.abc import Collection, Sequence
from contextlib import closing, suppress
from pathlib import Path

import msgspec
from relay_processes import pss_kib

KIEBITZ = (sys.executable, "-m", "kiebitz")

BUILDS: dict[str, tuple[str, ...]] = {"kiebitz": KIEBITZ}
"""Builds to compare, by name: `KIEBITZ_COMPILED` is the Python of an environment with a compiled one.

-P: not the checkout that is the current folder.
"""

if _compiled := os.environ.get("KIEBITZ_COMPILED"):
    BUILDS["kiebitz, compiled"] = (_compiled, "-P", "-m", "kiebitz")

_LOOK_SECONDS = 0.05


class Cost(msgspec.Struct, frozen=True):
    """The cost of a command and its child processes: seconds, and peak memory in MiB.

    Memory is sampled twenty times a second; shared pages count once.
    """

    cpu: float
    wall: float
    peak: float


def run(
    command: Sequence[str],
    well: Collection[int] = (0,),
    read: str | Path = os.devnull,
    written: str | Path = os.devnull,
) -> Cost:
    """Run a command that reads a file, if anything, and writes one, if anything.

    Raises RuntimeError if it fails: with any other exit status than these.
    """
    begin = time.perf_counter()
    with open(read, "rb") as stdin, open(written, "wb") as stdout:
        running = subprocess.Popen(command, stdin=stdin, stdout=stdout, stderr=subprocess.PIPE)
    assert running.stderr is not None
    said = b""
    peak = 0
    with running.stderr:
        while True:
            ready, _, _ = select.select([running.stderr], [], [], _LOOK_SECONDS)
            if ready:
                more = os.read(running.stderr.fileno(), 65_536)
                if not more:
                    break
                said += more
            peak = max(peak, _memory_of(running.pid))
    # Instead of running.wait(), which does not return the child's resource usage.
    _, status, used = os.wait4(running.pid, 0)
    wall = time.perf_counter() - begin
    running.returncode = os.waitstatus_to_exitcode(status)
    if running.returncode not in well:
        raise RuntimeError(f"{' '.join(command)} failed:\n{said.decode(errors='replace')}")
    return Cost(used.ru_utime + used.ru_stime, wall, peak / 1024)


def _memory_of(pid: int) -> int:
    """Return the current memory of a process and its children in KiB."""
    total = 0
    with suppress(OSError):
        for process in (pid, *map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())):
            total += pss_kib(process)
    return total


def import_into(database: Path, capture: Path, build: str = "kiebitz") -> Cost:
    """Import a capture into a new database."""
    for file in database.parent.glob(f"{database.name}*"):
        file.unlink()
    return run([*BUILDS[build], "import", str(capture), "-w", str(database)])


def count(database: Path, table: str = "messages") -> int:
    with closing(sqlite3.connect(database)) as connection:
        return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])
