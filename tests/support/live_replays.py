"""Replays as processes."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from processes_and_rows import KIEBITZ, PATIENCE_S


@contextmanager
def playing(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Yield a replay that serves; it is to end by itself in the block, or to be waited for."""
    process = subprocess.Popen(
        [*KIEBITZ, "replay", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    try:
        line = process.stderr.readline()
        assert line.startswith("playing "), line + process.stderr.read()
        yield process
    finally:
        process.kill()
        process.communicate()


def ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Return exit status, stdout and stderr of a replay that serves."""
    out, err = process.communicate(timeout=PATIENCE_S)
    return process.returncode, out, err
