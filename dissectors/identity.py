"""Identity of players: the player on a connection, and the events that a player could observe."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal

import msgspec

from kiebitz.dissectors.grammar.field_type import UNWRITABLE, Fields
from kiebitz.dissectors.grammar.grammar import Grammar, ImpliedBy, shortened
from kiebitz.dissectors.model import Direction, Event

SamePlayer = Literal["connection", "address", "number"]
"""Condition for two clients of one name to be the same player: the same connection; the same IP address at
one server; or the same IP address at any server, as clients reconnect for each part of a game.
"""

OTHERS = "\0others"
"""In a path of `hidden_state`: any name but the viewer's own."""

_MAX_NAME_LENGTH = 60
"""Maximum length of a client's name in characters."""


class Identity:
    """The players of a protocol.

    Args:
        grammar: The protocol's grammar.
        login_messages: Names of the messages in which a client gives its player's name.
        logout_messages: Names of the messages after which the server may end a client's connection.
        same_player: Condition for two clients of one name to be the same player.
        sees_own_dissection: True if a player sees what a dissection of its own connections alone yields: the
            table computes with any values, so that events may contain what only others sent.
        differing_copies: Names of broadcasts whose copies differ, see `as_copied`.
        hidden_state: Paths of the state's parts that no view has, as they are computed from values of several
            players; None stands for any key, OTHERS for any name but the viewer's own.
    """

    def __init__(
        self,
        grammar: Grammar,
        *,
        login_messages: Iterable[str] = (),
        logout_messages: Iterable[str] = (),
        same_player: SamePlayer = "connection",
        sees_own_dissection: bool = False,
        differing_copies: Iterable[str] = (),
        hidden_state: Iterable[Sequence[str | None]] = (),
    ) -> None:
        self._grammar = grammar
        self.login_messages = frozenset(login_messages)
        self.logout_messages = frozenset(logout_messages)
        self.same_player: SamePlayer = same_player
        self.sees_own_dissection = sees_own_dissection
        self.differing_copies = frozenset(differing_copies)
        self.hidden_state = tuple(hidden_state)

    def introduced(self, name: str, direction: Direction, fields: Fields) -> str | None:
        """Return the player's name in a login message; None if it has none."""
        if direction != "c2s" or name not in self.login_messages:
            return None
        row = self._grammar.row_of(name, direction, fields)
        if row is None:
            return None
        with suppress(*UNWRITABLE):
            if called := next(filter(None, row.player_names(fields)), None):
                return shortened(called, _MAX_NAME_LENGTH)
        return None

    def implied_by(self, event: Event) -> ImpliedBy | None:
        """Return the position of the event that implies this one; see `EventKind.implied_by`."""
        return self._grammar.events[event.kind].implied_by

    def accompanies(self, event: Event) -> ImpliedBy | None:
        """Return the position of the event that shares an unreported one's message; None if it has none."""
        kind = self._grammar.events[event.kind]
        return None if kind.ending is not None else kind.accompanies

    def as_copied(self, event: Event, copies: Sequence[Mapping[str, Any]]) -> Event:
        """Return an event with values from the fields of a player's own copies, not from others'."""
        return event

    def as_public(self, event: Event, reports: Sequence[tuple[str, int, Mapping[str, Any]]]) -> Event:
        """Return a public event with the values that all players may know.

        Args:
            event: The event without the values that are known to some players only.
            reports: The server's messages that report it: name, stream and fields of each.
        """
        return event

    def seen_by(self, event: Event, *names: str) -> Event | None:
        """Return an event as the player with these names sees it; None if it is another player's secret.

        `known_to` in its data lists the players who see all of it; all others get the data in `others_see`.
        """
        kind = self._grammar.events[event.kind]
        if kind.secret and event.actor not in names:
            return None
        if "known_to" not in event.data or not {*names}.isdisjoint(event.data["known_to"]):
            return event
        data = {key: part for key, part in event.data.items() if key not in ("known_to", "others_see")}
        return msgspec.structs.replace(event, data=data | event.data.get("others_see", {}))
