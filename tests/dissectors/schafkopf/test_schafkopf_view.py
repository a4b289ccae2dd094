"""The view of a Schafkopf table: marks, hands, what is going on, who is there."""

from __future__ import annotations

from typing import Any

import pytest
from game_scenes import ON_TABLE, SCHAFKOPF_TRICK, SEATS, said, schafkopf, story, view
from terminal_scenes import event

from kiebitz.dissectors.game.view import Seat, View
from kiebitz.dissectors.model import Event
from kiebitz.dissectors.protocols.schafkopf.cards import MODI, mode_words
from kiebitz.dissectors.protocols.schafkopf.view import cards_left, seat_to_move, sorted_hand


def seen(state: dict[str, Any], events: list[Event] | None = None) -> View:
    return view("schafkopf", state, events)


def seat(made: View, name: str) -> Seat:
    return next(each for each in made.seats if each.name == name)


def marks(made: View, name: str) -> list[str]:
    return [mark.text for mark in seat(made, name).marks]


def test_a_trick_that_is_over() -> None:
    made = seen(schafkopf(table=ON_TABLE, trick=1, tricks=[SCHAFKOPF_TRICK], points={"[BOT]-1": 17}))
    assert made.title == ("round 3", "stock 40")
    assert story(made) == ["trick 1: 17 points", "for [BOT]-1"]
    assert [each.lies.words for each in made.seats if each.lies] == [
        "Herz König",
        "Herz Sau",
        "Herz 9",
        "Eichel Unter",
    ]
    assert [each.name for each in made.seats if each.takes] == ["[BOT]-1"]
    assert [figure.words for figure in seat(made, "[BOT]-1").figures] == ["17 points"]
    assert [figure.words for figure in seat(made, "Bert").figures] == ["account -74335", "? points"]
    (fact,) = made.facts
    assert said(fact.title) == "trick 1: 17 points for [BOT]-1"
    assert [said(item) for item in fact.items] == ["Herz Sau, Herz 9, Eichel Unter, Herz König"]


def test_partner_is_marked_as_soon_as_known() -> None:
    assert seen(schafkopf()).unknown == "partner not known yet"
    secret = seen(schafkopf(private={"[BOT]-1": {"partner": True}}))
    assert (marks(secret, "[BOT]-1"), secret.unknown) == (["secret partner"], "")
    known = seen(schafkopf(partner="[BOT]-1", unknown=[], private={"[BOT]-1": {"partner": True}}))
    assert (marks(known, "[BOT]-1"), known.unknown) == (["partner"], "")


def test_bids_and_knocks() -> None:
    bids = {"Anna": {"bid": "NICHTS"}, "Bert": {"bid": "SOLOherzDU"}}
    bidding = {"phase": "bidding", "best_bid": "SOLOherzDU", "knocks": ["Anna"], "turn": "[BOT]-0"}
    made = seen(schafkopf(private=bids, mode=None, player=None, **bidding))
    assert marks(made, "Anna") == ["passes", "knocked"]
    assert marks(made, "Bert") == ["bids Solo Herz du"]
    assert story(made) == ["bidding", "best bid:", "Solo Herz du"]
    assert [each.name for each in made.seats if each.state == "turn"] == ["[BOT]-0"]
    assert (made.unknown, made.contract) == ("", None)


def test_three_cards_come_first_and_the_others_later() -> None:
    private = {"Anna": {"hand": ["HERZ SAU", "GRAS OBER", "EICHEL NEUN"]}}
    for phase, hidden in (("dealing", 0), ("bidding", 3)):
        hand = seat(seen(schafkopf(phase=phase, private=private)), "Anna").hand
        assert hand is not None
        words = [piece.words for piece in hand.pieces if piece]
        assert (words, hidden) == (["Gras Ober", "Herz Sau", "Eichel 9"], hand.hidden)


def test_no_player_is_to_move_between_a_card_and_the_next_turn() -> None:
    def to_move(**part: Any) -> int | None:
        return seat_to_move({"phase": "playing", **part}, SEATS)

    assert to_move(turn="Anna") == 0
    assert to_move(turn="Anna", trick=1, table={"0": "HERZ SAU"}) is None
    assert to_move(turn="Bert", trick=1, table={"0": "HERZ SAU"}) == 1
    assert to_move(turn="Anna", trick=1, table=ON_TABLE, tricks=[SCHAFKOPF_TRICK]) is None
    assert to_move(turn="[BOT]-1", trick=1, table=ON_TABLE, tricks=[SCHAFKOPF_TRICK]) == 3
    # The server lets a player lead that has not taken the trick.
    assert to_move(turn="Bert", trick=1, table=ON_TABLE, tricks=[SCHAFKOPF_TRICK]) == 1
    assert to_move(phase="over", turn="Anna") is None
    assert to_move(turn="nobody here") is None


def test_cards_left_are_those_not_played() -> None:
    def left(**part: Any) -> list[int | None]:
        return [cards_left({"phase": "playing", "mode": "WENZ", **part}, seat) for seat in range(4)]

    points, over = {"Anna": 0}, [SCHAFKOPF_TRICK]
    assert left() == [6, 6, 6, 6]
    assert left(trick=1, table={"1": "HERZ SAU"}) == [6, 5, 6, 6]
    assert left(trick=1, table=ON_TABLE, tricks=over, points=points) == [5, 5, 5, 5]
    assert left(trick=2, table={"3": "GRAS SAU"}, tricks=over, points=points) == [5, 5, 5, 4]
    # What came before these tricks was not seen.
    assert left(trick=1, table=ON_TABLE, tricks=over) == [None] * 4


@pytest.mark.parametrize(
    ("events", "told"),
    [
        ([event(1, "round_ended", reason="not played")], "not played"),
        ([event(1, "round_ended", reason="played")], "the round is over"),
        ([event(1, "round_ended", reason="played"), event(2, "won", names=["Bert"])], "Bert won"),
        ([event(2, "lost", names=["Bert", "Anna"])], "Bert and Anna lost"),
        ([], "the round is over"),
    ],
)
def test_end_of_a_round(events: list[Event], told: str) -> None:
    assert story(seen(schafkopf(phase="over"), events)) == [told]


def test_players_that_left_or_sit_out() -> None:
    state = schafkopf()
    state["players"] |= {"Bert": {}, "Emil": {"here": True}, "Früher": {}}
    made = seen(state)
    assert marks(made, "Bert") == ["has left", "plays"]
    assert [(group.title, group.members) for group in made.groups] == [
        ("not in this round", (("Emil", ""),)),
        ("left", (("Früher", ""),)),
    ]
    assert seen({}).idle == "no round yet"
    waiting = seen({"players": {"Anna": {"here": True}, "Bert": {}}, "accounts": {"Anna": 990}})
    assert [group.members for group in waiting.groups] == [(("Anna", "account 990"),), (("Bert", ""),)]


def test_players_keep_their_places_while_the_seats_move_on() -> None:
    for step in range(4):
        made = seen(schafkopf(seats=SEATS[step:] + SEATS[:step]))
        assert [each.name for each in made.seats] == SEATS


def test_every_mode_has_words_and_the_sign_of_its_suit() -> None:
    words = [mode_words(name) for name in ("SAUSPIELgras", "SOLOherzDU", "WENZdu", "SI", "NICHTS")]
    assert words == ["Sauspiel Gras", "Solo Herz du", "Wenz du", "Si", "Nichts"]
    for name in MODI:
        contract = seen(schafkopf(mode=name)).contract
        assert contract is not None
        assert [said(part) for part in contract.parts] == [mode_words(name)]
        suits = ("eichel", "gras", "herz", "schellen")
        assert (contract.suit is not None) == any(suit in name for suit in suits)


def test_hand_is_sorted_by_the_mode() -> None:
    hand = ["HERZ NEUN", "GRAS SAU", "EICHEL UNTER", "HERZ OBER", "GRAS ZEHN"]
    assert sorted_hand(hand, None)[:3] == ["HERZ OBER", "EICHEL UNTER", "HERZ NEUN"]
    assert sorted_hand(hand, "SOLOgras")[2:] == ["GRAS SAU", "GRAS ZEHN", "HERZ NEUN"]
    assert sorted_hand(hand, "WENZ")[0] == "EICHEL UNTER"


def test_beginning_that_was_not_seen() -> None:
    beginning = {"phase": "dealing", "round": 1, "unknown": ["names", "player", "partner"]}
    made = seen({"games": {"7": {**beginning, "table": {"2": "HERZ SAU"}, "trick": 1, "turn": "seat 3"}}})
    assert made.unknown == "not known: names, mode, player"
    assert [each.name for each in made.seats if each.state == "turn"] == ["seat 3"]
    assert all(each.hand is not None and each.hand.hidden is None for each in made.seats)
    over = {**SCHAFKOPF_TRICK, "leader": None, "winner": None}
    made = seen({"games": {"7": {**beginning, "table": ON_TABLE, "tricks": [over], "trick": 1}}})
    assert said(made.facts[0].title) == "trick 1: 17 points for ?"
