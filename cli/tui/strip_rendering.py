"""Conversion of rich texts to Textual's strips, in characters that the terminal can show."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from io import BytesIO, TextIOWrapper

from textual.strip import Strip

from kiebitz.cli.terminal.console import can_write, letters_of_output
from kiebitz.cli.terminal.screen import AnyConsole, Console, RenderableType, Segment, Style, Text

ENCODING = letters_of_output()
"""The terminal's encoding, read before Textual replaces stdout."""


has_letters = partial(can_write, encoding=ENCODING)
"""Returns True if the terminal can show these characters."""


def strip_console(like: AnyConsole, width: int, height: int) -> Console:
    """Return a console of this size with the colours of another one."""
    return Console(
        file=TextIOWrapper(BytesIO(), encoding=ENCODING),
        force_terminal=True,
        color_system=like.color_system or None,
        width=width,
        height=height,
    )


def line_strip(text: Text, console: AnyConsole, width: int, style: Style | None = None) -> Strip:
    """Return one line, cut or padded to a width; `style` is its background."""
    segments = _encodable(text.render(console, end=""))
    strip = Strip(segments).simplify().adjust_cell_length(width)
    return strip if style is None else strip.apply_style(style)


def render_strips(renderable: RenderableType, console: Console, width: int) -> list[Strip]:
    """Return a renderable as strips."""
    lines = console.render_lines(renderable, console.options.update(width=width, height=None), pad=False)
    return [Strip(_encodable(line)).adjust_cell_length(width) for line in lines]


def _encodable(segments: Iterable[Segment]) -> list[Segment]:
    if has_letters("…→█"):
        return list(segments)
    return [
        Segment(segment.text.encode(ENCODING, "replace").decode(ENCODING), segment.style)
        for segment in segments
    ]
