"""A picture as a rich renderable, drawn for the width and encoding of each console."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from kiebitz.cli.render.text.canvas import Glyphs, glyphs_for
from kiebitz.cli.render.text.pen import Pen
from kiebitz.cli.render.text.table import draw_view
from kiebitz.cli.terminal import emoji
from kiebitz.cli.terminal.screen import LINE_BREAK, AnyConsole, ConsoleOptions, RenderResult, Text
from kiebitz.dissectors.game.view import View


class Picture(ABC):
    """A picture made of cells; `names` gives each player a colour."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names

    def __rich_console__(self, console: AnyConsole, options: ConsoleOptions) -> RenderResult:
        pen = Pen(console, options.encoding, self._glyphs(console, options.encoding), self._names)
        text = LINE_BREAK.join(self.lines(pen, options.max_width))
        text.no_wrap = True
        yield text

    @abstractmethod
    def lines(self, pen: Pen, width: int) -> list[Text]:
        """Return the rows, of at most `width` cells; a text may have several lines."""

    @staticmethod
    def _glyphs(console: AnyConsole, encoding: str) -> Glyphs:
        # The terminal behind a file or a pipe is unknown.
        return glyphs_for(encoding, console.is_terminal and emoji.are_drawn())


class ViewPicture(Picture):
    """The picture of a view."""

    def __init__(self, view: View) -> None:
        super().__init__(view.names)
        self._view = view

    def lines(self, pen: Pen, width: int) -> list[Text]:
        return draw_view(self._view, pen, width)
