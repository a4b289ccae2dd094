"""The timeline below the picture: events, games, errors and the current position."""

from __future__ import annotations

from textual import events
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from kiebitz.cli.spectator.event_cursor import EventCursor
from kiebitz.cli.terminal.screen import Text
from kiebitz.cli.tui.marks import Marks, any_between
from kiebitz.cli.tui.strip_rendering import has_letters, line_strip

_LETTERS = {True: ("●", "┃", "━", "─"), False: ("O", "|", "=", "-")}
"""Current position, beginning of a game, events before and after the position."""


def render_bar(course: EventCursor, marks: Marks, width: int, has_such: bool) -> Text:
    """Return the timeline in `width` cells; a cell may represent several events."""
    here, game, before, behind = _LETTERS[has_such]
    count = len(course)
    line = Text()
    if not count:
        return line.append(behind * width, "dim")
    place = max(course.place, 0) * width // count
    numbers = course.numbers
    for cell in range(width):
        first, end = _first_position(cell, count, width), _first_position(cell + 1, count, width)
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


def _first_position(cell: int, count: int, width: int) -> int:
    """Return the first position of a cell."""
    return -(-cell * count // width)


class Bar(Widget):
    """The timeline; a click moves to that position."""

    class Asked(Message):
        """The timeline was clicked at a position."""

        def __init__(self, place: int) -> None:
            super().__init__()
            self.place = place

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._shown: tuple[EventCursor, Marks] | None = None

    def show(self, course: EventCursor, marks: Marks) -> None:
        """Draw the timeline."""
        self._shown = course, marks
        self.refresh()

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        if self._shown is None:
            return Strip.blank(width)
        line = render_bar(*self._shown, width, has_letters("●┃━─"))
        return line_strip(line, self.app.console, width)

    def on_click(self, event: events.Click) -> None:
        if self._shown is not None:
            course, _ = self._shown
            place = _first_position(event.x, len(course), max(self.size.width, 1))
            self.post_message(self.Asked(min(place, len(course) - 1)))
