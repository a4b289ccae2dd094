"""The grid of a board of a protocol file: its cells, and the tokens of players on them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Literal, get_args

import msgspec

from kiebitz.dissectors.game.view import Edge, Grid, Token
from kiebitz.dissectors.protocol_file.expressions import (
    Compiled,
    Scope,
    compile_expression,
    optional_expression,
)
from kiebitz.dissectors.protocol_file.sections import GridSpec
from kiebitz.dissectors.protocol_file.templates import value_words
from kiebitz.dissectors.protocol_file.values import index

_MAX_SIDE = 60
"""Maximum number of rows and columns of a grid."""

_MAX_CELLS = _MAX_SIDE * _MAX_SIDE

_MAX_TOKENS = 100
_MAX_BOARDS = 6

PLAYER = "player"
"""Name of each player in the paths of the board."""

Side = Literal["above", "left"]
_SIDES: tuple[Side, ...] = get_args(Side)


_Size = tuple[int | None, int | None]
"""Width and height, None to derive them."""


class GridView:
    """A board of cells."""

    def __init__(self, spec: GridSpec) -> None:
        self._spec = spec
        self._cells = optional_expression(spec.cells)
        self._cell = compile_expression(f"cell.{spec.cell}") if spec.cell else None
        self._tokens = optional_expression(spec.tokens)
        self._sides = [
            compile_expression(side) if isinstance(side, str) else side for side in (spec.width, spec.height)
        ]
        self._edges: list[tuple[Side, Compiled]] = []
        for side in _SIDES if spec.edges is not None else ():
            if (path := optional_expression(getattr(spec.edges, side))) is not None:
                self._edges.append((side, path))
        self._paths = [*filter(None, (self._cells, self._tokens)), *(path for _, path in self._edges)]
        self._is_of_each = any(name.steps == (PLAYER,) for path in self._paths for name in path.lookups)

    def grid(self, scope: Scope, names: Sequence[str]) -> Grid | None:
        """Return the grid, with one for each player the first of them; None if nothing is known of it."""
        grids = [grid for each in self._scopes(scope, names) if (grid := self._grid(each, names)) is not None]
        return msgspec.structs.replace(grids[0], beside=tuple(grids[1:])) if grids else None

    def _scopes(self, scope: Scope, names: Sequence[str]) -> Sequence[Scope]:
        """Return a scope for each board: those of which something is known, or all of them."""
        if not self._is_of_each:
            return [scope]
        scopes = [Scope({PLAYER: name}, name, scope.states) for name in names]
        known = [each for each in scopes if any(path.evaluate(each) is not None for path in self._paths)]
        return (known or scopes)[:_MAX_BOARDS]

    def _grid(self, scope: Scope, names: Sequence[str]) -> Grid | None:
        width, height = (_side(side, scope) for side in self._sides)
        cells = self._cells.evaluate(scope) if self._cells is not None else None
        rows = self._rows(cells, names, (width, height))
        if not rows:
            return None
        self._put_tokens(rows, scope)
        return Grid(
            tuple(tuple(row) for row in rows),
            edges=tuple(self._drawn_edges(scope, names, max(map(len, rows)), len(rows))),
            is_hex=self._spec.shape == "hex",
            owner=scope.fields.get(PLAYER, ""),
        )

    def fill(self, scope: Scope, names: Sequence[str]) -> tuple[int, int, list[str]]:
        """Return the number of values for cells, lines and tokens, of those that are drawn, and some keys."""
        scopes = self._scopes(scope, names)
        values = [path.evaluate(each) for each in scopes for path in self._paths]
        keys = [key for value in values if isinstance(value, dict) for key in islice(value, 3)]
        grid = self.grid(scope, names)
        drawn = sum(
            len(each.edges) + len(each.tokens) for each in (grid.all_boards if grid is not None else ())
        )
        return sum(len(value) for value in values if isinstance(value, list | dict)), drawn, keys

    def _rows(self, cells: Any, names: Sequence[str], size: _Size) -> list[list[Token | None]]:
        fixed_width, fixed_height = size
        count = fixed_width * fixed_height if fixed_width and fixed_height else None
        if isinstance(cells, dict):
            return self._of_object(cells, names, size)
        if self._spec.runs and isinstance(cells, list):
            cells = _without_runs([_without_runs(row) if isinstance(row, list) else row for row in cells])
        given: list[list[Any]] = []
        if isinstance(cells, list) and cells:
            if any(isinstance(row, list) for row in cells) and len(cells) != count:
                given = [row if isinstance(row, list) else [row] for row in cells[:_MAX_SIDE]]
            else:
                side = fixed_width or _square_side(len(cells))
                given = [cells[start : start + side] for start in range(0, len(cells), side)][:_MAX_SIDE]
        if self._spec.columns:
            given = _transposed(given)
        if not given and count is None:
            return []
        width, height = _limited(size, max(map(len, given), default=0), len(given))
        return [
            [
                self._token(given[y][x], names) if y < len(given) and x < len(given[y]) else None
                for x in range(width)
            ]
            for y in range(height)
        ]

    def _of_object(
        self, cells: Mapping[str, Any], names: Sequence[str], size: _Size
    ) -> list[list[Token | None]]:
        places = dict(self._places(cells, size[0]))
        width, height = _limited(
            size,
            max((column + 1 for column, _ in places), default=0),
            max((row + 1 for _, row in places), default=0),
        )
        return [
            [self._token(places[x, y], names) if (x, y) in places else None for x in range(width)]
            for y in range(height)
        ]

    def _places(
        self, cells: Mapping[str, Any], width: int | None = None
    ) -> Iterator[tuple[tuple[int, int], Any]]:
        """Yield columns and rows, from 0, and values of an object from `x,y`, or from a cell's number."""
        for key, value in islice(cells.items(), _MAX_CELLS):
            x, comma, y = key.partition(",")
            column, row = _number(x), _number(y) if comma else self._spec.first
            if column is not None and row is not None:
                column, row = column - self._spec.first, row - self._spec.first
                if not comma:
                    row, column = divmod(column, width or _MAX_SIDE)
                if 0 <= column <= _MAX_SIDE and 0 <= row <= _MAX_SIDE:
                    yield (column, row), value

    def _drawn_edges(self, scope: Scope, names: Sequence[str], width: int, height: int) -> Iterator[Edge]:
        for side, path in self._edges:
            lines = path.evaluate(scope)
            for (x, y), value in self._places(lines) if isinstance(lines, dict) else ():
                is_on_board = x < width + (side == "left") and y < height + (side == "above")
                if is_on_board and value not in ("", False, 0):
                    yield Edge(x, y, side, value if isinstance(value, str) and value in names else "")

    def _token(self, cell: Any, names: Sequence[str]) -> Token | None:
        """Return the token for a cell; of several words, the last one that has a sign."""
        if self._cell is not None:
            cell = self._cell.evaluate(Scope({"cell": cell}))
        words = cell if isinstance(cell, list) else [cell]
        for word in reversed(words):
            if word is None or isinstance(word, dict | list):
                continue
            text = value_words(word)
            sign = self._spec.symbols.get(text, "" if word in ("", False) else text)
            if sign:
                return Token(sign, text if text in names else "")
        return None

    def _put_tokens(self, rows: list[list[Token | None]], scope: Scope) -> None:
        tokens = self._tokens.evaluate(scope) if self._tokens is not None else None
        if not isinstance(tokens, dict):
            return
        placed = [
            (name, place)
            for name, token in islice(tokens.items(), _MAX_TOKENS)
            if (place := self._place(token)) is not None
        ]
        signs = _signs([name for name, _ in placed])
        for name, (x, y) in placed:
            if y < len(rows) and x < len(rows[y]):
                rows[y][x] = Token(self._spec.symbols.get(name, signs[name]), name)

    def _place(self, token: Any) -> tuple[int, int] | None:
        """Return the column and row of a token, from 0."""
        if not isinstance(token, dict):
            return None
        x, y = _number(token.get(self._spec.x)), _number(token.get(self._spec.y))
        if x is None or y is None:
            return None
        x, y = x - self._spec.first, y - self._spec.first
        return (x, y) if x >= 0 and y >= 0 else None


def _side(side: Compiled | int | None, scope: Scope) -> int | None:
    """Return the length of a side, None if it is not known."""
    value = side.evaluate(scope) if isinstance(side, Compiled) else side
    number = _number(value)
    return min(number, _MAX_SIDE) if number is not None and number > 0 else None


def _limited(size: _Size, width: int, height: int) -> tuple[int, int]:
    return min(size[0] or width, _MAX_SIDE), min(size[1] or height, _MAX_SIDE)


def _number(value: Any) -> int | None:
    if isinstance(value, str) and value[:1] == "-":
        found = index(value[1:].strip())
        return None if found is None else -found
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    return index(value.strip()) if isinstance(value, str) else None


def _square_side(count: int) -> int:
    side = 1
    while side * side < count:
        side += 1
    return side


def _without_runs(cells: Sequence[Any]) -> list[Any]:
    """Return cells with as many empty ones in place of each number as it says."""
    found: list[Any] = []
    for cell in cells[:_MAX_CELLS]:
        number = _number(cell)
        found += [cell] if number is None else [None] * min(number, _MAX_SIDE)
    return found


def _transposed(columns: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """Return the rows of a board that is written column by column."""
    height = min(max(map(len, columns), default=0), _MAX_SIDE)
    return [[column[y] if y < len(column) else None for column in columns] for y in range(height)]


def _signs(names: Sequence[str]) -> dict[str, str]:
    """Return a short sign for each name: its first letter, or its first letter and a number."""
    signs: dict[str, str] = {}
    for name in names:
        letter = name[:1].upper() or "?"
        same = sum(other[:1].upper() == letter for other in names)
        signs[name] = (
            letter if same == 1 else f"{letter}{sum(sign[:1] == letter for sign in signs.values()) + 1}"
        )
    return signs
