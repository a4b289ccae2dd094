"""The framer of WebSocket: from the bytes of one direction to plain frames."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Literal

import msgspec

from kiebitz.dissectors.grammar.framing import FRAME_LIMIT, Cut, Frame, Framer
from kiebitz.dissectors.grammar.grammar import Violation
from kiebitz.dissectors.model import Direction
from kiebitz.dissectors.websocket import violations as errors
from kiebitz.dissectors.websocket.frames import (
    CLOSE,
    CONTINUATION,
    FIN,
    MAX_CONTROL,
    OPCODES,
    RESERVED,
    RSV1,
    Header,
    masked,
    read_header,
    write_frame,
)
from kiebitz.dissectors.websocket.handshake import MAX_HEAD, Head, head_end, may_begin, read_head, violations
from kiebitz.dissectors.websocket.violations import moved, placed

MAX_INFLATED = 16 << 20
"""Maximum size in bytes to which a message is decompressed; of more, the rest of the stream is unreadable."""

_TAIL = b"\x00\x00\xff\xff"
"""Bytes that a sender removes from the end of a message: RFC 7692, section 7.2.1."""

_WINDOW = 32 << 10


class Inflater:
    """The decompressor of one direction; messages may refer to earlier ones."""

    def __init__(self) -> None:
        self._stream = zlib.decompressobj(-zlib.MAX_WBITS)
        self._window = b""
        self.is_lost = False
        """True if earlier bytes are unknown: a message that refers to them cannot be read."""

    def inflate(self, payload: bytes, limit: int) -> bytes | None:
        """Return a message, or its first bytes: at most one more than `limit`; None if it is not readable."""
        found = bytearray()
        size = 0
        rest = payload + _TAIL
        try:
            while rest and not self._stream.eof and size <= MAX_INFLATED:
                piece = self._stream.decompress(rest, 1 << 16)
                rest = self._stream.unconsumed_tail
                if not piece and not rest:
                    break
                size += len(piece)
                self._window = (self._window + piece)[-_WINDOW:]
                found += piece[: limit + 1 - len(found)]
        except zlib.error:
            self.forget()
            return None
        if self._stream.eof:
            # A last block: the next message begins a new stream, which may refer to this one.
            self._stream = zlib.decompressobj(-zlib.MAX_WBITS, self._window)
        elif size > MAX_INFLATED:
            self.forget()
        return bytes(found)

    def forget(self) -> None:
        """Forget all earlier bytes, as some are missing."""
        self._stream = zlib.decompressobj(-zlib.MAX_WBITS)
        self._window = b""
        self.is_lost = True


_PLAUSIBLE = 1 << 16
"""Maximum length, in bytes, of a frame from which the framer may resume after missing bytes."""

_MAX_SPANS = 64
"""Maximum number of fragments whose places are kept."""

_AHEAD_BYTES = 2 * FRAME_LIMIT
"""Size, in bytes, of the plain frames that are made at once."""

State = Literal["head", "body", "frames", "foreign", "lost"]
"""Kind of the next bytes: a head of HTTP, its body, frames, another protocol, or an unknown one of these."""

_MAX_VIOLATIONS = 100
"""Maximum number of violations of one message."""


class _Connection(msgspec.Struct):
    """State shared by both directions: the client's key, and whether messages may be compressed."""

    key: str | None = None
    deflates: bool | None = None


class _Parts(msgspec.Struct):
    """The fragments of a message that have arrived; of one that `is_too_long` the payload is not kept."""

    start: int
    opcode: int
    is_compressed: bool
    payload: bytearray = bytearray()
    is_too_long: bool = False
    spans: list[tuple[int, int, int]] = []
    violations: list[Violation] = []


class WebSocketFramer(Framer):
    """A framer of plain frames: see the package's description.

    After missing bytes within a frame, the next one begins where that one ends. Otherwise it begins at the
    first plausible header that leads to another one.
    """

    def __init__(self, direction: Direction, begins: bool = True) -> None:
        """Create a framer.

        Args:
            direction: The direction of the stream.
            begins: True if the stream begins with a handshake, False if with a frame.
        """
        super().__init__(direction)
        self._held = bytearray()
        self._start = 0
        """Offset of the held bytes."""
        self._state: State = "head" if begins else "frames"
        self._searched = 0
        self._skipped = 0
        """Number of bytes to come of a frame or body that is too long to be kept."""
        self._skipped_from = 0
        self._skipped_header: Header | None = None
        self._seen = 0 if begins else 1
        """Number of frames since the handshake."""
        self._foreign = errors.NO_UPGRADE
        """Violation of bytes that are no WebSocket."""
        self._is_closed = False
        self._is_broken = False
        """True if fragments may follow whose beginning is missing."""
        self._parts: _Parts | None = None
        self._inflater = Inflater()
        self._connection = _Connection()

    # The stream.

    def feed(self, offset: int, data: bytes) -> Iterable[Frame]:
        if not self._held and not self._skipped:
            self._start = offset
        self._held += data
        return self._read(is_end=False)

    def gap(self, offset: int, length: int | None) -> Sequence[Frame]:
        frames: list[Frame] = []
        header = self._skipped_header or (read_header(self._held) if self._state == "frames" else None)
        rest = 0
        if header is not None and length is not None:
            here = self._skipped or header.end - len(self._held)
            rest = here - length
        self._release_rest(frames, "gap")
        if rest == 0 and header is not None and length is not None:
            self._state = "frames"
        elif rest > 0 and length is not None:
            self._state, self._skipped, self._skipped_from = "frames", rest, offset + length
        elif self._state != "foreign":
            self._state = "lost"
        self._inflater.forget()
        self._is_broken = True
        self._start = offset + (length or 0)
        return frames

    def eof(self) -> Iterable[Frame]:
        yield from self._read(is_end=True)
        frames: list[Frame] = []
        self._release_rest(frames, "end")
        yield from frames

    def meet(self, other: Framer) -> None:
        if isinstance(other, WebSocketFramer):
            self._connection = other._connection

    @property
    def is_unfinished(self) -> bool:
        return bool(self._held or self._parts is not None or (self._skipped and self._state != "body"))

    def _release_rest(self, frames: list[Frame], cut: Cut) -> None:
        """Emit what has arrived of an incomplete message, as cut."""
        if self._state == "lost":
            cut = "gap"
        held, self._held = bytes(self._held), bytearray()
        end = self._start + len(held)
        parts, self._parts = self._parts, None
        start = self._start
        if parts is not None:
            start = parts.start
        elif self._skipped:
            start = self._skipped_from
        if self._state == "foreign":
            if held:
                frames.append(self._foreign_frame(start, held, len(held)))
        elif end > start:
            data = held if cut == "end" and parts is None else b""
            found = (placed(errors.AFTER_GAP, (0, end - start)),) if self._state == "lost" else ()
            frames.append(Frame(start, data, end - start, cut, violations=found))
        self._skipped, self._skipped_header, self._searched = 0, None, 0
        self._start = end

    def _read(self, is_end: bool) -> Iterable[Frame]:
        """Return the frames that are complete in the held bytes.

        A segment may have hundreds of compressed messages of a mebibyte each: beyond `_AHEAD_BYTES`, frames
        are made while they are consumed.
        """
        frames, is_all = self._read_some(is_end)
        return frames if is_all else chain(frames, self._read_on(is_end))

    def _read_on(self, is_end: bool) -> Iterator[Frame]:
        is_all = False
        while not is_all:
            frames, is_all = self._read_some(is_end)
            yield from frames

    def _read_some(self, is_end: bool) -> tuple[list[Frame], bool]:
        """Return frames of about `_AHEAD_BYTES`, and True if there are no further ones."""
        frames: list[Frame] = []
        counted = size = 0
        while self._read_one(frames, is_end):
            size += sum(len(frame.data) for frame in frames[counted:])
            counted = len(frames)
            if size >= _AHEAD_BYTES:
                return frames, False
        return frames, True

    def _read_one(self, frames: list[Frame], is_end: bool) -> bool:
        """Read the next frame, head or other part; return False if no complete one is held."""
        if not self._held:
            return False
        if self._skipped:
            return self._skip(frames)
        match self._state:
            case "head":
                return self._read_head(frames)
            case "lost":
                return self._seek(frames, is_end)
            case "foreign":
                return self._drop_foreign(frames)
            case _:
                return self._read_frame(frames)

    def _skip(self, frames: list[Frame]) -> bool:
        """Drop bytes of a frame or body that is not kept; return True if it has ended."""
        count = min(self._skipped, len(self._held))
        self._advance(count)
        self._skipped -= count
        if self._skipped:
            return False
        header, self._skipped_header = self._skipped_header, None
        size = self._start - self._skipped_from
        if header is not None:
            self._take(header, None, self._skipped_from, frames)
        elif self._state == "body":
            self._state = "head"
            frames.append(self._foreign_frame(self._skipped_from, b"", size))
        else:
            frames.append(Frame(self._skipped_from, b"", size, "gap"))
        return True

    def _advance(self, count: int) -> None:
        del self._held[:count]
        self._start += count

    # The handshake.

    def _read_head(self, frames: list[Frame]) -> bool:
        held = self._held
        if not may_begin(held, self._direction):
            begun = self._plausible(0)
            if begun is None:
                return False
            # Either the handshake was before the capture, or these are no frames at all.
            self._state, self._foreign = ("lost" if begun else "foreign"), errors.NO_HANDSHAKE
            return True
        end = head_end(held, self._searched)
        if end is None:
            self._searched = len(held)
            if len(held) <= MAX_HEAD:
                return False
            self._state, self._searched = "foreign", 0
            return True
        self._searched = 0
        data = bytes(held[:end])
        head = read_head(data)
        if head is None:
            self._state = "foreign"
            return True
        offset = self._start
        self._advance(end)
        self._follow(head)
        found = [*violations(head, data, self._connection.key)]
        if not head.is_upgrade:
            found.append(placed(errors.NO_UPGRADE, (0, end)))
        frames.append(Frame(offset, data, end, violations=tuple(found)))
        return True

    def _follow(self, head: Head) -> None:
        """Decide what follows a head."""
        if head.is_upgrade:
            self._state, self._seen, self._is_closed = "frames", 0, False
            if head.status is None:
                self._connection.key = head.fields.get("sec-websocket-key")
                self._connection.deflates = None if head.deflates else False
            else:
                self._connection.deflates = head.deflates
        elif head.body_length is None:
            self._state = "foreign"
        else:
            self._state, self._skipped = ("body", head.body_length) if head.body_length else ("head", 0)
            self._skipped_from = self._start

    def _drop_foreign(self, frames: list[Frame]) -> bool:
        """Emit bytes that are no WebSocket in pieces, each as long as a frame may be."""
        if len(self._held) < FRAME_LIMIT:
            return False
        frames.append(self._foreign_frame(self._start, bytes(self._held[:FRAME_LIMIT]), FRAME_LIMIT))
        self._advance(FRAME_LIMIT)
        return True

    def _foreign_frame(self, offset: int, data: bytes, size: int) -> Frame:
        return Frame(offset, data, size, violations=(placed(self._foreign, (0, size)),))

    # Frames.

    def _read_frame(self, frames: list[Frame]) -> bool:
        held = self._held
        if not self._seen and self._direction == "c2s" and held[:4] == b"GET "[: len(held[:4])]:
            # The server has not accepted the first upgrade.
            self._state = "head"
            return True
        header = read_header(held)
        if header is None:
            return False
        if header.length > FRAME_LIMIT:
            self._skipped, self._skipped_from, self._skipped_header = header.end, self._start, header
            return True
        if len(held) < header.end:
            return False
        payload = masked(bytes(held[header.start : header.end]), header.mask)
        offset = self._start
        self._advance(header.end)
        self._take(header, payload, offset, frames)
        return True

    def _take(self, header: Header, payload: bytes | None, offset: int, frames: list[Frame]) -> None:
        """Process a complete frame; `payload` is None if it is too long to be kept."""
        self._seen += 1
        found = [*self._violations(header)]
        if header.opcode == CLOSE:
            self._is_closed = True
        if header.is_control:
            if payload is None:
                frames.append(Frame(offset, b"", header.end, "limit", violations=tuple(found)))
                return
            spans = ((0, header.start, header.length),)
            frames.append(_plain_frame(header.opcode, payload, offset, header.end, spans, found))
            return
        if header.opcode != CONTINUATION:
            self._is_broken = False
            if self._parts is not None:
                frames.append(self._interrupted(self._parts, offset))
                self._parts = None
        elif self._is_broken and self._parts is None:
            found.append(placed(errors.AFTER_GAP, (0, header.end)))
            frames.append(Frame(offset, b"", header.end, "gap", violations=tuple(found)))
            return
        parts = self._parts
        if parts is None:
            is_compressed = bool(header.first & RSV1) and self._connection.deflates is not False
            parts = self._parts = _Parts(offset, header.opcode, is_compressed)
        distance = offset - parts.start
        room = _MAX_VIOLATIONS - len(parts.violations)
        parts.violations += [moved(each, distance) for each in found[:room]]
        if payload is None or parts.is_too_long or len(parts.payload) + len(payload) > FRAME_LIMIT:
            parts.is_too_long = True
            parts.payload.clear()
        else:
            if len(parts.spans) < _MAX_SPANS:
                parts.spans.append((len(parts.payload), distance + header.start, header.length))
            parts.payload += payload
        if header.first & FIN:
            self._parts = None
            frames.append(self._message(parts, offset + header.end - parts.start))

    def _interrupted(self, parts: _Parts, offset: int) -> Frame:
        """Return the frame of a message that another one interrupts at an offset."""
        size = offset - parts.start
        violation = placed(errors.INTERRUPTED, (0, size))
        return Frame(parts.start, b"", size, "gap", violations=(*parts.violations, violation))

    def _message(self, parts: _Parts, size: int) -> Frame:
        """Return the plain frame of a message whose fragments are complete."""
        found = parts.violations
        if parts.is_too_long:
            if parts.is_compressed:
                self._inflater.forget()
            return Frame(parts.start, b"", size, "limit", violations=tuple(found))
        if not parts.is_compressed:
            return _plain_frame(parts.opcode, bytes(parts.payload), parts.start, size, parts.spans, found)
        was_lost = self._inflater.is_lost
        payload = self._inflater.inflate(bytes(parts.payload), FRAME_LIMIT)
        if payload is None:
            why = placed(errors.AFTER_GAP if was_lost else errors.NOT_INFLATABLE, (0, size))
            return Frame(parts.start, b"", size, "gap", violations=(*found, why))
        if len(payload) > FRAME_LIMIT:
            return Frame(parts.start, b"", size, "limit", violations=tuple(found))
        return _plain_frame(parts.opcode, payload, parts.start, size, (), found)

    def _violations(self, header: Header) -> Iterator[Violation]:
        """Yield the errors of a frame; their places count from its start."""
        start, first = (0, 1), header.first
        if self._is_closed and not header.is_control:
            yield placed(errors.AFTER_CLOSE, (0, header.end))
        if bool(header.mask) != (self._direction == "c2s"):
            yield placed(errors.MASKED if header.mask else errors.NOT_MASKED, (1, 1))
        bits = first & RESERVED
        if bits & RSV1 and self._connection.deflates is not False:
            bits &= ~RSV1
            if header.is_control or header.opcode == CONTINUATION:
                yield placed(errors.COMPRESSED_FRAGMENT, start)
        if bits:
            yield placed(errors.reserved_bits(bits), start)
        if header.opcode not in OPCODES:
            yield placed(errors.reserved_opcode(header.opcode), start)
        elif header.is_control:
            if not first & FIN:
                yield placed(errors.FRAGMENTED_CONTROL, start)
            if header.length > MAX_CONTROL:
                yield placed(errors.long_control(header.length), (1, header.start - 1))
        elif header.opcode == CONTINUATION and self._parts is None and not self._is_broken:
            yield placed(errors.LONE_CONTINUATION, start)
        if header.length >> 63:
            yield placed(errors.NEGATIVE_LENGTH, (1, 9))
        elif not header.is_shortest:
            yield placed(errors.LONGER_LENGTH, (1, header.start - 1 - len(header.mask)))

    # After missing bytes.

    def _seek(self, frames: list[Frame], is_end: bool) -> bool:
        """Resume at the first plausible frame; return False if there may be one later."""
        held = self._held
        at = self._searched
        while at < len(held):
            verdict = self._is_frame(at, is_end)
            if verdict is None:
                break
            if verdict:
                self._searched = 0
                if at:
                    frames.append(self._lost_frame(at))
                    self._advance(at)
                self._state, self._seen, self._is_broken = "frames", 1, True
                return True
            at += 1
        self._searched = at
        if at >= FRAME_LIMIT:
            frames.append(self._lost_frame(at))
            self._advance(at)
            self._searched = 0
        return False

    def _lost_frame(self, size: int) -> Frame:
        return Frame(self._start, b"", size, "gap", violations=(placed(errors.AFTER_GAP, (0, size)),))

    def _is_frame(self, at: int, is_end: bool) -> bool | None:
        """Return True if a plausible frame here leads to another one; None if too few bytes are known."""
        header = self._plausible(at)
        if not isinstance(header, Header):
            return header
        end = at + header.end
        if end >= len(self._held):
            return (end == len(self._held)) if is_end else None
        following = self._plausible(end)
        if following is None:
            return True if is_end else None
        return isinstance(following, Header)

    def _plausible(self, at: int) -> Header | Literal[False] | None:
        """Return the header at an offset of the held bytes; False if it is none, None if it is incomplete."""
        first = self._held[at]
        if first & (RESERVED & ~RSV1) or first & 0x0F not in OPCODES:
            return False
        header = read_header(self._held, at)
        if header is None:
            return None
        is_right = (
            bool(header.mask) == (self._direction == "c2s")
            and header.is_shortest
            and header.length <= _PLAUSIBLE
            and (not header.is_control or (bool(first & FIN) and header.length <= MAX_CONTROL))
        )
        return header if is_right else False


_NO_SPANS = ((0, 0, 0),)
"""Spans of a frame whose bytes are nowhere in the stream as they are."""


def _plain_frame(
    opcode: int,
    payload: bytes,
    offset: int,
    size: int,
    spans: Sequence[tuple[int, int, int]],
    violations: Sequence[Violation],
) -> Frame:
    """Return the plain frame of a payload.

    The positions of `spans` count from the start of the payload; without any, only the whole has a place.
    """
    data = write_frame(opcode, payload)
    shift = len(data) - len(payload)
    from_frame = tuple((shift + position, distance, length) for position, distance, length in spans)
    return Frame(offset, data, size, spans=from_frame or _NO_SPANS, violations=tuple(violations))
