"""Dialogs over the table: the choice of a viewer, and the help."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from kiebitz.cli.terminal.screen import LINE_BREAK, Text

QUIT_BINDINGS = (Binding("ctrl+c", "app.leave(130)", "quit", priority=True),)


class Choice(ModalScreen[int | None]):
    """A list of options to choose from; its result is the index of the option, or None."""

    BINDINGS: ClassVar[list[BindingType]] = [*QUIT_BINDINGS, Binding("escape,q", "dismiss(None)", "back")]

    def __init__(self, title: str, choices: Sequence[str], chosen: int) -> None:
        super().__init__()
        self._title = title
        self._choices = choices
        self._chosen = chosen

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Static(Text(self._title, "bold"))
            yield OptionList(*(Option(Text(choice)) for choice in self._choices))

    def on_mount(self) -> None:
        self.query_one(OptionList).highlighted = self._chosen

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(event.option_index)


class Help(ModalScreen[None]):
    """The list of all keys."""

    BINDINGS: ClassVar[list[BindingType]] = [
        *QUIT_BINDINGS,
        Binding("escape,q,enter,space,question_mark", "dismiss(None)", "back"),
    ]

    def __init__(self, keys: Sequence[tuple[str, str]]) -> None:
        super().__init__()
        self._keys = keys

    def compose(self) -> ComposeResult:
        width = max(len(key) for key, _ in self._keys)
        # The arrow keys scroll if there are fewer rows.
        lines = [Text.assemble((f"{key:<{width}}  ", "bold"), said) for key, said in self._keys]
        with VerticalScroll(classes="dialog"):
            yield Static(LINE_BREAK.join(lines))
