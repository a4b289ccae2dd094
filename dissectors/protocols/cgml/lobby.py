"""The login server, and the players of a game server: logins, groups, joining and leaving."""

from __future__ import annotations

from kiebitz.dissectors.game.observation_merge import Observation
from kiebitz.dissectors.model import Event, Message
from kiebitz.dissectors.protocols.cgml.cards import SEATS
from kiebitz.dissectors.protocols.cgml.client_connection import ClientConnection
from kiebitz.dissectors.protocols.cgml.context import MAX_GROUPS, AnnouncedGroup, CgmlContext, short
from kiebitz.dissectors.protocols.cgml.hand import Group

_COPIES_NS = 100_000_000
"""Time in which all players are informed about their group."""


class Lobby:
    """Handlers for messages before the first hand and after the last one; each takes one observation."""

    def __init__(self, groups: CgmlContext) -> None:
        self._groups = groups

    def connect_server(self, observation: Observation) -> None:
        """Handle the login of a server."""
        url = observation.fields["url"]
        self._groups.set_state({"numplayers": observation.fields["numplayers"]}, "servers", short(url))
        data = {"name": None, "id": None, "role": "server", "url": short(url)}
        self._groups.emit_observed(observation, "connected", None, data, None)

    def connect_player(self, observation: Observation) -> None:
        """Handle the login of a player."""
        player = observation.fields["player"]
        number = self._groups.put_player(player)
        assert number is not None
        conversation = self._groups.conversation_of(observation)
        if number not in conversation.logins and len(conversation.logins) < MAX_GROUPS:
            conversation.logins.append(number)
        if str(number) in self._groups.state.get("players", {}):
            self._groups.set_state(observation.fields["status"], "players", str(number), "status")
        data = {"name": short(player.get("name", "")), "id": number, "role": player.get("race")}
        self._groups.emit_observed(observation, "connected", number, data, None)

    def announce(self, message: Message, conversation: ClientConnection) -> None:
        """Store a complete group at once, as its players go to the game server next."""
        number: int = message.fields["id"]
        known = self._groups.announced.get(number)
        if known is None or self._is_another(known, message):
            self._groups.announced.pop(number, None)
            known = self._groups.announced[number] = AnnouncedGroup(
                message.fields["url"], [], {}, message.ts_ns
            )
            if len(self._groups.announced) > MAX_GROUPS:
                del self._groups.announced[next(iter(self._groups.announced))]
        known.visibility.add(message.stream.id)
        for player in message.fields["player"]:
            known.announced[str(player["id"])] = player
        others = [player["id"] for player in message.fields["player"]]
        # Each client is sent its opponents only; its own player is one of those that logged in on this
        # connection.
        own = [player for player in conversation.logins if player not in others]
        for player in others + (own if len(own) == 1 else []):
            if player not in known.players and len(known.players) < SEATS:
                known.players.append(player)

    def _is_another(self, known: AnnouncedGroup, message: Message) -> bool:
        """Return True if a restarted server uses the group's number for another group.

        Then none of the clients informed about the earlier one is still connected.
        """
        is_late = message.ts_ns - known.told_ns >= _COPIES_NS
        return is_late and known.visibility.isdisjoint(self._groups.conversations)

    def complete(self, observation: Observation) -> None:
        """Handle a complete group."""
        number: int = observation.fields["id"]
        known = self._groups.announced.get(number)
        if known is None or len(known.players) < SEATS:
            return
        if known.formed is not None:
            observation.event = known.formed
            return
        for player in known.announced.values():
            self._groups.put_player(player)
        group = {"players": known.players.copy(), "url": short(known.url)}
        if len(self._groups.state.get("groups", {})) < MAX_GROUPS:
            self._groups.set_state(group, "groups", str(number))
        data = {"group": number, "players": known.players.copy()}
        known.formed = self._groups.emit_observed(observation, "group_formed", None, data, None)

    def load(self, observation: Observation) -> None:
        """Handle the load that a server reports."""
        load: int = observation.fields["load"]
        client = observation.message.stream.client
        known = self._groups.state.get("loads", {})
        if client in known or len(known) < MAX_GROUPS:
            self._groups.set_state(load, "loads", client)
        self._groups.emit_observed(observation, "load", None, {"load": load}, None)

    def joins(self, observation: Observation) -> None:
        """Process a player that joins a group, which a login server may have announced."""
        self._look_up(observation)
        group, player = self._member(observation)
        group.accepted.add(player)
        if group.players and len(group.accepted) < SEATS:
            group.joins(player)
        self._groups.set_state(group.players.copy(), "groups", group.key, "players")
        self._groups.set_state(sorted(group.accepted), "groups", group.key, "accepted")
        data = {"player": player, "group": group.number, "what": "group"}
        self._groups.emit_observed(observation, "accepted", player, data, None)

    def _look_up(self, observation: Observation) -> None:
        number: int = observation.fields["id"]
        group = self._groups.group(str(number), number)
        here = self._groups.info.server
        announcing = False
        for peer in self._groups.peers:
            assert isinstance(peer, CgmlContext)
            announced = peer.announced
            announcing = announcing or any(other.url == here for other in announced.values())
            known = announced.get(number)
            if known is not None and known.url == here:
                for player in known.players:
                    group.joins(player)
                for said in known.announced.values():
                    self._groups.put_player(said)
                break
        else:
            if announcing:
                self._groups.report_violation_of(observation, "unknown-group", part="=id", group=number)

    def declines(self, observation: Observation) -> None:
        """Handle a player's refusal of a group."""
        group, player = self._member(observation)
        data = {"player": player, "group": group.number, "what": "group"}
        self._groups.emit_observed(observation, "rejected", player, data, None)

    def _member(self, observation: Observation) -> tuple[Group, int]:
        player = self._groups.put_player(observation.fields["player"])
        assert player is not None
        group = self._groups.group(str(observation.fields["id"]), observation.fields["id"])
        group.joins(player)
        return group, player

    def asked(self, observation: Observation) -> None:
        """Process the question for another hand; the players asked are the group, in the order of play."""
        conversation = self._groups.conversation_of(observation)
        assert conversation.group is not None
        group = self._groups.group(conversation.group, None)
        players = [self._groups.put_player(player) for player in observation.fields["player"]]
        ids = [player for player in players if player is not None]
        if group.asked is not None and group.asked_players == ids:
            observation.event = group.asked
            return
        self._groups.close_hand(group, None, observation.ts_ns)
        group.players = group.asked_players = ids
        self._groups.set_state(ids.copy(), "groups", group.key, "players")
        data = {"group": group.number, "players": ids.copy()}
        group.asked = self._groups.emit_observed(observation, "hand_asked", None, data, None)

    def plays_on(self, observation: Observation) -> None:
        """Handle a player's consent to another hand."""
        self._answers(observation, "accepted")

    def stops(self, observation: Observation) -> None:
        """Handle a player's refusal of another hand."""
        self._answers(observation, "rejected")

    def _answers(self, observation: Observation, kind: str) -> None:
        player = self._groups.put_player(observation.fields["player"])
        key = self._groups.conversation_of(observation).group
        number = self._groups.group(key, None).number if key is not None else None
        self._groups.emit_observed(
            observation, kind, player, {"player": player, "group": number, "what": "hand"}, None
        )

    def disconnect(self, observation: Observation) -> None:
        """Handle a message that ends the connection."""
        conversation = self._groups.conversation_of(observation)
        for event in self.gone(
            conversation, short(observation.fields.get("disconnect", "")), observation.ts_ns
        ):
            observation.event = event

    def gone(self, conversation: ClientConnection, why: str, ts_ns: int) -> list[Event]:
        """Emit the events of the players that leave with a connection, once."""
        if conversation.left:
            return []
        conversation.left = True
        groups = self._groups
        others = [
            other for other in groups.conversations.values() if other is not conversation and not other.left
        ]
        group = groups.by_key.get(conversation.group or "")
        events = []
        players = conversation.logins.copy()
        if conversation.player is not None:
            players.append(conversation.player)
        if group is not None and all(other.group != group.key for other in others):
            # The group has no other connection.
            groups.close_hand(group, {"aborted": why}, ts_ns)
            groups.leave(group)
        for player in players:
            is_gone = all(other.player != player and player not in other.logins for other in others)
            events.append(groups.take_leave(player, why, ts_ns, is_gone))
        return events
