"""An excerpt of bytes with carets under the place that is meant, as a good compiler shows its source.

A datagram stands on one line. Of a byte stream the lines around the place are shown, each on a line of its
own. Bytes are shown as UTF-8 text, what is not printable as an escape; where an escape is under the caret, a
line in hexadecimal follows.
"""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO

import msgspec

from kiebitz.dissectors.escaping import classify_characters, escaped
from kiebitz.services.evidence.cells import cell_len
from kiebitz.storage.read.recorded_bytes import ByteRange

ROOM = 90
"""Cells that the bytes of a long line get, if there is room: two fifths of them before the place."""

_NEAR = 1024
"""So many bytes of a stream are looked at around either end of the place."""

_LINES_AROUND = 3
"""Lines of a stream that are shown before the place, and behind it."""

_LINES_MARKED = 6
_LINES_AT_END = 2
"""Of a place that takes more lines than these together, so many are shown at its start and at its end."""

_HEX_AROUND = 6
_HEX_MARKED = 16
"""Bytes in the hexadecimal line on either side of the place, and of the place itself."""

_WIDEST = 4
"""Bytes in a UTF-8 character at the most: so many for each cell are more than will be shown."""

_ELLIPSIS = "…"
_LINE_ENDS = {b"": "", b"\n": r"\n", b"\r\n": r"\r\n"}
_WIDEST_LINE_END = 4


class Line(msgspec.Struct, frozen=True):
    """A line of an excerpt, and how the line that was sent ends, where it is shown up to there.

    `offset` is that of its first byte. Carets, hexadecimal and what stands for lines left out have none.
    """

    text: str
    offset: int | None = None
    line_end: str = ""


class _Unit(msgspec.Struct, frozen=True):
    """A character, or a byte that is none: where it stands, how it is shown, and whether as an escape."""

    start: int
    end: int
    text: str
    escaped: bool


class _View(msgspec.Struct, frozen=True):
    """What of some bytes is shown: before the place, of it and behind it, from the byte `first` on.

    `escapes` is from where to where in the place there are bytes that do not print; `to_end` says whether
    the last of the bytes are shown.
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


class _Sent(msgspec.Struct, frozen=True):
    """A line of a stream as it was sent, or the part of it that is at hand, or a gap: then `data` is None.

    A gap of unknown length ends where it begins.
    """

    start: int
    end: int
    data: bytes | None
    more_before: bool = False
    more_after: bool = False

    @property
    def is_open(self) -> bool:
        """Whether these are bytes that no line end follows."""
        return self.data is not None and not self.data.endswith(b"\n")


def datagram_excerpt(start: int, data: bytes, offset: int, length: int, room: int = ROOM) -> list[Line]:
    """Shows a datagram that begins at `start` around the bytes `offset` to `offset + length`.

    With a length of 0 there is one caret, before the byte at `offset`; at the end of the data, behind it.
    """
    if not data:
        return [Line("(no bytes)", start), Line("^")]
    offset = min(offset - start, len(data))
    end = min(offset + length, len(data))
    view = _view(data, offset, end, room)
    lines = [Line(view.text, start + view.first), _carets(view.before, view.marked)]
    if view.escapes is not None:
        lines += _in_hex(data, offset, end)
    return lines


def looked_at(offset: int, length: int) -> list[tuple[int, int]]:
    """From where to where in its direction of a stream one must look to make an excerpt of a place."""
    first, stop = max(0, offset - _NEAR), offset + length
    if length <= 2 * _NEAR:
        return [(first, stop + _NEAR)]
    return [(first, offset + _NEAR), (stop - _NEAR, stop + _NEAR)]


def stream_excerpt(
    stretches: Sequence[ByteRange], offset: int, length: int, message: int | None = None, room: int = ROOM
) -> list[Line]:
    """Shows the lines of a stream around the bytes `offset` to `offset + length`, with carets as above.

    `stretches` is what the stream has where the place is `looked_at`. If the message that the place is in
    begins there, at `message`, its first line is shown in any case.
    """
    lines = _lines(stretches, looked_at(offset, length))
    # Of a line too long to be read whole the beginning will do.
    lines = [line for line in lines if line.start <= offset or not line.more_before]
    marked = [number for number, line in enumerate(lines) if _is_in(line, offset, length)]
    if not marked:
        # It is behind all that came.
        if not (lines and lines[-1].is_open):
            lines.append(_Sent(offset, offset, b""))
        marked = [len(lines) - 1]
    elif length == 0:
        # One caret: where a gap of unknown length ends, a line begins.
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
        excerpt += _with_place(line, offset, length, room) if number in marked else [_plain(line, room)]
    return excerpt


def missing(length: int | None) -> str:
    """What is shown for bytes that are not there."""
    if length is None:
        return "[bytes missing, nobody knows how many]"
    return f"[{length} byte{'' if length == 1 else 's'} missing]"


def shown_bytes(data: bytes) -> str:
    """Bytes on one line: UTF-8 text, and escapes for what is not printable or not UTF-8."""
    return "".join(unit.text for unit in _units(data, 0, len(data)))


def _lines(stretches: Sequence[ByteRange], windows: Sequence[tuple[int, int]]) -> list[_Sent]:
    starts = {start for start, _ in windows if start > 0}
    ends = {end for _, end in windows}
    lines = []
    for stretch in stretches:
        at = stretch.offset
        if stretch.data is None:
            lines.append(_Sent(at, at + (stretch.length or 0), None))
            continue
        for data in BytesIO(stretch.data):
            end = at + len(data)
            lines.append(_Sent(at, end, data, at in starts, end in ends and data[-1:] != b"\n"))
            at = end
    return lines


def _is_in(line: _Sent, offset: int, length: int) -> bool:
    """Whether any of the place is in a line; of a place without bytes, whether it is there."""
    if line.start == line.end:
        return offset < line.start < offset + length if length else offset == line.start
    return line.start < offset + max(length, 1) and offset < line.end


def _plain(line: _Sent, room: int) -> Line:
    """A line in which nothing is marked."""
    if line.data is None:
        return Line(missing(line.end - line.start or None), line.start)
    return _shown(line, _view_of(line, 0, 0, room))


def _with_place(line: _Sent, offset: int, length: int, room: int) -> list[Line]:
    """A line, carets under what of the place is in it, and what of that does not print in hexadecimal."""
    if line.data is None:
        shown = _plain(line, room)
        return [shown, _carets("", shown.text if length else "")]
    body, line_end = _parted(line.data)
    start = max(offset - line.start, 0)
    stop = min(max(offset + length - line.start, start), len(line.data))
    if start >= len(body) and stop > start:
        # Only the line's end is in it.
        shown = _shown(line, _view_of(line, len(body), len(body), room))
        return [shown, _carets(shown.text, _LINE_ENDS[line_end])]
    start, stop = min(start, len(body)), min(stop, len(body))
    view = _view_of(line, start, stop, room)
    lines = [_shown(line, view), _carets(view.before, view.marked)]
    if view.escapes is not None:
        lines += _in_hex(line.data, *view.escapes)
    return lines


def _view_of(line: _Sent, start: int, stop: int, room: int) -> _View:
    assert line.data is not None
    body, _ = _parted(line.data)
    return _view(body, start, stop, room - _WIDEST_LINE_END, line.more_before, line.more_after)


def _shown(line: _Sent, view: _View) -> Line:
    assert line.data is not None
    _, line_end = _parted(line.data)
    return Line(view.text, line.start + view.first, _LINE_ENDS[line_end] if view.to_end else "")


def _parted(data: bytes) -> tuple[bytes, bytes]:
    """A line and its end."""
    body = data.removesuffix(b"\n")
    if len(body) < len(data):
        body = body.removesuffix(b"\r")
    return body, data[len(body) :]


def _view(
    data: bytes, offset: int, end: int, room: int, more_before: bool = False, more_after: bool = False
) -> _View:
    """What is shown of a line of bytes of which `offset` to `end` are meant."""
    room_before = room * 2 // 5
    first, last = _whole_characters(data, offset - _WIDEST * room_before, offset + _WIDEST * room)
    units = _units(data, first, last)
    before = [unit for unit in units if unit.end <= offset]
    marked = [unit for unit in units if unit.end > offset and unit.start < end]
    after = units[len(before) + len(marked) :]
    left, cut_left = _fitting(before[::-1], room_before)
    room -= _width(left)
    middle, cut_middle = _fitting(marked, room)
    right, cut_right = ([], True) if cut_middle else _fitting(after, room - _width(middle))
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
    """A piece of the data, widened so that no UTF-8 character is cut in two; 3 bytes are enough for that."""
    first, last = max(first, 0), min(last, len(data))
    for _ in range(3):
        if first > 0 and data[first] & 0xC0 == 0x80:
            first -= 1
        if last < len(data) and data[last] & 0xC0 == 0x80:
            last += 1
    return first, last


def _fitting(units: Sequence[_Unit], room: int) -> tuple[list[_Unit], bool]:
    """As many of the units as fit into so many cells, and whether some did not."""
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
    # Measured as a whole: how wide a character is can depend on the one before it.
    start = cell_len(before)
    width = cell_len(before + marked) - start
    return Line(" " * start + "^" * max(width, 1))


def _in_hex(data: bytes, offset: int, end: int) -> list[Line]:
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
