"""Sequence diagrams in characters: a column for each lifeline, a row or two for each message."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from kiebitz.cli.render.text.canvas import ASCII, UNICODE, Glyphs, glyphs_for, shorten
from kiebitz.cli.terminal.console import COLOURS, Part, Styled, encodable
from kiebitz.dissectors.sequence.model import Arrow, Lifeline, Note, Step
from kiebitz.services.evidence.cells import cell_len

DEFAULT_WIDTH = 100
"""Width in cells if the output is no terminal."""

_TIME = 9
_MARGIN = _TIME + 2
_MIN_GAP = 8
_MAX_GAP = 30
_INLINE = 7
"""Cells of an arrow that its label must leave free."""

_NOTE_COLOUR = "cyan"
_ALTERED_COLOUR = "magenta"


class _Strokes(msgspec.Struct, frozen=True):
    """Characters of lifelines and arrows."""

    lifeline: str
    line: str
    dashed: str
    crossing: str
    right: str
    left: str
    cross: str
    note: str


_STROKES = {
    UNICODE: _Strokes("│", "─", "╌", "┼", "▶", "◀", "✗", "▪"),
    ASCII: _Strokes("|", "-", "~", "+", ">", "<", "x", "*"),
}


class SequenceText:
    """Renders the steps of a diagram as lines, at a width in cells that is exceeded by many lifelines."""

    def __init__(self, lifelines: Sequence[Lifeline], width: int, encoding: str) -> None:
        found = glyphs_for(encoding)
        self._glyphs: Glyphs = found if found is ASCII else UNICODE
        self._encoding = encoding
        self._strokes = _STROKES[self._glyphs]
        self._lifelines = lifelines
        count = max(1, len(lifelines))
        gap = min(_MAX_GAP, max(_MIN_GAP, (width - _MARGIN) // count))
        self._gap = gap
        self._columns = [_MARGIN + gap * place + gap // 2 for place in range(len(lifelines))]
        self.width = max(width, _MARGIN + gap * count)
        """Width in cells of the whole diagram."""
        line = [" "] * self.width
        for column in self._columns:
            line[column] = self._strokes.lifeline
        self._line = "".join(line).rstrip()
        """A line with nothing but the lifelines."""

    def header(self) -> list[Part]:
        """Return the line with the names of the lifelines."""
        row = _Row(0, " " * self.width)
        for place, column in enumerate(self._columns):
            name = self._fitting(self._lifelines[place].name, self._gap - 1)
            row.write(max(_MARGIN, column - cell_len(name) // 2), name)
        return [" " * _MARGIN, Styled(row.text()[_MARGIN:].rstrip(), None, bold=True)]

    def lines(self, steps: Iterable[Step]) -> Iterator[list[Part]]:
        """Yield the lines of the steps."""
        for step in steps:
            yield from self._arrow(step) if isinstance(step, Arrow) else self._note(step)

    def _note(self, note: Note) -> Iterator[list[Part]]:
        colour = _NOTE_COLOUR if note.severity is None else COLOURS[note.severity]
        yield self._remark(self._columns[note.first] + 1, note.text, colour, self._time(note))

    def _remark(self, start: int, text: str, colour: str, time: str = "") -> list[Part]:
        """Return a line of text over the lifelines, from a column on."""
        words = f"{self._strokes.note} {text} "
        # A long text begins further to the left.
        start = max(_MARGIN, min(start, self.width - cell_len(words)))
        words = self._fitting(words, self.width - start)
        before, after = self._around(start, start + cell_len(words))
        return [Styled(f"{time:>{_TIME}}  ", dim=True), before, Styled(words, colour), after]

    def _arrow(self, arrow: Arrow) -> Iterator[list[Part]]:
        start = self._columns[arrow.sender]
        ends = [self._columns[receiver] for receiver in arrow.receivers]
        low, high = min(start, *ends), max(start, *ends)
        gravest = next((one.severity for one in arrow.problems), None)
        colour = COLOURS[gravest] if gravest is not None else None
        if colour is None and arrow.altered is not None:
            colour = _ALTERED_COLOUR
        time = Styled(f"{self._time(arrow):>{_TIME}}  ", dim=True)
        is_inline = len(ends) == 1 and cell_len(self._known(arrow.label)) <= high - low - _INLINE
        if not is_inline:
            yield [time, *self._label_above(arrow, low, colour)]
            time = Styled(" " * _MARGIN)
        row = _Row(low, self._line[low : high + 1])
        self._stroke(row, arrow, start, ends)
        if is_inline:
            row.write(low + 3, f" {self._known(arrow.label)} ")
        before, after = self._around(low, high + 1)
        yield [time, before, Styled(row.text(), colour), after]
        for problem in arrow.problems:
            yield self._remark(low + 1, problem.words, COLOURS[problem.severity])
        if arrow.alteration is not None:
            yield self._remark(low + 1, arrow.alteration, _ALTERED_COLOUR)

    def _label_above(self, arrow: Arrow, low: int, colour: str | None) -> list[Part]:
        label = self._fitting(arrow.label, self.width - _MARGIN)
        # Over its own arrow if possible, else as near as the edge allows.
        start = max(_MARGIN, min(low + 2, self.width - cell_len(label)))
        before, after = self._around(start, start + cell_len(label))
        return [before, Styled(label, colour, bold=colour is not None), after]

    def _stroke(self, row: _Row, arrow: Arrow, start: int, ends: Sequence[int]) -> None:
        strokes = self._strokes
        for end in ends:
            step = 1 if end > start else -1
            for column in range(start + step, end, step):
                is_lifeline = self._line[column] != " "
                line = strokes.line if arrow.altered is None else strokes.dashed
                row.put(column, strokes.crossing if is_lifeline else line)
        for end in ends:
            head = strokes.right if end > start else strokes.left
            row.put(end - (1 if end > start else -1), strokes.cross if arrow.is_kept_back else head)

    def _around(self, start: int, end: int) -> tuple[Styled, str]:
        """Return the lifelines before a column, and those from another column on."""
        return Styled(self._line[_MARGIN:start].ljust(start - _MARGIN)), self._line[end:]

    def _time(self, step: Step) -> str:
        return f"{step.seconds:.3f}"

    def _known(self, text: str) -> str:
        return encodable(text, self._encoding)

    def _fitting(self, text: str, width: int) -> str:
        return shorten(self._known(text[: 4 * width]), width, self._glyphs)


class _Row:
    """The cells of a line from column `first` on."""

    def __init__(self, first: int, cells: str) -> None:
        self._first = first
        self._cells = [*cells]

    def put(self, column: int, character: str) -> None:
        self._cells[column - self._first] = character

    def write(self, column: int, text: str) -> None:
        """Write a text that fits; a wide character takes two cells."""
        place = column - self._first
        for character in text:
            width = cell_len(character)
            if not width:
                # A combining mark belongs to the character before.
                self._cells[place - 1] += character
                continue
            self._cells[place : place + width] = [character, *[""] * (width - 1)]
            place += width

    def text(self) -> str:
        return "".join(self._cells)
