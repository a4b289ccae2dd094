"""A relay of the real command, seen from outside: its two processes, their memory and their open files."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from processes_and_rows import KIEBITZ, child_of, running

HAS_PROC = pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="there is no /proc here")


class Size(NamedTuple):
    """A process's memory in KiB (PSS), and its number of open files."""

    memory: int
    files: int


class Watched:
    """A running relay that records into `database`."""

    def __init__(self, relay: subprocess.Popen[str], database: Path) -> None:
        self.database = database
        self.forwarder = relay.pid
        self.recorder = child_of(relay.pid)

    def sizes(self) -> tuple[Size, Size]:
        """Return the sizes of the forwarder and of the recorder."""
        return _size(self.forwarder), _size(self.recorder)

    def segments(self) -> int:
        """Return the number of the journal's files, including the current one."""
        return len(list(self.database.parent.glob(f".{self.database.name}-spool-*/journal/*.journal")))

    def processor_seconds(self) -> tuple[float, float]:
        """Return the CPU seconds of forwarder and recorder."""
        return cpu_seconds(self.forwarder), cpu_seconds(self.recorder)


@contextmanager
def watched_relay(mode: str, database: Path, *options: str) -> Iterator[Watched]:
    """Yield the real command; the database is complete after the block."""
    command = [*KIEBITZ, "relay", "-m", mode, "-w", str(database), "-q", *options]
    with running(*command, ready="listening on") as relay:
        yield Watched(relay, database)


def _size(process: int) -> Size:
    return Size(pss_kib(process), sum(1 for _ in Path(f"/proc/{process}/fd").iterdir()))


def pss_kib(process: int) -> int:
    rollup = Path(f"/proc/{process}/smaps_rollup").read_text()
    return next(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:"))


def cpu_seconds(process: int) -> float:
    """Return the CPU seconds of a running process (proc(5), /proc/pid/stat, fields 14 and 15)."""
    # The name in brackets may hold blanks.
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100
