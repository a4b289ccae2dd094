"""Text tables in tests: a row is a line, and continues in the indented lines below it."""

from __future__ import annotations

import re
import shlex


def rows_of(table: str, separator: str = " ") -> list[str]:
    """Return the rows of a table without its comments, with `separator` where a row has another line."""
    return re.sub(r"^#.*\n", "", table.strip(), flags=re.MULTILINE).replace("\n    ", separator).splitlines()


def commands_of(table: str) -> list[tuple[str, list[str], str]]:
    """Return the rows of a table of commands: first word, words as a shell reads them, text behind "=>"."""
    found = []
    for row in rows_of(table):
        command, _, text = row.partition(" => ")
        first, *words = shlex.split(command)
        found.append((first, words, text))
    return found
