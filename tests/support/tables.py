"""Text tables in tests: a row is a line, and continues in the indented lines below it."""

from __future__ import annotations

import re
import shlex

from conversation_files import blocks
from snapshots import DATA


def rows_of(table: str, separator: str = " ") -> list[str]:
    """Return the rows of a table without its comments, with `separator` where a row has another line."""
    return re.sub(r"^#.*\n", "", table.strip(), flags=re.MULTILINE).replace("\n    ", separator).splitlines()


def tried_commands(test: str) -> list[list[str]]:
    """Return the commands of a test in `tests/data/tried_commands.txt`, as words."""
    return [shlex.split(line) for line in blocks(DATA / "tried_commands.txt")[test].steps]
