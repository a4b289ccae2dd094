"""The processes that a program has started, also those that have left its process group.

A daemon is no longer a child of its program. While this process is a subreaper (Linux), such orphans become
its own children; their environment tells which program they belong to.
"""

from __future__ import annotations

import ctypes
import os
import signal
import threading
import time
from collections.abc import Mapping
from contextlib import suppress

import msgspec

MARK = "KIEBITZ_PROGRAM"
"""Environment variable by which the processes of a program are recognised."""

_PR_SET_CHILD_SUBREAPER = 36

_CHECK_INTERVAL_S = 0.02

_MAX_ENVIRONMENT = 1 << 20
"""Maximum number of bytes read of a process's environment."""


class Process(msgspec.Struct, frozen=True):
    """A process as /proc shows it; `started` is in clock ticks since the boot."""

    parent: int
    group: int
    session: int
    started: int
    is_zombie: bool


class Subreaper:
    """A counter of those that need this process to adopt orphans; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0

    def acquire(self) -> None:
        """Begin to adopt orphans. Without effect on systems other than Linux."""
        with self._lock:
            self._users += 1
            if self._users == 1:
                _set_subreaper(True)

    def release(self) -> None:
        """Adopt orphans no longer, unless somebody else needs it."""
        with self._lock:
            self._users -= 1
            if not self._users:
                _set_subreaper(False)


def _set_subreaper(is_on: bool) -> None:
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, int(is_on), 0, 0, 0)


subreaper = Subreaper()
"""The one of this process."""


def process_table() -> dict[int, Process]:
    """Return all processes by number; nothing where the system does not tell."""
    table: dict[int, Process] = {}
    with suppress(OSError):
        for name in filter(str.isdigit, os.listdir("/proc")):
            # A process may end at any time.
            with suppress(OSError, ValueError, IndexError):
                with open(f"/proc/{name}/stat", "rb", buffering=0) as file:
                    # The name of the program may contain blanks and parentheses.
                    state, parent, group, session, *rest = file.read(4096).rpartition(b")")[2].split()
                table[int(name)] = Process(
                    int(parent), int(group), int(session), int(rest[15]), state == b"Z"
                )
    return table


class Descendants:
    """All processes of one program, started with `MARK` set to `mark` in their environment.

    They are found by their parent, process group or session, and as adopted orphans by the mark. One that was
    found once is remembered.
    """

    def __init__(self, root: int, mark: str) -> None:
        self._root = root
        self._mark = f"{MARK}={mark}".encode()
        self._known: dict[int, int] = {}

    def find(self, table: Mapping[int, Process] | None = None) -> set[int]:
        """Return the numbers of the living processes, and collect those that have ended."""
        if table is None:
            table = process_table()
        found = {
            number
            for number, started in self._known.items()
            if number in table and table[number].started == started
        }
        found |= {
            number
            for number, process in table.items()
            if self._root in (number, process.group, process.session) or self._is_orphan(number, process)
        }
        before = -1
        while len(found) > before:
            before = len(found)
            found |= {number for number, process in table.items() if process.parent in found}
        self._known = {number: table[number].started for number in found}
        for number in found:
            if table[number].is_zombie and table[number].parent == os.getpid() and number != self._root:
                with suppress(ChildProcessError):
                    os.waitpid(number, os.WNOHANG)
        return {number for number in found if not table[number].is_zombie}

    def kill(self, timeout_s: float) -> set[int]:
        """Kill all of them, also those that a dying one starts; return those that are left after a time."""
        end = time.monotonic() + timeout_s
        while (left := self.find()) and time.monotonic() < end:
            for number in left:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(number, signal.SIGKILL)
            time.sleep(_CHECK_INTERVAL_S)
        return left

    def _is_orphan(self, number: int, process: Process) -> bool:
        if process.parent != os.getpid():
            return False
        with suppress(OSError), open(f"/proc/{number}/environ", "rb") as file:
            return self._mark in file.read(_MAX_ENVIRONMENT)
        return False
