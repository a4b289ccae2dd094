"""Parts of a sequence diagram, independent of its output format."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from kiebitz.dissectors.escaping import printable, value_words
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
    fields: Mapping[str, Any]
    event: int | None = None
    summary: str | None = None
    problems: tuple[Problem, ...] = ()
    altered: Action | None = None
    alteration: str | None = None
    is_kept_back: bool = False
    is_to_all: bool = False
    differing: set[str] = msgspec.field(default_factory=set)
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
