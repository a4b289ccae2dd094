"""The login server, and the players of a game server: logins, groups, joining and leaving."""

from __future__ import annotations

from kiebitz.dissectors.game.context import label
from kiebitz.dissectors.game.observation_merge import Observation
from kiebitz.dissectors.model import Event, Message
from kiebitz.dissectors.protocols.cgml.cards import SEATS
from kiebitz.dissectors.protocols.cgml.context import MAX_GROUPS, AnnouncedGroup, CgmlContext
from kiebitz.dissectors.protocols.cgml.hand import ClientConnection, Group

_COPIES_NS = 100_000_000
"""Time in which all players are informed about their group."""


def connect_server(context: CgmlContext, observation: Observation) -> None:
    """Handle the login of a server."""
    url = observation.fields["url"]
    context.set_state({"numplayers": observation.fields["numplayers"]}, "servers", label(url))
    data = {"name": None, "id": None, "role": "server", "url": label(url)}
    context.emit_observed(observation, "connected", None, data, None)


def connect_player(context: CgmlContext, observation: Observation) -> None:
    """Handle the login of a player."""
    player = observation.fields["player"]
    number = context.put_player(player)
    assert number is not None
    connection = context.connection_of(observation)
    if number not in connection.logins and len(connection.logins) < MAX_GROUPS:
        connection.logins.append(number)
    if str(number) in context.state.get("players", {}):
        context.set_state(observation.fields["status"], "players", str(number), "status")
    data = {"name": label(player.get("name", "")), "id": number, "role": player.get("race")}
    context.emit_observed(observation, "connected", number, data, None)


def announce(context: CgmlContext, message: Message, connection: ClientConnection) -> None:
    """Store a complete group at once, as its players go to the game server next."""
    number: int = message.fields["id"]
    known = context.announced.get(number)
    if known is None or _is_another(context, known, message):
        context.announced.pop(number, None)
        known = context.announced[number] = AnnouncedGroup(message.fields["url"], [], {}, message.ts_ns)
        if len(context.announced) > MAX_GROUPS:
            del context.announced[next(iter(context.announced))]
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


def _is_another(context: CgmlContext, known: AnnouncedGroup, message: Message) -> bool:
    """Return True if a restarted server uses the group's number for another group.

    Then none of the clients informed about the earlier one is still connected.
    """
    is_late = message.ts_ns - known.told_ns >= _COPIES_NS
    return is_late and known.visibility.isdisjoint(context.connections)


def complete(context: CgmlContext, observation: Observation) -> None:
    """Handle a complete group."""
    number: int = observation.fields["id"]
    known = context.announced.get(number)
    if known is None or len(known.players) < SEATS:
        return
    if known.formed is not None:
        observation.event = known.formed
        return
    for player in known.announced.values():
        context.put_player(player)
    group = {"players": known.players.copy(), "url": label(known.url)}
    if len(context.state.get("groups", {})) < MAX_GROUPS:
        context.set_state(group, "groups", str(number))
    data = {"group": number, "players": known.players.copy()}
    known.formed = context.emit_observed(observation, "group_formed", None, data, None)


def load(context: CgmlContext, observation: Observation) -> None:
    """Handle the load that a server reports."""
    load: int = observation.fields["load"]
    client = observation.message.stream.client
    known = context.state.get("loads", {})
    if client in known or len(known) < MAX_GROUPS:
        context.set_state(load, "loads", client)
    context.emit_observed(observation, "load", None, {"load": load}, None)


def joins(context: CgmlContext, observation: Observation) -> None:
    """Process a player that joins a group, which a login server may have announced."""
    _look_up(context, observation)
    group, player = _member(context, observation)
    group.accepted.add(player)
    if group.players and len(group.accepted) < SEATS:
        group.joins(player)
    context.set_state(group.players.copy(), "groups", group.key, "players")
    context.set_state(sorted(group.accepted), "groups", group.key, "accepted")
    data = {"player": player, "group": group.number, "what": "group"}
    context.emit_observed(observation, "accepted", player, data, None)


def _look_up(context: CgmlContext, observation: Observation) -> None:
    number: int = observation.fields["id"]
    group = context.group(str(number), number)
    here = context.info.server
    announcing = False
    for peer in context.peers:
        assert isinstance(peer, CgmlContext)
        announced = peer.announced
        announcing = announcing or any(other.url == here for other in announced.values())
        known = announced.get(number)
        if known is not None and known.url == here:
            for player in known.players:
                group.joins(player)
            for said in known.announced.values():
                context.put_player(said)
            break
    else:
        if announcing:
            context.report_violation_of(observation, "unknown-group", part="=id", group=number)


def declines(context: CgmlContext, observation: Observation) -> None:
    """Handle a player's refusal of a group."""
    group, player = _member(context, observation)
    data = {"player": player, "group": group.number, "what": "group"}
    context.emit_observed(observation, "rejected", player, data, None)


def _member(context: CgmlContext, observation: Observation) -> tuple[Group, int]:
    player = context.put_player(observation.fields["player"])
    assert player is not None
    group = context.group(str(observation.fields["id"]), observation.fields["id"])
    group.joins(player)
    return group, player


def asked(context: CgmlContext, observation: Observation) -> None:
    """Process the question for another hand; the players asked are the group, in the order of play."""
    connection = context.connection_of(observation)
    assert connection.group is not None
    group = context.group(connection.group, None)
    players = [context.put_player(player) for player in observation.fields["player"]]
    ids = [player for player in players if player is not None]
    if group.asked is not None and group.asked_players == ids:
        observation.event = group.asked
        return
    context.close_hand(group, None, observation.ts_ns)
    group.players = group.asked_players = ids
    context.set_state(ids.copy(), "groups", group.key, "players")
    data = {"group": group.number, "players": ids.copy()}
    group.asked = context.emit_observed(observation, "hand_asked", None, data, None)


def plays_on(context: CgmlContext, observation: Observation) -> None:
    """Handle a player's consent to another hand."""
    _answers(context, observation, "accepted")


def stops(context: CgmlContext, observation: Observation) -> None:
    """Handle a player's refusal of another hand."""
    _answers(context, observation, "rejected")


def _answers(context: CgmlContext, observation: Observation, kind: str) -> None:
    player = context.put_player(observation.fields["player"])
    key = context.connection_of(observation).group
    number = context.group(key, None).number if key is not None else None
    context.emit_observed(
        observation, kind, player, {"player": player, "group": number, "what": "hand"}, None
    )


def disconnect(context: CgmlContext, observation: Observation) -> None:
    """Handle a message that ends the connection."""
    connection = context.connection_of(observation)
    for event in gone(
        context, connection, label(observation.fields.get("disconnect", "")), observation.ts_ns
    ):
        observation.event = event


def gone(context: CgmlContext, connection: ClientConnection, why: str, ts_ns: int) -> list[Event]:
    """Emit the events of the players that leave with a connection, once."""
    if connection.left:
        return []
    connection.left = True
    others = [other for other in context.connections.values() if other is not connection and not other.left]
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
