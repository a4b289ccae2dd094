"""The view of an Okey table: racks and stacks, what is going on, lobbies."""

from __future__ import annotations

from typing import Any

import pytest
from game_scenes import DECK, NAMES, okey, said, story, view
from terminal_scenes import event

from kiebitz.dissectors.game.view import View
from kiebitz.dissectors.model import Event


def seen(state: dict[str, Any], events: list[Event] | None = None) -> View:
    return view("okey", state, events)


@pytest.mark.parametrize(
    ("part", "events", "told"),
    [
        ({}, [], ["Bert", "is to draw a tile"]),
        ({"seats": {"1": {"name": "Bert", "tiles": 15}}}, [], ["Bert", "is to put a tile"]),
        ({"seats": {"1": {"name": "Bert"}}}, [], ["Bert", "is to move"]),
        ({"seats": {}}, [], ["seat 1", "is to move"]),
        ({"turn": None, "seats": {"3": {"name": "Dora", "tiles": 15}}}, [], ["Dora", "is to put a tile"]),
        ({"turn": None}, [], ["whose turn?"]),
        ({}, [event(1, "put", seat=1, tile="0:RED", valid=True)], ["Bert", "has put joker"]),
        ({}, [event(1, "put", seat=1, tile="10:BLACK", valid=True)], ["Bert", "has put black 10"]),
        ({}, [event(1, "put", seat=1, tile=None, valid=True)], ["Bert", "has put ?"]),
        ({}, [event(1, "put", seat=1, tile="1:RED", valid=False)], ["Bert", "is to draw a tile"]),
        ({"winner": "Carl"}, [], ["Carl", "has won"]),
        ({"drawn_game": True}, [], ["nobody has won", "the main stack is empty"]),
    ],
)
def test_story(part: dict[str, Any], events: list[Event], told: list[str]) -> None:
    made = seen(okey(**part), events)
    assert story(made) == told
    assert [seat.name for seat in made.seats if seat.state == "turn"] == (
        told[:1] if "is to" in told[-1] else []
    )


def test_racks_with_their_gaps_and_stacks() -> None:
    made = seen(okey(private={"Carl": {"deck": DECK, "drawn": "4:YELLOW"}}))
    # The first rack that is known is at the bottom.
    assert [seat.name for seat in made.seats] == ["Carl", "Dora", "Anna", "Bert"]
    hand = made.seats[0].hand
    assert hand is not None
    assert [piece and piece.words for piece in hand.pieces[:5]] == [
        "red 1",
        None,
        "blue 13",
        "joker",
        "yellow 4",
    ]
    assert (len(hand.pieces), hand.drawn) == (24, 4)
    assert [seat.hand.hidden for seat in made.seats if seat.hand] == [0, 14, 14, 14]
    stacks = [(said(seat.pile.label), seat.pile.words) for seat in made.seats if seat.pile]
    assert stacks == [
        ("for Carl", "empty"),
        ("for Dora", "joker"),
        ("for Anna", "red 1"),
        ("for Bert", "blue 12"),
    ]
    assert made.piles[0].words == "some are left"
    assert seen(okey(drawn_game=True)).piles[0].words == "empty"


def test_a_put_tile_is_marked_once_it_lies_there() -> None:
    for tile, fresh in (("12:BLUE", ["Bert"]), ("1:BLACK", [])):
        made = seen(okey(), [event(1, "put", seat=0, tile=tile, valid=True)])
        assert [seat.name for seat in made.seats if seat.pile and seat.pile.fresh] == fresh


def test_game_of_the_latest_event_is_drawn_and_the_others_are_named() -> None:
    state = okey()
    state["games"]["12"] = {"lobby": -3, "seats": {"0": {"name": "Emil", "tiles": 15}}}
    state["players"] |= {"Emil": {"lobby": -3}, "Fritz": {}}
    newest = seen(state)
    assert newest.title == ("lobby -3",)
    assert [said(item) for fact in newest.facts for item in fact.items] == ["lobby 5"]
    followed = seen(state, [event(1, "status"), Event(2, 1, None, 2, 2, "chat", None, {}, [])])
    assert followed.title == ("lobby 5",)
    assert followed.groups[0].members == (("Emil", "lobby -3"), ("Fritz", ""))


def test_lobbies() -> None:
    lobbies = {"10": {"players": [None] * 4}, "-2": {"players": ["Anna", "Bert", None], "ready": ["Bert"]}}
    made = seen({"players": {"Anna": {"lobby": -2}, "Emil": {}}, "lobbies": lobbies})
    assert [(group.title, group.members) for group in made.groups] == [
        ("lobby -2, 2 of 4", (("Anna", ""), ("Bert", "ready"))),
        ("lobby 10, 0 of 4", ()),
        ("in no lobby", (("Emil", ""),)),
    ]
    assert (made.idle, seen({}).idle) == ("no game yet", "nobody is here")


def test_nothing_known() -> None:
    made = seen({"games": {"7": {"seats": {}}}})
    assert (made.title, made.unknown) == (("lobby ?",), "not known: names, exchange stacks")
    assert [seat.name for seat in made.seats] == [f"seat {number}" for number in range(4)]
    assert {figure.words for seat in made.seats for figure in seat.figures} == {"? tiles"}
    assert not any(seat.pile.is_known for seat in made.seats if seat.pile)
    assert [seat.name for seat in seen(okey()).seats] == NAMES
