"""What a peer is known to say next after each message, learnt while it is sent nothing odd.

By that a reaction to something odd is told from going on as usual, also where the grammar names no answer.
"""

from __future__ import annotations

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.grammar import MessageType
from kiebitz.dissectors.records import Direction


class Habits:
    """Of one program, for messages of which the grammar names no answer."""

    def __init__(self, dissector: Dissector, hears: Direction) -> None:
        """Of a program that says what goes in the direction `hears`."""
        self._answers: dict[str, set[str]] = {}
        for row in dissector.grammar.rows:
            for asked in row.answers if row.direction == hears else ():
                self._answers.setdefault(asked, set()).add(row.name)
        self._replies: dict[str, dict[str, bool]] = {}
        """By a message what came next, and whether that named who had spoken each time."""
        self.greets = False
        """Whether it says something to a new client while a game is on."""
        self.welcomes: frozenset[str] = frozenset()
        """What it says to a new client before that has said anything."""
        self.answers_newcomers = False
        """Whether it answers what a new client says first."""
        self.flawed: frozenset[str] = frozenset()
        """The messages of its own with which something is wrong in any case."""

    def learn(self, said: str, reply: str, names_speaker: bool) -> None:
        """After the one message this came next on the same connection."""
        known = self._replies.setdefault(said, {})
        known[reply] = names_speaker and known.get(reply, True)

    def is_answered(self, said: MessageType) -> bool:
        """Whether the message itself is answered, by the grammar."""
        return said.name in self._answers

    def follows(self, said: MessageType, reply: str, names_speaker: bool) -> bool:
        """Whether this is how the peer goes on after the message. If nothing is known of that, all is."""
        if said.name in self._answers:
            return reply in self._answers[said.name]
        known = self._replies.get(said.name)
        if not known:
            return True
        return reply in known and (names_speaker or not known[reply])
