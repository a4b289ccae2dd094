"""The README's examples: each command of a `console` block is run, and must print what stands there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
EXAMPLES = [
    (command, shown)
    for block in re.findall(r"^```console\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
    for command, shown in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE)
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the examples build on each other, as a reader types them."""
    path = tmp_path_factory.mktemp("readme")
    (path / "captures").symlink_to(ROOT / "captures")
    return path


@pytest.mark.parametrize(("command", "shown"), EXAMPLES)
def test_an_example_prints_what_the_readme_shows(folder: Path, command: str, shown: str) -> None:
    scripts = Path(sys.executable).parent
    done = subprocess.run(
        ["bash", "-c", f"{command} 2>&1"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PATH": f"{scripts}:{os.environ['PATH']}", "COLUMNS": "80"},
    )
    assert done.stdout == shown


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 8
