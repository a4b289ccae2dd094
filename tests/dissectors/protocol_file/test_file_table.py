"""Tables of protocol files: small files, messages, and the events, state and diagnostics that follow."""

from __future__ import annotations

from typing import Any

import pytest
from conversation import sentences, state_of
from file_conversations import Conversation, dissector_of, rules, texts
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


def told(text: str, *lines: str) -> list[str]:
    dissector, conversation = talk(text, *lines)
    return sentences(dissector, conversation.found())


JOINED = ("a> JOIN alice", "a< JOINED alice", "b> JOIN bob", "*< JOINED bob")


def test_messages_alone_are_events() -> None:
    assert told(DICE, *JOINED, "a> ROLL", "*< ROLLED alice 6", "b< ERROR not yet", "a< PING", "a> PING") == [
        "alice: JOIN",
        "alice: JOINED",
        "bob: JOIN",
        "bob: JOINED",
        "ROLL",
        "alice: ROLLED pips 6",
        "ERROR reason not yet",
    ]


def test_messages_alone_name_the_player_of_the_connection() -> None:
    login = DICE + '[identity]\nlogin = "JOIN"\n'
    assert told(login, *JOINED, "a> ROLL", "*< ROLLED alice 6", "b< ERROR not yet")[4:] == [
        "alice: ROLL",
        "alice: ROLLED pips 6",
        "to bob: ERROR reason not yet",
    ]


def test_messages_alone_show_who_is_there() -> None:
    login = DICE + 'BYE = "c:"\n[identity]\nlogin = "JOIN"\nleft = "BYE"\n'
    _, conversation = talk(login, *JOINED, "a> ROLL", "b> BYE", "a> ROLL")
    found = conversation.found()
    assert state_of(found) == {"players": {"alice": {}}}
    assert found.events[0].changes == [(["players", "alice"], {})]


def test_generated_values_are_no_part_of_events() -> None:
    text = (
        HEAD
        + """
[messages]
DEAL = "s: token=text! card=text"
SHOW = "s: token=text!"
[events]
dealt = { on = "DEAL", say = "{card}" }
shown = { on = "SHOW", say = "{token}" }
"""
    )
    _, conversation = talk(text, "a< DEAL x7 A", "a< SHOW x8")
    assert [event.data for event in conversation.found().events] == [{"card": "A"}, {"token": "x8"}]


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


def test_the_state_of_a_game_is_removed_when_it_ends() -> None:
    _, conversation = talk(
        GAME, *JOINED, "*< TURN alice", "*< START", "a< HAND A,B", "*< ROLLED alice 6", "*< OVER alice"
    )
    found = conversation.found()
    assert state_of(found) == {"players": {"alice": {"points": 6}, "bob": {"points": 0}}, "games": {}}
    assert found.games[-1].result == {"winner": "alice", "points": 6}
    assert [event.game_id for event in found.events] == [None] * 5 + [1] * 5


def test_a_game_that_begins_ends_the_one_before() -> None:
    _, conversation = talk(GAME, *JOINED, "*< START", "*< TURN alice", "*< START")
    found = conversation.found()
    assert [game.result for game in found.games] == [{"winner": None, "points": None}] * 2 + [None]
    assert state_of(found)["games"] == {"2": {"rolls": [], "taken": {}}}


@pytest.mark.full(but=2)
@pytest.mark.parametrize(
    ("lines", "violations"),
    [
        (["*< START", "*< TURN alice", "*< ROLLED bob 1"], ["bob rolls, and it is alice's turn"]),
        (["*< START", "*< TURN alice", "*< ROLLED alice 1"], []),
        (["*< START", "*< ROLLED alice 1"], []),
        (["*< START", "*< ROLLED alice 1", "*< ROLLED bob 1"], ["1 again"]),
        (["*< START", "*< ROLLED alice 1", "*< ROLLED bob 2"], []),
        # The game began before the capture.
        (["*< TURN alice", "*< ROLLED bob 1"], []),
        (["*< TURN alice", "*< ROLLED bob 5"], ["bob rolls 5"]),
        (["*< START", "*< TURN alice", "*< OVER bob", "*< ROLLED bob 1"], []),
        # Bytes are missing.
        (["*< START", "*< TURN alice", "a! 20", "*< ROLLED bob 1", "*< ROLLED bob 1"], []),
        (["*< START", "a! 20", "*< TURN alice", "*< ROLLED bob 1"], ["bob rolls, and it is alice's turn"]),
    ],
)
def test_rules(lines: list[str], violations: list[str]) -> None:
    _, conversation = talk(GAME, *JOINED, *lines)
    assert texts(conversation.found()) == violations


def test_a_violation_has_what_the_file_says_of_it() -> None:
    _, conversation = talk(GAME, *JOINED, "*< START", "*< TURN alice", "*< ROLLED bob 1")
    (diagnostic,) = rules(conversation.found())
    assert (diagnostic.code, diagnostic.severity, diagnostic.blame) == ("out-of-turn", "error", "server")
    assert (diagnostic.clause, diagnostic.expected) == ("3.1", "a roll of alice")


@pytest.mark.parametrize("unknown", ["a! 20", "a< \ufeffTURN bob", "a< TURN bob 7", "a< ROLLED"])
def test_after_an_unknown_message_values_are_in_doubt_until_they_are_put(unknown: str) -> None:
    _, conversation = talk(GAME, *JOINED, "*< START", "*< TURN alice", "*< ROLLED alice 6", unknown)
    conversation.send("b< ROLLED bob 2")
    found = conversation.found()
    assert texts(found) == []
    assert state_of(found)["players"] == {"alice": {"points": 6}, "bob": {"points": 2}}
    conversation.send("*< TURN alice", "*< ROLLED bob 3")
    assert texts(conversation.found()) == ["bob rolls, and it is alice's turn"]


def test_a_connection_that_began_before_the_capture_does_no_harm() -> None:
    _, conversation = talk(GAME, *JOINED, "*< START", "*< TURN alice", "c! 20", "c< PING", "*< ROLLED bob 1")
    assert texts(conversation.found()) == ["bob rolls, and it is alice's turn"]


def test_players_leave_with_their_connections() -> None:
    assert told(GAME, *JOINED, "a> LEAVE", "a.", "b.")[4:] == ["alice leaves", "bob leaves"]
    assert told(GAME, *JOINED, "b< GONE alice", "a.")[4:] == ["alice is gone"]


def test_a_refused_player_has_no_name() -> None:
    dissector, conversation = talk(
        GAME, *JOINED, "c> JOIN alice", "c< ERROR taken", "c> JOIN carl", "*< JOINED carl", "c< HAND X"
    )
    found = conversation.found()
    assert sentences(dissector, found)[4:] == [
        "alice is told taken",
        "carl connects",
        "carl joins",
        "carl has X",
    ]
    assert [event.actor for event in found.events[4:]] == [None, "carl", "carl", "carl"]


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


def test_ids_are_names_once_these_are_known() -> None:
    dissector, conversation = talk(
        IDS,
        'a< {"type":"welcome","id":1}',
        'a> {"type":"hello","nick":"ann"}',
        'a< {"type":"turn","id":1}',
        'a< {"type":"chat","from":1,"text":"hi"}',
        'a< {"type":"player","id":1,"nick":"ann"}',
        'a< {"type":"move","id":1,"x":4}',
        'a> {"type":"move","x":5}',
        'a< {"type":"order","ids":[1,2]}',
        'a< {"type":"player","id":2,"nick":"bo"}',
        'a< {"type":"move","id":2,"x":4}',
    )
    found = conversation.found()
    assert sentences(dissector, found) == [
        "it is 1's turn",
        "1: hi",
        "ann moves to 4",
        "ann wants 5",
        "ann, 2 play",
        "bo moves to 4",
    ]
    assert state_of(found) == {
        "turn": "ann",
        "next": "ann",
        "order": ["ann", "bo"],
        "players": {"ann": {"turns": 1, "x": 4}, "bo": {"x": 4}},
    }
    assert texts(found) == ["bo moves, ann is next"]


@pytest.mark.parametrize(
    ("row", "greeting", "told"),
    [
        ("id=id", "7", ["ann joins", "ann has moved"]),
        ("name=player", "anna", ["anna joins", "7 has moved"]),
        # Another player's name.
        ("rival=player", "bob", ["ann joins", "7 has moved"]),
        ("rival=player name=player", "bob anna", ["anna joins", "7 has moved"]),
    ],
)
def test_the_player_whom_a_server_greets(row: str, greeting: str, told: list[str]) -> None:
    dissector = dissector_of(
        f"""{HEAD}
[messages]
JOIN = "c: name=player"
HELLO = "s: {row} < JOIN"
MOVED = "s*: id=id"
[identity]
login = "JOIN"
given = "HELLO"
[events]
joined = {{ on = "HELLO", say = "{{who}} joins" }}
moved = {{ on = "MOVED", say = "{{id}} has moved" }}
"""
    )
    found = Conversation(dissector).send("a> JOIN ann", f"a< HELLO {greeting}", "a< MOVED 7").found()
    assert sentences(dissector, found) == told


def test_an_answer_without_a_name_is_no_refusal_if_none_has_it() -> None:
    dissector = dissector_of(
        f"""{HEAD}
[messages]
CREATE = "c: name=player"
CREATED = "s: < CREATE"
JOIN = "c: name=player"
JOINED = "s: name=player < JOIN"
ERROR = "s: < CREATE JOIN"
MOVE = "c:"
[identity]
login = ["CREATE", "JOIN"]
[events]
moved = {{ on = "MOVE", say = "{{who}} moves" }}
"""
    )
    talk = Conversation(dissector).send("a> CREATE ann", "a< CREATED", "a> MOVE", "b> JOIN bob", "b< ERROR")
    found = talk.send("b> MOVE").found()
    moves = [event.actor for event in found.events if event.kind == "moved"]
    assert moves == ["ann", None]


def test_two_players_of_one_name_stay_apart() -> None:
    names = told(
        IDS,
        'a< {"type":"player","id":1,"nick":"ann"}',
        'a< {"type":"player","id":2,"nick":"ann"}',
        'a< {"type":"order","ids":[1,2]}',
    )
    assert names == ["ann, ann (2) play"]


def test_a_player_who_returns_has_the_name_again() -> None:
    names = told(
        IDS,
        'a< {"type":"welcome","id":1}',
        'a< {"type":"player","id":1,"nick":"ann"}',
        "a.",
        'b< {"type":"welcome","id":2}',
        'b< {"type":"player","id":2,"nick":"ann"}',
        'b> {"type":"move","x":5}',
        'b< {"type":"order","ids":[1,2]}',
    )
    assert names == ["ann wants 5", "ann, ann play"]


def test_a_player_with_another_connection_has_not_left() -> None:
    lines = ("a> JOIN alice", "a< JOINED alice", "b> JOIN alice", "b< JOINED alice", "a.", "b.")
    assert told(GAME, *lines)[2:] == ["alice leaves"]


@pytest.mark.parametrize(
    ("path", "value", "before", "state"),
    [
        ("a.b", 1, {}, {"a": {"b": 1}}),
        ("a.{text}", "number", {}, {"a": {"t": 7}}),
        ("a.{missing}", 1, {}, {}),
        ("a", "", {"a": 1}, {}),
        ("list[1]", "text", {"list": [1, 2, 3]}, {"list": [1, "t", 3]}),
        ("list[3]", "text", {"list": [1, 2, 3]}, {"list": [1, 2, 3, "t"]}),
        ("list[4]", "text", {"list": [1, 2, 3]}, {"list": [1, 2, 3]}),
        ("list[0]", "", {"list": [1, 2, 3]}, {"list": [2, 3]}),
        ("rows[1][0]", "number", {"rows": [[1], [2]]}, {"rows": [[1], [7]]}),
        ("rows[0].owner.name", "text", {"rows": [{"x": 1}]}, {"rows": [{"x": 1, "owner": {"name": "t"}}]}),
        ("a", {"b": {"c": 1}}, {}, {"a": {"b": {"c": 1}}}),
        ("games.x", 1, {}, {"games_": {"x": 1}}),
        ("rooms.{text}", 1, {}, {"rooms": {"t": 1}}),
        ("a.{number + 1}", True, {}, {"a": {"8": True}}),
        ("a", "a + 1", {"a": 1}, {"a": 2}),
        ("a", "text + number", {}, {"a": "t7"}),
        ("a", "number - 8", {}, {"a": -1}),
        ("players.{text}.{text}", "number", {}, {"players": {"t": {"t": 7}}}),
    ],
)
def test_puts(path: str, value: Any, before: dict[str, Any], state: dict[str, Any]) -> None:
    def toml(whole: Any) -> str:
        if isinstance(whole, dict):
            return "{" + ", ".join(f"{key} = {toml(part)}" for key, part in whole.items()) + "}"
        if isinstance(whole, list):
            return f"[{', '.join(map(toml, whole))}]"
        return str(whole).lower() if isinstance(whole, bool) else repr(whole)

    text = (
        HEAD
        + f"""
[messages]
SET = "s: text=text number=integer missing?=text"
BEFORE = "s:"
[events]
before = {{ on = "BEFORE", put = {toml(before)} }}
set = {{ on = "SET", put = {{ '{path}' = {toml(value)} }} }}
"""
    )
    _, conversation = talk(text, "a< BEFORE", "a< SET t 7")
    assert state_of(conversation.found()) == state


def test_all_values_of_an_event_are_those_before_it() -> None:
    text = (
        HEAD
        + """
[messages]
START = "s*:"
SWAP = "s*:"
[events]
start = { on = "START", put = { a = 1, b = 2 } }
swap = { on = "SWAP", say = "{a} {b}", put = { a = "b", b = "a" } }
"""
    )
    assert told(text, "a< START", "a< SWAP", "a< SWAP")[1:] == ["2 1", "1 2"]


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


LISTS = (
    HEAD
    + """
format = "json"
name = "type"
[messages]
state = "s*: players=[{id=id name=player points=integer}] turn={id=id} "
deal = "s*: names=[player] cards=[text]"
[events]
state = { on = "state", put = { "players.{players.name}.points" = "players.points" }, say = "{players.name}" }
deal = { on = "deal", put = { "cards.{names}" = "cards", "ready.{names}" = [] }, say = "{names}" }
who = { on = "state", when = "turn.id", actor = "turn.id", turn = true, say = "it is {turn.id}'s turn" }
"""
)


def test_lists_of_players_are_put_element_by_element() -> None:
    dissector, conversation = talk(
        LISTS,
        'a< {"type":"state","turn":{"id":2},"players":['
        '{"id":1,"name":"ann","points":3},{"id":2,"name":"bo","points":4}]}',
        'a< {"type":"deal","names":["ann","bo"],"cards":["A","B"]}',
        'a< {"type":"deal","names":["ann","bo"],"cards":["A"]}',
    )
    found = conversation.found()
    assert state_of(found) == {
        "players": {"ann": {"points": 3}, "bo": {"points": 4}},
        "turn": "bo",
        "cards": {"ann": "A", "bo": "B"},
        "ready": {"ann": [], "bo": []},
    }
    assert sentences(dissector, found) == ["ann, bo", "it is bo's turn", "ann, bo", "ann, bo"]


def test_fields_whose_names_are_no_words() -> None:
    text = (
        HEAD
        + """
format = "json"
name = "type"
[messages]
move = "s*: player-name=player 'to x'=integer"
[events]
moved = { on = "move", say = "{player_name} moves to {to_x}", put = { "players.{player_name}.x" = "to_x" } }
"""
    )
    dissector = dissector_of(text)
    found = Conversation(dissector).send('a< {"type":"move","player-name":"ann","to x":3}').found()
    assert sentences(dissector, found) == ["ann moves to 3"]
    assert state_of(found) == {"players": {"ann": {"x": 3}}}
