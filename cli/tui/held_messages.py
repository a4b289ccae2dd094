"""Held messages of a relay: their keys, the pane, the line above the status, and the dialogs."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, ClassVar, Literal

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.suggester import SuggestFromList
from textual.widgets import Input, Static

from kiebitz.cli.held_fields import answers, assigned, misfits, patience, receiver, sender, slots
from kiebitz.cli.terminal.screen import LINE_BREAK, Console, Text
from kiebitz.cli.tui.dialogs import QUIT_BINDINGS
from kiebitz.cli.tui.listing import Listing
from kiebitz.cli.tui.lists import ARROWS, Rows
from kiebitz.dissectors.escaping import field_words
from kiebitz.services.alteration.control_client import ControlClient, HeldSnapshot, NoAnswerError
from kiebitz.services.alteration.control_server import Act, ControlError, HeldMessage

if TYPE_CHECKING:
    from kiebitz.cli.tui.app import WatchApp

KeyAction = Literal["let-go", "change", "drop", "answer", "let-all-go"]
"""Actions of the keys."""

_TICK_S = 0.1
"""Interval (seconds) between two updates of the waiting times."""


class HeldMessages:
    """The held messages of a relay."""

    def __init__(self, app: WatchApp, client: ControlClient | None, letters: bool) -> None:
        self._app = app
        self._client = client
        self.rows = _HeldRows(letters)
        self._shown: object = None
        self._ticked_s = 0.0
        self._last_acted: int | None = None
        """Number of the message that the user has just acted on."""

    @property
    def held(self) -> HeldSnapshot | None:
        """The held messages; None where none can be held, or the viewer may not see them."""
        may_act = self._app.viewer.followed.player is None
        return self._client.held if self._client is not None and may_act else None

    @property
    def is_available(self) -> bool:
        """True if there is a relay that can hold messages."""
        return self.held is not None

    def start(self) -> None:
        """Follow the relay, as long as the application runs."""
        if self._client is not None:
            self._app.run_worker(self._client.run())

    def tick(self) -> None:
        """Show changes and waiting times."""
        if self._client is None:
            return
        held, now = self.held, time.monotonic()
        shown = held is not None, self._client.changes
        if shown == self._shown and not (held and now - self._ticked_s >= _TICK_S):
            return
        is_other, self._shown, self._ticked_s = shown != self._shown, shown, now
        if is_other:
            self._take(held or HeldSnapshot())
            self._app.show_held()
        self.show()

    def show(self) -> None:
        """Update the line above the status, and the pane if it is open."""
        held = self.held
        line = self._app.query_one("#waiting", Static)
        line.display = bool(held)
        if held:
            line.update(_held_line(held, self._app.size.width, "" if self._listing.display else "h"))
        self._listing.renew()

    def do(self, deed: KeyAction) -> None:
        """Carry out the action of a key."""
        message = self._message
        if deed == "let-all-go":
            self._app.run_worker(self._act("let-all-go", None, "all held messages were forwarded"))
        elif message is None:
            self._app.note("select a message with ↑ ↓" if self.rows.held else self.rows.nothing)
        elif deed == "change":
            self._app.push_screen(
                _EditHeld(message, lambda text: self._ask("change", message, text)),
                lambda was_done: self._app.note("the edited message was forwarded") if was_done else None,
            )
        elif deed == "answer":
            self._app.push_screen(
                _AnswerHeld(message, lambda text: self._ask("answer", message, text)),
                lambda was_sent: self._app.note(f"{message.name} was answered") if was_sent else None,
            )
        else:
            done = "forwarded" if deed == "let-go" else "dropped"
            self._app.run_worker(self._act(deed, message, f"{message.name} was {done}"))

    @property
    def _listing(self) -> Listing:
        return self._app.query_one("#held", Listing)

    @property
    def _message(self) -> HeldMessage | None:
        """The selected message, if it is still held."""
        place = self._listing.place
        return self.rows.held.messages[place] if 0 <= place < len(self.rows) else None

    def _take(self, held: HeldSnapshot) -> None:
        """Show a list. The selection never jumps to another message because the selected one is gone."""
        chosen, was_empty = self._message, not self.rows
        self.rows.held = held
        numbers = [message.number for message in held.messages]
        place = -1
        if was_empty:
            place = 0
        elif chosen is not None and chosen.number in numbers:
            place = numbers.index(chosen.number)
        elif chosen is not None and chosen.number == self._last_acted:
            # After the user's own action, the next message takes its position.
            place = self._listing.place
        self._listing.choose(place)

    async def _ask(self, do: Act, message: HeldMessage | None, text: str = "") -> str | None:
        """Return why it was refused; None if it was not."""
        assert self._client is not None
        if message is not None and do != "answer":
            self._last_acted = message.number
        try:
            await self._client.ask(do, message.number if message is not None else None, text)
        except ControlError as error:
            if not isinstance(error, NoAnswerError):
                self._last_acted = None
            return str(error)
        return None

    async def _act(self, do: Act, message: HeldMessage | None, done: str) -> None:
        self._app.note(await self._ask(do, message) or done)


_ALARM = "bold red"

_MAX_ROWS = 3
"""Maximum number of rows of the line above the status."""


class _HeldRows(Rows):
    """The held messages, oldest first."""

    nothing = "no held messages"

    def __init__(self, has_letters: bool) -> None:
        self.held = HeldSnapshot()
        self._arrows = ARROWS[has_letters]

    def __len__(self) -> int:
        return len(self.held.messages)

    def lines(self, begin: int, end: int) -> Sequence[Text]:
        return [self._line(message) for message in self.held.messages[begin:end]]

    def _line(self, message: HeldMessage) -> Text:
        is_overdue = self.held.is_overdue(message)
        # The client's name or address, as in the list of messages.
        client = sender(message) if message.direction == "c2s" else receiver(message)
        return Text.assemble(
            (f"{_waited(self.held, message):>8}", _ALARM if is_overdue else ""),
            f" {self._arrows[message.direction]} {client}  ",
            (message.name, "bold"),
            (f"  {patience(message)}" if is_overdue else "", _ALARM),
            f"  {field_words(message.fields)}",
        )


def _held_line(held: HeldSnapshot, width: int, key: str) -> Text:
    """Return the overdue or oldest message and the number of others, in lines of a width, with the `key`."""
    message = next(filter(held.is_overdue, held.messages), held.messages[0])
    is_overdue = held.is_overdue(message)
    text = Text.assemble(
        ("held: ", "bold"),
        (message.name, "bold"),
        f" from {sender(message)} to {receiver(message)}, ",
        (_waited(held, message), _ALARM if is_overdue else ""),
        (f": {patience(message)}" if is_overdue else "", _ALARM),
        f"; {len(held) - 1} more" if len(held) > 1 else "",
        (f"  press {key} to act" if key else "", "dim"),
    )
    return LINE_BREAK.join([*text.wrap(Console(width=width), width)][:_MAX_ROWS])


def _waited(held: HeldSnapshot, message: HeldMessage) -> str:
    return f"{held.waited_ns(message) / 1e9:.1f} s"


_SendAction = Callable[[str], Awaitable[str | None]]
"""A function that sends the text of an action; returns why it was refused, or None."""

_NAMES_SHOWN = 300


class _HeldDialog(ModalScreen[bool]):
    """A dialog that stays open until its action succeeds; its result is True then."""

    BINDINGS: ClassVar[list[BindingType]] = [*QUIT_BINDINGS, Binding("escape", "dismiss(False)", "back")]

    def __init__(self, message: HeldMessage, send: _SendAction) -> None:
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


class _EditHeld(_HeldDialog):
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


class _AnswerHeld(_HeldDialog):
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
