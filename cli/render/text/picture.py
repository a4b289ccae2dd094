"""A picture as a rich renderable, drawn for the width and encoding of each console."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from kiebitz.cli.render.text.canvas import glyphs_for
from kiebitz.cli.render.text.pen import Pen
from kiebitz.cli.terminal import emoji
from kiebitz.cli.terminal.screen import LINE_BREAK, AnyConsole, ConsoleOptions, RenderResult, Text


class Picture(msgspec.Struct, eq=False):
    """A picture made of cells; `names` gives each player a colour.

    `lines` returns the rows, of at most so many cells; a text may have several lines.
    """

    names: Sequence[str]
    lines: Callable[[Pen, int], list[Text]]

    def __rich_console__(self, console: AnyConsole, options: ConsoleOptions) -> RenderResult:
        # The terminal behind a file or a pipe is unknown.
        glyphs = glyphs_for(options.encoding, console.is_terminal and emoji.are_drawn())
        pen = Pen(console, options.encoding, glyphs, self.names)
        text = LINE_BREAK.join(self.lines(pen, options.max_width))
        text.no_wrap = True
        yield text
