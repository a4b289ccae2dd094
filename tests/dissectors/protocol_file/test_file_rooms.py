"""Several games at once in protocol files: each room has its own state, rules, doubt and results."""

from __future__ import annotations

import pytest
from conversation import state_of
from file_conversations import Conversation, dissector_of
from strength import every, times

from kiebitz.dissectors.model import Findings
from kiebitz.dissectors.protocol_file.dissector import FileDissector
from kiebitz.dissectors.protocol_file.game.players import MAX_ROOMS
from kiebitz.dissectors.protocol_file.reading.positions import ProtocolFileError
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
OF = FILE.replace("GAME", 'game = { id = "room", joins = "ENTERED", of = "name" }')
PLAYERS = (("ann", 1), ("bob", 1), ("carl", 2), ("dora", 2))
LOGINS = [f"{name[0]}{sign} {name}" for name, _ in PLAYERS for sign in ("> LOGIN", "< WELCOME")]


def talk(text: str, *lines: str) -> tuple[FileDissector, Findings]:
    dissector = dissector_of(text)
    return dissector, Conversation(dissector).send(*LOGINS, *lines).found()


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
