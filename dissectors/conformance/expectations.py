"""The reactions that a specification expects to unusual messages, as rows with their clauses.

A protocol has such rows in its file. They name the right reactions to cases, and how each rule of its table
can be broken. A plug-in without rows is tested, too: then a program can only fail what its
grammar and its transport require.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec

from kiebitz.dissectors.game.state import State
from kiebitz.dissectors.grammar.field_type import Fields, IdentifierKind
from kiebitz.dissectors.model import Direction

if TYPE_CHECKING:
    from kiebitz.dissectors.conformance.bots import BotFactory, SimulatedServerFactory

TargetRole = Literal["server", "client"]
"""The role of the program under test."""

ROLES: tuple[TargetRole, ...] = ("server", "client")

INPUT_DIRECTION: Mapping[TargetRole, Direction] = MappingProxyType({"server": "c2s", "client": "s2c"})
"""The direction of the messages that a program receives."""

RequirementLevel = Literal["must", "should", "open"]
"""Required, recommended or left open by the specification; only violations of requirements fail."""

Reaction = Literal["answers", "refuses", "ignores", "closes"]
"""Continue as if the message were valid; send a refusing message; send nothing and continue; end the
connection."""

ANY_REACTION: tuple[Reaction, ...] = ("answers", "refuses", "ignores", "closes")


class NotApplicable(Exception):
    """A case cannot be tried at this point of a conversation; the text gives the reason as a clause."""


class UnsuitableMoment(NotApplicable):
    """A case cannot be tried because of the messages that are due now; in another game it may be."""


class Situation(msgspec.Struct, frozen=True):
    """An injection point with its surroundings: the well-formed `frame` that is due now, and its context.

    `following` is the next message on the same connection, or None; it `waits` if the target sends something
    before it. `state` is the table's current state, and `player` our player's name in it. `others` has the
    identifiers in other players' conversations, by kind: their tokens, seats, names. `wrap` returns the bytes
    that carry a frame. A `heartbeat` may take the place of a next message that does not wait.
    """

    frame: bytes
    following: bytes | None = None
    waits: bool = False
    state: State = {}
    player: str | None = None
    others: Mapping[IdentifierKind, Sequence[Any]] = {}
    wrap: Callable[[bytes], bytes] = bytes
    heartbeat: bytes | None = None

    @property
    def game(self) -> Mapping[str, Any]:
        """The latest game's part of the state."""
        games = self.state["games"]
        found: Mapping[str, Any] = games[max(games, key=int)]
        return found

    @property
    def wire(self) -> bytes:
        """The bytes that carry the frame."""
        return self.wrap(self.frame)


class Refusal(NamedTuple):
    """A message that refuses; if a `field` is named, only with this value in it."""

    message: str
    field: str | None = None
    value: Any = None

    def matches(self, message: str, fields: Fields) -> bool:
        """Return True if a message is this refusal."""
        if message != self.message:
            return False
        return self.field is None or (self.field in fields and fields[self.field] == self.value)


class Expectation(msgspec.Struct, frozen=True):
    """The right reactions to the cases that `cases` names: one or more patterns, separated by blanks.

    A pattern matches the name of a case without its protocol, such as `JOIN/token/*`; `*` also matches
    slashes. The first matching row counts. `quote` has the clause's own words, None if it has none for this.
    `spares_others` is false where another player's game may rightly end. If `answer` names messages, only
    they count as answers; `others_receive` is the message that the other clients must receive.
    """

    cases: str
    role: TargetRole
    level: RequirementLevel
    right: tuple[Reaction, ...]
    clause: str | None
    quote: str | None = None
    refusals: tuple[Refusal, ...] = ()
    spares_others: bool = True
    answer: tuple[str, ...] = ()
    others_receive: str | None = None

    def applies_to(self, role: TargetRole, name: str) -> bool:
        """Return True if the row applies to a case."""
        return role == self.role and any(fnmatchcase(name, pattern) for pattern in self.cases.split())


class Spelling(msgspec.Struct, frozen=True):
    """A spelling that a dialect uses: a word for it, a sentence, and a function that respells a frame.

    The function takes a frame as the specification writes it, and returns it unchanged if nothing in it can
    be respelt. `level` says whether a peer must accept the spelling. `messages` has patterns for the messages
    that can contain it. `quote` has the clause's own words.
    """

    word: str
    sentence: str
    frame: Callable[[bytes], bytes]
    level: RequirementLevel = "open"
    clause: str | None = None
    quote: str | None = None
    messages: str = "*"


FieldChange = Callable[[Fields, Situation], Fields]
"""Function from the fields of a message to others that break a rule."""


class RuleViolation(msgspec.Struct, frozen=True):
    """A way to break a rule of the table: a message with other fields.

    `message` is named as in a case's name; `sends` is another message to send in its place. `fields` raises
    NotApplicable where the rule cannot be broken; if the state lacks what it looks up, LookupError,
    TypeError, AttributeError, ValueError or StopIteration.
    """

    rule: str
    message: str
    role: TargetRole
    fields: FieldChange
    sends: str | None = None


class Expectations(msgspec.Struct, frozen=True):
    """The expectations of a protocol.

    Each rule of its table is in one of three places: a breach breaks it, or the cases of a pattern do
    (`broken_by`), or it is `unreachable`, with the reason.
    """

    expectations: tuple[Expectation, ...] = ()
    spellings: tuple[Spelling, ...] = ()
    violations: tuple[RuleViolation, ...] = ()
    broken_by: Mapping[str, str] = {}
    unreachable: Mapping[str, str] = {}
    spares_others: bool = True
    """True if the others' game continues when a player leaves it or is removed from it."""
    awaited_messages: str = ""
    """The messages that all other clients wait for, named as in cases: if their sender has disconnected, the
    others still get a message."""
    silence_s: float | None = None
    """Maximum silence of a peer in seconds before the other ends the connection, if the specification sets
    one."""


NO_EXPECTATIONS = Expectations()


class Conformance(msgspec.Struct, frozen=True, kw_only=True):
    """Expected reactions, bots and timeouts of a protocol.

    Attributes:
        expectations: Expected reactions to invalid messages, and ways to break the rules.
        bot: Factory for simulated clients; without it, only a recorded game leads to a case's state.
        simulated_server: Factory for simulated servers.
        seats: Number of bots at a table.
        timeouts: Time in seconds that the other side waits for a message, or for an answer to it. Only what
            the specification says, or what all servers do.
    """

    expectations: Expectations = NO_EXPECTATIONS
    bot: BotFactory | None = None
    simulated_server: SimulatedServerFactory | None = None
    seats: int = 2
    timeouts: Mapping[str, float] = MappingProxyType({})
