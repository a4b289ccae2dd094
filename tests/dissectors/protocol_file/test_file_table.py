"""Tables of protocol files: who sees an event, bounds, names with a meaning, values that are not shared."""

from __future__ import annotations

from conversation import sentences, state_of
from conversation_files import file_dissector
from file_conversations import Conversation, dissector_of, texts
from snapshots import DATA

from kiebitz.dissectors.protocol_file.dissector import FileDissector
from kiebitz.dissectors.protocol_file.game.state import MAX_KEYS

HEAD = 'protocol = "test"\nport = 4711\n'


def talk(text: str, *lines: str) -> tuple[FileDissector, Conversation]:
    dissector = dissector_of(HEAD + text)
    return dissector, Conversation(dissector).send(*lines)


def test_who_is_secret() -> None:
    dissector = file_dissector(DATA / "conversations" / "files_table.txt", "scores")
    lines = ("a> JOIN alice", "a< JOINED alice", "b> JOIN bob", "*< JOINED bob", "a< HAND A,B", "b< HAND C")
    first, second = Conversation(dissector).send(*lines).found().events[-2:]
    assert dissector.identity.seen_by(first, "alice") is not None
    assert dissector.identity.seen_by(second, "alice") is None
    assert second.changes == [(["private", "bob", "hand"], ["C"])]


def test_memory_is_bounded() -> None:
    text = """
[messages]
HAS = "s: name=player value=text"
[events]
has = { on = "HAS", put = { "players.{name}.value" = "value" } }
"""
    _, conversation = talk(text, *(f"a< HAS p{number} {'x' * 5000}" for number in range(MAX_KEYS + 10)))
    players = state_of(conversation.found())["players"]
    assert len(players) == MAX_KEYS
    assert all(len(player["value"]) < 100 for player in players.values())


def test_names_with_a_meaning_of_their_own_do_no_harm() -> None:
    text = """
format = "json"
name = "type"
[messages]
ask = "s*: known_to=any before=text called=any at=text part=text clause=text"
[events]
asked = { on = "ask", say = "{known_to} {before} {called} {at} {part} {clause}" }
[rules]
never = { on = "ask", unless = "at == 'x'", say = "{at} {part} {clause} {before} {known}" }
"""
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
    found = talk(text, "a< ROWS", "a< PUT x", "a< ROWS", "a< PUT y")[1].found()
    # Applied twice, as reading changes must not alter them.
    for _ in range(2):
        assert state_of(found) == {"games": {"2": {"cells": {"y": "y"}}}}
