"""The dissection tree of a message: the types of the grammar with the JSON members that they match.

A member is one piece: its name, its value, and the comma and blanks after it. If the value is an object or a
list, the piece contains its parts.
"""

from __future__ import annotations

from kiebitz.dissectors.grammar.dissection_tree import Kind, Piece, Pieces, not_understood
from kiebitz.dissectors.grammar.envelope import Envelope
from kiebitz.dissectors.grammar.grammar import Decoded, Path
from kiebitz.dissectors.grammar.json.containers import JsonAlone
from kiebitz.dissectors.grammar.json.layouts import JsonRow, Layout
from kiebitz.dissectors.grammar.json.scanner import Member, Node, parse_places
from kiebitz.dissectors.grammar.json.types import JsonType, Part

_BRACKETS = {ord("{"): "object", ord("["): "list"}
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
        _TreeBuilder(frame, decoded, layout, row, upto, pieces).take(parse_places(frame, upto))
    if not frame[pieces.at :].strip(_BLANKS):
        pieces.take_any(end, "markup", "line feed" if frame.endswith(b"\n") else "blanks")
    found = pieces.finish(decoded)
    return found if end == size else (*found, Piece(end, size - end, 0, "markup", envelope.tail))


class _TreeBuilder:
    """Builder of the pieces from the values of an object."""

    def __init__(
        self, frame: bytes, decoded: Decoded, layout: Layout, row: JsonRow, upto: int, pieces: Pieces
    ) -> None:
        self._frame, self._layout, self._row, self._pieces = frame, layout, row, pieces
        self._is_valid = decoded.valid
        self._violation: int | None = None
        """Offset of the value or name that is invalid."""
        if not decoded.valid and upto == len(frame) and decoded.violations[0].code != "missing-attribute":
            self._violation = decoded.violations[0].place(frame)[0]

    def take(self, root: Node) -> None:
        self._pieces.take_any(root.start, "ignored", "blanks")
        self._object_around(root, self._layout.around(self._row), ())

    def _object_around(self, node: Node, kind: JsonType, path: Path) -> None:
        """Add an object that contains the name or the fields, or both, at a path."""
        pieces, row = self._pieces, self._row
        is_body = self._layout.role(row, path) == "fields"
        pieces.take(node.inside, "markup", "object")
        for member in node.members:
            value = member.value
            part = kind.part(member.step)
            inner = () if part is None else (*path, part.step)
            role = "other" if part is None else self._layout.role(row, inner)
            if part is not None and role == "fields" and self._layout.name_is_key:
                self._body(member, part.type, is_last=node.is_complete and member is node.members[-1])
            elif part is not None and role in ("around", "fields") and self._brackets(value) == "object":
                pieces.take(value.start, "markup", str(part.step))
                self._object_around(value, part.type, inner)
            elif role == "name" and not self._is_wrong(value.start):
                if value.is_complete:
                    pieces.take(value.after, "name", row.name)
            else:
                is_field = part is not None and any(part.step == field.name for field in row.fields)
                self._part(member, part if is_field or is_body else None, ())
        self._close(node, "object")

    def _body(self, member: Member, kind: JsonType, is_last: bool) -> None:
        """Add the fields of a message, whose name is the key before them."""
        value, brackets = member.value, self._brackets(member.value)
        if not brackets or self._is_wrong(member.start, value.start) or isinstance(kind, JsonAlone):
            self._pieces.take(value.start, "name", self._row.name)
            part = Part(self._row.name, kind)
            if isinstance(kind, JsonAlone):
                part = Part(kind.field.name, kind.type)
            self._part(member, part, ())
            return
        self._pieces.take(value.inside, "name", f"{self._row.name}: {kind.title}")
        self._members(value, kind, ())
        if not is_last:
            self._close(value, brackets)

    def _members(self, node: Node, kind: JsonType, path: Path) -> None:
        """Add the members of an object, or the items of a list, whose opening bracket is consumed."""
        for member in node.members:
            if self._pieces.is_full:
                return
            self._part(member, kind.part(member.step), path)

    def _part(self, member: Member, part: Part | None, path: Path) -> None:
        """Add a member or item; None if it is unknown."""
        value = member.value
        kind: Kind = "field" if part is not None else "ignored"
        if self._is_wrong(member.start, value.start):
            kind = "unread"
        path = (*path, part.step) if part is not None else ()
        production = part.type.title if part is not None else _UNKNOWN
        brackets = self._brackets(value)
        # A compact value is short enough for one piece, unless it contains an error.
        is_whole = part is None or (self._is_valid and part.type.is_compact)
        if part is not None and brackets and kind == "field" and not is_whole:
            with self._pieces.inside(kind, production, path):
                self._pieces.take(value.inside, "markup", brackets)
                self._members(value, part.type, path)
                self._close(value, brackets)
        elif value.is_complete:
            self._pieces.take(value.after, kind, production, path)

    def _close(self, node: Node, brackets: str) -> None:
        if node.is_complete:
            self._pieces.take(node.after, "markup", f"end of the {brackets}")

    def _brackets(self, node: Node) -> str:
        """Return the word for an object or a list; empty for any other value."""
        return _BRACKETS.get(self._frame[node.start], "") if node.start < node.end else ""

    def _is_wrong(self, *offsets: int) -> bool:
        """Return True if the value or name at one of the offsets is invalid."""
        return self._violation in offsets
