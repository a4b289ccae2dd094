"""The Okey table: from messages to players, lobbies, deals, draws, puts and wins.

`lobby.py`, `deals.py`, `moves.py` and `status.py` handle most messages, and `requests.py` checks those of the
clients; this module matches responses with requests, acknowledgements with pushes, and the copies of chat.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kiebitz.dissectors.game.broadcast_dedup import text_key
from kiebitz.dissectors.game.context import label
from kiebitz.dissectors.game.table import GameTable
from kiebitz.dissectors.grammar.grammar import MessageType
from kiebitz.dissectors.model import Direction, Findings, Ids, Message, Stream, TableInfo
from kiebitz.dissectors.protocols.okey import deals, lobby, moves, requests, status
from kiebitz.dissectors.protocols.okey.context import ClientConnection, OkeyContext, Request

_PADDING = "lists are padded with % in place of a blank (last dialect)"
_REFUSED = ("DRAW", "PUTT")
"""Requests that get a response at the wrong time even if they are invalid."""

_NEEDED = ("JLOB", *_REFUSED)
"""Requests whose arguments are needed to interpret the response; all of them are short."""

_CLAUSE = "Einige Eigenheiten unseres Protokolls"


def _chat_received(context: OkeyContext, message: Message, connection: ClientConnection) -> None:
    """Handle `CATS`: a message to this client, and perhaps to others."""
    scope: str = message.fields["messagetype"]
    to = connection.name if scope == "w" else None
    _emit_chat(context, message, message.stream.id, connection, label(message.fields["sender"]), to)


def _chat_confirmed(context: OkeyContext, message: Message, connection: ClientConnection) -> None:
    """Handle `+CATC`: this client's message was sent, or has no such recipient."""
    fields = message.fields
    to = fields.get("whisperrecipient")
    if fields.get("nicknameexists", True):
        sender = connection.name if connection.name is not None else "null"
        to = None if to is None else label(to)
        # A client that whispers to itself gets two copies on one stream: the message and its confirmation.
        _emit_chat(context, message, -message.stream.id, connection, sender, to)


def _emit_chat(
    context: OkeyContext,
    message: Message,
    recipient: int,
    connection: ClientConnection,
    sender: str,
    to: str | None,
) -> None:
    scope, text = message.fields["messagetype"], message.fields["msg"]
    key = (scope, sender, to, text_key(text))
    if context.chats.is_copy(message, key, recipient):
        return
    data: dict[str, Any] = {"scope": scope, "from": sender, "to": to, "text": text}
    if to is not None:
        data |= {"known_to": [sender, to], "others_see": {"text": None}}
    game = connection.game.game if scope == "l" and connection.game is not None else None
    context.chats.add(recipient, key, context.emit_of(message, "chat", sender, data, game))


_HANDLERS: dict[str, Callable[[OkeyContext, Message, ClientConnection], None]] = {
    "+LOGI": lobby.logged_in,
    "+NAME": lobby.renamed,
    "+LLPL": lobby.lobbies,
    "+LGAM": lobby.games,
    "+JLOB": lobby.joined,
    "+LLOB": lobby.left_lobby,
    "+RNAM": lobby.places,
    "+RSTA": status.requested,
    "+LOGO": lobby.logged_out,
    "+REDY": lobby.ready,
    "+DRAW": moves.drew,
    "+PUTT": moves.put,
    "+WINC": moves.cheated,
    "+CATC": _chat_confirmed,
    "STAT": status.pushed,
    "PWIN": deals.won,
    "EMPT": deals.drawn_game,
    "JOND": lobby.player_joins,
    "LEFT": lobby.player_leaves,
    "NAMS": lobby.places,
    "CATS": _chat_received,
}
"""The handlers of the server's messages by name; that of `STRT` needs the bytes, too."""


class OkeyTable(GameTable):
    """One Okey server: its players, its lobbies, and the games in them."""

    context: OkeyContext

    def __init__(self, info: TableInfo, ids: Ids, findings: Findings) -> None:
        super().__init__(OkeyContext(info, ids, findings))

    def message(self, message: Message, row: MessageType, valid: bool, frame: bytes) -> None:
        connection = self.context.connections.of(message.stream)
        self.context.note_dialect(message, row)
        if message.direction == "s2c" and b'%"' in frame:
            self.context.note_once(message, _PADDING, _CLAUSE, (frame.index(b'%"'), 1))
        if message.direction == "c2s":
            self._from_client(message, row, valid, connection, frame)
        elif not valid:
            return
        elif message.name.startswith("+"):
            self._response(message, row, connection)
        else:
            connection.pushed[message.name] += 1
            if message.name == "STRT":
                deals.dealt(self.context, message, row, connection, frame)
            elif message.name in _HANDLERS:
                _HANDLERS[message.name](self.context, message, connection)

    def _from_client(
        self, message: Message, row: MessageType, valid: bool, connection: ClientConnection, frame: bytes
    ) -> None:
        if message.name.startswith("+"):
            self._acknowledged(message, row, connection)
            return
        doubtful = valid and not requests.check_request(self.context, message, row, connection, frame)
        if valid or message.name in _REFUSED:
            fields = message.fields if message.name in _NEEDED else {}
            connection.requests.add(Request(message.name, fields, valid, doubtful))

    def _acknowledged(self, message: Message, row: MessageType, connection: ClientConnection) -> None:
        name = message.name[1:]
        if connection.pushed[name]:
            connection.pushed[name] -= 1
        elif connection.certain and not self.context.is_unfinished(message.stream, "s2c"):
            self.context.report_violation(
                message, "unasked/acknowledged", clause=row.clause, name=message.name, request=name
            )

    def _response(self, message: Message, row: MessageType, connection: ClientConnection) -> None:
        name = message.name[1:]
        connection.answered = connection.requests.answered(name, _is_refusal(message), row.heartbeat)
        if connection.answered is None:
            # The request was not seen; the client may have rejoined a game dealt before.
            connection.certain_since_deal = False
            is_unread = self.context.is_unfinished(message.stream, "c2s")
            if is_unread or connection.requests.unread.explains(name):
                if name in _NEEDED:
                    self.context.doubt(connection)
            elif connection.certain:
                self.context.report_violation(
                    message, "unasked", clause=row.clause, name=message.name, request=name
                )
        if message.name in _HANDLERS:
            _HANDLERS[message.name](self.context, message, connection)

    def doubt(self, stream: Stream, direction: Direction, ts_ns: int, is_gap: bool) -> None:
        connection = self.context.connections.of(stream)
        if direction == "s2c":
            self.context.doubt(connection)
        if direction == "c2s" or is_gap:
            # A capture that begins with a response lacks the request.
            connection.requests.doubt()

    def closed(self, stream: Stream, ts_ns: int) -> None:
        connection = self.context.connections.get(stream.id)
        if connection is not None:
            assert stream.ending is not None
            # While the connection is registered, its name is known to be in use.
            lobby.leave_server(self.context, None, connection, stream.ending, ts_ns)
            del self.context.connections[stream.id]
        # The leave was logged as received on this stream.
        self.context.log.forget(stream.id)
        self.context.chats.forget(stream.id)
        self.context.chats.forget(-stream.id)
        if not self.context.connections:
            self.context.log.clear()
            self.context.chats.clear()


def _is_refusal(message: Message) -> bool:
    """Return True if a response may answer an invalid request."""
    fields = message.fields
    return message.name[1:] in _REFUSED and not (fields.get("tile") or fields.get("valid"))
