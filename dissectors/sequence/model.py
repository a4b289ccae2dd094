"""Parts of a sequence diagram, independent of its output format, and the folding of broadcast copies."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any

import msgspec

from kiebitz.dissectors.escaping import printable, value_words
from kiebitz.dissectors.game.broadcast_dedup import LATEST_COPY_NS
from kiebitz.dissectors.grammar.field_type import Fields
from kiebitz.dissectors.grammar.grammar import to_json
from kiebitz.dissectors.model import Action, Direction, Severity

_MAX_VALUE = 24
"""Maximum length of a value in a label, in characters; longer ones, such as tokens, are not main fields."""

_LEFT_OUT = "…"


class Lifeline(msgspec.Struct, frozen=True):
    """A player or a server; `address` is `ip:port`, None if several connections share the lifeline."""

    name: str
    address: str | None
    is_server: bool


class Problem(msgspec.Struct, frozen=True):
    """An error or a warning about a message."""

    severity: Severity
    code: str
    text: str

    @property
    def words(self) -> str:
        """The problem on one line, as in listings."""
        return f"{self.severity}[{self.code}]: {self.text}"


class Note(msgspec.Struct):
    """An event in a game, or a problem of a connection as a whole.

    Lifelines are indices; the note covers those from `first` to `last`.
    """

    ts_ns: int
    seconds: float
    number: int | None
    text: str
    first: int
    last: int
    severity: Severity | None = None


class Arrow(msgspec.Struct):
    """A message between a server and one or, as a broadcast, several clients; lifelines are indices.

    `number` is that of the first copy, None if the message was dropped on its way. `summary` is a description
    that contains the main fields. `alteration` describes what Kiebitz did to it.
    """

    ts_ns: int
    seconds: float
    number: int | None
    direction: Direction
    server: int
    clients: list[int]
    name: str
    fields: Fields
    event: int | None = None
    summary: str | None = None
    problems: tuple[Problem, ...] = ()
    altered: Action | None = None
    alteration: str | None = None
    is_kept_back: bool = False
    is_to_all: bool = False
    differing: set[str] = set()
    """Names of fields whose values differ between the copies."""

    @property
    def sender(self) -> int:
        """The lifeline that the arrow leaves."""
        return self.clients[0] if self.direction == "c2s" else self.server

    @property
    def receivers(self) -> list[int]:
        """The lifelines that the arrow reaches, ascending."""
        return [self.server] if self.direction == "c2s" else sorted(self.clients)

    @property
    def content(self) -> str:
        """The main fields in words."""
        if self.summary is not None and not self.differing:
            return printable(self.summary)
        return " ".join(self._field(name, value) for name, value in self.fields.items())

    @property
    def label(self) -> str:
        """Name and main fields on one line."""
        return f"{printable(self.name)} {self.content}".rstrip()

    def _field(self, name: str, value: Any) -> str:
        words = _LEFT_OUT
        if name not in self.differing:
            words = value_words(value)
            if len(words) > _MAX_VALUE:
                words = _LEFT_OUT
        return f"{printable(name)}={words}"


Step = Arrow | Note


_MAX_WAITING = 500
"""Maximum number of steps that wait for copies."""


Connected = Callable[[int, int], int]
"""Function that returns the number of clients connected to a server's lifeline at a time (ns)."""


def fold(steps: Iterable[Step], connected: Connected) -> Iterator[Step]:
    """Yield the steps, given in order, with all copies of a broadcast as one arrow.

    An arrow to all connected clients, of several, is marked.
    """
    waiting: deque[Step] = deque()
    broadcasts: dict[Hashable, Arrow] = {}
    for step in steps:
        while waiting and (step.ts_ns - waiting[0].ts_ns > LATEST_COPY_NS or len(waiting) > _MAX_WAITING):
            yield _finished(waiting.popleft(), broadcasts, connected)
        key = _key(step)
        known = broadcasts.get(key)
        if isinstance(step, Arrow) and key is not None:
            if known is not None and step.clients[0] not in known.clients:
                _add_copy(known, step)
                continue
            # The same message once more on one connection is another one.
            broadcasts[key] = step
        waiting.append(step)
    while waiting:
        yield _finished(waiting.popleft(), broadcasts, connected)


def _key(step: Step) -> Hashable:
    """Return what the copies of a broadcast have in common; None if a step cannot be one."""
    if not isinstance(step, Arrow) or step.direction == "c2s" or step.problems or step.altered is not None:
        return None
    return step.server, step.name, step.event if step.event is not None else to_json(step.fields)


def _add_copy(arrow: Arrow, copy: Arrow) -> None:
    arrow.clients.append(copy.clients[0])
    names = [*arrow.fields, *(name for name in copy.fields if name not in arrow.fields)]
    arrow.differing.update(
        name
        for name in names
        if name not in arrow.fields or name not in copy.fields or arrow.fields[name] != copy.fields[name]
    )


def _finished(step: Step, broadcasts: dict[Hashable, Arrow], connected: Connected) -> Step:
    if isinstance(step, Arrow):
        key = _key(step)
        if broadcasts.get(key) is step:
            del broadcasts[key]
        step.is_to_all = 1 < len(step.clients) >= connected(step.server, step.ts_ns)
    return step
