"""Inference of the message that says whose turn it is."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import msgspec

from kiebitz.dissectors.drafting.identifiers import Identifiers, leaves
from kiebitz.dissectors.drafting.relations import Kind
from kiebitz.dissectors.drafting.traffic import Message

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
    following = _next_senders(messages, heartbeats)
    hits: Counter[tuple[str, tuple[str, ...] | None]] = Counter()
    totals: Counter[tuple[str, tuple[str, ...] | None]] = Counter()
    values: dict[tuple[str, tuple[str, ...] | None], list[int]] = defaultdict(list)
    for message in messages:
        sender = following.get(message.order)
        if message.direction != "s2c" or sender is None:
            continue
        for path, actor in _named(message, actors):
            key = message.name, path
            totals[key] += 1
            hits[key] += actor == sender
            values[key].append(actor)
    best: tuple[float, Turn] | None = None
    runs = _count_runs(messages, heartbeats)
    for key, total in totals.items():
        changes = sum(a != b for a, b in zip(values[key], values[key][1:], strict=False))
        hinted = bool(_TURN.search(key[0]))
        if total < 4 or len({*values[key]}) < 2 or hits[key] < (0.7 if hinted else 0.9) * total:
            continue
        # A message about turns changes the player nearly as often as another player acts.
        if changes < (0.2 if hinted else 0.5) * runs:
            continue
        score = hits[key] / total + 0.5 * hinted
        if best is None or score > best[0]:
            best = score, Turn(key[0], key[1], hits[key], total)
    return None if best is None else best[1]


def _count_runs(messages: Sequence[Message], heartbeats: set[Kind]) -> int:
    """Return how often another client than before sends a message."""
    senders = [
        message.conversation
        for message in messages
        if message.direction == "c2s" and (message.direction, message.name) not in heartbeats
    ]
    return sum(a != b for a, b in pairwise(senders))


def _named(message: Message, actors: Mapping[str | int, int]) -> Iterator[tuple[tuple[str, ...] | None, int]]:
    for path, value in leaves(message.values):
        if len(path) == 1 and value in actors and not path[0].endswith("[]"):
            yield path, actors[value]
    if _TURN.search(message.name):
        yield None, message.conversation


def _next_senders(messages: Sequence[Message], heartbeats: set[Kind]) -> dict[int, int]:
    """Return the conversation of the next client's message by the number of a server's message."""
    found: dict[int, int] = {}
    pending: list[Message] = []
    for message in messages:
        if (message.direction, message.name) in heartbeats:
            continue
        if message.direction == "s2c":
            pending.append(message)
            continue
        for earlier in pending:
            found[earlier.order] = message.conversation
        pending.clear()
    return found
