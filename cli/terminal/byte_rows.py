"""A message's bytes in rows, each piece on rows of its own beside what took it, and flaws under their places.

A row has its offset, so many bytes in hexadecimal and the same as text. What took them stands beside them,
or above them where the terminal is narrow. Of a piece that takes many rows those in the middle are left out,
but for those with a flaw.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import NamedTuple
from unicodedata import bidirectional, combining

import msgspec

from kiebitz.cli.terminal.flaw_block import OWN_DOING
from kiebitz.cli.terminal.screen import Console, Text
from kiebitz.cli.terminal.severities import COLOURS
from kiebitz.dissectors.escaping import value_words
from kiebitz.dissectors.grammar.dissection_tree import Piece
from kiebitz.dissectors.grammar.grammar import shortened
from kiebitz.services.evidence.cells import cell_len
from kiebitz.storage.session.message_detail import DiagnosticDetail

_BESIDE = 64
"""From so many columns on, what took the bytes stands beside them."""

_WIDE = 110
"""From so many columns on, a row has twice as many bytes."""

_INDENT = "  "
_DEEPEST = 6
"""Pieces that are deeper are indented no further."""

_FIRST_ROWS, _LAST_ROWS = 6, 2
"""Of a piece with more rows than these, so many at its start and at its end are shown."""

_MARKED = 64
"""A flaw of more bytes is marked in the piece in which it begins alone."""

_SHOWN = 120
"""So much of a value is shown (characters)."""

_PRODUCTION = 72
"""So much is shown of the production of a field that was read (characters)."""

_RIGHT_TO_LEFT = frozenset(("R", "AL", "AN"))
"""Letters that would turn a row round."""


class _Marked(NamedTuple):
    """From where to where of the bytes a flaw is, and whether it is `told` below the piece that it is in."""

    flaw: DiagnosticDetail
    start: int
    end: int
    told: bool

    def is_in(self, start: int, end: int, is_last: bool) -> bool:
        """Whether any of it is in a row; one that has no bytes stands before one, or is in the last row."""
        if self.start == self.end:
            return start <= self.start < end or (is_last and self.start >= end)
        return self.start < end and self.end > start


class ByteRows:
    """The rows of a message's bytes for a terminal of so many columns, 30 at the least."""

    def __init__(
        self, data: bytes, pieces: Sequence[Piece], flaws: Sequence[DiagnosticDetail], columns: int
    ) -> None:
        self._data, self._pieces, self._columns = data, pieces, columns
        self._console = Console(width=columns)
        self._gutter = max(2, len(str(len(data))))
        self._is_beside = columns >= _BESIDE
        # A byte takes three cells in hexadecimal, one of them behind it, and one as text.
        room = columns - self._gutter - 2 * len(_INDENT)
        self._count = 16 if columns >= _WIDE else 8 if room >= 4 * 8 else 4
        self._hex_width = 3 * self._count - 1
        self._width = self._gutter + self._hex_width + self._count + 3 * len(_INDENT)
        self._of_all: list[DiagnosticDetail] = []
        """The flaws of the whole message."""
        self._flaws = self._by_leaf(flaws)

    def lines(self) -> Iterator[Text]:
        """All rows."""
        waiting: list[Piece] = []
        leaf = 0
        for number, piece in enumerate(self._pieces):
            if self._is_around(number):
                waiting.append(piece)
                continue
            # The first bytes of what is around stand beside its name, if they are nothing by themselves.
            around = waiting.pop() if waiting and piece.kind == "markup" else None
            for outer in waiting:
                yield from self._alone(deque(self._label(outer)))
            waiting.clear()
            yield from self._rows(piece, deque(self._label(around or piece)), self._flaws[leaf])
            leaf += 1
        if not leaf:
            yield Text("(no bytes)", "dim")
        for flaw in self._of_all:
            yield from self._told(flaw)

    def _is_around(self, number: int) -> bool:
        """Whether there are pieces inside this one."""
        return number + 1 < len(self._pieces) and self._pieces[number + 1].depth > self._pieces[number].depth

    def _by_leaf(self, flaws: Sequence[DiagnosticDetail]) -> list[list[_Marked]]:
        """For each piece without others inside, the flaws that are in it, in the order of their places.

        One of the whole message is in none.
        """
        leaves = [piece for number, piece in enumerate(self._pieces) if not self._is_around(number)]
        found: list[list[_Marked]] = [[] for _ in leaves]
        size = len(self._data)
        for flaw in sorted(flaws, key=lambda flaw: flaw.offset):
            start = max(0, min(flaw.offset, size))
            end = max(start, min(flaw.offset + flaw.length, size))
            marked = _Marked(flaw, start, end, False)
            is_in = [
                number for number, leaf in enumerate(leaves) if marked.is_in(leaf.offset, leaf.end, False)
            ]
            if not leaves or (len(is_in) > 1 and end - start >= len(self._data.rstrip(b"\r\n"))):
                self._of_all.append(flaw)
                continue
            # A place without bytes may be a value without bytes; and what is behind them all is in the last.
            is_in = is_in or [
                number for number, leaf in enumerate(leaves) if leaf.offset == leaf.end == start
            ]
            is_in = is_in[: 1 if end - start > _MARKED else None] or [len(leaves) - 1]
            for number in is_in:
                found[number].append(marked._replace(told=number == is_in[-1]))
        return found

    # What took them.

    def _label(self, piece: Piece) -> Iterator[Text]:
        """The lines that say what took a piece."""
        indent = _INDENT * min(piece.depth, _DEEPEST)
        before = self._width if self._is_beside else 0
        room = self._columns - before - len(indent) - len(_INDENT)
        for number, line in enumerate(_words_of(piece).lines(self._console, room)):
            yield Text(indent + (_INDENT if number else "")) + line

    def _alone(self, label: deque[Text]) -> Iterator[Text]:
        """What is left of a label, without bytes beside it."""
        while label:
            yield Text(" " * self._width if self._is_beside else "") + label.popleft()

    def _beside(self, row: Text, label: deque[Text]) -> Text:
        """A row with the next line of the label."""
        return row + " " * (self._width - row.cell_len) + label.popleft() if label else row

    # Their rows.

    def _rows(self, piece: Piece, label: deque[Text], flaws: Sequence[_Marked]) -> Iterator[Text]:
        """The rows of a piece without others inside, with what took it and the flaws in it."""
        if not self._is_beside:
            yield from self._alone(label)
        untold = [marked for marked in flaws if marked.told]
        upto = piece.offset
        for start in self._shown_rows(piece, flaws):
            if start > upto:
                yield from self._alone(label)
                yield Text(f"{'':{self._gutter}}{_INDENT}… {start - upto:,} bytes", "dim")
            upto = min(start + self._count, piece.end)
            is_last = upto == piece.end
            yield self._beside(self._row(start, upto), label)
            for marked in flaws:
                if marked.is_in(start, upto, is_last):
                    yield self._beside(self._carets(marked, start, upto), label)
                if marked in untold and (is_last or marked.end <= upto):
                    untold.remove(marked)
                    yield from self._alone(label)
                    yield from self._told(marked.flaw)
        yield from self._alone(label)

    def _shown_rows(self, piece: Piece, flaws: Sequence[_Marked]) -> list[int]:
        """Where the rows begin that are shown of a piece."""
        starts = range(piece.offset, max(piece.end, piece.offset + 1), self._count)
        shown = {*starts[:_FIRST_ROWS], *starts[-_LAST_ROWS:]}
        for marked in flaws:
            first = max(0, marked.start - piece.offset) // self._count
            last = max(0, min(marked.end, piece.end) - 1 - piece.offset) // self._count
            shown |= {*starts[first : first + _FIRST_ROWS][: last - first + 1], *starts[last : last + 1]}
        return sorted(shown)

    def _row(self, start: int, end: int) -> Text:
        """A row of bytes."""
        shown = self._data[start:end].hex(" ")
        text = "".join(_cells(self._data, start, end))
        return Text.assemble(
            (f"{start:>{self._gutter}}", "dim"), f"{_INDENT}{shown:<{self._hex_width}}{_INDENT}{text}"
        )

    def _carets(self, marked: _Marked, start: int, end: int) -> Text:
        """The carets under a row."""
        first, last = max(marked.start - start, 0), min(marked.end, end) - start
        count = max(last - first, 0)
        under_hex = " " * min(3 * first, self._hex_width) + ("^" * (3 * count - 1) if count else "^")
        under_text = " " * first + "^" * max(count, 1)
        gap = " " * (self._gutter + len(_INDENT))
        carets = (
            f"{gap}{under_hex:<{self._hex_width}}{_INDENT[len(under_hex) > self._hex_width :]}{under_text}"
        )
        # Not the style of the whole row: beside it the label goes on.
        return Text.assemble((carets, COLOURS[marked.flaw.severity]))

    def _told(self, flaw: DiagnosticDetail) -> Iterator[Text]:
        """What is said of a flaw below its place."""
        head = Text.assemble((f"{flaw.severity}[{flaw.code}]", COLOURS[flaw.severity]), f": {flaw.text}")
        told = [head]
        if flaw.length > _MARKED:
            told.append(Text(f"place: bytes {flaw.offset} to {flaw.offset + flaw.length - 1}"))
        if flaw.expected is not None:
            told.append(Text(f"expected: {flaw.expected}"))
        if flaw.clause is not None:
            told.append(Text(f"clause: {flaw.clause}"))
        if flaw.blame == "kiebitz":
            told.append(Text(OWN_DOING))
        elif flaw.severity != "note":
            told.append(Text(f"blame: {flaw.blame} ({flaw.group})"))
        start = " " * (self._gutter + len(_INDENT))
        for number, text in enumerate(told):
            indent = start + (_INDENT if number else "")
            for line in text.lines(self._console, self._columns - len(start) - 2 * len(_INDENT)):
                yield Text(indent) + line
                indent = start + 2 * _INDENT


def _words_of(piece: Piece) -> Text:
    """What took a piece: its name and its value, then the production in words."""
    if piece.kind == "name":
        return Text.assemble(("message", "bold"), f" · {piece.production}")
    if not piece.path:
        return Text(piece.production, "dim" if piece.kind == "markup" else "")
    words = Text.assemble((_step(piece), "bold"))
    if piece.kind == "unread":
        return words + f": not understood · {piece.production}"
    if piece.value is not msgspec.UNSET:
        value = value_words(piece.value)
        words.append(f" = {shortened(value, _SHOWN)}")
    return words.append(f" · {shortened(piece.production, _PRODUCTION)}", "dim")


def _step(piece: Piece) -> str:
    """What a field is called inside of what is around it."""
    step = piece.path[-1]
    return f"{piece.path[-2]}[{step}]" if isinstance(step, int) else step


def _cells(data: bytes, start: int, end: int) -> Iterator[str]:
    """For each byte what stands for it in the text: its character beside its first byte, and dots.

    A wide character takes the place of its second byte, too.
    """
    if start == end:
        return
    at = start
    while at and start - at < 3 and data[at] & 0xC0 == 0x80:
        at -= 1
    for character in data[at : end + 3].decode("utf-8", "surrogateescape"):
        size = 1 if "\ud800" <= character <= "\udfff" else len(character.encode())
        width = cell_len(character)
        hidden = (
            not character.isprintable() or combining(character) or bidirectional(character) in _RIGHT_TO_LEFT
        )
        if at < start or not 1 <= width <= end - at or width > size or hidden:
            yield "." * max(0, min(at + size, end) - max(at, start))
        else:
            yield character + "." * (min(at + size, end) - at - width)
        at += size
        if at >= end:
            return
