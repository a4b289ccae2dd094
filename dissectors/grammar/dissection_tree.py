"""What a frame is made of: which production of the grammar took which of its bytes.

This is worked out when somebody looks at a message; reading traffic never does it. A codec's `anatomy` walks
over a frame once more and takes byte after byte, so that none is left out and none is taken twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal

import msgspec

from kiebitz.dissectors.grammar.grammar import Decoded
from kiebitz.dissectors.grammar.patching import Path, value_at

Kind = Literal["name", "field", "markup", "ignored", "unread", "rest"]
"""How a piece belongs to its message.

The `name` says which message it is, a `field` is one of its values or a part of one, and `markup` holds these
apart (delimiters, quotation marks, brackets, line ends). Readers pass over `ignored` bytes. No production
took `unread` ones, and the `rest` is not taken apart because there is too much.
"""

MAX_PIECES = 1000
"""A frame is taken apart into no more pieces; one more is the rest of it."""

_REST = "not taken apart: the message has too many parts"
_UNREAD = "not understood"


class Piece(msgspec.Struct, frozen=True):
    """Some bytes of a frame, from `offset` of it, and the `production` that took them, in words.

    Pieces come in the order of their bytes, each before those inside it, whose `depth` is one more. Those of
    depth 0 are the whole frame, and those inside a piece are all of it; one without bytes is an empty value.

    `path` leads to a value in the message's fields; () if the piece is no field. Of an unread one it says
    which was to stand there. The innermost piece of a path that was read has its `value`, which JSON leaves
    out of all others.
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
        """Where the bytes behind it begin."""
        return self.offset + self.length


class Pieces:
    """Takes a frame apart from its first byte to its last; `at` is the first that is not taken yet."""

    def __init__(self, frame: bytes) -> None:
        self.at = 0
        self.is_full = False
        """Whether there are as many as there may be: then nothing more is taken."""
        self._size = len(frame)
        self._found: list[Piece] = []
        self._depth = 0

    def take(self, end: int, kind: Kind, production: str, path: Path = ()) -> None:
        """The bytes up to `end` are one piece. There may be none of them."""
        if self._has_room():
            end = max(self.at, min(end, self._size))
            self._found.append(Piece(self.at, end - self.at, self._depth, kind, production, path))
            self.at = end

    def take_any(self, end: int, kind: Kind, production: str, path: Path = ()) -> None:
        """The same, if there are bytes."""
        if min(end, self._size) > self.at:
            self.take(end, kind, production, path)

    @contextmanager
    def inside(self, kind: Kind, production: str, path: Path = ()) -> Iterator[None]:
        """All that is taken meanwhile is inside of one piece."""
        if not self._has_room():
            yield
            return
        number, start = len(self._found), self.at
        self._found.append(Piece(start, 0, self._depth, kind, production, path))
        self._depth += 1
        yield
        self._depth -= 1
        if self.is_full and self.at == start:
            # What is in it came too late.
            del self._found[number:]
        else:
            around = self._found[number]
            self._found[number] = msgspec.structs.replace(around, length=self.at - start)

    def _has_room(self) -> bool:
        self.is_full = self.is_full or len(self._found) >= MAX_PIECES
        return not self.is_full

    def finish(self, decoded: Decoded) -> tuple[Piece, ...]:
        """All pieces, with their values; what was not taken is unread, or the rest."""
        if self.at < self._size:
            kind: Kind = "rest" if self.is_full else "unread"
            production = _REST if self.is_full else _UNREAD
            self._found.append(Piece(self.at, self._size - self.at, 0, kind, production))
        return _with_values(self._found, decoded.fields)


def whole(frame: bytes, decoded: Decoded, production: str) -> tuple[Piece, ...]:
    """A frame in one piece: as its name, or unread if nothing could be made out."""
    pieces = Pieces(frame)
    if decoded.row is None:
        pieces.take_any(len(frame), *not_understood(decoded))
    else:
        pieces.take_any(len(frame), "name", production)
    return pieces.finish(decoded)


def not_understood(decoded: Decoded) -> tuple[Kind, str]:
    """What the bytes of a frame are in which no message could be made out."""
    if decoded.violations and all(violation.severity == "note" for violation in decoded.violations):
        return "ignored", "passed over"
    return "unread", _UNREAD


def _with_values(pieces: list[Piece], fields: Mapping[str, Any]) -> tuple[Piece, ...]:
    """The pieces, the innermost of each path with its value.

    Of two of one path the last counts, as of two members of one name in JSON.
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
                # What was read says it in another form.
                pass
            else:
                given |= {piece.path[:steps] for steps in range(1, len(piece.path) + 1)}
                inner = True
        has_inner[piece.depth] |= inner
        found.append(piece)
    return tuple(reversed(found))
