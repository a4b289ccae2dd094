"""Progress of long operations, displayed if a display is set."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

OnProgress = Callable[[int, int | None], None]
"""Called with the amount done, and the total if known."""

Display = Callable[[str, str], AbstractContextManager[OnProgress]]
"""Displays progress, given a title and a noun for the amount, until the context ends."""


def _no_display(title: str, things: str) -> AbstractContextManager[OnProgress]:
    return nullcontext(lambda done, total: None)


_display: Display = _no_display


def set_display(display: Display) -> None:
    """Set the display of progress in this process."""
    global _display
    _display = display


def counting(title: str, things: str) -> AbstractContextManager[OnProgress]:
    """Display the number of `things` done until the context ends; nothing unless a display is set."""
    return _display(title, things)
