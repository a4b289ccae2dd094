"""Okey's expected reactions to unusual messages, and ways to break its rules."""

from __future__ import annotations

from kiebitz.dissectors.conformance.conformance import Conformance
from kiebitz.dissectors.conformance.expectations import (
    Expectation,
    Expectations,
    Fields,
    NotApplicable,
    Refusal,
    RuleViolation,
    Situation,
    Spelling,
)
from kiebitz.dissectors.model import DIRECTIONS
from kiebitz.dissectors.protocols.okey.bot import OkeyBot
from kiebitz.dissectors.protocols.okey.codec import CODEC
from kiebitz.dissectors.protocols.okey.grammar import GRAMMAR, WORDS
from kiebitz.dissectors.protocols.okey.simulated_server import OkeyServer
from kiebitz.dissectors.protocols.okey.tiles import COLOURS, HIGHEST, is_joker, tiles

_FORM = "Einige Eigenheiten unseres Protokolls"
_NO_TILE = (Refusal("+DRAW", "tile", None),)
_NOT_VALID = (Refusal("+PUTT", "valid", False),)
_SECOND_DRAW = (
    "Ist der spieler nicht an der Reihe, oder probiert er ein zweites Mal, zu ziehen, so wird eine leere "
    "String als `<tile>` geschickt."
)
_VALID = (
    "Zudem wird vom Server mit der Flag `<valid>` mitgeteilt, ob die Konfiguration und der Spielzug gültig "
    "ist."
)
_UNIQUE = (
    "in diesem Beispiel gibt es schon einen Spieler auf dem Server mit dem Namen ``Istref``, also wird ein "
    "Einzigartiger generiert"
)

EXPECTATIONS = (
    Expectation("LOGI/nickname/others-name", "server", "must", ("answers",), "Login", _UNIQUE),
    Expectation(
        "NAME/nickname/others-name",
        "server",
        "must",
        ("answers",),
        "Namensänderung",
        "Dieser Command funktioniert gleich wie der ``LOGI``-Command.",
    ),
    Expectation(
        "JLOB/n/nobodys-lobby",
        "server",
        "must",
        ("answers",),
        "Lobbyauswahl",
        "Gibt es keine Lobby mit der Lobbynummer ``<n>``, so wird eine neue erstellt.",
    ),
    Expectation(
        "DRAW/twice DRAW/from-other PUTT/rule/must-put",
        "server",
        "must",
        ("refuses",),
        "Tile ziehen",
        _SECOND_DRAW,
        _NO_TILE,
    ),
    # Any joker may be meant, but the server must report whether the move is valid.
    Expectation(
        "PUTT/rule/joker-colour",
        "server",
        "must",
        ("answers", "refuses"),
        "Stein ablegen",
        _VALID,
        _NOT_VALID,
    ),
    Expectation(
        "PUTT/rule/* DRAW/rule/must-draw",
        "server",
        "must",
        ("refuses",),
        "Stein ablegen",
        _VALID,
        _NOT_VALID,
    ),
    Expectation(
        "CATC.w/whisperrecipient/nobodys-name",
        "server",
        "must",
        ("refuses",),
        "Chat-Nachricht senden (Client)",
        "dann bekommt sie zusätzlich noch eine flag `<nicknameexists>` (entweder `t` oder `f`), welche "
        "angibt, ob der spezifizierte Nickname existiert.",
        (Refusal("+CATC", "nicknameexists", False),),
    ),
    # A peer that keeps pinging has exchanged something, so this is merely a recommendation.
    *(
        Expectation(
            "silence",
            role,
            "should",
            ("closes",),
            "Ping",
            "Falls 15 Sekunden lang keine Nachricht über das Socket ausgetauscht wird, wird die Verbindung "
            "beendet.",
        )
        for role in ("server", "client")
    ),
)


def _with_debug_message(frame: bytes) -> bytes:
    body = frame.rstrip(b"\r\n")
    return body + b" Kiebitz" + frame[len(body) :]


def _in_percent(frame: bytes) -> bytes:
    for direction in DIRECTIONS:
        decoded = CODEC.decode(frame, direction)
        if decoded.row is not None and decoded.valid:
            return CODEC.encode_padded(decoded.row.name, direction, decoded.fields, WORDS.pads[-1])
    return frame


def _quoted(frame: bytes) -> bytes:
    """Put the first argument in quotation marks where it needs none."""
    name, blank, rest = frame.partition(b" ")
    first, _, others = rest.partition(b" ")
    if not blank or first[:1] == b'"' or first.endswith(b"\n"):
        return frame
    return b'%b "%b " %b' % (name, first, others)


SPELLINGS = (
    Spelling(
        "debug-message",
        "with a debug message at its end, which every request may have",
        _with_debug_message,
        "must",
        _FORM,
        "```<commandname> <arg_1> <arg_2> ... [<optionalarg_1> ...] [<debugmessage>]```",
    ),
    Spelling("quoted", "with quotation marks where none are needed", _quoted),
    Spelling("percent", "padded with % in place of a blank, as the latest dialect writes it", _in_percent),
)


def _deck(at: Situation) -> list[str]:
    """Return the tiles that our player holds."""
    for game in at.state["games"].values():
        if at.player in game["private"]:
            return tiles(game["private"][at.player]["deck"])
    raise NotApplicable("this player is in no running game")


def _not_held(fields: Fields, at: Situation) -> Fields:
    held = {*tiles(fields["deck"]), fields["tile"]}
    other = next(tile for tile in _pack() if tile not in held)
    return {**fields, "tile": other}


def _pack() -> list[str]:
    return [f"{number}:{colour}" for number in range(1, HIGHEST + 1) for colour in COLOURS]


def _one_more(fields: Fields, at: Situation) -> Fields:
    deck = tiles(fields["deck"])
    return {**fields, "deck": [*deck, next(tile for tile in _pack() if tile not in deck)]}


def _joker_of_another_colour(fields: Fields, at: Situation) -> Fields:
    """Put a held joker instead of the message's tile, in the colour of no held one."""
    held = [tile for tile in (fields["tile"], *tiles(fields["deck"])) if tile is not None]
    joker = next((tile for tile in held if is_joker(tile)), None)
    if joker is None:
        raise NotApplicable("no joker is held here")
    other = next(other for each in COLOURS if (other := f"0:{each}") not in held)
    held.remove(joker)
    return {**fields, "tile": other, "deck": held}


def _put_undrawn(fields: Fields, at: Situation) -> Fields:
    first, *rest = _deck(at)
    return {"tile": first, "deck": rest}


def _drawn_from_the_pile(fields: Fields, at: Situation) -> Fields:
    return {"drawstack": "m"}


def _drawn_too_late(fields: Fields, at: Situation) -> Fields:
    games = at.state["games"].values()
    if not games or any("winner" not in game for game in games):
        raise NotApplicable("no game is over")
    return {"drawstack": "m"}


def _thrice(fields: Fields, at: Situation) -> Fields:
    first, *rest = tiles(fields["startdeck"])
    return {**fields, "startdeck": [first, first, first, *rest[2:]]}


def _other_tile(fields: Fields, at: Situation) -> Fields:
    games = at.state["games"].values()
    if not any(fields["tile"] in game["exchange"] for game in games):
        raise NotApplicable("it is not drawn from an exchange stack")
    return {"tile": "13:RED" if fields["tile"] != "13:RED" else "12:RED"}


RULE_VIOLATIONS = (
    RuleViolation("no-game", "REDY", "server", _drawn_from_the_pile, sends="DRAW"),
    RuleViolation("after-end", "LOGO", "server", _drawn_too_late, sends="DRAW"),
    RuleViolation("must-draw", "DRAW", "server", _put_undrawn, sends="PUTT"),
    RuleViolation("must-put", "PUTT", "server", _drawn_from_the_pile, sends="DRAW"),
    RuleViolation("not-held", "PUTT", "server", _not_held),
    RuleViolation("wrong-deck/surplus", "PUTT", "server", _one_more),
    RuleViolation(
        "wrong-deck/lacking",
        "PUTT",
        "server",
        lambda fields, at: {**fields, "deck": tiles(fields["deck"])[1:]},
    ),
    RuleViolation("joker-colour", "PUTT", "server", _joker_of_another_colour),
    RuleViolation(
        "wrong-deal/count",
        "STRT",
        "client",
        lambda fields, at: {**fields, "startdeck": tiles(fields["startdeck"])[2:]},
    ),
    RuleViolation("wrong-deal/tile", "STRT", "client", _thrice),
    RuleViolation("other-tile", "+DRAW", "client", _other_tile),
    RuleViolation("no-win", "+PUTT", "client", lambda fields, at: {"valid": True, "won": True}),
)

_SILENCE_S = 15.0
"""Maximum silence of a connection in seconds (Ping); real servers do not enforce it."""

CONFORMANCE = Conformance(
    expectations=Expectations(
        EXPECTATIONS,
        SPELLINGS,
        RULE_VIOLATIONS,
        broken_by={
            "outside-lobby": "REDY/first DRAW/first PUTT/first WINC/first",
            "outside-lobby/chat": "CATC.b+l/first",
            "not-your-turn": "DRAW/from-other PUTT/from-other",
            "must-draw/turn": "PUTT/from-other",
            "unasked": "+JLOB/twice +DRAW/twice +PUTT/twice",
            "unasked/acknowledged": "+STRT/twice +PWIN/twice +EMPT/twice",
            "not-held/none": "PUTT/tile/empty",
        },
        unreachable={
            "wrong-deal/second": "only other players' decks show it, which no client knows",
            "wrong-deal/pack": "only other players' decks show it, which no client knows",
            "no-win/announced": "only other players' decks show it, which no client knows",
            "other-winner": "it shows only in comparison with another player's messages",
            "tiles-missing": "it is no violation: no client knows other players' decks",
            "draws-missing": "it is no violation: a game may end early",
        },
        awaited_messages="DRAW PUTT",
        silence_s=_SILENCE_S,
    ),
    bot=OkeyBot,
    simulated_server=OkeyServer,
    seats=4,
    # A held message delays all that follow it, pings included.
    timeouts=dict.fromkeys((row.name for row in GRAMMAR.rows), _SILENCE_S),
)
