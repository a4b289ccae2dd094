"""The login server, and the players of a game server: logins, groups, joining and leaving."""

from __future__ import annotations

from kiebitz.dissectors.game.context import label
from kiebitz.dissectors.game.observation_merge import Observation
from kiebitz.dissectors.model import Event, Message
from kiebitz.dissectors.protocols.cgml.cards import SEATS
from kiebitz.dissectors.protocols.cgml.client_connection import ClientConnection
from kiebitz.dissectors.protocols.cgml.context import MAX_GROUPS, AnnouncedGroup, CgmlContext
from kiebitz.dissectors.protocols.cgml.hand import Group

_COPIES_NS = 100_000_000
"""Time in which all players are informed about their group."""


class Lobby:
    """Handlers for messages before the first hand and after the last one; each takes one observation."""

    def __init__(self, context: CgmlContext) -> None:
        self._context = context

    def connect_server(self, observation: Observation) -> None:
        """Handle the login of a server."""
        url = observation.fields["url"]
        self._context.set_state({"numplayers": observation.fields["numplayers"]}, "servers", label(url))
        data = {"name": None, "id": None, "role": "server", "url": label(url)}
        self._context.emit_observed(observation, "connected", None, data, None)

    def connect_player(self, observation: Observation) -> None:
        """Handle the login of a player."""
        player = observation.fields["player"]
        number = self._context.put_player(player)
        assert number is not None
        connection = self._context.connection_of(observation)
        if number not in connection.logins and len(connection.logins) < MAX_GROUPS:
            connection.logins.append(number)
        if str(number) in self._context.state.get("players", {}):
            self._context.set_state(observation.fields["status"], "players", str(number), "status")
        data = {"name": label(player.get("name", "")), "id": number, "role": player.get("race")}
        self._context.emit_observed(observation, "connected", number, data, None)

    def announce(self, message: Message, connection: ClientConnection) -> None:
        """Store a complete group at once, as its players go to the game server next."""
        number: int = message.fields["id"]
        known = self._context.announced.get(number)
        if known is None or self._is_another(known, message):
            self._context.announced.pop(number, None)
            known = self._context.announced[number] = AnnouncedGroup(
                message.fields["url"], [], {}, message.ts_ns
            )
            if len(self._context.announced) > MAX_GROUPS:
                del self._context.announced[next(iter(self._context.announced))]
        known.visibility.add(message.stream.id)
        for player in message.fields["player"]:
            known.announced[str(player["id"])] = player
        others = [player["id"] for player in message.fields["player"]]
        # Each client is sent its opponents only; its own player is one of those that logged in on this
        # connection.
        own = [player for player in connection.logins if player not in others]
        for player in others + (own if len(own) == 1 else []):
            if player not in known.players and len(known.players) < SEATS:
                known.players.append(player)

    def _is_another(self, known: AnnouncedGroup, message: Message) -> bool:
        """Return True if a restarted server uses the group's number for another group.

        Then none of the clients informed about the earlier one is still connected.
        """
        is_late = message.ts_ns - known.told_ns >= _COPIES_NS
        return is_late and known.visibility.isdisjoint(self._context.connections)

    def complete(self, observation: Observation) -> None:
        """Handle a complete group."""
        number: int = observation.fields["id"]
        known = self._context.announced.get(number)
        if known is None or len(known.players) < SEATS:
            return
        if known.formed is not None:
            observation.event = known.formed
            return
        for player in known.announced.values():
            self._context.put_player(player)
        group = {"players": known.players.copy(), "url": label(known.url)}
        if len(self._context.state.get("groups", {})) < MAX_GROUPS:
            self._context.set_state(group, "groups", str(number))
        data = {"group": number, "players": known.players.copy()}
        known.formed = self._context.emit_observed(observation, "group_formed", None, data, None)

    def load(self, observation: Observation) -> None:
        """Handle the load that a server reports."""
        load: int = observation.fields["load"]
        client = observation.message.stream.client
        known = self._context.state.get("loads", {})
        if client in known or len(known) < MAX_GROUPS:
            self._context.set_state(load, "loads", client)
        self._context.emit_observed(observation, "load", None, {"load": load}, None)

    def joins(self, observation: Observation) -> None:
        """Process a player that joins a group, which a login server may have announced."""
        self._look_up(observation)
        group, player = self._member(observation)
        group.accepted.add(player)
        if group.players and len(group.accepted) < SEATS:
            group.joins(player)
        self._context.set_state(group.players.copy(), "groups", group.key, "players")
        self._context.set_state(sorted(group.accepted), "groups", group.key, "accepted")
        data = {"player": player, "group": group.number, "what": "group"}
        self._context.emit_observed(observation, "accepted", player, data, None)

    def _look_up(self, observation: Observation) -> None:
        number: int = observation.fields["id"]
        group = self._context.group(str(number), number)
        here = self._context.info.server
        announcing = False
        for peer in self._context.peers:
            assert isinstance(peer, CgmlContext)
            announced = peer.announced
            announcing = announcing or any(other.url == here for other in announced.values())
            known = announced.get(number)
            if known is not None and known.url == here:
                for player in known.players:
                    group.joins(player)
                for said in known.announced.values():
                    self._context.put_player(said)
                break
        else:
            if announcing:
                self._context.report_violation_of(observation, "unknown-group", part="=id", group=number)

    def declines(self, observation: Observation) -> None:
        """Handle a player's refusal of a group."""
        group, player = self._member(observation)
        data = {"player": player, "group": group.number, "what": "group"}
        self._context.emit_observed(observation, "rejected", player, data, None)

    def _member(self, observation: Observation) -> tuple[Group, int]:
        player = self._context.put_player(observation.fields["player"])
        assert player is not None
        group = self._context.group(str(observation.fields["id"]), observation.fields["id"])
        group.joins(player)
        return group, player

    def asked(self, observation: Observation) -> None:
        """Process the question for another hand; the players asked are the group, in the order of play."""
        connection = self._context.connection_of(observation)
        assert connection.group is not None
        group = self._context.group(connection.group, None)
        players = [self._context.put_player(player) for player in observation.fields["player"]]
        ids = [player for player in players if player is not None]
        if group.asked is not None and group.asked_players == ids:
            observation.event = group.asked
            return
        self._context.close_hand(group, None, observation.ts_ns)
        group.players = group.asked_players = ids
        self._context.set_state(ids.copy(), "groups", group.key, "players")
        data = {"group": group.number, "players": ids.copy()}
        group.asked = self._context.emit_observed(observation, "hand_asked", None, data, None)

    def plays_on(self, observation: Observation) -> None:
        """Handle a player's consent to another hand."""
        self._answers(observation, "accepted")

    def stops(self, observation: Observation) -> None:
        """Handle a player's refusal of another hand."""
        self._answers(observation, "rejected")

    def _answers(self, observation: Observation, kind: str) -> None:
        player = self._context.put_player(observation.fields["player"])
        key = self._context.connection_of(observation).group
        number = self._context.group(key, None).number if key is not None else None
        self._context.emit_observed(
            observation, kind, player, {"player": player, "group": number, "what": "hand"}, None
        )

    def disconnect(self, observation: Observation) -> None:
        """Handle a message that ends the connection."""
        connection = self._context.connection_of(observation)
        for event in self.gone(
            connection, label(observation.fields.get("disconnect", "")), observation.ts_ns
        ):
            observation.event = event

    def gone(self, connection: ClientConnection, why: str, ts_ns: int) -> list[Event]:
        """Emit the events of the players that leave with a connection, once."""
        if connection.left:
            return []
        connection.left = True
        context = self._context
        others = [
            other for other in context.connections.values() if other is not connection and not other.left
        ]
        group = context.by_key.get(connection.group or "")
        events = []
        players = connection.logins.copy()
        if connection.player is not None:
            players.append(connection.player)
        if group is not None and all(other.group != group.key for other in others):
            # The group has no other connection.
            context.close_hand(group, {"aborted": why}, ts_ns)
            context.leave(group)
        for player in players:
            is_gone = all(other.player != player and player not in other.logins for other in others)
            events.append(context.take_leave(player, why, ts_ns, is_gone))
        return events
