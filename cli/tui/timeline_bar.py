"""The timeline below the picture (events, games, errors, position), the status line, the title of a pane."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import suppress

from textual import events
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from kiebitz.cli.spectator.followed_session import EventCursor
from kiebitz.cli.terminal.screen import LINE_BREAK, Console, Text
from kiebitz.cli.tui.marks import Marks, any_between
from kiebitz.cli.tui.navigation import Navigator
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


_MAX_ROWS = 4
"""Maximum height of the status, in rows; each further line of a message adds one."""

_TITLES = {"message": "one message", "said": "recorder"}


def status_line(viewer: Navigator, where: str | None, width: int) -> Text:
    """Return the status in lines of a width; `where` names the selected one of several tables."""
    course = viewer.course
    followed = viewer.followed
    if viewer.follows:
        how = "live" if followed.is_live else "end"
    else:
        how = f"playing {viewer.pace}" if viewer.plays else "paused"
    facts = [how]
    if where is not None:
        facts.append(where)
    elif course is not None:
        facts.append(_position(viewer, course))
    if followed.player is not None:
        facts.append(f"as {followed.player}")
    if followed.wanted is not None:
        facts.append(f"/{followed.wanted.text}")
    if viewer.is_searching:
        facts.append("searching")
    notice = followed.trouble or viewer.notice or followed.ending or ""
    lines = [Text("  ".join(filter(None, (*facts, notice))), "reverse")]
    if lines[0].cell_len > width or "\n" in notice:
        # Wrap instead of cutting a sentence.
        parts = ("  ".join(facts), *notice.split("\n"))
        lines = [
            line
            for part in parts
            for line in (Text(part, "reverse").lines(Console(width=width), width) if part else [])
        ]
    for line in lines:
        line.pad_right(max(width - line.cell_len, 0))
    return LINE_BREAK.join(lines[: _MAX_ROWS + notice.count("\n")])


def _position(viewer: Navigator, course: EventCursor) -> str:
    """Return the current position by the event's number in the session, as lists and `--at` have it.

    If events are left out, the position follows: `#219 (200 of 1687 at this table)`.
    """
    count, place = len(course), course.place + 1
    if not place:
        return f"before the first of {count} events" if count else "no events"
    is_one_of_several = len(viewer.tables) > 1
    if course.search is None and not is_one_of_several:
        return f"#{place} of {count}"
    among = f"{place} of {count}{' at this table' if is_one_of_several else ''}"
    number = _number(viewer)
    return among if number is None else f"#{number} ({among})"


def _number(viewer: Navigator) -> int | None:
    """Return the number of the current event in the session; None while the database cannot be read."""
    with suppress(sqlite3.Error):
        event = viewer.event
        if event is not None:
            return viewer.followed.timeline.numbers.number("events", event.id)
    return None


def pane_title(panes: Sequence[str], chosen: str, where: str, width: int) -> Text:
    """Return the names of all panes, or only of the selected one if there is no room; `where` is its row."""
    names = [
        Text(f" {_TITLES.get(pane, pane)} {where}".rstrip() + " ", "bold reverse")
        if pane == chosen
        else Text(f" {_TITLES.get(pane, pane)} ", "dim")
        for pane in panes
    ]
    title = Text("").join(names)
    if title.cell_len > width > 0:
        title = names[panes.index(chosen)]
    title.no_wrap = True
    return title
