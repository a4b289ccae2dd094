"""Catan's expected reactions to unusual messages, and ways to break its rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from kiebitz.dissectors.conformance.conformance import Conformance
from kiebitz.dissectors.conformance.expectations import (
    Expectation,
    Expectations,
    Fields,
    NotApplicable,
    Reaction,
    Refusal,
    RuleViolation,
    Situation,
    Spelling,
    TargetRole,
)
from kiebitz.dissectors.protocols.catan.bot import CatanBot
from kiebitz.dissectors.protocols.catan.grammar import OTHER_SPELLINGS
from kiebitz.dissectors.protocols.catan.simulated_server import CatanServer

_GROUNDS, _HINTS = "2 Grundlagen", "4 Hinweise zu JSON"
_ANSWERS = "8.1 Bestätigungen und Fehler"
_MUST_REFUSE = (
    "Wenn eine Aktion des Spielers nicht erfolgreich durchgeführt werden konnte, so muss ein Fehler "
    "verschickt werden"
)
_CONFIRMED = "Der Server muss jede Aktion des Clients bestätigen."
_FRAGMENTS = (
    "Verlassen Sie sich nicht darauf, dass ein einzelner `read()` Aufruf die vollständige Nachricht liefert. "
    "Das Betriebssystem kann die Nachrichten fragmentiert übertragen."
)
_WHOLE_OBJECT = (
    "Füllen Sie einen Puffer so lange, bis die empfangene Nachricht ein vollständiges JSON-Objekt ergibt "
    "(ein korrekter Server sollte anschließend auch einen Zeilenwechsel senden)."
)
_TOLERANT = (
    "gestalten Sie aber ihren Parser hierfür möglichst tolerant, damit er auch mit fehlerhaften Nachrichten "
    "umgehen kann"
)
_UTF_8 = "Das Protokoll verwendet einen Strom von JSON-Objekten, als Zeichensatz wird dabei UTF-8 verwendet."
_ERROR = (Refusal("Fehler"),)
_OK = ("OK", "Serverantwort")

_NO_ACTION = " ".join(
    f"{name}/{what}"
    for name in ("Hallo", "Chatnachricht_senden")
    for what in ("*/null", "*/other-type", "*/left-out", "*/negative", "*/fraction", "*/too-large")
)
"""A greeting is no action of a player, and it is unclear if a chat message is one."""

_NOT_POSSIBLE = (
    "*/unknown */unknown-kind */other-type */null */negative */too-large */fraction */half"
    " */text */far-away */too-few */too-many */apart */huge */left-out"
)

_OFFER = "12.1 Handel anbieten"
_MAY_THINK = "Diese können sich nun überlegen, ob sie auf den Handel eingehen würden."
_GOES_ON: tuple[tuple[TargetRole, tuple[Reaction, ...]], ...] = (
    ("server", ("answers",)),
    ("client", ("answers", "ignores")),
)

EXPECTATIONS = (
    # A client need not accept an offer, nor answer any notification.
    *(
        Expectation("*/bytewise */in-two */slowly */joined", role, "must", right, _HINTS, _FRAGMENTS)
        for role, right in _GOES_ON
    ),
    Expectation("Handelsangebot/whole", "client", "must", ("answers", "ignores"), _OFFER, _MAY_THINK),
    *(
        Expectation("empty", role, "should", ("answers", "ignores"), _GROUNDS, _TOLERANT)
        for role in ("server", "client")
    ),
    Expectation(
        "Chatnachricht_senden/Nachricht/outside-ascii Spieler/Name/outside-ascii",
        "server",
        "must",
        ("answers",),
        _GROUNDS,
        _UTF_8,
    ),
    Expectation(
        "Chatnachricht/Nachricht/outside-ascii Spiel_beendet/Nachricht/outside-ascii",
        "client",
        "must",
        ("answers",),
        _GROUNDS,
        _UTF_8,
    ),
    Expectation(
        "Hallo/Protokoll/other-version",
        "client",
        "must",
        ("closes",),
        "6 Verbindungsaufbau",
        "Sollte der Client die Protokollversion des Servers nicht unterstützen, so ist die Verbindung "
        "abubrechen.",
    ),
    Expectation(
        "Chatnachricht_senden/whole",
        "server",
        "must",
        ("answers",),
        "8.3 Chat empfangen",
        "Schickt ein Client eine Chatnachricht, so wird diese vom Server verteilt.",
        answer=_OK,
        others_receive="Chatnachricht",
    ),
    Expectation(
        " ".join(f"{name}/whole" for name in ("Spieler", "Spiel_starten", "Würfeln", "Zug_beenden", "Bauen")),
        "server",
        "must",
        ("answers",),
        _ANSWERS,
        _CONFIRMED,
        answer=_OK,
    ),
    # Optional items; without them the server names no player.
    Expectation(
        "*/Ziel/left-out */Straße_2/left-out",
        "server",
        "open",
        ("answers", "refuses"),
        "11.3 Räuber versetzen",
    ),
    Expectation(
        "Spieler/Name/left-out Spieler/Farbe/left-out", "server", "open", ("answers", "refuses"), None
    ),
    # A server that can read it has carried the action out; silence is wrong in either case.
    Expectation("*/other-case", "server", "must", ("answers", "refuses"), _ANSWERS, _CONFIRMED, _ERROR),
    Expectation(_NO_ACTION, "server", "should", ("refuses", "closes"), _ANSWERS, _MUST_REFUSE, _ERROR),
    Expectation(
        f"{_NOT_POSSIBLE} */nobodys-player */nobodys-trade */rule/* Würfeln/twice Würfeln/from-other"
        " Zug_beenden/from-other Bauen/from-other",
        "server",
        "must",
        ("refuses",),
        _ANSWERS,
        _MUST_REFUSE,
        _ERROR,
    ),
)


def _rewritten(write: Callable[[Any], bytes]) -> Callable[[bytes], bytes]:
    """Return a function that decodes and encodes a message again; what is no JSON stays."""

    def respell(frame: bytes) -> bytes:
        try:
            return write(msgspec.json.decode(frame)) + b"\n"
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return frame

    return respell


def _escaped(value: Any) -> bytes:
    text = msgspec.json.encode(value).decode()
    return "".join(letter if letter.isascii() else _escape(letter) for letter in text).encode()


def _escape(letter: str) -> str:
    """Return a letter as JSON escapes it: one of four bytes as two surrogates."""
    units = letter.encode("utf-16-be")
    return "".join(f"\\u{units[at] << 8 | units[at + 1]:04x}" for at in range(0, len(units), 2))


def _reversed(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _reversed(part) for key, part in reversed(value.items())}
    return [_reversed(part) for part in value] if isinstance(value, list) else value


def _blanks(value: Any) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value), indent=1).replace(b"\n", b" ")


def _on_many_lines(value: Any) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value), indent=2)


def _ascii(frame: bytes) -> bytes:
    """Replace umlauts in names and words.

    Texts of players are changed, too, so their content differs then.
    """
    return OTHER_SPELLINGS.plain(frame.decode(errors="surrogateescape")).encode(errors="surrogateescape")


SPELLINGS = (
    Spelling(
        "other-order",
        "with its attributes in reverse order",
        _rewritten(lambda value: msgspec.json.encode(_reversed(value))),
        "must",
        _GROUNDS,
        _UTF_8,
    ),
    Spelling("blanks", "with blanks between its parts", _rewritten(_blanks), "must", _GROUNDS, _UTF_8),
    Spelling(
        "escapes",
        "with each letter outside ASCII as an escape",
        _rewritten(_escaped),
        "must",
        _GROUNDS,
        _UTF_8,
    ),
    Spelling("many-lines", "on several lines", _rewritten(_on_many_lines), "should", _GROUNDS, _TOLERANT),
    Spelling(
        "no-line-feed",
        "without the line feed at its end",
        lambda frame: frame.rstrip(b"\r\n"),
        "should",
        _HINTS,
        _WHOLE_OBJECT,
    ),
    Spelling("ascii", "with ae for ä, as some programs write it", _ascii),
)


def _game(at: Situation) -> Mapping[str, Any]:
    games = at.state["games"]
    found: Mapping[str, Any] = games[max(games, key=int)]
    return found


def _own(at: Situation, what: str) -> Mapping[str, int]:
    """Return our player's `resources` or `cards` by kind. Raises NotApplicable if the numbers are unknown."""
    found = _game(at)["private"][at.player][what]
    if not all(isinstance(count, int) for count in found.values()):
        raise NotApplicable("this player's possessions are not known")
    return dict(found)


def _number(at: Situation) -> int:
    return next(int(number) for number, about in _game(at)["players"].items() if about["name"] == at.player)


def _other_player(at: Situation, number: int) -> int:
    return next(int(other) for other in _game(at)["players"] if int(other) != number)


_CARD = {"Getreide": 1, "Wolle": 1, "Erz": 1}


def _unpaid(fields: Fields, at: Situation) -> Fields:
    own = _own(at, "resources")
    if all(own.get(kind, 0) >= count for kind, count in _CARD.items()):
        raise NotApplicable("this player can pay for a card")
    return {}


def _no_such_card(fields: Fields, at: Situation) -> Fields:
    if _own(at, "cards").get("Monopol", 0):
        raise NotApplicable("this player has such a card")
    return {"Rohstoff": "Holz"}


def _one_for_one(fields: Fields, at: Situation) -> Fields:
    offered = next(kind for kind, count in _own(at, "resources").items() if count)
    return {"Angebot": {offered: 1}, "Nachfrage": {"Erz" if offered != "Erz" else "Holz": 1}}


def _one_more(name: str) -> Callable[[Fields, Situation], Fields]:
    """Return a function that adds one to the first kind in a field, or to its total."""

    def fields_with(fields: Fields, at: Situation) -> Fields:
        counts = fields[name]
        if isinstance(counts, int):
            return {**fields, name: counts + 1}
        first = next(iter(counts), "Holz")
        return {**fields, name: {**counts, first: counts.get(first, 0) + 1}}

    return fields_with


def _of_another(name: str) -> Callable[[Fields, Situation], Fields]:
    return lambda fields, at: {**fields, name: _other_player(at, fields[name])}


def _back_to_where_it_is(fields: Fields, at: Situation) -> Fields:
    x, y = _game(at)["robber"]
    return {**fields, "Ort": {"x": x, "y": y}}


def _other_total(fields: Fields, at: Situation) -> Fields:
    player = fields["Spieler"]
    return {"Spieler": {**player, "Rohstoffe": _one_more("Rohstoffe")(player, at)["Rohstoffe"]}}


RULE_VIOLATIONS = (
    RuleViolation("cannot-pay", "Zug beenden", "server", _unpaid, sends="Entwicklungskarte kaufen"),
    RuleViolation("card-not-allowed/asked", "Zug beenden", "server", _no_such_card, sends="Monopol"),
    RuleViolation("trade-rate/asked", "Zug beenden", "server", _one_for_one, sends="Seehandel"),
    RuleViolation(
        "bad-target/asked",
        "Räuber versetzen",
        "server",
        lambda fields, at: {**fields, "Ziel": _number(at)},
    ),
    RuleViolation("wrong-count", "Karten abgeben", "server", _one_more("Abgeben")),
    RuleViolation("out-of-turn/roll", "Würfelwurf", "client", _of_another("Spieler")),
    RuleViolation("robber-stays", "Räuber versetzt", "client", _back_to_where_it_is),
    RuleViolation("bad-target", "Räuber versetzt", "client", _of_another("Ziel")),
    RuleViolation("longest-road", "Längste Handelsstraße", "client", _of_another("Spieler")),
    RuleViolation("largest-army", "Größte Rittermacht", "client", _of_another("Spieler")),
    RuleViolation("wrong-yield", "Ertrag", "client", _one_more("Rohstoffe")),
    RuleViolation("wrong-cost", "Kosten", "client", _one_more("Rohstoffe")),
    RuleViolation("total-mismatch", "Statusupdate", "client", _other_total),
)

_UNSENT = "a missing message breaks it, and no client can know that it was due"

CONFORMANCE = Conformance(
    expectations=Expectations(
        EXPECTATIONS,
        SPELLINGS,
        RULE_VIOLATIONS,
        broken_by={
            "out-of-turn/asked": "Würfeln/from-other Zug_beenden/from-other Bauen/from-other",
            "not-now": "Würfeln/twice",
            "bad-place/asked": "Bauen/Ort/apart",
            "no-trade/asked": "*/Handel_id/nobodys-trade",
            "bad-place/robber": "Räuber_versetzt/Ort/far-away",
            "bad-place": "Bauvorgang/Ort/apart",
            "card-not-allowed": "Ritter_ausspielen/twice Monopol/twice Erfindung/twice",
            "unexplained-gain": "Ertrag/twice",
            "unexplained-cost": "Kosten/twice",
            "below-zero": "Kosten/Rohstoffe.count/huge",
            "trade-rate": "Kosten/rule/wrong-cost",
            "no-trade": "Handel_ausgeführt/twice",
        },
        unreachable={
            "untold-discard": _UNSENT,
            "missing-yield": _UNSENT,
            "missing-cost": _UNSENT,
            "no-start-yield": _UNSENT,
            "points-missing": _UNSENT,
            "cards-mismatch": "it needs a player with known cards, who is sent a status at that time",
            "out-of-turn/build": "a building away from its player's roads breaks another rule",
            "road-through": "it needs a place on the board that depends on everything built",
            "too-many-pieces": "it needs a player who has built all of one kind",
        },
        # 7.5: all clients are informed of a lost connection, regardless of whose turn it is.
        awaited_messages="Würfeln Zug_beenden Bauen Karten_abgeben Räuber_versetzen",
    ),
    bot=CatanBot,
    simulated_server=CatanServer,
    seats=3,
)
