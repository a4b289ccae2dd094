"""The README's examples: each command of a `console` block is run, and must print what stands there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
EXAMPLES = [
    (command, shown)
    for block in re.findall(r"^```console\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
    for command, shown in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE)
]


UNTIL = "timeout 60 sh -c 'until grep -qs {} server.txt; do sleep 0.05; done'"
PATIENT = {
    "sleep 1": UNTIL.format("playing"),
    "cat server.txt": f"{UNTIL.format('stopped')}; cat server.txt",
}
"""What waits long enough on a machine at rest, and in its place what waits for as long as it takes."""


def test_the_examples_print_what_the_readme_shows(tmp_path: Path) -> None:
    """In one folder and one after the other, as a reader types them: they build on each other."""
    (tmp_path / "captures").symlink_to(ROOT / "captures")
    scripts = Path(sys.executable).parent
    others = []
    for command, shown in EXAMPLES:
        patient = command
        for hasty, words in PATIENT.items():
            patient = patient.replace(hasty, words)
        if "> server.txt" in command:
            (tmp_path / "server.txt").unlink(missing_ok=True)
        done = subprocess.run(
            ["bash", "-c", f"{patient} 2>&1"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=100,
            env={**os.environ, "PATH": f"{scripts}:{os.environ['PATH']}", "COLUMNS": "80"},
        )
        if done.stdout != shown:
            others.append(f"$ {command}\n{done.stdout}\ninstead of\n{shown}")
    assert not others, "\n".join(others)


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 8
