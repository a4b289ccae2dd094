"""Several games at once in protocol files: each room has its own state, rules, doubt and results."""

from __future__ import annotations

import pytest
from conversation import sentences, state_of
from file_conversations import Conversation, dissector_of, rules, texts
from strength import every, times

from kiebitz.dissectors.model import Findings
from kiebitz.dissectors.protocol_file.dissector import FileDissector
from kiebitz.dissectors.protocol_file.game.rooms import MAX_ROOMS
from kiebitz.dissectors.protocol_file.reading.errors import ProtocolFileError
from kiebitz.dissectors.protocol_file.reading.reader import read
from kiebitz.dissectors.testing import CHECKS, EXAMPLES, Check

FILE = """protocol = "rooms"
port = 4711
GAME
[messages]
LOGIN = "c: name=player"
WELCOME = "s: name=player < LOGIN"
JOIN = "c: room=id:room"
JOINED = "s: room=id:room < JOIN"
OK = "s: < JOIN"
NO = "s: < JOIN"
ENTERED = "s*: name=player room=id:room"
LEFT = "s: < LEAVE"
LEAVE = "c:"
READY = "c:"
START = "s*: first=player"
MOVE = "c: x=integer"
MOVED = "s*: name=player x=integer"
HAND = "s: card=text"
OVER = "s*: name=player"
[identity]
login = "LOGIN"
[events]
joined = { on = ["JOINED", "OK"], say = "{who} is in", put = { "players.{who}.moves" = 0 } }
ready = { on = "READY", say = "{who} is ready", put = { ready = "who" } }
turn = { on = "START", silent = true, put = { turn = "first" } }
started = { on = "START", opens = true, say = "{ready}: {first} begins" }
hand = { on = "HAND", secret = true, say = "{who} has {card}", put = { "private.{who}.card" = "card" } }
over = { on = "OVER", ends = true, say = "{name} wins at {x}", result = { winner = "name", x = "x" } }
[events.moved]
on = "MOVED"
say = "{name} moves to {x}"
put = { "players.{name}.moves" = "players.{name}.moves + 1", x = "x" }
[rules]
again = { on = "MOVED", unless = "x != state.x", say = "{name} stays at {known}" }
turn = { on = "MOVED", unless = "name == turn", say = "{name} moves, and it is {known}'s turn" }
"""
FIELD = FILE.replace("GAME", 'game = "room"')
ASKED = FILE.replace("GAME", 'game = { id = "room", joins = "OK", leaves = "LEFT" }')
REQUEST = FILE.replace("GAME", 'game = { id = "room", joins = "JOIN", leaves = "LEAVE" }')
OF = FILE.replace("GAME", 'game = { id = "room", joins = "ENTERED", of = "name" }')
PLAYERS = (("ann", 1), ("bob", 1), ("carl", 2), ("dora", 2))
LOGINS = [f"{name[0]}{sign} {name}" for name, _ in PLAYERS for sign in ("> LOGIN", "< WELCOME")]


def to(clients: str, text: str) -> list[str]:
    """Return a message to some of the clients."""
    return [f"{client}< {text}" for client in clients]


TWO_GAMES = [
    *("a> READY", "c> READY"),
    *to("ab", "START ann"),
    *to("cd", "START carl"),
    *to("ab", "MOVED ann 3"),
    *to("cd", "MOVED carl 4"),
    *to("ab", "MOVED ann 5"),
    "c< HAND A",
]


def talk(text: str, *lines: str) -> tuple[FileDissector, Findings]:
    dissector = dissector_of(text)
    return dissector, Conversation(dissector).send(*LOGINS, *lines).found()


def enter(answer: str) -> list[str]:
    """Return how four clients enter two rooms, each with this answer."""
    lines = []
    for name, room in PLAYERS:
        lines += [f"{name[0]}> JOIN {room}", f"{name[0]}< {answer.format(room)}"]
    return lines


JOINS = enter("JOINED {}")
WAYS = {
    "the server's messages have it": (FIELD, JOINS),
    "it is in the request": (ASKED, enter("OK")),
    "the request is enough": (REQUEST, enter("OK")),
    "all are told who is where": (
        OF,
        [line for name, room in PLAYERS for line in to("abcd", f"ENTERED {name} {room}")],
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_two_games_at_once(way: str) -> None:
    text, entry = WAYS[way]
    dissector, found = talk(text, *entry, *TWO_GAMES)
    told = [line for line in sentences(dissector, found) if "connects" not in line and "is in" not in line]
    assert told == [
        "ann is ready",
        "carl is ready",
        "ann: ann begins",
        "carl: carl begins",
        "ann moves to 3",
        "carl moves to 4",
        "ann moves to 5",
        "carl has A",
    ]
    assert found.diagnostics == []
    games = state_of(found)["games"]
    assert (games["1"]["x"], games["1"]["turn"]) == (5, "ann")
    assert (games["2"]["x"], games["2"]["turn"]) == (4, "carl")
    assert games["2"]["private"] == {"carl": {"card": "A"}}
    assert [event.game_id for event in found.events if event.kind == "moved"] == [1, 2, 1]


PAIRS = """protocol = "pairs"
port = 4711
game = { id = "min(who, opponent) + ' and ' + max(who, opponent)", joins = "MATCH" }
[messages]
LOGIN = "c: name=player"
WELCOME = "s: name=player < LOGIN"
MATCH = "s: colour=black|white opponent=player"
MOVED = "s*: x=integer"
[identity]
login = "LOGIN"
name = "name"
[events]
moved = { on = "MOVED", say = "{turn} moves to {x}", put = { turn = "turn" } }
[events.match]
on = "MATCH"
when = "colour == 'black'"
opens = true
say = "{who} has black"
put = { turn = "who" }
"""


def test_a_match_without_an_id_has_that_of_its_players() -> None:
    dissector = dissector_of(PAIRS)
    lines = ("d< MATCH black ann", "a< MATCH white dora", "b< MATCH black carl", "c< MATCH white bob")
    found = Conversation(dissector).send(*LOGINS, *lines, *to("ad", "MOVED 3"), *to("cb", "MOVED 3")).found()
    assert sentences(dissector, found)[4:] == [
        "dora has black",
        "bob has black",
        "dora moves to 3",
        "bob moves to 3",
    ]


def test_players_are_those_of_the_game() -> None:
    _, found = talk(FIELD, *JOINS, *TWO_GAMES)
    state = state_of(found)
    assert state["games"]["1"]["players"] == {"ann": {"moves": 2}, "bob": {"moves": 0}}
    assert state["games"]["2"]["players"] == {"carl": {"moves": 1}, "dora": {"moves": 0}}
    assert state["rooms"] == {}
    assert [game.label for game in found.games] == ["ann – bob", "carl – dora"]


def test_a_game_that_ends_or_begins_ends_no_other() -> None:
    lines = [*to("ab", "OVER ann"), *to("cd", "MOVED carl 6"), *to("ab", "START bob"), *to("ab", "START ann")]
    dissector, found = talk(FIELD, *JOINS, *TWO_GAMES, *lines)
    results = {game.id: game.result for game in found.games}
    assert results == {1: {"winner": "ann", "x": 5}, 2: None, 3: {"winner": None, "x": None}, 4: None}
    assert [*state_of(found)["games"]] == ["2", "4"]
    assert sentences(dissector, found)[-4:] == [
        "ann wins at 5",
        "carl moves to 6",
        "?: bob begins",
        "?: ann begins",
    ]


@pytest.mark.parametrize(
    ("lines", "violations"),
    [
        (to("ab", "MOVED ann 5"), ["ann stays at 5"]),
        (to("ab", "MOVED ann 4"), []),
        (to("cd", "MOVED dora 7"), ["dora moves, and it is carl's turn"]),
        # Doubt is that of all games, as a message may be about any of them.
        (["a! 9", "b< MOVED ann 5"], []),
        (["a! 9", *to("b", "MOVED bob 6"), *to("b", "MOVED ann 6")], ["ann stays at 6"]),
        # After a gap, the client may have been moved to another room.
        (
            [
                "a! 9",
                *to("cd", "MOVED carl 7"),
                "a< HAND x",
                "a< MOVED ann 7",
                "a< JOINED 2",
                "a< MOVED carl 7",
            ],
            [],
        ),
        (["a! 9", *to("cd", "MOVED carl 7"), "a< HAND x", "a< JOINED 2", "a< MOVED carl 7"], []),
        # Who has left a room is at the table itself, where no game is known.
        (["c> LEAVE", "c< LEFT", *to("ab", "MOVED ann 6"), "c< MOVED ann 6"], []),
    ],
)
def test_rules_are_those_of_the_game(lines: list[str], violations: list[str]) -> None:
    text = FIELD.replace('game = "room"', 'game = { id = "room", leaves = "LEFT" }')
    _, found = talk(text, *JOINS, *TWO_GAMES, *lines)
    assert texts(found) == violations


def test_a_refused_request_moves_nobody() -> None:
    lines = ["a> JOIN 2", "a< NO", *to("ab", "MOVED ann 6")]
    for text, entry in (WAYS["the server's messages have it"], WAYS["it is in the request"]):
        _, found = talk(text, *entry, *TWO_GAMES, *lines)
        assert state_of(found)["games"]["1"]["x"] == 6
        assert rules(found) == []


def test_the_same_message_to_two_rooms_is_two_messages() -> None:
    _, found = talk(FIELD, *JOINS, *to("acbd", "START ann"))
    assert [event.game_id for event in found.events if event.kind == "started"] == [1, 2]


@pytest.mark.parametrize("way", WAYS)
def test_a_message_to_all_in_a_room_answers_a_request_in_it(way: str) -> None:
    text, entry = WAYS[way]
    text = text.replace("first=player", "first=text < MOVE").replace("{ready}", "{asked.x}")
    dissector, found = talk(
        text, *entry, "a> MOVE 3", "c> MOVE 4", *to("cd", "START dora"), *to("ab", "START bob")
    )
    assert sentences(dissector, found)[-2:] == ["4: dora begins", "3: bob begins"]


def test_rooms_are_bounded() -> None:
    lines = [f"a< JOINED {number}" for number in range(MAX_ROOMS + 20)]
    _, found = talk(FIELD, lines[0], "a< START ann", *lines[1:])
    state = state_of(found)
    assert len(state["rooms"]) == MAX_ROOMS - 1
    assert "1" in state["games"]
    starts = [line for number in range(MAX_ROOMS + 1) for line in (f"a< JOINED {number}", "a< START ann")]
    _, found = talk(FIELD, *starts)
    assert len(state_of(found)["games"]) == MAX_ROOMS
    assert sum(game.ended_ns is not None for game in found.games) == 2


ROM = "rom is neither a field nor put by an event: did you mean room?"
NAM = "nam is neither a field nor put by an event: did you mean name?"
MISTAKES = [
    ('"rom"', ROM),
    ('{ id = "rom" }', ROM),
    ('{ id = "room", joins = "JOINT" }', "no message JOINT: did you mean JOIN?"),
    ('{ id = "room", leafs = "LEFT" }', "unknown key leafs: did you mean leaves?"),
    ('{ id = "room", of = "nam" }', NAM),
    ('{ joins = "JOIN" }', "id is missing"),
    ("3", "game must be a table"),
]


@pytest.mark.parametrize(("wrong", "problem"), MISTAKES)
def test_mistakes_have_a_place(wrong: str, problem: str) -> None:
    with pytest.raises(ProtocolFileError) as raised:
        read(FILE.replace("GAME", f"game = {wrong}"))
    (found,) = raised.value.all
    assert found.message == problem
    assert found.place.number == 3


@pytest.mark.full(but=1)
@pytest.mark.parametrize("text", every(1, [FIELD, ASKED, OF]))
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_properties_of_all_protocols(check: Check, text: str) -> None:
    lines = "LOGIN ann,WELCOME ann,JOIN 1,JOINED 1,OK,ENTERED ann 2,LEFT,READY,START ann,MOVED ann 3"
    check(
        dissector_of(text),
        [f"{line}\n".encode() for line in [*lines.split(","), "OVER ann"]],
        times(EXAMPLES // 2, quick=2),
    )
