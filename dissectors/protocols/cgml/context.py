"""The context of a CGML server's table: groups and their hands, state, events and diagnostics."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import msgspec

from kiebitz.dissectors.game.broadcast_dedup import SWAPPED_NS
from kiebitz.dissectors.game.connections import Connections
from kiebitz.dissectors.game.context import GameContext, label
from kiebitz.dissectors.game.observation_merge import Observation
from kiebitz.dissectors.grammar.sentences import CALLED, UNKNOWN
from kiebitz.dissectors.model import Event, Findings, Game, Ids, Message, TableInfo
from kiebitz.dissectors.protocols.cgml.cards import known_names
from kiebitz.dissectors.protocols.cgml.grammar import GRAMMAR, location_of
from kiebitz.dissectors.protocols.cgml.hand import MAX_HAND_EVENTS, ClientConnection, Group, Hand

MAX_PLAYERS = 1000
MAX_GROUPS = 100
"""Maximum number of known groups; the oldest are dropped."""

_ONE = ("player", "winner", "id")
_SEVERAL = ("players", "winners", "losers")
"""The keys in an event's data with a list of players; `_ONE` has those with one player."""

_PLAYERS = ("player", "declarer", "winner")
"""The keys of players in the values of rules."""


def private(player: int, **hidden: Any) -> dict[str, Any]:
    """Return event data for a fact that only one player knows, with the values that others see."""
    return {"known_to": [str(player)], "others_see": hidden}


def cards_of(player: int, cards: Sequence[str | None]) -> dict[str, Any]:
    """Return event data for cards that only one player sees, unless they are hidden."""
    hidden = {} if None in cards else private(player, cards=[None] * len(cards))
    return {"player": player, "cards": [*cards], **hidden}


class AnnouncedGroup(msgspec.Struct, eq=False):
    """A group that the login server has announced, with the address of its game server."""

    url: str
    players: list[int]
    announced: dict[str, dict[str, Any]]
    """The announced data of each player, by id."""
    told_ns: int
    formed: Event | None = None
    """Its event, once all players are known."""
    visibility: set[int] = set()
    """The streams on which it was announced."""


class CgmlContext(GameContext):
    """The context of a CGML server's table: its groups and hands, for the handlers of its messages."""

    def __init__(self, info: TableInfo, ids: Ids, findings: Findings) -> None:
        super().__init__(info, ids, findings, GRAMMAR.rules)
        self.connections = Connections(ClientConnection)
        self.by_key: dict[str, Group] = {}
        """The groups by their key in the state."""
        self.announced: dict[int, AnnouncedGroup] = {}
        """The groups that this server has announced, by id."""
        self._names: dict[str, str] | None = None
        """Cached names of players by id; None if outdated."""
        self._gone: dict[str, str] = {}
        """Names of players that have left, by id."""

    def find_group(self, connection: ClientConnection, players: list[int]) -> None:
        """Assign a group to a connection recorded from its middle on, by the players in a message."""
        known = self.by_key.get(connection.group or "")
        if known is None or known.number is None:
            for player in players:
                known = self._with(player, known)
                connection.group = known.key

    def _with(self, player: int, known: Group | None) -> Group:
        """Return the group of a player; `known` if the player is in no other."""
        groups = (group for group in self.by_key.values() if player in group.players and group is not known)
        other = next(groups, None)
        if other is None or (known is not None and player in known.players):
            known = known or self.group(f"?{player}", None)
            known.joins(player)
            return known
        if known is None:
            return other
        # Two groups that were seen separately are the same.
        for connection in self.connections.values():
            if connection.group == known.key:
                connection.group = other.key
        self.leave(known)
        return other

    def connection_of(self, observation: Observation) -> ClientConnection:
        """Return the connection on which an observation was first made."""
        return self.connections[observation.message.stream.id]

    def group(self, key: str, number: int | None) -> Group:
        """Return a group by its key in the state; create it if needed."""
        found = self.by_key.get(key)
        if found is None:
            found = self.by_key[key] = Group(key, number)
            if len(self.by_key) > MAX_GROUPS:
                oldest = next(iter(self.by_key))
                self.leave(self.by_key[oldest])
        return found

    def leave(self, group: Group) -> None:
        """Drop a group; the outcome of its current hand is unknown."""
        self.by_key.pop(group.key, None)
        if group.hand is not None:
            group.hand.ended = True
            group.hand.remove()
        self.set_state(None, "groups", group.key)

    def hand_of(self, observation: Observation) -> Hand | None:
        """Return the hand of a message; begin one if its beginning was missed.

        Returns:
            None if the connection was recorded from its beginning and no hand has begun on it.
        """
        connection = self.connection_of(observation)
        if connection.group is None:
            return None
        group = self.group(connection.group, None)
        hand = group.hand
        # A group with only one known player may turn out to be another known group.
        is_met = not connection.certain and len(group.players) > 1
        if (hand is None or hand.ended) and is_met and not self._is_late(hand, observation):
            hand = self.open_hand(group, observation, certain=False)
        if hand is not None:
            observation.game_id = hand.game.id
        return hand

    def _is_late(self, hand: Hand | None, observation: Observation) -> bool:
        return hand is not None and observation.name in ("result", "cancelgame", "abort", "renonc", "round")

    def open_hand(self, group: Group, observation: Observation, certain: bool) -> Hand:
        """Begin the next hand of a group; `certain` if it is recorded from its beginning."""
        self.close_hand(group, None, observation.ts_ns)
        group.count += 1
        name = group.key if group.number is not None else "?"
        opened = self.open_part(f"group {name}, hand {group.count}", observation.ts_ns)
        hand = group.hand = Hand(
            *opened, number=group.count, seats=group.asked_players or group.players.copy(), certain=certain
        )
        group.asked = None
        hand.set_state(group.key, "group")
        hand.set_state(group.count, "hand")
        hand.set_state(hand.seats.copy(), "seats")
        if not certain:
            hand.set_state(["bidding", "contract", "hands", "talon", "trump", "tricks"], "unknown")
        return hand

    def close_hand(self, group: Group, result: dict[str, Any] | None, ts_ns: int) -> None:
        """End a hand; it leaves the state with the next event."""
        hand = group.hand
        if hand is None or hand.ended:
            return
        hand.end(ts_ns, result)
        hand.remove()

    def put_player(self, player: dict[str, Any]) -> int | None:
        """Store a <player> element, and return the player's id."""
        number: int | None = player.get("id")
        if number is None:
            return None
        known = self.state.get("players", {})
        if str(number) in known or len(known) < MAX_PLAYERS:
            if player.get("name"):
                self.set_state(label(player["name"]), "players", str(number), "name")
                self._names = None
            if player.get("race"):
                self.set_state(player["race"], "players", str(number), "race")
        return number

    def take_leave(self, number: int, why: str, ts_ns: int, is_gone: bool) -> Event:
        """Emit the event of a player that leaves; remove the player from the state if `is_gone`."""
        player = str(number)
        if is_gone:
            name = self._called(player)
            if name is not None:
                self._gone[player] = name
                if len(self._gone) > MAX_PLAYERS:
                    del self._gone[next(iter(self._gone))]
            self.set_state(None, "players", player)
            self._names = None
        return self.emit("left", ts_ns, player, {"player": number, "why": why}, None)

    def name_of(self, player: int | None) -> str:
        """Return a player's name, or a text with the id if the name is unknown."""
        return UNKNOWN if player is None else self._called(str(player)) or f"player {player}"

    def _called(self, player: str) -> str | None:
        if self._names is None:
            self._names = known_names(self.state)
        return self._names.get(player) or self._gone.get(player)

    def emit(
        self, kind: str, ts_ns: int, actor: str | None, data: dict[str, Any], game: Game | None = None
    ) -> Event:
        """Emit an event with the names of the players in its data."""
        players = [data[key] for key in _ONE if data.get(key) is not None]
        for key in _SEVERAL:
            players += data.get(key, ())
        if players:
            called = {str(player): self._called(str(player)) for player in players}
            data = {**data, CALLED: {player: name for player, name in called.items() if name is not None}}
        return super().emit(kind, ts_ns, actor, data, game)

    def emit_observed(
        self, observation: Observation, kind: str, actor: int | None, data: dict[str, Any], hand: Hand | None
    ) -> Event:
        """Emit an event of an observation."""
        game = hand.game if hand is not None else None
        event = self.emit(kind, observation.ts_ns, None if actor is None else str(actor), data, game)
        observation.event = event
        observation.game_id = event.game_id
        return event

    def known_before(self, hand: Hand, key: Hashable, observation: Observation) -> bool:
        """Return True if a hand has the event of an observation already, and assign it to the observation."""
        event = hand.events.get(key)
        if event is None:
            # Ignore the rest of a hand with an excessive number of events.
            return hand.ended or len(hand.events) >= MAX_HAND_EVENTS
        observation.event = event
        observation.game_id = event.game_id
        return True

    def known_later(self, hand: Hand, key: Hashable, observation: Observation) -> bool:
        """Return True if the server's announcement of a client's message was recorded before it.

        The observation is then assigned to that event. In a capture, packets of several connections may be
        reordered.
        """
        event = hand.events.get(key)
        if event is None or key not in hand.known_later or observation.ts_ns - event.ts_ns >= SWAPPED_NS:
            return False
        hand.known_later.discard(key)
        return self.known_before(hand, key, observation)

    def report_violation_of(
        self,
        observation: Observation,
        key: str,
        /,
        *,
        part: str = "tag",
        path: tuple[int, ...] = (),
        **values: Any,
    ) -> None:
        """Report that a part of a message, named as in `values.Unfit`, violates a rule.

        Of the `values`, those in `_PLAYERS` are ids, which are reported as names.
        """
        at = location_of(observation.frame, part, path) if observation.frame else None
        names = {name: self.name_of(values[name]) for name in _PLAYERS if name in values}
        self.report_violation(
            observation.message, key, at=at, clause=observation.row.clause, **(values | names)
        )

    def has_violation(self, message: Message) -> bool:
        """Return True if a diagnostic was reported for this message; one is enough."""
        reported = self._findings.diagnostics
        return bool(reported) and reported[-1].message_id == message.id
