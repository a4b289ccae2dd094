"""The types of fields in Okey's messages, its grammar, whose tables are in `okey.toml`, and its codec.

A message is a line: its name, then its arguments separated by blanks (see `PaddedQuotes`); a response begins
with `+`. The clauses are the headings of the specification. There are two dialects, the specification's
(`seed`, lists padded with a blank) and the last one (`head`, padded with `%`, with lobbies that have places
for players).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from kiebitz.dissectors.grammar.field_type import (
    OF_ANY,
    OF_NUMBERS,
    WHOLE_REST,
    FieldType,
    IdentifierKind,
    KeysOf,
    Mismatch,
    Rename,
    Replace,
    WireType,
    Wrong,
)
from kiebitz.dissectors.grammar.fields import ListText, Number, ObjectText, PartsText, Text, Word
from kiebitz.dissectors.grammar.grammar import (
    Decoded,
    Grammar,
    MessageType,
    Violation,
    nearest_word,
    sender_of,
    unreadable,
)
from kiebitz.dissectors.grammar.text_codec import Reading, TextCodec
from kiebitz.dissectors.grammar.text_message import Sent
from kiebitz.dissectors.grammar.tokens import PaddedQuotes, Splitter
from kiebitz.dissectors.model import Direction
from kiebitz.dissectors.protocol_file.packaged import packaged_codec, packaged_grammar
from kiebitz.dissectors.protocols.okey.tiles import COLOURS, HIGHEST, SEATS, SLOTS
from kiebitz.dissectors.suggestions import with_suggestion

NAME = IdentifierKind("name", of_player=True)
LOBBY = IdentifierKind("lobby")
SEAT = IdentifierKind("seat", per_stream=True)

MAX_NAME_LENGTH = 30
"""Maximum length of a name in the specification; no real server enforces it."""

WORDS = PaddedQuotes(pads=(" ", "%"))
"""The tokens of lines and of lists: the specification pads with a blank, later programs with `%`."""

_MAX_QUOTED = 40

_NO_LOBBY = "no lobby's title and players here"

_INT = 1 << 31


class Name(Text):
    """A player's name."""

    title = "name"

    def __init__(self) -> None:
        super().__init__(NAME)


_NAME = Name()


class WantedName(Name):
    """The name that a player wants. Real servers accept any."""

    title = f"name without blanks, at most {MAX_NAME_LENGTH} characters"

    def remark(self, text: str) -> str | None:
        if len(text) > MAX_NAME_LENGTH:
            return f"a name of {len(text)} characters; the specification has at most {MAX_NAME_LENGTH}"
        if " " in text or '"' in text or not text:
            return "a name with blanks or quotation marks, or an empty one; real servers take any"
        return None


class Lobby(Number):
    """A lobby's number."""

    _good = re.compile(r"[+-]?\d{1,10}", re.ASCII)

    def __init__(self) -> None:
        super().__init__(LOBBY, title="lobby number")

    def decode(self, text: str) -> int:
        if self._good.fullmatch(text) is None or not -_INT <= int(text) < _INT:
            what = "is too large" if text.lstrip("+-").isdigit() else "is not a number"
            expected = f"a whole number from {-_INT} to {_INT - 1}"
            raise Mismatch(0, len(text), f'"{text[:_MAX_QUOTED]}" {what}', expected, "bad-number")
        return int(text)

    def remark(self, text: str) -> str | None:
        return "a negative lobby number; real servers take it" if text.startswith("-") else None

    def wire_type(self) -> WireType:
        return {"kind": "number", "whole": True, "plus": True, "digits": 10, "min": -_INT, "max": _INT - 1}


_LOBBY = Lobby()


class LobbyTitle(PartsText):
    """A lobby's title in the specification's list: its number after a word, quoted together."""

    title = '"Lobby N"'
    identifier = LOBBY
    _title = re.compile(r"Lobby (-?\d{1,10})", re.ASCII)

    def __init__(self) -> None:
        super().__init__(WORDS)

    def part_at(self, number: int) -> None:
        return None

    def decode_tokens(self, texts: Sequence[str]) -> int:
        found = self._title.fullmatch(texts[0]) if len(texts) == 1 else None
        if found is None:
            raise Mismatch(0, WHOLE_REST, _NO_LOBBY, self.title, "bad-list")
        return int(found[1])

    def encode_tokens(self, value: Any, pad: str = "") -> list[str]:
        return [f"Lobby {value}"]

    def wire_type(self) -> WireType:
        return {
            "kind": "single",
            "item": {**_LOBBY.wire_type(), "plus": None, "before": "Lobby "},
            **WORDS.wire(),
        }


class Seat(Word):
    """A player's index at the table."""

    wrong_texts = (*OF_NUMBERS, Wrong("out-of-range", "the index of a fifth player", "4"))
    identifier = SEAT

    def __init__(self) -> None:
        values = {str(seat): seat for seat in range(SEATS)}
        super().__init__(title=f"player index 0 to {SEATS - 1}", values=values)
        self.words = ()

    def decode(self, text: str) -> Any:
        if text not in self.values:
            problem = f'"{text[:_MAX_QUOTED]}" is not a player index'
            raise Mismatch(0, len(text), problem, self.title, "bad-number")
        return self.values[text]


class Tile(Word):
    """`number:COLOUR`, or nothing."""

    wrong_texts = (
        *OF_ANY,
        Wrong("out-of-range", "a tile with the number 14", f"{HIGHEST + 1}:RED"),
        Wrong("unknown-colour", "a tile of an unknown colour", "5:GREEN"),
        Wrong("no-colour", "a tile without a colour", "5"),
    )

    def __init__(self) -> None:
        tiles = (f"{number}:{colour}" for number in range(HIGHEST + 1) for colour in COLOURS)
        values = {**{tile: tile for tile in tiles}, "": None}
        super().__init__(title="tile, such as 4:BLUE, or nothing", values=values)
        self.words = tuple(COLOURS)

    def decode(self, text: str) -> Any:
        if text in self.values:
            return self.values[text]
        raise _not_a_tile(text)


def _not_a_tile(text: str) -> Mismatch:
    """Return the error of a text that is no tile."""
    end = len(text)
    number, colon, colour = text.partition(":")
    shown = f'"{text[:_MAX_QUOTED]}"'
    if not colon:
        return Mismatch(0, end, f"{shown} is not a tile", "NUMBER:COLOUR, such as 4:BLUE", "bad-tile")
    if not (number.isascii() and number.isdigit() and len(number) < 3 and int(number) <= HIGHEST):
        problem = f"{shown}: there is no such number"
        return Mismatch(0, len(number), problem, f"0 (joker) to {HIGHEST}", "bad-tile")
    if colour in COLOURS:
        return Mismatch(0, len(number), f"{shown}: a number has no leading zeros", text[1:], "bad-tile")
    problem = with_suggestion(f"{shown}: there is no such colour", nearest_word(colour, COLOURS))
    return Mismatch(end - len(colour), end, problem, "one of " + ", ".join(COLOURS), "bad-tile")


class Date(Text):
    """A date, which real servers do not check: any other text may be personal."""

    _date = re.compile(r"[0-9 .:/TZ+-]{1,40}")

    def anonymized(self, value: Any, replace: Replace, rename: Rename) -> Any:
        return value if self._date.fullmatch(value) else replace(value)


_DATE = Date()


class Winner(Name):
    """A winner's name, which is empty if there is no winner."""

    def decode(self, text: str) -> Any:
        return text or None

    def encode(self, value: Any) -> str:
        return value or ""


def _list(item: FieldType, title: str) -> ListText:
    """Return the type of a list with this item, in which an error is one of the whole item."""
    return ListText(item, WORDS, title=title, item_code="bad-list")


def _games(**behind: FieldType) -> ListText:
    """Return the type of a list of lobbies, each with a value after a colon, or none."""
    word = ":".join(["lobby", *behind])
    fields = {"lobby": _LOBBY, **behind}
    item = ObjectText(fields, Splitter(":", limit=1), title=word, problem=f'"{{}}" is no {word}')
    return _list(item, f"{word} for each lobby" if behind else "lobby numbers")


_TILE = Tile()
_NAMES = ListText(_NAME, WORDS, nulls=True, title="names, or nothing in a place")
_PLAYERS = ListText(_NAME, WORDS, nulls=True, title="players", is_spread=True)
_TITLED = ObjectText(
    {"lobby": LobbyTitle(), "players": _NAMES}, WORDS, is_spread=True, title='"Lobby N"', problem=_NO_LOBBY
)
_SCORE = ObjectText(
    {"name": _NAME, "date": _DATE, "turns": Number()},
    WORDS,
    title="name, date and number of turns",
    problem="no name, date and number of turns here",
)

TYPES: dict[str, FieldType] = {
    "wanted-name": WantedName(),
    "name": _NAME,
    "names": _NAMES,
    "lobby": _LOBBY,
    "seat": Seat(),
    "tile": _TILE,
    "deck": ListText(
        _TILE,
        WORDS,
        most=SLOTS,
        title=f"up to {SLOTS} tiles, or nothing in a place",
        noun="places in a deck",
        code="bad-deck",
    ),
    "stacks": ListText(
        _TILE,
        WORDS,
        least=SEATS,
        most=SEATS,
        title="4 tiles, or nothing in a place",
        noun="exchange stacks",
        code="bad-deck",
    ),
    "titled-lobbies": _list(_TITLED, '"Lobby N" and its players, for each lobby'),
    "lobbies": _list(
        ObjectText({"lobby": _LOBBY, "players": _PLAYERS}, WORDS, title="number and players"),
        "number and players, for each lobby",
    ),
    "open-games": _games(players=_LOBBY),
    "running-games": _games(),
    "finished-games": _games(winner=Winner()),
    "high-scores": _list(_SCORE, "name, date and number of turns, for each win"),
}


GRAMMAR = packaged_grammar(
    __package__,
    TYPES,
    data={NAME: "actor name before from to", LOBBY: "lobby", SEAT: "seat turn"},
    state={
        NAME: "players ready name winner",
        KeysOf(NAME): "private",
        KeysOf(LOBBY): "lobbies",
        LOBBY: "lobby",
    },
    aliases={"before": "name"},
    more_words=("Lobby",),
)


class OkeyCodec(TextCodec):
    """The codec of Okey's lines, in both paddings."""

    noun = "argument"
    unit = "line"
    names_fields = False

    def __init__(self, grammar: Grammar, *about: Any, **more: Any) -> None:
        super().__init__(grammar, *about, **more)
        names = b"|".join(re.escape(row.name.encode()) for row in grammar.rows)
        # A quoted token can have any parts.
        self._beginning = re.compile(rb'\n? *(?:"|%b)' % names)

    def names_message(self, frame: bytes, direction: Direction) -> bool:
        """Return True if a line begins with the name of a message; no other line has a row.

        Decoding a line of another protocol costs far more: it searches for the nearest name.
        """
        if not self._beginning.match(frame):
            return False
        tokens = self.sent(frame).tokens
        return bool(tokens and self.grammar.rows_named(direction, tokens[0].text))

    def resembles(self, frame: bytes, direction: Direction) -> bool:
        return self.decode(frame, direction).row is not None

    def notation(self, row: MessageType) -> str:
        arguments = (f"[<{field.name}>]" if field.optional else f"<{field.name}>" for field in row.fields)
        return " ".join([row.name, *arguments])

    def nothing(self, sent: Sent, direction: Direction) -> Decoded:
        text = "an empty line has no message"
        if sent.deviation is not None and sent.deviation.kind == "unended":
            text = "a quotation has no end, so readers drop it"
        elif sent.text:
            text = "there is no command in this line"
        return unreadable(self.error("empty-line", text, sent.span(0, len(sent.text)), "a command"))

    def unknown(self, sent: Sent, direction: Direction) -> Violation:
        token = sent.tokens[0]
        name, names = token.text, self.grammar.names(direction)
        if name.upper() == name or name.upper() not in names:
            return super().unknown(sent, direction)
        text = f'"{name}" is not a message {sender_of(direction)} sends: commands are in capital letters'
        place = sent.span(token.start, token.end)
        return self.error("unknown-message", f"{text}, {name.upper()}", place, f"one of {', '.join(names)}")

    def surplus(self, sent: Sent, row: MessageType, reading: Reading) -> Iterator[Violation]:
        # The words of a debug message are not always quoted.
        if not (row.fields and row.fields[-1].optional):
            yield from super().surplus(sent, row, reading)


CODEC: OkeyCodec = packaged_codec(__package__, GRAMMAR)
