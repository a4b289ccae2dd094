"""Parts of protocol files that are valid but can never work: each has a remark with its place."""

from __future__ import annotations

import pytest

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

SOUND = """
put: "cells.{x},{y}" = "name"

put: "cells.{x + ',' + y}" = "name"

put: "cells.{name}" = "name"

put: "cells[y][x]" = "name"
board: cells = "rows"
grid: cells = "cells", symbols = { ann = "" }

put: "cells.{x},{y}" = "kind"
board: cells = {}
grid: cells = "cells", symbols = { pawn = "",king = "K" }

put: "cells.{x}" = "name"
board: cells = []

put: "cells.{x},{y}.kind" = "kind"
grid: cells = "cells", cell = "kind"

put: "pawns.{name}.x" = "x", "pawns.{name}.y" = "y"
grid: tokens = "pawns", width = 9

put: "pawns.{name}" = { x = "x", y = "y" }
grid: tokens = "pawns", width = 9

put: "pawns.{name}" = "list"
grid: tokens = "pawns", width = 9

put: + rounds = "rounds + 1"

put: + "n.{x}" = "n.{x} + 1"
board: "n.{1}" = 0

put: + x = "x + 1"

when: "kind == 'king' and x in {0, 8} and won == true and note != 'x'"

put: "cells.{x}" = "name"
grid: cells = "cells", width = 8

put: "cells.{name}.{x},{y}" = "name", "players.{name}" = {}
grid: cells = "cells.{player}"

when: "list == 'a' || name == 'a'"

when: "not started"
put: + started = true
board: started = false

when: "not known(started) and not won"
put: + started = true

when: "phase == 'x' || x > 3"
put: + phase = "'x'"

when: "name in list || phase == 'x'"
put: + phase = "'x'"

when: "phase == 'x' && state.x == 1"
put: + x = "x"
board: phase = "'x'", x = 1
"""
"""Parts of a file that work."""

WRONG = """
rows: [{x=integer y=integer,}]
rows: "," is between the items and within them: choose another, as in [{x y,};]

put: "cells.{y}.{x}" = "name"
cells: keys of cells are x,y: put cells.{x},{y}, not cells.{y}.{x}

put: "cells[y][x]" = "name"
board: cells = {}
cells: keys of cells are x,y: put cells.{x},{y}, not cells[y][x]

put: "cells.{x}" = "name"
cells: keys of cells are x,y: put cells.{x},{y}, as cells.{x} has no comma

put: "cells.{x}-{y}" = "name"
cells: keys of cells are x,y: put cells.{x},{y}, as cells.{x}-{y} has no comma

put: "cells.first" = "name"
cells: keys of cells are x,y: put cells.{x},{y}, as cells.first has no comma

put: "walls.{x}" = "name"
grid: edges = { left = "walls" }, width = 3
left: keys of walls are x,y: put walls.{x},{y}, as walls.{x} has no comma

put: "pawns.{name}.col" = "x", "pawns.{name}.y" = "y"
grid: tokens = "pawns"
tokens: a token needs x and y, and events put col, y

put: "cells.{name}.{x},{y}" = "name"
grid: cells = "cells.{player}"
cells: no player is known, as no event puts players: "players.{who}" = {}

put: "pawns.{name}" = { a = "x", b = "y" }
grid: tokens = "pawns"
tokens: a token needs x and y, and events put a, b

rows: [[pawn|king];]
put: rounds = 1
board: cells = "rows"
grid: cells = "cells", symbols = { pawn = "",king = "" }
symbols: all cells are empty: king and pawn have no sign

put: "cells.{x},{y}" = "kind"
grid: cells = "cells", symbols = { pwan = "p" }
pwan: no cell is pwan: did you mean pawn?

put: + n = "n + 1"
n: no event puts a first value at n, so the sum is never known

put: + "players.{name}.n" = "x + state.players.{who}.n"
"players.{name}.n": no event puts a first value at players.{name}.n, so the sum is never known

when: "x > 3 && kind == 'queen'"
'queen': kind is never 'queen': it is pawn|king

when: "x == 9"
9: x is never 9: it is 0..8

when: "x in {1, '2'}"
'2': x is never '2': it is 0..8

when: "won != 1"
1: won is never 1: it is bool

when: "name == 1"
1: name is never 1: it is player

when: "not known(x)"
put: + x = "x"
x: x is a field of the message: write known(state.x) for what was put

when: "note == 1"
1: note is never 1: it is text

when: "not (started)"
put: + started = true
started: not started never holds, as only true is put there: use not known(started)

when: "x > 3 && phase == 'x'"
put: + phase = "'x'"
phase: this never holds: no event that can happen before puts anything at phase

when: "not phase == 'x'"
put: + phase = "'x'"
phase: this never holds: no event that can happen before puts anything at phase

when: "state.x + 1 > y"
put: + x = "x"
state.x: this never holds: no event that can happen before puts anything at x
"""
"""Parts of a file, and the remark on them with the marked text."""


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


@pytest.mark.parametrize("block", SOUND.strip().split("\n\n"))
def test_what_works_has_no_remark(block: str) -> None:
    assert read(file_of(block.split("\n"))).remarks == ()


@pytest.mark.parametrize("block", WRONG.strip().split("\n\n"))
def test_what_cannot_work_has_a_remark(block: str) -> None:
    *lines, last = block.split("\n")
    marked, _, problem = last.partition(": ")
    (remark,) = read(file_of(lines)).remarks
    assert remark.message == problem
    assert remark.place.line[remark.place.position :][: remark.place.length] == marked
