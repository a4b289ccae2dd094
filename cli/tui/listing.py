"""A list of any length with a selected row; it reads only the visible rows."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from textual import events
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from kiebitz.cli.terminal.screen import Style, Text
from kiebitz.cli.tui.lists import Rows
from kiebitz.cli.tui.strip_rendering import line_strip

_CHOSEN = Style(reverse=True)
_WHEEL = 3


class Listing(Widget):
    """A list of rows with a selection."""

    class Chosen(Message):
        """The user selected a row; `opened` is True for Enter or a double click."""

        def __init__(self, listing: Listing, place: int, opened: bool) -> None:
            super().__init__()
            self.listing = listing
            self.place = place
            self.opened = opened

        @property
        def control(self) -> Listing:
            return self.listing

    def __init__(self, rows: Rows, *, id: str) -> None:
        super().__init__(id=id)
        self.rows = rows
        self.place = -1
        self._top = 0
        self._seen: Sequence[Text] | None = None

    def take(self, rows: Rows) -> None:
        """Show other rows from their beginning."""
        self.rows = rows
        self._top = 0
        self.choose(min(self.place, len(rows) - 1))

    def choose(self, place: int) -> None:
        """Select a row (-1: none) and scroll it into view."""
        self.place = max(min(place, len(self.rows) - 1), -1)
        height = max(self.size.height, 1)
        if 0 <= self.place < self._top:
            self._top = max(self.place - height // 4, 0)
        elif self.place >= self._top + height:
            self._top = max(self.place - height + 1, 0)
        self.renew()

    def reveal(self, place: int) -> None:
        """Scroll a row that is not visible to the middle."""
        if place >= self._top + self.size.height * 2 // 3:
            self._top = place - self.size.height // 2
            self.renew()

    def renew(self) -> None:
        """Read the visible rows again."""
        self._seen = None
        self.refresh()

    def where(self) -> str:
        """Return the number of the selected row and the number of rows."""
        return f"{self.place + 1}/{len(self.rows)}" if self.rows else ""

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        lines = self._lines()
        if not lines:
            return line_strip(Text(self.rows.nothing if y == 0 else "", "dim"), self.app.console, width)
        if y >= len(lines):
            return Strip.blank(width)
        style = _CHOSEN if self._top + y == self.place else None
        return line_strip(lines[y], self.app.console, width, style)

    def _lines(self) -> Sequence[Text]:
        if self._seen is None:
            height = self.size.height
            self._top = max(min(self._top, len(self.rows) - height), 0)
            try:
                self._seen = self.rows.lines(self._top, min(self._top + height, len(self.rows)))
            except sqlite3.Error as error:
                self._seen = [Text(f"cannot be read: {error}")]
        return self._seen

    def on_resize(self) -> None:
        self.choose(self.place)

    def move(self, by: int) -> None:
        """Move the selection."""
        if self.rows:
            place = max(0, min(self.place + by, len(self.rows) - 1))
            self.choose(place)
            self.post_message(self.Chosen(self, place, opened=False))

    def on_click(self, event: events.Click) -> None:
        place = self._top + event.y
        if place < len(self.rows):
            self.choose(place)
            self.post_message(self.Chosen(self, place, opened=event.chain > 1))

    def on_mouse_scroll_down(self) -> None:
        self._scroll(_WHEEL)

    def on_mouse_scroll_up(self) -> None:
        self._scroll(-_WHEEL)

    def _scroll(self, by: int) -> None:
        self._top = max(self._top + by, 0)
        self.renew()
