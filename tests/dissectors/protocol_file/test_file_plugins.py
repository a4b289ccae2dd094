"""The plug-ins of the documents and protocol files that describe the same have the same findings.

What a file does not say the same way:

- An event's data has the fields of its message: `joined` and `left` name the player as their actor, with the
  key `who` instead of `name`. During a game they belong to it.
- TOML has no null, so that an empty square is an empty text. Whose turn it is next is derived from `waiting`.
- After a gap, the plug-in marks its game as unknown, and the file's is empty.
- `WILLKOMMEN` and `WELCOME` without a request are events of a client that has joined before.
- Texts, clauses and expectations of malformed messages are those of the common codec; see also `DIFFERENT`.
"""

from __future__ import annotations

from typing import Any

import pytest
from file_conversations import Conversation, dissector_named
from hypothesis import given
from hypothesis import strategies as st
from kiebitz_knobeln.dissector import KNOBELN
from kiebitz_noughts.dissector import NOUGHTS
from message_cases import Case, cases

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.game.state import State, apply
from kiebitz.dissectors.model import Findings

FILES = {"noughts": dissector_named("noughts"), "knobeln": dissector_named("knobeln")}
PLUGINS: dict[str, Dissector] = {"noughts": NOUGHTS, "knobeln": KNOBELN}
CASES = {
    "noughts": cases(NOUGHTS),
    "knobeln": cases(KNOBELN),
}
DIFFERENT = {b"HALLO  alice": "several blanks are one"}
"""Malformed messages of which files and plug-ins find something else."""
OPENING = [
    *("a> HELLO alice", "a< WELCOME", "b> HELLO bob", "b< WELCOME"),
    *("a< START alice bob", "b< START alice bob"),
]
MOVES = [f"*< MARK {name} {square}" for name in ("alice", "bob") for square in (1, 5)]
OTHERS = ["*< WON alice", "*< DRAW", "*< START bob alice", "a> PUT 5", "a< REFUSED turn", "a> BYE", "a. "]


def findings(name: str, lines: list[str]) -> tuple[Findings, Findings]:
    """Return the findings of the plug-in and of the file."""
    end, port = {"noughts": ("\r\n", 3333), "knobeln": ("", 5000)}[name]
    plugin, file = (Conversation(each[name], end, port).send(*lines).found() for each in (PLUGINS, FILES))
    return plugin, file


def messages(found: Findings) -> list[Any]:
    return [(each.name, each.fields, each.event_id, each.offset, each.length) for each in found.messages]


def diagnostics(found: Findings) -> list[Any]:
    return [
        (each.code, each.severity, each.group, each.blame, each.offset, each.length)
        + ((each.text, each.clause, each.expected) if each.group == "rule" else ())
        for each in found.diagnostics
    ]


def events(dissector: Dissector, found: Findings) -> list[Any]:
    """Return events with the state after each."""
    state: State = {}
    told = []
    for event in found.events:
        apply(state, event.changes)
        sentence = dissector.presentation.describe(event)
        of_message = () if event.kind in ("joined", "left") else (event.data, event.game_id)
        told.append((event.kind, event.actor, of_message, sentence, plain(state)))
    return told


def plain(state: State) -> Any:
    """Return a copy of a state without what only one of the two has."""
    games = {}
    for number, game in state.get("games", {}).items():
        squares = [name or None for name in game.get("squares", ())]
        games[number] = {"turn": game.get("turn"), "squares": squares}
    return {"players": {**state.get("players", {})}, "rolls": {**state.get("rolls", {})}, "games": games}


def same(name: str, lines: list[str]) -> None:
    plugin, file = findings(name, lines)
    assert messages(file) == messages(plugin)
    assert events(FILES[name], file) == events(PLUGINS[name], plugin)
    assert diagnostics(file) == diagnostics(plugin)
    assert [(game.label, game.started_ns, game.ended_ns, game.result) for game in file.games] == [
        (game.label, game.started_ns, game.ended_ns, game.result) for game in plugin.games
    ]


@pytest.mark.parametrize(
    "moves",
    [
        ["*< MARK alice 5", "*< MARK bob 1", "*< WON alice", "b> BYE", "a. "],
        ["*< MARK bob 5"],
        ["*< MARK alice 5", "*< MARK bob 5"],
        ["*< MARK alice 5", "*< MARK alice 5"],
        ["*< WON alice", "*< MARK bob 5"],
        ["*< DRAW", "*< START bob alice", "*< MARK bob 9"],
        ["*< START bob alice", "*< MARK bob 9"],
        ["*< HELLO", "a> hello", "a> PUT 10", "*< MARK alice"],
    ],
)
def test_noughts_and_crosses(moves: list[str]) -> None:
    same("noughts", OPENING + moves)


@given(st.lists(st.sampled_from([*MOVES, *MOVES, *OTHERS]), max_size=12))
def test_any_game_of_noughts_and_crosses(moves: list[str]) -> None:
    if "a. " in moves:
        del moves[moves.index("a. ") + 1 :]
    same("noughts", OPENING + moves)


def test_without_the_beginning_nothing_is_checked() -> None:
    same("noughts", ["a< MARK bob 5", "a< MARK bob 5", "a< WON bob", *OPENING])


def test_after_a_gap_nothing_is_checked() -> None:
    plugin, file = findings("noughts", [*OPENING, "a! 20", "a< MARK bob 1", "a< MARK bob 5", "b< MARK bob 1"])
    assert messages(file) == messages(plugin)
    assert diagnostics(file) == diagnostics(plugin)
    assert [event.kind for event in file.events] == [event.kind for event in plugin.events]


def test_knobeln() -> None:
    lines = [
        "a> HALLO alice",
        "a< WILLKOMMEN",
        "b> HALLO bob",
        "b< WILLKOMMEN",
        "*< WURF alice 6",
        "a< WURF bob 1",
    ]
    same("knobeln", lines)


@pytest.mark.parametrize("name", ["noughts", "knobeln"])
def test_rows_and_rules_are_the_same(name: str) -> None:
    file, plugin = FILES[name].grammar, PLUGINS[name].grammar
    assert [
        (row.name, row.direction, row.answers, row.broadcast, row.clause, row.description)
        for row in file.rows
    ] == [
        (row.name, row.direction, row.answers, row.broadcast, row.clause, row.description)
        for row in plugin.rows
    ]
    assert [*file.events] == [*plugin.events]
    assert [*file.rules] == [*plugin.rules]


@pytest.mark.parametrize(
    ("name", "case"),
    [(name, case) for name, some in CASES.items() for case in some if case.data not in DIFFERENT],
    ids=repr,
)
def test_single_messages(name: str, case: Case) -> None:
    file, plugin = (each[name].codec.decode(case.data, case.direction) for each in (FILES, PLUGINS))
    assert (file.valid, file.row and file.row.name, file.fields) == (
        plugin.valid,
        plugin.row and plugin.row.name,
        plugin.fields,
    )
    codes = [(each.code, *each.place(case.data)) for each in plugin.violations]
    assert [(each.code, *each.place(case.data)) for each in file.violations] == codes


def test_the_pictures_are_the_same_but_for_the_signs() -> None:
    from kiebitz.dissectors.game.view import Scene

    plugin, file = findings("noughts", [*OPENING, "*< MARK alice 5", "*< MARK bob 1"])
    views = []
    for each, found in ((NOUGHTS, plugin), (FILES["noughts"], file)):
        state: State = {}
        for event in found.events:
            apply(state, event.changes)
        view = each.presentation.view(Scene(state, found.events, ("alice", "bob")))
        assert view is not None
        assert view.grid is not None
        views.append(
            (
                [(seat.name, seat.state) for seat in view.seats],
                [[token and token.owner for token in row] for row in view.grid.rows],
                view.story,
            )
        )
    assert views[0] == views[1]
