"""The types of fields in Okey's messages, and its grammar, whose tables are in `okey.toml`.

A message is a line: its name, then its arguments separated by blanks (see `quoting.py`); a response begins
with `+`. The clauses are the headings of the specification. There are two dialects, the specification's
(`seed`, lists padded with a blank) and the last one (`head`, padded with `%`, with lobbies that have places
for players).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from kiebitz.dissectors.grammar.field_type import (
    FieldType,
    IdentifierKind,
    IdentifierKinds,
    KeysOf,
    Mismatch,
    Rename,
    Replace,
)
from kiebitz.dissectors.grammar.fields import Text, unknown_word
from kiebitz.dissectors.grammar.grammar import nearest_word
from kiebitz.dissectors.grammar.invalid_values import OF_NUMBERS, OF_WORDS, Wrong, other_case
from kiebitz.dissectors.grammar.table_file import grammar_from
from kiebitz.dissectors.protocols.okey.quoting import BLANK_PAD, Token, cut, quote, write_list
from kiebitz.dissectors.protocols.okey.tiles import COLOURS, HIGHEST, SEATS, SLOTS
from kiebitz.dissectors.suggestions import with_suggestion

NAME = IdentifierKind("name", of_player=True)
LOBBY = IdentifierKind("lobby")
SEAT = IdentifierKind("seat", per_stream=True)

MAX_NAME_LENGTH = 30
"""Maximum length of a name in the specification; no real server enforces it."""

_MAX_QUOTED = 40

_INT = 1 << 31


class Argument(FieldType):
    """The relation between an argument's text and its JSON value; `pad` is the padding of lists inside."""

    tokens: tuple[tuple[str, str | None], ...] = ()
    """Title and key of each token of a list of objects, cyclically; empty if it is no list."""

    def encode(self, value: Any) -> str:
        return self.write(value, BLANK_PAD)

    def write(self, value: Any, pad: str) -> str:
        """Return the text of a value, with this padding if it is a list."""
        return str(value)

    def identifiers(self) -> Iterator[IdentifierKind]:
        # Without those of parts: probe replaces a whole field, and a list of one identifier is no test case.
        if self.identifier is not None:
            yield self.identifier


class Name(Argument):
    """A player's name."""

    title = "name"
    identifier = NAME
    is_free_text = True

    def decode(self, text: str) -> str:
        return text

    def wire_type(self) -> Mapping[str, Any]:
        return {"kind": "text"}


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


class Flag(Argument):
    """`t` or `f`."""

    title = "t or f"
    words = ("t", "f")
    wrong_texts = OF_WORDS

    def decode(self, text: str) -> bool:
        if text not in ("t", "f"):
            raise unknown_word(text, ("t", "f"), self.title)
        return text == "t"

    def write(self, value: Any, pad: str) -> str:
        return "t" if value else "f"

    def wire_type(self) -> Mapping[str, Any]:
        return {"kind": "choice", "values": {"t": ("b", True), "f": ("b", False)}}


class Lobby(Argument):
    """A lobby's number."""

    title = "lobby number"
    wrong_texts = OF_NUMBERS
    identifier = LOBBY
    _good = re.compile(r"[+-]?\d{1,10}", re.ASCII)

    def decode(self, text: str) -> int:
        if self._good.fullmatch(text) is None or not -_INT <= int(text) < _INT:
            what = "is too large" if text.lstrip("+-").isdigit() else "is not a number"
            expected = f"a whole number from {-_INT} to {_INT - 1}"
            raise Mismatch(0, len(text), f'"{text[:_MAX_QUOTED]}" {what}', expected, "bad-number")
        return int(text)

    def remark(self, text: str) -> str | None:
        return "a negative lobby number; real servers take it" if text.startswith("-") else None

    def wire_type(self) -> Mapping[str, Any]:
        return {"kind": "number", "whole": True, "plus": True, "digits": 10, "min": -_INT, "max": _INT - 1}


_LOBBY = Lobby()


class Seat(Argument):
    """A player's index at the table."""

    title = "player index 0 to 3"
    wrong_texts = (*OF_NUMBERS, Wrong("out-of-range", "the index of a fifth player", "4"))
    identifier = SEAT

    def decode(self, text: str) -> int:
        if text not in ("0", "1", "2", "3"):
            raise Mismatch(
                0, len(text), f'"{text[:_MAX_QUOTED]}" is not a player index', self.title, "bad-number"
            )
        return int(text)

    def wire_type(self) -> Mapping[str, Any]:
        return {"kind": "choice", "values": {seat: ("i", seat) for seat in "0123"}}


class Tile(Argument):
    """`number:COLOUR`, or nothing."""

    title = "tile, such as 4:BLUE, or nothing"
    words = tuple(COLOURS)

    def decode(self, text: str) -> str | None:
        return read_tile(text, 0)

    def write(self, value: Any, pad: str) -> str:
        return value or ""

    def wrong_values(self) -> Iterator[Wrong]:
        yield from super().wrong_values()
        yield Wrong("out-of-range", "a tile with the number 14", f"{HIGHEST + 1}:RED")
        yield Wrong("unknown-colour", "a tile of an unknown colour", "5:GREEN")
        yield Wrong("no-colour", "a tile without a colour", "5")
        yield other_case(self.encode)

    def wire_type(self) -> Mapping[str, Any]:
        return {"kind": "choice", "values": {tile: ("s", tile) for tile in sorted(_TILES)} | {"": ("null",)}}


_TILES = frozenset(f"{number}:{colour}" for number in range(HIGHEST + 1) for colour in COLOURS)


def read_tile(text: str, at: int) -> str | None:
    """Return a tile, or None for an empty place; positions in a Mismatch are offset by `at`."""
    if text in _TILES:
        return text
    if not text:
        return None
    end = at + len(text)
    number, colon, colour = text.partition(":")
    shown = f'"{text[:_MAX_QUOTED]}"'
    if not colon:
        raise Mismatch(at, end, f"{shown} is not a tile", "NUMBER:COLOUR, such as 4:BLUE", "bad-tile")
    if not (number.isascii() and number.isdigit() and len(number) < 3 and int(number) <= HIGHEST):
        problem = f"{shown}: there is no such number"
        raise Mismatch(at, at + len(number), problem, f"0 (joker) to {HIGHEST}", "bad-tile")
    if colour in COLOURS:
        raise Mismatch(at, at + len(number), f"{shown}: a number has no leading zeros", text[1:], "bad-tile")
    problem = with_suggestion(f"{shown}: there is no such colour", nearest_word(colour, COLOURS))
    raise Mismatch(end - len(colour), end, problem, "one of " + ", ".join(COLOURS), "bad-tile")


def read_tiles(text: str, tokens: list[Token]) -> list[str | None]:
    """Return the tiles of a list of tokens. Raises Mismatch."""
    tiles: list[str | None] = []
    for token in tokens:
        # A token of quoted and bare parts differs from its spelling.
        inner = max(text[token.start : token.end].find(token.text), 0)
        tiles.append(read_tile(token.text, token.start + inner))
    return tiles


class Deck(Argument):
    """A player's tiles and empty places."""

    title = f"up to {SLOTS} tiles, or nothing in a place"
    tokens = ((Tile.title, None),)

    def decode(self, text: str) -> list[str | None]:
        tokens = cut(text).tokens
        if len(tokens) > SLOTS:
            problem = f"{len(tokens)} places in a deck"
            raise Mismatch(tokens[SLOTS].start, tokens[-1].end, problem, self.title, "bad-deck")
        return read_tiles(text, tokens)

    def write(self, value: Any, pad: str) -> str:
        return write_list((tile or "" for tile in value), pad)

    def wrong_values(self) -> Iterator[Wrong]:
        yield from super().wrong_values()
        yield Wrong("out-of-range", "a tile with the number 14 in it", f"1:RED {HIGHEST + 1}:RED")
        yield Wrong("too-many", f"more than {SLOTS} places", " ".join(["1:RED"] * (SLOTS + 6)))

    def wire_type(self) -> Mapping[str, Any]:
        return {"kind": "okey_list", "item": Tile().wire_type(), "most": SLOTS}


class ExchangeStacks(Deck):
    """The topmost tile of each player's exchange stack."""

    title = "4 tiles, or nothing in a place"

    def decode(self, text: str) -> list[str | None]:
        tokens = cut(text).tokens
        if len(tokens) != SEATS:
            problem = f"{len(tokens)} exchange stacks"
            raise Mismatch(0, len(text), problem, self.title, "bad-deck")
        return read_tiles(text, tokens)

    def wire_type(self) -> Mapping[str, Any]:
        return {"kind": "okey_list", "item": Tile().wire_type(), "least": SEATS, "most": SEATS}


class Names(Argument):
    """Players; None for an empty place."""

    title = "names, or nothing in a place"
    parts = (_NAME,)
    tokens = (("name, or nothing", None),)

    def decode(self, text: str) -> list[str | None]:
        return [name or None for name in cut(text).texts]

    def write(self, value: Any, pad: str) -> str:
        return write_list((name or "" for name in value), pad)

    def with_parts(self, value: Any, change: Callable[[FieldType, Any], Any]) -> list[Any]:
        return [change(_NAME, name) for name in value]

    def wire_type(self) -> Mapping[str, Any]:
        return {"kind": "okey_list", "item": {"kind": "okey_name"}}


_NAMES = Names()


class LobbyList(Argument):
    """Lobbies with their players."""

    parts = (_LOBBY, _NAMES)

    def with_parts(self, value: Any, change: Callable[[FieldType, Any], Any]) -> list[dict[str, Any]]:
        return [
            {"lobby": change(_LOBBY, lobby["lobby"]), "players": change(_NAMES, lobby["players"])}
            for lobby in value
        ]

    def wire_fields(self) -> list[Mapping[str, Any]]:
        """Return the declarative description of the parts of a lobby."""
        return [
            {"name": "lobby", "type": _LOBBY.wire_type()},
            {"name": "players", "type": _NAMES.wire_type()},
        ]


class TitledLobbies(LobbyList):
    """The specification's lobbies: titles and players alternately, in three levels."""

    title = '"Lobby N" and its players, for each lobby'
    tokens = (('"Lobby N"', "lobby"), (Names.title, "players"))
    _title = re.compile(r"Lobby (-?\d{1,10})", re.ASCII)

    def decode(self, text: str) -> list[dict[str, Any]]:
        tokens = cut(text).tokens
        lobbies: list[dict[str, Any]] = []
        for number in range(0, len(tokens), 2):
            token = tokens[number]
            title = cut(token.text).texts
            found = self._title.fullmatch(title[0]) if len(title) == 1 else None
            if found is None or number + 1 == len(tokens):
                problem = "no lobby's title and players here"
                raise Mismatch(token.start, token.end, problem, self.title, "bad-list")
            players = Names().decode(tokens[number + 1].text)
            lobbies.append({"lobby": int(found[1]), "players": players})
        return lobbies

    def write(self, value: Any, pad: str) -> str:
        texts: list[str] = []
        for lobby in value:
            texts.append(quote(f"Lobby {lobby['lobby']}", pad))
            texts.append(Names().write(lobby["players"], pad))
        return write_list(texts, pad)

    def wire_type(self) -> Mapping[str, Any]:
        return {"kind": "okey_titled", "fields": self.wire_fields()}


class Lobbies(LobbyList):
    """Each lobby's number and players, in two levels."""

    title = "number and players, for each lobby"
    tokens = (("number and players", None),)

    def decode(self, text: str) -> list[dict[str, Any]]:
        lobbies: list[dict[str, Any]] = []
        for token in cut(text).tokens:
            number, *players = cut(token.text).texts or [""]
            try:
                lobbies.append(
                    {"lobby": Lobby().decode(number), "players": [name or None for name in players]}
                )
            except Mismatch as error:
                raise Mismatch(token.start, token.end, str(error), self.title, "bad-list") from error
        return lobbies

    def write(self, value: Any, pad: str) -> str:
        return write_list(
            (
                write_list([str(lobby["lobby"]), *(name or "" for name in lobby["players"])], pad)
                for lobby in value
            ),
            pad,
        )

    def wire_type(self) -> Mapping[str, Any]:
        return {"kind": "okey_list", "item": {"kind": "okey_lobby", "fields": self.wire_fields()}}


class Games(Argument):
    """Lobbies, with a number of players or a winner after a colon, or with neither."""

    parts = (_LOBBY, _NAME)

    def __init__(self, behind: str | None) -> None:
        self._behind = behind
        self.title = f"lobby:{behind} for each lobby" if behind else "lobby numbers"
        self.tokens = ((f"lobby:{behind}" if behind else "lobby number", None),)

    def decode(self, text: str) -> list[dict[str, Any]]:
        games: list[dict[str, Any]] = []
        for token in cut(text).tokens:
            number, colon, rest = token.text.partition(":")
            try:
                game: dict[str, Any] = {"lobby": Lobby().decode(number)}
                if self._behind == "players":
                    game["players"] = Lobby().decode(rest)
            except Mismatch as error:
                raise Mismatch(token.start, token.end, str(error), self.title, "bad-list") from error
            if bool(colon) != bool(self._behind):
                problem = f'"{token.text[:_MAX_QUOTED]}" is no {self.title.split(" ")[0]}'
                raise Mismatch(token.start, token.end, problem, self.title, "bad-list")
            if self._behind == "winner":
                game["winner"] = rest or None
            games.append(game)
        return games

    def write(self, value: Any, pad: str) -> str:
        texts = []
        for game in value:
            behind = game[self._behind] if self._behind else None
            texts.append(
                f"{game['lobby']}:{'' if behind is None else behind}" if self._behind else str(game["lobby"])
            )
        return write_list(texts, pad)

    def with_parts(self, value: Any, change: Callable[[FieldType, Any], Any]) -> list[dict[str, Any]]:
        types: dict[str, FieldType] = {"lobby": _LOBBY, "winner": _NAME}
        return [
            {key: change(types[key], part) if key in types else part for key, part in game.items()}
            for game in value
        ]

    def wire_type(self) -> Mapping[str, Any]:
        fields: list[Mapping[str, Any]] = [{"name": "lobby", "type": _LOBBY.wire_type()}]
        if self._behind is not None:
            kind = _LOBBY.wire_type() if self._behind == "players" else {"kind": "text"}
            fields.append({"name": self._behind, "type": kind})
        return {"kind": "okey_list", "item": {"kind": "okey_game", "behind": self._behind, "fields": fields}}


class Date(Text):
    """A date, which real servers do not check: any other text may be personal."""

    _date = re.compile(r"[0-9 .:/TZ+-]{1,40}")

    def anonymized(self, value: Any, replace: Replace, rename: Rename) -> Any:
        return value if self._date.fullmatch(value) else replace(value)


_DATE = Date()


class HighScores(Argument):
    """Winners, with date and number of turns."""

    title = "name, date and number of turns, for each win"
    parts = (_NAME, _DATE)
    tokens = (("name, date and number of turns", None),)

    def decode(self, text: str) -> list[dict[str, Any]]:
        scores: list[dict[str, Any]] = []
        for token in cut(text).tokens:
            parts = cut(token.text).texts
            if len(parts) != 3 or not (parts[2].isascii() and parts[2].isdigit() and len(parts[2]) < 10):
                problem = "no name, date and number of turns here"
                raise Mismatch(token.start, token.end, problem, self.title, "bad-list")
            scores.append({"name": parts[0], "date": parts[1], "turns": int(parts[2])})
        return scores

    def write(self, value: Any, pad: str) -> str:
        return write_list(
            (write_list((score["name"], score["date"], str(score["turns"])), pad) for score in value), pad
        )

    def with_parts(self, value: Any, change: Callable[[FieldType, Any], Any]) -> list[dict[str, Any]]:
        return [
            {**score, "name": change(_NAME, score["name"]), "date": change(_DATE, score["date"])}
            for score in value
        ]

    def wire_type(self) -> Mapping[str, Any]:
        fields = [
            {"name": "name", "type": {"kind": "text"}},
            {"name": "date", "type": {"kind": "text"}},
            {"name": "turns", "type": {"kind": "number", "whole": True}},
        ]
        return {"kind": "okey_list", "item": {"kind": "okey_score", "fields": fields}}


TYPES: dict[str, FieldType] = {
    "wanted-name": WantedName(),
    "name": _NAME,
    "names": _NAMES,
    "text": Text(),
    "flag": Flag(),
    "lobby": _LOBBY,
    "seat": Seat(),
    "tile": Tile(),
    "deck": Deck(),
    "stacks": ExchangeStacks(),
    "titled-lobbies": TitledLobbies(),
    "lobbies": Lobbies(),
    "open-games": Games("players"),
    "running-games": Games(None),
    "finished-games": Games("winner"),
    "high-scores": HighScores(),
}

# Identifiers in the data of the events, and in the state.
DATA_IDENTIFIERS: IdentifierKinds = {
    "actor": NAME,
    "name": NAME,
    "before": NAME,
    "from": NAME,
    "to": NAME,
    "lobby": LOBBY,
    "seat": SEAT,
    "turn": SEAT,
}
STATE_IDENTIFIERS: IdentifierKinds = {
    "players": NAME,
    "ready": NAME,
    "name": NAME,
    "private": KeysOf(NAME),
    "winner": NAME,
    "lobbies": KeysOf(LOBBY),
    "lobby": LOBBY,
}

GRAMMAR = grammar_from(
    __package__,
    TYPES,
    foreign=True,
    data_identifiers=DATA_IDENTIFIERS,
    state_identifiers=STATE_IDENTIFIERS,
    aliases={"before": "name"},
    more_words=("Lobby",),
)
