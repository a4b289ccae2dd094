"""Inference of the framing: candidates are scored by where senders pause and where other sides speak.

A sender pauses between messages rather than within one. The framing whose frames end at these turns, and
which leaves no bytes over, is the right one. Frames are cut by the framers of protocol files.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, reduce
from itertools import chain
from math import gcd
from typing import NamedTuple

import msgspec

from kiebitz.dissectors.drafting.binary import find_fields
from kiebitz.dissectors.drafting.keyed_formats import element_of, json_object
from kiebitz.dissectors.drafting.traffic import MAX_MESSAGES, Message, Segment
from kiebitz.dissectors.grammar.framing import Frame, Framer
from kiebitz.dissectors.grammar.xml.diagnostics import XmlFormat
from kiebitz.dissectors.grammar.xml.framer import XmlFramer, XmlFraming
from kiebitz.dissectors.model import Direction, Transport
from kiebitz.dissectors.protocol_file.codecs import framer_of
from kiebitz.dissectors.protocol_file.envelope import FileEnvelope
from kiebitz.dissectors.protocol_file.header import Header, TextHead
from kiebitz.dissectors.protocol_file.specification import (
    LENGTH,
    NAME,
    BinaryType,
    ByteOrder,
    FieldSpec,
    Format,
    FormatKind,
    Framing,
    FramingKind,
    HeaderPart,
    Inclusive,
    IntegerKind,
)
from kiebitz.dissectors.websocket.codec import is_message
from kiebitz.dissectors.websocket.frames import is_plain, plain_payload
from kiebitz.dissectors.websocket.handshake import MAX_HEAD, read_head
from kiebitz.dissectors.websocket.violations import NO_HANDSHAKE, NO_UPGRADE

_SAMPLE = 4 << 20
"""Number of bytes of all segments together by which candidates are scored."""

_SAMPLE_OF_HEADERS = 64 << 10
"""Number of bytes by which headers are compared."""

_MAX_SEGMENTS = 300
"""Number of segments by which headers are compared."""

_MAX_HEADS = 5000
"""Number of frames by which a header is described."""

_LEAST_FRAMES = 3

_WANTED = 0.9
"""Least share of turns at which frames end for a framing that fits."""

_UPGRADE = re.compile(rb"upgrade:[ \t]*websocket", re.IGNORECASE)

_GUESS = 0.5
"""Share of turns at which frames end, below which messages are rather what is sent at once."""

_BLANK = re.compile(rb"\s*")
TAG = re.compile(rb"\s*(?:<\?[^>]{0,200}\?>\s*)?<([A-Za-z_][\w:.-]{0,40})[^<>]{0,500}>")
"""The first tag of XML."""

_BLOCK_END = re.compile(rb"\W*(end|eof|done|over|fin|stop|eom)?\W*", re.IGNORECASE)


class Choice(msgspec.Struct):
    """The chosen framing.

    Attributes:
        framing: The framing.
        messages: The frames in order of time, as messages without a name.
        fit: Share of turns at which a frame ends.
        left_over: Number of bytes in no frame.
        evidence: Sentence for the file.
        root: Name of the XML element around all messages of a direction; empty if there is none.
    """

    framing: Framing
    messages: list[Message]
    fit: float
    left_over: int
    evidence: str
    root: str = ""


def choose_framing(segments: Sequence[Segment], transport: Transport) -> Choice:
    """Return the framing that fits best."""
    if transport == "udp":
        return _choice(segments, Framing(kind="datagrams"), "each datagram is a message")
    if found := in_websocket(segments):
        return _choice(found, Framing(kind="websocket"), "each message of WebSocket is one")
    sample = _sample(segments)
    if (root := _open_root(sample)) and (in_document := _in_document(segments, root)) is not None:
        return in_document
    framing = _text_framing(sample) if is_text(sample) else None
    fit = 0.0 if framing is None else _fit(sample, framing)[0]
    if fit < _WANTED:
        best = max(_binary(sample), key=lambda found: found[0], default=None)
        if best is not None and best[0] > fit:
            return _choice(segments, best[1], best[2])
        if not is_text(sample) and (by_fields := _by_fields(segments)) is not None:
            return by_fields
        is_line = framing is None or framing.kind != "xml"
        if best is None and fit < _GUESS and is_line and is_text(sample) and _is_sent_whole(sample):
            return _choice(segments, Framing(kind="send"), "a guess: messages have no end that was found")
    return _choice(segments, framing or _text_framing(sample) or Framing(), "")


def _is_sent_whole(segments: Sequence[Segment]) -> bool:
    """Return True if what is sent between pauses hardly comes in several pieces."""
    pieces = sum(len(segment.ends) for segment in segments)
    return sum(len(segment.turns) for segment in segments) >= 0.5 * pieces


def in_websocket(segments: Iterable[Segment]) -> list[Segment]:
    """Return the segments of connections in which a client asks for WebSocket."""
    found = {
        each.conversation
        for each in segments
        if each.direction == "c2s" and _UPGRADE.search(each.data, 0, MAX_HEAD)
    }
    return [each for each in segments if each.conversation in found]


def frames_of(framing: Framing, segment: Segment) -> Iterator[Frame]:
    """Yield the complete frames of a segment."""
    framer = _framer(framing)(segment.direction)
    ends = segment.ends if framing.kind == "send" else [len(segment.data)]
    pieces = zip((0, *ends), ends, strict=False)
    found = (framer.feed(start, segment.data[start:end]) for start, end in pieces)
    header = _header(framing)
    for frame in chain(chain.from_iterable(found), framer.eof()):
        if frame.cut is None and _is_fitting(framing, header, frame):
            yield frame


def _is_fitting(framing: Framing, header: Header, frame: Frame) -> bool:
    """Return True if a frame agrees with its header; of WebSocket, the head of HTTP is one, too."""
    if framing.kind == "length":
        found = header.extent(frame.data, 0, frame.size)
        return found is not None and found.size == frame.size
    if framing.kind != "websocket":
        return True
    if is_plain(frame.data):
        return all(
            violation.code not in (NO_HANDSHAKE.code, NO_UPGRADE.code) for violation in frame.violations
        )
    return read_head(frame.data) is not None


def content(framing: Framing, frame: bytes, is_text: bool = False) -> bytes:
    """Return a frame without its line end, delimiter, or header; of text also without padding."""
    if framing.kind == "websocket":
        return plain_payload(frame)[1]
    start, end = _envelope(framing, is_text).body(frame)
    if framing.before:
        start = TextHead(framing.before, Format()).extent(frame, start, end).start
    if framing.kind == "length":
        found = _header(framing).extent(frame, 0, len(frame))
        start = 0 if found is None else found.start
    body = frame[start:end]
    return body.replace(b"\r\n", b"\n") if framing.kind == "block" else body


def code_of(framing: Framing, frame: bytes) -> str:
    """Return the number that stands for the name in a frame's header."""
    return str(_header(framing).read(frame).sent)


@lru_cache(maxsize=16)
def _envelope(framing: Framing, is_text: bool) -> FileEnvelope:
    kinds: dict[str, FormatKind] = {"json": "json", "xml": "xml", "length": "struct", "datagrams": "struct"}
    usual: FormatKind = "words" if is_text or framing.kind not in ("size", "fields") else "struct"
    return FileEnvelope(framing, Format(kind=kinds.get(framing.kind, usual)))


@lru_cache(maxsize=16)
def _framer(framing: Framing) -> Callable[[Direction], Framer]:
    return framer_of(framing, "udp" if framing.kind == "datagrams" else "tcp")


@lru_cache(maxsize=16)
def _header(framing: Framing) -> Header:
    return Header(framing, Format())


def _choice(
    segments: Sequence[Segment],
    framing: Framing,
    evidence: str,
    cut: Callable[[Segment], Iterable[Frame]] | None = None,
) -> Choice:
    messages: list[Message] = []
    left_over = hits = turns = 0
    for segment in segments:
        frames = [*(frames_of(framing, segment) if cut is None else cut(segment))]
        left_over += len(segment.data) - _covered(segment, frames)
        hits += _count_hits(framing, segment, frames)
        turns += len(segment.turns)
        starts = {0, *segment.ends}
        for frame in frames:
            if framing.kind == "websocket" and not is_message(frame.data):
                continue
            piece = min(bisect_left(segment.ends, frame.offset + frame.size), len(segment.ends) - 1)
            message = Message(segment.conversation, segment.direction, segment.times[piece], frame.data)
            message.begins = frame.offset in starts
            messages.append(message)
    # Messages of one piece stay in order: the sort is stable.
    messages.sort(key=lambda message: message.ts_ns)
    del messages[MAX_MESSAGES:]
    for order, message in enumerate(messages):
        message.order = order
    fit = hits / max(1, turns)
    if not evidence:
        evidence = f"{fit:.0%} of the senders' pauses are at the end of a message"
    return Choice(framing, messages, fit, left_over, evidence)


def _sample(segments: Sequence[Segment], most: int = _SAMPLE) -> list[Segment]:
    """Return the segments, shortened to whole turns, with about so many bytes together."""
    found: list[Segment] = []
    share = max(most // max(1, len(segments)), 4096)
    for segment in segments:
        if len(segment.data) <= share:
            found.append(segment)
            continue
        turns = [turn for turn in segment.turns if turn <= share] or segment.turns[:1]
        size = turns[-1]
        ends = [end for end in segment.ends if end <= size]
        found.append(
            msgspec.structs.replace(
                segment, data=segment.data[:size], ends=ends, times=segment.times[: len(ends)], turns=turns
            )
        )
    return [segment for segment in found if segment.data]


def _fit(segments: Sequence[Segment], framing: Framing) -> tuple[float, Counter[int]]:
    """Return the share of turns at which frames end, times the share of bytes in frames, and their sizes."""
    hits = turns = covered = size = 0
    sizes: Counter[int] = Counter()
    for segment in segments:
        found = [*frames_of(framing, segment)]
        sizes.update(frame.size for frame in found)
        covered += _covered(segment, found)
        hits += _count_hits(framing, segment, found)
        turns += len(segment.turns)
        size += len(segment.data)
    return hits / max(1, turns) * covered / max(1, size), sizes


def _covered(segment: Segment, frames: Sequence[Frame]) -> int:
    """Return the number of bytes in frames; white space after the last one belongs to it."""
    end = frames[-1].offset + frames[-1].size if frames else 0
    is_blank = end and _BLANK.fullmatch(segment.data, end) is not None
    return sum(frame.size for frame in frames) + (len(segment.data) - end if is_blank else 0)


def _count_hits(framing: Framing, segment: Segment, frames: Sequence[Frame]) -> int:
    """Return the number of turns at which a frame ends, or the white space after it."""
    ends = {frame.offset + frame.size for frame in frames}
    if framing.kind in ("json", "xml"):
        blanks = (_BLANK.match(segment.data, end) for end in [*ends])
        ends.update(blank.end() for blank in blanks if blank is not None)
    return len(ends.intersection(segment.turns))


def is_text(segments: Sequence[Segment]) -> bool:
    """Return True if nearly all bytes are printable text."""
    odd = size = 0
    for segment in segments:
        size += len(segment.data)
        odd += sum(segment.data.count(code) for code in (*range(9), 11, 12, *range(14, 32), 127))
        try:
            segment.data.decode()
        except UnicodeDecodeError as error:
            # A character may be cut at the end, and latin-1 has no control characters here.
            if error.start < len(segment.data) - 3:
                odd += sum(segment.data.count(code) for code in range(128, 160))
    return odd <= 0.1 * size


# Text.


def _text_framing(segments: Sequence[Segment]) -> Framing | None:
    begins = Counter(segment.data.lstrip()[:1] for segment in segments)
    common, number = begins.most_common(1)[0] if begins else (b"", 0)
    values: dict[bytes, tuple[FramingKind, Callable[[bytes], object]]] = {
        b"{": ("json", json_object),
        b"<": ("xml", element_of),
    }
    # Else, only one side speaks JSON or XML.
    if common in values and number >= 0.7 * len(segments):
        kind, test = values[common]
        parts = [line for segment in segments for line in segment.data.split(b"\n")[:-1] if line.strip()]
        share = sum(test(line) is not None for line in parts[:2000]) / max(1, len(parts[:2000]))
        if share < _WANTED and _fit(segments, found := Framing(kind=kind))[0] >= 0.6:
            return found
        if share >= _WANTED or kind == "xml":
            return Framing(kind="lines" if share >= _WANTED else kind)
    last = Counter(segment.data[turn - 1 : turn] for segment in segments for turn in segment.turns)
    end, number = last.most_common(1)[0] if last else (b"", 0)
    is_usual = number >= 0.8 * last.total()
    if (end == b"\n" or not is_usual) and (block := _block(segments)) is not None:
        return block
    if is_usual and end and not end.isalnum() and end != b"\n":
        return _delimiter(segments, end)
    return Framing() if any(b"\n" in segment.data for segment in segments) else None


def _block(segments: Sequence[Segment]) -> Framing | None:
    """Return the framing of blocks that end in a line of their own, or None."""
    last_lines: Counter[bytes] = Counter()
    for segment in segments:
        for turn in segment.turns:
            start = segment.data.rfind(b"\n", 0, max(0, turn - 1)) + 1
            last_lines[segment.data[start:turn].rstrip(b"\r\n")] += 1
    for line, number in last_lines.most_common(3):
        is_lexical = _BLOCK_END.fullmatch(line) is not None
        if len(line) > 32 or number < (0.1 if is_lexical else 0.5) * last_lines.total() or not line.isascii():
            continue
        framing = Framing(kind="block", end=line.decode())
        sizes = [frame.data.count(b"\n") - 1 for segment in segments for frame in frames_of(framing, segment)]
        if len(sizes) < _LEAST_FRAMES or sizes.count(0) > 0.02 * len(sizes):
            continue
        if sum(sizes) >= (1 if is_lexical else 2) * len(sizes):
            return framing
    return None


def _delimiter(segments: Sequence[Segment], end: bytes) -> Framing:
    """Return the framing with the longest delimiter that ends like this."""
    for size in range(8, 1, -1):
        texts = Counter(each.data[max(0, turn - size) : turn] for each in segments for turn in each.turns)
        text, number = texts.most_common(1)[0]
        if number >= 0.8 * texts.total() and all(code < 32 or code == end[0] for code in text):
            return Framing(kind="delimiter", end=text.decode("latin-1"))
    return Framing(kind="delimiter", end=end.decode("latin-1"))


def _open_root(segments: Sequence[Segment]) -> str:
    """Return the name of the element that the bytes of all segments begin with and that stays open."""
    found = {match[1] for segment in segments if (match := TAG.match(segment.data)) is not None}
    root = found.pop() if len(found) == 1 else b""
    number = sum(segment.data.count(b"<%b" % root) for segment in segments)
    # Else, messages have one name; bytes after a gap may begin within the document.
    return root.decode() if root and number <= len(segments) else ""


def _in_document(segments: Sequence[Segment], root: str) -> Choice | None:
    """Return the messages in an element around all of them, None if there are hardly any."""
    elements = XmlFraming(XmlFormat(envelope=root, stays_open=True))
    tag = re.compile(rb"\s*(?:<\?[^>]*>\s*)?</?%b[^<>]*>\s*" % root.encode())

    def frames(segment: Segment) -> Iterator[Frame]:
        cutter = XmlFramer(segment.direction, elements)
        for frame in chain(cutter.feed(0, segment.data), cutter.eof()):
            if frame.cut is None:
                yield frame

    found = _choice(segments, Framing(kind="xml"), "", frames)
    found.messages = [each for each in found.messages if not tag.fullmatch(each.data)]
    found.root = root
    return found if found.fit >= _WANTED and len(found.messages) > len(segments) else None


# Binary.


def _binary(segments: Sequence[Segment]) -> Iterator[tuple[float, Framing, str]]:
    """Yield the fitting headers and sizes, and WebSocket in mid-stream, with their fits and evidence."""
    few = _sample(segments[:: len(segments) // _MAX_SEGMENTS + 1], _SAMPLE_OF_HEADERS)
    found = [(fit, *each.rank, each) for each in lengths() if (fit := _header_fit(few, each.framing()))]
    size = 1 if is_text(segments) else _common_size(segments)
    if found:
        fit, *_, best = max(found)
        frames = [frame for segment in segments for frame in frames_of(best.framing(), segment)]
        heads = [frame.data[: best.before] for frame in frames[:_MAX_HEADS]]
        if size == 1 or len({frame.size for frame in frames}) > 1:
            yield fit, best.framing(heads), best.described(heads)
            size = 1
    if size > 1:
        yield _WANTED, Framing(kind="size", size=size), f"all that is sent has {size} bytes, or a multiple"
    for framing in (Framing(kind="length", prefix="varint"), Framing(kind="websocket")):
        if fit := _header_fit(segments, framing):
            yield fit, framing, ""


def _by_fields(segments: Sequence[Segment]) -> Choice | None:
    """Return binary messages that end with their fields, None if these do not lead to all ends."""
    pieces = [
        (segment.direction, segment.data[start:end])
        for segment in segments
        for start, end in zip((0, *segment.ends), segment.ends, strict=False)
    ]
    ends_of = find_fields(pieces[:_MAX_HEADS])
    if ends_of is None:
        return None

    def frames(segment: Segment) -> list[Frame]:
        ends = ends_of(segment.direction, segment.data)
        return [
            Frame(start, segment.data[start:end], end - start)
            for start, end in zip((0, *ends), ends, strict=False)
        ]

    evidence = "messages end with their fields, at all pauses of the senders"
    found = _choice(segments, Framing(kind="fields"), evidence, frames)
    return found if found.fit >= _WANTED and not found.left_over else None


def _header_fit(segments: Sequence[Segment], framing: Framing) -> float:
    """Return the fit of frames with a header; 0.0 if it is too low, or if most frames are empty."""
    fit, sizes = _fit(segments, framing)
    is_usual = sizes.total() >= _LEAST_FRAMES and 2 * sizes[min(sizes)] <= sizes.total() + 1
    return round(fit, 2) if fit >= _WANTED and (is_usual or len(sizes) == 1) else 0.0


def _common_size(segments: Iterable[Segment]) -> int:
    """Return the greatest size of which each turn has a whole number; 1 if there is none."""
    sizes = [
        turn - start
        for segment in segments
        for start, turn in zip((0, *segment.turns), segment.turns, strict=False)
    ]
    return reduce(gcd, sizes, 0) if len(sizes) >= _LEAST_FRAMES else 1


def entropy(data: bytes) -> float:
    """Return the entropy in bits per byte."""
    counts = Counter(data)
    return -sum(n / len(data) * math.log2(n / len(data)) for n in counts.values()) if data else 0.0


_MAX_BEFORE = 8
"""Maximum number of bytes before a length."""

_MAX_NAMES = 64
"""Maximum number of values of what stands for a message's name."""

_INTEGERS: Mapping[int, IntegerKind] = {8: "u64", 4: "u32", 2: "u16", 1: "u8"}
"""Types of lengths by their sizes in bytes."""

_COUNTED: dict[Inclusive, str] = {
    "": "the remaining length",
    "header": "the whole length",
    "length": "the remaining length with their own",
}


class Length(NamedTuple):
    """A length of `size` bytes after `before` others; it counts the bytes after it, and `inclusive` ones."""

    before: int
    size: int
    order: ByteOrder
    inclusive: Inclusive

    @property
    def rank(self) -> tuple[int, int]:
        """Preference among lengths that fit alike."""
        return self.size - self.before, -len(self.inclusive)

    def framing(self, heads: Sequence[bytes] = ()) -> Framing:
        """Return the framing; the bytes before the length are one field, or the parts that `heads` have."""
        kind = _INTEGERS[self.size]
        if not self.before:
            return Framing(kind="length", prefix=kind, order=self.order, inclusive=self.inclusive)
        before = BinaryType("bytes", self.before)
        parts = [*_parts_before(heads, self.order)] if heads else [HeaderPart(FieldSpec("", before, ""))]
        header = *parts, HeaderPart(FieldSpec(LENGTH, BinaryType(kind), kind))
        return Framing(kind="length", header=header, order=self.order, inclusive=self.inclusive)

    def described(self, heads: Sequence[bytes]) -> str:
        """Return it in words: a byte with 7 values, then 4 bytes that equal the remaining length."""
        parts = []
        if self.before:
            values = len({*heads})
            parts.append(f"{_bytes(self.before)} with {values} value{'s' if values != 1 else ''}")
        order = f", {self.order}-endian" if self.size > 1 else ""
        is_one = "s" if self.size == 1 else ""
        parts.append(f"{_bytes(self.size)} that equal{is_one} {_COUNTED[self.inclusive]}{order}")
        return ", then ".join(parts)


def lengths() -> Iterator[Length]:
    """Yield all lengths that are looked for."""
    orders: tuple[ByteOrder, ...] = ("big", "little")
    for before in range(_MAX_BEFORE + 1):
        for size in _INTEGERS:
            for order in orders[: 1 if size == 1 else 2]:
                for inclusive in _COUNTED:
                    if before or inclusive != "header":
                        yield Length(before, size, order, inclusive)


def _parts_before(heads: Sequence[bytes], order: ByteOrder) -> Iterator[HeaderPart]:
    """Yield the parts before a length."""
    columns = [{*column} for column in zip(*heads, strict=True)]
    fixed = next((at for at, values in enumerate(columns) if len(values) > 1), len(columns))
    # Zeros before a number are its upper bytes.
    while order == "big" and 0 < fixed < len(columns) and columns[fixed - 1] == {0}:
        fixed -= 1
    if fixed:
        yield HeaderPart(constant=heads[0][:fixed])
    at = fixed
    while at < len(columns):
        rest = columns[at:]
        zeros = rest[:-1] if order == "big" else rest[1:]
        is_wide = len(rest) in (2, 4) and all(values == {0} for values in zeros)
        size = len(rest) if is_wide else 1
        name = NAME if at == fixed and len(rest[0 if order == "little" else size - 1]) <= _MAX_NAMES else ""
        kind = _INTEGERS[size]
        yield HeaderPart(FieldSpec(name or f"header{at + 1}", BinaryType(kind), kind))
        at += size


def _bytes(number: int) -> str:
    return "a byte" if number == 1 else f"{number} bytes"
