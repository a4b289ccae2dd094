"""Players and lobbies: logins, names, and joining and leaving, from `LOGI` to `LOGO`."""

from __future__ import annotations

from typing import Any

from kiebitz.dissectors.game.context import label
from kiebitz.dissectors.model import Message
from kiebitz.dissectors.protocols.okey.context import ClientConnection, LobbyRoom, OkeyContext
from kiebitz.dissectors.protocols.okey.tiles import SEATS


def logged_in(context: OkeyContext, message: Message, connection: ClientConnection) -> None:
    """Handle the server's reply to a login."""
    if connection.name is not None:
        # A second login only changes the name.
        renamed(context, message, connection)
        return
    connection.name = label(message.fields["actualname"])
    context.put_player(connection)
    context.emit_of(message, "logged_in", connection.name, {"name": connection.name}, None)


def renamed(context: OkeyContext, message: Message, connection: ClientConnection) -> None:
    """Handle a player's change of name."""
    before, connection.name = connection.name, label(message.fields["actualname"])
    if before is not None:
        context.set_state(None, "players", before)
    context.put_player(connection)
    room = context.lobbies.get(connection.lobby) if connection.lobby is not None else None
    if room is not None and before is not None:
        room.places = [connection.name if name == before else name for name in room.places]
        room.ready = [connection.name if name == before else name for name in room.ready]
        context.put_lobby(room)
    if connection.game is not None and connection.seat is not None:
        connection.game.put_place(connection.seat, connection.name)
    data = {"name": connection.name, "before": before}
    context.emit_of(message, "renamed", connection.name, data, None)


def joined(context: OkeyContext, message: Message, connection: ClientConnection) -> None:
    """Handle `+JLOB`; the request has the lobby."""
    request = connection.answered
    if not message.fields["joinsuccessful"] or request is None:
        return
    number: int = request.fields["n"]
    room = context.lobby(number)
    context.enter(connection, room, message.ts_ns)
    _seat(room, connection.name)
    context.put_lobby(room)
    key = ("joined", number, connection.name)
    if context.log.is_copy(message, key):
        connection.joined = message.event_id
        return
    data = {"name": connection.name, "lobby": number}
    connection.joined = context.emit_broadcast(message, "joined_lobby", connection.name, data, key=key).id


def _seat(room: LobbyRoom, name: str | None) -> None:
    """Give a new player the first free place."""
    if name is not None and name not in room.places and None in room.places:
        room.places[room.places.index(None)] = name


def player_joins(context: OkeyContext, message: Message, connection: ClientConnection) -> None:
    """Handle `JOND`, sent to all in the lobby, including the new player."""
    context.announces_seats = True
    name = label(message.fields["name"])
    if name == connection.name and connection.joined is not None:
        message.event_id, connection.joined = connection.joined, None
        return
    key = ("joined", connection.lobby, name)
    if context.log.is_copy(message, key):
        return
    room = context.lobbies.get(connection.lobby)
    if room is not None:
        _seat(room, name)
        context.put_lobby(room)
    data = {"name": name, "lobby": connection.lobby}
    context.emit_broadcast(message, "joined_lobby", name, data, key=key)


def left_lobby(context: OkeyContext, message: Message, connection: ClientConnection) -> None:
    """Handle `+LLOB`."""
    if message.fields["left"] and connection.lobby is not None:
        leave_server(context, message, connection, "LLOB", message.ts_ns)


def logged_out(context: OkeyContext, message: Message, connection: ClientConnection) -> None:
    """Handle the server's reply to a logout."""
    leave_server(context, message, connection, "LOGO", message.ts_ns)


def player_leaves(context: OkeyContext, message: Message, connection: ClientConnection) -> None:
    """Handle `LEFT`, sent to the others in the lobby."""
    context.announces_seats = True
    name = label(message.fields["name"])
    key = ("left", connection.lobby, name)
    if context.log.is_copy(message, key):
        return
    room = context.lobbies.get(connection.lobby)
    if room is not None:
        context.vacate(room, name)
    data = {"name": name, "lobby": connection.lobby, "reason": "LEFT"}
    context.emit_broadcast(message, "left", name, data, key=key)


def leave_server(
    context: OkeyContext, message: Message | None, connection: ClientConnection, reason: str, ts_ns: int
) -> None:
    """Handle a client that leaves its lobby, or the server."""
    if connection.left:
        return
    number, name = connection.lobby, connection.name
    connection.left = reason != "LLOB"
    connection.lobby = connection.game = connection.seat = connection.turn = None
    room = context.lobbies.get(number)
    if connection.left and name is not None and context.named(name) in (connection, None):
        context.set_state(None, "players", name)
    else:
        context.put_player(connection)
    key = ("left", number, name)
    if room is not None:
        context.vacate(room, name)
        context.close_if_empty(room, ts_ns)
    if message is not None and reason == "LLOB" and context.log.is_copy(message, key):
        # The message to the others came first.
        return
    if name is None and number is None:
        return
    data = {"name": name, "lobby": number, "reason": reason}
    if message is not None:
        event = context.emit_of(message, "left", name, data, None)
    else:
        event = context.emit("left", ts_ns, name, data, None)
    context.log.add(connection.stream.id, key, event)


def places(context: OkeyContext, message: Message, connection: ClientConnection) -> None:
    """Handle `NAMS` and `+RNAM`: the players by index."""
    context.announces_seats = True
    names = [label(name) if name is not None else None for name in message.fields["playerlist"]]
    _sit_down(context, context.lobby(connection.lobby), (names + [None] * SEATS)[:SEATS])


def _sit_down(context: OkeyContext, room: LobbyRoom, names: list[str | None]) -> None:
    if names != room.places:
        room.places = names
        context.put_lobby(room)
    if room.game is not None:
        for seat, name in enumerate(names):
            room.game.put_place(seat, name)


def lobbies(context: OkeyContext, message: Message, connection: ClientConnection) -> None:
    """Handle `+LLPL`: the players of each lobby."""
    for told in message.fields["lobbieswithplayerlist"]:
        number: int = told["lobby"]
        room = context.lobbies.get(number)
        if room is None:
            context.add_other(number)
            continue
        names = [label(name) if name is not None else None for name in told["players"]]
        if len(names) <= SEATS:
            _sit_down(context, room, names + [None] * (SEATS - len(names)))


def games(context: OkeyContext, message: Message, connection: ClientConnection) -> None:
    """Handle `+LGAM`: the list of lobbies."""
    for told in message.fields["games"]:
        context.add_other(told["lobby"])


def ready(context: OkeyContext, message: Message, connection: ClientConnection) -> None:
    """Handle `+REDY`; outside a lobby the server closes the connection after it."""
    room = context.lobbies.get(connection.lobby) if connection.lobby is not None else None
    if room is None:
        return
    if connection.name is not None and connection.name not in room.ready:
        room.ready.append(connection.name)
        context.put_lobby(room)
    data: dict[str, Any] = {"name": connection.name, "lobby": connection.lobby}
    context.emit_of(message, "ready", connection.name, data, None)
