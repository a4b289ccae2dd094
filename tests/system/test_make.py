"""`make test`: the parts that failed are named at the end.

The source archive and the wheel: they contain every file that git has, and no other. A compiled wheel
contains extension modules for all that reads packets.
"""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path, PurePosixPath
from types import FrameType
from zipfile import ZipFile

import pytest
from command import ROOT
from hatchling.builders.sdist import SdistBuilder
from hatchling.builders.wheel import WheelBuilder

from kiebitz.services.importing.packets import open_capture_in_memory

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


Sources = dict[str, set[Path]]


@pytest.fixture(scope="module")
def to_compile() -> tuple[Sources, Sources]:
    """The sources of the patterns in pyproject.toml: what is compiled, except what is not."""
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    compiled, omitted = (
        {pattern: {path.resolve() for path in (ROOT / "kiebitz").glob(pattern)} for pattern in patterns}
        for patterns in (wheel["hooks"]["custom"][key] for key in ("compiled", "not-compiled"))
    )
    return compiled, omitted


def test_each_pattern_of_compiled_modules_has_some(to_compile: tuple[Sources, Sources]) -> None:
    compiled, omitted = to_compile
    every = set().union(*compiled.values())
    assert [pattern for pattern, sources in compiled.items() if not sources] == []
    assert [pattern for pattern, sources in omitted.items() if not sources & every] == []


def test_no_comprehension_calls_super(to_compile: tuple[Sources, Sources]) -> None:
    """Cython does not find the class there."""
    comprehensions = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
    found = [
        f"{path.relative_to(ROOT)}:{part.lineno}"
        for path in set().union(*to_compile[0].values())
        if "super()" in (source := path.read_text())
        for outer in ast.walk(ast.parse(source))
        if isinstance(outer, comprehensions)
        for part in ast.walk(outer)
        if isinstance(part, ast.Call) and ast.unparse(part) == "super()"
    ]
    assert found == []


@pytest.mark.full(but=1)
@pytest.mark.parametrize(
    "capture",
    [
        "maexchen-head-tiny.pcap",
        "schafkopf-1.3-badcard.pcap",
        "catan-yaks-g1-3p.pcap.gz",
        "okey-seed-game-win.pcap.gz",
        "cgml-tiny.pcap.gz",
    ],
)
def test_what_is_called_for_each_message_is_compiled(
    capture: str, to_compile: tuple[Sources, Sources]
) -> None:
    compiled, omitted = (set().union(*sources.values()) for sources in to_compile)
    path = str(ROOT / "captures" / capture)
    # What is called once, to load the protocol, is called now.
    open_capture_in_memory(path)
    calls: Counter[str] = Counter()

    def count(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call":
            calls[frame.f_code.co_filename] += 1

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        connection, _ = open_capture_in_memory(path)
    finally:
        sys.setprofile(before)
    (messages,) = connection.execute("SELECT count(*) FROM messages").fetchone()
    connection.close()
    called = {Path(name) for name, number in calls.items() if number >= messages}
    rooms = {path.resolve() for path in called if path.is_relative_to(ROOT) and ".venv" not in path.parts}
    assert rooms, "nothing was counted"
    assert rooms - (compiled - omitted) == set()
