"""Spellings of Schafkopf for `kiebitz probe`, and ways to break its rules."""

from __future__ import annotations

from collections.abc import Sequence

from kiebitz.dissectors.conformance.expectations import FieldChange, NotApplicable, RuleViolation, Situation
from kiebitz.dissectors.grammar.field_type import Fields
from kiebitz.dissectors.protocols.schafkopf.cards import HAND, PACK, SEATS, mode
from kiebitz.dissectors.protocols.schafkopf.grammar import EMPTY, LOST, TWICE_ENCODED


def in_windows_1252(frame: bytes) -> bytes:
    """Write each § in Windows-1252."""
    return frame.replace(EMPTY.encode(), b"\xa7")


def twice_encoded(frame: bytes) -> bytes:
    """Encode each § twice."""
    return frame.replace(EMPTY.encode(), TWICE_ENCODED.encode())


def with_surplus(frame: bytes) -> bytes:
    """Add a line at the end."""
    return frame.replace(b"!END", b"Kiebitz\n!END")


# Messages of a client. Its MODEL shows the cards after its move.


def _seat(at: Situation) -> int:
    seats: list[str | None] = at.game["seats"]
    return seats.index(at.player)


def _held(fields: Fields) -> list[str]:
    return [card for card in fields["spielerhand"] if card is not None]


def _seen(fields: Fields) -> set[str]:
    cards = (*fields["spielerhand"], *fields["tisch"], *fields["letzter_stich"])
    return {card for card in cards if card is not None}


def _unseen(fields: Fields) -> str:
    """Return a card that the message does not show."""
    return min(PACK - _seen(fields))


def _with_hand(fields: Fields, cards: Sequence[str]) -> Fields:
    return {**fields, "spielerhand": [*cards, *[None] * (HAND - len(cards))][:HAND]}


def _with_own_card(fields: Fields, at: Situation, card: str | None) -> Fields:
    table = [*fields["tisch"]]
    table[_seat(at)] = card
    return {**fields, "tisch": table}


def _with_unseen(fields: Fields, seat: int | None, why_not: str) -> Fields:
    """Put a card that the message does not show before a seat. Raises NotApplicable without a seat."""
    if seat is None:
        raise NotApplicable(why_not)
    table = [*fields["tisch"]]
    table[seat] = _unseen(fields)
    return {**fields, "tisch": table}


def _laid(fields: Fields, at: Situation) -> str:
    card = fields["tisch"][_seat(at)]
    if card is None:
        raise NotApplicable("no card of this player lies on the table")
    return str(card)


def _no_card(fields: Fields, at: Situation) -> Fields:
    laid = _laid(fields, at)
    return _with_own_card(_with_hand(fields, [*_held(fields), laid]), at, None)


def _card_of_none(fields: Fields, at: Situation) -> Fields:
    _laid(fields, at)
    return _with_own_card(fields, at, _unseen(fields))


def _other_hand(fields: Fields, at: Situation) -> Fields:
    _, *rest = _held(fields)
    return _with_hand(fields, [_unseen(fields), *rest])


def _other_table(fields: Fields, at: Situation) -> Fields:
    seat = next(
        (seat for seat, card in enumerate(fields["tisch"]) if card is not None and seat != _seat(at)), None
    )
    return _with_unseen(fields, seat, "no other card lies on the table")


def _card_for_another(fields: Fields, at: Situation) -> Fields:
    seat = next((seat for seat, card in enumerate(fields["tisch"]) if card is None), None)
    return _with_unseen(fields, seat, "all have played")


def _not_followed(fields: Fields, at: Situation) -> Fields:
    laid, table = _laid(fields, at), at.game.get("table") or {}
    led = next(iter(table.values()), None)
    if led is None:
        raise NotApplicable("this player leads the trick")
    hand = [laid, *_held(fields)]
    allowed = mode(at.game["mode"]).must_follow(led, hand)
    free = [card for card in hand if card not in allowed]
    if not allowed or not free:
        raise NotApplicable("whatever this player lays is allowed")
    left = [card for card in hand if card != free[0]]
    return _with_own_card(_with_hand(fields, left), at, free[0])


def _given(fields: Fields, at: Situation) -> Fields:
    return {"karte": min(PACK - {*at.game["private"][at.player]["hand"]})}


# Messages of a server.


def _card_twice(fields: Fields, at: Situation) -> Fields:
    first, _, *rest = _held(fields)
    return _with_hand(fields, [first, first, *rest])


def _played_again(fields: Fields, at: Situation) -> Fields:
    _, *rest = _held(fields)
    played = next((card for card in fields["letzter_stich"] if card is not None), None)
    if played is None:
        raise NotApplicable("no trick has been played")
    return _with_hand(fields, [played, *rest])


def _others_card(fields: Fields, at: Situation) -> Fields:
    others = (own for name, own in at.game["private"].items() if name != at.player)
    card = next(card for own in others for card in own["hand"])
    _, *rest = _held(fields)
    return _with_hand(fields, [card, *rest])


def _gone(fields: Fields, at: Situation) -> Fields:
    return _with_hand(fields, _held(fields)[1:])


def _other_card_shown(fields: Fields, at: Situation) -> Fields:
    shown = at.game.get("table") or {}
    seat = next((int(seat) for seat, card in shown.items() if card == fields["tisch"][int(seat)]), None)
    return _with_unseen(fields, seat, "no card on the table was shown before")


def _other_leader(fields: Fields, at: Situation) -> Fields:
    if not at.game.get("tricks") or len(at.game.get("table") or {}) % SEATS:
        raise NotApplicable("no trick has just been taken")
    return {"dran": (fields["dran"] + 1) % SEATS}


def _next_seat(name: str) -> FieldChange:
    """Return a function that changes a field to another seat; a lost game stays marked as lost."""

    def fields_with(fields: Fields, at: Situation) -> Fields:
        lost = LOST if fields[name] >= LOST else 0
        return {**fields, name: lost + (fields[name] - lost + 1) % SEATS}

    return fields_with


def _other_way(fields: Fields, at: Situation) -> Fields:
    return {
        name: seat if seat == SEATS else seat - LOST if seat >= LOST else seat + LOST
        for name, seat in fields.items()
    }


def _other_answers(name: str) -> FieldChange:
    return lambda fields, at: {name: ["NEIN" if each == "JA" else "JA" for each in fields[name]]}


VIOLATIONS = (
    RuleViolation(
        "wrong-answer", "ERSTE3", "server", lambda fields, at: {"kontra": fields["klopft"]}, sends="KONTRA"
    ),
    RuleViolation("no-si", "SPIELSTDU", "server", lambda fields, at: {"modus": "SI"}),
    RuleViolation("not-in-hand/given", "KARTE", "server", _given),
    RuleViolation("no-card", "MODEL", "server", _no_card),
    RuleViolation("not-in-hand", "MODEL", "server", _card_of_none),
    RuleViolation("hand-changed", "MODEL", "server", _other_hand),
    RuleViolation("table-changed", "MODEL", "server", _other_table),
    RuleViolation("table-changed/seat", "MODEL", "server", _card_for_another),
    RuleViolation("suit-not-followed", "MODEL", "server", _not_followed),
    RuleViolation("card-twice", "MODEL", "client", _card_twice),
    RuleViolation("card-twice/played", "MODEL", "client", _played_again),
    RuleViolation("card-twice/hands", "MODEL", "client", _others_card),
    RuleViolation("hand-changed/new", "MODEL", "client", _other_hand),
    RuleViolation("hand-changed/gone", "MODEL", "client", _gone),
    RuleViolation("contradiction", "MODEL", "client", _other_card_shown),
    RuleViolation("table-changed/seat", "MODEL", "client", _card_for_another),
    RuleViolation("wrong-player/bid", "SPIELT", "client", _next_seat("spieler")),
    RuleViolation("told-otherwise/answer", "KONTRA", "client", _other_answers("kontra")),
    RuleViolation("trick-winner", "DRAN", "client", _other_leader),
    RuleViolation(
        "same-seat-twice", "SIEGER", "client", lambda fields, at: {**fields, "mitspieler": fields["spieler"]}
    ),
    RuleViolation("wrong-player", "SIEGER", "client", _next_seat("spieler")),
    RuleViolation("wrong-partner", "SIEGER", "client", _next_seat("mitspieler")),
    RuleViolation("wrong-winner", "SIEGER", "client", _other_way),
)
