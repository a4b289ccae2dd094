"""A command run to its end, and what it cost: CPU, time and memory."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Collection, Sequence

import msgspec

KIEBITZ = (sys.executable, "-m", "cli")


class Cost(msgspec.Struct, frozen=True):
    """What a command took, with the processes that it waited for: seconds, and MiB at its peak.

    The peak cannot be less than this process's own: what is forked is at first as large as its parent.
    """

    cpu: float
    wall: float
    peak: float


def run(command: Sequence[str], well: Collection[int] = (0,)) -> Cost:
    """Run a command with nothing to read and nobody who looks.

    Raises RuntimeError if it fails: with any other exit status than these.
    """
    begin = time.perf_counter()
    running = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    assert running.stderr is not None
    with running.stderr:
        said = running.stderr.read()
    # In place of running.wait(): only this tells what the child has used.
    _, status, used = os.wait4(running.pid, 0)
    wall = time.perf_counter() - begin
    running.returncode = os.waitstatus_to_exitcode(status)
    if running.returncode not in well:
        raise RuntimeError(f"{' '.join(command)} failed:\n{said.decode(errors='replace')}")
    return Cost(used.ru_utime + used.ru_stime, wall, used.ru_maxrss / 1024)
