"""An excerpt of bytes with carets under a range, as a compiler shows source.

A datagram is one line. Of a byte stream the lines around the range are shown. Bytes are shown as UTF-8 text,
unprintable ones as escapes; if an escape is above a caret, a hexadecimal line follows.
"""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO

import msgspec

from kiebitz.dissectors.escaping import classify_characters, escaped
from kiebitz.services.evidence.cells import cell_len
from kiebitz.storage.read.recorded_bytes import ByteRange

MAX_CELLS = 90
"""Cells for the bytes of a long line, two fifths of them before the range."""

_CONTEXT_BYTES = 1024
"""Number of bytes of a stream read around either end of the range."""

_LINES_AROUND = 3
"""Number of lines of a stream shown before and after the range."""

_LINES_MARKED = 6
_LINES_AT_END = 2
"""Number of lines shown at the start and at the end of a range with more lines than these together."""

_HEX_AROUND = 6
_HEX_MARKED = 16
"""Number of bytes in the hexadecimal line on either side of the range, and of the range itself."""

_MAX_CHAR_BYTES = 4
"""Maximum length of a UTF-8 character, to bound the bytes to decode per cell."""

_ELLIPSIS = "…"
_LINE_ENDS = {b"": "", b"\n": r"\n", b"\r\n": r"\r\n"}
_MAX_LINE_END = 4


class Line(msgspec.Struct, frozen=True):
    """A line of an excerpt; `line_end` is the escaped line end if it is shown up to there.

    `offset` is that of its first byte; None for carets, hexadecimal and omitted lines.
    """

    text: str
    offset: int | None = None
    line_end: str = ""


class _Unit(msgspec.Struct, frozen=True):
    """A character or an undecodable byte: its position, its displayed text, and whether that is an escape."""

    start: int
    end: int
    text: str
    escaped: bool


class _View(msgspec.Struct, frozen=True):
    """The displayed part of a line: text before, in and after the range, from the byte `first` on.

    `escapes` spans the unprintable bytes in the range; `to_end` is True if the line's end is displayed.
    """

    before: str
    marked: str
    after: str
    first: int
    escapes: tuple[int, int] | None
    to_end: bool

    @property
    def text(self) -> str:
        return self.before + self.marked + self.after


class _StreamLine(msgspec.Struct, frozen=True):
    """A line of a stream, as far as it was read, or a gap: then `data` is None.

    A gap of unknown length ends where it begins.
    """

    start: int
    end: int
    data: bytes | None
    more_before: bool = False
    more_after: bool = False

    @property
    def is_open(self) -> bool:
        """True if these are bytes without a line end."""
        return self.data is not None and not self.data.endswith(b"\n")


def datagram_excerpt(start: int, data: bytes, offset: int, length: int, room: int = MAX_CELLS) -> list[Line]:
    """Return an excerpt of a datagram that begins at `start`, marking `offset` to `offset + length`.

    With a length of 0 there is one caret, before the byte at `offset` or after the last byte.
    """
    if not data:
        return [Line("(no bytes)", start), Line("^")]
    offset = min(offset - start, len(data))
    end = min(offset + length, len(data))
    view = _view(data, offset, end, room)
    lines = [Line(view.text, start + view.first), _carets(view.before, view.marked)]
    if view.escapes is not None:
        lines += _hex_lines(data, offset, end)
    return lines


def ranges_to_read(offset: int, length: int) -> list[tuple[int, int]]:
    """Return the ranges of a stream's direction to read for an excerpt."""
    first, stop = max(0, offset - _CONTEXT_BYTES), offset + length
    if length <= 2 * _CONTEXT_BYTES:
        return [(first, stop + _CONTEXT_BYTES)]
    return [(first, offset + _CONTEXT_BYTES), (stop - _CONTEXT_BYTES, stop + _CONTEXT_BYTES)]


def stream_excerpt(
    stretches: Sequence[ByteRange],
    offset: int,
    length: int,
    message: int | None = None,
    room: int = MAX_CELLS,
) -> list[Line]:
    """Return the lines of a stream around `offset` to `offset + length`, with carets as above.

    `stretches` are the bytes in the ranges of `ranges_to_read`. If the message with the range begins in them,
    at `message`, its first line is included.
    """
    lines = _lines(stretches, ranges_to_read(offset, length))
    # Only the beginning of an overlong line is needed.
    lines = [line for line in lines if line.start <= offset or not line.more_before]
    marked = [number for number, line in enumerate(lines) if _overlaps(line, offset, length)]
    if not marked:
        # The range is after all received bytes.
        if not (lines and lines[-1].is_open):
            lines.append(_StreamLine(offset, offset, b""))
        marked = [len(lines) - 1]
    elif length == 0:
        # One caret, although a gap of unknown length ends where the next line begins.
        del marked[1:]
    first, last = marked[0], marked[-1]
    if len(marked) > _LINES_MARKED + _LINES_AT_END:
        marked[_LINES_MARKED:-_LINES_AT_END] = []
    begin = [number for number, line in enumerate(lines) if line.start == message]
    around = [*range(first - _LINES_AROUND, first), *range(last + 1, last + 1 + _LINES_AROUND)]
    excerpt: list[Line] = []
    end = None
    for number in sorted({*begin, *around, *marked} & set(range(len(lines)))):
        line = lines[number]
        if end not in (None, line.start):
            excerpt.append(Line(_ELLIPSIS))
        end = None if line.more_after else line.end
        excerpt += _marked(line, offset, length, room) if number in marked else [_unmarked(line, room)]
    return excerpt


def missing(length: int | None) -> str:
    """Return the text displayed for missing bytes."""
    if length is None:
        return "[bytes missing, number unknown]"
    return f"[{length} byte{'' if length == 1 else 's'} missing]"


def printable_bytes(data: bytes) -> str:
    """Return bytes as one line of UTF-8 text, with escapes for unprintable or undecodable ones."""
    return "".join(unit.text for unit in _units(data, 0, len(data)))


def _lines(stretches: Sequence[ByteRange], windows: Sequence[tuple[int, int]]) -> list[_StreamLine]:
    starts = {start for start, _ in windows if start > 0}
    ends = {end for _, end in windows}
    lines = []
    for stretch in stretches:
        at = stretch.offset
        if stretch.data is None:
            lines.append(_StreamLine(at, at + (stretch.length or 0), None))
            continue
        for data in BytesIO(stretch.data):
            end = at + len(data)
            lines.append(_StreamLine(at, end, data, at in starts, end in ends and data[-1:] != b"\n"))
            at = end
    return lines


def _overlaps(line: _StreamLine, offset: int, length: int) -> bool:
    """Return True if part of the range is in a line, or an empty range is at its position."""
    if line.start == line.end:
        return offset < line.start < offset + length if length else offset == line.start
    return line.start < offset + max(length, 1) and offset < line.end


def _unmarked(line: _StreamLine, room: int) -> Line:
    """Return a line without marks."""
    if line.data is None:
        return Line(missing(line.end - line.start or None), line.start)
    return _line_of(line, _view_of(line, 0, 0, room))


def _marked(line: _StreamLine, offset: int, length: int, room: int) -> list[Line]:
    """Return a line with carets under its part of the range, and hexadecimal if that is unprintable."""
    if line.data is None:
        shown = _unmarked(line, room)
        return [shown, _carets("", shown.text if length else "")]
    body, line_end = _split_line_end(line.data)
    start = max(offset - line.start, 0)
    stop = min(max(offset + length - line.start, start), len(line.data))
    if start >= len(body) and stop > start:
        # Only the line end is in the range.
        shown = _line_of(line, _view_of(line, len(body), len(body), room))
        return [shown, _carets(shown.text, _LINE_ENDS[line_end])]
    start, stop = min(start, len(body)), min(stop, len(body))
    view = _view_of(line, start, stop, room)
    lines = [_line_of(line, view), _carets(view.before, view.marked)]
    if view.escapes is not None:
        lines += _hex_lines(line.data, *view.escapes)
    return lines


def _view_of(line: _StreamLine, start: int, stop: int, room: int) -> _View:
    assert line.data is not None
    body, _ = _split_line_end(line.data)
    return _view(body, start, stop, room - _MAX_LINE_END, line.more_before, line.more_after)


def _line_of(line: _StreamLine, view: _View) -> Line:
    assert line.data is not None
    _, line_end = _split_line_end(line.data)
    return Line(view.text, line.start + view.first, _LINE_ENDS[line_end] if view.to_end else "")


def _split_line_end(data: bytes) -> tuple[bytes, bytes]:
    """Split a line from its line end."""
    body = data.removesuffix(b"\n")
    if len(body) < len(data):
        body = body.removesuffix(b"\r")
    return body, data[len(body) :]


def _view(
    data: bytes, offset: int, end: int, room: int, more_before: bool = False, more_after: bool = False
) -> _View:
    """Return the displayed part of a line for the range `offset` to `end`."""
    room_before = room * 2 // 5
    first, last = _whole_characters(
        data, offset - _MAX_CHAR_BYTES * room_before, offset + _MAX_CHAR_BYTES * room
    )
    units = _units(data, first, last)
    before = [unit for unit in units if unit.end <= offset]
    marked = [unit for unit in units if unit.end > offset and unit.start < end]
    after = units[len(before) + len(marked) :]
    left, cut_left = _fit(before[::-1], room_before)
    room -= _width(left)
    middle, cut_middle = _fit(marked, room)
    right, cut_right = ([], True) if cut_middle else _fit(after, room - _width(middle))
    left.reverse()
    to_end = not (cut_right or last < len(data) or more_after)
    shown = [*left, *middle, *right]
    escapes = [unit for unit in marked if unit.escaped]
    return _View(
        (_ELLIPSIS if cut_left or first > 0 or more_before else "") + _text(left),
        _text(middle),
        _text(right) + ("" if to_end else _ELLIPSIS),
        shown[0].start if shown else first,
        (escapes[0].start, min(escapes[-1].end, end)) if escapes else None,
        to_end,
    )


def _units(data: bytes, start: int, end: int) -> list[_Unit]:
    units = []
    at = start
    text = data[start:end].decode("utf-8", "surrogateescape")
    for character, is_hidden in classify_characters(text):
        code = ord(character)
        if 0xDC80 <= code <= 0xDCFF:
            shown, size, is_escape = f"\\x{code - 0xDC00:02x}", 1, True
        elif character == "\\":
            shown, size, is_escape = "\\\\", 1, False
        else:
            size = len(character.encode())
            is_escape = is_hidden
            shown = escaped(character) if is_escape else character
        units.append(_Unit(at, at + size, shown, is_escape))
        at += size
    return units


def _whole_characters(data: bytes, first: int, last: int) -> tuple[int, int]:
    """Widen a range so that it does not cut UTF-8 characters; at most 3 bytes on each side."""
    first, last = max(first, 0), min(last, len(data))
    for _ in range(3):
        if first > 0 and data[first] & 0xC0 == 0x80:
            first -= 1
        if last < len(data) and data[last] & 0xC0 == 0x80:
            last += 1
    return first, last


def _fit(units: Sequence[_Unit], room: int) -> tuple[list[_Unit], bool]:
    """Return the units that fit into `room` cells, and whether some did not."""
    taken: list[_Unit] = []
    for unit in units:
        room -= cell_len(unit.text)
        if room < 0:
            return taken, True
        taken.append(unit)
    return taken, False


def _text(units: Sequence[_Unit]) -> str:
    return "".join(unit.text for unit in units)


def _width(units: Sequence[_Unit]) -> int:
    return cell_len(_text(units))


def _carets(before: str, marked: str) -> Line:
    # Measured as a whole, as a character's width can depend on the one before it.
    start = cell_len(before)
    width = cell_len(before + marked) - start
    return Line(" " * start + "^" * max(width, 1))


def _hex_lines(data: bytes, offset: int, end: int) -> list[Line]:
    first = max(0, offset - _HEX_AROUND)
    shown_end = min(end, offset + _HEX_MARKED)
    last = min(len(data), shown_end + _HEX_AROUND)
    before = "".join(f"{byte:02x} " for byte in data[first:offset])
    marked = data[offset:shown_end].hex(" ")
    after = "".join(f" {byte:02x}" for byte in data[shown_end:last])
    if end > shown_end:
        after = f" {_ELLIPSIS}"
    elif last < len(data):
        after += f" {_ELLIPSIS}"
    head = (f"{_ELLIPSIS} " if first > 0 else "") + before
    return [Line(head + marked + after), _carets(head, marked)]
