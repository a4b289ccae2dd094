"""Held messages: the line above the status, and the rows of the pane."""

from __future__ import annotations

from collections.abc import Sequence

from kiebitz.cli.held_fields import patience, receiver, sender
from kiebitz.cli.terminal.screen import LINE_BREAK, Console, Text
from kiebitz.cli.tui.lists import ARROWS, Rows
from kiebitz.dissectors.escaping import field_words
from kiebitz.services.alteration.control_client import HeldSnapshot
from kiebitz.services.alteration.control_server import HeldMessage

_ALARM = "bold red"

_MAX_ROWS = 3
"""Maximum number of rows of the line above the status."""


class HeldRows(Rows):
    """The held messages as of the last `take`, oldest first."""

    nothing = "no held messages"

    def __init__(self, has_letters: bool) -> None:
        self.held = HeldSnapshot()
        self._arrows = ARROWS[has_letters]

    def __len__(self) -> int:
        return len(self.held.messages)

    def take(self, held: HeldSnapshot) -> None:
        """Replace the list."""
        self.held = held

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


def held_line(held: HeldSnapshot, width: int, key: str) -> Text:
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
