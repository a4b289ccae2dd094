"""The Okey table: from messages to players, lobbies, deals, draws, puts and wins.

`lobby.py`, `deals.py`, `moves.py` and `status.py` handle most messages; this module matches responses with
requests, acknowledgements with pushes, and the copies of chat.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kiebitz.dissectors.game.broadcast_dedup import EventLog, text_key
from kiebitz.dissectors.game.context import label
from kiebitz.dissectors.game.table import GameTable
from kiebitz.dissectors.grammar.grammar import MessageType
from kiebitz.dissectors.model import Direction, Findings, Ids, Message, Stream, TableInfo
from kiebitz.dissectors.protocols.okey.context import OkeyContext
from kiebitz.dissectors.protocols.okey.deals import Deals
from kiebitz.dissectors.protocols.okey.game import ClientConnection, Request
from kiebitz.dissectors.protocols.okey.lobby import Lobbies
from kiebitz.dissectors.protocols.okey.moves import Moves
from kiebitz.dissectors.protocols.okey.status import Status

_PADDING = "lists are padded with % in place of a blank (last dialect)"
_REFUSED = ("DRAW", "PUTT")
"""Requests that get a response at the wrong time even if they are invalid."""

_NEEDED = ("JLOB", *_REFUSED)
"""Requests whose arguments are needed to interpret the response; all of them are short."""

_CLAUSE = "Einige Eigenheiten unseres Protokolls"


_OVERTAKEN_NS = 2_000_000_000
"""Longest delay of a copy: real servers send to each client in a thread of its own."""


class Chat:
    """Handlers of chat messages."""

    def __init__(self, context: OkeyContext) -> None:
        self._context = context
        self._log = EventLog(doubled=False, overtaken_ns=_OVERTAKEN_NS)

    def received(self, message: Message, connection: ClientConnection) -> None:
        """Handle `CATS`: a message to this client, and perhaps to others."""
        scope: str = message.fields["messagetype"]
        to = connection.name if scope == "w" else None
        sender = label(message.fields["sender"])
        self._emit(message, message.stream.id, connection, scope, sender, to, message.fields["msg"])

    def confirmed(self, message: Message, connection: ClientConnection, request: Request | None) -> None:
        """Handle `+CATC`: this client's message was sent, or has no such recipient."""
        fields = message.fields
        to = fields.get("whisperrecipient")
        if fields.get("nicknameexists", True):
            sender = connection.name if connection.name is not None else "null"
            to = None if to is None else label(to)
            # A client that whispers to itself gets two copies on one stream: the message and its
            # confirmation.
            recipient = -message.stream.id
            self._emit(message, recipient, connection, fields["messagetype"], sender, to, fields["msg"])

    def _emit(
        self,
        message: Message,
        recipient: int,
        connection: ClientConnection,
        scope: str,
        sender: str,
        to: str | None,
        text: str,
    ) -> None:
        key = (scope, sender, to, text_key(text))
        if self._log.is_copy(message, key, recipient):
            return
        data: dict[str, Any] = {"scope": scope, "from": sender, "to": to, "text": text}
        if to is not None:
            data |= {"known_to": [sender, to], "others_see": {"text": None}}
        game = connection.game.game if scope == "l" and connection.game is not None else None
        event = self._context.emit_of(message, "chat", sender, data, game)
        self._log.add(recipient, key, event)

    def clear(self) -> None:
        """Forget all copies: no client is left to receive any."""
        self._log.clear()

    def forget(self, stream_id: int) -> None:
        """Forget a stream that has ended."""
        self._log.forget(stream_id)
        self._log.forget(-stream_id)


class OkeyTable(GameTable):
    """One Okey server: its players, its lobbies, and the games in them."""

    def __init__(self, info: TableInfo, ids: Ids, findings: Findings) -> None:
        self._context = context = OkeyContext(info, ids, findings)
        super().__init__(context)
        self._chat = Chat(context)
        self._moves = Moves(context)
        self._deals = Deals(context, self._moves)
        self._lobbies = lobbies = Lobbies(context)
        status = Status(context, self._moves)
        self._responses: dict[str, Callable[[Message, ClientConnection, Request | None], None]] = {
            "+LOGI": lobbies.logged_in,
            "+NAME": lobbies.renamed,
            "+LLPL": lobbies.lobbies,
            "+LGAM": lobbies.games,
            "+JLOB": lobbies.joined,
            "+LLOB": lobbies.left_lobby,
            "+RNAM": lobbies.places,
            "+RSTA": status.requested,
            "+LOGO": lobbies.logged_out,
            "+REDY": lobbies.ready,
            "+DRAW": self._moves.drew,
            "+PUTT": self._moves.put,
            "+WINC": self._moves.cheated,
            "+CATC": self._chat.confirmed,
        }
        self._pushes: dict[str, Callable[[Message, ClientConnection], None]] = {
            "STAT": status.pushed,
            "PWIN": self._deals.won,
            "EMPT": self._deals.drawn_game,
            "JOND": lobbies.player_joins,
            "LEFT": lobbies.player_leaves,
            "NAMS": lobbies.places,
            "CATS": self._chat.received,
        }

    def message(self, message: Message, row: MessageType, valid: bool, frame: bytes) -> None:
        connection = self._context.connections.of(message.stream)
        self._context.note_dialect(message, row)
        if message.direction == "s2c" and b'%"' in frame:
            self._context.note_once(message, _PADDING, _CLAUSE, (frame.index(b'%"'), 1))
        if message.direction == "c2s":
            self._from_client(message, row, valid, connection, frame)
        elif not valid:
            return
        elif message.name.startswith("+"):
            self._response(message, row, connection)
        else:
            connection.pushed[message.name] += 1
            if message.name == "STRT":
                self._deals.dealt(message, row, connection, frame)
            elif message.name in self._pushes:
                self._pushes[message.name](message, connection)

    def _from_client(
        self, message: Message, row: MessageType, valid: bool, connection: ClientConnection, frame: bytes
    ) -> None:
        if message.name.startswith("+"):
            self._acknowledged(message, row, connection)
            return
        doubtful = valid and not self._moves.check_request(message, row, connection, frame)
        if valid or message.name in _REFUSED:
            fields = message.fields if message.name in _NEEDED else {}
            connection.requests.add(Request(message.name, fields, valid, doubtful))

    def _acknowledged(self, message: Message, row: MessageType, connection: ClientConnection) -> None:
        name = message.name[1:]
        if connection.pushed[name]:
            connection.pushed[name] -= 1
        elif connection.certain and not self._context.is_unfinished(message.stream, "s2c"):
            self._context.report_violation(
                message, "unasked/acknowledged", clause=row.clause, name=message.name, request=name
            )

    def _response(self, message: Message, row: MessageType, connection: ClientConnection) -> None:
        name = message.name[1:]
        request = connection.requests.answered(name, _is_refusal(message))
        if request is None:
            # The request was not seen; the client may have rejoined a game dealt before.
            connection.certain_since_deal = False
            is_unread = self._context.is_unfinished(message.stream, "c2s")
            if is_unread or connection.requests.unread.explains(name):
                if name in _NEEDED:
                    self._context.doubt(connection)
            elif connection.certain:
                self._context.report_violation(
                    message, "unasked", clause=row.clause, name=message.name, request=name
                )
        if message.name in self._responses:
            self._responses[message.name](message, connection, request)

    def doubt(self, stream: Stream, direction: Direction, ts_ns: int, is_gap: bool) -> None:
        connection = self._context.connections.of(stream)
        if direction == "s2c":
            self._context.doubt(connection)
        if direction == "c2s" or is_gap:
            # A capture that begins with a response lacks the request.
            connection.requests.doubt()

    def closed(self, stream: Stream, ts_ns: int) -> None:
        connection = self._context.connections.get(stream.id)
        if connection is not None:
            assert stream.ending is not None
            # While the connection is registered, its name is known to be in use.
            self._lobbies.leave_server(None, connection, stream.ending, ts_ns)
            del self._context.connections[stream.id]
        # The leave was logged as received on this stream.
        self._context.log.forget(stream.id)
        self._chat.forget(stream.id)
        if not self._context.connections:
            self._context.log.clear()
            self._chat.clear()


def _is_refusal(message: Message) -> bool:
    """Return True if a response may answer an invalid request."""
    fields = message.fields
    return message.name[1:] in _REFUSED and not (fields.get("tile") or fields.get("valid"))
