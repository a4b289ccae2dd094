"""Drawings of a Schafkopf table: what a state shows, real rounds, and whatever else may stand in a state."""

from __future__ import annotations

from typing import Any

import pytest
from spoilt_states import HOSTILE_NAMES, spoilt
from strength import a_few, times
from svg_properties import SHAPES, check, drawings, texts
from terminal_scenes import event
from test_text_schafkopf import ON_TABLE, SEATS, TRICK, playing

from kiebitz.cli.render.svg import draw
from kiebitz.cli.render.svg.svg_canvas import Drawing, Shape
from kiebitz.cli.render.text import Scene
from kiebitz.dissectors.model import Event
from kiebitz.dissectors.protocols.schafkopf.cards import PACK

HUMANS = "schafkopf-1.3-2humans.pcap"


def drawing(state: dict[str, Any], shape: Shape = "wide", events: list[Event] | None = None) -> Drawing:
    players = state.get("players")
    names = [name for name in players if isinstance(name, str)] if isinstance(players, dict) else []
    made = draw("schafkopf", Scene(state, events or [], names), shape)
    check(made)
    return made


def line(made: Drawing, beginning: str) -> str:
    return next(words for words in made.words if words.startswith(beginning))


@pytest.mark.parametrize("shape", SHAPES)
def test_a_round_under_way(shape: Shape) -> None:
    hand = {"Anna": {"hand": ["HERZ SAU", "GRAS OBER"]}}
    state = playing(
        table=ON_TABLE, trick=1, tricks=[TRICK], points={"[BOT]-1": 17}, private=hand, knocks=["[BOT]-0"]
    )
    made = drawing(state, shape)
    seen = texts(made)
    assert {"Sauspiel Gras", "round 3 · stock 40", "Sau", "Herz", "Eichel", "Unter", *SEATS} <= {*seen}
    assert "holds Gras Ober, Herz Sau, 3 hidden cards" in line(made, "Anna")
    assert "17 points, on the table Eichel Unter, takes the trick" in line(made, "[BOT]-1")
    assert "knocked" in line(made, "[BOT]-0")
    assert "plays" in line(made, "Bert")
    assert "account -74335" in line(made, "Bert")
    assert "trick 1: 17 points" in seen
    assert "partner not known yet" in seen or shape == "tall"


@pytest.mark.parametrize("shape", SHAPES)
def test_what_was_bid_and_who_is_to_move(shape: Shape) -> None:
    part = {"phase": "bidding", "best_bid": "SOLOherzDU", "private": {"Bert": {"bid": "SOLOherzDU"}}}
    state = playing(**part, turn="[BOT]-0")
    del state["games"]["7"]["mode"], state["games"]["7"]["player"]
    made = drawing(state, shape)
    assert {"best bid:", "Solo Herz du", "bids Solo Herz du"} <= {*texts(made)}
    assert "to move" in line(made, "[BOT]-0")
    # An arrow, and no colour alone.
    arrows = [name for name, markup in made.fragments.items() if "[BOT]-0" in markup and "<polygon" in markup]
    assert len(arrows) == 1


@pytest.mark.parametrize("shape", SHAPES)
def test_end_of_a_round(shape: Shape) -> None:
    made = drawing(playing(phase="over"), shape, [event(1, "lost", names=["Bert", "Anna"])])
    assert "Bert and Anna lost" in texts(made)


@pytest.mark.parametrize("shape", SHAPES)
def test_nobody_plays(shape: Shape) -> None:
    assert "no round yet" in texts(drawing({}, shape))
    state = {"players": {"Anna": {"here": True}, "Bert": {}}, "accounts": {"Anna": 990}}
    made = drawing(state, shape)
    assert {"here", "left", "Anna", "Bert", "account 990"} <= {*texts(made)}
    assert "left: Bert" in made.words


def test_every_card_has_a_fragment_of_its_own_by_its_form_and_words() -> None:
    found = set()
    for card in PACK:
        made = drawing(playing(table={"0": card}, trick=1))
        value, suit = card.split()[1], card.split()[0].capitalize()
        assert suit in texts(made), (suit, value)
        found.add(tuple(made.fragments))
    assert len(found) == len(PACK)


def test_players_keep_their_places_while_the_seats_move_on() -> None:
    def place(seats: list[str]) -> tuple[float, float]:
        made = drawing(playing(seats=seats))
        return next((piece.x, piece.y) for piece in made.pieces if ">Anna<" in made.fragments[piece.name])

    assert place(SEATS) == place(SEATS[1:] + SEATS[:1])


@pytest.mark.parametrize("shape", SHAPES)
def test_real_rounds(shape: Shape) -> None:
    found: dict[str, str] = {}
    for made in drawings(HUMANS, shape, every=times(1, 23)):
        check(made)
        found |= made.fragments
    assert 20 < len(found) < 400


def test_a_players_drawing_has_no_other_hand() -> None:
    for made in drawings(HUMANS, "wide", "Bärbel", every=times(3, 60)):
        check(made)
        assert "holds" not in next((words for words in made.words if words.startswith("Jürgen")), "")


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("hostile", a_few(HOSTILE_NAMES, HOSTILE_NAMES[:5]))
def test_hostile_names(hostile: str, shape: Shape) -> None:
    seats = [hostile, "a", "b" * 20, "c"]
    state = playing(seats=seats, player=hostile, turn=hostile, kontra=[hostile], knocks=seats)
    state["players"] = {hostile: {"here": True}}
    drawing(state, shape)
    drawing({"players": {hostile: {"here": True}}, "accounts": {hostile: 10**14}}, shape)


@pytest.mark.parametrize("seed", range(times(400, 20)))
def test_spoilt_states(seed: int) -> None:
    whole = playing(
        table=ON_TABLE,
        trick=1,
        tricks=[TRICK],
        points={"[BOT]-1": 17},
        private={"Anna": {"hand": [*PACK][:5]}},
        turn="Anna",
    )
    events = [event(1, "won", names=["Bert"]), event(2, "played", seat=3)]
    bad = [event(each.id, each.kind, **spoilt(each.data, seed, 1)) for each in events]
    for shape in SHAPES:
        drawing(spoilt(whole, seed), shape, bad)


def test_too_many_cards_are_told() -> None:
    for shape in SHAPES:
        made = drawing(playing(private={name: {"hand": ["HERZ SAU"] * 30} for name in SEATS}), shape)
        assert all("more cards" in line(made, name) for name in SEATS)
