"""What a specification wants of a peer that is sent something odd, as rows next to its clauses.

Each protocol has such rows in its `conformance.py`. They say which reactions are right in which cases,
and how each rule of its table can be broken. A plug-in without rows is tried, too: then it
can only fail what its grammar and its transport demand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import msgspec

from kiebitz.dissectors.game.state import State
from kiebitz.dissectors.grammar.field_type import IdentifierKind
from kiebitz.dissectors.model import Direction

Role = Literal["server", "client"]
"""Which program is probed."""

ROLES: tuple[Role, ...] = ("server", "client")

HEARS: Mapping[Role, Direction] = MappingProxyType({"server": "c2s", "client": "s2c"})
"""The direction of what a program is sent."""

Level = Literal["must", "should", "open"]
"""A specification demands it, recommends it, or leaves it open; only what it demands can be failed."""

Reaction = Literal["answers", "refuses", "ignores", "closes"]
"""It goes on as if the message were valid; says one of the messages that refuse; says nothing and goes on;
ends the connection."""

ANY_REACTION: tuple[Reaction, ...] = ("answers", "refuses", "ignores", "closes")

Fields = Mapping[str, Any]


class NotHere(Exception):
    """A case cannot be tried at this place of a conversation; the text says why, in a clause."""


class Situation(msgspec.Struct, frozen=True):
    """A place in a conversation: the well-formed `frame` that is to be sent now, and what is around it.

    `following` is what is to be sent next on the same connection, None if nothing is; it `waits` if the peer
    says something before it. `state` is the table's
    at this moment, and `player` what our player is called in it. `others` has, by kind, the identifiers in
    other players' conversations: their tokens, seats, names.
    """

    frame: bytes
    following: bytes | None = None
    waits: bool = False
    state: State = msgspec.field(default_factory=dict)
    player: str | None = None
    others: Mapping[IdentifierKind, Sequence[Any]] = msgspec.field(default_factory=dict)


class Refusal(NamedTuple):
    """A message that refuses; if a `field` is named, only one with this value in it does."""

    message: str
    field: str | None = None
    value: Any = None

    def is_said_in(self, message: str, fields: Fields) -> bool:
        """Whether a message refuses."""
        if message != self.message:
            return False
        return self.field is None or (self.field in fields and fields[self.field] == self.value)


class Demand(msgspec.Struct, frozen=True):
    """What is right in the cases that `cases` names, a pattern or several with blanks between.

    A pattern is for the name of a case without its protocol, such as `JOIN/token/*`; `*` also stands for
    slashes. Of several rows for a case the first counts. `quote` has the clause's own words, None where it
    has none for this. `spares_others` is false where another player's game may rightly come to its end.
    To answer is to say one of `answer`, if that names messages; `others_hear` is the message that the others
    are to be told.
    """

    cases: str
    of: Role
    level: Level
    right: tuple[Reaction, ...]
    clause: str | None
    quote: str | None = None
    refusals: tuple[Refusal, ...] = ()
    spares_others: bool = True
    answer: tuple[str, ...] = ()
    others_hear: str | None = None

    def is_for(self, role: Role, name: str) -> bool:
        """Whether it speaks of a case."""
        return role == self.of and any(fnmatchcase(name, pattern) for pattern in self.cases.split())


class Spelling(msgspec.Struct, frozen=True):
    """A way in which a dialect writes messages: a word for it, a sentence, and the frame made of one as the
    specification writes it. `level` says whether a peer must read it so. A frame that has nothing to be
    spelt so is given back as it is; the `messages` that can have something are named by patterns. The `quote`
    is the clause's own words.
    """

    word: str
    sentence: str
    frame: Callable[[bytes], bytes]
    level: Level = "open"
    clause: str | None = None
    quote: str | None = None
    messages: str = "*"


class Breach(msgspec.Struct, frozen=True):
    """How a rule of the table is broken in the place of a message: by one with other fields.

    `message` is named as in a case's name, and `says` another one that is sent in its place. `fields` raises
    NotHere where it cannot be broken; where the state lacks what it looks for, LookupError, TypeError,
    AttributeError, ValueError or StopIteration.
    """

    rule: str
    message: str
    of: Role
    fields: Callable[[Fields, Situation], Fields]
    says: str | None = None


class Reactions(msgspec.Struct, frozen=True):
    """The rows of a protocol.

    Each rule of its table stands in one of three places: a `breach` breaks it; or the cases of a pattern do
    (`broken_by`); or it is `unreachable`, with the reason.
    """

    demands: tuple[Demand, ...] = ()
    spellings: tuple[Spelling, ...] = ()
    breaches: tuple[Breach, ...] = ()
    broken_by: Mapping[str, str] = msgspec.field(default_factory=dict)
    unreachable: Mapping[str, str] = msgspec.field(default_factory=dict)
    spares_others: bool = True
    """Whether the others' game goes on when a player leaves it or is put out of it."""
    waits_for: str = ""
    """The messages for which all others wait, named as in cases: if who is to say one is gone, the others are
    told something all the same."""
    silence_s: float | None = None
    """How long a peer may be silent before the other ends the connection, where the specification says it."""


NO_REACTIONS = Reactions()
