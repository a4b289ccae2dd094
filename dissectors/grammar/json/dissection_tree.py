"""The dissection tree of a message: the types of the grammar with the JSON members that they match.

A member is one piece: its name, its value, and the comma and blanks after it. If the value is an object or a
list, the piece contains its parts.
"""

from __future__ import annotations

from kiebitz.dissectors.grammar.dissection_tree import Kind, Piece, Pieces, not_understood
from kiebitz.dissectors.grammar.envelope import Envelope
from kiebitz.dissectors.grammar.grammar import Decoded
from kiebitz.dissectors.grammar.json.containers import JsonAlone
from kiebitz.dissectors.grammar.json.layouts import JsonRow, Layout
from kiebitz.dissectors.grammar.json.scanner import DEPTH_LIMIT, name_at, tokens
from kiebitz.dissectors.grammar.json.types import JsonType, Part
from kiebitz.dissectors.grammar.patching import Path

_BRACKETS = {ord("{"): "object", ord("["): "list"}
_CLOSING = b"]}"
_UNKNOWN = "not specified here: readers ignore it"
_BLANKS = b" \t\r\n"


def build_tree(
    frame: bytes, decoded: Decoded, layout: Layout, row: JsonRow | None, upto: int, envelope: Envelope
) -> tuple[Piece, ...]:
    """Return the pieces of a frame that is JSON up to an offset.

    Args:
        frame: The bytes.
        decoded: The decoded message.
        layout: Where messages have their names and fields.
        row: The row that the frame fits, or was probably intended to fit.
        upto: Offset up to which the frame is JSON.
        envelope: The bytes around the object.
    """
    size = len(frame)
    start, end = envelope.body(frame)
    frame = frame[:end]
    pieces = Pieces(frame)
    pieces.take_any(start, "markup", envelope.title)
    if row is None:
        body = len(frame.rstrip(_BLANKS)) or len(frame)
        pieces.take_any(body, *not_understood(decoded))
    else:
        _TreeBuilder(frame, decoded, layout, row, upto, pieces).take()
    if not frame[pieces.at :].strip(_BLANKS):
        pieces.take_any(end, "markup", "line feed" if frame.endswith(b"\n") else "blanks")
    found = pieces.finish(decoded)
    return found if end == size else (*found, Piece(end, size - end, 0, "markup", envelope.tail))


class _TreeBuilder:
    """Builder of the pieces from the tokens of an object."""

    def __init__(
        self, frame: bytes, decoded: Decoded, layout: Layout, row: JsonRow, upto: int, pieces: Pieces
    ) -> None:
        self._frame, self._layout, self._row, self._pieces = frame, layout, row, pieces
        self._is_valid = decoded.valid
        self._tokens = tokens(frame, upto)
        self._next = next(self._tokens, None)
        self._end = 0
        """End of the last consumed token."""
        self._violation: int | None = None
        """Offset of the value or name that is invalid."""
        if not decoded.valid and upto == len(frame) and decoded.violations[0].code != "missing-attribute":
            self._violation = decoded.violations[0].place(frame)[0]

    def take(self) -> None:
        self._pieces.take_any(self._begin, "ignored", "blanks")
        self._object_around(self._layout.around(self._row), ())

    def _object_around(self, kind: JsonType, path: Path) -> None:
        """Add an object that contains the name or the fields, or both, at a path."""
        pieces, row = self._pieces, self._row
        is_body = self._layout.role(row, path) == "fields"
        self._pass()
        pieces.take(self._begin, "markup", "object")
        while self._goes_on:
            begin = self._pass()[0]
            part = kind.part(name_at(self._frame, (begin, self._end - begin)))
            inner = () if part is None else (*path, part.step)
            role = "other" if part is None else self._layout.role(row, inner)
            if part is not None and role == "fields" and self._layout.name_is_key:
                self._body(part.type, begin)
            elif part is not None and role in ("around", "fields") and self._byte == ord("{"):
                pieces.take(self._begin, "markup", str(part.step))
                self._object_around(part.type, inner)
            elif role == "name" and self._violation != self._begin:
                if self._pass_value():
                    pieces.take(self._after_comma(), "name", row.name)
            else:
                is_field = part is not None and any(part.step == field.name for field in row.fields)
                self._part(part if is_field or is_body else None, (), begin, 1)
        self._close("object")

    def _body(self, kind: JsonType, key: int) -> None:
        """Add the fields of a message, whose name is the key before them."""
        is_wrong = self._violation in (key, self._begin)
        brackets = _BRACKETS.get(self._byte)
        if brackets is None or is_wrong or isinstance(kind, JsonAlone):
            self._pieces.take(self._begin, "name", self._row.name)
            part = (
                Part(kind.field.name, kind.type)
                if isinstance(kind, JsonAlone)
                else Part(self._row.name, kind)
            )
            self._part(part, (), key, 1)
            return
        self._pass()
        self._pieces.take(self._begin, "name", f"{self._row.name}: {kind.title}")
        self._members(kind, (), brackets, 1)
        if self._byte:
            self._pass()
            if self._byte not in _CLOSING:
                self._pieces.take(self._after_comma(), "markup", f"end of the {brackets}")

    def _members(self, kind: JsonType, path: Path, brackets: str, depth: int) -> None:
        """Add the members of an object, or the items of a list, whose opening bracket is consumed."""
        number = 0
        while self._goes_on:
            begin = self._begin
            step: str | int = number
            if brackets == "object":
                step = name_at(self._frame, self._pass())
            self._part(kind.part(step), path, begin, depth)
            number += 1

    def _part(self, part: Part | None, path: Path, begin: int, depth: int) -> None:
        """Add a member or item that begins at `begin` and whose value comes next; None if it is unknown."""
        kind: Kind = "field" if part is not None else "ignored"
        if self._violation in (begin, self._begin):
            kind = "unread"
        path = (*path, part.step) if part is not None else ()
        production = part.type.title if part is not None else _UNKNOWN
        brackets = _BRACKETS.get(self._byte)
        # A compact value is short enough for one piece, unless it contains an error.
        is_whole = part is None or (self._is_valid and part.type.is_compact)
        if part is not None and brackets and kind == "field" and not is_whole and depth < DEPTH_LIMIT:
            with self._pieces.inside(kind, production, path):
                self._pass()
                self._pieces.take(self._begin, "markup", brackets)
                self._members(part.type, path, brackets, depth + 1)
                self._close(brackets)
        elif self._pass_value():
            self._pieces.take(self._after_comma(), kind, production, path)

    def _close(self, brackets: str) -> None:
        if self._byte:
            self._pass()
            self._pieces.take(self._after_comma(), "markup", f"end of the {brackets}")

    @property
    def _begin(self) -> int:
        """Offset of the next token; without one, the end of the last token."""
        return self._end if self._next is None else self._next[0]

    @property
    def _goes_on(self) -> bool:
        """True if the object or list has more parts to add."""
        return self._byte not in (0, *_CLOSING) and not self._pieces.is_full

    @property
    def _byte(self) -> int:
        """First byte of the next token; 0 if there is none."""
        return 0 if self._next is None else self._frame[self._next[0]]

    def _pass(self) -> tuple[int, int]:
        """Consume the next token, and return its offset and length."""
        assert self._next is not None
        token, self._next = self._next, next(self._tokens, None)
        self._end = token[0] + token[1]
        return token

    def _pass_value(self) -> bool:
        """Consume the next value, and return True if it is complete."""
        depth = 0
        while self._next is not None:
            byte = self._byte
            self._pass()
            depth += (byte in _BRACKETS) - (byte in _CLOSING)
            if not depth:
                return True
        return False

    def _after_comma(self) -> int:
        """Consume a comma, if there is one; return the offset of the next token."""
        if self._byte == ord(","):
            self._pass()
        return self._begin
