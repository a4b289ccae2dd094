"""Rich's texts, consoles and progress bars, which escape all text.

A text is one line, whatever it contains; only `LINE_BREAK` breaks a line. A console also escapes everything
it writes, as a second safeguard. Rich is imported only here (enforced by ruff), except for
widths of characters.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Self

from rich.console import Console as RichConsole
from rich.console import ConsoleOptions as ConsoleOptions
from rich.console import Group as Group
from rich.console import RenderableType as RenderableType
from rich.console import RenderResult as RenderResult
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
from rich.progress_bar import ProgressBar as ProgressBar
from rich.segment import Segment as Segment
from rich.style import Style as Style
from rich.table import Table as Table
from rich.text import Text as RichText

from kiebitz.cli.terminal.console import colour_is_forced, is_terminal
from kiebitz.dissectors.escaping import printable
from kiebitz.services.evidence.cells import cell_len
from kiebitz.services.standard_streams import is_stderr_terminal

_WORD = re.compile(r'\s*(?>(?:"[^"]*"|\S)+)\s*')
_ITEM = re.compile(r'(?>(?:"[^"]*"|[^,])*),\s*|(?>(?:"[^"]*"|[^,])+)')
"""A word, and an item of a list; quoted text is not split. No backtracking, as texts are untrusted."""

_INDENT = "    "
"""Hanging indent of wrapped lines."""

_Style = str | Style
_Piece = str | RichText | tuple[str, _Style]


class Text(RichText):
    """Rich's text with all strings escaped; `more` are Rich's parameters."""

    def __init__(self, text: str = "", style: _Style = "", **more: Any) -> None:
        super().__init__(printable(text), style, **more)

    @classmethod
    def assemble(cls, *parts: _Piece, **more: Any) -> Self:
        """Concatenate strings, strings with a style, and texts."""
        made = cls(**more)
        for part in parts:
            if isinstance(part, tuple):
                made.append(*part)
            else:
                made.append(part)
        return made

    def append(self, text: RichText | str, style: _Style | None = None) -> Self:
        super().append(printable(text) if isinstance(text, str) else text, style)
        return self

    def append_text(self, text: RichText) -> Self:
        super().append_text(text)
        return self

    def blank_copy(self, plain: str = "") -> Self:
        made = type(self)(
            style=self.style,
            justify=self.justify,
            overflow=self.overflow,
            no_wrap=self.no_wrap,
            end=self.end,
            tab_size=self.tab_size,
        )
        # Not escaped: it may contain `LINE_BREAK`.
        made.plain = plain
        return made

    def copy(self) -> Self:
        made = self.blank_copy(self.plain)
        made.spans = [*self.spans]
        return made

    def join(self, lines: Iterable[RichText]) -> Self:
        made = super().join(lines)
        assert isinstance(made, type(self))
        return made

    def __add__(self, other: Any) -> Self:
        return self.copy().append(other) if isinstance(other, str | RichText) else NotImplemented

    def lines(self, console: RichConsole, width: int) -> list[Self]:
        """Wrap the text to `width` cells, between words, and between items of lists that are too long."""
        found = []
        own = self.split(allow_blank=True)
        broken = (part for line in own for part in line.divide(_breaks(line.plain, width)))
        for line in (line for part in broken for line in part.wrap(console, width)):
            made = self.blank_copy(line.plain)
            made.spans = line.spans
            found.append(made)
        return found


def _breaks(text: str, width: int) -> list[int]:
    """Return the offsets of line breaks: between words, and in a long word between list items.

    Rich breaks words that are still too wide.
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
"""A line break, to join texts."""


class Console(RichConsole):
    """Rich's console without markup, emoji codes or highlighting; `more` are Rich's parameters."""

    def __init__(self, **more: Any) -> None:
        super().__init__(highlight=False, emoji=False, markup=False, **{**_colours(more), **more})

    def show(self, text: Text) -> None:
        """Print a line, wrapped with a hanging indent on a terminal that is too narrow."""
        if not self.is_terminal or text.cell_len <= self.width:
            self.print(text, soft_wrap=True)
            return
        indent = len(text.plain) - len(text.plain.lstrip())
        further_in = min(indent + len(_INDENT), self.width // 2)
        words = text.divide([indent])[-1] if indent else text
        for number, line in enumerate(Text.assemble(words).lines(self, self.width - further_in)):
            self.print(Text(" " * (further_in if number else indent)) + line, soft_wrap=True)

    def render_str(self, text: str, **more: Any) -> Text:
        known = {name: more[name] for name in ("style", "justify", "overflow") if name in more}
        return Text(text, **known)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Render with everything escaped except Rich's control codes."""
        for segment in super().render(renderable, options):
            yield segment if segment.control or segment.text == "\n" else _harmless(segment)


def _colours(more: Mapping[str, Any]) -> dict[str, Any]:
    """Return Rich's colour settings for a console on stdout that is not a terminal.

    The reader, such as `watch -c`, may support only 16 colours, so more are only used on request:
    FORCE_COLOR=2 means 256 colours, 3 true colour, as in many programs.
    """
    if "file" in more or "stderr" in more or is_terminal():
        return {}
    if colour_is_forced():
        depth = {"2": "256", "3": "truecolor"}.get(os.environ.get("FORCE_COLOR", ""), "standard")
        return {"force_terminal": True, "color_system": depth}
    return {"force_terminal": False}


AnyConsole = RichConsole | Console
"""Any console, for annotations."""


def _harmless(segment: Segment) -> Segment:
    shown = "\n".join(map(printable, segment.text.split("\n")))
    return segment if shown == segment.text else Segment(shown, segment.style)


class Progress(RichProgress):
    """A transient progress bar on stderr; nothing if stderr is not a terminal."""

    def __init__(self, *columns: str | ProgressColumn) -> None:
        super().__init__(
            *columns, console=Console(stderr=True), transient=True, disable=not is_stderr_terminal()
        )

    def stop(self) -> None:
        # rich before 14.3 ends a disabled bar with an empty line.
        if not self.disable:
            super().stop()

    def add_task(self, description: str, *given: Any, **more: Any) -> TaskID:
        return super().add_task(escape(printable(description)), *given, **more)


class Live(RichLive):
    """A transient picture on stderr, drawn four times a second; nothing if stderr is not a terminal."""

    def __init__(self, picture: RenderableType) -> None:
        # The picture depends on stdout's encoding, so stdout must not be redirected.
        super().__init__(picture, console=Console(stderr=True), transient=True, redirect_stdout=False)

    def start(self, refresh: bool = False) -> None:
        if is_stderr_terminal():
            super().start(refresh)


OnProgress = Callable[[int, int | None], None]


class _Amount(TextColumn):
    """Column with completed and total amount, once the total is known."""

    def __init__(self, things: str) -> None:
        super().__init__("{task.completed:,.0f} of {task.total:,.0f} " + things)

    def render(self, task: Task) -> RichText:
        return RichText() if task.total is None else super().render(task)


@contextmanager
def progress_bar(title: str, *columns: ProgressColumn) -> Iterator[OnProgress]:
    """Show a progress bar; yields a callback for the completed and total amount."""
    with Progress(*columns) as progress:
        bar = progress.add_task(title, total=None)
        yield lambda done, of: progress.update(bar, completed=done, total=of)


def loading(file: str) -> AbstractContextManager[OnProgress]:
    """Show a progress bar for reading a file, in bytes."""
    return progress_bar(
        file, TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn()
    )


def counting(title: str, things: str) -> AbstractContextManager[OnProgress]:
    """Show a progress bar that counts things."""
    return progress_bar(
        title, TextColumn("{task.description}"), BarColumn(), _Amount(things), TimeRemainingColumn()
    )


def as_json(value: Any) -> RenderableType:
    """Return a value as indented JSON; non-printable characters use JSON's escapes."""
    return JSON(json.dumps(value), ensure_ascii=True)
