"""RoboRally by a protocol file: a recorded game of a server of a software lab with its own AIs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command import ROOT, kiebitz

CAPTURE = str(ROOT / "captures" / "roborally-1.pcap.gz")
FILE = str(ROOT / "docs" / "examples" / "roborally.toml")


def listed(command: str, *options: str) -> Any:
    done = kiebitz(command, CAPTURE, "-P", FILE, *options, "--json")
    assert done.status == 0, done.err
    return json.loads(done.out)


@pytest.mark.full
def test_every_message_is_read_and_nothing_is_reported() -> None:
    assert len(listed("messages")) == 210
    done = kiebitz("check", CAPTURE, "-P", FILE)
    assert (done.status, done.out) == (0, "no errors, no warnings, no notes\n")


def test_events_name_players_and_not_their_numbers() -> None:
    done = kiebitz("events", CAPTURE, "-P", FILE)
    head, *lines = done.out.splitlines()
    sentences = [line[head.index("what happened") :] for line in lines]
    assert sentences[:5] == [
        "SimpleAI_1 joins",
        "SimpleAI_1 connects",
        "SimpleAI_1 is ready",
        "SimpleAI_2 is told: Figure is already taken",
        "SimpleAIModel joins",
    ]
    assert "SimpleAIModel (3) starts at 1,5" in sentences
    assert sentences[-1] == "SimpleAI_1 is gone: remove"


def test_games_have_the_players_as_their_label() -> None:
    first, second = listed("games")
    assert (first["label"], second["label"]) == (
        "SimpleAI_1 – SimpleAIModel",
        "SimpleAI_1 – SimpleAIModel – SimpleAIModel (3)",
    )


def test_the_board_shows_the_map_and_the_robots() -> None:
    done = kiebitz("state", CAPTURE, "-P", FILE, "--at", "4.7s")
    board = [line for line in done.out.splitlines() if line.startswith("│")]
    assert board[3].startswith("│ S1 │    │    │    │ »  │ »  │ O  │ #  │ #  │")
    assert board[6].startswith("│ S2 │    │")
    assert "▶ SimpleAIModel" in done.out


@pytest.mark.full(but=1)
@pytest.mark.parametrize(
    ("player", "other"), [("SimpleAI_1", "SimpleAIModel"), ("SimpleAIModel", "SimpleAI_1")]
)
def test_a_hand_is_known_to_its_player_only(player: str, other: str) -> None:
    events = [event for event in listed("events", "--as", player) if event["kind"] == "dealt"]
    assert [event["actor"] for event in events] == [player]
    state = json.dumps(listed("state", "--as", player, "--at", "4.7s"))
    assert '"hand"' in state
    assert f'"private": {{"{other}"' not in state


@pytest.mark.full
def test_the_picture_can_be_drawn(tmp_path: Path) -> None:
    done = kiebitz("state", CAPTURE, "-P", FILE, "--svg", str(tmp_path / "board.svg"))
    assert done.status == 0, done.err
    assert "SimpleAI_1" in (tmp_path / "board.svg").read_text()


def test_statistics_count_events_by_player() -> None:
    done = kiebitz("stats", CAPTURE, "-P", FILE)
    assert done.status == 0
    assert "refused" in done.out
    assert "Time for a move" in done.out


@pytest.mark.full
def test_the_session_equals_itself_and_its_anonymous_copy_has_as_many_events(tmp_path: Path) -> None:
    assert kiebitz("diff", CAPTURE, CAPTURE, "-P", FILE).status == 0
    copy = str(tmp_path / "copy.pcapng")
    done = kiebitz("export", CAPTURE, "-P", FILE, "-T", "pcapng", "--anonymize", "-o", copy)
    assert done.status == 0, done.err
    assert b"SimpleAI" not in Path(copy).read_bytes()
    kinds = [event["kind"] for event in listed("events")]
    done = kiebitz("events", copy, "-P", FILE, "--json")
    assert [event["kind"] for event in json.loads(done.out)] == kinds


@pytest.mark.full
def test_a_dropped_message_changes_the_game() -> None:
    numbers = [one["number"] for one in listed("messages", "-Y", 'msg == "StartingPointTaken"')]
    done = kiebitz("whatif", CAPTURE, "-P", FILE, *(f"--drop={number}" for number in numbers[:3]))
    assert done.status == 3
    assert "starts at" in done.out
