"""Which protocol each server speaks, as the inspector finds it out; until then its items wait.

An inspector is asked about a server until that is known, and no more after that. Should it be mistaken,
nothing leaks, as all that is no word of the grammar is replaced.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Iterator

import msgspec

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.inspection.inspector import MAX_SERVERS, UNDECIDED_BYTES, DecodeAs, Inspector
from kiebitz.dissectors.model import Chunk, End, Ids, Item, Stream, port_of

Read = tuple[Item, Dissector | None]
"""An item, and what reads the bytes of its server; None if nobody knows."""


class _Server(msgspec.Struct, eq=False):
    """A server: `inspector` finds out what it speaks, and is None once that is decided."""

    inspector: Inspector | None = None
    dissector: Dissector | None = None
    waiting: list[Item] = msgspec.field(default_factory=list)
    waiting_bytes: int = 0
    copies: dict[int, Stream] = msgspec.field(default_factory=dict)
    """The inspector's own streams, as it writes into them."""
    open_streams: set[int] = msgspec.field(default_factory=set)


class Recognition:
    """Lets items pass, those of a server once it is known what that speaks, or that nobody knows."""

    def __init__(self, dissectors: Collection[Dissector], decode_as: DecodeAs) -> None:
        self._dissectors = dissectors
        self._decode_as = decode_as
        self._servers: dict[tuple[str, str], _Server] = {}
        self._idle: OrderedDict[tuple[str, str], None] = OrderedDict()
        """The servers that nobody is speaking to, the one longest left alone first."""
        self._waiting_bytes = 0

    def feed(self, item: Item) -> Iterator[Read]:
        """Take the next item; give those that need not wait, in order."""
        stream = item.stream
        key = (stream.transport, stream.server)
        server = self._servers.get(key)
        if server is None:
            server = self._servers[key] = self._met(stream)
        if isinstance(item, End):
            server.open_streams.discard(stream.id)
        else:
            server.open_streams.add(stream.id)
        if server.inspector is None:
            yield item, server.dissector
        else:
            yield from self._ask(server, server.inspector, item)
        if server.open_streams:
            self._idle.pop(key, None)
        else:
            self._idle[key] = None
        if len(self._idle) > MAX_SERVERS:
            oldest, _ = self._idle.popitem(last=False)
            yield from self._given_up(self._servers.pop(oldest))

    def finish(self) -> Iterator[Read]:
        """Nothing more comes: decide what is undecided."""
        for server in self._servers.values():
            yield from self._given_up(server)

    def _met(self, stream: Stream) -> _Server:
        port = stream.transport, port_of(stream.server)
        if port in self._decode_as:
            return _Server(dissector=self._decode_as[port])
        return _Server(inspector=Inspector(self._dissectors, Ids()))

    def _ask(self, server: _Server, inspector: Inspector, item: Item) -> Iterator[Read]:
        """See whether an item decides what a server speaks; else it waits."""
        server.waiting.append(item)
        if isinstance(item, Chunk):
            server.waiting_bytes += len(item.data)
            self._waiting_bytes += len(item.data)
        copy = server.copies.setdefault(item.stream.id, msgspec.structs.replace(item.stream))
        inspector.feed(msgspec.structs.replace(item, stream=copy))
        if isinstance(item, End):
            del server.copies[item.stream.id]
        if self._waiting_bytes > UNDECIDED_BYTES:
            inspector.finish()
        if inspector.context_of(copy) is not None or not inspector.is_undecided(copy):
            yield from self._decided(server, inspector)

    def _given_up(self, server: _Server) -> Iterator[Read]:
        """No more of a server can be waited for: it speaks what its messages look like, if anything."""
        if server.inspector is not None:
            server.inspector.finish()
            yield from self._decided(server, server.inspector)

    def _decided(self, server: _Server, inspector: Inspector) -> Iterator[Read]:
        waited, server.waiting = server.waiting, []
        self._waiting_bytes -= server.waiting_bytes
        server.inspector = None
        server.copies.clear()
        context = inspector.context_of(waited[0].stream) if waited else None
        if context is not None:
            protocol = context.info.protocol
            server.dissector = next(each for each in self._dissectors if each.protocol == protocol)
        for item in waited:
            yield item, server.dissector
