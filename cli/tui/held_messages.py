"""Held messages of a relay: the keys that act on them, the pane and the line above the status."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Literal, Protocol

from textual.app import App
from textual.widgets import Static

from kiebitz.cli.tui.held_dialogs import AnswerHeld, EditHeld
from kiebitz.cli.tui.held_list import HeldRows, held_line
from kiebitz.cli.tui.listing import Listing
from kiebitz.services.alteration.control_client import ControlClient, HeldSnapshot, NoAnswerError
from kiebitz.services.alteration.control_server import Act, ControlError, HeldMessage

KeyAction = Literal["let-go", "change", "drop", "answer", "let-all-go"]
"""Actions of the keys."""

_TICK_S = 0.1
"""Interval (seconds) between two updates of the waiting times."""


class HeldDisplay(Protocol):
    """The application, as held messages need it."""

    def show_held(self) -> None:
        """Adapt to another list, or to a pane that has come or gone."""

    def note(self, sentence: str) -> None:
        """Show a sentence in the status line."""


class HeldMessages:
    """The held messages of a relay; `may_act` is True if the current viewer may see them."""

    def __init__(
        self,
        app: App[Any],
        sight: HeldDisplay,
        client: ControlClient | None,
        may_act: Callable[[], bool],
        letters: bool,
    ) -> None:
        self._app = app
        self._sight = sight
        self._client = client
        self._may_act = may_act
        self.rows = HeldRows(letters)
        self._shown: object = None
        self._ticked_s = 0.0
        self._last_acted: int | None = None
        """Number of the message that the user has just acted on."""

    @property
    def held(self) -> HeldSnapshot | None:
        """The held messages; None where none can be held, or the viewer may not see them."""
        return self._client.held if self._client is not None and self._may_act() else None

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
            self._sight.show_held()
        self.show()

    def show(self) -> None:
        """Update the line above the status, and the pane if it is open."""
        held = self.held
        line = self._app.query_one("#waiting", Static)
        line.display = bool(held)
        if held:
            line.update(held_line(held, self._app.size.width, "" if self._listing.display else "h"))
        self._listing.renew()

    def do(self, deed: KeyAction) -> None:
        """Carry out the action of a key."""
        message = self._message
        if deed == "let-all-go":
            self._run(self._act("let-all-go", None, "all held messages were forwarded"))
        elif message is None:
            self._sight.note("select a message with ↑ ↓" if self.rows.held else self.rows.nothing)
        elif deed == "change":
            self._app.push_screen(
                EditHeld(message, lambda text: self._ask("change", message, text)), self._back
            )
        elif deed == "answer":
            self._app.push_screen(
                AnswerHeld(message, lambda text: self._ask("answer", message, text)),
                lambda was_sent: self._sight.note(f"{message.name} was answered") if was_sent else None,
            )
        else:
            done = "forwarded" if deed == "let-go" else "dropped"
            self._run(self._act(deed, message, f"{message.name} was {done}"))

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
        self.rows.take(held)
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

    def _back(self, was_done: bool | None) -> None:
        if was_done:
            self._sight.note("the edited message was forwarded")

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
        self._sight.note(await self._ask(do, message) or done)

    def _run(self, work: Any) -> None:
        self._app.run_worker(work)
