"""What a peer is known to say next after each message, learnt while it is sent nothing odd.

By that a reaction to something odd is told from going on as usual, also where the grammar names no answer.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.grammar.grammar import MessageType
from kiebitz.dissectors.model import Direction


class Habits:
    """Of one program, for messages of which the grammar names no answer."""

    def __init__(self, dissector: Dissector, hears: Direction) -> None:
        """Of a program that says what goes in the direction `hears`."""
        self._answers: dict[str, set[str]] = {}
        for row in dissector.grammar.rows:
            for asked in row.answers if row.direction == hears else ():
                self._answers.setdefault(asked, set()).add(row.name)
        self._always: dict[str, dict[str, bool]] = {}
        """By a message of ours what came each time before we spoke again, and whether that named us."""
        self._first: dict[str, set[str]] = {}
        """By a message of ours what came first after it."""
        self.greets = False
        """Whether it says something to a new client while a game is on."""
        self.takes_part = True
        """Whether it says more in a game than who it is."""
        self.parted_at: int | None = None
        """The number of the line of the record up to which it goes by that; None if it does to the end."""
        self.welcomes: frozenset[str] = frozenset()
        """What it says to a new client before that has said anything."""
        self.answers_newcomers = False
        """Whether it answers what a new client says first."""
        self.flawed: frozenset[str] = frozenset()
        """The messages of its own with which something is wrong in any case."""

    def learn(self, said: str, heard: Sequence[tuple[str, bool]]) -> None:
        """After the one message these came on the same connection, before anything else was said there; and
        whether each named who had spoken."""
        came: dict[str, bool] = {}
        for name, names_speaker in heard:
            came[name] = came.get(name, False) or names_speaker
        known = self._always.setdefault(said, came)
        self._always[said] = {name: known[name] and came[name] for name in known if name in came}
        self._first.setdefault(said, set()).update(name for name, _ in heard[:1])

    def answers_to(self, said: MessageType) -> Collection[str]:
        """The names of the program's messages that answer this one, by the grammar."""
        return self._answers.get(said.name, ())

    def is_answered(self, said: MessageType) -> bool:
        """Whether the message itself is answered, by the grammar."""
        return said.name in self._answers

    def follows(self, said: MessageType, reply: str, names_speaker: bool) -> bool:
        """Whether this is how the peer goes on after the message. If nothing is known of that, all is."""
        if said.name in self._answers:
            return reply in self._answers[said.name]
        always, first = self._always.get(said.name, {}), self._first.get(said.name, set())
        # What comes at once, and each time, tells most.
        telling = first & always.keys() or always.keys() or first
        if not telling:
            return True
        return reply in telling and (names_speaker or not always.get(reply))
