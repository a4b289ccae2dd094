"""Tables of protocol files: small files, messages, and the events, state and diagnostics that follow."""

from __future__ import annotations

import pytest
from conversation import sentences, state_of
from file_conversations import Conversation, dissector_of, texts
from hypothesis import given
from hypothesis import strategies as st
from strength import every, times

from kiebitz.dissectors.protocol_file.dissector import FileDissector
from kiebitz.dissectors.protocol_file.game.state import MAX_KEYS
from kiebitz.dissectors.testing import CHECKS, EXAMPLES, Check

HEAD = 'protocol = "test"\nport = 4711\n'
DICE = (
    HEAD
    + """
[messages]
JOIN = "c: name=player"
JOINED = "s*: name=player < JOIN"
ROLL = "c:"
ROLLED = "s*: name=player pips=1..6 < ROLL"
ERROR = "s: reason=rest < JOIN ROLL"
PING = ["s~:", "c~: < PING"]
"""
)
GAME = (
    DICE
    + """
TURN = "s*: name=player"
START = "s*:"
OVER = "s*: name=player"
HAND = "s: cards=[text]"
LEAVE = "c:"
GONE = "s*: name=player"
[identity]
login = "JOIN"
left = ["LEAVE", "GONE"]
[events]
joined = { on = "JOINED", say = "{name} joins", put = { "players.{name}.points" = 0 } }
started = { on = "START", opens = true, say = "a game begins", put = { rolls = [], taken = {} } }
turn = { on = "TURN", turn = true, say = "it is {name}'s turn" }
[events.rolled]
on = "ROLLED"
say = "{name} rolls {pips} and has {players.{name}.points}"
put = { "players.{name}.points" = "players.{name}.points + pips", rolls = "rolls + pips", dice = "pips" }
[events.six]
on = "ROLLED"
when = "pips == 6"
say = "a six"
[events.hand]
on = "HAND"
secret = true
say = "{who} has {cards}"
put = { "private.{who}.hand" = "cards" }
[events.won]
on = "OVER"
ends = true
result = { winner = "name", points = "players.{name}.points" }
say = "{name} wins"
[events.refused]
on = "ERROR"
say = "{who} is told {reason}"
[events.left]
on = "LEAVE"
say = "{who} leaves"
put = { "players.{who}" = "" }
[events.gone]
on = "GONE"
say = "{name} is gone"
put = { "players.{name}" = "" }
[rules.out-of-turn]
on = "ROLLED"
unless = "who == turn"
say = "{name} rolls, and it is {known}'s turn"
expected = "a roll of {turn}"
clause = "3.1"
[rules.same]
on = "ROLLED"
when = "rolls.# > 0"
unless = "pips != dice"
say = "{pips} again"
severity = "warning"
[rules.big]
on = "ROLLED"
when = "pips == 5"
unless = "name != 'bob'"
say = "bob rolls {pips}"
"""
)


def talk(text: str, *lines: str) -> tuple[FileDissector, Conversation]:
    dissector = dissector_of(text)
    return dissector, Conversation(dissector).send(*lines)


JOINED = ("a> JOIN alice", "a< JOINED alice", "b> JOIN bob", "*< JOINED bob")


def test_a_game_with_scores() -> None:
    dissector, conversation = talk(
        GAME, *JOINED, "*< START", "*< TURN alice", "*< ROLLED alice 6", "*< TURN bob", "*< ROLLED bob 3"
    )
    found = conversation.found()
    assert sentences(dissector, found) == [
        "alice connects",
        "alice joins",
        "bob connects",
        "bob joins",
        "a game begins",
        "it is alice's turn",
        "alice rolls 6 and has 6",
        "a six",
        "it is bob's turn",
        "bob rolls 3 and has 3",
    ]
    assert state_of(found) == {
        "players": {"alice": {"points": 6}, "bob": {"points": 3}},
        "games": {"1": {"rolls": [6, 3], "taken": {}, "dice": 3, "turn": "bob"}},
    }
    assert found.diagnostics == []
    assert found.games[0].label == "alice – bob"
    assert dissector.presentation.scores(state_of(found)) == {"alice": 6, "bob": 3}


def test_who_is_secret() -> None:
    dissector, conversation = talk(GAME, *JOINED, "a< HAND A,B", "b< HAND C")
    first, second = conversation.found().events[-2:]
    assert dissector.identity.seen_by(first, "alice") is not None
    assert dissector.identity.seen_by(second, "alice") is None
    assert second.changes == [(["private", "bob", "hand"], ["C"])]


IDS = (
    HEAD
    + """
format = "json"
name = "type"
[messages]
hello = "c: nick=player"
welcome = "s: id=id"
player = "s*: id=id nick=player"
turn = "s*: id=id"
order = "s*: ids=[id]"
chat = "s*: from=id text=text"
move = ["c: x=integer", "s*: id=id x=integer"]
[identity]
login = "hello"
given = "welcome"
[events]
order = { on = "order", say = "{ids} play", put = { order = "ids" } }
chat = { on = "chat", say = "{from}: {text}" }
asks = { on = "move", from = "client", say = "{who} wants {x}" }
moved = { on = "move", from = "server", say = "{who} moves to {x}", put = { "players.{id}.x" = "x" } }
[events.turn]
on = "turn"
turn = true
say = "it is {who}'s turn"
put = { next = "id", "players.{who}.turns" = 1 }
[rules]
out-of-turn = { on = "move", from = "server", unless = "id == next", say = "{who} moves, {known} is next" }
"""
)


def test_memory_is_bounded() -> None:
    text = (
        HEAD
        + """
[messages]
HAS = "s: name=player value=text"
[events]
has = { on = "HAS", put = { "players.{name}.value" = "value" } }
"""
    )
    _, conversation = talk(text, *(f"a< HAS p{number} {'x' * 5000}" for number in range(MAX_KEYS + 10)))
    found = conversation.found()
    players = state_of(found)["players"]
    assert len(players) == MAX_KEYS
    assert all(len(player["value"]) < 100 for player in players.values())


def test_names_with_a_meaning_of_their_own_do_no_harm() -> None:
    text = (
        HEAD
        + """
format = "json"
name = "type"
[messages]
ask = "s*: known_to=any before=text called=any at=text part=text clause=text"
[events]
asked = { on = "ask", say = "{known_to} {before} {called} {at} {part} {clause}" }
[rules]
never = { on = "ask", unless = "at == 'x'", say = "{at} {part} {clause} {before} {known}" }
"""
    )
    dissector, conversation = talk(
        text, 'a< {"type":"ask","known_to":5,"before":"b","called":{"1":2},"at":"a","part":"p","clause":"c"}'
    )
    found = conversation.found()
    assert sentences(dissector, found) == ["5 b 1 2 a p c"]
    assert texts(found) == ["a p c b x"]
    assert dissector.identity.seen_by(found.events[0], "alice") == found.events[0]


def test_games_that_begin_with_the_same_object_do_not_share_it() -> None:
    text = """
[messages]
PUT = "s*: at=text"
ROWS = "s*:"
[events]
begin = { on = "ROWS", opens = true, say = "rows", put = { cells = {} } }
put = { on = "PUT", say = "{at}", put = { "cells.{at}" = "at" } }
"""
    _, conversation = talk(HEAD + text, "a< ROWS", "a< PUT x", "a< ROWS", "a< PUT y")
    found = conversation.found()
    # Applied twice, as reading changes must not alter them.
    for _ in range(2):
        assert state_of(found) == {"games": {"2": {"cells": {"y": "y"}}}}


LINES = [
    "JOIN alice",
    "JOINED alice",
    "JOINED bob",
    "START",
    "TURN alice",
    "ROLLED alice 6",
    "ROLLED bob 5",
    "ROLLED bob 7",
    "HAND A,B",
    "OVER alice",
    "ERROR taken",
    "LEAVE",
    "GONE bob",
]
ID_LINES = [
    '{"type":"hello","nick":"ann"}',
    '{"type":"welcome","id":1}',
    '{"type":"player","id":1,"nick":"ann"}',
    '{"type":"player","id":2,"nick":"ann"}',
    '{"type":"turn","id":1}',
    '{"type":"turn","id":2}',
    '{"type":"order","ids":[2,1,-1]}',
    '{"type":"chat","from":"","text":"hi"}',
    '{"type":"move","x":4}',
    '{"type":"move","id":2,"x":4}',
]


@pytest.mark.full(but=1)
@pytest.mark.parametrize(("text", "lines"), every(2, [(GAME, LINES), (DICE, LINES), (IDS, ID_LINES)]))
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_properties_of_all_protocols(check: Check, text: str, lines: list[str]) -> None:
    check(dissector_of(text), [f"{line}\n".encode() for line in lines], times(EXAMPLES // 2, quick=2))


@pytest.mark.full
@given(
    st.sampled_from([(GAME, LINES), (IDS, ID_LINES)]),
    st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("><!."), st.integers(0, 99)), max_size=30),
)
def test_the_state_is_the_sum_of_the_changes(
    protocol: tuple[str, list[str]], steps: list[tuple[str, str, int]]
) -> None:
    text, lines = protocol
    conversation = Conversation(dissector_of(text))
    open_names = {"a", "b"}
    for name, sign, number in steps:
        if name in open_names:
            line = "20" if sign == "!" else lines[number % len(lines)]
            conversation.send(f"{name}{sign} {line}")
            if sign == ".":
                open_names.remove(name)
    conversation.check()
