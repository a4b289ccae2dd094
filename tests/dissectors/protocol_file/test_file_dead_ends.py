"""Parts of protocol files that are valid but can never work: each has a remark with its place."""

from __future__ import annotations

from snapshots import DATA, check

from kiebitz.dissectors.protocol_file.reading.reader import read

FILE = """protocol = "test"
[messages]
MOVE = "s*: name=player x=0..8 y=0..8 kind=pawn|king won=bool note?=text list=[integer,]"
BOARD = "s*: rows={rows}"
[events.moved]
on = "MOVE"
{when}
put = {{ {put} }}
[events.board]
on = "BOARD"
put = {{ {board} }}
[board.grid]
{grid}
"""
DEFAULTS = {
    "when": "",
    "put": '"cells.{x},{y}" = "name"',
    "board": "rounds = 0",
    "rows": "[[text,];]",
    "grid": 'cells = "cells"',
}
PUTS_ONE = '"cells.{x},{y}" = "name", '

PATH = DATA / "protocol_files" / "dead_ends.txt"


def file_of(lines: list[str]) -> str:
    parts = dict(DEFAULTS)
    for line in lines:
        key, _, value = line.partition(": ")
        parts[key] = {
            "when": f"when = {value}",
            "put": value.replace("+ ", PUTS_ONE, 1) if value[0] == "+" else value,
            "grid": value.replace(", ", "\n"),
        }.get(key, value)
    return FILE.format(**parts)


def test_what_cannot_work_has_a_remark() -> None:
    head, *blocks = PATH.read_text().rstrip("\n").split("\n\n")
    made = [head]
    for block in blocks:
        lines = [line for line in block.split("\n") if not line.startswith("    ")]
        for remark in read(file_of(lines)).remarks:
            marked = remark.place.line[remark.place.position :][: remark.place.length]
            lines.append(f"    {marked}: {remark.message}")
        made.append("\n".join(lines))
    check(PATH, "\n\n".join(made) + "\n")
