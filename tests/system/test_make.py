"""`make test`: the parts that failed are named at the end."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from command import ROOT

TOOLS = {"lint": "ruff", "types": "mypy", "tests": "python"}
"""The command of each part."""


@pytest.mark.parametrize(
    ("failing", "last"),
    [
        ([], "make test: lint types tests passed"),
        (["types"], "make test: failed: types (make types)"),
        (["lint", "tests"], "make test: failed: lint (make lint), tests (make tests)"),
    ],
)
def test_the_failed_parts_are_named_at_the_end(failing: list[str], last: str, tmp_path: Path) -> None:
    if shutil.which("make") is None:
        pytest.skip("make is not installed")
    shutil.copy(ROOT / "Makefile", tmp_path)
    commands = tmp_path / ".venv" / "bin"
    commands.mkdir(parents=True)
    for part, tool in TOOLS.items():
        (commands / tool).write_text(f"#!/bin/sh\nexit {int(part in failing)}\n")
        (commands / tool).chmod(0o755)
    for name in ("pyproject.toml", ".venv/core-installed", ".venv/installed", ".venv/compiled"):
        (tmp_path / name).touch()
    # Without the variables of a make that runs these tests.
    environment = {name: value for name, value in os.environ.items() if "MAKE" not in name}
    done = subprocess.run(
        ["make", "test"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert bool(done.returncode) == bool(failing), done.stderr
    assert done.stdout.splitlines()[-1] == last
    # Only make's own line follows on stderr.
    assert done.stderr.count("make: ***") == bool(failing)
