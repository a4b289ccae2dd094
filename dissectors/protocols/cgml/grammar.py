"""The grammar of CGML 1.19: every message of chapters 2 to 4, in the specification's order.

A message is named by its element; if several share a name, the value of `status` or `type` distinguishes
them. Fields have the names of the attributes and elements, which are English, though sometimes misspelt
(`dial` deals, `winer` wins). Words of licitovaný mariáš are glossed: *flek* is a double, *štych* a trick,
*talon* the two cards that the winner of the bidding (*licitace*) exchanges.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, Literal

import msgspec

from kiebitz.dissectors.grammar.field_type import FieldType, Rename, Replace
from kiebitz.dissectors.grammar.fields import Number, Text, is_version
from kiebitz.dissectors.grammar.grammar import Field, Grammar, MessageType
from kiebitz.dissectors.model import Direction
from kiebitz.dissectors.protocols.cgml.cards import HAND, LADDER, SEATS
from kiebitz.dissectors.protocols.cgml.events import DATA_IDENTIFIERS, EVENTS, STATE_IDENTIFIERS
from kiebitz.dissectors.protocols.cgml.identifiers import GROUP, NAME, PLAYER, URL
from kiebitz.dissectors.protocols.cgml.markup import ENVELOPE
from kiebitz.dissectors.protocols.cgml.rules import RULES
from kiebitz.dissectors.protocols.cgml.values import (
    MAX_CHILDREN,
    Card,
    Child,
    Choice,
    Compound,
    Pattern,
    Range,
    Shape,
    with_each,
)

VERSIONS = tuple(f"1.{minor}" for minor in range(20))


class Version(Text):
    """The version of CGML; other texts in its place may be names."""

    def anonymized(self, value: Any, replace: Replace, rename: Rename) -> str:
        return value if is_version(value) else replace(value)


VERSION = Field("version", Version(), "the version of CGML that is used", optional=True)

_GAME_NAME = "licitovany_marias"

Server = Literal["login", "game"]
"""The server that a message belongs to: the login server on ports 7001 and 7003, or the game server on 7002.
"""


class ElementType(MessageType, frozen=True):
    """A message's row; `mark` is the attribute and value that distinguish it from others of its name.

    `server` is the server that such a message is exchanged with; None if it may be either.
    """

    shape: Shape = msgspec.field(default_factory=Shape)
    mark: tuple[str, str] | None = None
    server: Server | None = None

    def matches(self, fields: Mapping[str, Any]) -> bool:
        return self.mark is None or fields.get(self.mark[0]) == self.mark[1]

    def with_each(self, fields: Mapping[str, Any], change: Callable[[FieldType, Any], Any]) -> dict[str, Any]:
        return with_each(self._whole_shape, fields, change)

    @cached_property
    def _whole_shape(self) -> Shape:
        return Shape((*self.shape.attributes, VERSION), self.shape.text, self.shape.children)

    @cached_property
    def kind(self) -> str:
        """Its name, and the word that distinguishes it from others of that name."""
        return self.name if self.mark is None else f"{self.name} {self.mark[1]}"

    @cached_property
    def asks(self) -> bool:
        """True if it is marked as a question."""
        return self.mark is not None and self.mark[1] == "ask"


def _element(
    name: str,
    direction: Direction,
    mark: str | None,
    shape: Shape,
    description: str,
    clause: str,
    *,
    server: Server | None = "game",
    answers: tuple[str, ...] = (),
    broadcast: bool = False,
    summary: str | None = None,
) -> ElementType:
    """Return a row; `mark` is its `status` or `type`."""
    told_apart = None
    if mark is not None:
        attribute, _, word = mark.partition("=")
        told_apart = (attribute, word)
        which = Field(attribute, Choice(word), "the kind of message")
        shape = Shape((which, *shape.attributes), shape.text, shape.children)
    return ElementType(
        name,
        direction,
        (*shape.fields, VERSION),
        description,
        clause=clause,
        answers=answers,
        broadcast=broadcast,
        summary=summary,
        shape=shape,
        mark=told_apart,
        server=server,
    )


def _with(*attributes: Field, text: Field | None = None, children: tuple[Child, ...] = ()) -> Shape:
    return Shape(attributes, text, children)


_IN_SPEC = {
    2: "2 Přihlášení hráčů a zahájení nové hry: ",
    3: "3 Průběh jednotlivých her: ",
    4: "4 Řídící zprávy: ",
}


def _clause(chapter: int, title: str) -> str:
    return _IN_SPEC[chapter] + title


_ID = Field("id", Number(PLAYER), "the player's id")
_NAME = Child(Field("name", Text(NAME), "the player's name", optional=True), 0)
_RACE = Child(Field("race", Choice("human", "bot", empty=True), "a person or a program", optional=True), 0)
_PLAYER = Compound("player", Shape((_ID,), None, (_NAME, _RACE)))
_ID_IF = Field("id", Number(PLAYER), "the player's id", optional=True)
_CULPRIT = Compound("player", Shape((_ID_IF,), None, (_NAME, _RACE)))
_OPPONENT = Compound(
    "opponent", Shape((), None, (Child(Field("player", _PLAYER, "players"), 1, MAX_CHILDREN),))
)

_GAME = Child(Field("game", Choice(_GAME_NAME), "the game played"))
_GAME_IF = Child(Field("game", Choice(_GAME_NAME), "the game played", optional=True), 0)
_ONE_PLAYER = Child(Field("player", _PLAYER, "the player"))
_WHO = Child(Field("player", _CULPRIT, "the player that has caused it", optional=True), 0)
_GROUP = Field("id", Number(GROUP), "the group's id", generated=True)
_URL = Child(
    Field(
        "url",
        Pattern(
            r"[A-Za-z0-9._-]{1,253}:[0-9]{1,5}|\[[0-9A-Fa-f:.]+\]:[0-9]{1,5}",
            "an address and a port, as in 127.0.0.1:7002",
            URL,
        ),
        "where the game server listens",
    )
)
_WHOSE = Field("playerid", Number(PLAYER), "the player's id")
_TO = Field("to", Choice("hand", "desk", "talon"), "where the cards go")
_FROM = Field("from", Choice("desk", "talon"), "where the cards come from")
_FROM_HAND = Field("from", Choice("hand"), "where the card comes from")
_TO_DESK = Field("to", Choice("desk", "talon"), "where the card goes")
# The specification leaves these two out of the heading "Talon -- informace".
_FROM_HAND_IF = Field("from", Choice("hand"), "where the card comes from", optional=True)
_TO_DESK_IF = Field("to", Choice("desk", "talon"), "where the card goes", optional=True)

_TRUMPS = "r, g, b or a, and after a colon a second one if the game has it"
_TRUMF = Child(
    Field("trumf", Pattern("[rgba](:[rgba])?", _TRUMPS), "trumps, and the second colour", optional=True), 0
)
_LEVEL = Pattern("[0-9]{1,6}(:[0-9]{1,6})?", "a level, and after a colon that of the game against")
_CALLED = Choice(*LADDER, title="a game of table 3-1: " + ", ".join(LADDER))
_ANSWER = Choice(*LADDER, "YES", "NO")
_CONTRACT = Child(Field("licite", _CALLED, "the game"))


def _cards(least: int, most: int, hidden: bool) -> Child:
    return Child(Field("card", Card(hidden), "cards"), least, most)


_TRICK = _with(
    Field("number", Range(1, HAND), "the number of the trick"),
    Field("playerid", Number(PLAYER), "the winner's id"),
    children=(_cards(SEATS, SEATS, False),),
)


def _outcome(name: str, word: str, description: str, least: int) -> Child:
    kind = Field("type", Choice(word), "won or lost")
    money = Compound("money", _with(kind, text=Field("money", Number(), "the amount")))
    whose = _with(_WHOSE, children=(Child(Field("money", money, "money")),))
    return Child(Field(name, Compound(name, whose), description), least, SEATS)


_MESSAGE = Child(Field("message", Text(), "an explanation", optional=True), 0)


def _pause(direction: Direction) -> tuple[ElementType, ElementType]:
    who = "wants a pause" if direction == "c2s" else "a player wants a pause"
    return (
        _element(
            "pause",
            direction,
            "type=start",
            _with(children=(_MESSAGE,)),
            who,
            _clause(4, "PAUSE -- zahájení"),
            broadcast=direction == "s2c",
            summary=who + ": {message}",
        ),
        _element(
            "pause",
            direction,
            "type=finish",
            Shape(),
            "the pause is over",
            _clause(4, "PAUSE -- ukončení"),
            broadcast=direction == "s2c",
        ),
    )


def _disconnect(direction: Direction) -> ElementType:
    text = Field("disconnect", Text(), "the reason", optional=True)
    return _element(
        "disconnect",
        direction,
        None,
        _with(text=text),
        "ends the connection",
        _clause(4, "DISCONNECT"),
        server=None,
        broadcast=direction == "s2c",
        summary="ends the connection: {disconnect}",
    )


_REQUEST = _clause(2, "Přihlášení hráče nebo bota")
_JOINING = _clause(2, "Potvrzení nebo odmítnutí nově vytvořené hrací skupiny")
_STARTING = _clause(2, "Potvrzení nebo odmítnutí zahájení nové hry")
_OPPONENTS = Child(Field("opponent", _OPPONENT, "the desired opponents", optional=True), 0)

ROWS = (
    # <connect status="server"> <game> <numplayers> <url>
    _element(
        "connect",
        "c2s",
        "status=server",
        _with(children=(_GAME, Child(Field("numplayers", Range(1, 100), "players that a game needs")), _URL)),
        "a game server logs in",
        _clause(2, "Přihlášení Superhracího serveru"),
        server="login",
        summary="a game server logs in: {url}",
    ),
    # <connect status="passive active"> <player id> <game> <opponent>
    _element(
        "connect",
        "c2s",
        "status=passive",
        _with(children=(_ONE_PLAYER, _GAME, _OPPONENTS)),
        "a player is available for games",
        _REQUEST,
        server="login",
        summary="{player[name]} is available for games",
    ),
    _element(
        "connect",
        "c2s",
        "status=active",
        _with(children=(_ONE_PLAYER, _GAME, _OPPONENTS)),
        "a player wants to play at once",
        _REQUEST,
        server="login",
        summary="{player[name]} wants to play at once",
    ),
    # <newgroup status="init"> <game>
    _element(
        "newgroup",
        "s2c",
        "status=init",
        _with(children=(_GAME,)),
        "a game server is asked to create a group",
        _clause(2, "Žádost o vytvoření nové skupiny"),
        server="login",
    ),
    # <newgroup status="ack"> <game>
    _element(
        "newgroup",
        "c2s",
        "status=ack",
        _with(children=(_GAME,)),
        "the game server has created a group",
        _clause(2, "Potvrzení vytvoření nové skupiny"),
        server="login",
        answers=("newgroup",),
    ),
    # <connect status="complete" id="4"> <game> <player id>… <url>
    _element(
        "connect",
        "s2c",
        "status=complete",
        _with(_GROUP, children=(_GAME, Child(Field("player", _PLAYER, "opponents"), 1, MAX_CHILDREN), _URL)),
        "a group is complete",
        _clause(2, "Ohlášení nové hry"),
        server="login",
        answers=("connect",),
        broadcast=True,
        summary="group {id} plays at {url}",
    ),
    # <newgroup status="accept reject" id="4"> <game> <player id>
    _element(
        "newgroup",
        "c2s",
        "status=accept",
        _with(_GROUP, children=(_GAME, _ONE_PLAYER)),
        "joins the group",
        _JOINING,
        summary="player {player[id]} joins group {id}",
    ),
    _element(
        "newgroup",
        "c2s",
        "status=reject",
        _with(_GROUP, children=(_GAME, _ONE_PLAYER)),
        "does not join the group",
        _JOINING,
        summary="player {player[id]} does not join group {id}",
    ),
    # <newgame status="ask"> <player id>…
    _element(
        "newgame",
        "s2c",
        "status=ask",
        _with(children=(Child(Field("player", _PLAYER, "the players"), 1, MAX_CHILDREN),)),
        "asks whether to deal a hand",
        _clause(2, "Dotaz na zahájení nové hry"),
        broadcast=True,
    ),
    # <newgame status="accept reject"> <player id>; the text also names <game>
    _element(
        "newgame",
        "c2s",
        "status=accept",
        _with(children=(_GAME_IF, _ONE_PLAYER)),
        "plays the next hand",
        _STARTING,
        answers=("newgame",),
        summary="player {player[id]} plays the next hand",
    ),
    _element(
        "newgame",
        "c2s",
        "status=reject",
        _with(children=(_GAME_IF, _ONE_PLAYER)),
        "does not play the next hand",
        _STARTING,
        answers=("newgame",),
        summary="player {player[id]} does not play the next hand",
    ),
    # <dial type="cards" to="hand desk talon" from="desk talon"> <card>…
    _element(
        "dial",
        "s2c",
        "type=cards",
        _with(_TO, _FROM, children=(_cards(1, MAX_CHILDREN, True),)),
        "cards are dealt",
        _clause(2, "Rozdávání karet -- karty"),
        summary="dealt to the {to}: {card}",
    ),
    # <dial type="info" to="hand desk talon" from="desk talon" playerid="6533"> <card>…
    _element(
        "dial",
        "s2c",
        "type=info",
        _with(_TO, _FROM, _WHOSE, children=(_cards(1, MAX_CHILDREN, True),)),
        "cards are dealt to another player",
        _clause(2, "Rozdávání karet -- informace"),
        summary="dealt to player {playerid}: {card}",
    ),
    # <licite type="ask">100</licite>
    _element(
        "licite",
        "s2c",
        "type=ask",
        _with(text=Field("licite", _CALLED, "the bid so far", optional=True)),
        "asks for a bid",
        _clause(3, "Licitace -- žádost o hru"),
    ),
    # <licite type="answer">100 YES NO</licite>
    _element(
        "licite",
        "c2s",
        "type=answer",
        _with(text=Field("licite", _ANSWER, "a game, or yes or no")),
        "bids",
        _clause(3, "Licitace -- nabídka hry"),
        answers=("licite",),
        summary="bids {licite}",
    ),
    # <licite type="info" playerid="6533">100</licite>
    _element(
        "licite",
        "s2c",
        "type=info",
        # The specification has the game here, and leaves open if a yes or no is announced as such.
        _with(_WHOSE, text=Field("licite", _ANSWER, "the game, or yes or no")),
        "announces a bid",
        _clause(3, "Licitace -- informace"),
        broadcast=True,
        summary="player {playerid} bids {licite}",
    ),
    # <licite type="result" playerid="6533">100</licite>
    _element(
        "licite",
        "s2c",
        "type=result",
        _with(_WHOSE, text=Field("licite", _CALLED, "the game")),
        "announces the winner of the bidding",
        _clause(3, "Licitace -- výsledek"),
        broadcast=True,
        summary="player {playerid} has won the bidding with {licite}",
    ),
    # <playcard type="cards" from="hand" to="talon">, <playcard type="cards" from="hand" to="desk"> <card>…
    _element(
        "playcard",
        "c2s",
        "type=cards",
        _with(_FROM_HAND, _TO_DESK, children=(_cards(1, HAND + 2, False),)),
        "plays cards",
        _clause(3, "Hra -- zahrání karty"),
        answers=("playcard", "dial"),
        summary="to the {to}: {card}",
    ),
    # <playcard type="info" from="hand" to="desk" playerid="6533"> <card>…
    _element(
        "playcard",
        "s2c",
        "type=info",
        _with(_FROM_HAND_IF, _TO_DESK_IF, _WHOSE, children=(_cards(1, HAND + 2, True),)),
        "announces a played card",
        _clause(3, "Hra -- informace o zahrané kartě"),
        broadcast=True,
        summary="player {playerid} plays {card}",
    ),
    # <gametype type="ask"> <licite>
    _element(
        "gametype",
        "s2c",
        "type=ask",
        _with(children=(_CONTRACT,)),
        "asks for trumps",
        _clause(3, "Trumfy -- dotaz"),
        summary="asks for trumps in {licite}",
    ),
    # <gametype type="answer"> <licite> <trumf>
    _element(
        "gametype",
        "c2s",
        "type=answer",
        _with(children=(_CONTRACT, _TRUMF)),
        "names trumps",
        _clause(3, "Trumfy -- odpověď"),
        answers=("gametype",),
        summary="plays {licite}, trumps {trumf}",
    ),
    # <gametype type="info" playerid="6533"> <licite> <trumf> <flek>
    _element(
        "gametype",
        "s2c",
        "type=info",
        _with(
            _WHOSE,
            children=(
                _CONTRACT,
                _TRUMF,
                Child(Field("flek", _LEVEL, "the level of doubling", optional=True), 0),
            ),
        ),
        "announces the game",
        _clause(3, "Trumfy -- informace; Začátek hry -- shrnutí"),
        broadcast=True,
        summary="player {playerid} plays {licite}, trumps {trumf}",
    ),
    # <flek type="ask">1</flek>
    _element(
        "flek",
        "s2c",
        "type=ask",
        _with(text=Field("flek", _LEVEL, "the level so far")),
        "asks whether to double",
        _clause(3, "Flekování -- nabídka"),
        summary="asks whether to double, level {flek}",
    ),
    # <flek type="answer">1:1</flek>
    _element(
        "flek",
        "c2s",
        "type=answer",
        _with(text=Field("flek", _LEVEL, "the level")),
        "doubles, or not",
        _clause(3, "Flekování -- potvrzení nebo zvýšení nabídky"),
        answers=("flek",),
        summary="doubling: {flek}",
    ),
    # <flek type="info" playerid="6533">4</flek>
    _element(
        "flek",
        "s2c",
        "type=info",
        _with(_WHOSE, text=Field("flek", _LEVEL, "the level")),
        "announces a level of doubling",
        _clause(3, "Flekování -- informace"),
        broadcast=True,
        summary="doubling of player {playerid}: {flek}",
    ),
    # <playcard type="ask"></playcard>
    _element(
        "playcard",
        "s2c",
        "type=ask",
        Shape(),
        "asks for a card",
        _clause(3, "Hra -- žádost o kartu"),
    ),
    # <round number="1" playerid="6533"> <card>…
    _element(
        "round",
        "s2c",
        None,
        _TRICK,
        "a trick is over",
        _clause(3, "Štych"),
        broadcast=True,
        summary="trick {number} ({card}) goes to player {playerid}",
    ),
    # <result> <game> <licite> <trumf> <flek> <round>… <winer>… <loser>…
    _element(
        "result",
        "s2c",
        None,
        _with(
            children=(
                _GAME,
                _CONTRACT,
                _TRUMF,
                Child(Field("flek", _LEVEL, "the level of doubling")),
                Child(Field("round", Compound("round", _TRICK), "the tricks"), 0, HAND),
                _outcome("winer", "get", "winners", 1),
                _outcome("loser", "lost", "losers", 0),
            )
        ),
        "the result of the hand",
        _clause(3, "Zhodnocení a závěr hry"),
        broadcast=True,
        summary="{licite} is over",
    ),
    # <abort> <player> <message>
    _element(
        "abort",
        "s2c",
        None,
        _with(children=(_WHO, _MESSAGE)),
        "the hand is aborted",
        _clause(4, "ABORT"),
        broadcast=True,
        summary="the hand is aborted: {message}",
    ),
    # <load>48</load>
    _element(
        "load",
        "c2s",
        None,
        _with(text=Field("load", Range(0, 100), "from 0, low, to 100, high")),
        "the load of a server of bots",
        _clause(4, "LOAD"),
        server="login",
        summary="a server of bots has a load of {load}",
    ),
    # <disconnect>overload</disconnect>
    _disconnect("c2s"),
    _disconnect("s2c"),
    # <pause type="start"> <message>; <pause type="finish">
    *_pause("c2s"),
    *_pause("s2c"),
    # <cancelgame>renonc</cancelgame>
    _element(
        "cancelgame",
        "s2c",
        None,
        _with(text=Field("cancelgame", Text(), "the reason", optional=True)),
        "the hand is over early",
        _clause(4, "CANCELGAME"),
        broadcast=True,
        summary="the hand is over early: {cancelgame}",
    ),
    # <renonc> <player> <message>
    _element(
        "renonc",
        "s2c",
        None,
        _with(children=(_WHO, _MESSAGE)),
        "a player has broken the rules of play",
        _clause(4, "RENONC"),
        broadcast=True,
        summary="player {player[id]} has broken the rules: {message}",
    ),
)

GRAMMAR = Grammar(
    "cgml",
    "CGML (licitovaný mariáš)",
    rows=ROWS,
    events=EVENTS,
    foreign=True,
    data_identifiers=DATA_IDENTIFIERS,
    state_identifiers=STATE_IDENTIFIERS,
    aliases={"id": "name"},
    rules=RULES,
    # A client sends one player, a server all of them.
    variable_shape=("player",),
    more_words=(
        ENVELOPE,
        "xml",
        "encoding",
        "standalone",
        "yes",
        "no",
        "CDATA",
        "DOCTYPE",
        "ENTITY",
        "SYSTEM",
        "PUBLIC",
        "UTF",
        "ISO",
    ),
)
