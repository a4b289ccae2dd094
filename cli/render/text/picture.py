"""A picture as rich prints it: drawn anew for each console, in its width and its letters."""

from __future__ import annotations

from abc import ABC, abstractmethod

from kiebitz.cli.render.text.canvas import Glyphs, glyphs_for
from kiebitz.cli.render.text.pen import Pen
from kiebitz.cli.render.text.scene import Scene
from kiebitz.cli.terminal import emoji
from kiebitz.cli.terminal.screen import LINE_BREAK, AnyConsole, ConsoleOptions, RenderResult, Text


class Drawing(ABC):
    """A scene that is drawn once, in at most so many columns, and never in more than `WIDEST`."""

    WIDEST = 120

    def __init__(self, scene: Scene, pen: Pen, width: int) -> None:
        self.scene = scene
        self.pen = pen
        self.width = min(width, self.WIDEST)

    @abstractmethod
    def lines(self) -> list[Text]:
        """The picture from its top; a text may have several lines."""


class Picture:
    """A scene and how it is drawn."""

    def __init__(self, drawing: type[Drawing], scene: Scene) -> None:
        self.drawing = drawing
        self.scene = scene

    def __rich_console__(self, console: AnyConsole, options: ConsoleOptions) -> RenderResult:
        pen = Pen(console, options.encoding, self._glyphs(console, options.encoding), self.scene.names)
        text = LINE_BREAK.join(self.drawing(self.scene, pen, options.max_width).lines())
        text.no_wrap = True
        yield text

    @staticmethod
    def _glyphs(console: AnyConsole, encoding: str) -> Glyphs:
        # Who reads a file or a pipe is not known.
        return glyphs_for(encoding, console.is_terminal and emoji.are_drawn())
