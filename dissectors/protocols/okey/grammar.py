"""The grammar of Okey: every command and response of the specification, and additions of real programs.

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
from kiebitz.dissectors.grammar.fields import Text, Word, unknown_word
from kiebitz.dissectors.grammar.grammar import EventKind, Field, Grammar, MessageType, nearest_word
from kiebitz.dissectors.grammar.invalid_values import OF_NUMBERS, OF_WORDS, Wrong, other_case
from kiebitz.dissectors.protocols.okey.quoting import BLANK_PAD, Token, cut, quote, write_list
from kiebitz.dissectors.protocols.okey.rules import RULES
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


_NICKNAME = Field("nickname", WantedName(), "the name that the player wants")
_ACTUAL = Field("actualname", Name(), "name that the player gets", generated=True)
_MSG = Field("msg", Text(), "text")
_RECIPIENT = Field("whisperrecipient", Name(), "recipient")
_SENDER = Field("sender", Name(), "sender")
_TO_ALL = Field("messagetype", Word("b", "l"), "b to all on the server, l to the lobby")
_WHISPER = Field("messagetype", Word("w"), "w to one player")
_DEBUG = Field("debugmessage", Text(), "reason, in words", optional=True)
_TILE = Field("tile", Tile(), "tile")
_DECK = Field("deck", Deck(), "the player's tiles as they are on the rack")
_N = Field("n", Lobby(), "lobby")
_PLAYERS = Field("playerlist", Names(), "players")
_PLACES = Field("playerlist", Names(), "the lobby's players by index")
_STACKS = Field("exchangestacks", ExchangeStacks(), "the topmost tile of each exchange stack")
_TURN = Field("currentplayeridx", Seat(), "whose turn it is")

_LOGIN = "Login"
_RENAME = "Namensänderung"
_PLAYERS_HERE = "Spieler auf Server auflisten"
_LOBBY_PLAYERS = "Spieler in Lobby auflisten"
_LISTED = "Laufende und beendete Spiele / Lobbys auflisten"
_JOIN = "Lobbyauswahl"
_LOGOUT = "Logout"
_READY = "Bereitschaft erklären"
_START = "Spiel beginnen"
_STATE = "Spielzustand senden"
_DRAWING = "Tile ziehen"
_PUTTING = "Stein ablegen"
_WIN = "Spiel beenden (durch Sieg)"
_EMPTY = "Spiel beenden (durch Unentschieden)"
_CHAT = "Chat-Nachricht senden (Client)"
_CHAT_PASSED_ON = "Chat-Nachricht an andere weiterleiten (Server)"
_PING = "Ping"
_CHEAT = "Cheating"
_HEAD = "not in the specification"


def _late(name: str) -> str:
    return f"{name} is not in the specification (last dialect)"


def _status(letter: str) -> Field:
    return Field("gamestatus", Word(letter), "o open, r running, f finished")


ROWS = (
    # LOGI <nickname> · +LOGI <actualname>
    MessageType("LOGI", "c2s", (_NICKNAME,), "logs in", clause=_LOGIN, summary="logs in as {nickname}"),
    MessageType(
        "+LOGI",
        "s2c",
        (_ACTUAL,),
        "is logged in",
        clause=_LOGIN,
        answers=("LOGI",),
        summary="is called {actualname}",
    ),
    # NAME <nickname> · +NAME <actualname>
    MessageType(
        "NAME", "c2s", (_NICKNAME,), "changes the name", clause=_RENAME, summary="wants to be {nickname}"
    ),
    MessageType(
        "+NAME",
        "s2c",
        (_ACTUAL,),
        "has a new name",
        clause=_RENAME,
        answers=("NAME",),
        summary="is called {actualname}",
    ),
    # LPLA · +LPLA <playerlist>
    MessageType("LPLA", "c2s", (), "who is on the server?", clause=_PLAYERS_HERE),
    MessageType("+LPLA", "s2c", (_PLAYERS,), "who is on the server", clause=_PLAYERS_HERE, answers=("LPLA",)),
    # LLPL · +LLPL <lobbieswithplayerlist>
    MessageType("LLPL", "c2s", (), "who is in which lobby?", clause=_LOBBY_PLAYERS),
    MessageType(
        "+LLPL",
        "s2c",
        (Field("lobbieswithplayerlist", TitledLobbies(), "lobbies with their players"),),
        "who is in which lobby",
        clause=_LOBBY_PLAYERS,
        answers=("LLPL",),
    ),
    MessageType(
        "+LLPL",
        "s2c",
        (Field("lobbieswithplayerlist", Lobbies(), "lobbies with their players by index"),),
        "who is in which lobby",
        clause=_LOBBY_PLAYERS,
        answers=("LLPL",),
        deviation="+LLPL has lobbies in two levels, without the word Lobby (last dialect)",
    ),
    # LGAM <gamestatus> · +LGAM <gamestatus> <games>
    MessageType(
        "LGAM",
        "c2s",
        (Field("gamestatus", Word("o", "r", "f"), "o open, r running, f finished"),),
        "which lobbies are there?",
        clause=_LISTED,
    ),
    MessageType(
        "+LGAM",
        "s2c",
        (_status("o"), Field("games", Games("players"), "open lobbies and their numbers of players")),
        "open lobbies",
        clause=_LISTED,
        answers=("LGAM",),
    ),
    MessageType(
        "+LGAM",
        "s2c",
        (_status("r"), Field("games", Games(None), "lobbies with a running game")),
        "running games",
        clause=_LISTED,
        answers=("LGAM",),
    ),
    MessageType(
        "+LGAM",
        "s2c",
        (_status("f"), Field("games", Games("winner"), "lobbies with a finished game, and the winner")),
        "finished games",
        clause=_LISTED,
        answers=("LGAM",),
    ),
    # JLOB <n> · +JLOB <joinsuccessful>
    MessageType("JLOB", "c2s", (_N,), "joins a lobby", clause=_JOIN, summary="joins lobby {n}"),
    MessageType(
        "+JLOB",
        "s2c",
        (Field("joinsuccessful", Flag(), "whether the client is in the lobby now"), _DEBUG),
        "has joined the lobby, or not",
        clause=_JOIN,
        answers=("JLOB",),
        summary="joined: {joinsuccessful}",
    ),
    MessageType("LLOB", "c2s", (), "leaves the lobby", clause=_HEAD, deviation=_late("LLOB")),
    MessageType(
        "+LLOB",
        "s2c",
        (Field("left", Flag(), "whether the client has left"),),
        "has left the lobby, or not",
        clause=_HEAD,
        answers=("LLOB",),
        deviation=_late("LLOB"),
    ),
    MessageType(
        "JOND",
        "s2c",
        (Field("name", Name(), "player"),),
        "a player joins the lobby",
        clause=_HEAD,
        broadcast=True,
        deviation=_late("JOND"),
        summary="{name} joins",
    ),
    MessageType(
        "+JOND", "c2s", (), "acknowledges who joins", clause=_HEAD, answers=("JOND",), deviation=_late("JOND")
    ),
    MessageType(
        "LEFT",
        "s2c",
        (Field("name", Name(), "player"),),
        "a player leaves the lobby",
        clause=_HEAD,
        broadcast=True,
        deviation=_late("LEFT"),
        summary="{name} leaves",
    ),
    MessageType(
        "+LEFT",
        "c2s",
        (),
        "acknowledges who leaves",
        clause=_HEAD,
        answers=("LEFT",),
        deviation=_late("LEFT"),
    ),
    MessageType(
        "NAMS",
        "s2c",
        (_PLACES,),
        "who is in the lobby",
        clause=_HEAD,
        broadcast=True,
        deviation=_late("NAMS"),
    ),
    MessageType(
        "+NAMS", "c2s", (), "acknowledges the list", clause=_HEAD, answers=("NAMS",), deviation=_late("NAMS")
    ),
    MessageType("RNAM", "c2s", (), "who is in the lobby?", clause=_HEAD, deviation=_late("RNAM")),
    MessageType(
        "+RNAM",
        "s2c",
        (_PLACES,),
        "who is in the lobby",
        clause=_HEAD,
        answers=("RNAM",),
        deviation=_late("RNAM"),
    ),
    MessageType("HIGH", "c2s", (), "who has won so far?", clause=_HEAD, deviation=_late("HIGH")),
    MessageType(
        "+HIGH",
        "s2c",
        (Field("highscores", HighScores(), "wins"),),
        "who has won so far",
        clause=_HEAD,
        answers=("HIGH",),
        deviation=_late("HIGH"),
    ),
    # LOGO · +LOGO
    MessageType("LOGO", "c2s", (), "logs out", clause=_LOGOUT),
    MessageType("+LOGO", "s2c", (), "is logged out", clause=_LOGOUT, answers=("LOGO",)),
    # REDY · +REDY
    MessageType("REDY", "c2s", (), "is ready to play", clause=_READY),
    MessageType("+REDY", "s2c", (), "is marked as ready", clause=_READY, answers=("REDY",)),
    # STRT <startdeck> <playeridx> · +STRT
    MessageType(
        "STRT",
        "s2c",
        (
            Field("startdeck", Deck(), "the player's tiles; 15 for the first player"),
            Field("playeridx", Seat(), "the player's index", generated=True),
        ),
        "the game begins",
        clause=_START,
        summary="deals to player {playeridx}",
    ),
    MessageType("+STRT", "c2s", (), "acknowledges the deck", clause=_START, answers=("STRT",)),
    # STAT <exchangestacks> <currentplayeridx> · +STAT
    MessageType(
        "STAT",
        "s2c",
        (_STACKS, _TURN),
        "exchange stacks, and whose turn it is",
        clause=_STATE,
        broadcast=True,
        summary="player {currentplayeridx}'s turn; stacks {exchangestacks}",
    ),
    MessageType("+STAT", "c2s", (), "acknowledges the turn", clause=_STATE, answers=("STAT",)),
    MessageType("RSTA", "c2s", (), "whose turn is it?", clause=_HEAD, deviation=_late("RSTA")),
    MessageType(
        "+RSTA",
        "s2c",
        (_STACKS, _TURN),
        "exchange stacks, and whose turn it is",
        clause=_HEAD,
        answers=("RSTA",),
        deviation=_late("RSTA"),
        summary="player {currentplayeridx}'s turn; stacks {exchangestacks}",
    ),
    # DRAW <drawstack> · +DRAW <tile>
    MessageType(
        "DRAW",
        "c2s",
        (Field("drawstack", Word("m", "e"), "m main stack, e exchange stack"),),
        "draws a tile",
        clause=_DRAWING,
        summary="draws from {drawstack}",
    ),
    MessageType(
        "+DRAW",
        "s2c",
        (_TILE, _DEBUG),
        "the tile drawn",
        clause=_DRAWING,
        answers=("DRAW",),
        summary="drew {tile}",
    ),
    # PUTT <tile> <deck> · +PUTT <valid> <won>
    MessageType("PUTT", "c2s", (_TILE, _DECK), "puts a tile", clause=_PUTTING, summary="puts {tile}"),
    MessageType(
        "+PUTT",
        "s2c",
        (
            Field("valid", Flag(), "whether the put is allowed"),
            Field("won", Flag(), "whether the player has won"),
            _DEBUG,
        ),
        "the tile is put, or not",
        clause=_PUTTING,
        answers=("PUTT",),
        summary="valid: {valid}, won: {won}",
    ),
    # PWIN <nickname> · +PWIN
    MessageType(
        "PWIN",
        "s2c",
        (Field("nickname", Name(), "player"),),
        "a player has won",
        clause=_WIN,
        broadcast=True,
        summary="{nickname} wins",
    ),
    MessageType("+PWIN", "c2s", (), "acknowledges the win", clause=_WIN, answers=("PWIN",)),
    # EMPT · +EMPT
    MessageType("EMPT", "s2c", (), "the main stack is empty: a draw", clause=_EMPTY, broadcast=True),
    MessageType("+EMPT", "c2s", (), "acknowledges the draw", clause=_EMPTY, answers=("EMPT",)),
    # CATC <messagetype> <msg> [<whisperrecipient>] · +CATC … [<whisperrecipient> <nicknameexists>]
    MessageType("CATC", "c2s", (_TO_ALL, _MSG), "says", clause=_CHAT, summary="says: {msg}"),
    MessageType(
        "CATC",
        "c2s",
        (_WHISPER, _MSG, _RECIPIENT),
        "whispers",
        clause=_CHAT,
        summary="whispers to {whisperrecipient}: {msg}",
    ),
    MessageType(
        "+CATC", "s2c", (_TO_ALL, _MSG), "has said", clause=_CHAT, answers=("CATC",), summary="said: {msg}"
    ),
    MessageType(
        "+CATC",
        "s2c",
        (_WHISPER, _MSG, _RECIPIENT, Field("nicknameexists", Flag(), "whether there is such a player")),
        "has whispered",
        clause=_CHAT,
        answers=("CATC",),
        summary="whispered to {whisperrecipient}: {msg}",
    ),
    # CATS <messagetype> <msg> <sender> · +CATS
    MessageType(
        "CATS",
        "s2c",
        (Field("messagetype", Word("b", "l", "w"), "recipient"), _MSG, _SENDER),
        "a player says",
        clause=_CHAT_PASSED_ON,
        broadcast=True,
        summary="{sender} says: {msg}",
    ),
    MessageType(
        "+CATS", "c2s", (), "acknowledges the chat message", clause=_CHAT_PASSED_ON, answers=("CATS",)
    ),
    # PING · +PING, both ways
    MessageType("PING", "c2s", (), "are you there?", clause=_PING, heartbeat=True),
    MessageType("+PING", "s2c", (), "is alive", clause=_PING, answers=("PING",), heartbeat=True),
    MessageType("PING", "s2c", (), "are you there?", clause=_PING, heartbeat=True),
    MessageType("+PING", "c2s", (), "is alive", clause=_PING, answers=("PING",), heartbeat=True),
    # WINC · +WINC <deck>
    MessageType("WINC", "c2s", (), "wants a deck that wins (a cheat)", clause=_CHEAT),
    MessageType(
        "+WINC", "s2c", (_DECK,), "gets a deck that wins (a cheat)", clause=_CHEAT, answers=("WINC",)
    ),
)

_AT_ONES_TABLE = ("games.{game}.lobby", "games.{game}.seats", "games.{game}.exchange")
# A client's knowledge of its game from its lobby.

EVENTS = (
    EventKind("logged_in", ("name",), "{name} is logged in", reported_by=("+LOGI",), identifies=True),
    EventKind("renamed", ("name", "before"), "{before} is now called {name}", reported_by=("+NAME",)),
    EventKind("joined_lobby", ("name", "lobby"), "{name} joins lobby {lobby}"),
    EventKind("ready", ("name", "lobby"), "{name} is ready", reported_by=("+REDY",)),
    EventKind(
        "dealt",
        ("seat", "name", "deck"),
        "{name} gets their tiles at seat {seat}: {deck}",
        reported_by=("STRT",),
        reveals=_AT_ONES_TABLE,
    ),
    EventKind(
        "returned",
        ("seat", "name", "deck"),
        "{name} is back at seat {seat} with {deck}",
        reported_by=("STRT",),
        restores=True,
        reveals=_AT_ONES_TABLE,
    ),
    # The others see it in the next STAT.
    EventKind(
        "drew",
        ("seat", "name", "stack", "tile"),
        "{name} draws {tile} from {stack}",
        reported_by=("+DRAW",),
        implied_by="after",
    ),
    EventKind(
        "put",
        ("seat", "name", "tile", "deck", "valid"),
        "{name} puts {tile}",
        reported_by=("+PUTT",),
        implied_by="after",
    ),
    EventKind("status", ("exchange", "turn", "name"), "it is {name}'s turn; exchange stacks: {exchange}"),
    EventKind(
        "cheated", ("seat", "name", "deck"), "{name} takes a winning deck: {deck}", reported_by=("+WINC",)
    ),
    EventKind("won", ("name",), "{name} wins"),
    EventKind("drawn_game", (), "the main stack is empty: nobody wins"),
    EventKind("chat", ("scope", "from", "to", "text"), "{from} says: {text}", directed=True),
    EventKind("left", ("name", "lobby", "reason"), "{name} leaves: {reason}", ending="reason"),
)

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

GRAMMAR = Grammar(
    "okey",
    "Okey",
    rows=ROWS,
    events=EVENTS,
    foreign=True,
    data_identifiers=DATA_IDENTIFIERS,
    state_identifiers=STATE_IDENTIFIERS,
    aliases={"before": "name"},
    rules=RULES,
    more_words=("Lobby",),
)
