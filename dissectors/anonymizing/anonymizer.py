"""A session's items, each again with stand-ins for all that may tell who somebody is.

The bytes are cut into messages as the inspector cuts them, and each is replaced by one of the same length: so
pieces, offsets, gaps and times stay. All else that is known of a session follows from the new bytes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection
from typing import get_args

import msgspec

from kiebitz.dissectors.anonymizing.frames import anonymized, blank, masked, words_as_bytes
from kiebitz.dissectors.anonymizing.protocol_detection import Recognition
from kiebitz.dissectors.anonymizing.pseudonyms import StandIns
from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.grammar.framing import FRAME_LIMIT, Frame, Framer
from kiebitz.dissectors.inspection.inspector import DIVERGENCE, DecodeAs
from kiebitz.dissectors.inspection.memo import BoundedDict
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
)

_MAX_HELD = 2 * FRAME_LIMIT
"""So many bytes of one direction wait for the end of their message; then they are made out without it."""

_MAX_REMEMBERED, _MAX_REMEMBERED_LENGTH = 4096, 512
"""So many messages, each of so many bytes at the most, are remembered with what is said in their place."""

_OF_RULES = (
    *get_args(Action),
    *("jitter", "rate", "hook"),
    *("msg", "dir", "c2s", "s2c", "player", "client", "server", "stream", "game", "and", "or", "not", "in"),
    *("contains", "matches", "true", "false", "null", "after", "every", "first", "ms", "s"),
)
"""The words in which rules are written, beside those of the protocols."""

_Memo = BoundedDict[tuple[str, Direction, bytes], bytes]
"""By protocol and direction, what comes of messages that came before: a server tells each client the same."""


class Anonymizer:
    """Takes the items of one session, and gives them again.

    `stand_ins` are found as they are needed; of two sessions with the same ones each name is the same.
    """

    def __init__(
        self,
        dissectors: Collection[Dissector],
        decode_as: DecodeAs,
        stand_ins: StandIns,
    ) -> None:
        words = [word for dissector in dissectors for word in dissector.grammar.words]
        self._stand_ins = stand_ins
        self._recognition = Recognition(dissectors, decode_as)
        self._conversations: dict[int, _Conversation] = {}
        self._memo: _Memo = BoundedDict(_MAX_REMEMBERED, _MAX_REMEMBERED_LENGTH)
        self._words = words_as_bytes((*words, *_OF_RULES))

    def feed(self, item: Item) -> list[Item]:
        """Take the next item; give those that are known by now, in the order of their stream."""
        found: list[Item] = []
        for ready, dissector in self._recognition.feed(item):
            self._take(ready, dissector, found)
        return found

    def finish(self) -> list[Item]:
        """Nothing more comes: all that is left."""
        found: list[Item] = []
        for ready, dissector in self._recognition.finish():
            self._take(ready, dissector, found)
        for conversation in self._conversations.values():
            conversation.finish(found)
        return found

    def _take(self, item: Item, dissector: Dissector | None, found: list[Item]) -> None:
        conversation = self._conversations.get(item.stream.id)
        if conversation is None:
            conversation = _Conversation(item.stream, dissector, self._stand_ins, self._memo)
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
            found.append(End(conversation.stream, item.ts_ns, item.reason))
            del self._conversations[item.stream.id]


class _Conversation:
    """A stream with other addresses, and what of it waits for the end of a message."""

    def __init__(self, stream: Stream, dissector: Dissector | None, stand_ins: StandIns, memo: _Memo) -> None:
        self.stream = msgspec.structs.replace(
            stream,
            client=stand_ins.endpoint(stream.client),
            server=stand_ins.endpoint(stream.server),
            protocol=None,
        )
        self.dissector = dissector
        self._memo = memo
        self._stand_ins = stand_ins
        self._ways: dict[Direction, _Way] = {}

    def chunk(self, chunk: Chunk, found: list[Item]) -> None:
        """Take bytes."""
        if self.dissector is None:
            found.append(msgspec.structs.replace(chunk, stream=self.stream, data=blank(chunk.data)))
            return
        # As the inspector does: the other side speaks.
        across = self._ways.get(OPPOSITE[chunk.direction])
        if across is not None:
            across.settle(found)
        way = self._ways.get(chunk.direction)
        if way is None:
            way = self._ways[chunk.direction] = _Way(self, self.dissector, chunk.direction)
        way.chunk(chunk, found)

    def gap(self, gap: Gap, found: list[Item]) -> None:
        """Bytes are missing."""
        way = self._ways.get(gap.direction)
        if way is None and self.dissector is not None:
            way = self._ways[gap.direction] = _Way(self, self.dissector, gap.direction)
        if way is not None:
            way.gap(gap, found)
        found.append(msgspec.structs.replace(gap, stream=self.stream))

    def altered(self, item: Altered, words: frozenset[bytes], found: list[Item]) -> None:
        """What Kiebitz has done to the message that comes next."""
        other = msgspec.structs.replace(
            item,
            stream=self.stream,
            rule=masked(item.rule.encode(), words, self._stand_ins).decode("utf-8", "replace"),
        )
        if item.original is not None:
            other.original, other.fields_json = blank(item.original), None
            if self.dissector is not None:
                other.original = self.anonymized(item.original, item.direction)
                decoded = self.dissector.codec.decode(other.original, item.direction)
                if decoded.row is not None and item.fields_json is not None:
                    other.fields_json = decoded.fields_json
        if self.dissector is None or item.name not in self.dissector.grammar.words:
            other.name = None
        way = self._ways.get(item.direction)
        if way is None:
            found.append(other)
        else:
            way.altered(other, found)

    def fault(self, fault: Fault) -> Fault:
        """What the source knew; where a live peer parted from a record, the text quotes both."""
        other = msgspec.structs.replace(fault, stream=self.stream)
        if fault.code == DIVERGENCE:
            other.text, other.expected = "the peer says something else than in the record", None
        return other

    def finish(self, found: list[Item]) -> None:
        """Nothing more comes of either direction."""
        for way in self._ways.values():
            way.end(found)

    def anonymized(self, data: bytes, direction: Direction) -> bytes:
        """A message's bytes; its protocol is known."""
        assert self.dissector is not None
        key = self.dissector.protocol, direction, data
        found = self._memo.get(key)
        if found is None:
            found = anonymized(data, direction, self.dissector, self._stand_ins)
            self._memo.keep(key, found, len(data))
        return found


class _Way:
    """One direction: the items that wait, and their bytes, of which those before `_done` are new ones."""

    def __init__(self, conversation: _Conversation, dissector: Dissector, direction: Direction) -> None:
        self._conversation = conversation
        self._framer: Framer = dissector.framer(direction)
        self._direction: Direction = direction
        self._waiting: deque[Chunk | Altered] = deque()
        self._held = bytearray()
        self._start = 0
        """The offset of the first byte that is held."""
        self._done = 0

    def chunk(self, chunk: Chunk, found: list[Item]) -> None:
        """Take bytes, and give what is whole with them."""
        if chunk.offset != self._start + len(self._held):
            self.flush(found)
            self._start = self._done = chunk.offset
        self._waiting.append(chunk)
        self._held += chunk.data
        if chunk.missing:
            # The rest of this datagram is not there, and nobody can read it.
            self._blank(chunk.offset + len(chunk.data))
        else:
            self._frames(self._framer.feed(chunk.offset, chunk.data))
        if self._start + len(self._held) - self._done > _MAX_HELD:
            self._blank(self._start + len(self._held))
        self._release(found)

    def altered(self, item: Altered, found: list[Item]) -> None:
        """Take an alteration, which stays before the bytes behind it."""
        self._waiting.append(item)
        self._release(found)

    def settle(self, found: list[Item]) -> None:
        """The other side speaks."""
        self._frames(self._framer.settle())
        self._release(found)

    def gap(self, gap: Gap, found: list[Item]) -> None:
        """Bytes are missing behind those that came."""
        self._frames(self._framer.gap(gap.offset, gap.length))
        self.flush(found)

    def end(self, found: list[Item]) -> None:
        """Nothing more comes."""
        self._frames(self._framer.eof())
        self.flush(found)

    def flush(self, found: list[Item]) -> None:
        """Give all that waits."""
        self._blank(self._start + len(self._held))
        self._release(found)
        found.extend(
            msgspec.structs.replace(item, stream=self._conversation.stream) for item in self._waiting
        )
        self._waiting.clear()

    def _frames(self, frames: Collection[Frame]) -> None:
        for frame in frames:
            end = frame.offset + frame.size
            if frame.cut in ("gap", "limit") or frame.offset < self._done:
                self._blank(end)
                continue
            self._blank(frame.offset)
            data = bytes(self._held[frame.offset - self._start : end - self._start])
            self._put(self._conversation.anonymized(data, self._direction))

    def _blank(self, end: int) -> None:
        """Nobody can read what is held up to there."""
        if end > self._done:
            self._put(blank(bytes(self._held[self._done - self._start : end - self._start])))

    def _put(self, data: bytes) -> None:
        """These are the next bytes."""
        place = self._done - self._start
        self._held[place : place + len(data)] = data
        self._done += len(data)

    def _release(self, found: list[Item]) -> None:
        """Give what waits as far as its bytes are new ones.

        A piece that has the end of a message and the beginning of another is given in two, so that messages
        on several streams stay in their order.
        """
        while self._waiting:
            item = self._waiting[0]
            length = len(item.data) if isinstance(item, Chunk) else item.length
            is_whole = item.offset + length <= self._done
            if isinstance(item, Chunk) and (is_whole or item.offset < self._done):
                self._give(item, self._done - item.offset, found)
            elif is_whole:
                found.append(item)
            if not is_whole:
                break
            self._waiting.popleft()

    def _give(self, chunk: Chunk, most: int, found: list[Item]) -> None:
        """Give the first bytes of what waits, at most so many; the others go on waiting."""
        length = min(len(chunk.data), most)
        is_whole = length == len(chunk.data)
        data = bytes(self._held[:length])
        missing = chunk.missing if is_whole else 0
        found.append(
            msgspec.structs.replace(chunk, stream=self._conversation.stream, data=data, missing=missing)
        )
        del self._held[:length]
        self._start += length + missing
        self._done = max(self._done, self._start)
        if not is_whole:
            rest = msgspec.structs.replace(chunk, offset=chunk.offset + length, data=chunk.data[length:])
            self._waiting[0] = rest
