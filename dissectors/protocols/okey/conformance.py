"""Spellings of Okey for `kiebitz probe`, and ways to break its rules."""

from __future__ import annotations

from kiebitz.dissectors.conformance.expectations import NotApplicable, RuleViolation, Situation
from kiebitz.dissectors.grammar.field_type import Fields
from kiebitz.dissectors.model import DIRECTIONS
from kiebitz.dissectors.protocols.okey.grammar import CODEC, WORDS
from kiebitz.dissectors.protocols.okey.tiles import COLOURS, HIGHEST, is_joker, tiles


def with_debug_message(frame: bytes) -> bytes:
    """Add a debug message."""
    body = frame.rstrip(b"\r\n")
    return body + b" Kiebitz" + frame[len(body) :]


def in_percent(frame: bytes) -> bytes:
    """Pad quoted arguments with %."""
    for direction in DIRECTIONS:
        decoded = CODEC.decode(frame, direction)
        if decoded.row is not None and decoded.valid:
            return CODEC.encode_padded(decoded.row.name, direction, decoded.fields, WORDS.pads[-1])
    return frame


def quoted(frame: bytes) -> bytes:
    """Put the first argument in quotation marks where it needs none."""
    name, blank, rest = frame.partition(b" ")
    first, _, others = rest.partition(b" ")
    if not blank or first[:1] == b'"' or first.endswith(b"\n"):
        return frame
    return b'%b "%b " %b' % (name, first, others)


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


VIOLATIONS = (
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
