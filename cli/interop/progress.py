"""The progress display of an interoperability run: the matrix so far, and the cells that run now."""

from __future__ import annotations

import time
from collections.abc import Sequence

from kiebitz.cli.terminal.screen import AnyConsole, ConsoleOptions, RenderResult, Table, Text
from kiebitz.services.interop.matrix_run import CellPlan
from kiebitz.services.interop.results import SYMBOLS, Cell, OutcomeWord

COLOURS: dict[OutcomeWord, str] = {
    "completed": "green",
    "violations": "yellow",
    "refused": "yellow",
    "idle": "red",
    "left": "red",
    "hung": "red",
    "crashed": "red",
}


class MatrixView:
    """A view of the cells so far, rendered again at each refresh."""

    def __init__(self, cells: Sequence[CellPlan]) -> None:
        self._planned = cells
        self._done: dict[str, Cell] = {}
        self._running: dict[str, float] = {}

    def start(self, name: str) -> None:
        """Note that a cell has begun; called from any thread."""
        self._running[name] = time.monotonic()

    def finish(self, name: str) -> None:
        """Note that something other than a cell has ended."""
        self._running.pop(name, None)

    def add(self, cell: Cell) -> None:
        """Add the result of a cell."""
        self._running.pop(cell.name, None)
        self._done[cell.name] = cell

    def __rich_console__(self, console: AnyConsole, options: ConsoleOptions) -> RenderResult:
        """Render the view."""
        yield Text(f"{len(self._done):,} of {len(self._planned):,} cells")
        servers = [*dict.fromkeys(cell.server.name for cell in self._planned)]
        titles = [*dict.fromkeys(cell.title for cell in self._planned)]
        table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold", pad_edge=False)
        table.add_column("")
        room = max((options.max_width - max(map(len, servers)) - 2) // (max(map(len, titles)) + 2), 1)
        for title in titles[:room]:
            table.add_column(title)
        for server in servers[: max(console.size.height - 6, 1)]:
            table.add_row(server, *(self._symbol(f"{server}×{title}") for title in titles[:room]))
        yield table
        for name, begun in [*self._running.items()][:3]:
            line = Text.assemble(("now ", "dim"), f"{name}, {time.monotonic() - begun:.0f} s")
            line.no_wrap, line.overflow = True, "ellipsis"
            yield line

    def _symbol(self, name: str) -> Text:
        cell = self._done.get(name)
        if cell is None:
            return Text("·", "dim")
        return Text(f"{SYMBOLS[cell.outcome]} {cell.outcome}", COLOURS[cell.outcome])
