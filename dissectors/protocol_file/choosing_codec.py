"""Codecs that choose another one for a message, or doubt it.

Each direction may have its own format, some messages have no name, and where they end may be a guess.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from kiebitz.dissectors.grammar.codec import CarriedCodec, Codec
from kiebitz.dissectors.grammar.dissection_tree import Piece
from kiebitz.dissectors.grammar.field_type import Fields, WireType
from kiebitz.dissectors.grammar.grammar import NAMELESS, Decoded, Grammar, MessageType
from kiebitz.dissectors.model import DIRECTIONS, Direction
from kiebitz.dissectors.protocol_file.specification import Specification


class ChoosingCodec(CarriedCodec):
    """A codec that chooses another one by the direction, and by the name: a row without one fits last."""

    def __init__(
        self, specification: Specification, grammar: Grammar, make: Callable[[Specification, Grammar], Codec]
    ) -> None:
        self._codecs: dict[tuple[Direction, bool], Codec] = {}
        """The codecs by direction, and by whether messages have a name."""
        for direction in DIRECTIONS:
            for has_name in (True, False):
                rows = [
                    row
                    for row in grammar.rows
                    if row.direction == direction and (row.name != NAMELESS) == has_name
                ]
                if not rows:
                    continue
                of = specification.format_of(direction)
                if not has_name:
                    of = msgspec.structs.replace(of, name="")
                inner = msgspec.structs.replace(specification, format=of)
                self._codecs[direction, has_name] = make(inner, grammar.part(rows))
        self._first = next(iter(self._codecs.values()))
        self.wire_fallback = self._first.wire_fallback

    def _chosen(self, frame: bytes, direction: Direction) -> tuple[Codec, Decoded]:
        """Return the codec of a frame, and the decoded message."""
        named, nameless = (self._codecs.get((direction, has_name)) for has_name in (True, False))
        codec = named or nameless or self._first
        decoded = codec.decode(frame, direction)
        is_empty = any(each.severity == "note" for each in decoded.violations)
        if decoded.row is None and named is not None and nameless is not None and not is_empty:
            other = nameless.decode(frame, direction)
            if other.valid:
                return nameless, other
        return codec, decoded

    def decode(self, frame: bytes, direction: Direction) -> Decoded:
        return self._chosen(frame, direction)[1]

    def truncated(self, frame: bytes, direction: Direction) -> Decoded:
        return self._chosen(frame, direction)[0].truncated(frame, direction)

    def encode(self, name: str, direction: Direction, fields: Fields) -> bytes:
        codec = self._codecs.get((direction, name != NAMELESS))
        if codec is None:
            raise ValueError(f"{direction} {name} is not known")
        frame = codec.encode(name, direction, fields)
        decoded = self.decode(frame, direction)
        if decoded.row is None or decoded.row.name != name:
            raise ValueError(f"{direction} {name} with these fields would be another message")
        return frame

    def rewrite(self, frame: bytes, direction: Direction, fields: Fields) -> bytes:
        return self._chosen(frame, direction)[0].rewrite(frame, direction, fields)

    def patch(self, frame: bytes, row: MessageType, before: Fields, fields: Fields) -> bytes:
        return self.inner_of(row)[0].patch(frame, row, before, fields)

    def anatomy(self, frame: bytes, direction: Direction) -> tuple[Piece, ...]:
        return self._chosen(frame, direction)[0].anatomy(frame, direction)

    def inner_of(self, row: MessageType) -> tuple[Codec, MessageType]:
        return self._codecs[row.direction, row.name != NAMELESS], row

    def resembles(self, frame: bytes, direction: Direction) -> bool:
        named = self._codecs.get((direction, True))
        return named is not None and named.resembles(frame, direction)

    def wire_format(self) -> WireType | None:
        described = {direction: codec.wire_format() or {} for (direction, _), codec in self._codecs.items()}
        runtime = dict.fromkeys(part for each in described.values() for part in each.get("runtime", ()))
        formats = {
            direction: {key: value for key, value in each.items() if key not in ("framing", "runtime")}
            for direction, each in described.items()
        }
        first = next(iter(described.values()))
        return {**first, "runtime": tuple(runtime), "formats": formats}


class GuessedCodec(CarriedCodec):
    """The codec of messages whose end is a guess: what does not fit may be a wrong guess, and is no error."""

    def __init__(self, inner: Codec, kind: str) -> None:
        self.inner = inner
        self.wire_fallback = inner.wire_fallback
        self._kind = kind

    def decode(self, frame: bytes, direction: Direction) -> Decoded:
        return self._doubted(self.inner.decode(frame, direction))

    def truncated(self, frame: bytes, direction: Direction) -> Decoded:
        return self._doubted(self.inner.truncated(frame, direction))

    @staticmethod
    def _doubted(decoded: Decoded) -> Decoded:
        if not decoded.violations:
            return decoded
        violations = tuple(
            msgspec.structs.replace(
                each,
                severity="warning" if each.severity == "error" else each.severity,
                text=f"{each.text} (where a message ends is a guess)",
            )
            for each in decoded.violations
        )
        return msgspec.structs.replace(decoded, violations=violations)

    def encode(self, name: str, direction: Direction, fields: Fields) -> bytes:
        return self.inner.encode(name, direction, fields)

    def rewrite(self, frame: bytes, direction: Direction, fields: Fields) -> bytes:
        return self.inner.rewrite(frame, direction, fields)

    def anatomy(self, frame: bytes, direction: Direction) -> tuple[Piece, ...]:
        return self.inner.anatomy(frame, direction)

    def inner_of(self, row: MessageType) -> tuple[Codec, MessageType]:
        return self.inner, row

    def resembles(self, frame: bytes, direction: Direction) -> bool:
        return self.inner.resembles(frame, direction)

    def wire_format(self) -> WireType | None:
        described = self.inner.wire_format()
        return described and {**described, "framing": {**described["framing"], "kind": self._kind}}
