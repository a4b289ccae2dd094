"""Drawings of a Mäxchen table: any number of players, dice known or hidden, what became of a round."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strength import times
from svg_properties import SHAPES, check, drawings, texts
from terminal_scenes import event

from kiebitz.cli.render.svg import draw
from kiebitz.cli.render.svg.maexchen_table import faces, thrown
from kiebitz.cli.render.svg.svg_canvas import Drawing, Shape
from kiebitz.cli.render.text import Scene
from kiebitz.dissectors.model import Event

GAME = "maexchen-head-port4711.pcap"
EACH = pytest.mark.parametrize("shape", SHAPES)


def drawing(state: dict[str, Any], shape: Shape = "wide", events: list[Event] | None = None) -> Drawing:
    drawn = draw("maexchen", Scene(state, events or [], sorted(state.get("players", {}))), shape)
    check(drawn)
    return drawn


def table(*names: str, **part: Any) -> dict[str, Any]:
    """A round of these players that is on."""
    return {
        "players": {name: {"spectator": False} for name in names},
        "games": {"7": {"phase": "started", "round": 3, "players": [*names], **part}},
    }


def marked(drawn: Drawing, colour: str, name: str) -> bool:
    """Whether the plate of a player has an edge of this colour."""
    return any(
        f"k-s-{colour}" in markup and f">{name}</text>" in markup for markup in drawn.fragments.values()
    )


def cups(drawn: Drawing) -> list[str]:
    """What is said of the cup and the dice: the fragments of all that can lie there."""
    return [markup for markup in drawn.fragments.values() if 'd="M-66,14' in markup]


def pips(markup: str) -> int:
    return markup.count("<circle")


# The dice.


@EACH
@pytest.mark.parametrize(
    ("part", "shown", "said"),
    [
        ({}, 0, ""),
        ({"turn": "anna"}, 0, ""),
        ({"turn": "anna", "rolling": "anna"}, 0, "the dice are under the cup"),
        ({"rolling": "anna", "private": {"anna": {"dice": "5,3"}}}, 8, "under the cup: 5,3"),
        ({"announced": {"name": "anna", "dice": "6,1"}}, 0, "the dice are under the cup"),
        (
            {"announced": {"name": "anna", "dice": "6,1"}, "private": {"anna": {"dice": "2,1"}}},
            3,
            "under the cup: 2,1",
        ),
        ({"announced": {"name": "anna", "dice": "6,1"}, "seer": "bob", "actual": "4,4"}, 8, ""),
    ],
)
def test_dice_are_hidden_known_or_open(part: dict[str, Any], shown: int, said: str, shape: Shape) -> None:
    seen = drawing(table("anna", "bob", **part), shape)
    (cup,) = cups(seen)
    assert pips(cup) == shown
    assert (">?</text>" in cup) == (said == "the dice are under the cup")
    assert not said or said in seen.words


def test_dice_of_each_roll_can_be_told_apart() -> None:
    rolls = [f"{high},{low}" for high in range(1, 7) for low in range(1, high + 1)]
    assert len({thrown(dice, roll, 1.0).name for dice in rolls for roll in ("open", "secret")}) == 42
    for dice in rolls:
        assert pips(thrown(dice, "open", 1.0).markup) == sum(map(int, dice.split(",")))


@pytest.mark.parametrize(
    ("dice", "read"),
    [
        ("2,1", [2, 1]),
        ("7,7", ["7", "7"]),
        (" 3,-1", ["3", "-1"]),
        ("", []),
        ("1", []),
        ("1,2,3", []),
        ("x" * 99, []),
    ],
)
def test_dice_that_no_die_shows(dice: str, read: list[int | str]) -> None:
    assert faces(dice) == read
    drawing(table("anna", actual=dice, announced={"name": "anna", "dice": dice}))


def test_a_player_sees_no_dice_of_others() -> None:
    for seen in drawings(GAME, "wide", "kaos", every=times(1, 7)):
        if any(line.startswith("under the cup: ") for line in seen.words):
            (own,) = [line for line in seen.words if line.startswith("kaos: ")]
            assert own.split(", ")[-1].split()[0] in ("rolls", "says", "bluffs", "wants", "lost")


# What is going on.


@EACH
def test_who_is_to_move_and_what_is_to_be_beaten(shape: Shape) -> None:
    state = table("anna", "bob", turn="bob", announced={"name": "anna", "dice": "6,2"})
    state["scores"] = {"anna": 1, "bob": 12, "carl": 3}
    state["players"]["dora"] = {"spectator": True}
    events = [event(1, "announced", name="bob", dice="6,1"), event(2, "announced", name="anna", dice="6,2")]
    seen = drawing(state, shape, events)
    assert {"round 3", "anna announced 6,2", "bob: roll, or see?", "1 point", "12 points"} <= {*texts(seen)}
    assert {"says 6,2", "to move", "6,1", "6,2"} <= {*texts(seen)}
    assert {"not in this round: carl 3", "watching: dora"} <= {*texts(seen), *seen.words}
    assert {"anna: 1 point, says 6,2", "bob: 12 points, to move"} <= {*seen.words}
    assert marked(seen, "turn", "bob")
    plates = [
        markup for markup in seen.fragments.values() if ">bob</text>" in markup and 'class="k-turn"' in markup
    ]
    assert len(plates) == 1


@EACH
def test_a_bluff_stands_out(shape: Shape) -> None:
    announced = {"name": "anna", "dice": "2,1"}
    part = {"turn": "bob", "announced": announced, "private": {"anna": {"dice": "3,1", "bluff": True}}}
    seen = drawing(table("anna", "bob", **part), shape)
    assert {"a bluff: it is 3,1", "bluffs Mäxchen", "Mäxchen"} <= {*texts(seen)}
    told = drawing(table("anna", "bob", **part | {"private": {}}), shape)
    assert "says Mäxchen" in texts(told)
    assert not any("bluff" in text for text in texts(told))


@EACH
def test_what_became_of_a_round_stays(shape: Shape) -> None:
    events = [
        event(1, "round_started", round=3, players=["anna", "bob"]),
        event(2, "announced", name="anna", dice="6,5"),
        event(3, "actual_dice", dice="4,1"),
        event(4, "lost", names=["anna"], reason="CAUGHT_BLUFFING"),
    ]
    on = table(
        "anna", "bob", phase="lost", actual="4,1", lost={"names": ["anna"], "reason": "CAUGHT_BLUFFING"}
    )
    over = {"players": on["players"], "scores": {"anna": 0, "bob": 1}}
    for state in (on, over):
        seen = drawing(state, shape, events)
        assert {"anna lost", "announced 6,5 and had 4,1", "CAUGHT_BLUFFING", "6,5"} <= {*texts(seen)}
        (cup,) = cups(seen)
        assert pips(cup) == 5
        assert marked(seen, "alarm", "anna")
        assert not marked(seen, "alarm", "bob")
    canceled = [event(1, "round_canceled", reason="NO_PLAYERS")]
    assert {"canceled", "nobody joined"} <= {*texts(drawing({}, shape, canceled))}
    assert "no round yet" in texts(drawing({}, shape))


def test_who_joins_is_ticked() -> None:
    state = table("anna", "bob", phase="starting", private={"anna": {"joined": True}})
    del state["games"]["7"]["players"]
    seen = drawing(state)
    assert "anna: joins" in seen.words
    assert "who plays? 1 joined" in texts(seen)


@EACH
def test_points_and_doings_have_room_beside_each_other(shape: Shape) -> None:
    names = [f"p{number}" for number in range(8)]
    state = table(*names, turn="p1", seer="p1", announced={"name": "p0", "dice": "2,1"})
    state["scores"] = dict.fromkeys(names, 1000)
    state["games"]["7"]["private"] = {"p0": {"dice": "3,1", "bluff": True}}
    seen = texts(drawing(state, shape))
    assert {"bluffs Mäxchen", "wants to see", "1000 points"} <= {*seen}
    assert not any("…" in words for words in seen)


# Whoever plays.


@EACH
@pytest.mark.parametrize("count", [0, 1, 2, 3, 8, 9, 14, 15, 40, 41, 52, 500])
def test_any_number_of_players(count: int, shape: Shape) -> None:
    names = [f"p{number:0>19}" for number in range(count)]
    state = table(*names, turn=names[0] if names else "")
    state["scores"] = dict.fromkeys(names, 12)
    seen = drawing(state, shape)
    shown = count if count <= 40 else 39
    # A name of twenty letters is never cut.
    assert {*names[:shown]} <= {*texts(seen)}
    assert texts(seen).count("12") + texts(seen).count("12 points") == shown
    if count > 40:
        assert f"and {count - 39} more players" in texts(seen)
        assert f"and {count - 39} more players" in seen.words
    all_joined = {"phase": "starting", "private": {name: {"joined": True} for name in names}}
    drawing(table(*names, **all_joined), shape)
    drawing(table(*names, phase="lost", lost={"names": names[1:], "reason": "MIA"}), shape)


@EACH
@pytest.mark.parametrize(
    "hostile", ["W" * 500, "", "<b>&\"'", "a\x1b[2J\n", "\u202eb", "🎲" * 9, "e\u0301" * 300, "\ud800"]
)
def test_no_name_harms(hostile: str, shape: Shape) -> None:
    part = {
        "turn": hostile,
        "announced": {"name": hostile, "dice": hostile},
        "round": hostile,
        "seer": hostile,
    }
    state = table(hostile, "bob", **part)
    state["scores"] = {hostile: 1, f"{hostile}x": 2}
    state["players"][f"{hostile}y"] = {"spectator": True}
    drawing(state, shape, [event(1, "announced", name=hostile, dice=hostile)])
    drawing(table(hostile, *"abcdefghijklmnopq"), shape)
    lost = {"names": [hostile] * 9, "reason": hostile}
    drawing(table(hostile, "bob", phase="lost", lost=lost), shape, [event(1, "lost", **lost)])


_NAMES = st.sampled_from(["anna", "", "x" * 500, "日本" * 9, "<&>"])
_DICE = st.sampled_from(["6,2", "2,1", "", "7,7", "1", "x" * 99])
_PART = st.fixed_dictionaries(
    {},
    optional={
        "phase": st.sampled_from(["starting", "started", "lost", "canceled", "?"]),
        "round": st.integers(-1, 10**12),
        "players": st.lists(_NAMES, max_size=60),
        "turn": _NAMES,
        "rolling": _NAMES,
        "seer": _NAMES,
        "actual": _DICE,
        "announced": st.fixed_dictionaries({"name": _NAMES, "dice": _DICE}),
        "private": st.dictionaries(
            _NAMES,
            st.fixed_dictionaries(
                {}, optional={"dice": _DICE, "joined": st.booleans(), "bluff": st.booleans()}
            ),
        ),
        "lost": st.fixed_dictionaries({}, optional={"names": st.lists(_NAMES), "reason": _NAMES}),
        "unknown": st.lists(st.sampled_from(["players", "announced", "round"])),
        "inferred": st.lists(st.just("turn")),
    },
)


@settings(deadline=None, max_examples=times(100))
@given(
    st.dictionaries(_NAMES, st.fixed_dictionaries({}, optional={"spectator": st.booleans()})),
    st.dictionaries(_NAMES, st.integers(-(10**12), 10**12)),
    _PART,
    st.sampled_from(SHAPES),
)
def test_any_state_is_drawn_inside_of_its_sheet(
    players: dict[str, Any], scores: dict[str, int], part: dict[str, Any], shape: Shape
) -> None:
    drawing({"players": players, "scores": scores, "games": {"7": part} if part else {}}, shape)


# A whole session.


@EACH
@pytest.mark.parametrize("player", [None, "kaos"])
def test_a_recorded_session_fits_and_has_few_fragments(shape: Shape, player: str | None) -> None:
    fragments: dict[str, str] = {}
    seen = 0
    for drawn in drawings(GAME, shape, player, times(1, 13)):
        check(drawn)
        fragments |= drawn.fragments
        seen += 1
    assert seen > 30
    assert len(fragments) < 500
    assert sum(map(len, fragments.values())) < 200_000


@pytest.mark.parametrize("capture", ["maexchen-head-odd.pcap", "maexchen-fork-pybots.pcap.gz"])
def test_odd_sessions(capture: str) -> None:
    for shape in SHAPES:
        for drawn in drawings(capture, shape, every=times(3, 97)):
            check(drawn)
