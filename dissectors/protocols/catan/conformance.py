"""What the specification of Catan wants of peers that are sent something odd, and how rules are broken."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from kiebitz.dissectors.conformance.conformance import Conformance
from kiebitz.dissectors.conformance.expectations import (
    Breach,
    Demand,
    Fields,
    NotHere,
    Reaction,
    Reactions,
    Refusal,
    Role,
    Situation,
    Spelling,
)
from kiebitz.dissectors.protocols.catan.bot import CatanPlayer
from kiebitz.dissectors.protocols.catan.simulated_server import CatanHost
from kiebitz.dissectors.protocols.catan.words import in_ascii

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
"""A greeting is no action of a player; and whether a chat is one, is open to doubt."""

_NOT_POSSIBLE = (
    "*/unknown */unknown-kind */other-type */null */negative */too-large */fraction */half"
    " */text */far-away */too-few */too-many */apart */huge */left-out"
)

_OFFER = "12.1 Handel anbieten"
_MAY_THINK = "Diese können sich nun überlegen, ob sie auf den Handel eingehen würden."
_GOES_ON: tuple[tuple[Role, tuple[Reaction, ...]], ...] = (
    ("server", ("answers",)),
    ("client", ("answers", "ignores")),
)

DEMANDS = (
    # A client need not accept an offer, nor say anything to what it is told.
    *(
        Demand("*/bytewise */in-two */slowly */joined", role, "must", right, _HINTS, _FRAGMENTS)
        for role, right in _GOES_ON
    ),
    Demand("Handelsangebot/whole", "client", "must", ("answers", "ignores"), _OFFER, _MAY_THINK),
    *(
        Demand("empty", role, "should", ("answers", "ignores"), _GROUNDS, _TOLERANT)
        for role in ("server", "client")
    ),
    Demand(
        "Chatnachricht_senden/Nachricht/outside-ascii Spieler/Name/outside-ascii",
        "server",
        "must",
        ("answers",),
        _GROUNDS,
        _UTF_8,
    ),
    Demand(
        "Chatnachricht/Nachricht/outside-ascii Spiel_beendet/Nachricht/outside-ascii",
        "client",
        "must",
        ("answers",),
        _GROUNDS,
        _UTF_8,
    ),
    Demand(
        "Hallo/Protokoll/other-version",
        "client",
        "must",
        ("closes",),
        "6 Verbindungsaufbau",
        "Sollte der Client die Protokollversion des Servers nicht unterstützen, so ist die Verbindung "
        "abubrechen.",
    ),
    Demand(
        "Chatnachricht_senden/whole",
        "server",
        "must",
        ("answers",),
        "8.3 Chat empfangen",
        "Schickt ein Client eine Chatnachricht, so wird diese vom Server verteilt.",
        answer=_OK,
        others_hear="Chatnachricht",
    ),
    Demand(
        " ".join(f"{name}/whole" for name in ("Spieler", "Spiel_starten", "Würfeln", "Zug_beenden", "Bauen")),
        "server",
        "must",
        ("answers",),
        _ANSWERS,
        _CONFIRMED,
        answer=_OK,
    ),
    # What may be left out; the server then names nobody.
    Demand(
        "*/Ziel/left-out */Straße_2/left-out",
        "server",
        "open",
        ("answers", "refuses"),
        "11.3 Räuber versetzen",
    ),
    Demand("Spieler/Name/left-out Spieler/Farbe/left-out", "server", "open", ("answers", "refuses"), None),
    # A server that reads it all the same has carried the action out; to be silent is wrong in either case.
    Demand("*/other-case", "server", "must", ("answers", "refuses"), _ANSWERS, _CONFIRMED, _ERROR),
    Demand(_NO_ACTION, "server", "should", ("refuses", "closes"), _ANSWERS, _MUST_REFUSE, _ERROR),
    Demand(
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
    """The message read and written again; what is no JSON stays."""

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
    """A letter as JSON escapes it: one of four bytes in two halves."""
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
    """Names and words without umlauts. Texts of players are changed, too: then it says something else."""
    return in_ascii(frame.decode(errors="surrogateescape")).encode(errors="surrogateescape")


SPELLINGS = (
    Spelling(
        "other-order",
        "with its attributes the other way round",
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
        "without the line feed behind it",
        lambda frame: frame.rstrip(b"\r\n"),
        "should",
        _HINTS,
        _WHOLE_OBJECT,
    ),
    Spelling("ascii", "with ae for ä, as some programs have it", _ascii),
)


def _game(at: Situation) -> Mapping[str, Any]:
    games = at.state["games"]
    found: Mapping[str, Any] = games[max(games, key=int)]
    return found


def _own(at: Situation, what: str) -> Mapping[str, int]:
    """How many of each our player has of `resources` or `cards`; raises NotHere if that is not known."""
    found = _game(at)["private"][at.player][what]
    if not all(isinstance(count, int) for count in found.values()):
        raise NotHere("it is not known what this player has")
    return dict(found)


def _number(at: Situation) -> int:
    return next(int(number) for number, about in _game(at)["players"].items() if about["name"] == at.player)


def _other_player(at: Situation, number: int) -> int:
    return next(int(other) for other in _game(at)["players"] if int(other) != number)


_CARD = {"Getreide": 1, "Wolle": 1, "Erz": 1}


def _unpaid(fields: Fields, at: Situation) -> Fields:
    own = _own(at, "resources")
    if all(own.get(kind, 0) >= count for kind, count in _CARD.items()):
        raise NotHere("this player can pay for a card")
    return {}


def _no_such_card(fields: Fields, at: Situation) -> Fields:
    if _own(at, "cards").get("Monopol", 0):
        raise NotHere("this player has such a card")
    return {"Rohstoff": "Holz"}


def _one_for_one(fields: Fields, at: Situation) -> Fields:
    offered = next(kind for kind, count in _own(at, "resources").items() if count)
    return {"Angebot": {offered: 1}, "Nachfrage": {"Erz" if offered != "Erz" else "Holz": 1}}


def _one_more(name: str) -> Callable[[Fields, Situation], Fields]:
    """One more of the first kind in a field, or of the total."""

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


BREACHES = (
    Breach("cannot-pay", "Zug beenden", "server", _unpaid, says="Entwicklungskarte kaufen"),
    Breach("card-not-allowed/asked", "Zug beenden", "server", _no_such_card, says="Monopol"),
    Breach("trade-rate/asked", "Zug beenden", "server", _one_for_one, says="Seehandel"),
    Breach(
        "bad-target/asked",
        "Räuber versetzen",
        "server",
        lambda fields, at: {**fields, "Ziel": _number(at)},
    ),
    Breach("wrong-count", "Karten abgeben", "server", _one_more("Abgeben")),
    Breach("out-of-turn/roll", "Würfelwurf", "client", _of_another("Spieler")),
    Breach("robber-stays", "Räuber versetzt", "client", _back_to_where_it_is),
    Breach("bad-target", "Räuber versetzt", "client", _of_another("Ziel")),
    Breach("longest-road", "Längste Handelsstraße", "client", _of_another("Spieler")),
    Breach("largest-army", "Größte Rittermacht", "client", _of_another("Spieler")),
    Breach("wrong-yield", "Ertrag", "client", _one_more("Rohstoffe")),
    Breach("wrong-cost", "Kosten", "client", _one_more("Rohstoffe")),
    Breach("total-mismatch", "Statusupdate", "client", _other_total),
)

_UNSENT = "it is broken by what is not sent, and no client can know that it was to come"

CONFORMANCE = Conformance(
    reactions=Reactions(
        DEMANDS,
        SPELLINGS,
        BREACHES,
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
            "out-of-turn/build": "what another player builds must stand beside their roads: another flaw",
            "road-through": "it needs a place on the board that is worked out from all that is built",
            "too-many-pieces": "it needs a player who has built all of one kind",
        },
        # 7.5: all are told that a connection is lost, whoever's turn it is.
        waits_for="Würfeln Zug_beenden Bauen Karten_abgeben Räuber_versetzen",
    ),
    player=CatanPlayer,
    host=CatanHost,
    seats=3,
)
