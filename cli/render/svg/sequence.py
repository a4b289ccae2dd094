"""Sequence diagrams as SVG documents, as drawn on a board."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree

from kiebitz.cli.render.svg.svg_canvas import LETTER_WIDTH, Element, label, line, polygon, rect
from kiebitz.cli.render.svg.theme import svg
from kiebitz.dissectors.escaping import printable
from kiebitz.dissectors.sequence.model import Arrow, Lifeline, Note, Step

_EDGE = 24.0
_TIME = 96.0
_GAP = 220.0
_TITLE = 64.0
_BOX = 56.0
_ARROW = 46.0
_REMARK = 32.0
_SIZE = 18.0
_SMALL = 15.0
_HEAD = 11.0


def sequence_document(lifelines: Sequence[Lifeline], steps: Sequence[Step], title: str) -> bytes:
    """Return a diagram as UTF-8; `title` is not escaped yet."""
    return _Drawing(lifelines, steps).document(title)


class _Drawing:
    def __init__(self, lifelines: Sequence[Lifeline], steps: Sequence[Step]) -> None:
        self._lifelines = lifelines
        self._steps = steps
        self._columns = [_EDGE + _TIME + _GAP * (place + 0.5) for place in range(len(lifelines))]
        self._width = 2 * _EDGE + _TIME + _GAP * max(len(lifelines), 3)

    def document(self, title: str) -> bytes:
        top = _TITLE + _BOX
        height = top + sum(map(_height, self._steps)) + 20 + _BOX + _EDGE
        root = svg(self._width, height)
        rect(root, 0, 0, self._width, height, class_="k-paper")
        label(root, (_EDGE, 42), title, 28, "bold k-ink", self._width - 2 * _EDGE)
        bottom = height - _EDGE - _BOX
        for place, column in enumerate(self._columns):
            line(root, (column, top), (column, bottom), class_="k-s-line", stroke_width=2)
            for y in (_TITLE, bottom):
                self._box(root, self._lifelines[place], column, y)
        y = top + 10
        for step in self._steps:
            self._draw(root, step, y)
            y += _height(step)
        document: bytes = ElementTree.tostring(root, "utf-8", xml_declaration=True)
        return document

    def _box(self, root: Element, lifeline: Lifeline, column: float, y: float) -> None:
        width = _GAP - 24
        rect(
            root,
            column - width / 2,
            y,
            width,
            _BOX,
            6 if lifeline.is_server else _BOX / 2,
            class_="k-card k-s-ink",
            stroke_width=2,
        )
        has_address = lifeline.address not in (None, lifeline.name)
        at = column, y + (25 if has_address else 35)
        label(root, at, lifeline.name, 20, "middle bold k-ink", width - 24)
        if has_address:
            at = column, y + 45
            words = str(lifeline.address)
            label(root, at, words, _SMALL - 1, "middle k-faint", width - 20)

    def _draw(self, root: Element, step: Step, y: float) -> None:
        at = _EDGE + _TIME - 12, y + (24 if isinstance(step, Arrow) else 18)
        label(root, at, f"{step.seconds:.3f} s", _SMALL, "end k-faint")
        if isinstance(step, Note):
            alarm = step.severity is not None
            self._remark(root, (step.first, step.last), y, f"{'✗ ' if alarm else ''}{step.text}", alarm)
            return
        self._arrow(root, step, y)
        y += _ARROW - 4
        ends = min(step.sender, *step.receivers), max(step.sender, *step.receivers)
        for problem in step.problems:
            self._remark(root, ends, y, f"✗ {problem.words}", True)
            y += _REMARK
        if step.alteration is not None:
            self._remark(root, ends, y, f"✎ {step.alteration}", False)

    def _remark(self, root: Element, ends: tuple[int, int], y: float, words: str, alarm: bool) -> None:
        """Draw a note over lifelines, wide enough for its text if the diagram has room."""
        left, right = (self._columns[end] for end in ends)
        needed = (len(printable(words)) + 4) * LETTER_WIDTH * _SIZE
        middle = (left + right) / 2
        width = min(max(right - left + 60, needed), self._width - 2 * _EDGE - _TIME)
        low = max(_EDGE + _TIME, min(middle - width / 2, self._width - _EDGE - width))
        rect(
            root,
            low,
            y,
            width,
            _REMARK - 6,
            4,
            class_=f"k-card k-s-{'alarm' if alarm else 'line'}",
            stroke_width=1.5,
        )
        at = low + width / 2, y + 18
        colour = "k-alarm" if alarm else "k-ink"
        label(root, at, words, _SMALL + 1, f"middle {colour}", width - 12)

    def _arrow(self, root: Element, arrow: Arrow, y: float) -> None:
        colour = "alarm" if arrow.problems else "turn" if arrow.altered is not None else "ink"
        start = self._columns[arrow.sender]
        ends = [self._columns[receiver] for receiver in arrow.receivers]
        base = y + 34
        # With a message that was not forwarded, the arrow ends on its way.
        far = max(ends, key=lambda end: abs(end - start))
        if arrow.is_kept_back:
            far = start + (far - start) * 0.6
        dashes = "none" if arrow.altered is None else "9 5"
        line(
            root, (start, base), (far, base), class_=f"k-s-{colour}", stroke_width=2, stroke_dasharray=dashes
        )
        if arrow.is_kept_back:
            for way in (-1, 1):
                here = (far - 8, base - 8 * way), (far + 8, base + 8 * way)
                line(root, *here, class_=f"k-s-{colour}", stroke_width=3)
        else:
            for end in ends:
                back = end - _HEAD if end > start else end + _HEAD
                polygon(root, [(end, base), (back, base - 6), (back, base + 6)], class_=f"k-{colour}")
        self._label(root, arrow, sorted((start, far)), base - 9, colour)

    def _label(self, root: Element, arrow: Arrow, between: Sequence[float], y: float, colour: str) -> None:
        """Write the label above the arrow; a long one goes beyond it, towards the farther edge."""
        low, high = between
        to_right, to_left = self._width - _EDGE - low - 14, high - 14 - _EDGE - _TIME
        is_long = len(arrow.label) * LETTER_WIDTH * _SIZE > high - low - 28
        if not is_long:
            at, anchor, room = ((low + high) / 2, y), "middle", high - low
        elif to_right >= to_left:
            at, anchor, room = (low + 14, y), "start", to_right
        else:
            at, anchor, room = (high - 14, y), "end", to_left
        # A halo keeps it readable above the lifelines.
        for extra in ({"class_": "k-paper k-s-paper", "stroke_width": 6.0}, {"class_": f"k-{colour}"}):
            label(root, at, arrow.label, _SIZE, anchor, room, **extra)


def _height(step: Step) -> float:
    if isinstance(step, Note):
        return _REMARK
    return _ARROW + _REMARK * (len(step.problems) + (step.alteration is not None))
