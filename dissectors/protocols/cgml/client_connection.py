"""A client's connection to a CGML server: its players, their group, and the questions pending."""

from __future__ import annotations

import msgspec

from kiebitz.dissectors.game.connections import OrderedDoubt
from kiebitz.dissectors.grammar.xml.shapes import ElementType
from kiebitz.dissectors.model import Message, Stream


class ClientConnection(msgspec.Struct, eq=False):
    """A client's connection; `certain` if nothing of it is missing from its beginning on."""

    stream: Stream
    certain: bool = True
    knows_player: bool = False
    """True if the player of its questions is known."""
    unread: OrderedDoubt = msgspec.field(default_factory=OrderedDoubt)
    """The doubt about questions that could not be read."""
    player: int | None = None
    """The player on it, if there is only one."""
    shared: bool = False
    """True if several players use it: then it is unknown who is asked, or answers."""
    group: str | None = None
    """Key of its group in the table's state."""
    logins: list[int] = msgspec.field(default_factory=list)
    """The players that have logged in on it; a server of bots logs in several."""
    asked: dict[str, str] = msgspec.field(default_factory=dict)
    """The text of each pending question, by its name."""
    left: bool = False

    def asks(self, message: Message, row: ElementType) -> None:
        """Process a message of the server, which may be a question."""
        question = _question_in(message, row)
        if question is not None:
            if question == "newgame":
                # Questions from before the end of a hand are no longer answered.
                self.asked.clear()
            self.asked[question] = message.fields.get(row.name, "") if row.shape.text is not None else ""
            self.knows_player = not self.shared

    def doubt(self) -> None:
        """Note that any questions may have been asked, or answered, now."""
        self.unread.begin()
        self.asked.clear()

    def is_of(self, player: int) -> None:
        """Assign a player to the connection."""
        self.shared = self.shared or self.player not in (None, player)
        self.player = None if self.shared else player
        self.knows_player = self.knows_player and not self.shared

    def answers(self, message: Message, row: ElementType) -> str | None:
        """Remove the question that a message answers, and return its text; None if there is none."""
        question = answered_question(message, row)
        text = self.asked.pop(question, None)
        if text is not None:
            self.unread.answered(question)
        return text


def _question_in(message: Message, row: ElementType) -> str | None:
    if is_question(row):
        return row.name
    if row.name == "dial" and message.fields["from"] == "talon" and message.fields["type"] == "cards":
        return "talon"
    return None


def answered_question(message: Message, row: ElementType) -> str:
    """Return the name of the question that a message answers."""
    return "talon" if message.fields.get("to") == "talon" else row.name


def is_question(row: ElementType) -> bool:
    """Return True if a message is marked as a question."""
    return row.mark is not None and row.mark[1] == "ask"


def is_answer(row: ElementType) -> bool:
    """Return True if a client may send this message only when asked."""
    return bool(row.answers) and row.name != "newgroup"
