"""`make test`: the parts that failed are named at the end.

The source archive and the wheel: they contain every file that git has, and no other.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path, PurePosixPath
from zipfile import ZipFile

import pytest
from command import ROOT
from hatchling.builders.sdist import SdistBuilder
from hatchling.builders.wheel import WheelBuilder

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


ROOMS = ("cli", "dissectors", "proxy", "storage")


@pytest.fixture(scope="module")
def tracked() -> set[str]:
    done = subprocess.run(["git", "-C", str(ROOT), "ls-files", "-z"], capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip("this is not a clone")
    return {name for name in done.stdout.split("\0") if name and (ROOT / name).is_file()}


def test_the_source_archive_contains_what_git_does(tracked: set[str]) -> None:
    archived = {file.distribution_path for file in SdistBuilder(str(ROOT)).recurse_included_files()}
    # A file may be new, and not yet known to git.
    assert tracked - archived == set()
    assert not any("__pycache__" in name or name.startswith(("kiebitz/cli/", ".venv")) for name in archived)


@pytest.mark.full
def test_the_wheel_contains_the_rooms(tracked: set[str], tmp_path: Path) -> None:
    (wheel,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    with ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
    expected = {
        name if name.startswith("kiebitz/") else f"kiebitz/{name}"
        for name in tracked
        if PurePosixPath(name).parts[0] in ("kiebitz", *ROOMS)
    }
    assert expected - packed == set()
    assert all(name.startswith("kiebitz/") for name in packed)
