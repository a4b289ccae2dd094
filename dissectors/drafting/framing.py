"""Inference of the framing: candidates are scored by where senders pause and where other sides speak.

A sender pauses between messages rather than within one. The framing whose frames end at these turns, and
which leaves no bytes over, is the right one.
"""

from __future__ import annotations

import json
import math
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import cast

import msgspec

from kiebitz.dissectors.drafting.traffic import MAX_MESSAGES, Message, Segment
from kiebitz.dissectors.model import Transport
from kiebitz.dissectors.protocol_file.specification import ByteOrder, Framing

Bounds = Iterator[tuple[int, int]]
"""Start and end of each complete frame."""

PREFIX_SIZES: dict[str, int] = {"u8": 1, "u16": 2, "u32": 4, "u64": 8}

_MAX_FRAME = 1 << 20
_SAMPLE = 4 << 20
"""Number of bytes of all segments together by which candidates are scored."""

_WANTED = 0.9
"""Least share of turns at which frames end for a framing that fits."""

_BLOCK_END = re.compile(rb"\W*(end|eof|done|over|fin|stop|eom)?\W*", re.IGNORECASE)
_TAG = re.compile(
    rb"<!--.{0,4096}?-->|<!\[CDATA\[.{0,65536}?\]\]>|<\?[^>]{0,1024}>|<![^>]{0,1024}>"
    rb"|<(/?)([A-Za-z_:][\w:.-]{0,100})((?:[^<>\"']|\"[^\"]*\"|'[^']*'){0,10000}?)(/?)>",
    re.DOTALL,
)
_JSON_START = re.compile(r"\s*(?=\{)")
_BLANK = re.compile(rb"\s*")


class Choice(msgspec.Struct):
    """The chosen framing.

    Attributes:
        framing: The framing.
        messages: The frames in order of time, as messages without a name.
        fit: Share of turns at which a frame ends.
        left_over: Number of bytes in no frame.
        evidence: Sentence for the file.
    """

    framing: Framing
    messages: list[Message]
    fit: float
    left_over: int
    evidence: str


def choose_framing(segments: Sequence[Segment], transport: Transport) -> Choice:
    """Return the framing that fits best."""
    if transport == "udp":
        return _choice(segments, Framing(kind="datagrams"), "each datagram is a message")
    sample = _sample(segments)
    framing = _text_framing(sample) if _is_text(sample) else None
    if framing is None or _fit(sample, framing)[0] < _WANTED:
        others = list(_prefixed(sample))
        if others:
            best = max(others, key=lambda found: (round(found[0], 2), PREFIX_SIZES.get(found[1].prefix, 0)))
            if framing is None or best[0] > _fit(sample, framing)[0]:
                framing = best[1]
    if framing is None:
        framing = _text_framing(sample) or Framing()
    return _choice(segments, framing, "")


def bounds_of(framing: Framing) -> Callable[[bytes], Bounds]:
    """Return the function that cuts bytes into frames."""
    if framing.kind == "length":
        return lambda data: _length_bounds(data, framing)
    if framing.kind == "json":
        return _json_bounds
    if framing.kind == "xml":
        return _xml_bounds
    if framing.kind == "block":
        return lambda data: _block_bounds(data, framing.end.encode())
    if framing.kind == "datagrams":
        return lambda data: iter([(0, len(data))])
    end = b"\n" if framing.kind == "lines" else framing.end.encode("latin-1")
    return lambda data: _delimited_bounds(data, end)


def content(framing: Framing, frame: bytes) -> bytes:
    """Return a frame without its line end, delimiter, or length prefix."""
    match framing.kind:
        case "lines" | "json" | "xml":
            return frame.rstrip(b"\r\n")
        case "datagrams":
            return frame
        case "delimiter":
            return frame.removesuffix(framing.end.encode("latin-1"))
        case "block":
            lines = frame.rstrip(b"\r\n").replace(b"\r\n", b"\n").split(b"\n")
            end = framing.end.encode()
            if lines and lines[-1] == end:
                lines.pop()
            while lines and not lines[-1]:
                lines.pop()
            return b"\n".join(lines)
        case _:
            return frame[_prefix_of(frame, 0, framing)[1] :]


def _choice(segments: Sequence[Segment], framing: Framing, evidence: str) -> Choice:
    cut = bounds_of(framing)
    messages: list[Message] = []
    left_over = 0
    for segment in segments:
        covered = 0
        for start, end in cut(segment.data):
            piece = min(bisect_left(segment.ends, end), len(segment.ends) - 1)
            frame = segment.data[start:end]
            covered += end - start
            messages.append(Message(segment.conversation, segment.direction, segment.times[piece], frame))
        left_over += len(segment.data) - covered
    # Messages of one piece stay in order: the sort is stable.
    messages.sort(key=lambda message: message.ts_ns)
    del messages[MAX_MESSAGES:]
    for order, message in enumerate(messages):
        message.order = order
    fit, _ = _fit(segments, framing)
    if not evidence:
        evidence = f"{fit:.0%} of the senders' pauses are at the end of a message"
    return Choice(framing, messages, fit, left_over, evidence)


def _sample(segments: Sequence[Segment]) -> list[Segment]:
    """Return the first segments, shortened to whole turns, of both directions."""
    found: list[Segment] = []
    share = max(_SAMPLE // max(1, len(segments)), 4096)
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


def _fit(segments: Sequence[Segment], framing: Framing) -> tuple[float, int]:
    """Return the share of turns at which frames end, times the share of bytes in frames, and their number."""
    cut = bounds_of(framing)
    hits = turns = frames = covered = size = 0
    for segment in segments:
        ends = set()
        for start, end in cut(segment.data):
            frames += 1
            covered += end - start
            ends.add(end)
        hits += sum(turn in ends for turn in segment.turns)
        turns += len(segment.turns)
        size += len(segment.data)
    return hits / max(1, turns) * covered / max(1, size), frames


def _is_text(segments: Sequence[Segment]) -> bool:
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
    common = begins.most_common(1)[0][0] if begins else b""
    lines = Framing()
    if common in (b"{", b"[") and common == b"{":
        if _share_of_lines(segments, _is_json) >= _WANTED:
            return lines
        concatenated = Framing(kind="json")
        if _fit(segments, concatenated)[0] >= 0.6:
            return concatenated
    if common == b"<":
        if _share_of_lines(segments, _is_element) >= _WANTED:
            return lines
        elements = Framing(kind="xml")
        if _fit(segments, elements)[0] >= 0.6:
            return elements
    last = Counter(segment.data[turn - 1 : turn] for segment in segments for turn in segment.turns)
    end, number = last.most_common(1)[0] if last else (b"", 0)
    is_usual = number >= 0.8 * last.total()
    if end == b"\n" or not is_usual:
        block = _block(segments)
        if block is not None:
            return block
        if last[b"\n"] >= 0.5 * last.total():
            return lines
    if is_usual and end and not end.isalnum() and end != b"\n":
        return _delimiter(segments, end)
    return lines if sum(segment.data.count(b"\n") for segment in segments) else None


def _share_of_lines(segments: Sequence[Segment], test: Callable[[bytes], bool]) -> float:
    """Return the share of non-empty lines that pass a test."""
    lines = [line for segment in segments for line in segment.data.split(b"\n")[:-1] if line.strip()][:2000]
    return sum(map(test, lines)) / len(lines) if lines else 0.0


def _is_json(line: bytes) -> bool:
    try:
        return isinstance(msgspec.json.decode(line), dict)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return False


def _is_element(line: bytes) -> bool:
    line = line.strip()
    return list(_xml_bounds(line)) == [(0, len(line))]


def _block(segments: Sequence[Segment]) -> Framing | None:
    """Return the framing of blocks that end in a line of their own, or None."""
    last_lines: Counter[bytes] = Counter()
    for segment in segments:
        for turn in segment.turns:
            start = segment.data.rfind(b"\n", 0, max(0, turn - 1)) + 1
            last_lines[segment.data[start:turn].rstrip(b"\r\n")] += 1
    for line, number in last_lines.most_common(3):
        try:
            framing = Framing(kind="block", end=line.decode())
        except UnicodeDecodeError:
            continue
        is_lexical = _BLOCK_END.fullmatch(line) is not None
        if len(line) > 32 or number < (0.1 if is_lexical else 0.5) * last_lines.total():
            continue
        blocks, lines, empty = _count_blocks(segments, line)
        mean = lines / max(1, blocks)
        if blocks >= 3 and empty <= 0.02 * blocks and (mean >= 1 if is_lexical else mean >= 2):
            return framing
    return None


def _count_blocks(segments: Sequence[Segment], end: bytes) -> tuple[int, int, int]:
    """Return the number of blocks, of lines in them besides the end, and of blocks without any."""
    blocks = lines = empty = 0
    for segment in segments:
        size = 0
        for line in segment.data.split(b"\n")[:-1]:
            if line.rstrip(b"\r") == end:
                blocks += 1
                empty += size == 0
                lines += size
                size = 0
            else:
                size += 1
    return blocks, lines, empty


def _delimiter(segments: Sequence[Segment], end: bytes) -> Framing:
    """Return the framing with the longest delimiter that ends like this."""
    while len(end) < 8:
        size = len(end)
        longer = Counter(
            segment.data[turn - size - 1 : turn]
            for segment in segments
            for turn in segment.turns
            if segment.data[:turn].endswith(end)
        )
        text, number = longer.most_common(1)[0] if longer else (b"", 0)
        first = text[:1]
        if len(text) != size + 1 or number < 0.95 * longer.total():
            break
        if not (first == end[:1] or first < b" "):
            break
        end = text
    return Framing(kind="delimiter", end=end.decode("latin-1"))


# Length prefixes.


def _prefixed(segments: Sequence[Segment]) -> Iterator[tuple[float, Framing]]:
    """Yield the fitting length prefixes with their scores."""
    for prefix in ("u32", "u16", "u8", "u64", "varint"):
        orders = ("big",) if prefix in ("u8", "varint") else ("big", "little")
        for order in orders:
            for inclusive in (False, True) if prefix != "varint" else (False,):
                framing = Framing(
                    kind="length",
                    prefix=prefix,
                    order=cast(ByteOrder, order),
                    inclusive=inclusive,
                )
                fit, frames = _fit(segments, framing)
                if fit >= 0.5 and frames >= 3:
                    yield fit, framing


def _prefix_of(data: bytes, at: int, framing: Framing) -> tuple[int, int]:
    """Return the length of the content after a prefix and the prefix's size; -1 if it is incomplete."""
    if framing.prefix == "varint":
        value = 0
        for size in range(1, 6):
            if at + size > len(data):
                return -1, 0
            byte = data[at + size - 1]
            value |= (byte & 127) << 7 * (size - 1)
            if byte < 128:
                return value, size
        return -1, 0
    size = PREFIX_SIZES[framing.prefix]
    if at + size > len(data):
        return -1, 0
    length = int.from_bytes(data[at : at + size], framing.order)
    return length - size if framing.inclusive else length, size


def _length_bounds(data: bytes, framing: Framing) -> Bounds:
    at = 0
    while at < len(data):
        length, size = _prefix_of(data, at, framing)
        if not 0 <= length <= _MAX_FRAME or at + size + length > len(data):
            return
        yield at, at + size + length
        at += size + length


# Bounds of other framings.


def _delimited_bounds(data: bytes, end: bytes) -> Bounds:
    start = 0
    while (at := data.find(end, start)) >= 0:
        yield start, at + len(end)
        start = at + len(end)


def _block_bounds(data: bytes, end: bytes) -> Bounds:
    start = line = 0
    while (at := data.find(b"\n", line)) >= 0:
        if data[line:at].rstrip(b"\r") == end:
            yield start, at + 1
            start = at + 1
        line = at + 1


def _json_bounds(data: bytes) -> Bounds:
    text = data.decode("utf-8", "surrogateescape")
    decode = json.JSONDecoder().raw_decode
    at = begin = place = 0
    while (found := _JSON_START.match(text, at)) is not None:
        try:
            _, end = decode(text, found.end())
        except (ValueError, RecursionError):
            # Resume at the next object on a line of its own.
            following = text.find("\n{", found.end())
            if following < 0:
                return
            place += len(text[at : following + 1].encode("utf-8", "surrogateescape"))
            begin, at = place, following + 1
            continue
        while end < len(text) and text[end] in "\r\n\t ":
            end += 1
        place += len(text[at:end].encode("utf-8", "surrogateescape"))
        yield begin, place
        begin, at = place, end


def _xml_bounds(data: bytes) -> Bounds:
    start = depth = 0
    at = 0
    while (found := _TAG.search(data, at)) is not None:
        at = found.end()
        if found[2] is None:
            continue
        if found[1]:
            depth = max(0, depth - 1)
        elif not found[4]:
            depth += 1
        if depth == 0:
            blank = _BLANK.match(data, at)
            at = blank.end() if blank is not None else at
            yield start, at
            start = at


def entropy(data: bytes) -> float:
    """Return the entropy in bits per byte."""
    counts = Counter(data)
    return -sum(n / len(data) * math.log2(n / len(data)) for n in counts.values()) if data else 0.0
