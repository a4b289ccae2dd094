"""Annotated bytes of a message and diagnostics as text for the terminal.

A row has an offset, bytes in hexadecimal and the same bytes as text. The production is shown next to them,
or above them on a narrow terminal. The middle rows of a long field are left out, except those with a
diagnostic.

A diagnostic as compilers show it: text, location, bytes with carets, and what was expected.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple
from unicodedata import bidirectional, combining

import msgspec

from kiebitz.cli.terminal.console import COLOURS, Styled, wrapped
from kiebitz.cli.terminal.console import Line as Shown
from kiebitz.cli.terminal.screen import Console, Text
from kiebitz.dissectors.escaping import value_words
from kiebitz.dissectors.grammar.dissection_tree import Piece
from kiebitz.dissectors.grammar.grammar import UNREADABLE, shortened
from kiebitz.dissectors.model import Diagnostic
from kiebitz.services.evidence.cells import cell_len
from kiebitz.services.evidence.excerpt import Line
from kiebitz.storage.read.message_queries import StoredDiagnostic
from kiebitz.storage.session.message_detail import DiagnosticDetail

ALTERED_BY_KIEBITZ = "altered by Kiebitz"
"""Blame of a diagnostic caused by an alteration."""

GUTTER = 2
"""Minimum width of the gutter (digits)."""


def place_of(offset: int, message: str | None, message_offset: int | None) -> str:
    """Return the location of a diagnostic in its message, if any, and in its direction."""
    if message is None or message_offset is None:
        return f"byte {offset} of that direction"
    name = "the message" if message == UNREADABLE else message
    return f"byte {offset - message_offset} of {name} ({offset} of that direction)"


def reasons(diagnostic: Diagnostic | StoredDiagnostic | DiagnosticDetail) -> Iterator[tuple[str, str]]:
    """Yield the titles and texts below the bytes of a diagnostic."""
    if diagnostic.expected is not None:
        yield "expected", diagnostic.expected
    if diagnostic.clause is not None:
        yield "clause", diagnostic.clause
    # A note, such as a dialect or something unusual, blames no side.
    if diagnostic.blame == "kiebitz":
        yield "from", ALTERED_BY_KIEBITZ
    else:
        yield (
            ("from", diagnostic.blame)
            if diagnostic.severity == "note"
            else ("blame", f"{diagnostic.blame} ({diagnostic.group})")
        )


def diagnostic_block(
    head: Shown,
    place: str,
    lines: Sequence[Line],
    numbered: bool,
    told: Iterable[tuple[str, str]],
    columns: int | None = None,
) -> Iterator[Shown]:
    """Yield the lines of a diagnostic, its bytes with offsets if `numbered`, wrapped to `columns`."""
    numbers = [str(line.offset) if numbered and line.offset is not None else "" for line in lines]
    gutter = max([GUTTER, *map(len, numbers)])
    yield head
    yield from _wrapped(f"{'':{gutter}}--> ", place, gutter + len("--> "), columns)
    for number, line in zip(numbers, lines, strict=True):
        gap = " " if line.text or line.line_end else ""
        yield f"{number:>{gutter}} |{gap}{line.text}", Styled(line.line_end, dim=True)
    for name, text in told:
        yield from _wrapped(f"{'':{gutter}} = ", f"{name}: {text}", gutter + len(" = ") + 2, columns)


def _wrapped(first: str, text: str, indent: int, columns: int | None) -> Iterator[Shown]:
    lines = [first + text] if columns is None else wrapped(text, columns, first, " " * indent)
    return ((line,) for line in lines)


_BESIDE = 64
"""Minimum terminal width for labels beside the bytes."""

_WIDE = 110
"""Minimum terminal width for rows of 16 bytes."""

_INDENT = "  "
_DEEPEST = 6
"""Maximum depth of indentation."""

_FIRST_ROWS, _LAST_ROWS = 6, 2
"""Rows to show at the start and end of a longer piece."""

_MARKED = 64
"""A longer diagnostic (bytes) is marked only in the piece in which it begins."""

_SHOWN = 120
"""Maximum length of a value (characters)."""

_PRODUCTION = 72
"""Maximum length of the production of a parsed field (characters)."""

_RIGHT_TO_LEFT = frozenset(("R", "AL", "AN"))
"""Bidirectional classes of characters that would reorder a row."""


class _Marked(NamedTuple):
    """The byte range of a diagnostic in a piece; if `told`, its text follows the piece."""

    diagnostic: DiagnosticDetail
    start: int
    end: int
    told: bool

    def is_in(self, start: int, end: int, is_last: bool) -> bool:
        """Return True if it overlaps a row; an empty range is in the next byte's row, or the last."""
        if self.start == self.end:
            return start <= self.start < end or (is_last and self.start >= end)
        return self.start < end and self.end > start


class ByteRows:
    """The rows of a message's bytes for a terminal of at least 30 columns."""

    def __init__(
        self, data: bytes, pieces: Sequence[Piece], diagnostics: Sequence[DiagnosticDetail], columns: int
    ) -> None:
        self._data, self._pieces, self._columns = data, pieces, columns
        self._console = Console(width=columns)
        self._gutter = max(2, len(str(len(data))))
        self._is_beside = columns >= _BESIDE
        # A byte takes three cells in hexadecimal, including a blank, and one as text.
        room = columns - self._gutter - 2 * len(_INDENT)
        self._count = 16 if columns >= _WIDE else 8 if room >= 4 * 8 else 4
        self._hex_width = 3 * self._count - 1
        self._width = self._gutter + self._hex_width + self._count + 3 * len(_INDENT)
        self._of_all: list[DiagnosticDetail] = []
        """Diagnostics of the whole message."""
        self._diagnostics = self._by_leaf(diagnostics)

    def lines(self) -> Iterator[Text]:
        """Yield all rows."""
        waiting: list[Piece] = []
        leaf = 0
        for number, piece in enumerate(self._pieces):
            if self._is_around(number):
                waiting.append(piece)
                continue
            # Leading markup shares the row of the enclosing piece's name.
            around = waiting.pop() if waiting and piece.kind == "markup" else None
            for outer in waiting:
                yield from self._alone(deque(self._label(outer)))
            waiting.clear()
            yield from self._rows(piece, deque(self._label(around or piece)), self._diagnostics[leaf])
            leaf += 1
        if not leaf:
            yield Text("(no bytes)", "dim")
        for diagnostic in self._of_all:
            yield from self._told(diagnostic)

    def _is_around(self, number: int) -> bool:
        return number + 1 < len(self._pieces) and self._pieces[number + 1].depth > self._pieces[number].depth

    def _by_leaf(self, diagnostics: Sequence[DiagnosticDetail]) -> list[list[_Marked]]:
        """Return the diagnostics in each leaf piece; those of the whole message go to `_of_all`."""
        leaves = [piece for number, piece in enumerate(self._pieces) if not self._is_around(number)]
        found: list[list[_Marked]] = [[] for _ in leaves]
        size = len(self._data)
        for diagnostic in sorted(diagnostics, key=lambda diagnostic: diagnostic.offset):
            start = max(0, min(diagnostic.offset, size))
            end = max(start, min(diagnostic.offset + diagnostic.length, size))
            marked = _Marked(diagnostic, start, end, False)
            is_in = [
                number for number, leaf in enumerate(leaves) if marked.is_in(leaf.offset, leaf.end, False)
            ]
            if not leaves or (len(is_in) > 1 and end - start >= len(self._data.rstrip(b"\r\n"))):
                self._of_all.append(diagnostic)
                continue
            # An empty range may be an empty value; a range behind the end belongs to the last piece.
            is_in = is_in or [
                number for number, leaf in enumerate(leaves) if leaf.offset == leaf.end == start
            ]
            is_in = is_in[: 1 if end - start > _MARKED else None] or [len(leaves) - 1]
            for number in is_in:
                found[number].append(marked._replace(told=number == is_in[-1]))
        return found

    def _label(self, piece: Piece) -> Iterator[Text]:
        """Yield the lines of a piece's label."""
        indent = _INDENT * min(piece.depth, _DEEPEST)
        before = self._width if self._is_beside else 0
        room = self._columns - before - len(indent) - len(_INDENT)
        for number, line in enumerate(_words_of(piece).lines(self._console, room)):
            yield Text(indent + (_INDENT if number else "")) + line

    def _alone(self, label: deque[Text]) -> Iterator[Text]:
        """Yield the remaining lines of a label, without bytes."""
        while label:
            yield Text(" " * self._width if self._is_beside else "") + label.popleft()

    def _beside(self, row: Text, label: deque[Text]) -> Text:
        """Return a row with the next line of the label."""
        return row + " " * (self._width - row.cell_len) + label.popleft() if label else row

    def _rows(self, piece: Piece, label: deque[Text], diagnostics: Sequence[_Marked]) -> Iterator[Text]:
        """Yield the rows of a leaf piece with its label and diagnostics."""
        if not self._is_beside:
            yield from self._alone(label)
        untold = [marked for marked in diagnostics if marked.told]
        upto = piece.offset
        for start in self._shown_rows(piece, diagnostics):
            if start > upto:
                yield from self._alone(label)
                yield Text(f"{'':{self._gutter}}{_INDENT}… {start - upto:,} bytes", "dim")
            upto = min(start + self._count, piece.end)
            is_last = upto == piece.end
            yield self._beside(self._row(start, upto), label)
            for marked in diagnostics:
                if marked.is_in(start, upto, is_last):
                    yield self._beside(self._carets(marked, start, upto), label)
                if marked in untold and (is_last or marked.end <= upto):
                    untold.remove(marked)
                    yield from self._alone(label)
                    yield from self._told(marked.diagnostic)
        yield from self._alone(label)

    def _shown_rows(self, piece: Piece, diagnostics: Sequence[_Marked]) -> list[int]:
        """Return the offsets of the rows to show of a piece."""
        starts = range(piece.offset, max(piece.end, piece.offset + 1), self._count)
        shown = {*starts[:_FIRST_ROWS], *starts[-_LAST_ROWS:]}
        for marked in diagnostics:
            first = max(0, marked.start - piece.offset) // self._count
            last = max(0, min(marked.end, piece.end) - 1 - piece.offset) // self._count
            shown |= {*starts[first : first + _FIRST_ROWS][: last - first + 1], *starts[last : last + 1]}
        return sorted(shown)

    def _row(self, start: int, end: int) -> Text:
        shown = self._data[start:end].hex(" ")
        text = "".join(_cells(self._data, start, end))
        return Text.assemble(
            (f"{start:>{self._gutter}}", "dim"), f"{_INDENT}{shown:<{self._hex_width}}{_INDENT}{text}"
        )

    def _carets(self, marked: _Marked, start: int, end: int) -> Text:
        first, last = max(marked.start - start, 0), min(marked.end, end) - start
        count = max(last - first, 0)
        under_hex = " " * min(3 * first, self._hex_width) + ("^" * (3 * count - 1) if count else "^")
        under_text = " " * first + "^" * max(count, 1)
        gap = " " * (self._gutter + len(_INDENT))
        carets = (
            f"{gap}{under_hex:<{self._hex_width}}{_INDENT[len(under_hex) > self._hex_width :]}{under_text}"
        )
        # Style only the carets: the label continues beside them.
        return Text.assemble((carets, COLOURS[marked.diagnostic.severity]))

    def _told(self, diagnostic: DiagnosticDetail) -> Iterator[Text]:
        """Yield the text of a diagnostic."""
        head = Text.assemble(
            (f"{diagnostic.severity}[{diagnostic.code}]", COLOURS[diagnostic.severity]),
            f": {diagnostic.text}",
        )
        told = [head]
        if diagnostic.length > _MARKED:
            last = diagnostic.offset + diagnostic.length - 1
            told.append(Text(f"place: bytes {diagnostic.offset} to {last}"))
        told += [Text(f"{title}: {text}") for title, text in reasons(diagnostic) if title != "from"]
        if diagnostic.blame == "kiebitz":
            told.append(Text(ALTERED_BY_KIEBITZ))
        start = " " * (self._gutter + len(_INDENT))
        for number, text in enumerate(told):
            indent = start + (_INDENT if number else "")
            for line in text.lines(self._console, self._columns - len(start) - 2 * len(_INDENT)):
                yield Text(indent) + line
                indent = start + 2 * _INDENT


def _words_of(piece: Piece) -> Text:
    """Return a piece's label: name, value and production."""
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
    """Return a field's name relative to the enclosing piece."""
    step = piece.path[-1]
    return f"{piece.path[-2]}[{step}]" if isinstance(step, int) else step


def _cells(data: bytes, start: int, end: int) -> Iterator[str]:
    """Yield the text column: each character at its first byte, dots for the other bytes.

    A wide character also covers its second byte.
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
