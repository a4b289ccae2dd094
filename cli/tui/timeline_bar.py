"""The timeline below the picture: a mark an event, games, errors, and the place where one is."""

from __future__ import annotations

from textual import events
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from kiebitz.cli.spectator.event_cursor import Course
from kiebitz.cli.terminal.screen import Text
from kiebitz.cli.tui.marks import Marks, any_between
from kiebitz.cli.tui.strip_rendering import has_letters, strip_of

_LETTERS = {True: ("●", "┃", "━", "─"), False: ("O", "|", "=", "-")}
"""The place, the beginning of a game, events up to the place, and behind it."""


def drawn_bar(course: Course, marks: Marks, width: int, has_such: bool) -> Text:
    """The line, in so many cells; where there are more events than cells, a cell stands for several."""
    here, game, before, behind = _LETTERS[has_such]
    count = len(course)
    line = Text()
    if not count:
        return line.append(behind * width, "dim")
    place = _cell(max(course.place, 0), count, width)
    numbers = course.numbers
    for cell in range(width):
        first, end = _first(cell, count, width), _first(cell + 1, count, width)
        begin = numbers[first] if first < count else numbers[-1] + 1
        stop = numbers[end] if end < count else numbers[-1] + 1
        letter, style = (before, "") if cell <= place else (behind, "dim")
        if any_between(marks.games, begin, stop):
            letter, style = game, "bold"
        if any_between(marks.warnings, begin, stop):
            letter, style = "?", "bold yellow"
        if marks.has_error(begin, stop):
            letter, style = "!", "bold red"
        if cell == place:
            letter, style = (letter, f"{style} reverse") if letter in "!?" else (here, "bold")
        line.append(letter, style)
    return line


def _first(cell: int, count: int, width: int) -> int:
    """The first place of a cell or of those behind it."""
    return -(-cell * count // width)


def _cell(place: int, count: int, width: int) -> int:
    """The cell of a place."""
    return place * width // count


class Bar(Widget):
    """Shows where one is; a click goes there."""

    class Asked(Message):
        """Somebody wants to be at a place."""

        def __init__(self, place: int) -> None:
            super().__init__()
            self.place = place

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._shown: tuple[Course, Marks] | None = None

    def show(self, course: Course, marks: Marks) -> None:
        """Show this course."""
        self._shown = course, marks
        self.refresh()

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        if self._shown is None:
            return Strip.blank(width)
        line = drawn_bar(*self._shown, width, has_letters("●┃━─"))
        return strip_of(line, self.app.console, width)

    def on_click(self, event: events.Click) -> None:
        if self._shown is not None:
            course, _ = self._shown
            place = _first(event.x, len(course), max(self.size.width, 1))
            self.post_message(self.Asked(min(place, len(course) - 1)))
