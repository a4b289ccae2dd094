"""Detection of each server's protocol; until then the server's items wait.

If it is wrong, nothing leaks: every word that is not the grammar's is replaced.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Iterator

import msgspec

from kiebitz.dissectors.dissector import Dissector, ServerAddress, address_of
from kiebitz.dissectors.inspection.inspector import MAX_IDLE_SERVERS, DecodeAs, configured
from kiebitz.dissectors.inspection.recognition import Recognition, Undecided
from kiebitz.dissectors.model import End, Item

DetectedItem = tuple[Item, Dissector | None]
"""An item and the dissector of its server; None without a known protocol."""


class _Server(Undecided, eq=False):
    """A server; once it `is_decided`, with the dissector of its protocol, or None without a known one."""

    dissector: Dissector | None = None
    is_decided: bool = False
    open_streams: set[int] = msgspec.field(default_factory=set)


class ProtocolDetection:
    """A filter that holds each server's items until its protocol is known or given up."""

    def __init__(self, dissectors: Collection[Dissector], decode_as: DecodeAs) -> None:
        self._recognition = Recognition(dissectors)
        self._together = [dissector for dissector in dissectors if dissector.together]
        self._decode_as = decode_as
        self._servers: dict[ServerAddress, _Server] = {}
        self._idle: OrderedDict[ServerAddress, None] = OrderedDict()
        """The servers without open streams, the one idle for longest first."""

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
        if server.is_decided or (isinstance(item, End) and not server.waiting):
            yield item, server.dissector
        else:
            found = self._recognition.wait(server, item)
            if found is not None or self._recognition.is_full(server):
                yield from self._decide(server, found)
        if server.open_streams:
            self._idle.pop(key, None)
        else:
            self._idle[key] = None
        if len(self._idle) > MAX_IDLE_SERVERS:
            oldest, _ = self._idle.popitem(last=False)
            yield from self._decide(self._servers.pop(oldest))

    def finish(self) -> Iterator[DetectedItem]:
        """Process the end of all input: decide what is undecided."""
        for server in self._servers.values():
            yield from self._decide(server)

    def _add_server(self, key: ServerAddress) -> _Server:
        for dissector in configured(self._decode_as, key):
            return _Server(dissector=dissector, is_decided=True)
        return _Server()

    def _decide(self, server: _Server, dissector: Dissector | None = None) -> Iterator[DetectedItem]:
        """Decide a server's protocol without waiting for more: the identified one, or the most similar."""
        if server.is_decided:
            return
        similar = self._recognition.most_similar(server) if dissector is None else None
        server.dissector = similar[0] if similar is not None else dissector
        server.is_decided = True
        for item in self._recognition.take(server):
            yield item, server.dissector
