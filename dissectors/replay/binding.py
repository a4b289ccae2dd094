"""Which of a record's names stands for which live one: tokens, players' numbers, lobbies and the like.

Who plays one side of a recorded session to a live peer meets other tokens than the record has. Each pair is
bound when it first comes up, one to one, and holds from then on: recorded messages are told with the live
names, and a live message fits a recorded one if it says the same under the bindings.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.grammar.field_type import IdentifierKind
from kiebitz.dissectors.grammar.grammar import MessageType

Fields = Mapping[str, Any]

_Scope = tuple[IdentifierKind, int | None]
"""A kind of name, and the stream that it belongs to if it is good for one stream only."""

_Found = dict[tuple[IdentifierKind, Any], Any]
"""The live names that recorded ones of these kinds can be bound to."""


class _Pairs(msgspec.Struct, eq=False):
    """Recorded to live names and back."""

    live: dict[Any, Any] = msgspec.field(default_factory=dict)
    recorded: dict[Any, Any] = msgspec.field(default_factory=dict)

    def bind(self, recorded: Any, live: Any) -> None:
        """This pair from now on, and none of those that contradict it."""
        self.recorded.pop(self.live.get(recorded), None)
        self.live.pop(self.recorded.get(live), None)
        self.live[recorded] = live
        self.recorded[live] = recorded

    def free_for(self, recorded: Any) -> Any:
        """The live name for a recorded one that is not bound: itself, unless the live peer has it already.

        Then that of the recorded name which it is bound to is not needed, or the next one's.
        """
        name = recorded
        while name in self.recorded:
            name = self.recorded[name]
        return name

    def may_bind(self, recorded: Any, live: Any) -> bool:
        """Whether the pair contradicts none that is bound."""
        return recorded not in self.live and live not in self.recorded


class Bindings:
    """The names bound so far. `role` is the number of the recorded stream that a message belongs to."""

    def __init__(self) -> None:
        self._pairs: dict[_Scope, _Pairs] = {}
        self._servers: dict[str, str] = {}

    def move(self, recorded: str, live: str) -> None:
        """A server of the record is at another address today."""
        self._servers[recorded] = live

    def told(self, dissector: Dissector, row: MessageType, fields: Fields, role: int) -> dict[str, Any]:
        """A recorded message's fields with the live names; a name that is told unbound is bound to itself."""

        def rename(identifier: IdentifierKind, name: Any) -> Any:
            pairs = self._of(identifier, role)
            if name not in pairs.live:
                is_moved = identifier.of_server and name in self._servers
                pairs.bind(name, self._servers[name] if is_moved else pairs.free_for(name))
            return pairs.live[name]

        return row.renamed(fields, rename)

    def expected(
        self, dissector: Dissector, row: MessageType, recorded: Fields, live: Fields, role: int
    ) -> dict[str, Any]:
        """A recorded message's fields with the names that are bound, or can be by this live message."""
        found = self._unbound(dissector, row, recorded, live, role)
        return self._under(found, dissector, row, recorded, role)

    def fits(self, dissector: Dissector, row: MessageType, recorded: Fields, live: Fields, role: int) -> bool:
        """Whether a live message says what a recorded one of its row says; if so, its names are bound."""
        found = self._matching(dissector, row, recorded, live, role)
        if found is None:
            return False
        self._bind(found, role)
        return True

    def is_same(
        self, dissector: Dissector, row: MessageType, recorded: Fields, live: Fields, role: int
    ) -> bool:
        """Whether a live message says what a recorded one says, without any name that is not yet bound to
        its like."""
        found = self._matching(dissector, row, recorded, live, role)
        return found is not None and all(one == other for (_, one), other in found.items())

    def take(self, dissector: Dissector, row: MessageType, recorded: Fields, live: Fields, role: int) -> None:
        """Bind the names of a live message that stands for a recorded one, though it says something else."""
        self._bind(self._unbound(dissector, row, recorded, live, role), role)

    def _matching(
        self, dissector: Dissector, row: MessageType, recorded: Fields, live: Fields, role: int
    ) -> _Found | None:
        """The names that make two messages the same, None if nothing does."""
        if recorded.keys() != live.keys():
            return None
        found = self._unbound(dissector, row, recorded, live, role)
        return found if self._under(found, dissector, row, recorded, role) == live else None

    def _under(
        self, found: _Found, dissector: Dissector, row: MessageType, recorded: Fields, role: int
    ) -> dict[str, Any]:
        """A recorded message's fields with these names, and else with those that are bound."""

        def rename(identifier: IdentifierKind, name: Any) -> Any:
            bound = self._of(identifier, role).live.get(name, name)
            return found.get((identifier, name), bound)

        return row.renamed(recorded, rename)

    def _unbound(
        self, dissector: Dissector, row: MessageType, recorded: Fields, live: Fields, role: int
    ) -> _Found:
        """The names in the same places that can be bound, one to one.

        What the server makes up in this very message is bound anew, whatever it was bound to. What is good
        for one stream only was told by the server: a client does not bring it up.
        """
        fresh = {field.name for field in row.fields if field.generated}
        found: _Found = {}
        taken: set[tuple[IdentifierKind, Any]] = set()
        for field in (name for name in recorded if name in live):
            ones = row.identifiers({field: recorded[field]})
            others = row.identifiers({field: live[field]})
            if len(ones) != len(others):
                continue
            for one, other in zip(ones, others, strict=True):
                (identifier, name), (other_handle, other_name) = one, other
                if identifier != other_handle or (identifier.per_stream and row.direction == "c2s"):
                    continue
                free = field in fresh or self._of(identifier, role).may_bind(name, other_name)
                if free and one not in found and other not in taken:
                    found[one] = other_name
                    taken.add(other)
        return found

    def _bind(self, found: _Found, role: int) -> None:
        for (identifier, name), live in found.items():
            self._of(identifier, role).bind(name, live)

    def _of(self, identifier: IdentifierKind, role: int | None) -> _Pairs:
        scope = (identifier, role if identifier.per_stream else None)
        pairs = self._pairs.get(scope)
        if pairs is None:
            pairs = self._pairs[scope] = _Pairs()
        return pairs
