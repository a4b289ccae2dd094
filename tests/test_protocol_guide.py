"""docs/writing-a-protocol.md follows an example: the code that it shows is a plug-in's that is tested."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "writing-a-protocol.md").read_text()
EXCERPTS = re.findall(r"^```(?:python|toml)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
SOURCES = [
    path.read_text()
    for pattern in ("*.toml", "*/*.py")
    for path in (ROOT / "tests" / "plugins" / "noughts").glob(pattern)
]


def _as_lines(text: str) -> str:
    """The text with each line as far left as it goes: what stands in a class is shown without it."""
    return "".join(f"\n{line.strip()}" for line in text.splitlines()) + "\n"


@pytest.mark.parametrize("excerpt", EXCERPTS, ids=lambda excerpt: excerpt.splitlines()[0])
def test_an_excerpt_stands_in_the_package(excerpt: str) -> None:
    assert any(_as_lines(excerpt) in _as_lines(source) for source in SOURCES)


def test_there_are_excerpts() -> None:
    assert len(EXCERPTS) >= 3
