"""Input line for a display filter, with completion; errors are marked below."""

from __future__ import annotations

import os.path
from typing import TYPE_CHECKING

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message
from textual.timer import Timer
from textual.widgets import Input, Static

from kiebitz.cli.terminal.screen import LINE_BREAK, Text
from kiebitz.services.evidence.cells import cell_len
from kiebitz.storage.read.conditions import compile_optional_filter, complete_filter

if TYPE_CHECKING:
    from kiebitz.dissectors.filters import Filter

_APPLY_DELAY_S = 0.2
"""Delay in seconds between a key and the evaluation of the filter."""

_MAX_CANDIDATES = 200
"""Maximum number of candidates listed."""


class _FilterInput(Input):
    """Text input with completion by Tab."""

    def on_key(self, event: events.Key) -> None:
        if event.key == "tab":
            event.stop()
            event.prevent_default()
            assert isinstance(self.parent, FilterLine)
            self.parent.complete()


class FilterLine(Vertical):
    """The filter input, visible while the user edits."""

    class Written(Message):
        """The text is a valid filter, or empty."""

        def __init__(self, wanted: Filter | None) -> None:
            super().__init__()
            self.wanted = wanted

    class Left(Message):
        """The line was closed; `kept` is False if the filter was dropped."""

        def __init__(self, kept: bool) -> None:
            super().__init__()
            self.kept = kept

    _timer: Timer | None = None

    def compose(self) -> ComposeResult:
        yield _FilterInput(
            placeholder='a filter, such as actor == "alice"   Tab completes, Enter applies, Esc clears'
        )
        yield Static(id="slip")

    @property
    def _input(self) -> _FilterInput:
        return self.query_one(_FilterInput)

    def open(self, text: str) -> None:
        """Show the line with a filter."""
        self.display = True
        self._input.value = text
        self._input.cursor_position = len(text)
        self._input.focus()
        self._show_hint(Text())

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.stop()
            self._timer = None

    def complete(self) -> None:
        """Insert the common prefix of all matching names, or list them."""
        # An unfinished word is not an error yet.
        self._cancel_timer()
        line = self._input
        text = line.value[: line.cursor_position]
        before, names = complete_filter(text)
        common = before + os.path.commonprefix(names) if names else text  # noqa: RUF071  # letter by letter
        if len(common) > len(text):
            rest = line.value[line.cursor_position :]
            line.value = common + rest
            line.cursor_position = len(common)
        elif len(names) > 1:
            self._show_hint(Text("  ".join(names[:_MAX_CANDIDATES])))
        elif not names:
            self._show_hint(Text("no matching name", "dim"))

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        self._show_hint(Text())
        self._cancel_timer()
        self._timer = self.set_timer(_APPLY_DELAY_S, lambda: self._apply(event.value))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        if self._apply(event.value):
            self.close(kept=True)

    def on_key(self, event: events.Key) -> None:
        if event.key == "escape":
            event.stop()
            self.post_message(self.Written(None))
            self.close(kept=False)

    def close(self, kept: bool) -> None:
        """Hide the line."""
        self._cancel_timer()
        self.display = False
        self.post_message(self.Left(kept))

    def _apply(self, text: str) -> bool:
        """Apply the text, unless it has changed since. Return True if it is a filter."""
        from kiebitz.dissectors.filters import FilterError

        if text != self._input.value:
            return False
        try:
            wanted = compile_optional_filter(text.strip() or None)
        except FilterError as error:
            caret = " " * cell_len(text[: error.position]) + "^" * max(error.length, 1)
            self._show_hint(LINE_BREAK.join([Text(caret, "bold red"), Text(error.message)]))
            return False
        self.post_message(self.Written(wanted))
        return True

    def _show_hint(self, text: Text) -> None:
        self.query_one("#slip", Static).update(text)
