"""Chat messages: a request, its response, and the copies to all recipients make one event."""

from __future__ import annotations

from typing import Any

from kiebitz.dissectors.game.broadcast_dedup import EventLog, text_key
from kiebitz.dissectors.game.context import label
from kiebitz.dissectors.model import Message
from kiebitz.dissectors.protocols.okey.context import OkeyContext
from kiebitz.dissectors.protocols.okey.game import ClientConnection, Request

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
