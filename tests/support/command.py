"""Runs the real command, as a process of its own or, where that is not the point, in this one."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kiebitz.cli.main import run

ROOT = Path(__file__).parents[2]
CAPTURES = ROOT / "captures"
TINY = str(CAPTURES / "maexchen-head-tiny.pcap")
ODD = str(CAPTURES / "maexchen-head-odd.pcap")


@dataclass(frozen=True)
class Done:
    """The exit status and output of a command."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def kiebitz(*arguments: str) -> Done:
    """Run a command in this process."""
    written = io.BytesIO()
    out = io.TextIOWrapper(written, encoding="utf-8", newline="")
    err = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = run(arguments)
        out.flush()
    return Done(status, written.getvalue().decode("utf-8", "surrogateescape"), err.getvalue())


def peer_command(peer: str, *options: str, fault: str = "") -> list[str]:
    """Return the command that runs a program of `peers`, such as "okey-server"."""
    planted = ["--fault", fault] if fault else []
    return [sys.executable, str(ROOT / "tests" / "support" / "peers"), peer, *options, *planted]


def without_session(csv: str) -> str:
    """Return a CSV export without its third column, the session."""
    return re.sub(r"^([^,\n]*,[^,\n]*),(?:session|\d+),", r"\1,", csv, flags=re.MULTILINE)


def spawn(*arguments: str, **options: Any) -> subprocess.Popen[bytes]:
    """Start a command as a process."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        [sys.executable, "-m", "kiebitz", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        **options,
    )
