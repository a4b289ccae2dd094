"""Events of protocol files: local values, arithmetic, paths with several braces, lists, and silent events."""

from __future__ import annotations

import re

import msgspec
import pytest
from conversation import sentences, state_of
from file_conversations import Conversation, dissector_of, texts
from strength import times

from kiebitz.dissectors.game.context import SNAPSHOT_EVERY
from kiebitz.dissectors.game.state import State, apply
from kiebitz.dissectors.protocol_file.reading.positions import ProtocolFileError
from kiebitz.dissectors.protocol_file.reading.reader import read
from kiebitz.dissectors.testing import CHECKS, EXAMPLES, Check

DOTS = """protocol = "dots"
port = 4711
[messages]
START = "s*: size=integer"
LINE = "s*: name=player line=integer"
SHIFT = "s*: x=[integer,] y=[integer,]"
POS = "s*: name=player x=integer y=integer"
OVER = "s*: name=player"
[events]
[events.started]
on = "START"
opens = true
say = "a game"
put = { size = "size", last = ["size", [1, "'x'"], ""] }

[events.column]
on = "LINE"
silent = true
let = { x = "line % size", y = "line // size" }
put = { "cells.{x},{y}" = "name", "owners.{name}" = { at = "{x}-{y}", line = "line * 2", none = "nothing" } }

[events.drawn]
on = "LINE"
let = { x = "line % size", free = "not known(cells.{x},{0})" }
when = "line < max(size * size, 4)"
say = "{name} draws {line} in column {x}: {free}"
put = { last = ["line", "last.0"] }

[events.counted]
on = "LINE"
silent = true
put = { lines = "lines + 1", "count.{name}" = "min(count.{name}, 9) + 1" }

[events.reset]
on = "START"
silent = true
put = { lines = 0 }

[events.shift]
on = "SHIFT"
say = "marks"
put = { "marks.{x},{y}" = true }

[events.pos]
on = "POS"
silent = true
put = { "at.{name}.{x},{y}" = true, "pawns.{name}" = { x = "x", y = "y" } }

[events.over]
on = "OVER"
ends = true
say = "{name} wins"
result = { lines = "lines", cells = { first = "cells.{0},{0}" } }

[rules.far]
on = "LINE"
let = { row = "line // size" }
unless = "row < size"
say = "row {row}, and the board has {known}"
"""
DOTS = DOTS.replace('at = "{x}-{y}"', "at = \"x + '-' + y\"").replace('none = "nothing"', 'none = "lines"')
BEGIN = ("*< START 3", "*< LINE ann 4")


def talk(*lines: str) -> tuple[list[str], State, list[str]]:
    dissector = dissector_of(DOTS)
    conversation = Conversation(dissector)
    conversation.stream("a")
    conversation.stream("b")
    found = conversation.send(*lines).found()
    return sentences(dissector, found), state_of(found), texts(found)


def test_local_values_of_rules() -> None:
    assert talk(*BEGIN, "*< LINE bob 11")[2] == ["row 3, and the board has 3"]


def test_messages_are_events_beside_silent_ones() -> None:
    turn = '[events]\nTURN = { on = "TURN", silent = true, turn = true }'
    about = f'protocol = "x"\nport = 4711\n[messages]\nTURN = "s*: name=player"\nROLL = "c:"\n{turn}'
    found = Conversation(dissector_of(about)).send("a< TURN ann", "a> ROLL", "a< TURN bob").found()
    assert [event.kind for event in found.events] == ["TURN", "ROLL", "TURN"]
    assert state_of(found)["turn"] == "bob"


def test_snapshots_have_the_changes_of_silent_events() -> None:
    lines = ["a< START 3", *("a< LINE ann 4" for _ in range(SNAPSHOT_EVERY))]
    found = Conversation(dissector_of(DOTS)).send(*lines).found()
    (snapshot,) = found.snapshots
    state: State = {}
    for event in found.events[:SNAPSHOT_EVERY]:
        apply(state, event.changes)
    assert msgspec.json.decode(snapshot.state_json) == state
    assert state["games"]["1"]["lines"] == SNAPSHOT_EVERY - 1


@pytest.mark.parametrize("has_game", [True, False])
def test_many_changes_without_an_event_are_bounded(has_game: bool) -> None:
    lines = [f"a< POS p{number % 7} {number} 1" for number in range(1500)]
    dissector = dissector_of(DOTS)
    found = Conversation(dissector).send(*["a< START 3"][:has_game], *lines, "a< SHIFT 1 1").found()
    changes = found.events[-1].changes
    assert len(changes) < 1010
    state = state_of(found)
    part = state["games"]["1"] if has_game else state
    assert part["pawns"]["p2"] == {"x": 1498 - (1498 - 2) % 7, "y": 1}
    assert sum(map(len, part["at"].values())) == 1500


SILENT = "a silent event only puts values: remove"
MEANS = "has a meaning already: choose another name"
LIN = "lin is neither a field nor put by an event: did you mean line?"
MISTAKES = [
    ("silent = true\nlet", "silent = true\nsay = 'x'\nlet", f"{SILENT} say"),
    ("silent = true\nlet", "silent = true\nends = true\nlet", f"{SILENT} ends"),
    (
        "silent = true\nput",
        "silent = true\nsecret = true\nput",
        "a silent event only puts values: remove secret",
    ),
    ('let = { x = "line % size"', 'let = { line = "1"', f"line {MEANS}"),
    ('let = { x = "line % size"', 'let = { who = "1"', f"who {MEANS}"),
    ('let = { x = "line % size"', 'let = { "a b" = "1"', "a b is no name: use letters, digits and _"),
    (
        'let = { x = "line % size", y',
        'let = { x = "y", y',
        "y is neither a field nor put by an event: a text is written 'y', in quotes",
    ),
    ('"line // size" }\nunless', '"lin // size" }\nunless', LIN),
    ('"line", "last.0"]', '"lin", "last.0"]', LIN),
    ("line * 2", "lin * 2", LIN),
    ("max(size", "most(size", "there is no function most, only min, max, abs, known"),
    (
        "known(cells.{x},{0})",
        "known(cels)",
        "cels is neither a field nor put by an event: did you mean cells?",
    ),
]


@pytest.mark.parametrize(("right", "wrong", "problem"), MISTAKES)
def test_mistakes_have_a_place(right: str, wrong: str, problem: str) -> None:
    with pytest.raises(ProtocolFileError) as raised:
        read(DOTS.replace(right, wrong))
    (found, *_) = (mistake for mistake in raised.value.all if mistake.message == problem)
    marked = found.place.line[found.place.position :][: found.place.length]
    assert any(word in problem for word in re.findall(r"\w+", marked))


@pytest.mark.full(but=2)
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_properties_of_all_protocols(check: Check) -> None:
    lines = ["START 3", "LINE ann 4", "LINE bob 11", "SHIFT 1 2", "POS ann 1 2", "OVER ann"]
    check(dissector_of(DOTS), [f"{line}\n".encode() for line in lines], times(EXAMPLES // 2, quick=2))
