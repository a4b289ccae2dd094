"""The picture of a table, and small ones of several tables side by side with the last event of each."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Callable
from contextlib import suppress

from textual import events
from textual.containers import Grid
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from kiebitz.cli.terminal.screen import RenderableType, Style, Text
from kiebitz.cli.tui.navigation import Navigator, Tile
from kiebitz.cli.tui.strip_rendering import line_strip, render_strips, strip_console

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


_WIDTH, _HEIGHT = 38, 9
"""Preferred minimum size of a picture, in columns and rows."""

_MIN_HEIGHT = 4
"""Minimum height of a picture, in rows, at which a table is recognizable."""

_GUTTER = 2


class _TablePicture(Picture):
    """The picture of a table or game; `tile` is replaced when the list scrolls."""

    def __init__(self, viewer: Navigator, tile: Tile) -> None:
        super().__init__(self._small)
        self.viewer = viewer
        self.tile = tile
        self.drawn = -1
        """The position that was drawn last."""
        self._latest = ""

    def _small(self) -> RenderableType | None:
        picture = self.viewer.picture(self.tile)
        self.drawn = self.viewer.place_of(self.tile.table)
        self._latest = self.viewer.latest(self.tile)
        return picture

    def render_line(self, y: int) -> Strip:
        if y < self.size.height - 1:
            return super().render_line(y)
        return line_strip(Text(self._latest, "bold"), self.app.console, self.size.width)


class SmallTables(Grid):
    """As many tables as fit, one of them selected; of several games at once each is one."""

    DEFAULT_CSS = """
    SmallTables { grid-gutter: 0 2; background: ansi_default; }
    """

    def __init__(self, viewer: Navigator, *, id: str) -> None:
        super().__init__(id=id)
        self._viewer = viewer
        self._place = 0
        self._first = 0
        self._tiles: list[Tile] = []

    @property
    def tile(self) -> Tile | None:
        """The selected table or game."""
        return self._tiles[self._place] if self._place < len(self._tiles) else None

    def where(self) -> str:
        """Return the number of the selected table, and the number of tables."""
        has_games = any(tile.game is not None for tile in self._tiles)
        return f"{'game' if has_games else 'table'} {self._place + 1} of {len(self._tiles)}"

    def tile_of(self, picture: Picture) -> Tile | None:
        """Return the table or game of a picture."""
        return picture.tile if isinstance(picture, _TablePicture) else None

    def on_mount(self) -> None:
        self.refresh_tables()

    def on_resize(self) -> None:
        # The line that says that the database cannot be read may be the reason for the new size.
        with suppress(sqlite3.Error):
            self.refresh_tables()

    def refresh_tables(self) -> None:
        """Show the current tables, or those around the selected one."""
        self._tiles = self._viewer.tiles
        self._place = max(0, min(self._place, len(self._tiles) - 1))
        columns, rows = _grid(len(self._tiles), self.size.width, self.size.height)
        room = columns * rows
        self._first = max(min(self._first, self._place, len(self._tiles) - room), self._place - room + 1, 0)
        seen = self._tiles[self._first : self._first + room]
        shown = self._shown()
        for small, tile in zip(shown, seen, strict=False):
            small.tile = tile
        for tile in seen[len(shown) :]:
            self.mount(_TablePicture(self._viewer, tile))
        for small in shown[len(seen) :]:
            small.remove()
        self.styles.grid_size_columns = columns
        self.styles.grid_size_rows = rows
        # A row between them if there is one to spare.
        self.styles.grid_gutter_horizontal = int(self.size.height // rows > _HEIGHT)
        for small in self._shown():
            small.chosen = small.tile == self.tile
            small.renew()

    def move(self, by: int) -> None:
        """Move the selection."""
        self._place += by
        self.refresh_tables()

    def renew_changed(self) -> None:
        """Draw the tables again that have moved to another event."""
        if self._tiles != self._viewer.tiles:
            self.refresh_tables()
        for small in self._shown():
            if small.drawn != self._viewer.place_of(small.tile.table):
                small.renew()

    def _shown(self) -> list[_TablePicture]:
        return list(self.query(_TablePicture))


def _grid(tables: int, width: int, height: int) -> tuple[int, int]:
    """Return columns and rows for a number of tables: as few columns as the minimum height allows."""
    tables = max(tables, 1)
    most = max((width + _GUTTER) // (_WIDTH + _GUTTER), 1)
    columns = next((few for few in range(1, most + 1) if height // math.ceil(tables / few) >= _HEIGHT), most)
    rows = min(math.ceil(tables / columns), max(height // _MIN_HEIGHT, 1))
    return columns, max(rows, 1)
