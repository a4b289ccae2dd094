"""One connection to a CGML server: who speaks on it, for which group, and what he has been asked."""

from __future__ import annotations

import msgspec

from kiebitz.dissectors.model import Message
from kiebitz.dissectors.protocols.cgml.grammar import ElementType


class Conversation(msgspec.Struct, eq=False):
    """One connection; `whole` says that nothing of it is missing, from its beginning on."""

    stream_id: int
    whole: bool = True
    sure: bool = False
    """Whether what he was asked is known: since the first question nothing is missing or unreadable."""
    player: int | None = None
    """Who plays on it, if it is one player only."""
    shared: bool = False
    """Whether several players speak on it: then it cannot be told who was asked, or answers."""
    group: str | None = None
    """His group, as in the table's state."""
    logins: list[int] = msgspec.field(default_factory=list)
    """Who has logged in on it: a server of bots does so for several."""
    asked: dict[str, str] = msgspec.field(default_factory=dict)
    """What he was asked and has not answered, by question, with what the question said."""
    left: bool = False

    def asks(self, message: Message, row: ElementType) -> None:
        """The server says something, which may be a question."""
        question = _question(message, row)
        if question is not None:
            if question == "newgame":
                # What was asked before a hand is over is not answered any more.
                self.asked.clear()
            self.asked[question] = message.fields.get(row.name, "") if row.shape.text is not None else ""
            self.sure = not self.shared

    def is_of(self, player: int) -> None:
        """A player says that he is on it."""
        self.shared = self.shared or self.player not in (None, player)
        self.player = None if self.shared else player
        self.sure = self.sure and not self.shared

    def answers(self, message: Message, row: ElementType) -> str | None:
        """What the question said that is answered here; None if this was not asked."""
        return self.asked.pop(_answered(message, row), None)


def _question(message: Message, row: ElementType) -> str | None:
    """What a message of the server asks for."""
    if row.asks:
        return row.name
    if row.name == "dial" and message.fields["from"] == "talon" and message.fields["type"] == "cards":
        return "talon"
    return None


def _answered(message: Message, row: ElementType) -> str:
    """Which question a client's message answers."""
    return "talon" if message.fields.get("to") == "talon" else row.name


def is_answer(row: ElementType) -> bool:
    """Whether a client may only say this when he was asked."""
    return bool(row.answers) and row.name != "newgroup"
