"""`kiebitz state`: through the command."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from altered_sessions import recorded
from command import ROOT
from file_conversations import Conversation, dissector_of

from kiebitz.cli.main import run
from kiebitz.storage.recording.recorder import Recorder

CAPTURES = ROOT / "captures"
TINY = str(CAPTURES / "maexchen-head-tiny.pcap")

Capture = pytest.CaptureFixture[str]


def states(capsys: Capture, *arguments: str) -> Any:
    assert run(["state", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_json_has_each_table_and_its_moment(capsys: Capture) -> None:
    (row,) = states(capsys, TINY, "--at", "#14")
    assert (row["table"], row["protocol"], row["server"]) == (1, "maexchen", "127.0.0.1:9000")
    assert (row["event"], row["time"]) == (14, 1.384346)
    game = row["state"]["games"]["1"]
    assert game["rolling"] == "carl"
    assert game["private"] == {"carl": {"dice": "3,3"}}


def test_as_a_player_hides_what_others_rolled(capsys: Capture) -> None:
    (others,) = states(capsys, TINY, "--at", "#14", "--as", "alice")
    assert "private" not in others["state"]["games"]["1"]
    (own,) = states(capsys, TINY, "--at", "#14", "--as", "carl")
    assert own["state"]["games"]["1"]["private"] == {"carl": {"dice": "3,3"}}
    assert run(["state", TINY, "--at", "#14", "--as", "alice"]) == 0
    drawn = capsys.readouterr().out
    assert "3,3" not in drawn
    assert "? ?" in drawn


def test_as_an_unknown_player_suggests_the_nearest_names(capsys: Capture) -> None:
    assert run(["state", TINY, "--as", "alise"]) == 1
    assert "did you mean alice?" in capsys.readouterr().err


def test_the_last_picture_stays_until_the_next_game_begins(capsys: Capture) -> None:
    okey = str(CAPTURES / "okey-seed-game-win.pcap.gz")
    for more in ([], ["--as", "istref"]):
        assert run(["state", okey, *more]) == 0
        drawn = capsys.readouterr().out
        assert "lobby 1" in drawn
        assert "istref" in drawn
    # It is no part of the state: no game is on.
    (row,) = states(capsys, okey)
    assert row["state"]["games"] == {}


NOUGHTS = """protocol = "noughts"
port = 4711
[messages]
JOIN = "c: name=player"
JOINED = "s: name=player < JOIN"
START = "s*:"
PUT = "s*: name=player x=0..2 y=0..2"
HAND = "s: card=text"
WON = "s*: name=player x=0..2 y=0..2"
[identity]
login = "JOIN"
[events]
joined = { on = "JOINED", say = "{name} joins" }
started = { on = "START", opens = true, say = "a game begins", put = { cells = {} } }
put = { on = "PUT", say = "{name} puts", put = { "cells.{x},{y}" = "name" } }
hand = { on = "HAND", say = "a card", put = { "cells.{2},{2}" = "card" } }
won = { on = "WON", say = "{name} wins", ends = true, put = { "cells.{x},{y}" = "name" } }
[board.grid]
cells = "cells"
width = 3
height = 3
symbols = { ann = "X", bob = "O", secret = "S" }
"""
GAME = (
    *("a> JOIN ann", "a< JOINED ann", "b> JOIN bob", "b< JOINED bob", "*< START", "*< PUT ann 0 0"),
    *("a< HAND secret", "*< PUT bob 1 0", "*< WON ann 0 2", "a> JOIN ann", "a< JOINED ann"),
)


@pytest.mark.usefixtures("protocol_files_forgotten")
@pytest.mark.parametrize(
    ("options", "rows"),
    [
        ([], ["X O .", ". . .", "X . S"]),
        (["--game", "1"], ["X O .", ". . .", "X . S"]),
        # What another player alone knew is not shown.
        (["--as", "bob"], ["X O .", ". . .", "X . ."]),
        (["--as", "bob", "--game", "1"], ["X O .", ". . .", "X . ."]),
        (["--at", "#6"], ["X O .", ". . .", ". . S"]),
    ],
)
def test_the_last_picture_has_the_last_move(
    tmp_path: Path, capsys: Capture, options: list[str], rows: list[str]
) -> None:
    file, path = tmp_path / "noughts.toml", tmp_path / "noughts.db"
    file.write_text(NOUGHTS)
    talk = Conversation(dissector_of(NOUGHTS)).send(*GAME)
    recorder = Recorder(str(path), "relay", "made up", started_ns=0)
    recorder.record(talk.items)
    recorder.close()
    assert run(["state", str(path), "-P", str(file), *options]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if line[:1] == "│"]
    cells = [[cell.strip() or "." for cell in line.split("│")[1:4]] for line in lines]
    assert [" ".join(row) for row in cells] == rows


def test_game_that_is_over_is_drawn_as_it_ended(capsys: Capture) -> None:
    assert run(["state", TINY, "--game", "1"]) == 0
    drawn = capsys.readouterr().out
    assert "alice lost" in drawn
    assert "does not beat 3,3" in drawn
    assert "ANNOUNCED_LOSING_DICE" not in drawn, "a board has plain words"
    assert "0 · lost" in drawn


def test_time_and_event_name_the_same_moment(capsys: Capture) -> None:
    assert states(capsys, TINY, "--at", "1.384346s") == states(capsys, TINY, "--at=#14")
    assert states(capsys, TINY) == states(capsys, TINY, "--at", "end")
    assert states(capsys, TINY, "--at", "0")[0]["state"] == {}


@pytest.mark.parametrize(
    ("arguments", "status", "told"),
    [
        (["--at", "noon"], 2, "'noon' is not a position"),
        (["--at", "#99"], 1, "its events are #1 to #26"),
        (["--game", "9"], 1, "it has games 1 to 2"),
        (["--game", "2", "--at", "0.5s"], 1, "it runs from 1.401s (#22)"),
    ],
)
def test_moment_that_is_not_there(capsys: Capture, arguments: list[str], status: int, told: str) -> None:
    assert run(["state", TINY, *arguments]) == status
    captured = capsys.readouterr()
    assert told in captured.err
    assert captured.out == ""


def test_session_without_a_game_is_a_sentence(capsys: Capture, tmp_path: Path) -> None:
    database = str(tmp_path / "empty.db")
    Recorder(database, "relay", "nothing").close()
    assert run(["state", database]) == 0
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "kiebitz: no game recognised in this session\n")
    assert states(capsys, database) == []


def test_a_chat_is_shown_as_it_was_sent(tmp_path: Path, capsys: Capture) -> None:
    """Text like a terminal library's name of an emoji stays text."""
    known = recorded("okey-head-game-win.pcap.gz")
    said = [
        dataclasses.replace(one, data=one.data.replace(b"gg", b":sob:")) if one.kind == "chat" else one
        for one in known.said
    ]
    database = known.with_said(said).write(tmp_path / "chat.db")
    assert run(["events", database, "-Y", 'kind == "chat"', "--json"]) == 0
    chat = next(event for event in json.loads(capsys.readouterr().out) if "sob" in event["sentence"])
    assert run(["state", database, f"--at=#{chat['id']}"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == chat["sentence"]
    assert ":sob:" in chat["sentence"]
