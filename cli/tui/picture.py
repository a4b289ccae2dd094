"""The picture of a table, and small ones of several tables side by side."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

from textual import events
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from kiebitz.cli.terminal.screen import RenderableType, Style
from kiebitz.cli.tui.strip_rendering import render_strips, strip_console

_TITLE_ROWS = 4
"""Rows that a text renderer reserves around a picture and that are free here."""

Draw = Callable[[], RenderableType | None]


class Picture(Widget):
    """The result of `draw`, as large as possible; `chosen` highlights its title.

    If `draw` raises sqlite3.Error, the last picture stays.
    """

    class Opened(Message):
        """The picture was clicked."""

        def __init__(self, picture: Picture) -> None:
            super().__init__()
            self.picture = picture

    def __init__(self, draw: Draw, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.chosen = False
        self._draw = draw
        self._top = 0
        self._seen: list[Strip] | None = None
        self._last: list[Strip] = []

    def renew(self) -> None:
        """Draw again."""
        self._seen = None
        self.refresh()

    def scroll_lines(self, by: int) -> None:
        """Scroll by a number of lines."""
        self._top = max(0, min(self._top + by, len(self._lines()) - self.size.height))
        self.refresh()

    def render_line(self, y: int) -> Strip:
        lines = self._lines()
        # The title does not scroll.
        at = y if y == 0 else y + max(0, min(self._top, len(lines) - self.size.height))
        strip = lines[at] if at < len(lines) else Strip.blank(self.size.width)
        return strip.apply_style(Style(reverse=True)) if self.chosen and y == 0 else strip

    def _lines(self) -> list[Strip]:
        if self._seen is None:
            width, height = self.size.width, self.size.height
            try:
                renderable = self._draw()
            except sqlite3.Error:
                # The status line shows the error. The last picture is better than none.
                self._seen = self._last
                return self._seen
            self._seen = []
            if renderable is not None and width > 0:
                console = strip_console(self.app.console, width, height + _TITLE_ROWS)
                self._seen = self._last = render_strips(renderable, console, width)
        return self._seen

    def on_resize(self) -> None:
        self.renew()

    def on_click(self, event: events.Click) -> None:
        self.post_message(self.Opened(self))

    def on_mouse_scroll_down(self) -> None:
        self.scroll_lines(3)

    def on_mouse_scroll_up(self) -> None:
        self.scroll_lines(-3)
