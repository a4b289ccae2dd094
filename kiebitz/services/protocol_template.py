"""The template of a protocol file, for `kiebitz protocols --new`."""

from __future__ import annotations

import re
from pathlib import Path, PurePath

from kiebitz.dissectors.protocol_file.reading.reader import problem_of_name

_NAME = "game"
"""Name of the protocol if the file's is none."""


def template(path: str) -> str:
    """Return a commented protocol file that is named after its path."""
    stem = PurePath(path).stem
    name = re.sub(r"\W+", "_", stem.lower(), flags=re.ASCII).strip("_0123456789")[:30]
    if problem_of_name(name) is not None:
        name = _NAME
    text = Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
    title = name.replace("_", " ").capitalize()
    return text.replace('"game"', f'"{name}"', 1).replace('"Game"', f'"{title}"', 1)
