"""Inference of the message that says whose turn it is."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from operator import ne

import msgspec

from kiebitz.dissectors.drafting.identifiers import Identifiers, leaves
from kiebitz.dissectors.drafting.traffic import Kind, Message

_TURN = re.compile(r"turn|current|next|active|dran|zug|aktiv|move", re.IGNORECASE)

_CERTAIN = 8
"""Number of messages from which the turn is certain."""


class Turn(msgspec.Struct):
    """A message that says whose turn it is: the field with the player, None if it is the receiver."""

    name: str
    path: tuple[str, ...] | None
    hits: int
    total: int

    @property
    def is_certain(self) -> bool:
        """True if that player nearly always acted next."""
        return self.total >= _CERTAIN and self.hits >= 0.95 * self.total


def find_turn(messages: Sequence[Message], heartbeats: set[Kind], identifiers: Identifiers) -> Turn | None:
    """Return the server's message after which the named player, or its receiver, is the next to act."""
    actors: dict[str | int, int] = {}
    for conversation, owner in (*identifiers.owners.items(), *identifiers.numbers.items()):
        actors.setdefault(owner, conversation)
    acting = [message for message in messages if message.kind not in heartbeats]
    senders = [message.conversation for message in acting if message.direction == "c2s"]
    seen: dict[tuple[str, tuple[str, ...] | None], list[tuple[int, int]]] = defaultdict(list)
    """The player and who acted next, by the message and the place of the player in it."""
    number = 0
    for message in acting:
        number += message.direction == "c2s"
        if message.direction == "s2c" and number < len(senders):
            for path, actor in _named(message, actors):
                seen[message.name, path].append((actor, senders[number]))
    found: list[tuple[float, Turn]] = []
    for (name, path), pairs in seen.items():
        named = [actor for actor, _ in pairs]
        hits, is_hinted = sum(actor == sender for actor, sender in pairs), bool(_TURN.search(name))
        # A message about turns changes the player nearly as often as another player acts.
        is_usual = len(pairs) >= 4 and _changes(named) >= max(
            1, (0.2 if is_hinted else 0.5) * _changes(senders)
        )
        if is_usual and hits >= (0.7 if is_hinted else 0.9) * len(pairs):
            found.append((hits / len(pairs) + 0.5 * is_hinted, Turn(name, path, hits, len(pairs))))
    return max(found, key=lambda each: each[0])[1] if found else None


def _changes(players: Sequence[int]) -> int:
    """Return how often another player follows."""
    return sum(map(ne, players, players[1:]))


def _named(message: Message, actors: Mapping[str | int, int]) -> Iterator[tuple[tuple[str, ...] | None, int]]:
    for path, value in leaves(message.values):
        if len(path) == 1 and value in actors and not path[0].endswith("[]"):
            yield path, actors[value]
    if _TURN.search(message.name):
        yield None, message.conversation
