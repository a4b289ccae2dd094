"""Transcripts of commands as text files: the arguments of `kiebitz` after `$`, then its output, indented.

A block begins with a title after `==` and runs in an empty folder with the recorded `captures`. A file is
written where a line has `file NAME:`; its lines follow after `| `. Lines of stderr begin with `2>`, and a
status other than 0 is shown. KIEBITZ_SNAPSHOTS=write rewrites the indented lines.

`database NAME` is a recorded capture as the database NAME.db; `dice.pcapng` and `dice.toml` are the game and
the protocol file of `dice_file.py`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from command import CAPTURES, Done, kiebitz
from conversation_files import Block
from dice_file import capture_game, write_file
from imported_databases import copy_of_database
from snapshots import marked

_VARYING = [
    (re.compile(r"\d+(?:\.\d+)? (?:ms|s)\b(?= \(|, [\d,]+ (?:packets|messages) per second)"), "N s"),
]
"""Parts of an output that differ from run to run, and how a transcript shows them."""


def played(block: Block, folder: Path) -> str:
    """Run the commands of a block in a folder, and return them with their output."""
    (folder / "captures").symlink_to(CAPTURES)
    lines = []
    file: Path | None = None
    for line in block.steps:
        lines.append(line)
        if line.startswith("file "):
            file = folder / line.removeprefix("file ").removesuffix(":")
            file.write_text("")
        elif line == "dice.pcapng":
            capture_game(folder)
        elif line == "dice.toml":
            write_file(folder)
        elif line.startswith("database "):
            copy_of_database(line.removeprefix("database "), folder / f"{line.removeprefix('database ')}.db")
        elif line.startswith("|") and file is not None:
            file.write_text(f"{file.read_text()}{line.removeprefix('| ').removeprefix('|')}\n")
        elif line.startswith("$ "):
            lines += shown(kiebitz(*shlex.split(line.removeprefix("$ "))))
    return "\n".join(lines)


def shown(done: Done) -> Iterator[str]:
    """Yield the lines of a command's output."""
    for sign, text in (("", done.out), ("2> ", done.err)):
        for pattern, instead in _VARYING:
            text = pattern.sub(instead, text)
        for line in text.removesuffix("\n").split("\n") if text else ():
            yield f"    {sign}{marked(line.encode('utf-8', 'surrogateescape'), []) or '␊'}"
        if text and not text.endswith("\n"):
            yield "    (no line end)"
    if done.status:
        yield f"    status {done.status}"
