"""Detection of each server's protocol by an inspector; until then the server's items wait.

The inspector is used until a server's protocol is known, and not after that. If it is wrong, nothing leaks:
every word that is not the grammar's is replaced.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Iterator

import msgspec

from kiebitz.dissectors.dissector import Dissector, ServerAddress, address_of
from kiebitz.dissectors.inspection.inspector import (
    MAX_IDLE_SERVERS,
    MAX_UNDECIDED_BYTES,
    DecodeAs,
    Inspector,
    configured,
)
from kiebitz.dissectors.model import Chunk, End, Ids, Item, Stream

DetectedItem = tuple[Item, Dissector | None]
"""An item and the dissector of its server; None without a known protocol."""


class _Server(msgspec.Struct, eq=False):
    """A server with the inspector that detects its protocol, None once that is decided."""

    inspector: Inspector | None = None
    dissector: Dissector | None = None
    waiting: list[Item] = msgspec.field(default_factory=list)
    waiting_bytes: int = 0
    copies: dict[int, Stream] = msgspec.field(default_factory=dict)
    """Copies of the streams for the inspector, which writes to them."""
    open_streams: set[int] = msgspec.field(default_factory=set)


class ProtocolDetection:
    """A filter that holds each server's items until its protocol is known or given up."""

    def __init__(self, dissectors: Collection[Dissector], decode_as: DecodeAs) -> None:
        self._dissectors = dissectors
        self._together = [dissector for dissector in dissectors if dissector.together]
        self._decode_as = decode_as
        self._servers: dict[ServerAddress, _Server] = {}
        self._idle: OrderedDict[ServerAddress, None] = OrderedDict()
        """The servers without open streams, the one idle for longest first."""
        self._waiting_bytes = 0

    def feed(self, item: Item) -> Iterator[DetectedItem]:
        """Process the next item; yield the items that need not wait, in order."""
        stream = item.stream
        key = address_of(stream.transport, stream.server, self._together)
        server = self._servers.get(key)
        if server is None:
            server = self._servers[key] = self._add_server(key)
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
        if len(self._idle) > MAX_IDLE_SERVERS:
            oldest, _ = self._idle.popitem(last=False)
            yield from self._given_up(self._servers.pop(oldest))

    def finish(self) -> Iterator[DetectedItem]:
        """Process the end of all input: decide what is undecided."""
        for server in self._servers.values():
            yield from self._given_up(server)

    def _add_server(self, key: ServerAddress) -> _Server:
        for dissector in configured(self._decode_as, key):
            return _Server(dissector=dissector)
        return _Server(inspector=Inspector(self._dissectors, Ids()))

    def _ask(self, server: _Server, inspector: Inspector, item: Item) -> Iterator[DetectedItem]:
        """Feed an item to the inspector; it waits until the server's protocol is decided."""
        server.waiting.append(item)
        if isinstance(item, Chunk):
            server.waiting_bytes += len(item.data)
            self._waiting_bytes += len(item.data)
        copy = server.copies.setdefault(item.stream.id, msgspec.structs.replace(item.stream))
        inspector.feed(msgspec.structs.replace(item, stream=copy))
        if isinstance(item, End):
            del server.copies[item.stream.id]
        if self._waiting_bytes > MAX_UNDECIDED_BYTES:
            inspector.finish()
        if inspector.context_of(copy) is not None or not inspector.is_undecided(copy):
            yield from self._decided(server, inspector)

    def _given_up(self, server: _Server) -> Iterator[DetectedItem]:
        """Decide a server's protocol without waiting for more."""
        if server.inspector is not None:
            server.inspector.finish()
            yield from self._decided(server, server.inspector)

    def _decided(self, server: _Server, inspector: Inspector) -> Iterator[DetectedItem]:
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
