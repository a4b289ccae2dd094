"""A player's view of a game that a protocol file describes: `--as` shows no secrets of others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command import kiebitz
from file_conversations import Conversation, dissector_of

from kiebitz.storage.recording.recorder import Recorder

FILE = """
protocol = "cards"
[messages]
JOIN = "c: name=player"
JOINED = "s*: name=player < JOIN"
START = "s*:"
HAND = "s: cards=[text]"
PLAYED = "s*: name=player card=text"
[identity]
login = "JOIN"
[events]
joined = { on = "JOINED", say = "{name} joins", put = { "players.{name}.cards" = 0 } }
started = { on = "START", opens = true, say = "a game begins" }
dealt = { on = "HAND", secret = true, say = "{who} has {cards}", put = { "private.{who}.hand" = "cards" } }
played = { on = "PLAYED", say = "{name} plays {card}", put = { top = "card" } }
ace = { on = "PLAYED", when = "card == 'A'", say = "an ace" }
"""
LINES = (
    *("a> JOIN alice", "a< JOINED alice", "b> JOIN bob", "*< JOINED bob", "*< START"),
    *("a< HAND A,B", "b< HAND C", "*< PLAYED alice A"),
)


def recorded(folder: Path, text: str, *lines: str) -> tuple[str, str]:
    """Return a database and the protocol file."""
    database, file = str(folder / "cards.db"), folder / "cards.toml"
    file.write_text(text)
    dissector = dissector_of(text)
    recorder = Recorder(database, "import", "cards", decode_as={("tcp", 4711): dissector})
    recorder.record(Conversation(dissector).send(*lines).items)
    recorder.close()
    recorder.connection.close()
    return database, str(file)


@pytest.fixture
def session(tmp_path: Path) -> tuple[str, str]:
    return recorded(tmp_path, FILE, *LINES)


def seen(session: tuple[str, str], command: str, *options: str) -> Any:
    done = kiebitz(command, session[0], "-P", session[1], *options, "--json")
    assert done.status == 0, done.err
    return json.loads(done.out)


@pytest.mark.parametrize(("player", "hand"), [("alice", ["A", "B"]), ("bob", ["C"])])
def test_a_player_knows_no_hand_but_its_own(session: tuple[str, str], player: str, hand: list[str]) -> None:
    events = seen(session, "events", "--as", player)
    assert [event["actor"] for event in events if event["kind"] == "dealt"] == [player]
    # What follows from the same message is known to whoever has seen it.
    assert [event["kind"] for event in events][-2:] == ["played", "ace"]
    (table,) = seen(session, "state", "--as", player)
    assert table["state"]["private"] == {player: {"hand": hand}}


def test_the_whole_state_has_all_hands(session: tuple[str, str]) -> None:
    (table,) = seen(session, "state")
    assert [*table["state"]["private"]] == ["alice", "bob"]
    assert table["state"]["games"] == {"1": {"top": "A"}}


RETURNS = ("a.", "c> JOIN alice", "c< JOINED alice", "c< HAND D")


@pytest.mark.parametrize(
    ("same", "hands"), [("address", {"alice": 2}), ("connection", {"alice": 1, "alice (2)": 1})]
)
def test_a_client_that_comes_back(same: str, hands: dict[str, int], tmp_path: Path) -> None:
    """The file says whether the server recognises a player by name and address."""
    text = FILE.replace('login = "JOIN"', f'login = "JOIN"\nsame_player = "{same}"')
    session = recorded(tmp_path, text, *LINES, *RETURNS)
    for player, count in hands.items():
        events = seen(session, "events", "--as", player)
        assert [event["kind"] for event in events].count("dealt") == count
    unknown = kiebitz("events", session[0], "-P", session[1], "--as", "alice (2)")
    assert unknown.status == (same == "address")
