"""Players and lobbies: logins, names, and joining and leaving, from `LOGI` to `LOGO`."""

from __future__ import annotations

from typing import Any

from kiebitz.dissectors.game.context import label
from kiebitz.dissectors.model import Message
from kiebitz.dissectors.protocols.okey.context import Hall, LobbyRoom
from kiebitz.dissectors.protocols.okey.conversation import Conversation, Request
from kiebitz.dissectors.protocols.okey.tiles import SEATS


class Lobbies:
    """Handlers of messages about players and lobbies."""

    def __init__(self, hall: Hall) -> None:
        self._hall = hall

    def logged_in(self, message: Message, talk: Conversation, request: Request | None) -> None:
        if talk.name is not None:
            # A second login only changes the name.
            self.renamed(message, talk, request)
            return
        talk.name = label(message.fields["actualname"])
        self._hall.put_player(talk)
        self._hall.emit_of(message, "logged_in", talk.name, {"name": talk.name}, None)

    def renamed(self, message: Message, talk: Conversation, request: Request | None) -> None:
        before, talk.name = talk.name, label(message.fields["actualname"])
        if before is not None:
            self._hall.set_state(None, "players", before)
        self._hall.put_player(talk)
        room = self._hall.lobbies.get(talk.lobby) if talk.lobby is not None else None
        if room is not None and before is not None:
            room.places = [talk.name if name == before else name for name in room.places]
            room.ready = [talk.name if name == before else name for name in room.ready]
            self._hall.put_lobby(room)
        if talk.game is not None and talk.seat is not None:
            self._hall.put_place(talk.game, talk.seat, talk.name)
        data = {"name": talk.name, "before": before}
        self._hall.emit_of(message, "renamed", talk.name, data, None)

    def joined(self, message: Message, talk: Conversation, request: Request | None) -> None:
        """Handle `+JLOB`; the request has the lobby."""
        if not message.fields["joinsuccessful"] or request is None:
            return
        number: int = request.fields["n"]
        room = self._hall.lobby(number)
        self._hall.enter(talk, room, message.ts_ns)
        self._seat(room, talk.name)
        self._hall.put_lobby(room)
        key = ("joined", number, talk.name)
        if self._hall.log.is_copy(message, key):
            talk.joined = message.event_id
            return
        data = {"name": talk.name, "lobby": number}
        event = self._hall.emit_of(message, "joined_lobby", talk.name, data, None)
        self._hall.log.add(message.stream.id, key, event)
        talk.joined = event.id

    def _seat(self, room: LobbyRoom, name: str | None) -> None:
        """Give a new player the first free place."""
        if name is not None and name not in room.places and None in room.places:
            room.places[room.places.index(None)] = name

    def somebody_joins(self, message: Message, talk: Conversation) -> None:
        """Handle `JOND`, sent to all in the lobby, including the new player."""
        hall = self._hall
        hall.knows_places = True
        name = label(message.fields["name"])
        if name == talk.name and talk.joined is not None:
            message.event_id, talk.joined = talk.joined, None
            return
        key = ("joined", talk.lobby, name)
        if hall.log.is_copy(message, key):
            return
        room = hall.lobbies.get(talk.lobby)
        if room is not None:
            self._seat(room, name)
            hall.put_lobby(room)
        event = hall.emit_of(message, "joined_lobby", name, {"name": name, "lobby": talk.lobby}, None)
        hall.log.add(message.stream.id, key, event)

    def left_lobby(self, message: Message, talk: Conversation, request: Request | None) -> None:
        """Handle `+LLOB`."""
        if message.fields["left"] and talk.lobby is not None:
            self.goes(message, talk, "LLOB", message.ts_ns)

    def logged_out(self, message: Message, talk: Conversation, request: Request | None) -> None:
        self.goes(message, talk, "LOGO", message.ts_ns)

    def somebody_leaves(self, message: Message, talk: Conversation) -> None:
        """Handle `LEFT`, sent to the others in the lobby."""
        hall = self._hall
        hall.knows_places = True
        name = label(message.fields["name"])
        key = ("left", talk.lobby, name)
        if hall.log.is_copy(message, key):
            return
        room = hall.lobbies.get(talk.lobby)
        if room is not None:
            hall.vacate(room, name)
        data = {"name": name, "lobby": talk.lobby, "reason": "LEFT"}
        event = hall.emit_of(message, "left", name, data, None)
        hall.log.add(message.stream.id, key, event)

    def goes(self, message: Message | None, talk: Conversation, reason: str, ts_ns: int) -> None:
        """Handle a client that leaves its lobby, or the server."""
        hall = self._hall
        if talk.left:
            return
        number, name = talk.lobby, talk.name
        talk.left = reason != "LLOB"
        talk.lobby = talk.game = talk.seat = talk.turn = None
        room = hall.lobbies.get(number)
        if talk.left and name is not None and hall.named(name) in (talk, None):
            hall.set_state(None, "players", name)
        else:
            self._hall.put_player(talk)
        key = ("left", number, name)
        if room is not None:
            hall.vacate(room, name)
            hall.close_if_empty(room, ts_ns)
        if message is not None and reason == "LLOB" and hall.log.is_copy(message, key):
            # The message to the others came first.
            return
        if name is None and number is None:
            return
        data = {"name": name, "lobby": number, "reason": reason}
        if message is not None:
            event = hall.emit_of(message, "left", name, data, None)
        else:
            event = hall.emit("left", ts_ns, name, data, None)
        hall.log.add(talk.stream.id, key, event)

    def places(self, message: Message, talk: Conversation, request: Request | None = None) -> None:
        """Handle `NAMS` and `+RNAM`: the players by index."""
        hall = self._hall
        hall.knows_places = True
        names = [label(name) if name is not None else None for name in message.fields["playerlist"]]
        self._sit_down(hall.lobby(talk.lobby), (names + [None] * SEATS)[:SEATS])

    def _sit_down(self, room: LobbyRoom, names: list[str | None]) -> None:
        hall = self._hall
        if names != room.places:
            room.places = names
            hall.put_lobby(room)
        if room.game is not None:
            for seat, name in enumerate(names):
                hall.put_place(room.game, seat, name)

    def lobbies(self, message: Message, talk: Conversation, request: Request | None) -> None:
        """Handle `+LLPL`: the players of each lobby."""
        for told in message.fields["lobbieswithplayerlist"]:
            number: int = told["lobby"]
            room = self._hall.lobbies.get(number)
            if room is None:
                self._hall.hears_of(number)
                continue
            names = [label(name) if name is not None else None for name in told["players"]]
            if len(names) <= SEATS:
                self._sit_down(room, names + [None] * (SEATS - len(names)))

    def games(self, message: Message, talk: Conversation, request: Request | None) -> None:
        """Handle `+LGAM`: the list of lobbies."""
        for told in message.fields["games"]:
            self._hall.hears_of(told["lobby"])

    def ready(self, message: Message, talk: Conversation, request: Request | None) -> None:
        """Handle `+REDY`; outside a lobby the server closes the connection after it."""
        room = self._hall.lobbies.get(talk.lobby) if talk.lobby is not None else None
        if room is None:
            return
        if talk.name is not None and talk.name not in room.ready:
            room.ready.append(talk.name)
            self._hall.put_lobby(room)
        data: dict[str, Any] = {"name": talk.name, "lobby": talk.lobby}
        self._hall.emit_of(message, "ready", talk.name, data, None)
