"""Progress of long operations; whoever runs them decides how it is displayed."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

OnProgress = Callable[[int, int | None], None]
"""Called with the amount that is done, and the total if that is known."""

Display = Callable[[str, str], AbstractContextManager[OnProgress]]
"""Given a title and what is counted, displays progress until the context ends."""


def _no_display(title: str, things: str) -> AbstractContextManager[OnProgress]:
    return nullcontext(lambda done, total: None)


_display: Display = _no_display


def set_display(display: Display) -> None:
    """Display progress this way from here on, in this process."""
    global _display
    _display = display


def counting(title: str, things: str) -> AbstractContextManager[OnProgress]:
    """Display how many `things` are done until the context ends; nothing unless a display is set."""
    return _display(title, things)
