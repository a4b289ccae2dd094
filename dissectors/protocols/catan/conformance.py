"""Spellings of Catan for `kiebitz probe`, and ways to break its rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from kiebitz.dissectors.conformance.expectations import FieldChange, NotApplicable, RuleViolation, Situation
from kiebitz.dissectors.grammar.field_type import Fields
from kiebitz.dissectors.protocols.catan.game import CARD_COST
from kiebitz.dissectors.protocols.catan.grammar import OTHER_SPELLINGS


def _rewritten(frame: bytes, write: Callable[[Any], bytes]) -> bytes:
    """Decode a message and encode it again; what is no JSON stays."""
    try:
        return write(msgspec.json.decode(frame)) + b"\n"
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return frame


def in_reverse_order(frame: bytes) -> bytes:
    """Reverse the order of attributes."""
    return _rewritten(frame, lambda value: msgspec.json.encode(_reversed(value)))


def _reversed(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _reversed(part) for key, part in reversed(value.items())}
    return [_reversed(part) for part in value] if isinstance(value, list) else value


def with_blanks(frame: bytes) -> bytes:
    """Put blanks between the parts."""
    return _rewritten(frame, lambda value: _indented(value, 1).replace(b"\n", b" "))


def on_many_lines(frame: bytes) -> bytes:
    """Put each part on a line of its own."""
    return _rewritten(frame, lambda value: _indented(value, 2))


def _indented(value: Any, indent: int) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value), indent=indent)


def escaped(frame: bytes) -> bytes:
    """Escape letters outside ASCII."""
    return _rewritten(
        frame,
        lambda value: "".join(
            letter if letter.isascii() else _escape(letter) for letter in msgspec.json.encode(value).decode()
        ).encode(),
    )


def _escape(letter: str) -> str:
    """Return a letter as JSON escapes it: one of four bytes as two surrogates."""
    units = letter.encode("utf-16-be")
    return "".join(f"\\u{units[at] << 8 | units[at + 1]:04x}" for at in range(0, len(units), 2))


def without_line_feed(frame: bytes) -> bytes:
    """Remove the line end."""
    return frame.rstrip(b"\r\n")


def in_ascii(frame: bytes) -> bytes:
    """Replace umlauts in names and words.

    Texts of players are changed, too, so their content differs then.
    """
    return OTHER_SPELLINGS.plain(frame.decode(errors="surrogateescape")).encode(errors="surrogateescape")


def _own(at: Situation, what: str) -> Mapping[str, int]:
    """Return our player's `resources` or `cards` by kind. Raises NotApplicable if the numbers are unknown."""
    found = at.game["private"][at.player][what]
    if not all(isinstance(count, int) for count in found.values()):
        raise NotApplicable("this player's possessions are not known")
    return dict(found)


def _number(at: Situation) -> int:
    return next(int(number) for number, about in at.game["players"].items() if about["name"] == at.player)


def _other_player(at: Situation, number: int) -> int:
    return next(int(other) for other in at.game["players"] if int(other) != number)


def _unpaid(fields: Fields, at: Situation) -> Fields:
    own = _own(at, "resources")
    if all(own.get(kind, 0) >= count for kind, count in CARD_COST.items()):
        raise NotApplicable("this player can pay for a card")
    return {}


def _no_such_card(fields: Fields, at: Situation) -> Fields:
    if _own(at, "cards").get("Monopol", 0):
        raise NotApplicable("this player has such a card")
    return {"Rohstoff": "Holz"}


def _one_for_one(fields: Fields, at: Situation) -> Fields:
    offered = next(kind for kind, count in _own(at, "resources").items() if count)
    return {"Angebot": {offered: 1}, "Nachfrage": {"Erz" if offered != "Erz" else "Holz": 1}}


def _one_more(name: str) -> FieldChange:
    """Return a function that adds one to the first kind in a field, or to its total."""

    def fields_with(fields: Fields, at: Situation) -> Fields:
        counts = fields[name]
        if isinstance(counts, int):
            return {**fields, name: counts + 1}
        first = next(iter(counts), "Holz")
        return {**fields, name: {**counts, first: counts.get(first, 0) + 1}}

    return fields_with


def _of_another(name: str) -> FieldChange:
    return lambda fields, at: {**fields, name: _other_player(at, fields[name])}


def _back_to_where_it_is(fields: Fields, at: Situation) -> Fields:
    x, y = at.game["robber"]
    return {**fields, "Ort": {"x": x, "y": y}}


def _other_total(fields: Fields, at: Situation) -> Fields:
    player = fields["Spieler"]
    return {"Spieler": {**player, "Rohstoffe": _one_more("Rohstoffe")(player, at)["Rohstoffe"]}}


VIOLATIONS = (
    RuleViolation("cannot-pay", "Zug beenden", "server", _unpaid, sends="Entwicklungskarte kaufen"),
    RuleViolation("card-not-allowed/asked", "Zug beenden", "server", _no_such_card, sends="Monopol"),
    RuleViolation("trade-rate/asked", "Zug beenden", "server", _one_for_one, sends="Seehandel"),
    RuleViolation(
        "bad-target/asked", "Räuber versetzen", "server", lambda fields, at: {**fields, "Ziel": _number(at)}
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
