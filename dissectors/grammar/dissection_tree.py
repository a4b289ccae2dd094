"""The dissection tree of a frame: which production of the grammar each of its bytes belongs to.

It is built only when a message is displayed, never while traffic is decoded. A codec's `anatomy` walks over a
frame once more and consumes each byte exactly once, so that no byte is missing and none has two owners.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

import msgspec

from kiebitz.dissectors.grammar.field_type import Fields
from kiebitz.dissectors.grammar.grammar import Decoded, Path, value_at

Kind = Literal["name", "field", "markup", "ignored", "unread", "rest"]
"""Role of a piece in its message.

The `name` identifies the message, a `field` is one of its values or a part of one, and `markup` separates
these (delimiters, quotation marks, brackets, line ends). Readers skip `ignored` bytes. `unread` bytes belong
to no production. The `rest` is not annotated, because the message has too many pieces.
"""

MAX_PIECES = 1000
"""Maximum number of pieces of a frame, without one more for its rest."""

_REST = "not taken apart: the message has too many parts"
_UNREAD = "not understood"


class Piece(msgspec.Struct, frozen=True):
    """Consecutive bytes of a frame, and the `production` that they belong to, in words.

    `offset` counts from the start of the frame. Pieces are in the order of their bytes, and each precedes its
    children, whose `depth` is greater by one. The pieces of depth 0 cover the frame, and children cover their
    parent. A piece without bytes is an empty value.

    `path` leads to a value in the message's fields; () if the piece is no field. For an unread piece, it is
    the path of the expected field. `value` is set in the innermost decoded piece of a path only; JSON omits
    it in all others.
    """

    offset: int
    length: int
    depth: int
    kind: Kind
    production: str
    path: Path = ()
    value: Any = msgspec.UNSET

    @property
    def end(self) -> int:
        """Offset of the first byte after the piece."""
        return self.offset + self.length


class Pieces:
    """Builder of a frame's pieces, from its first byte to its last; all bytes before `at` are consumed."""

    def __init__(self, frame: bytes) -> None:
        self.at = 0
        self.is_full = False
        """True if the maximum number of pieces is reached: further ones are not added."""
        self.frame = frame
        self._size = len(frame)
        self._found: list[Piece] = []
        self._depth = 0

    def take(self, end: int, kind: Kind, production: str, path: Path = ()) -> None:
        """Add a piece for the bytes up to `end`, of which there may be none."""
        if self._has_room():
            end = max(self.at, min(end, self._size))
            self._found.append(Piece(self.at, end - self.at, self._depth, kind, production, path))
            self.at = end

    def take_any(self, end: int, kind: Kind, production: str, path: Path = ()) -> None:
        """Add a piece for the bytes up to `end`, if there are any."""
        if min(end, self._size) > self.at:
            self.take(end, kind, production, path)

    @contextmanager
    def inside(self, kind: Kind, production: str, path: Path = ()) -> Iterator[None]:
        """Add a parent piece for all pieces that are added within the `with` block."""
        if not self._has_room():
            yield
            return
        number, start = len(self._found), self.at
        self._found.append(Piece(start, 0, self._depth, kind, production, path))
        self._depth += 1
        yield
        self._depth -= 1
        if self.is_full and self.at == start:
            # The limit was reached before any child was added.
            del self._found[number:]
        else:
            around = self._found[number]
            self._found[number] = msgspec.structs.replace(around, length=self.at - start)

    def _has_room(self) -> bool:
        self.is_full = self.is_full or len(self._found) >= MAX_PIECES
        return not self.is_full

    def finish(self, decoded: Decoded) -> tuple[Piece, ...]:
        """Return all pieces, with their values; bytes not consumed are unread, or the rest."""
        if self.at < self._size:
            kind: Kind = "rest" if self.is_full else "unread"
            production = _REST if self.is_full else _UNREAD
            self._found.append(Piece(self.at, self._size - self.at, 0, kind, production))
        return _with_values(self._found, decoded.fields)


def whole(frame: bytes, decoded: Decoded, production: str) -> tuple[Piece, ...]:
    """Return a frame as one piece: its name, or unread if it could not be decoded."""
    pieces = Pieces(frame)
    if decoded.row is None:
        pieces.take_any(len(frame), *not_understood(decoded))
    else:
        pieces.take_any(len(frame), "name", production)
    return pieces.finish(decoded)


def not_understood(decoded: Decoded) -> tuple[Kind, str]:
    """Return the kind and production for a frame without a recognized message."""
    if decoded.violations and all(violation.severity == "note" for violation in decoded.violations):
        return "ignored", "ignored"
    return "unread", _UNREAD


def _with_values(pieces: list[Piece], fields: Fields) -> tuple[Piece, ...]:
    """Return the pieces, with a value in the innermost piece of each path.

    If a path occurs twice, the last piece counts, as for duplicate members in JSON.
    """
    found: list[Piece] = []
    given: set[Path] = set()
    has_inner = [False] * (max((piece.depth for piece in pieces), default=0) + 2)
    for piece in reversed(pieces):
        inner, has_inner[piece.depth + 1] = has_inner[piece.depth + 1], False
        if piece.path and piece.kind != "unread" and not inner and piece.path not in given:
            try:
                piece = msgspec.structs.replace(piece, value=value_at(fields, piece.path))
            except (LookupError, TypeError):
                # The decoded fields have another structure than the text.
                pass
            else:
                given |= {piece.path[:steps] for steps in range(1, len(piece.path) + 1)}
                inner = True
        has_inner[piece.depth] |= inner
        found.append(piece)
    return tuple(reversed(found))
