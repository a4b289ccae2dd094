"""The picture of a table by `[board]`: tokens, grids, hands, dice, piles, scores and text."""

from __future__ import annotations

from typing import Any

import pytest
from file_conversations import dissector_of
from hypothesis import given
from hypothesis import strategies as st

from kiebitz.dissectors.game.view import Dice, Figure, Grid, Hand, Name, Pile, Scene, Span, Token, View
from kiebitz.dissectors.model import Event
from kiebitz.dissectors.protocol_file.dissector import FileDissector

HEAD = """
protocol = "test"
[messages]
SET = "s: a=text"
[events.set]
on = "SET"
turn = true
[events.set.put]
map = "a"
draw = "a"
discard = "a"
dice = "a"
round = "a"
"hands.{a}" = "a"
"energy.{a}" = "a"
"players.{a}.points" = "a"
"""
BOARD = (
    HEAD
    + """
[board]
title = "round {round}"
text = ["{turn} plays, {round} of 3"]
scores = "players.{player}.points"
unit = "points"
figures = { energy = "energy.{player}" }
hand = "hands.{player}"
dice = "dice"
piles = { "draw pile" = "draw", "discard" = "discard" }
"""
)


def view_of(text: str, state: dict[str, Any], game: int | None = None) -> View:
    dissector = dissector_of(text)
    events = [Event(1, 1, game, 1, 0, "set", None, {"a": ""}, [])] if game is not None else []
    view = dissector.presentation.view(Scene(state, events, ("alice", "bob")))
    assert view is not None
    return view


def test_everything_that_is_known() -> None:
    view = view_of(
        BOARD,
        {
            "players": {"alice": {"points": 1}, "bob": {}},
            "games": {
                "7": {
                    "turn": "bob",
                    "round": 2,
                    "dice": [6, "3"],
                    "draw": 12,
                    "discard": ["A", "B"],
                    "hands": {"alice": ["C", 1], "bob": 4},
                    "energy": {"alice": 3},
                }
            },
        },
    )
    alice, bob = view.seats
    assert view.title == ("round 2",)
    assert view.story == ((Name("bob"), " plays, ", Span("2"), " of 3"), (Name("bob"), " is to move"))
    assert (alice.name, alice.state, bob.name, bob.state) == ("alice", "", "bob", "turn")
    assert alice.figures == (Figure("1 point", "1"), Figure("energy 3", "3"))
    assert bob.figures == (Figure("? points", "?"), Figure("energy ?", "?"))
    assert (alice.hand, bob.hand) == (Hand((Token("C"), Token("1"))), Hand(hidden=4))
    assert view.dice == Dice((6, "3"), "open")
    assert view.piles == (Pile(("draw pile",), hidden=12), Pile(("discard",), (Token("A"), Token("B"))))


def test_piles_of_a_table_without_hands_are_in_its_story() -> None:
    view = view_of(
        HEAD + '[board]\npiles = { stones = "round", "discard" = "discard", "talon" = "draw" }\n',
        {"players": {"alice": {}}, "round": 12, "discard": ["A", "B"]},
    )
    discard = (Token("A"), Token("B"))
    assert view.story == (("stones", ": ", "12"), ("discard", ": ", discard), ("talon", ": ", "not known"))
    assert not view.piles


def test_what_is_not_known_is_shown_as_unknown() -> None:
    view = view_of(BOARD, {"players": {"alice": {}}})
    assert view.title == ()
    assert view.story == ((Span("?", "faint"), " plays, ", Span("?", "faint"), " of 3"),)
    assert (view.seats[0].figures, view.seats[0].hand) == ((), None)
    assert view.dice == Dice()
    assert [pile.words for pile in view.piles] == ["not known", "not known"]


def test_without_a_board_players_have_their_values() -> None:
    state = {
        "players": {"alice": {"points": 3, "colour": "red"}, "bob": {}},
        "private": {"alice": {"hand": ["A"]}},
        "round": 2,
        "turn": "alice",
    }
    view = view_of(HEAD, state)
    assert [(seat.name, seat.state) for seat in view.seats] == [("alice", "turn"), ("bob", "")]
    assert view.seats[0].figures == (Figure("points 3", "3"), Figure("colour red", "red"))
    assert view.seats[0].hand == Hand((Token("A"),))
    assert view.story == (("round 2",), (Name("alice"), " is to move"))
    assert view_of(HEAD, {}).idle == "nothing is known yet"
    assert dissector_of(HEAD).presentation.scores(state) == {"alice": 3}


def test_after_the_end_of_a_game_it_is_nobodys_turn() -> None:
    state = {"players": {"alice": {}}, "games": {"7": {"turn": "alice", "round": 2}}}
    for path, is_on in ((["games", "7", "round"], True), (["games", "7"], False)):
        event = Event(1, 1, 7, 1, 0, "set", None, {"a": ""}, [(path, None)])
        view = dissector_of(HEAD).presentation.view(Scene(state, [event], ("alice",)))
        assert view is not None
        assert (view.seats[0].state == "turn") == is_on


def test_the_game_of_the_latest_event_is_shown() -> None:
    state = {"games": {"2": {"round": 2}, "3": {"round": 3}, "x": {}}}
    assert view_of(BOARD, state).title == ("round 3",)
    assert view_of(BOARD, state, 2).title == ("round 2",)


def rows(grid: Grid | None) -> list[str]:
    assert grid is not None
    return ["".join(token.words if token is not None else "." for token in row) for row in grid.rows]


@pytest.mark.parametrize(
    ("grid", "cells", "shown"),
    [
        ('cells = "map"', [["a", ""], ["", "b"]], ["a.", ".b"]),
        ('cells = "map"\ncolumns = true', [["a", "c"], ["", "b"]], ["a.", "cb"]),
        ('cells = "map"\nwidth = 2', ["a", "", "b"], ["a.", "b."]),
        ('cells = "map"', ["a", "", "b", "c"], ["a.", "bc"]),
        ('cells = "map"', {"0,0": "a", "2,1": "b", "x": "c"}, ["a..", "..b"]),
        ('cells = "map"\nfirst = 1', {"1,1": "a", "0,0": "b"}, ["a"]),
        ('cells = "map"\nwidth = 3\nheight = 2', {"1,0": "a"}, [".a.", "..."]),
        ('cells = "map"\nruns = true', [["2", "a"], ["b", 1, "c"], ["3"]], ["..a", "b.c", "..."]),
        ('cells = "map"\nruns = true\nwidth = 2', ["1", "a", "2", "b"], [".a", "..", "b."]),
        ('cells = "map"\nwidth = 3', {"0": "a", "4": "b", "x": "c"}, ["a..", ".b."]),
        (
            'cells = "map"\nwidth = 2\nheight = 2\nfirst = 1',
            {"1": "a", "4": "b", "0": "c", "9": "d"},
            ["a.", ".b"],
        ),
        ('cells = "map"\nwidth = 2\nheight = 1', None, [".."]),
        ('cells = "map"\ncell = "kind"', [[{"kind": "a"}, {"kind": None}]], ["a."]),
        ('cells = "map"\ncell = "0.kind"', [[[{"kind": "a"}], []]], ["a."]),
        (
            'cells = "map"\ncell = "kind"\nsymbols = { empty = "", wall = "#" }',
            [[[{"kind": "wall"}, {"kind": "empty"}], [{"kind": "empty"}]]],
            ["#."],
        ),
        ('cells = "map"\ntokens = "energy"', [["a", ""], ["", ""]], ["a.", "A."]),
        ('tokens = "energy"\nwidth = 2\nheight = 2\nsymbols = { alice = "@" }', None, ["..", "@."]),
        ('tokens = "energy"\nwidth = 2\nheight = 2\nx = "y"\ny = "x"', None, [".A", ".."]),
        # The size is in the state.
        ('cells = "map"\nwidth = "round"\nheight = 2', {"0,0": "a"}, ["a..", "..."]),
        ('cells = "map"\nwidth = "dice"\nheight = "round"', {"0,0": "a"}, ["a", ".", "."]),
        ('cells = "map"\nwidth = "round"', ["a", "b", "c", "d"], ["abc", "d.."]),
    ],
)
def test_grids(grid: str, cells: Any, shown: list[str]) -> None:
    state: dict[str, Any] = {"energy": {"alice": {"x": 0, "y": "1"}, "bob": {"x": 9, "y": 9}, "eve": 1}}
    state |= {"round": 3, "dice": -1}
    if cells is not None:
        state["map"] = cells
    assert rows(view_of(f"{HEAD}[board.grid]\n{grid}\n", state).grid) == shown


ROWS = ["abc", "def", "g.h"]
BEFORE = ["abc", "de.", "gfh"]


@pytest.mark.parametrize(
    ("cells", "changes", "fresh"),
    [
        ({"0,0": "a", "1,0": "b", "2,2": "c"}, [[(["map", "1,0"], "b")]], (0, 1)),
        # The turn after a move changes nothing on the board.
        ({"0,0": "a", "1,0": "b"}, [[(["map", "1,0"], "b")], [(["turn"], "bob")]], (0, 1)),
        ({"0,0": "a"}, [[(["map", "1,1"], None)], [], [], [(["turn"], "bob")]], None),
        # A server that sends all cells each time.
        ([*map(list, ROWS)], [[(["map"], [*map(list, BEFORE)])], [(["map"], [*map(list, ROWS)])]], (2, 1)),
        ([*map(list, ROWS)], [[(["map"], [*map(list, ROWS)])]], None),
    ],
)
def test_the_last_move_is_marked(cells: Any, changes: list[Any], fresh: tuple[int, int] | None) -> None:
    events = [Event(n, 1, None, n, 0, "set", None, {}, change) for n, change in enumerate(changes, 1)]
    view = dissector_of(f'{HEAD}[board.grid]\ncells = "map"\n').presentation.view(
        Scene({"map": cells, "turn": "bob"}, events)
    )
    assert view is not None
    assert view.grid is not None
    assert view.grid.fresh == fresh


def test_a_grid_that_is_not_known() -> None:
    view = view_of(f'{HEAD}[board.grid]\ncells = "map"\n', {"players": {"alice": {}}})
    assert (view.grid, view.unknown) == (None, "the board is not known")


def test_tokens_of_players_with_one_initial_have_numbers() -> None:
    grid = f'{HEAD}[board.grid]\ntokens = "energy"\nwidth = 2\nheight = 1\n'
    state = {"energy": {"anna": {"x": 0, "y": 0}, "alf": {"x": 1, "y": 0}}}
    assert view_of(grid, state).grid == Grid(((Token("A1", "anna"), Token("A2", "alf")),))


def test_seats_have_signs_that_are_not_names() -> None:
    grid = f'{HEAD}[board.grid]\ncells = "map"\nsymbols = {{ bob = "X" }}\n'
    view = view_of(grid, {"players": {"alice": {}, "bob": {}}, "map": [["alice", "bob"]]})
    assert [seat.marks for seat in view.seats] == [(), (Span("X"),)]


def test_lines_between_cells() -> None:
    grid = f'{HEAD}[board.grid]\nwidth = 2\nheight = 1\nedges = {{ above = "hands", left = "dice" }}\n'
    state = {
        "players": {"alice": {}},
        "hands": {"0,0": "alice", "1,1": True, "1,0": False, "2,0": 1, "0,2": 1, "x": 1},
        "dice": {"2,0": "bob", "0,0": "", "3,0": 1, "0,1": 1},
    }
    found = view_of(grid, state).grid
    assert found is not None
    assert [(edge.x, edge.y, edge.side, edge.owner) for edge in found.edges] == [
        (0, 0, "above", "alice"),
        (1, 1, "above", ""),
        (2, 0, "left", ""),
    ]


@pytest.mark.parametrize(
    ("hands", "boards"),
    [
        ({"bob": {"1,0": "x"}, "eve": {}}, [("bob", [".x"]), ("eve", [".."])]),
        # Of no board anything is known.
        ({}, [("ann", [".."]), ("bob", [".."]), ("eve", [".."])]),
    ],
)
def test_a_board_for_each_player(hands: Any, boards: list[tuple[str, list[str]]]) -> None:
    file = dissector_of(f'{HEAD}[board.grid]\ncells = "hands.{{player}}"\nwidth = 2\nheight = 1\n')
    state = {"players": {"ann": {}, "bob": {}, "eve": {}}, "hands": hands}
    change = Event(1, 1, None, 1, 0, "set", None, {}, [(["hands", "bob", "1,0"], "x")])
    view = file.presentation.view(Scene(state, [change]))
    assert view is not None
    assert view.grid is not None
    assert [(each.owner, rows(each)) for each in view.grid.all_boards] == boards
    assert [each.fresh for each in view.grid.all_boards if each.fresh] == ([(0, 1)] if hands else [])


def test_hexagons() -> None:
    assert view_of(f'{HEAD}[board.grid]\nwidth = 2\nheight = 1\nshape = "hex"\n', {}).grid == Grid(
        ((None, None),), is_hex=True
    )


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 10**6)
    | st.text(max_size=3)
    | st.sampled_from(["alice", "1,1"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["alice", "x", "y", "0,0", "7", "kind"]), inner, max_size=3)
    ),
    max_leaves=10,
)
KEYS = ["players", "private", "games", "turn", "map", "hands", "energy", "dice", "draw", "round"]
FILES: list[FileDissector] = [
    dissector_of(HEAD),
    dissector_of(BOARD + '[board.grid]\ncells = "map"\ncell = "kind"\ntokens = "energy"\n'),
    dissector_of(BOARD + '[board.grid]\ncells = "map"\ncolumns = true\nwidth = 3\n'),
    dissector_of(BOARD + '[board.grid]\ncells = "map"\nwidth = "round"\nheight = "dice"\nshape = "hex"\n'),
    dissector_of(
        BOARD + '[board.grid]\nwidth = "round"\nheight = 9\nedges = { above = "map", left = "dice" }\n'
    ),
]


@given(st.sampled_from(FILES), st.dictionaries(st.sampled_from(KEYS), JSON))
def test_no_state_raises(dissector: FileDissector, state: dict[str, Any]) -> None:
    assert dissector.presentation.view(Scene(state)) is not None
    dissector.presentation.scores(state)
