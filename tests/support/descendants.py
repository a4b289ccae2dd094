"""The processes that descend from this one, on Linux: who they are, and their end."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

_PR_SET_CHILD_SUBREAPER = 36
_IS_LINUX = sys.platform == "linux"

_STAYING = ("multiprocessing.resource_tracker", "sys.stdin.readline()")
"""Parts of the commands of processes that stay until the end: Python's tracker, and pytest-xdist's
workers.
"""

staying: set[int] = set()
"""The processes of fixtures that several tests share."""


def adopt() -> None:
    """Make orphaned descendants children of this process, so that they are found."""
    if _IS_LINUX:
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def children(process: int | None = None) -> set[int]:
    """Return the children of a process, by default this one, including zombies."""
    found: set[int] = set()
    if _IS_LINUX:
        # A thread or the whole process may end meanwhile.
        threads = f"/proc/{process or os.getpid()}/task"
        with suppress(OSError):
            for thread in os.listdir(threads):
                with suppress(OSError), open(f"{threads}/{thread}/children") as listed:
                    found.update(map(int, listed.read().split()))
    return found


def ended(process: int) -> bool:
    """Return whether a child has ended; then it is gone for good, if it was an orphan."""
    try:
        return os.waitpid(process, os.WNOHANG)[0] == process
    except ChildProcessError:
        return True


def command(process: int) -> str:
    """Return a process's command line; empty if it has ended."""
    with suppress(OSError):
        return Path(f"/proc/{process}/cmdline").read_text(errors="replace").replace("\0", " ").strip()
    return ""


def left_behind(known: set[int], patience_s: float) -> list[str]:
    """End the children that are not `known`, and theirs; those that did not end by themselves in time."""
    end = time.monotonic() + patience_s
    while True:
        left = [child for child in children() - known if not ended(child)]
        left = [child for child in left if not any(word in command(child) for word in _STAYING)]
        if not left or time.monotonic() > end:
            break
        time.sleep(0.01)
    found = []
    while left:
        found += [f"{child}: {command(child)}" for child in left]
        for child in left:
            kill(child)
        # Their own children are orphans now, and so ours.
        left = [child for child in children() - known if not ended(child)]
        left = [child for child in left if not any(word in command(child) for word in _STAYING)]
    return found


def kill(child: int) -> None:
    """Kill a child, and wait for its end."""
    with suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)
    with suppress(ChildProcessError):
        os.waitpid(child, 0)
