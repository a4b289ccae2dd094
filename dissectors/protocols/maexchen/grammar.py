"""The grammar of Mäxchen: every message of the specification, with real servers' dialects as further rows.

The clauses name the headings of the specification (Grundlagen, Anmelden, Start einer Spielrunde, Ablauf einer
Spielrunde, Reason-Codes). A message is one datagram: its name, then its fields, separated by `;`.
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
from kiebitz.dissectors.grammar.fields import Number, Text, Word
from kiebitz.dissectors.grammar.grammar import EventKind, Field, Grammar, MessageType
from kiebitz.dissectors.grammar.invalid_values import Wrong
from kiebitz.dissectors.protocols.maexchen.dice import written
from kiebitz.dissectors.protocols.maexchen.rules import RULES

REASONS = (
    "SEE_BEFORE_FIRST_ROLL",
    "LIED_ABOUT_MIA",
    "ANNOUNCED_LOSING_DICE",
    "DID_NOT_ANNOUNCE",
    "DID_NOT_TAKE_TURN",
    "INVALID_TURN",
    "SEE_FAILED",
    "CAUGHT_BLUFFING",
    "MIA",
)

REJECTIONS = ("INVALID_NAME", "NAME_ALREADY_TAKEN", "ALREADY_REGISTERED")
"""Reasons why real servers reject a name."""

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

    def wire_type(self) -> Mapping[str, Any]:
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

    def wire_type(self) -> Mapping[str, Any]:
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


class Names(FieldType):
    """Players, separated by commas. Old servers allow commas in names: then the list is ambiguous."""

    title = "names with commas between them"
    parts = (_PLAYER,)

    def decode(self, text: str) -> list[str]:
        return text.split(",")

    def encode(self, value: Any) -> str:
        return ",".join(value)

    def wire_type(self) -> Mapping[str, Any]:
        return {"kind": "list", "item": {"kind": "text"}, "separator": ",", "filled": True}

    def with_parts(self, value: Any, change: Callable[[FieldType, Any], Any]) -> list[Any]:
        return [change(_PLAYER, name) for name in value]


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

    def wire_type(self) -> Mapping[str, Any]:
        return {"kind": "scores", "limit": "each player's points are one text, name:points"}

    def with_parts(self, value: Any, change: Callable[[FieldType, Any], Any]) -> dict[Any, int]:
        return {change(_PLAYER, name): points for name, points in value.items()}


_NAME = Field("name", _PLAYER, "player")
_TOKEN = Field("token", Token(), "identifies the question", generated=True)
_ROUND = Field("round", Number(ROUND), "number of the round")
_DICE = Field("dice", Dice(), "two dice")
_PLAYERS = Field("players", Names(), "players in the order of play")
_LOSERS = Field("names", Names(), "the players who lost")
_CODE = Field("reason", Word(*REASONS), "why")
_FREE_REASON = Field("reason", Text(), "the reason, in free text")
_ECHOED = Field("text", Text(), "any text")

_JOINING = "Anmelden"
_START = "Start einer Spielrunde"
_PLAY = "Ablauf einer Spielrunde"
_CODES = "Reason-Codes"

_FORK = "is not in the specification; a fork's server"
_NO_NUMBER = "ROUND STARTING has no round number here; the specification has one"
_NUMBERED_START = "ROUND STARTED carries the round number here; the specification has only the names"

ROWS = (
    # Anmelden: REGISTER;name
    MessageType("REGISTER", "c2s", (_NAME,), "asks to play under a name", clause=_JOINING),
    MessageType(
        "REGISTER",
        "c2s",
        (_NAME, Field("password", Text(), "password, or a surplus field")),
        "asks to play under a name",
        clause=_JOINING,
        deviation="REGISTER has a second field: a password for the oldest servers, ignored by all others",
    ),
    MessageType(
        "REGISTER_SPECTATOR",
        "c2s",
        (_NAME,),
        "asks to watch under a name",
        clause=_JOINING,
        deviation="REGISTER_SPECTATOR is not in the specification",
    ),
    MessageType(
        "REGISTERED",
        "s2c",
        (),
        "the name is registered",
        clause=_JOINING,
        answers=("REGISTER", "REGISTER_SPECTATOR"),
    ),
    MessageType(
        "REGISTERED",
        "s2c",
        (Field("points", Number(), "points so far"),),
        "the name is registered",
        clause=_JOINING,
        answers=("REGISTER",),
        deviation="REGISTERED carries points (oldest dialect)",
    ),
    MessageType(
        "REJECTED",
        "s2c",
        (),
        "the name is refused",
        clause=_JOINING,
        answers=("REGISTER", "REGISTER_SPECTATOR"),
    ),
    MessageType(
        "REJECTED",
        "s2c",
        (Field("reason", Text(words=REJECTIONS), "why"),),
        "the name is refused",
        clause=_JOINING,
        answers=("REGISTER", "REGISTER_SPECTATOR"),
        deviation="REJECTED carries a reason; the specification has none",
    ),
    # A fork's server, from here to ECHOING. Bots send UNREGISTER to other servers, too, which ignore it.
    MessageType(
        "UNREGISTER",
        "c2s",
        (),
        "asks to be unregistered",
        clause=_JOINING,
        deviation=f"UNREGISTER {_FORK} unregisters its sender, all others ignore it",
    ),
    MessageType(
        "UNREGISTERED",
        "s2c",
        (),
        "is no longer registered",
        clause=_JOINING,
        answers=("UNREGISTER",),
        deviation=f"UNREGISTERED {_FORK} answers UNREGISTER with it",
    ),
    MessageType(
        "HEARTBEAT",
        "s2c",
        (),
        "the server is alive",
        clause=_JOINING,
        deviation=f"HEARTBEAT {_FORK} sends it to all clients every 2 s",
        heartbeat=True,
    ),
    MessageType(
        "ECHO",
        "c2s",
        (_ECHOED,),
        "asks for this text back",
        clause=_JOINING,
        deviation=f"ECHO {_FORK} sends the text back to any client",
    ),
    MessageType(
        "ECHOING",
        "s2c",
        (_ECHOED,),
        "repeats the text",
        clause=_JOINING,
        answers=("ECHO",),
        deviation=f"ECHOING {_FORK} answers ECHO with it",
    ),
    # Start einer Spielrunde: ROUND STARTING;rundennummer;token
    MessageType("ROUND STARTING", "s2c", (_ROUND, _TOKEN), "who plays the next round?", clause=_START),
    MessageType(
        "ROUND STARTING", "s2c", (_TOKEN,), "who plays the next round?", clause=_START, deviation=_NO_NUMBER
    ),
    MessageType("JOIN", "c2s", (_TOKEN,), "plays the next round", clause=_START, answers=("ROUND STARTING",)),
    # ROUND STARTED;spielernamen
    MessageType("ROUND STARTED", "s2c", (_PLAYERS,), "the round begins", clause=_START, broadcast=True),
    MessageType(
        "ROUND STARTED",
        "s2c",
        (_ROUND, _PLAYERS),
        "the round begins",
        clause=_START,
        broadcast=True,
        deviation=_NUMBERED_START,
    ),
    # ROUND CANCELED;no players
    MessageType(
        "ROUND CANCELED",
        "s2c",
        (Field("reason", Word("no players", "only one player"), "why"),),
        "the round is canceled",
        clause=_START,
        broadcast=True,
    ),
    MessageType(
        "ROUND CANCELED",
        "s2c",
        (Field("reason", Text(words=("NO_PLAYERS", "ONLY_ONE_PLAYER")), "why"),),
        "the round is canceled",
        clause=_START,
        broadcast=True,
        deviation='ROUND CANCELED gives its reason as a code; the specification says "no players"',
    ),
    # Ablauf einer Spielrunde: YOUR TURN;token, then ROLL;token or SEE;token
    MessageType("YOUR TURN", "s2c", (_TOKEN,), "roll, or see the last roll?", clause=_PLAY),
    MessageType("ROLL", "c2s", (_TOKEN,), "rolls", clause=_PLAY, answers=("YOUR TURN",)),
    MessageType("SEE", "c2s", (_TOKEN,), "wants to see the last roll", clause=_PLAY, answers=("YOUR TURN",)),
    # Bei ROLL
    MessageType("PLAYER ROLLS", "s2c", (_NAME,), "a player rolls", clause=_PLAY, broadcast=True),
    MessageType(
        "ROLLED", "s2c", (_DICE, _TOKEN), "your roll; what do you announce?", clause=_PLAY, answers=("ROLL",)
    ),
    MessageType("ANNOUNCE", "c2s", (_DICE, _TOKEN), "announces a roll", clause=_PLAY, answers=("ROLLED",)),
    MessageType("ANNOUNCED", "s2c", (_NAME, _DICE), "a player announces", clause=_PLAY, broadcast=True),
    MessageType(
        "ANNOUNCED",
        "s2c",
        (_NAME, Field("dice", Dice(any_number=True), "what was announced")),
        "a player announces",
        clause=_PLAY,
        broadcast=True,
        deviation="ANNOUNCED repeats numbers that no dice show (the specification's own server does)",
    ),
    # Bei SEE
    MessageType(
        "PLAYER WANTS TO SEE", "s2c", (_NAME,), "a player wants to see", clause=_PLAY, broadcast=True
    ),
    MessageType("ACTUAL DICE", "s2c", (_DICE,), "the last roll is uncovered", clause=_PLAY, broadcast=True),
    # PLAYER LOST;names;reason
    MessageType(
        "PLAYER LOST", "s2c", (_LOSERS, _CODE), "a player lost the round", clause=_CODES, broadcast=True
    ),
    MessageType(
        "PLAYER LOST",
        "s2c",
        (_LOSERS, _FREE_REASON),
        "a player lost the round",
        clause=_CODES,
        broadcast=True,
        deviation="PLAYER LOST gives its reason in free text; the specification has codes",
    ),
    # Nach Ende einer Runde: SCORE;spielerpunkte*
    MessageType(
        "SCORE",
        "s2c",
        (Field("scores", Scores(), "points of each player"),),
        "the points",
        clause=_PLAY,
        broadcast=True,
    ),
)

EVENTS = (
    EventKind("registered", ("name",), "{name} is registered", reported_by=("REGISTERED",), identifies=True),
    EventKind("rejected", ("name", "reason"), "{name} is refused: {reason}", secret=True),
    EventKind("unregistered", ("name",), "{name} is no longer registered"),
    EventKind("round_starting", ("round",), "a round is about to start"),
    EventKind("joined", ("name",), "{name} joins the round", secret=True, reported_by=("JOIN",)),
    EventKind("round_started", ("round", "players"), "round {round} starts with {players}"),
    EventKind("round_canceled", ("reason",), "the round is canceled: {reason}"),
    # Every player knows the order of play, and receives the moves of the players before.
    EventKind("turn", ("name",), "it is {name}'s turn", reported_by=("YOUR TURN",), implied_by="before"),
    EventKind("rolls", ("name",), "{name} rolls"),
    EventKind("rolled", ("name", "dice"), "{name} has rolled {dice}", secret=True, reported_by=("ROLLED",)),
    EventKind("announced", ("name", "dice"), "{name} announces {dice}"),
    EventKind("wants_to_see", ("name",), "{name} wants to see"),
    EventKind("actual_dice", ("dice",), "the dice were {dice}"),
    EventKind("lost", ("names", "reason"), "{names} lost: {reason}"),
    EventKind("score", ("scores",), "score: {scores}", reveals=("scores",)),
)

# Identifiers in the data of the events, and in the state.
DATA_IDENTIFIERS: IdentifierKinds = {
    "actor": PLAYER,
    "name": PLAYER,
    "names": PLAYER,
    "players": PLAYER,
    "scores": KeysOf(PLAYER),
    "round": ROUND,
}
STATE_IDENTIFIERS: IdentifierKinds = {
    **DATA_IDENTIFIERS,
    "private": KeysOf(PLAYER),
    "turn": PLAYER,
    "rolling": PLAYER,
    "seer": PLAYER,
    "address": ADDRESS,
}

GRAMMAR = Grammar(
    "maexchen",
    "Mäxchen",
    rows=ROWS,
    events=EVENTS,
    data_identifiers=DATA_IDENTIFIERS,
    state_identifiers=STATE_IDENTIFIERS,
    rules=RULES,
)
