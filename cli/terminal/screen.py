"""What rich draws on a terminal: its texts and its consoles, which escape what they are given.

A text is one line whatever is in it; a line ends only where `LINE_BREAK` was put. Beyond that, a console
escapes what it is about to write, so that nothing drives the terminal that has come in some other way.
Rich is imported here alone (ruff sees to that), apart from its widths of letters, and only to draw something.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Self

from rich.console import Console as RichConsole
from rich.console import ConsoleOptions, Group, RenderableType, RenderResult
from rich.json import JSON
from rich.live import Live as RichLive
from rich.markup import escape
from rich.progress import (
    BarColumn,
    DownloadColumn,
    ProgressColumn,
    Task,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as RichProgress
from rich.progress_bar import ProgressBar
from rich.segment import Segment
from rich.style import Style
from rich.table import Table
from rich.text import Text as RichText

from kiebitz.cli.terminal.console import colour_is_forced, is_terminal
from kiebitz.dissectors.escaping import printable
from kiebitz.services.evidence.cells import cell_len
from kiebitz.services.standard_streams import is_stderr_terminal

__all__ = [
    "LINE_BREAK",
    "AnyConsole",
    "Console",
    "ConsoleOptions",
    "Group",
    "Live",
    "OnProgress",
    "Progress",
    "ProgressBar",
    "RenderResult",
    "RenderableType",
    "Segment",
    "Style",
    "Table",
    "Text",
    "as_json",
    "counting",
    "loading",
    "progress_bar",
]

_WORD = re.compile(r'\s*(?>"[^"]*"|\S)++\s*')
_ITEM = re.compile(r'(?>"[^"]*"|[^,])*+,\s*|(?>"[^"]*"|[^,])++')
"""A word, and an item of a list; what is in quotation marks stays whole.

Texts may be anybody's, so nothing here backtracks.
"""

_INDENT = "    "
"""Where a line is broken, what is left of it stands so much further in."""

_Style = str | Style
_Piece = str | RichText | tuple[str, _Style]


class Text(RichText):
    """Rich's text, of which every string that is put in is escaped; `more` is what rich's takes."""

    def __init__(self, text: str = "", style: _Style = "", **more: Any) -> None:
        super().__init__(printable(text), style, **more)

    @classmethod
    def assemble(cls, *parts: _Piece, **more: Any) -> Self:
        """One text of strings, strings with a style, and texts."""
        made = cls(**more)
        for part in parts:
            if isinstance(part, tuple):
                made.append(*part)
            else:
                made.append(part)
        return made

    def append(self, text: RichText | str, style: _Style | None = None) -> Self:
        """Put something at the end."""
        super().append(printable(text) if isinstance(text, str) else text, style)
        return self

    def append_text(self, text: RichText) -> Self:
        """Put a text at the end."""
        super().append_text(text)
        return self

    def blank_copy(self, plain: str = "") -> Self:
        """Another one in the same style."""
        made = type(self)(
            style=self.style,
            justify=self.justify,
            overflow=self.overflow,
            no_wrap=self.no_wrap,
            end=self.end,
            tab_size=self.tab_size,
        )
        # What rich makes of a text may have line breaks of ours.
        made.plain = plain
        return made

    def copy(self) -> Self:
        """The same once more."""
        made = self.blank_copy(self.plain)
        made.spans = [*self.spans]
        return made

    def join(self, lines: Iterable[RichText]) -> Self:
        """The texts with this one between them."""
        made = super().join(lines)
        assert isinstance(made, type(self))
        return made

    def __add__(self, other: Any) -> Self:
        return self.copy().append(other) if isinstance(other, str | RichText) else NotImplemented

    def lines(self, console: RichConsole, width: int) -> list[Self]:
        """The text in lines of at most so many cells; a word or an item of a list is on one if it fits."""
        found = []
        own = self.split(allow_blank=True)
        broken = (part for line in own for part in line.divide(_breaks(line.plain, width)))
        for line in (line for part in broken for line in part.wrap(console, width)):
            made = self.blank_copy(line.plain)
            made.spans = line.spans
            found.append(made)
        return found


def _breaks(text: str, width: int) -> list[int]:
    """Where a text is broken into lines of so many cells: between words, and in a list between its items.

    A word that is wider than a line even so is left to rich, which breaks it anywhere.
    """
    breaks: list[int] = []
    used = 0
    for word in _WORD.finditer(text):
        is_wider = cell_len(word[0].rstrip()) > width
        for piece in _ITEM.finditer(text, *word.span()) if is_wider else (word,):
            if used and used + cell_len(piece[0].rstrip()) > width:
                breaks.append(piece.start())
                used = 0
            used += cell_len(piece[0])
    return breaks


def _line_break() -> Text:
    made = Text()
    made.plain = "\n"
    return made


LINE_BREAK = _line_break()
"""Goes between texts, or joins them."""


class Console(RichConsole):
    """Rich's console, for which nothing in a string means anything; `more` is what rich's takes."""

    def __init__(self, **more: Any) -> None:
        super().__init__(highlight=False, emoji=False, markup=False, **{**_colours(more), **more})

    def show(self, text: Text) -> None:
        """Write a line: on a terminal that is too narrow on several, all but the first further in.

        In a file or a pipe it stays one.
        """
        if not self.is_terminal or text.cell_len <= self.width:
            self.print(text, soft_wrap=True)
            return
        indent = len(text.plain) - len(text.plain.lstrip())
        further_in = min(indent + len(_INDENT), self.width // 2)
        words = text.divide([indent])[-1] if indent else text
        for number, line in enumerate(Text.assemble(words).lines(self, self.width - further_in)):
            self.print(Text(" " * (further_in if number else indent)) + line, soft_wrap=True)

    def render_str(self, text: str, **more: Any) -> Text:
        """A string as a text."""
        known = {name: more[name] for name in ("style", "justify", "overflow") if name in more}
        return Text(text, **known)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """What is written for a renderable: all but rich's own codes is escaped."""
        for segment in super().render(renderable, options):
            yield segment if segment.control or segment.text == "\n" else _harmless(segment)


def _colours(more: Mapping[str, Any]) -> dict[str, Any]:
    """What a console that writes to stdout is told where that is no terminal: whether to use colours.

    The reader, such as `watch -c`, may know no more than the sixteen that every terminal has; it gets others
    where they are asked for by their number, as many programs have it: FORCE_COLOR=2 is 256, 3 is all.
    """
    if "file" in more or "stderr" in more or is_terminal():
        return {}
    if colour_is_forced():
        depth = {"2": "256", "3": "truecolor"}.get(os.environ.get("FORCE_COLOR", ""), "standard")
        return {"force_terminal": True, "color_system": depth}
    return {"force_terminal": False}


AnyConsole = RichConsole | Console
"""What draws: for annotations, and nothing that could be made."""


def _harmless(segment: Segment) -> Segment:
    shown = "\n".join(map(printable, segment.text.split("\n")))
    return segment if shown == segment.text else Segment(shown, segment.style)


class Progress(RichProgress):
    """Rich's progress bar on stderr, gone in the end; none where that is no terminal."""

    def __init__(self, *columns: str | ProgressColumn) -> None:
        super().__init__(
            *columns, console=Console(stderr=True), transient=True, disable=not is_stderr_terminal()
        )

    def add_task(self, description: str, *given: Any, **more: Any) -> TaskID:
        """A bar with its name."""
        return super().add_task(escape(printable(description)), *given, **more)


class Live(RichLive):
    """A picture on stderr, drawn four times a second, gone in the end; none where that is no terminal."""

    def __init__(self, picture: RenderableType) -> None:
        # Nothing is written to stdout meanwhile, and the picture asks what letters that can write.
        super().__init__(picture, console=Console(stderr=True), transient=True, redirect_stdout=False)

    def start(self, refresh: bool = False) -> None:
        """Begin to draw it."""
        if is_stderr_terminal():
            super().start(refresh)


OnProgress = Callable[[int, int | None], None]


class _Amount(TextColumn):
    """How many things are done and of how many, once that is known."""

    def __init__(self, things: str) -> None:
        super().__init__("{task.completed:,.0f} of {task.total:,.0f} " + things)

    def render(self, task: Task) -> RichText:
        """The column of a bar."""
        return RichText() if task.total is None else super().render(task)


@contextmanager
def progress_bar(title: str, *columns: ProgressColumn) -> Iterator[OnProgress]:
    """A bar while something is done; it is told how much is done, and of how much if that is known."""
    with Progress(*columns) as progress:
        bar = progress.add_task(title, total=None)
        yield lambda done, of: progress.update(bar, completed=done, total=of)


def loading(file: str) -> AbstractContextManager[OnProgress]:
    """A bar for a file, which is told of bytes."""
    return progress_bar(
        file, TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn()
    )


def counting(title: str, things: str) -> AbstractContextManager[OnProgress]:
    """A bar for things that are counted."""
    return progress_bar(
        title, TextColumn("{task.description}"), BarColumn(), _Amount(things), TimeRemainingColumn()
    )


def as_json(value: Any) -> RenderableType:
    """A value as indented JSON, in which JSON's own escapes stand for what does not print."""
    return JSON(json.dumps(value), ensure_ascii=True)
