"""The view of a Mäxchen table: the dice, what was announced, what players do, what became of a round."""

from __future__ import annotations

from typing import Any

import pytest
from game_scenes import maexchen, story, view
from terminal_scenes import event

from kiebitz.dissectors.game.view import Dice, View
from kiebitz.dissectors.model import Event
from kiebitz.dissectors.protocols.maexchen.view import faces

BLUFF = {"turn": "bob", "announced": {"name": "anna", "dice": "6,5"}}


def seen(state: dict[str, Any], events: list[Event] | None = None) -> View:
    return view("maexchen", state, events)


@pytest.mark.parametrize(
    ("part", "dice"),
    [
        ({}, Dice()),
        ({"turn": "anna"}, Dice()),
        ({"turn": "anna", "rolling": "anna"}, Dice(roll="hidden")),
        ({"rolling": "anna", "private": {"anna": {"dice": "5,3"}}}, Dice((5, 3), "secret")),
        ({"announced": {"name": "anna", "dice": "6,1"}}, Dice(roll="hidden")),
        ({**BLUFF, "private": {"anna": {"dice": "2,1"}}}, Dice((2, 1), "secret")),
        ({**BLUFF, "seer": "bob", "actual": "4,4"}, Dice((4, 4), "open")),
    ],
)
def test_dice_are_hidden_known_or_open(part: dict[str, Any], dice: Dice) -> None:
    assert seen(maexchen("anna", "bob", **part)).dice == dice


@pytest.mark.parametrize(
    ("dice", "read"),
    [("2,1", (2, 1)), ("7,7", ("7", "7")), (" 3,-1", ("3", "-1")), ("", ()), ("1,2,3", ()), ("x" * 99, ())],
)
def test_dice_that_no_die_shows(dice: str, read: tuple[int | str, ...]) -> None:
    assert faces(dice) == read


def test_next_player_and_the_value_to_beat() -> None:
    state = maexchen("anna", "bob", **BLUFF)
    state["scores"] = {"anna": 1, "carl": 4, "gone": 2}
    state["players"] |= {"egon": {"spectator": True}, "carl": {}}
    made = seen(
        state, [event(1, "announced", name="bob", dice="6,1"), event(2, "announced", name="anna", dice="6,5")]
    )
    assert made.title == ("round 3",)
    assert story(made) == ["anna announced 6,5", "bob: roll, or see?"]
    anna, bob = made.seats
    assert (anna.state, anna.marks, bob.state, bob.marks[0].text) == ("", (), "turn", "to move")
    assert [figure.words for seat in made.seats for figure in seat.figures] == ["1 point", "? points"]
    assert [(call.name, call.words, call.dice) for call in made.calls] == [
        ("bob", "6,1", (6, 1)),
        ("anna", "6,5", (6, 5)),
    ]
    assert anna.says == made.calls[-1]
    assert [(group.title, group.members) for group in made.groups] == [
        ("not in this round", (("carl", "4"), ("gone", "2"))),
        ("watching", (("egon", ""),)),
    ]


def test_a_known_bluff_is_highlighted() -> None:
    made = seen(maexchen("anna", "bob", **BLUFF, private={"anna": {"dice": "4,2", "bluff": True}}))
    assert story(made)[1] == "a bluff: it is 4,2"
    assert [(call.verb, call.tone) for call in made.calls] == [("bluffs", "bad")]
    true = seen(maexchen("anna", "bob", **BLUFF, private={"anna": {"dice": "6,5", "bluff": False}}))
    assert (story(true)[1], true.calls[0].verb) == ("which is true", "says")
    assert not any("bluff" in line for line in story(seen(maexchen("anna", "bob", **BLUFF))))


def test_data_lost_in_a_gap_is_reported() -> None:
    state = maexchen("anna", "bob", rolling="anna", unknown=["announced", "players", "round"])
    del state["games"]["7"]["round"], state["games"]["7"]["players"]
    made = seen(state)
    assert (made.title, story(made)) == (("round ?",), ["anna rolls", "to beat: ?"])
    assert made.unknown == "not known: what to beat, who plays, which round"


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        ("CAUGHT_BLUFFING", "announced 6,5 and had 4,2"),
        ("SEE_FAILED", "wanted to see, and 6,5 was true"),
        ("DID_NOT_ANNOUNCE", "did not announce in time"),
        ("ANNOUNCED_LOSING_DICE", "announced 6,5, which does not beat 1,1"),
        ("saw that the announcement was true", "saw that the announcement was true"),
    ],
)
def test_loss_is_reported_in_words_and_stays_after_the_round(reason: str, told: str) -> None:
    events = [
        event(1, "announced", name="bob", dice="1,1"),
        event(2, "announced", name="anna", dice="6,5"),
        event(3, "actual_dice", dice="4,2"),
        event(4, "lost", names=["anna"], reason=reason),
    ]
    on = maexchen("anna", "bob", phase="lost", actual="4,2", lost={"names": ["anna"], "reason": reason})
    for state in (on, {"players": {"anna": {}, "bob": {}}, "scores": {"anna": 0, "bob": 1}}):
        made = seen(state, events)
        assert story(made) == ["anna lost", told]
        assert [(seat.name, seat.marks[0].text) for seat in made.seats if seat.state == "lost"] == [
            ("anna", "lost")
        ]
        assert made.dice == Dice((4, 2), "open")
        assert len(made.calls) == 2


def test_all_but_one_lose_against_maexchen() -> None:
    lost = {"names": ["anna", "bob", "dora"], "reason": "MIA"}
    state = maexchen("anna", "bob", "carl", "dora", phase="lost", lost=lost)
    assert story(seen(state, [event(1, "lost", **lost)]))[0] == "all but carl lost"


def test_before_and_between_rounds() -> None:
    state = maexchen(phase="starting", private={"anna": {"joined": True}})
    state["players"] = {"anna": {}, "bob": {}}
    del state["games"]["7"]["players"]
    made = seen(state, [event(1, "round_canceled", reason="NO_PLAYERS")])
    assert story(made) == ["who plays? 1 joined", "last: canceled", "nobody joined"]
    assert [(seat.state, len(seat.marks)) for seat in made.seats] == [("joined", 1), ("", 0)]
    assert story(seen({})) == ["no round yet"]
