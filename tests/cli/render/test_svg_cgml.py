"""Drawings of a CGML server: hands of mariáš, groups, a login server, and whatever else may be told."""

from __future__ import annotations

from typing import Any

import pytest
from spoilt_states import HOSTILE_NAMES, spoilt
from strength import a_few, times
from svg_properties import SHAPES, check, drawings, texts
from terminal_scenes import event
from test_text_cgml import TRICK, played, playing

from kiebitz.cli.render.svg import draw
from kiebitz.cli.render.svg.svg_canvas import Drawing, Shape
from kiebitz.cli.render.text import Scene
from kiebitz.dissectors.model import Event
from kiebitz.dissectors.protocols.cgml.cards import PACK

HANDS = "cgml-hands.pcap.gz"


def drawing(state: dict[str, Any], shape: Shape = "wide", events: list[Event] | None = None) -> Drawing:
    made = draw("cgml", Scene(state, events or []), shape)
    check(made)
    return made


def line(made: Drawing, beginning: str) -> str:
    return next(words for words in made.words if words.startswith(beginning))


@pytest.mark.parametrize("shape", SHAPES)
def test_a_hand_under_way(shape: Shape) -> None:
    hands = {"2": {"hand": ["G0A", "R0Q", "B10"], "talon": ["A07", "B07"]}}
    state = playing(private=hands, tricks=[TRICK], hands={"1": 9, "2": 3, "3": 9}, flek="2", turn=3)
    made = drawing(state, shape)
    seen = texts(made)
    assert {"7, trumps zelené", "group 4 · hand 3", "eso", "červené", "9", "Adam", "Bára", "Cyril"} <= {*seen}
    assert "game: 7, trumps zelené, flek ×2" in made.words
    assert "talon: žaludy 7, kule 7" in made.words
    assert "declarer, 0 tricks, money -24, id 2" in line(made, "Bára")
    assert "holds zelené eso, červené svršek, kule 10" in line(made, "Bára")
    assert "to move, 1 trick" in line(made, "Cyril")
    assert "on the table červené eso, takes the trick" in line(made, "Cyril")
    assert "9 hidden cards" in line(made, "Adam")
    assert "bidding: 7 Bára, PASS Cyril, PASS Adam" in made.words


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    ("part", "events", "told"),
    [
        ({"contract": None, "declarer": None, "trump": None}, [], "no game yet"),
        ({"contract": "BIG", "trump": None}, [], "BIG, no trumps"),
        ({"contract": "27", "second": "R"}, [], "second červené"),
        ({"pause": {"player": 1, "message": "<tea>"}}, [], "pause of Adam"),
        ({}, [event(1, "cancelled", why="no more")], "cancelled: no more"),
        ({}, [event(1, "result", winners=[1], money={"1": 3, "2": -3})], "Adam won"),
        ({}, [event(1, "renonc", player=2, card="R07", should=["B0A"])], "Bára revokes"),
        ({"unknown": ["tricks"], "bidding": []}, [], "not known: tricks"),
        ({"laid": {"player": 2, "cards": ["G0A"]}}, [], "Bára lays down"),
    ],
)
def test_what_is_going_on(part: dict[str, Any], events: list[Event], told: str, shape: Shape) -> None:
    made = drawing(playing(**part), shape, events)
    assert told in " ".join(made.words)
    if not told.endswith("down"):
        assert any(text.startswith(told) for text in texts(made)), texts(made)


@pytest.mark.parametrize("shape", SHAPES)
def test_what_a_hand_cost_each(shape: Shape) -> None:
    made = drawing(playing(), shape, [event(1, "result", winners=[1, 3], money={"1": 3, "2": -6, "3": 3})])
    assert "this hand -6" in line(made, "Bára")


@pytest.mark.parametrize("shape", SHAPES)
def test_groups_and_a_login_server(shape: Shape) -> None:
    assert "mariáš: nobody is here yet" in texts(drawing({}, shape))
    state = playing()
    state["games"] = {}
    state["players"]["9"] = {"name": "Dana", "race": "bot"}
    seen = {*texts(drawing(state, shape))}
    assert {"group 4", "Adam", "money -24", "in no group", "Dana", "bot"} <= seen
    servers = {"servers": {"10.0.0.1:7003": {"numplayers": 3}}, "loads": {"10.0.0.2:4": 77}}
    made = drawing(servers, shape)
    assert "game servers: 10.0.0.1:7003 for 3 players" in " ".join(texts(made))
    assert "load of servers of bots: 10.0.0.2:4 77" in made.words


@pytest.mark.parametrize("shape", SHAPES)
def test_groups_for_which_there_is_no_room_are_told(shape: Shape) -> None:
    players = {str(number): {"name": f"p{number}"} for number in range(90)}
    groups = {str(number): {"players": [3 * number, 3 * number + 1, 3 * number + 2]} for number in range(29)}
    made = drawing({"players": players, "groups": groups}, shape)
    assert any(text.startswith("and ") and text.endswith(" more") for text in texts(made))


def test_every_card_looks_different() -> None:
    found = {tuple(drawing(playing(table=[played(2, card)])).fragments) for card in PACK}
    assert len(found) == len(PACK)


@pytest.mark.parametrize("shape", SHAPES)
def test_real_hands(shape: Shape) -> None:
    found: dict[str, str] = {}
    for made in drawings(HANDS, shape, every=times(3, 60)):
        check(made)
        found |= made.fragments
    assert 20 < len(found) < 1200


def test_a_players_drawing_has_no_other_hand() -> None:
    seen = 0
    for made in drawings(HANDS, "wide", "6533", every=times(10, 90)):
        check(made)
        others = [words for words in made.words if words.startswith("robot") and " holds " in words]
        assert not others
        seen += any(" holds " in words for words in made.words)
    assert seen


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("hostile", a_few(HOSTILE_NAMES, HOSTILE_NAMES[:5]))
def test_hostile_names(hostile: str, shape: Shape) -> None:
    state = playing(tricks=[TRICK], pause={"player": 2, "message": hostile})
    state["players"]["2"]["name"] = hostile
    state["servers"] = {hostile: {"numplayers": 3}}
    drawing(state, shape)
    drawing(state | {"games": {}}, shape)


@pytest.mark.parametrize("seed", range(times(400, 20)))
def test_spoilt_states(seed: int) -> None:
    hands = {str(player): {"hand": list(PACK[player : player + 10]), "talon": ["A07"]} for player in (1, 2)}
    whole = playing(private=hands, tricks=[TRICK], table=[played(1, "R07")], flek="1:8", second="B", turn=1)
    events = [event(1, "result", winners=[1], money={"1": 3}), event(2, "played", player=3)]
    bad = [event(each.id, each.kind, **spoilt(each.data, seed, 1)) for each in events[seed % 2 :]]
    for shape in SHAPES:
        drawing(spoilt(whole, seed), shape, bad)
