"""An excerpt of bytes with carets under the place that is meant, as a good compiler shows its source.

Bytes are shown as UTF-8 text, what is not printable as an escape; where an escape is under the caret, a line
in hexadecimal follows.
"""

from __future__ import annotations

import msgspec
from rich.cells import cell_len

from storage.escaping import escaped

ROOM = 90
"""Cells that the bytes of a long datagram get, if there is room: two fifths of them before the place."""

_HEX_AROUND = 6
_HEX_MARKED = 16
"""Bytes in the hexadecimal line on either side of the place, and of the place itself."""

_WIDEST = 4
"""Bytes in a UTF-8 character at the most: so many for each cell are more than will be shown."""

_ELLIPSIS = "…"


class _Unit(msgspec.Struct, frozen=True):
    """A character, or a byte that is none: where it stands, how it is shown, and whether as an escape."""

    start: int
    end: int
    text: str
    escaped: bool


def excerpt(data: bytes, offset: int, length: int, room: int = ROOM) -> list[str]:
    """Lines that show `data` around the bytes `offset` to `offset + length`, each followed by its carets.

    With a length of 0 there is one caret, before the byte at `offset`; at the end of the data, behind it.
    """
    if not data:
        return ["(no bytes)", "^"]
    offset = min(offset, len(data))
    end = min(offset + length, len(data))
    room_before = room * 2 // 5
    room_after = room - room_before
    first, last = _whole_characters(data, offset - _WIDEST * room_before, offset + _WIDEST * room_after)
    units = _units(data, first, last)
    before = [unit.text for unit in units if unit.end <= offset]
    marked = [unit for unit in units if unit.end > offset and unit.start < end]
    after = [unit.text for unit in units[len(before) + len(marked) :]]
    left, cut_left = _fitting(before[::-1], room_before)
    middle, cut_middle = _fitting([unit.text for unit in marked], room_after)
    right, cut_right = _fitting(after, room_after - cell_len("".join(middle)))
    if cut_middle:
        right, cut_right = [], True
    lines = _with_carets(
        (_ELLIPSIS if cut_left or first > 0 else "") + "".join(reversed(left)),
        "".join(middle),
        "".join(right) + (_ELLIPSIS if cut_right or last < len(data) else ""),
    )
    if any(unit.escaped for unit in marked):
        lines += _in_hex(data, offset, end)
    return lines


def shown_bytes(data: bytes) -> str:
    """Bytes on one line: UTF-8 text, and escapes for what is not printable or not UTF-8."""
    return "".join(unit.text for unit in _units(data, 0, len(data)))


def _units(data: bytes, start: int, end: int) -> list[_Unit]:
    units = []
    at = start
    text = data[start:end].decode("utf-8", "surrogateescape")
    for character in text:
        code = ord(character)
        if 0xDC80 <= code <= 0xDCFF:
            shown, size, is_escape = f"\\x{code - 0xDC00:02x}", 1, True
        elif character == "\\":
            shown, size, is_escape = "\\\\", 1, False
        else:
            size = len(character.encode())
            is_escape = not character.isprintable()
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


def _fitting(texts: list[str], room: int) -> tuple[list[str], bool]:
    """As many of the texts as fit into so many cells, and whether some did not."""
    taken: list[str] = []
    for text in texts:
        room -= cell_len(text)
        if room < 0:
            return taken, True
        taken.append(text)
    return taken, False


def _with_carets(head: str, body: str, tail: str) -> list[str]:
    # Measured as a whole: how wide a character is can depend on the one before it.
    start = cell_len(head)
    width = cell_len(head + body) - start
    return [head + body + tail, " " * start + "^" * max(width, 1)]


def _in_hex(data: bytes, offset: int, end: int) -> list[str]:
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
    return _with_carets((f"{_ELLIPSIS} " if first > 0 else "") + before, marked, after)
