"""The types of fields in Mäxchen's messages, its grammar, whose tables are in `maexchen.toml`, and its codec.

The clauses name the headings of the specification (Grundlagen, Anmelden, Start einer Spielrunde, Ablauf einer
Spielrunde, Reason-Codes). A message is one datagram: its name, then its fields, separated by `;`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from kiebitz.dissectors.grammar.field_type import (
    FieldType,
    IdentifierKind,
    KeysOf,
    Mismatch,
    Rename,
    Replace,
    WireType,
    Wrong,
)
from kiebitz.dissectors.grammar.fields import Number, Text
from kiebitz.dissectors.grammar.grammar import Decoded, Field, MessageType, Place, Violation, unreadable
from kiebitz.dissectors.grammar.text_codec import TextCodec
from kiebitz.dissectors.grammar.text_message import Sent
from kiebitz.dissectors.model import Direction
from kiebitz.dissectors.protocol_file.packaged import packaged_grammar
from kiebitz.dissectors.protocols.maexchen.dice import written


class MaexchenCodec(TextCodec):
    """The codec; a message with surplus fields is assumed to have no other mistake."""

    names_fields = False

    def fitting(self, rows: Sequence[MessageType], count: int) -> Sequence[MessageType]:
        return self.exact_rows(rows, count) or self.shorter_rows(rows, count)

    def closest(self, valid: Mapping[MessageType, int], count: int) -> MessageType:
        return min(valid, key=lambda row: abs(len(row.fields) - count))

    def nothing(self, sent: Sent, direction: Direction) -> Decoded:
        text, expected = "an empty datagram has no message", ", ".join(self.grammar.names(direction))
        return unreadable(self.error("empty-datagram", text, (0, 0), f"one of {expected}"))

    def loose(self, row: MessageType, field: Field, remark: str, place: Place) -> Violation:
        return self.note("loose-spelling", remark, place, field.type.title, row.clause)


PLAYER = IdentifierKind("player", of_player=True)
ROUND = IdentifierKind("round")
ADDRESS = IdentifierKind("address")
TOKEN = IdentifierKind("token", per_stream=True)


class Token(FieldType):
    """A question's token: 36-character UUIDs in practice, but any text without blanks is valid."""

    title = "token"
    identifier = TOKEN
    _good = re.compile(r"[^\s\x00-\x1f]+")
    _made_up = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)

    def decode(self, text: str) -> str:
        if self._good.fullmatch(text) is None:
            found = self._good.match(text)
            at = found.end() if found else 0
            problem = "surplus characters after the token" if found else "no token here"
            expected = "the end of the message" if found else "the token of the server's question"
            raise Mismatch(at, len(text), problem, expected, "bad-token")
        return text

    def encode(self, value: Any) -> str:
        return str(value)

    def wire_type(self) -> WireType:
        return {"kind": "text", "no_blanks": True}

    def anonymized(self, value: Any, replace: Replace, rename: Rename) -> str:
        # A UUID has no personal content; other tokens may be invented by a client.
        made_up = self._made_up.match(value)
        end = made_up.end() if made_up is not None else 0
        return f"{value[:end]}{replace(value[end:])}"


class Dice(FieldType):
    """Two dice, read as leniently as servers do: blanks, leading zeros, text after a number, either order."""

    title = "two dice 1 to 6, higher first, such as 5,3"
    _die = re.compile(r"\s*([+-]?\d{1,9})(?!\d)")
    _plain = re.compile(r"(0|-?[1-9]\d*),(0|-?[1-9]\d*)", re.ASCII)

    def __init__(self, any_number: bool = False) -> None:
        self._any_number = any_number

    def decode(self, text: str) -> str:
        parts = text.split(",")
        if len(parts) < 2:
            problem = "1 number in place of two dice" if text else "there are no dice"
            raise Mismatch(0, len(text), problem, self.title, "bad-dice")
        pips: list[int] = []
        at = 0
        for part in parts[:2]:
            die = self._die.match(part)
            if die is None:
                raise Mismatch(at, at + len(part), f'"{part[:40]}" is not a die', self.title, "bad-dice")
            value = int(die[1])
            if not (self._any_number or 1 <= value <= 6):
                problem = f"a die does not show {value}"
                raise Mismatch(at, at + len(part), problem, self.title, "dice-out-of-range")
            pips.append(value)
            at += len(part) + 1
        return written(*pips)

    def encode(self, value: Any) -> str:
        return str(value)

    def wire_type(self) -> WireType:
        return {"kind": "dice", "any": self._any_number}

    def wrong_values(self) -> Iterator[Wrong]:
        yield from super().wrong_values()
        if not self._any_number:
            yield Wrong("out-of-range", "dice that show seven", "7,7")
            yield Wrong("zero", "a die that shows nothing", "3,0")
        yield Wrong("one-die", "one die in place of two", "5")

    def remark(self, text: str) -> str | None:
        if self._plain.fullmatch(text):
            return None
        return f'"{text[:40]}" is read as {self.decode(text)}'


_PLAYER = Text(PLAYER)


class Scores(FieldType):
    """Each player's points, `name:points` separated by commas; empty before anyone has played."""

    title = "name:points with commas between them, or nothing"
    parts = (_PLAYER,)
    _entry = re.compile(r"(.*?):(-?\d{1,15})(?:,|$)", re.DOTALL)

    def decode(self, text: str) -> dict[str, int]:
        scores: dict[str, int] = {}
        at = 0
        while at < len(text):
            entry = self._entry.match(text, at)
            if entry is None:
                raise Mismatch(at, len(text), "no name:points here", self.title, "bad-score")
            scores[entry[1]] = int(entry[2])
            at = entry.end()
        return scores

    def encode(self, value: Any) -> str:
        return ",".join(f"{name}:{points}" for name, points in value.items())

    def wire_type(self) -> WireType:
        return {"kind": "scores", "limit": "each player's points are one text, name:points"}

    def with_parts(self, value: Any, change: Callable[[FieldType, Any], Any]) -> dict[Any, int]:
        return {change(_PLAYER, name): points for name, points in value.items()}


TYPES: dict[str, FieldType] = {
    "player": _PLAYER,
    "points": Number(),
    "round": Number(ROUND),
    "token": Token(),
    "dice": Dice(),
    "numbers": Dice(any_number=True),
    "scores": Scores(),
}


GRAMMAR = packaged_grammar(
    __package__,
    TYPES,
    data={PLAYER: "actor name names players", KeysOf(PLAYER): "scores", ROUND: "round"},
    state={
        PLAYER: "actor name names players turn rolling seer",
        KeysOf(PLAYER): "scores private",
        ROUND: "round",
        ADDRESS: "address",
    },
)
