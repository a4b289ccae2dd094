"""Artificial Okey games in both dialects: the findings equal the script, without violations.

From all conversations, from one, from their middle on, with several games at once and with players who come
and go.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from conversation import events_of, violations
from hypothesis import given, settings
from hypothesis import strategies as st
from inspected_captures import errors
from okey_script import Move, Script, Step
from okey_talk import Talk, four, heard, moves_of
from strength import times

from kiebitz.dissectors.game.state import State, apply
from kiebitz.dissectors.model import Findings

NAMES = ("ada", "ben", "cem", "dilek")
OTHERS = ("esra", "fred", "gül", "hans")

each_dialect = pytest.mark.parametrize("head", [False, True], ids=["seed", "head"])


def played(seed: int, head: bool, turns: int = 12) -> Script:
    script = Script(seed, head)
    four(script, 1, *NAMES)
    script.play(script.tables[1], turns)
    return script


def heard_from(steps: Sequence[Step], begin: int) -> Findings:
    """Return what is found in a capture that begins at this step."""
    talk = Talk()
    for client in {step.client for step in steps[:begin]}:
        for direction in ("c2s", "s2c"):
            talk.miss_beginning(client, direction)
    talk.play(steps[begin:])
    return talk.close("end")


def hidden(moves: Sequence[Move], seat: int) -> list[Move]:
    return [move._replace(tile=None) if move.stack == "m" and move.seat != seat else move for move in moves]


@each_dialect
@given(seed=st.integers(0, 10**6), seat=st.integers(0, 3))
@settings(max_examples=times(60))
def test_one_game(head: bool, seed: int, seat: int) -> None:
    """From all conversations, and from one."""
    script = played(seed, head)
    alone = heard(script.steps, lambda client: client == NAMES[seat])
    assert violations(alone) == []
    assert moves_of(alone) == hidden(script.moves, seat)
    script.win(script.tables[1])
    found = heard(script.steps)
    assert violations(found) == []
    assert moves_of(found) == script.moves
    [won] = events_of(found, "won")
    winner = NAMES[script.moves[-1].seat]
    assert won.data["name"] == winner
    assert {game.id: game.result for game in found.games} == {1: {"winner": winner}}


@pytest.mark.full(but=1)
@each_dialect
@given(seed=st.integers(0, 10**6))
@settings(max_examples=times(40))
def test_two_games_at_once(head: bool, seed: int) -> None:
    """From all conversations, and from those of one lobby."""
    script = Script(seed, head)
    four(script, 1, *NAMES)
    four(script, 2, *OTHERS)
    for _ in range(20):
        script.play(script.tables[script.random.choice((1, 2))], 1)
    found = heard(script.steps)
    assert violations(found) == []
    assert moves_of(found) == script.moves
    found = heard(script.steps, lambda client: client in NAMES)
    assert violations(found) == []
    assert moves_of(found) == [move for move in script.moves if move.lobby == 1]


@each_dialect
@given(seed=st.integers(0, 10**6))
@settings(max_examples=times(40))
def test_deals_that_race(head: bool, seed: int) -> None:
    script = Script(seed, head)
    script.login(*NAMES)
    script.join(1, *NAMES)
    script.race(script.tables[1])
    script.play(script.tables[1], 8)
    found = heard(script.steps)
    assert errors(found) == []
    assert moves_of(found) == script.moves
    assert len(events_of(found, "dealt")) == 8


@given(seed=st.integers(0, 10**6), seat=st.integers(0, 3))
@settings(max_examples=times(60))
def test_one_conversation_among_the_statuses_of_another_lobby(seed: int, seat: int) -> None:
    """The other lobby has played before, so its statuses are nearly always distinguishable."""
    script = Script(seed)
    four(script, 2, *OTHERS)
    script.login(*NAMES)
    script.play(script.tables[2], 5)
    script.join(1, *NAMES)
    script.ready(*NAMES)
    for _ in range(12):
        script.play(script.tables[script.random.choice((1, 2))], 1)
    found = heard(script.steps, lambda client: client == NAMES[seat])
    assert errors(found) == []
    own = [move for move in script.moves if (move.lobby, move.seat) == (1, seat)]
    assert [move for move in moves_of(found) if move.seat == seat] == own


@pytest.mark.full(but=1)
@each_dialect
@given(seed=st.integers(0, 10**6))
@settings(max_examples=times(30))
def test_from_then_on(head: bool, seed: int) -> None:
    """From mid-game on no violation is reported, and the found moves are the last of those played."""
    script = played(seed, head, 20)
    begin = script.random.randrange(len(script.steps))
    in_game = any(step.name == "PUTT" for step in script.steps[:begin])
    found = heard_from(script.steps, begin)
    assert errors(found) == []
    if not in_game:
        # Who has joined which lobby is not known of all.
        return
    moves = [(event.data["seat"], event.kind) for event in events_of(found, "drew", "put")]
    true = [(move.seat, move.kind) for move in script.moves]
    assert len(moves) <= len(true)
    # The first event may be repeated, being known from its answer alone.
    assert moves[1:] == true[len(true) - len(moves) + 1 :]


@pytest.mark.full(but=1)
@each_dialect
@given(seed=st.integers(0, 10**6))
@settings(max_examples=times(60))
def test_two_games_from_then_on(head: bool, seed: int) -> None:
    """Lobbies that were entered before cannot be told apart, which is no player's fault."""
    script = Script(seed, head)
    four(script, 1, *NAMES)
    four(script, 2, *OTHERS)
    for _ in range(20):
        script.play(script.tables[script.random.choice((1, 2))], 1)
    assert errors(heard_from(script.steps, script.random.randrange(len(script.steps)))) == []


@pytest.mark.full(but=1)
@each_dialect
@given(seed=st.integers(0, 10**6), lost=st.integers(0, 10**6))
@settings(max_examples=times(40))
def test_a_message_that_is_lost_causes_no_violation(head: bool, seed: int, lost: int) -> None:
    script = played(seed, head)
    missing = lost % len(script.steps)
    talk = Talk()
    for number, step in enumerate(script.steps):
        if number == missing:
            talk.lose(step.client, step.direction, len(step.data))
        else:
            talk.say(step.client, step.direction, step.data)
    found = talk.close("end")
    assert [violation for violation in errors(found) if violation.group != "network"] == []


@each_dialect
def test_the_state_is_the_game(head: bool) -> None:
    script = played(5, head)
    found = heard(script.steps)
    state: State = {}
    for event in found.events:
        apply(state, event.changes)
        if event is events_of(found, "left")[0]:
            break
    table = script.tables[1]
    game = state["games"]["1"]
    assert game["lobby"] == 1
    assert game["turn"] == table.turn
    assert game["exchange"] == [stack[-1] if stack else None for stack in table.stacks]
    for seat, name in enumerate(NAMES[1:], 1):
        assert game["seats"][str(seat)] == {"name": name, "tiles": len(table.decks[seat])}
        assert sorted(filter(None, game["private"][name]["deck"])) == sorted(table.decks[seat])
