"""The anonymizer: a session's items with pseudonyms for everything that may identify a person.

The bytes are cut into messages as the inspector cuts them, and each is replaced by one of the same length. So
pieces, offsets, gaps and times stay. Everything else about a session follows from the new bytes.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from typing import get_args

import msgspec

from kiebitz.dissectors.anonymizing.frames import anonymized, blank, masked, own_words, words_as_bytes
from kiebitz.dissectors.anonymizing.pseudonyms import Pseudonyms
from kiebitz.dissectors.dissector import Dissector, ServerAddress, address_of
from kiebitz.dissectors.grammar.framing import FRAME_LIMIT, Frame, Framer
from kiebitz.dissectors.inspection.inspector import MAX_IDLE_SERVERS, DecodeAs, configured
from kiebitz.dissectors.inspection.memo import BoundedCache
from kiebitz.dissectors.inspection.recognition import Recognition, Undecided
from kiebitz.dissectors.model import (
    OPPOSITE,
    Action,
    Altered,
    Chunk,
    Direction,
    End,
    Fault,
    Gap,
    Item,
    Stream,
    ending_of,
)

QUOTE_LEFT_OUT = "the text is left out, as it quotes a peer"

_MAX_HELD = 2 * FRAME_LIMIT
"""Maximum number of bytes of one direction that wait for the end of their message; then they are processed
without it."""

_MAX_CACHED, _MAX_CACHED_SIZE = 4096, 512
"""Maximum number of cached messages with their replacements, and the maximum size of each in bytes."""

_RULE_WORDS = (
    *get_args(Action),
    *("jitter", "rate", "hook"),
    *("msg", "dir", "c2s", "s2c", "player", "client", "server", "stream", "game", "and", "or", "not", "in"),
    *("contains", "matches", "true", "false", "null", "after", "every", "first", "ms", "s"),
)
"""The words used in alteration rules, in addition to those of the protocols."""

_Memo = BoundedCache[tuple[str, Direction, bytes], bytes]
"""Replacements of earlier messages, by protocol and direction: a server sends the same to each client."""


class Anonymizer:
    """A transformation of the items of one session.

    Pseudonyms are created as they are needed; two sessions that share `pseudonyms` get the same ones.
    """

    def __init__(
        self,
        dissectors: Collection[Dissector],
        decode_as: DecodeAs,
        pseudonyms: Pseudonyms,
    ) -> None:
        words = [word for dissector in dissectors for word in dissector.grammar.words]
        self._pseudonyms = pseudonyms
        self._recognition = ProtocolDetection(dissectors, decode_as)
        self._conversations: dict[int, _Conversation] = {}
        self._memo: _Memo = BoundedCache(_MAX_CACHED, _MAX_CACHED_SIZE)
        self._words = words_as_bytes((*words, *_RULE_WORDS))

    def feed(self, item: Item) -> list[Item]:
        """Process the next item; return the items that are ready, in the order of their stream."""
        found: list[Item] = []
        for ready, dissector in self._recognition.feed(item):
            self._take(ready, dissector, found)
        return found

    def finish(self) -> list[Item]:
        """Process the end of all input; return the remaining items."""
        found: list[Item] = []
        for ready, dissector in self._recognition.finish():
            self._take(ready, dissector, found)
        for conversation in self._conversations.values():
            conversation.finish(found)
        return found

    def _take(self, item: Item, dissector: Dissector | None, found: list[Item]) -> None:
        conversation = self._conversations.get(item.stream.id)
        if conversation is None:
            conversation = _Conversation(item.stream, dissector, self._pseudonyms, self._memo)
            self._conversations[item.stream.id] = conversation
        if isinstance(item, Chunk):
            conversation.chunk(item, found)
        elif isinstance(item, Gap):
            conversation.gap(item, found)
        elif isinstance(item, Altered):
            conversation.altered(item, self._words, found)
        elif isinstance(item, Fault):
            found.append(conversation.fault(item))
        else:
            conversation.finish(found)
            found.append(End(conversation.stream, item.ts_ns, ending_of(item.reason)))
            del self._conversations[item.stream.id]


class _Conversation:
    """A stream with replaced addresses, and its items that wait for the end of a message."""

    def __init__(
        self, stream: Stream, dissector: Dissector | None, pseudonyms: Pseudonyms, memo: _Memo
    ) -> None:
        self.stream = msgspec.structs.replace(
            stream,
            client=pseudonyms.endpoint(stream.client),
            server=pseudonyms.endpoint(stream.server),
            protocol=None,
        )
        self.dissector = dissector
        self._memo = memo
        self._pseudonyms = pseudonyms
        self._buffers: dict[Direction, _DirectionBuffer] = {}

    def chunk(self, chunk: Chunk, found: list[Item]) -> None:
        """Process bytes."""
        if self.dissector is None:
            found.append(msgspec.structs.replace(chunk, stream=self.stream, data=blank(chunk.data)))
            return
        # As in the inspector, data from one side completes pending frames of the other.
        across = self._buffers.get(OPPOSITE[chunk.direction])
        if across is not None:
            across.settle(found)
        buffer = self._buffers.get(chunk.direction)
        if buffer is None:
            buffer = self._buffers[chunk.direction] = _DirectionBuffer(self, self.dissector, chunk.direction)
        buffer.chunk(chunk, found)

    def gap(self, gap: Gap, found: list[Item]) -> None:
        """Process missing bytes."""
        buffer = self._buffers.get(gap.direction)
        if buffer is None and self.dissector is not None:
            buffer = self._buffers[gap.direction] = _DirectionBuffer(self, self.dissector, gap.direction)
        if buffer is not None:
            buffer.gap(gap, found)
        else:
            found.append(msgspec.structs.replace(gap, stream=self.stream))

    def altered(self, item: Altered, words: frozenset[bytes], found: list[Item]) -> None:
        """Process Kiebitz's alteration of the next message."""
        other = msgspec.structs.replace(
            item,
            stream=self.stream,
            rule=masked(item.rule.encode(), words, self._pseudonyms).decode("utf-8", "replace"),
        )
        if item.original is not None:
            other.original, other.fields_json = blank(item.original), None
            if self.dissector is not None:
                # A dissector that raises leaves it blank.
                with suppress(Exception):
                    frame = self._frame_of(item.original, item.direction)
                    if frame is not None:
                        other.original = self.replaced(frame, item.original, item.direction)
                        replaced = self.anonymized(frame.data, item.direction)
                        decoded = self.dissector.codec.decode(replaced, item.direction)
                        if decoded.row is not None and item.fields_json is not None:
                            other.fields_json = decoded.fields_json
        if self.dissector is None or item.name not in self.dissector.grammar.words:
            other.name = None
        buffer = self._buffers.get(item.direction)
        if buffer is None:
            found.append(other)
        else:
            buffer.altered(other, found)

    def fault(self, fault: Fault) -> Fault:
        """Return a fault without names: a text that quotes a peer is replaced."""
        other = msgspec.structs.replace(fault, stream=self.stream)
        if fault.quotes:
            other.text, other.expected = QUOTE_LEFT_OUT, None
        return other

    def finish(self, found: list[Item]) -> None:
        """Process the end of both directions."""
        for buffer in self._buffers.values():
            buffer.end(found)

    def anonymized(self, data: bytes, direction: Direction) -> bytes:
        """Return the replacement of a message; its protocol must be known."""
        assert self.dissector is not None
        key = self.dissector.protocol, direction, data
        found = self._memo.get(key)
        if found is None:
            found = anonymized(data, direction, self.dissector, self._pseudonyms)
            self._memo.keep(key, found, len(data))
        return found

    def _frame_of(self, recorded: bytes, direction: Direction) -> Frame | None:
        """Return the frame of a message alone; None if it cannot be read without those before it."""
        carrier = self.dissector.encapsulation if self.dissector is not None else None
        if carrier is None:
            return Frame(0, recorded, len(recorded))
        return None if carrier.needs_history(recorded) else carrier.unwrap(recorded, direction)

    def replaced(self, frame: Frame, recorded: bytes, direction: Direction) -> bytes:
        """Return the replacement of the bytes of a frame."""
        carrier = self.dissector.encapsulation if self.dissector is not None else None
        if carrier is None:
            return self.anonymized(recorded, direction)
        known = own_words(self.dissector)
        message = self.anonymized(frame.data, direction) if carrier.has_message(frame.data) else frame.data
        return carrier.rewritten(frame, recorded, message, lambda data: masked(data, known, self._pseudonyms))


class _DirectionBuffer:
    """The waiting items of one direction, their bytes from `_done` on, and the replacements of those before.

    Messages that were compressed are longer then, so that the offsets of later items change.
    """

    def __init__(self, conversation: _Conversation, dissector: Dissector, direction: Direction) -> None:
        self._conversation = conversation
        self._direction: Direction = direction
        self._framer: Framer | None = None
        """None once the dissector has raised: from then on everything is blanked."""
        with suppress(Exception):
            self._framer = dissector.framer(direction)
        self._carrier = dissector.encapsulation
        self._waiting: deque[Chunk | Altered] = deque()
        self._held = bytearray()
        self._done = 0
        """The offset of the first held byte; those before are replaced."""
        self._replaced: deque[tuple[int, bytes]] = deque()
        """Replacements, each with the number of bytes in whose place it is."""
        self._out = 0
        """The offset of the next byte to emit."""
        self._is_frame = False
        """True if the held bytes certainly begin with a frame."""

    def chunk(self, chunk: Chunk, found: list[Item]) -> None:
        """Process bytes, and emit the items that they complete."""
        if chunk.offset != self._done + len(self._held):
            self.flush(found)
            self._out += chunk.offset - self._done
            self._done = chunk.offset
            self._is_frame = False
        self._waiting.append(chunk)
        self._held += chunk.data
        if chunk.missing:
            # The rest of this datagram is missing, so it cannot be read.
            self._blank(chunk.offset + len(chunk.data))
        else:
            self._read(lambda framer: framer.feed(chunk.offset, chunk.data))
        if len(self._held) > _MAX_HELD:
            self._blank(self._done + len(self._held))
            self._is_frame = False
        self._release(found)

    def altered(self, item: Altered, found: list[Item]) -> None:
        """Queue an alteration, which stays before the bytes that follow it."""
        self._waiting.append(item)
        self._release(found)

    def settle(self, found: list[Item]) -> None:
        """Complete the pending frame, as the other side is sending."""
        self._read(lambda framer: framer.settle())
        self._release(found)

    def gap(self, gap: Gap, found: list[Item]) -> None:
        """Process missing bytes after the held ones."""
        self._read(lambda framer: framer.gap(gap.offset, gap.length))
        self.flush(found)
        shift = self._out - self._done
        found.append(
            msgspec.structs.replace(gap, stream=self._conversation.stream, offset=gap.offset + shift)
        )

    def end(self, found: list[Item]) -> None:
        """Process the end of the direction."""
        self._read(lambda framer: framer.eof())
        self.flush(found)

    def flush(self, found: list[Item]) -> None:
        """Emit all waiting items."""
        self._blank(self._done + len(self._held))
        self._release(found)
        found.extend(
            msgspec.structs.replace(item, stream=self._conversation.stream) for item in self._waiting
        )
        self._waiting.clear()

    def _read(self, frames: Callable[[Framer], Iterable[Frame]]) -> None:
        """Replace the frames that the framer returns; if the dissector raises, blank everything."""
        if self._framer is not None:
            try:
                self._replace(frames(self._framer))
            except Exception:
                # The inspector reports it when it reads the rest.
                self._framer = None
        if self._framer is None:
            self._blank(self._done + len(self._held))

    def _replace(self, frames: Iterable[Frame]) -> None:
        for frame in frames:
            end = frame.offset + frame.size
            if self._carrier is not None and frame.offset > self._done and self._is_frame:
                # A control frame between the fragments of a message, which is replaced with it.
                continue
            if frame.cut in ("gap", "limit") or frame.offset < self._done:
                self._blank(end)
                self._is_frame = frame.cut != "gap"
                continue
            self._blank(frame.offset)
            self._is_frame = True
            self._put(self._conversation.replaced(frame, self._held_until(end), self._direction), frame.size)

    def _held_until(self, end: int) -> bytes:
        return bytes(self._held[: end - self._done])

    def _blank(self, end: int) -> None:
        """Blank the held bytes up to an offset, which cannot be read."""
        data = self._held_until(end)
        if data:
            is_frame = self._carrier is not None and self._is_frame and self._framer is not None
            self._put(self._carrier.blanked(data) if self._carrier and is_frame else blank(data), len(data))

    def _put(self, data: bytes, size: int) -> None:
        """Replace the first held bytes."""
        self._replaced.append((size, data))
        del self._held[:size]
        self._done += size

    def _release(self, found: list[Item]) -> None:
        """Emit the waiting items as far as their bytes are replaced.

        A piece with the end of a message and the beginning of another is emitted in two, so that messages on
        several streams keep their order.
        """
        while self._waiting:
            item = self._waiting[0]
            length = len(item.data) if isinstance(item, Chunk) else item.length
            is_whole = item.offset + length <= self._done
            if isinstance(item, Chunk) and (is_whole or item.offset < self._done):
                self._give(item, self._done - item.offset, found)
            elif is_whole:
                found.append(msgspec.structs.replace(item, offset=self._out))
            if not is_whole:
                break
            self._waiting.popleft()

    def _give(self, chunk: Chunk, most: int, found: list[Item]) -> None:
        """Emit the replacement of at most `most` of a chunk's bytes; the rest keeps waiting."""
        length = min(len(chunk.data), most)
        is_whole = length == len(chunk.data)
        data = self._taken(length)
        missing = chunk.missing if is_whole else 0
        if data or missing or not length:
            stream = self._conversation.stream
            found.append(
                msgspec.structs.replace(chunk, stream=stream, offset=self._out, data=data, missing=missing)
            )
        self._out += len(data) + missing
        if missing:
            self._done = chunk.offset + length + missing
        if not is_whole:
            rest = msgspec.structs.replace(chunk, offset=chunk.offset + length, data=chunk.data[length:])
            self._waiting[0] = rest

    def _taken(self, size: int) -> bytes:
        """Return the replacements of the next bytes to emit.

        One that is longer or shorter than what it replaces is emitted with the last of these bytes.
        """
        found: list[bytes] = []
        while size:
            number, data = self._replaced[0]
            if number <= size:
                self._replaced.popleft()
                found.append(data)
                size -= number
                continue
            if len(data) == number:
                found.append(data[:size])
                data = data[size:]
            self._replaced[0] = number - size, data
            break
        return b"".join(found)


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
