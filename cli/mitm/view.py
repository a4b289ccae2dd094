"""A mitmproxy contentview for the game messages in TCP and UDP flows.

mitmproxy renders single messages of a flow, in any order, and repeatedly. As the meaning of a message depends
on earlier ones, each flow is dissected once, as far as received, and cached.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

from mitmproxy import contentviews, flow, tcp, udp

from kiebitz.cli.mitm.conversation import Conversation
from kiebitz.cli.mitm.log import warn
from kiebitz.cli.terminal.byte_rows import diagnostic_block, place_of, reasons
from kiebitz.cli.terminal.console import Line as Shown
from kiebitz.cli.terminal.console import plain
from kiebitz.dissectors.dissector import Dissector, recognise
from kiebitz.dissectors.escaping import value_words
from kiebitz.dissectors.model import Diagnostic, Direction, Message, Stream, Transport
from kiebitz.dissectors.registry import installed
from kiebitz.proxy.relay.endpoints import endpoint_text
from kiebitz.services.evidence.excerpt import Line, datagram_excerpt, ranges_to_read, stream_excerpt
from kiebitz.services.wording import counted

_NAME = "Kiebitz"

_SURE = 2.0
_NOT_MINE = -1.0
"""View priorities: mitmproxy's own views have at most 1; below 0 means that a view is not applicable."""

_MOST_FLOWS = 256
"""Number of flows in the LRU cache."""

_DEEPEST = 6
"""Depth of nested fields below which they are shown as JSON."""

_UNKNOWN = ("?", 0)
"""Address of an endpoint that mitmproxy does not know."""

_NO_GAME = "Kiebitz recognised no game in this conversation."

_OLDER: Any = contentviews
"""The API of mitmproxy up to version 11, which later versions removed or deprecated."""

_Flow = tcp.TCPFlow | udp.UDPFlow
_FlowMessage = tcp.TCPMessage | udp.UDPMessage
_Place = tuple[Conversation, int]
"""A conversation and the number of a piece."""

_StyledLine = tuple[str, str]
"""A line, preceded by the name of its style in mitmproxy."""


class _Reading:
    """The dissection of a flow; `is_whole` is True if its first message began the conversation."""

    def __init__(self, of: _Flow, is_whole: bool) -> None:
        transport: Transport = "tcp" if isinstance(of, tcp.TCPFlow) else "udp"
        client = endpoint_text(of.client_conn.peername or _UNKNOWN)
        server = endpoint_text(of.server_conn.peername or of.server_conn.address or _UNKNOWN)
        stream = Stream(1, transport, client, server, _ns(of.timestamp_created))
        self.conversation = Conversation(stream, is_whole)
        self.is_whole = is_whole
        self._read: list[tuple[_FlowMessage, bytes]] = []
        self._numbers: dict[int, int] = {}
        self._is_over = False

    def continues_in(self, messages: list[Any]) -> bool:
        """Return whether a flow's messages extend the dissected ones, judging by the last one."""
        count = len(self._read)
        if len(messages) < count or (self._is_over and len(messages) > count):
            return False
        return not count or self._is(count - 1, messages[count - 1])

    def starts_like(self, messages: list[Any]) -> bool:
        """Return whether a flow's first message has the same content as the first dissected one."""
        return not self._read or (bool(messages) and messages[0].content == self._read[0][1])

    def take(self, of: _Flow) -> None:
        """Dissect the messages received since the last call."""
        messages: list[Any] = of.messages
        for message in messages[len(self._read) :]:
            self._numbers[id(message)] = len(self._read)
            self._read.append((message, message.content))
            direction: Direction = "c2s" if message.from_client else "s2c"
            self.conversation.take(direction, _ns(message.timestamp), message.content)
        # A flow saved before its end is not live either.
        is_closed = of.client_conn.timestamp_end or of.server_conn.timestamp_end
        if is_closed and not of.live and not self._is_over:
            self._is_over = True
            self.conversation.end()

    def number(self, message: _FlowMessage) -> int | None:
        """Return a message's piece number; None if its current content was not dissected."""
        number = self._numbers.get(id(message))
        return number if number is not None and self._is(number, message) else None

    def _is(self, number: int, message: Any) -> bool:
        known, content = self._read[number]
        return known is message and content is message.content


class _Readings:
    """The flows that are remembered."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, _Reading] = OrderedDict()

    def find(self, of: flow.Flow | None, message: _FlowMessage | None) -> _Place | None:
        """Return the conversation and piece of a message; None if it is in no TCP or UDP flow."""
        if not isinstance(of, _Flow) or message is None:
            return None
        reading = self._read(of)
        number = reading.number(message)
        if number is None and any(part is message for part in of.messages):
            # The user has edited the message.
            del self._known[of.id]
            reading = self._read(of)
            number = reading.number(message)
        return None if number is None else (reading.conversation, number)

    def _read(self, of: _Flow) -> _Reading:
        reading = self._known.get(of.id)
        if reading is None:
            reading = _Reading(of, is_whole=True)
        elif not reading.continues_in(of.messages):
            # The flow was reverted, or old messages were discarded.
            reading = _Reading(of, reading.is_whole and reading.starts_like(of.messages))
        self._known[of.id] = reading
        self._known.move_to_end(of.id)
        if len(self._known) > _MOST_FLOWS:
            self._known.popitem(last=False)
        reading.take(of)
        return reading


def _alone(data: bytes) -> _Place | None:
    """Dissect bytes without a flow, if they can only belong to one protocol."""
    transports: tuple[Transport, ...] = ("udp", "tcp")
    for transport in transports:
        for _, direction, likeness in recognise(installed().dissectors.values(), transport, data):
            if likeness == "certain":
                unknown = endpoint_text(_UNKNOWN)
                conversation = Conversation(Stream(1, transport, unknown, unknown, 0), is_whole=True)
                conversation.take(direction, 0, data)
                return conversation, 0
    return None


class GameView:
    """The view, as a `Contentview` of mitmproxy 12 and later."""

    name = _NAME
    syntax_highlight = "none"

    def __init__(self) -> None:
        self._readings = _Readings()

    def prettify(self, data: bytes, metadata: Any) -> str:
        """Return the text of a message."""
        message = metadata.tcp_message or metadata.udp_message
        return "\n".join(line for _, line in self.shown(data, metadata.flow, message)[1])

    def render_priority(self, data: bytes, metadata: Any) -> float:
        """Return the priority of this view for a message."""
        return self.priority(metadata.flow, metadata.tcp_message or metadata.udp_message)

    def priority(self, of: flow.Flow | None, message: _FlowMessage | None) -> float:
        """Return the priority of this view, for all versions of mitmproxy."""
        found = self._readings.find(of, message)
        return _SURE if found is not None and found[0].dissector is not None else _NOT_MINE

    def shown(
        self, data: bytes, of: flow.Flow | None, message: _FlowMessage | None
    ) -> tuple[str, Iterator[_StyledLine]]:
        """Return the name of the game, and the lines of a message."""
        conversation, number = self._readings.find(of, message) or _alone(data) or (None, 0)
        dissector = conversation.dissector if conversation is not None else None
        if conversation is None or dissector is None:
            return _NAME, iter([("text", _NO_GAME)])
        lines = _lines(conversation, dissector, number)
        return plain([dissector.grammar.title]), ((style, plain([line])) for style, line in lines)


def _for_mitmproxy_11(view: GameView) -> Any:
    """Return the view for mitmproxy up to version 11, the last one for Python 3.11."""

    class View(_OLDER.View):  # type: ignore[misc]  # whichever version checks this, its class is Any
        name = _NAME

        def __call__(self, data: bytes, **given: Any) -> tuple[str, Iterator[list[_StyledLine]]]:
            message = given.get("tcp_message") or given.get("udp_message")
            title, lines = view.shown(data, given.get("flow"), message)
            return title, ([line] for line in lines)

        def render_priority(self, data: bytes, **given: Any) -> float:
            return view.priority(given.get("flow"), given.get("tcp_message") or given.get("udp_message"))

    return View()


class ShowGames:
    """The add-on that registers the view."""

    def __init__(self) -> None:
        view = GameView()
        self._is_new = hasattr(contentviews, "Contentview")
        self._view: Any = view if self._is_new else _for_mitmproxy_11(view)

    def load(self, _loader: object) -> None:
        """Register the view."""
        for problem in installed().problems:
            warn(problem)
        contentviews.add(self._view)

    def done(self) -> None:
        """Unregister the view; mitmproxy 12 and later replace it on reload."""
        if not self._is_new:
            _OLDER.remove(self._view)


def _lines(conversation: Conversation, dissector: Dissector, number: int) -> Iterator[_StyledLine]:
    for message in conversation.messages(number):
        gloss = dissector.presentation.gloss(message.name, message.direction, message.fields)
        yield "header", message.name + (f"  ({gloss})" if gloss else "")
        for name, value in message.fields.items():
            for line in _field(name, value, 1):
                yield "text", line
        if message.event_id is not None:
            yield "highlight", f"  » {conversation.events[message.event_id]}"
        for diagnostic in conversation.diagnostics(message):
            yield from (
                ("error", plain(line)) for line in _diagnostic(conversation, number, message, diagnostic)
            )
    rest, unended = conversation.unended(number)
    if rest:
        name = "a message" if unended is None else unended.name
        yield "text", f"({counted(rest, 'byte')} of {name}, continued later)"


def _field(name: str, value: Any, depth: int) -> Iterator[str]:
    indent = "  " * depth
    parts: list[tuple[str, Any]] = []
    if isinstance(value, dict):
        parts = list(value.items())
    elif isinstance(value, list) and any(isinstance(part, dict | list) for part in value):
        parts = [(f"[{place}]", part) for place, part in enumerate(value)]
    if not parts or depth > _DEEPEST:
        yield f"{indent}{name}: {value_words(value)}"
        return
    yield f"{indent}{name}:"
    for key, part in parts:
        yield from _field(key, part, depth + 1)


def _diagnostic(
    conversation: Conversation, number: int, message: Message, diagnostic: Diagnostic
) -> Iterator[Shown]:
    """Yield a diagnostic as `kiebitz check` shows it."""
    is_datagram = conversation.stream.transport == "udp"
    lines: list[Line] = []
    if is_datagram:
        lines = datagram_excerpt(*conversation.piece(number), diagnostic.offset, diagnostic.length)
    else:
        near = [
            conversation.between(diagnostic.direction, *window)
            for window in ranges_to_read(diagnostic.offset, diagnostic.length)
        ]
        if any(stretch.data for stretch in near):
            lines = stream_excerpt(near, diagnostic.offset, diagnostic.length, message.offset)
    head = [f"{diagnostic.severity}[{diagnostic.code}]: {diagnostic.text}"]
    place = place_of(diagnostic.offset, message.name, message.offset)
    return diagnostic_block(head, place, lines, not is_datagram, reasons(diagnostic))


def _ns(seconds: float) -> int:
    return round(seconds * 1e9)
