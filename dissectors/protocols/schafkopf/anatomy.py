"""The annotated bytes of a Paket: nonterminals of the EBNF and their lines, each with its line feed."""

from __future__ import annotations

from itertools import accumulate

from kiebitz.dissectors.grammar.dissection_tree import Kind, Piece, Pieces, not_understood
from kiebitz.dissectors.grammar.grammar import Decoded
from kiebitz.dissectors.grammar.patching import Path
from kiebitz.dissectors.protocols.schafkopf.grammar import END, Nonterminal, line_count, notation
from kiebitz.dissectors.protocols.schafkopf.paket import first_wrong, lines_of, read_lines

_SURPLUS = "surplus: readers ignore it"
_AFTER_AN_ERROR = "not read, because of the error before it"


def anatomy(frame: bytes, decoded: Decoded) -> tuple[Piece, ...]:
    """Return the annotated bytes of a decoded Paket."""
    pieces = Pieces(frame)
    if decoded.row is None:
        pieces.take_any(len(frame), *not_understood(decoded))
        return pieces.finish(decoded)
    _Walk(frame, decoded, pieces).take()
    return pieces.finish(decoded)


class _Walk:
    """A traversal of the lines of a Paket of a known row."""

    def __init__(self, frame: bytes, decoded: Decoded, pieces: Pieces) -> None:
        assert decoded.row is not None
        self._row, self._is_valid, self._pieces = decoded.row, decoded.valid, pieces
        self._ends = [*accumulate(len(line) + 1 for line in frame.split(b"\n"))]
        body = read_lines(frame)[0][1:]
        self._is_ended = body[-1:] == [END] and not (self._row.name == "MODEL" and self._is_valid)
        if self._is_ended:
            del body[-1]
        wrong = None if self._is_valid else first_wrong(self._row, body)
        self._count = len(body)
        self._first_wrong = self._count if wrong is None else wrong.first
        """Number of lines after the flag that fit the row."""
        self._last_wrong = -1 if wrong is None else wrong.last

    def take(self) -> None:
        row, pieces = self._row, self._pieces
        self._lines(0, "name", notation(row))
        for name, kind, start, _ in lines_of(row).fields:
            if start < self._count and start <= self._first_wrong:
                self._field(kind, start, (name,))
        body_end = self._ends[self._count]
        if self._is_valid:
            pieces.take_any(body_end, "ignored", _SURPLUS)
        else:
            is_all_read = self._first_wrong >= min(line_count(row), self._count)
            pieces.take_any(body_end, "unread", "not understood" if is_all_read else _AFTER_AN_ERROR)
        if self._is_ended:
            self._lines(self._count + 1, "markup", f'"{END}"')

    def _lines(self, last: int, kind: Kind, production: str, path: Path = ()) -> None:
        """Take the lines up to this one; the flag is line 0."""
        self._pieces.take(self._ends[last], kind, production, path)

    def _field(self, kind: Nonterminal, at: int, path: Path) -> None:
        """Take a nonterminal that begins on a line after the flag, counted from 0."""
        if kind.lines == 1:
            self._terminal(kind, at, path)
            return
        with self._pieces.inside("field", kind.title, path):
            if kind.part is kind:
                for number, terminal in enumerate(kind.terminals):
                    self._terminal(terminal, at + number, path, terminal.symbol)
                return
            for number in range(kind.lines // kind.part.lines):
                start = at + number * kind.part.lines
                if start < self._count and start <= self._first_wrong:
                    self._field(kind.part, start, (*path, number))

    def _terminal(self, kind: Nonterminal, at: int, path: Path, symbol: str | None = None) -> None:
        """Take a single line; as a part of a value of several lines, it is named by its symbol."""
        if at < min(self._first_wrong, self._count):
            self._lines(at + 1, "field", *((kind.title, path) if symbol is None else (symbol, ())))
        elif at == self._first_wrong and at < self._count:
            self._lines(self._last_wrong + 1, "unread", kind.title, path)
