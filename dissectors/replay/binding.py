"""The bindings of recorded identifiers to live ones: tokens, players' numbers, lobbies and the like.

A live peer uses other tokens than the record. Each pair of identifiers is bound one to one when it first
occurs, and stays so: recorded messages are sent with the live identifiers, and a live message matches a
recorded one if both are equal under the bindings.
"""

from __future__ import annotations

from typing import Any

import msgspec

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.grammar.field_type import Fields, IdentifierKind
from kiebitz.dissectors.grammar.grammar import MessageType

_Scope = tuple[IdentifierKind, int | None]
"""A kind of identifier, and the stream that it belongs to if it is valid in one stream only."""

_Found = dict[tuple[IdentifierKind, Any], Any]
"""The live identifiers that recorded ones can be bound to."""


class _Pairs(msgspec.Struct, eq=False):
    """A one-to-one mapping of recorded to live identifiers."""

    live: dict[Any, Any] = {}
    recorded: dict[Any, Any] = {}

    def bind(self, recorded: Any, live: Any) -> None:
        """Bind a pair, and remove those that contradict it."""
        self.recorded.pop(self.live.get(recorded), None)
        self.live.pop(self.recorded.get(live), None)
        self.live[recorded] = live
        self.recorded[live] = recorded

    def free_for(self, recorded: Any) -> Any:
        """Return the live identifier for an unbound recorded one.

        It is the same one, unless the live peer uses it already. Then the recorded identifier bound to that
        one is free, or the next one in this chain.
        """
        name = recorded
        while name in self.recorded:
            name = self.recorded[name]
        return name

    def may_bind(self, recorded: Any, live: Any) -> bool:
        """Return True if the pair contradicts no bound one."""
        return recorded not in self.live and live not in self.recorded


class Bindings:
    """All bindings so far; `role` is the number of the recorded stream that a message belongs to."""

    def __init__(self) -> None:
        self._pairs: dict[_Scope, _Pairs] = {}
        self._servers: dict[str, str] = {}

    def move(self, recorded: str, live: str) -> None:
        """Set the live address of a recorded server."""
        self._servers[recorded] = live

    def to_live(self, dissector: Dissector, row: MessageType, fields: Fields, role: int) -> dict[str, Any]:
        """Return a recorded message's fields with the live identifiers; an unbound one is bound to itself."""

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
        """Return a recorded message's fields with the identifiers bound now or by this live message."""
        found = self._unbound(dissector, row, recorded, live, role)
        return self._under(found, dissector, row, recorded, role)

    def fits(self, dissector: Dissector, row: MessageType, recorded: Fields, live: Fields, role: int) -> bool:
        """Return True if a live message equals a recorded one of its row, and bind its identifiers then."""
        found = self._matching(dissector, row, recorded, live, role)
        if found is None:
            return False
        self._bind(found, role)
        return True

    def is_same(
        self, dissector: Dissector, row: MessageType, recorded: Fields, live: Fields, role: int
    ) -> bool:
        """Return True if a live message equals a recorded one with bound or equal identifiers."""
        found = self._matching(dissector, row, recorded, live, role)
        return found is not None and all(one == other for (_, one), other in found.items())

    def take(self, dissector: Dissector, row: MessageType, recorded: Fields, live: Fields, role: int) -> None:
        """Bind the identifiers of a live message that replaces a recorded one with other content."""
        self._bind(self._unbound(dissector, row, recorded, live, role), role)

    def _matching(
        self, dissector: Dissector, row: MessageType, recorded: Fields, live: Fields, role: int
    ) -> _Found | None:
        """Return the bindings that make two messages equal, None if there are none."""
        if recorded.keys() != live.keys():
            return None
        found = self._unbound(dissector, row, recorded, live, role)
        return found if self._under(found, dissector, row, recorded, role) == live else None

    def _under(
        self, found: _Found, dissector: Dissector, row: MessageType, recorded: Fields, role: int
    ) -> dict[str, Any]:
        """Return a recorded message's fields with these identifiers, and else with the bound ones."""

        def rename(identifier: IdentifierKind, name: Any) -> Any:
            bound = self._of(identifier, role).live.get(name, name)
            return found.get((identifier, name), bound)

        return row.renamed(recorded, rename)

    def _unbound(
        self, dissector: Dissector, row: MessageType, recorded: Fields, live: Fields, role: int
    ) -> _Found:
        """Return the identifiers in the same positions that can be bound, one to one.

        An identifier that the server generates in this very message is bound again, whatever it was bound to.
        One that is valid in one stream only comes from the server: a client's message never binds it.
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
