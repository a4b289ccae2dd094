"""Spellings of CGML for `kiebitz probe`, and ways to break the rules of its game."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kiebitz.dissectors.conformance.expectations import FieldChange, NotApplicable, RuleViolation, Situation
from kiebitz.dissectors.grammar.field_type import Fields
from kiebitz.dissectors.protocols.cgml.cards import (
    HAND,
    LADDER,
    PACK,
    WITH_A_SEVEN,
    WITH_TWO_SEVENS,
    Rules,
    has_trumps,
)

_BETWEEN_TAGS = re.compile(rb">[ \t\r\n]+<")
_ATTRIBUTE = re.compile(rb'="([^"\']*)"')


def _around(frame: bytes, change: Callable[[bytes], bytes]) -> bytes:
    """Change the element, but not the bytes that end the message."""
    body = frame.rstrip(b"\r\n")
    return change(body) + frame[len(body) :]


def on_one_line(frame: bytes) -> bytes:
    """Remove the line feeds within the element."""
    return _around(frame, lambda body: _BETWEEN_TAGS.sub(b"><", body))


def with_single_quotes(frame: bytes) -> bytes:
    """Put attributes in single quotes."""
    return _ATTRIBUTE.sub(rb"='\1'", frame)


def with_comment(frame: bytes) -> bytes:
    """Add a comment within the element."""
    return _around(frame, lambda body: body.replace(b">", b"><!-- Kiebitz -->", 1))


def with_declaration(frame: bytes) -> bytes:
    """Put an XML declaration before the element."""
    return b'<?xml version="1.0"?>' + frame


def with_empty_tag(frame: bytes) -> bytes:
    """Write an empty element as one tag."""
    return frame.replace(b"<card></card>", b"<card/>")


def _number(at: Situation) -> str:
    players: Mapping[str, Any] = at.state["players"]
    return next(number for number, about in players.items() if about["name"] == at.player)


def _held(at: Situation) -> list[str]:
    held = at.game["private"][_number(at)]["hand"]
    if not held:
        raise NotApplicable("this player's hand is not known")
    return list(held)


def _not_held(at: Situation) -> str:
    return next(card for card in PACK if card not in _held(at))


def _to(fields: Fields, place: str) -> None:
    if fields["to"] != place:
        raise NotApplicable(f"these cards do not go to the {place}")


def _played(fields: Fields, cards: Sequence[str]) -> Fields:
    return {**fields, "card": [*cards]}


def _one_to_the_talon(fields: Fields, at: Situation) -> Fields:
    _to(fields, "talon")
    return _played(fields, fields["card"][:1])


def _others_to_the_talon(fields: Fields, at: Situation) -> Fields:
    _to(fields, "talon")
    return _played(fields, [_not_held(at), *fields["card"][1:]])


def _other_card(fields: Fields, at: Situation) -> Fields:
    _to(fields, "desk")
    return _played(fields, [_not_held(at)])


def _two_cards(fields: Fields, at: Situation) -> Fields:
    _to(fields, "desk")
    held = _held(at)
    if len(held) < 3:
        raise NotApplicable("this player has no third card")
    return _played(fields, held[:2])


def _renonc(fields: Fields, at: Situation) -> Fields:
    _to(fields, "desk")
    hand = at.game
    rules = Rules(hand["contract"], hand.get("trump"))
    allowed = rules.allowed([each["card"] for each in hand.get("table", ())], _held(at))
    forbidden = [card for card in _held(at) if card not in allowed]
    if not forbidden:
        raise NotApplicable("this player may play each of their cards")
    return _played(fields, forbidden[:1])


def _answer(*, was: Sequence[str], then: str) -> FieldChange:
    """Return a function that changes a bid to one of another kind than asked for."""

    def fields_with(fields: Fields, at: Situation) -> Fields:
        if fields["licite"] not in was:
            raise NotApplicable("another kind of answer was asked for here")
        return {**fields, "licite": then}

    return fields_with


def _lower_bid(fields: Fields, at: Situation) -> Fields:
    bids = [LADDER.index(each["call"]) for each in at.game["bidding"] if each["call"] != "PASS"]
    if fields["licite"] not in LADDER or max(bids) < 1:
        raise NotApplicable("there is no bid yet that could be undercut")
    return {**fields, "licite": LADDER[max(bids)]}


def _without_trumps(fields: Fields, at: Situation) -> Fields:
    if "trumf" not in fields or not has_trumps(fields["licite"]):
        raise NotApplicable("this answer names no trumps")
    return {name: value for name, value in fields.items() if name != "trumf"}


def _with_trumps(fields: Fields, at: Situation) -> Fields:
    if has_trumps(fields["licite"]):
        raise NotApplicable("this game has trumps")
    return {**fields, "trumf": "r"}


def _colours(*, second: bool) -> FieldChange:
    """Return a function that adds a second colour of trumps where there is none, or removes one."""

    def fields_with(fields: Fields, at: Situation) -> Fields:
        if (fields["licite"] in WITH_TWO_SEVENS) == second:
            raise NotApplicable("this game has another number of colours")
        first = fields["trumf"][0]
        return {**fields, "trumf": f"{first}:{'b' if first != 'b' else 'r'}" if second else first}

    return fields_with


def _game_against(fields: Fields, at: Situation) -> Fields:
    if at.game["contract"] in WITH_A_SEVEN:
        raise NotApplicable("this game has a seven")
    return {**fields, "flek": "1:1"}


def _other_word(name: str, *words: str) -> FieldChange:
    return lambda fields, at: {**fields, name: next(word for word in words if word != fields[name])}


def _of_another(name: str) -> FieldChange:
    """Return a function that changes a field to another player's number."""
    return lambda fields, at: {
        **fields,
        name: next(int(each) for each in at.state["players"] if int(each) != fields[name]),
    }


def _fewer_cards(*, of: str) -> FieldChange:
    def fields_with(fields: Fields, at: Situation) -> Fields:
        if fields["from"] != of:
            raise NotApplicable(f"these cards do not come from the {of}")
        return _played(fields, fields["card"][:-1])

    return fields_with


def _more_cards(fields: Fields, at: Situation) -> Fields:
    more = [card for card in PACK if card not in fields["card"]]
    return _played(fields, [*fields["card"], *more][: HAND + 2])


def _other_trick(fields: Fields, at: Situation) -> Fields:
    other = next(card for card in PACK if card not in fields["card"])
    return _played(fields, [other, *fields["card"][1:]])


def _other_number(fields: Fields, at: Situation) -> Fields:
    return {**fields, "number": fields["number"] % HAND + 1}


def _outcome(
    change: Callable[[list[Any], list[Any]], tuple[list[Any], list[Any]]],
) -> FieldChange:
    """Return a function that changes the winners and losers of a result."""

    def fields_with(fields: Fields, at: Situation) -> Fields:
        won, lost = change([*fields["winer"]], [*fields["loser"]])
        return {**fields, "winer": won, "loser": lost}

    return fields_with


def _richer(won: list[Any], lost: list[Any]) -> tuple[list[Any], list[Any]]:
    first, *others = won
    money = first["money"]
    return [{**first, "money": {**money, "money": money["money"] + 1}}, *others], lost


def _won_and_lost(won: list[Any], lost: list[Any]) -> tuple[list[Any], list[Any]]:
    return won, [{**lost[0], "playerid": won[0]["playerid"]}, *lost[1:]]


def _changed_side(won: list[Any], lost: list[Any]) -> tuple[list[Any], list[Any]]:
    """Move one of the two players who are on the same side, with the money."""
    many, one = (won, lost) if len(won) > len(lost) else (lost, won)
    mover, stays = many
    both = one[0]["money"]["money"] // 2
    sides = [{**each, "money": {**one[0]["money"], "money": both}} for each in (one[0], mover)]
    rest = [{**stays, "money": {**stays["money"], "money": 2 * both}}]
    return (rest, sides) if many is won else (sides, rest)


VIOLATIONS = (
    RuleViolation("wrong-answer/bid", "licite", "server", _answer(was=("YES", "NO"), then="B127")),
    RuleViolation("wrong-answer/no-bid", "licite", "server", _answer(was=LADDER, then="YES")),
    RuleViolation("bid-not-higher", "licite", "server", _lower_bid),
    RuleViolation("wrong-count/discards", "playcard", "server", _one_to_the_talon),
    RuleViolation("not-in-hand/discarded", "playcard", "server", _others_to_the_talon),
    RuleViolation("no-trumps", "gametype", "server", _without_trumps),
    RuleViolation("needless-trumps", "gametype", "server", _with_trumps),
    RuleViolation("second-colour/lacking", "gametype", "server", _colours(second=False)),
    RuleViolation("second-colour/needless", "gametype", "server", _colours(second=True)),
    RuleViolation("flek-lowered", "flek", "server", lambda fields, at: {**fields, "flek": "0"}),
    RuleViolation("flek-against", "flek", "server", _game_against),
    RuleViolation("not-in-hand/played", "playcard", "server", _other_card),
    RuleViolation("not-all-cards", "playcard", "server", _two_cards),
    RuleViolation("renonc", "playcard", "server", _renonc),
    RuleViolation("wrong-count/more", "dial.cards", "client", _more_cards),
    RuleViolation("wrong-count/fewer", "dial.cards", "client", _fewer_cards(of="desk")),
    RuleViolation("wrong-count/talon", "dial.cards", "client", _fewer_cards(of="talon")),
    RuleViolation("told-otherwise/bid", "licite.info", "client", _other_word("licite", "B127", "127")),
    RuleViolation("not-bid", "licite.result", "client", _other_word("licite", "B127", "127")),
    RuleViolation("told-otherwise/trumps", "gametype.info", "client", _other_word("trumf", "r", "g")),
    RuleViolation("told-otherwise/level", "gametype.info", "client", _other_word("flek", "64", "32")),
    RuleViolation("told-otherwise/trick", "round", "client", _other_trick),
    RuleViolation("wrong-number", "round", "client", _other_number),
    RuleViolation("wrong-winner", "round", "client", _of_another("playerid")),
    RuleViolation(
        "twice-in-result/player", "result", "client", _outcome(lambda won, lost: (won, [lost[0], lost[0]]))
    ),
    RuleViolation("twice-in-result", "result", "client", _outcome(_won_and_lost)),
    RuleViolation("money", "result", "client", _outcome(_richer)),
    RuleViolation("wrong-party", "result", "client", _outcome(_changed_side)),
    RuleViolation("told-otherwise/result", "result", "client", _other_word("licite", "B127", "127")),
)
