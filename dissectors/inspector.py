"""The one way from bytes to a game: items in, findings out.

Every source's items pass here: framer, then grammar, then game table. The inspector also decides which
protocol a server speaks: by force (`decode_as`), or from the first message that can only be one protocol's.
Until then a server's items wait (a bounded number of them), so that nothing sent before is lost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from dissectors.dissector import Dissector, recognise
from dissectors.framing import Framer
from dissectors.grammar import UNREADABLE, Decoded, Flaw, blame_of
from dissectors.records import (
    Chunk,
    Diagnostic,
    Direction,
    End,
    Fault,
    Findings,
    Gap,
    Item,
    Message,
    Stream,
    TableInfo,
)
from dissectors.table import GameTable, Ids

UNDECIDED_ITEMS = 64
"""How many items of a server wait for its protocol to be recognised."""

UNDECIDED_BYTES = 8 << 20
"""How many bytes wait for all servers together: a capture may hold much that is no game."""

MEMO_SIZE = 4096
"""How many decoded frames are remembered: a server says the same to each of its clients."""

MEMO_FRAME = 256
"""Frames longer than this (bytes) are not remembered."""

DecodeAs = Mapping[tuple[str, int], Dissector]
"""Server (transport, port) to the protocol that it is said to speak."""


class _Server(msgspec.Struct, eq=False):
    """A server endpoint and what is known of its protocol."""

    dissector: Dissector | None = None
    table: GameTable | None = None
    waiting: list[Item] = msgspec.field(default_factory=list)
    given_up: bool = False
    memo: dict[Direction, dict[bytes, Decoded]] = msgspec.field(
        default_factory=lambda: {"c2s": {}, "s2c": {}}
    )


class _Conversation(msgspec.Struct, eq=False):
    """A stream, its server and, once the protocol is known, a framer for each direction."""

    stream: Stream
    server: _Server
    framers: dict[Direction, Framer] = msgspec.field(default_factory=dict)


class Inspector:
    """Dissects the items of one session. `ids` carries on the database's numbering."""

    def __init__(self, dissectors: Sequence[Dissector], ids: Ids, decode_as: DecodeAs | None = None) -> None:
        self._dissectors = dissectors
        self._decode_as: DecodeAs = decode_as or {}
        self._ids = ids
        self._findings = _no_findings()
        self._servers: dict[tuple[str, str], _Server] = {}
        self._conversations: dict[int, _Conversation] = {}
        self._latest_ns = 0
        self._waiting_bytes = 0

    def feed(self, item: Item) -> None:
        """Take the next item of any stream."""
        self._latest_ns = item.ts_ns
        conversation = self._conversations.get(item.stream.id) or self._meet(item.stream)
        server = conversation.server
        if server.table is not None:
            self._dissect(conversation, item)
        elif not server.given_up:
            self._wait(server, item)
        if isinstance(item, End):
            item.stream.closed_ns = item.ts_ns
            item.stream.close_reason = item.reason
            self._findings.streams.append(item.stream)
            del self._conversations[item.stream.id]

    def finish(self) -> None:
        """Nothing more comes: decide what is undecided and let the tables give their last verdicts."""
        for server in self._servers.values():
            if server.table is None:
                self._decide_by_likeness(server)
        for conversation in list(self._conversations.values()):
            for direction, framer in conversation.framers.items():
                for offset, frame in framer.eof():
                    self._frame(conversation, direction, self._latest_ns, offset, frame)
        for server in self._servers.values():
            if server.table is not None:
                server.table.finish(self._latest_ns)

    def drain(self) -> Findings:
        """Everything found since the last call."""
        # The tables hold on to the same lists, so these are emptied, not replaced.
        lists = msgspec.structs.astuple(self._findings)
        found = Findings(*(part.copy() for part in lists))
        for part in lists:
            part.clear()
        return found

    def _meet(self, stream: Stream) -> _Conversation:
        key = (stream.transport, stream.server)
        server = self._servers.get(key)
        if server is None:
            server = self._servers[key] = _Server()
            forced = self._decode_as.get((stream.transport, _port(stream.server)))
            if forced is not None:
                self._decide(server, forced, stream)
        conversation = self._conversations[stream.id] = _Conversation(stream, server)
        if server.dissector is not None:
            stream.protocol = server.dissector.protocol
        self._findings.streams.append(stream)
        return conversation

    def _wait(self, server: _Server, item: Item) -> None:
        """Keep an item of a server whose protocol is unknown, unless it is what makes it known."""
        server.waiting.append(item)
        if isinstance(item, Chunk):
            self._waiting_bytes += len(item.data)
            for dissector, *seen in recognise(self._dissectors, item.stream.transport, item.data):
                if seen == [item.direction, "certain"]:
                    self._decide(server, dissector, item.stream)
                    return
        if len(server.waiting) >= UNDECIDED_ITEMS or self._waiting_bytes > UNDECIDED_BYTES:
            self._decide_by_likeness(server)

    def _decide_by_likeness(self, server: _Server) -> None:
        """Nothing certain came: take the protocol whose messages these look like, or give the server up."""
        for item in server.waiting:
            if isinstance(item, Chunk):
                for dissector, *_ in recognise(self._dissectors, item.stream.transport, item.data):
                    self._decide(server, dissector, item.stream)
                    return
        server.given_up = True
        self._no_longer_wait(server)

    def _no_longer_wait(self, server: _Server) -> list[Item]:
        waiting, server.waiting = server.waiting, []
        self._waiting_bytes -= sum(len(item.data) for item in waiting if isinstance(item, Chunk))
        return waiting

    def _decide(self, server: _Server, dissector: Dissector, stream: Stream) -> None:
        self._ids.table += 1
        info = TableInfo(self._ids.table, dissector.protocol, stream.server)
        self._findings.tables.append(info)
        server.dissector = dissector
        server.table = dissector.table(info, self._ids, self._findings)
        for conversation in self._conversations.values():
            if conversation.server is server:
                conversation.stream.protocol = dissector.protocol
                self._findings.streams.append(conversation.stream)
        for item in self._no_longer_wait(server):
            # A stream may have ended while its items waited.
            conversation = self._conversations.get(item.stream.id) or _Conversation(item.stream, server)
            self._dissect(conversation, item)

    def _dissect(self, conversation: _Conversation, item: Item) -> None:
        if isinstance(item, Chunk):
            if item.missing:
                self._cut_off(item)
                return
            framer = conversation.framers.get(item.direction) or self._framer(conversation, item.direction)
            for offset, frame in framer.feed(item.offset, item.data):
                self._frame(conversation, item.direction, item.ts_ns, offset, frame)
        elif isinstance(item, Gap):
            framer = conversation.framers.get(item.direction) or self._framer(conversation, item.direction)
            framer.gap(item.offset, item.length)
        elif isinstance(item, Fault):
            self._findings.diagnostics.append(
                Diagnostic(
                    item.stream,
                    item.direction,
                    item.ts_ns,
                    "warning",
                    "network",
                    item.code,
                    item.text,
                    item.offset,
                    0,
                    blame="network",
                )
            )
        else:
            for direction, framer in conversation.framers.items():
                for offset, frame in framer.eof():
                    self._frame(conversation, direction, item.ts_ns, offset, frame)
            assert conversation.server.table is not None
            conversation.server.table.closed(item.stream, item.ts_ns)

    def _framer(self, conversation: _Conversation, direction: Direction) -> Framer:
        assert conversation.server.dissector is not None
        framer = conversation.framers[direction] = conversation.server.dissector.framer(direction)
        return framer

    def _cut_off(self, chunk: Chunk) -> None:
        """A datagram whose end is not in the capture cannot be read; nobody but the capture is to blame."""
        sent = len(chunk.data) + chunk.missing
        self._findings.diagnostics.append(
            Diagnostic(
                chunk.stream,
                chunk.direction,
                chunk.ts_ns,
                "warning",
                "network",
                "cut-off",
                f"only {len(chunk.data)} of {sent} bytes were captured (snap length)",
                chunk.offset,
                sent,
                blame="network",
            )
        )

    def _frame(
        self, conversation: _Conversation, direction: Direction, ts_ns: int, offset: int, frame: bytes
    ) -> None:
        server = conversation.server
        table = server.table
        assert table is not None
        decoded = self._decode(server, direction, frame)
        row = decoded.row
        self._ids.message += 1
        message = Message(
            self._ids.message,
            conversation.stream,
            direction,
            ts_ns,
            row.name if row is not None else UNREADABLE,
            decoded.fields,
            decoded.fields_json,
            offset,
            len(frame),
        )
        self._findings.messages.append(message)
        for flaw in decoded.flaws:
            self._report(message, flaw)
        if row is not None:
            table.message(message, row, decoded.sound)
        else:
            table.unreadable(conversation.stream, direction)

    def _report(self, message: Message, flaw: Flaw) -> None:
        self._findings.diagnostics.append(
            Diagnostic(
                message.stream,
                message.direction,
                message.ts_ns,
                flaw.severity,
                flaw.group,
                flaw.code,
                flaw.text,
                message.offset + flaw.offset,
                flaw.length,
                flaw.expected,
                flaw.clause,
                blame_of(message.direction),
                message.id,
            )
        )

    def _decode(self, server: _Server, direction: Direction, frame: bytes) -> Decoded:
        memo = server.memo[direction]
        decoded = memo.get(frame)
        if decoded is None:
            assert server.dissector is not None
            decoded = server.dissector.decode(frame, direction)
            if len(frame) <= MEMO_FRAME and (decoded.row is None or not decoded.row.is_fresh):
                if len(memo) >= MEMO_SIZE:
                    memo.clear()
                memo[frame] = decoded
        return decoded


def _no_findings() -> Findings:
    return Findings([], [], [], [], [], [], [])


def _port(endpoint: str) -> int:
    return int(endpoint.rpartition(":")[2])
