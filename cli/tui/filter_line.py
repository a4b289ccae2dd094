"""The line in which a display filter is written: completed as a shell does it, a slip marked below."""

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

_PAUSE_S = 0.2
"""So long after a key what is written is tried."""

_MOST = 200
"""So many candidates are listed at the most."""


class _Line(Input):
    """Where it is written: Tab completes."""

    async def _on_key(self, event: events.Key) -> None:
        if event.key == "tab":
            event.stop()
            event.prevent_default()
            assert isinstance(self.parent, FilterLine)
            self.parent.complete()
            return
        await super()._on_key(event)


class FilterLine(Vertical):
    """A filter as it is written; it is shown while it is."""

    class Written(Message):
        """What is written is a filter, or nothing."""

        def __init__(self, wanted: Filter | None) -> None:
            super().__init__()
            self.wanted = wanted

    class Left(Message):
        """It is written; or, if not `kept`, given up."""

        def __init__(self, kept: bool) -> None:
            super().__init__()
            self.kept = kept

    _timer: Timer | None = None

    def compose(self) -> ComposeResult:
        yield _Line(placeholder='a filter, as in: actor == "alice"   Tab completes, Enter keeps, Esc drops')
        yield Static(id="slip")

    @property
    def _input(self) -> _Line:
        return self.query_one(_Line)

    def open(self, text: str) -> None:
        """Show it with this filter in it."""
        self.display = True
        self._input.value = text
        self._input.cursor_position = len(text)
        self._input.focus()
        self._tell(Text())

    def _wait_no_longer(self) -> None:
        if self._timer is not None:
            self._timer.stop()
            self._timer = None

    def complete(self) -> None:
        """Put in what all names have in common that begin so; list them where they are several."""
        # A word that is only begun is no slip yet.
        self._wait_no_longer()
        line = self._input
        text = line.value[: line.cursor_position]
        before, names = complete_filter(text)
        common = before + os.path.commonprefix(names) if names else text  # noqa: RUF071  # letter by letter
        if len(common) > len(text):
            rest = line.value[line.cursor_position :]
            line.value = common + rest
            line.cursor_position = len(common)
        elif len(names) > 1:
            self._tell(Text("  ".join(names[:_MOST])))
        elif not names:
            self._tell(Text("no name begins like this", "dim"))

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        self._tell(Text())
        self._wait_no_longer()
        self._timer = self.set_timer(_PAUSE_S, lambda: self._try(event.value))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        if self._try(event.value):
            self.close(kept=True)

    def on_key(self, event: events.Key) -> None:
        if event.key == "escape":
            event.stop()
            self.post_message(self.Written(None))
            self.close(kept=False)

    def close(self, kept: bool) -> None:
        """It is seen no more."""
        self._wait_no_longer()
        self.display = False
        self.post_message(self.Left(kept))

    def _try(self, text: str) -> bool:
        """Let what is written filter, if it still is what is written; whether it is a filter."""
        from kiebitz.dissectors.filters import FilterError

        if text != self._input.value:
            return False
        try:
            wanted = compile_optional_filter(text.strip() or None)
        except FilterError as error:
            caret = " " * cell_len(text[: error.position]) + "^" * max(error.length, 1)
            self._tell(LINE_BREAK.join([Text(caret, "bold red"), Text(error.message)]))
            return False
        self.post_message(self.Written(wanted))
        return True

    def _tell(self, text: Text) -> None:
        self.query_one("#slip", Static).update(text)
