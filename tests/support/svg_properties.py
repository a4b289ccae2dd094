"""Properties of all drawings, and the drawings of a recorded game."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from xml.etree import ElementTree

from imported_databases import database_of

import kiebitz
from kiebitz.cli.render.svg.svg_canvas import SIZES, Drawing, Shape
from kiebitz.cli.spectator.view import RECENT, SpectatorView
from kiebitz.dissectors.game.state import State, apply
from kiebitz.services.evidence.cells import cell_len

SHAPES: tuple[Shape, ...] = ("wide", "tall")

SMALLEST = 24
"""The height of letters that can be read where people sit, in units of a sheet."""

MOST_PIECES = 120

_LETTER = 0.5
"""Minimum average width of a letter, relative to its height."""

_SLACK = 2.5
"""Maximum distance of an outline beyond the sheet: half of its width lies outside."""

Point = tuple[float, float]
Matrix = tuple[float, float, float, float, float, float]
"""The matrix in SVG's order: x' = a x + c y + e, y' = b x + d y + f."""

_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_STEP = re.compile(r"([MmLlHhVvCcSsQqTtAaZz])([^MmLlHhVvCcSsQqTtAaZz]*)")
_TAKES = {"M": 2, "L": 2, "H": 1, "V": 1, "C": 6, "S": 4, "Q": 4, "T": 2, "A": 7, "Z": 0}


def check(drawing: Drawing) -> None:
    """Check a drawing: few sound elements inside the sheet, and harmless texts that are large enough."""
    assert (drawing.width, drawing.height) in SIZES.values()
    assert 0 < len(drawing.pieces) <= MOST_PIECES
    assert {piece.name for piece in drawing.pieces} == drawing.fragments.keys()
    assert drawing.words
    for words in drawing.words:
        assert words.strip()
        assert words.isprintable()
    for piece in drawing.pieces:
        for x, y, what in _extent(drawing.fragments[piece.name]):
            assert -_SLACK <= piece.x + x <= drawing.width + _SLACK, (what, piece, x)
            assert -_SLACK <= piece.y + y <= drawing.height + _SLACK, (what, piece, y)


def texts(drawing: Drawing) -> list[str]:
    """Return all texts of a drawing, in the order in which they were put."""
    return [text for piece in drawing.pieces for text in _texts(drawing.fragments[piece.name])]


def drawings(capture: str, shape: Shape, player: str | None = None, every: int = 1) -> Iterator[Drawing]:
    """Yield a player's drawings of a session after each event, or every n-th, and the last."""
    with kiebitz.open(database_of(capture)) as session:
        timeline = session.timeline
        spectator_view = SpectatorView(timeline, player)
        for table in timeline.tables():
            state: State = {}
            last = timeline.last_seq(table.id)
            for event in timeline.events_between(table.id, 0, last):
                apply(state, event.changes)
                if event.seq % every == 0 or event.seq == last:
                    recent = timeline.recent(table.id, event.seq, RECENT)
                    yield spectator_view.drawings(table.id, state, recent, [shape])[shape]


@cache
def _texts(markup: str) -> list[str]:
    return [element.text or "" for element in ElementTree.fromstring(markup).iter("text")]


@cache
def _extent(markup: str) -> list[tuple[float, float, str]]:
    """Points that a fragment reaches, each with what reaches it; the fragment's texts are looked at, too."""
    root = ElementTree.fromstring(markup)
    assert root.tag == "g"
    found: list[tuple[float, float, str]] = []
    _look(root, (1, 0, 0, 1, 0, 0), {}, found)
    return found


def _look(
    element: ElementTree.Element,
    matrix: Matrix,
    inherited: dict[str, str],
    found: list[tuple[float, float, str]],
) -> None:
    assert element.tag in _POINTS or element.tag in ("g", "text", "title"), element.tag
    matrix = _times(matrix, _transform(element.get("transform", "")))
    inherited = inherited | element.attrib
    points: list[Point] = []
    if element.tag == "text":
        points = _text(element, matrix, inherited)
    elif element.tag in _POINTS:
        points = _POINTS[element.tag](element)
    a, b, c, d, e, f = matrix
    said = f"{element.tag} {element.text or ''}"
    found += [(a * x + c * y + e, b * x + d * y + f, said) for x, y in points]
    for inner in element:
        _look(inner, matrix, inherited, found)


def _text(element: ElementTree.Element, matrix: Matrix, inherited: dict[str, str]) -> list[Point]:
    """Return the corners of a text; that it can be read, on light paper and on dark, is seen here."""
    text = element.text or ""
    assert text.isprintable(), text
    assert len(element) == 0
    assert "class" in inherited or "fill" in inherited, f"{text}: black, on whatever ground"
    size = float(inherited.get("font-size", 0))
    scale = abs(matrix[0] * matrix[3] - matrix[1] * matrix[2]) ** 0.5
    assert size * scale >= SMALLEST - 0.01, (text, size * scale)
    x, y = _number(element, "x"), _number(element, "y")
    wide = cell_len(text) * _LETTER * size
    left = x - {"middle": wide / 2, "end": wide}.get(inherited.get("text-anchor", ""), 0)
    return [(left, y - 0.72 * size), (left + wide, y)]


def _number(element: ElementTree.Element, name: str) -> float:
    return float(element.get(name, 0))


def _rect(element: ElementTree.Element) -> list[Point]:
    x, y, wide, high = (_number(element, name) for name in ("x", "y", "width", "height"))
    assert wide >= 0
    assert high >= 0
    return [(x, y), (x + wide, y), (x, y + high), (x + wide, y + high)]


def _round(element: ElementTree.Element) -> list[Point]:
    x, y = _number(element, "cx"), _number(element, "cy")
    across, down = (_number(element, name) or _number(element, "r") for name in ("rx", "ry"))
    return [(x - across, y), (x + across, y), (x, y - down), (x, y + down)]


def _line(element: ElementTree.Element) -> list[Point]:
    return [(_number(element, f"x{end}"), _number(element, f"y{end}")) for end in (1, 2)]


def _polygon(element: ElementTree.Element) -> list[Point]:
    numbers = _numbers(element.get("points", ""))
    return list(zip(numbers[::2], numbers[1::2], strict=True))


def _path(element: ElementTree.Element) -> list[Point]:
    """Return the ends of a path's steps, and the points that pull at its curves: it never leaves these."""
    found = []
    at = start = (0.0, 0.0)
    for letter, written in _STEP.findall(element.get("d", "")):
        kind, own = letter.upper(), letter.islower()
        numbers = _numbers(written)
        takes = _TAKES[kind]
        if kind == "Z":
            at = start
            continue
        assert numbers
        assert len(numbers) % takes == 0
        for first in range(0, len(numbers), takes):
            step = numbers[first : first + takes]
            x0, y0 = at if own else (0.0, 0.0)
            if kind == "H":
                points = [(x0 + step[0], at[1])]
            elif kind == "V":
                points = [(at[0], y0 + step[0])]
            elif kind == "A":
                points = [(x0 + step[5], y0 + step[6])]
            else:
                points = [(x0 + x, y0 + y) for x, y in zip(step[::2], step[1::2], strict=True)]
            at = points[-1]
            if kind == "M" and first == 0:
                start = at
            found += points
    return found


_POINTS = {
    "rect": _rect,
    "circle": _round,
    "ellipse": _round,
    "line": _line,
    "polygon": _polygon,
    "polyline": _polygon,
    "path": _path,
}


def _numbers(written: str) -> list[float]:
    return [float(number) for number in _NUMBER.findall(written)]


def _transform(written: str) -> Matrix:
    matrix: Matrix = (1, 0, 0, 1, 0, 0)
    for name, inside in re.findall(r"(\w+)\s*\(([^)]*)\)", written):
        matrix = _times(matrix, _one_transform(name, _numbers(inside)))
    return matrix


def _one_transform(name: str, numbers: list[float]) -> Matrix:
    if name == "translate":
        x, y = [*numbers, 0.0][:2]
        return (1, 0, 0, 1, x, y)
    if name == "scale":
        across, down = (numbers * 2)[:2]
        return (across, 0, 0, down, 0, 0)
    if name == "rotate":
        turn = complex(0, 1) ** (numbers[0] / 90)
        around = (turn.real, turn.imag, -turn.imag, turn.real, 0.0, 0.0)
        x, y = numbers[1:3] or (0.0, 0.0)
        return _times(_times((1, 0, 0, 1, x, y), around), (1, 0, 0, 1, -x, -y))
    assert name == "matrix", name
    a, b, c, d, e, f = numbers
    return (a, b, c, d, e, f)


def _times(one: Matrix, other: Matrix) -> Matrix:
    a, b, c, d, e, f = one
    g, h, i, j, k, m = other
    return (
        a * g + c * h,
        b * g + d * h,
        a * i + c * j,
        b * i + d * j,
        a * k + c * m + e,
        b * k + d * m + f,
    )
