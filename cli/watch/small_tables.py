"""Several tables side by side, each in a small picture, with its last event below."""

from __future__ import annotations

import math

from textual.containers import Grid
from textual.strip import Strip

from kiebitz.cli.terminal.screen import RenderableType, Text
from kiebitz.cli.watch.picture import Picture
from kiebitz.cli.watch.strips import strip_of
from kiebitz.cli.watch.viewer import Viewer
from kiebitz.storage.timeline import TableRow

_WIDTH = 56
"""A picture gets so many columns where that is possible."""

_MOST = 24
"""So many tables are shown; a session with more has them by `t` and Enter from the others."""


class _Small(Picture):
    """A table's picture; `table` may be another one when tables come."""

    def __init__(self, viewer: Viewer, table: TableRow) -> None:
        super().__init__(self._small)
        self.viewer = viewer
        self.table = table

    def _small(self) -> RenderableType | None:
        return self.viewer.picture(self.table)

    def render_line(self, y: int) -> Strip:
        if y < self.size.height - 1:
            return super().render_line(y)
        return strip_of(Text(self.viewer.latest(self.table), "bold"), self.app.console, self.size.width)


class SmallTables(Grid):
    """The tables of a viewer; one is chosen."""

    DEFAULT_CSS = """
    SmallTables { grid-gutter: 1 2; background: ansi_default; }
    SmallTables Vertical { height: 1fr; }
    """

    def __init__(self, viewer: Viewer, *, id: str) -> None:
        super().__init__(id=id)
        self._viewer = viewer
        self._place = 0

    @property
    def table(self) -> TableRow | None:
        """The table that is chosen."""
        tables = self._viewer.tables
        return tables[self._place] if self._place < len(tables) else None

    def table_of(self, picture: Picture) -> TableRow | None:
        """The table of a picture."""
        return picture.table if isinstance(picture, _Small) else None

    def on_mount(self) -> None:
        self.look_again()

    def on_resize(self) -> None:
        self._arrange()

    def look_again(self) -> None:
        """Show the tables that there are now."""
        shown = self._shown()
        for table in self._viewer.tables[len(shown) : _MOST]:
            self.mount(_Small(self._viewer, table))
        if len(self._viewer.tables) != len(shown):
            self._arrange()

    def move(self, by: int) -> None:
        """Choose another table."""
        shown = self._shown()
        self._place = max(0, min(self._place + by, len(shown) - 1))
        self.renew()

    def renew(self) -> None:
        """Draw all anew."""
        for number, small in enumerate(self._shown()):
            small.chosen = number == self._place
            small.renew()

    def _shown(self) -> list[_Small]:
        return list(self.query(_Small))

    def _arrange(self) -> None:
        count = max(min(len(self._viewer.tables), _MOST), 1)
        most = max(self.size.width // _WIDTH, 1)
        rows = math.ceil(count / most)
        self.styles.grid_size_columns = math.ceil(count / rows)
        self.styles.grid_size_rows = rows
