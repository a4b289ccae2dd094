"""Which types of the grammar took which members of a message's JSON.

A member is one piece: its name, its value, and the comma and the blanks behind it. One whose value is an
object or a list has its parts inside.
"""

from __future__ import annotations

from kiebitz.dissectors.grammar.dissection_tree import Kind, Piece, Pieces, not_understood
from kiebitz.dissectors.grammar.grammar import Decoded
from kiebitz.dissectors.grammar.patching import Path
from kiebitz.dissectors.model import Direction
from kiebitz.dissectors.protocols.catan.grammar import NAMES, Nachricht
from kiebitz.dissectors.protocols.catan.scanner import DEPTH_LIMIT, name_at, tokens
from kiebitz.dissectors.protocols.catan.values import Member, Only, Place, Value

_BRACKETS = {ord("{"): "object", ord("["): "list"}
_CLOSING = b"]}"
_UNKNOWN = "not specified here: readers ignore it"
_BLANKS = b" \t\r\n"


def anatomy(frame: bytes, decoded: Decoded, row: Nachricht | None, upto: int) -> tuple[Piece, ...]:
    """The pieces of a frame that is JSON up to an offset; `row` is what it is, or was meant to be."""
    pieces = Pieces(frame)
    if row is None:
        body = len(frame.rstrip(_BLANKS)) or len(frame)
        pieces.take_any(body, *not_understood(decoded))
    else:
        _Walk(frame, decoded, row, upto, pieces).take()
    if not frame[pieces.at :].strip(_BLANKS):
        pieces.take_any(len(frame), "markup", "line feed")
    return pieces.finish(decoded)


def begun(frame: bytes, direction: Direction, upto: int) -> str | None:
    """The name of the message that begins a frame, which is JSON up to an offset; None if there is none."""
    walk = tokens(frame, upto)
    opening, key = next(walk, None), next(walk, None)
    if opening is None or key is None or frame[opening[0]] != ord("{") or frame[key[0]] != ord('"'):
        return None
    return NAMES[direction].get(name_at(frame, key))


class _Walk:
    """Goes through the tokens of an object, and takes what they make up."""

    def __init__(self, frame: bytes, decoded: Decoded, row: Nachricht, upto: int, pieces: Pieces) -> None:
        self._frame, self._row, self._pieces = frame, row, pieces
        self._is_valid = decoded.valid
        self._tokens = tokens(frame, upto)
        self._next = next(self._tokens, None)
        self._end = 0
        """Where the last token ends that was passed."""
        self._flaw: int | None = None
        """Where a value or a name begins that cannot stand where it stands."""
        if not decoded.valid and upto == len(frame) and decoded.flaws[0].code != "missing-attribute":
            self._flaw = decoded.flaws[0].place(frame)[0]

    def take(self) -> None:
        """Take all that is JSON."""
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
        """Take what stands behind the message's name, and the name with it."""
        is_wrong = self._flaw in (key, self._begin)
        brackets = _BRACKETS.get(self._byte)
        if brackets is None or is_wrong or isinstance(kind, Only):
            self._pieces.take(self._begin, "name", self._row.name)
            member = kind.whole if isinstance(kind, Only) else Member(self._row.name, kind)
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
        """Take the members of an object, or the items of a list, that has begun."""
        number = 0
        while self._goes_on:
            begin = self._begin
            step: str | int = number
            if brackets == "object":
                step = name_at(self._frame, self._pass())
            self._part(kind.member(step), path, begin, depth)
            number += 1

    def _part(self, member: Member | None, path: Path, begin: int, depth: int) -> None:
        """Take a member or an item that begins there, and whose value comes next; None if nobody knows it."""
        kind: Kind = "field" if member is not None else "ignored"
        if self._flaw in (begin, self._begin):
            kind = "unread"
        path = (*path, member.step) if member is not None else ()
        production = member.kind.title if member is not None else _UNKNOWN
        brackets = _BRACKETS.get(self._byte)
        # A place is short enough to be read at once, unless something is wrong in it.
        is_whole = member is None or (self._is_valid and type(member.kind) is Place)
        if member is not None and brackets and kind == "field" and not is_whole and depth < DEPTH_LIMIT:
            with self._pieces.inside(kind, production, path):
                self._pass()
                self._pieces.take(self._begin, "markup", brackets)
                self._members(member.kind, path, brackets, depth + 1)
                self._close(brackets)
        elif self._pass_value():
            self._pieces.take(self._after_comma(), kind, production, path)

    def _close(self, brackets: str) -> None:
        """Take the bracket that closes, if it is there."""
        if self._byte:
            self._pass()
            self._pieces.take(self._after_comma(), "markup", f"end of the {brackets}")

    # Tokens.

    @property
    def _begin(self) -> int:
        """Where the next token begins; if there is none, where the last one ended."""
        return self._end if self._next is None else self._next[0]

    @property
    def _goes_on(self) -> bool:
        """Whether the object or list has more in it that is to be taken."""
        return self._byte not in (0, *_CLOSING) and not self._pieces.is_full

    @property
    def _byte(self) -> int:
        """The first byte of the next token; 0 if there is none."""
        return 0 if self._next is None else self._frame[self._next[0]]

    def _pass(self) -> tuple[int, int]:
        """Pass the next token, which is there, and say where it stands: its offset and length."""
        assert self._next is not None
        token, self._next = self._next, next(self._tokens, None)
        self._end = token[0] + token[1]
        return token

    def _pass_value(self) -> bool:
        """Pass the value that comes next, and say whether it is all there."""
        depth = 0
        while self._next is not None:
            byte = self._byte
            self._pass()
            depth += (byte in _BRACKETS) - (byte in _CLOSING)
            if not depth:
                return True
        return False

    def _after_comma(self) -> int:
        """Where a part ends with the comma behind it, and the blanks up to what comes next."""
        if self._byte == ord(","):
            self._pass()
        return self._begin
