"""Dialogs to edit or answer a held message."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.suggester import SuggestFromList
from textual.widgets import Input, Static

from kiebitz.cli.held_fields import answers, assigned, misfits, receiver, sender, slots
from kiebitz.cli.terminal.screen import Text
from kiebitz.cli.tui.dialogs import QUIT_BINDINGS
from kiebitz.services.alteration.control_server import HeldMessage

SendAction = Callable[[str], Awaitable[str | None]]
"""A function that sends the text of an action; returns why it was refused, or None."""

_NAMES_SHOWN = 300


class _HeldDialog(ModalScreen[bool]):
    """A dialog that stays open until its action succeeds; its result is True then."""

    BINDINGS: ClassVar[list[BindingType]] = [*QUIT_BINDINGS, Binding("escape", "dismiss(False)", "back")]

    def __init__(self, message: HeldMessage, send: SendAction) -> None:
        super().__init__()
        self.message = message
        self._send = send

    async def send(self, text: str) -> None:
        """Request the action, and close the dialog or show why it was refused."""
        why = await self._send(text)
        if why is None:
            self.dismiss(True)
        else:
            self.show_problem(why)

    def show_problem(self, sentence: str) -> None:
        """Show a sentence at the end of the dialog."""
        self.query_one("#why", Static).update(Text(sentence, "bold red"))


class EditHeld(_HeldDialog):
    """A dialog with an input for each field of a message; Enter forwards the edited message."""

    def compose(self) -> ComposeResult:
        message = self.message
        self._fields = [slot.field for slot in slots(message)]
        with VerticalScroll(classes="dialog", can_focus=False):
            yield Static(Text(f"Edit {message.name} from {sender(message)} to {receiver(message)}", "bold"))
            for place, slot in enumerate(slots(message)):
                yield Static(Text(slot.field), classes="label")
                yield Input(slot.value, id=f"value-{place}", select_on_focus=False)
                yield Static(id=f"slip-{place}", classes="slip")
            if not self._fields:
                yield Static("no editable values: forward or drop the message")
            yield Static(id="why", classes="slip")
            yield Static(Text("Enter forwards it   Tab next value   Esc back", "dim"))

    def on_mount(self) -> None:
        if self._fields:
            self.query_one("#value-0", Input).focus()

    @property
    def values(self) -> dict[str, str]:
        """The entered text by field."""
        return {field: self.query_one(f"#value-{at}", Input).value for at, field in enumerate(self._fields)}

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        place = int((event.input.id or "").removeprefix("value-"))
        field = self._fields[place]
        self._show_problems({field: misfits(self.message, {field: event.value}).get(field)})

    async def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        wrong = misfits(self.message, self.values)
        self._show_problems({field: wrong.get(field) for field in self._fields})
        text = assigned(self.message, self.values)
        if wrong:
            self.query_one(f"#value-{self._fields.index(next(iter(wrong)))}", Input).focus()
        elif not text:
            self.show_problem("no field was changed: Esc, then Enter, forwards it unchanged")
        else:
            await self.send(text)

    def _show_problems(self, slips: dict[str, str | None]) -> None:
        self.show_problem("")
        for field, slip in slips.items():
            shown = self.query_one(f"#slip-{self._fields.index(field)}", Static)
            shown.update(Text(slip or "", "red"))
            shown.display = slip is not None


class AnswerHeld(_HeldDialog):
    """Input for a message to the sender of a held message."""

    def compose(self) -> ComposeResult:
        message = self.message
        names = answers(message)
        with VerticalScroll(classes="dialog", can_focus=False):
            title = f"Answer {sender(message)} as {receiver(message)}; {message.name} remains held"
            yield Static(Text(title, "bold"))
            yield Input(
                placeholder="NAME field=value",
                suggester=SuggestFromList(names, case_sensitive=False),
                select_on_focus=False,
            )
            yield Static(id="why", classes="slip")
            yield Static(Text(_joined(names), "dim"))
            yield Static(Text("Enter sends it   Right completes a name   Esc back", "dim"))

    def on_mount(self) -> None:
        self.query_one(Input).focus()

    async def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        await self.send(event.value.strip())


def _joined(names: list[str]) -> str:
    text = ", ".join(names)
    return text if len(text) <= _NAMES_SHOWN else f"{text[:_NAMES_SHOWN].rpartition(', ')[0]}, …"
