"""The dissection tree of a message: the types of the grammar with the JSON members that they match.

A member is one piece: its name, its value, and the comma and blanks after it. If the value is an object or a
list, the piece contains its parts.
"""

from __future__ import annotations

from kiebitz.dissectors.grammar.dissection_tree import Kind, Piece, Pieces, not_understood
from kiebitz.dissectors.grammar.grammar import Decoded
from kiebitz.dissectors.grammar.patching import Path
from kiebitz.dissectors.model import Direction
from kiebitz.dissectors.protocols.catan.grammar import NAMES, Nachricht
from kiebitz.dissectors.protocols.catan.scanner import DEPTH_LIMIT, name_at, tokens
from kiebitz.dissectors.protocols.catan.values import Coordinates, Member, SingleValue, Value

_BRACKETS = {ord("{"): "object", ord("["): "list"}
_CLOSING = b"]}"
_UNKNOWN = "not specified here: readers ignore it"
_BLANKS = b" \t\r\n"


def build_tree(frame: bytes, decoded: Decoded, row: Nachricht | None, upto: int) -> tuple[Piece, ...]:
    """Return the pieces of a frame that is JSON up to an offset.

    Args:
        frame: The bytes.
        decoded: The decoded message.
        row: The row that the frame fits, or was probably intended to fit.
        upto: Offset up to which the frame is JSON.
    """
    pieces = Pieces(frame)
    if row is None:
        body = len(frame.rstrip(_BLANKS)) or len(frame)
        pieces.take_any(body, *not_understood(decoded))
    else:
        _TreeBuilder(frame, decoded, row, upto, pieces).take()
    if not frame[pieces.at :].strip(_BLANKS):
        pieces.take_any(len(frame), "markup", "line feed")
    return pieces.finish(decoded)


def begun_message(frame: bytes, direction: Direction, upto: int) -> str | None:
    """Return the name of the message that begins a frame, which is JSON up to an offset."""
    walk = tokens(frame, upto)
    opening, key = next(walk, None), next(walk, None)
    if opening is None or key is None or frame[opening[0]] != ord("{") or frame[key[0]] != ord('"'):
        return None
    return NAMES[direction].get(name_at(frame, key))


class _TreeBuilder:
    """Builder of the pieces from the tokens of an object."""

    def __init__(self, frame: bytes, decoded: Decoded, row: Nachricht, upto: int, pieces: Pieces) -> None:
        self._frame, self._row, self._pieces = frame, row, pieces
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
        pieces, row = self._pieces, self._row
        pieces.take_any(self._begin, "ignored", "blanks")
        self._pass()
        pieces.take(self._begin, "markup", "object")
        while self._goes_on:
            key = self._pass()
            member = row.around.member(name_at(self._frame, key))
            if member is None or member.step != row.name:
                self._part(member, (), key[0], 1)
            else:
                self._body(row.body, key[0])
        self._close("object")

    def _body(self, kind: Value, key: int) -> None:
        is_wrong = self._violation in (key, self._begin)
        brackets = _BRACKETS.get(self._byte)
        if brackets is None or is_wrong or isinstance(kind, SingleValue):
            self._pieces.take(self._begin, "name", self._row.name)
            member = kind.whole if isinstance(kind, SingleValue) else Member(self._row.name, kind)
            self._part(member, (), key, 1)
            return
        self._pass()
        self._pieces.take(self._begin, "name", f"{self._row.name}: {kind.title}")
        self._members(kind, (), brackets, 1)
        if self._byte:
            self._pass()
            if self._byte not in _CLOSING:
                self._pieces.take(self._after_comma(), "markup", f"end of the {brackets}")

    def _members(self, kind: Value, path: Path, brackets: str, depth: int) -> None:
        """Add the members of an object, or the items of a list, whose opening bracket is consumed."""
        number = 0
        while self._goes_on:
            begin = self._begin
            step: str | int = number
            if brackets == "object":
                step = name_at(self._frame, self._pass())
            self._part(kind.member(step), path, begin, depth)
            number += 1

    def _part(self, member: Member | None, path: Path, begin: int, depth: int) -> None:
        """Add a member or item that begins at `begin` and whose value comes next; None if it is unknown."""
        kind: Kind = "field" if member is not None else "ignored"
        if self._violation in (begin, self._begin):
            kind = "unread"
        path = (*path, member.step) if member is not None else ()
        production = member.kind.title if member is not None else _UNKNOWN
        brackets = _BRACKETS.get(self._byte)
        # Coordinates are short enough for one piece, unless they contain an error.
        is_whole = member is None or (self._is_valid and type(member.kind) is Coordinates)
        if member is not None and brackets and kind == "field" and not is_whole and depth < DEPTH_LIMIT:
            with self._pieces.inside(kind, production, path):
                self._pass()
                self._pieces.take(self._begin, "markup", brackets)
                self._members(member.kind, path, brackets, depth + 1)
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
