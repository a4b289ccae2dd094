"""Held messages edited field by field: what can be edited, what is asked for, and what does not fit."""

from __future__ import annotations

import json

import pytest
from held_messages import held_message

from kiebitz.cli.held_fields import answers, assigned, misfits, patience, receiver, sender, slots
from kiebitz.dissectors.model import Direction
from kiebitz.services.alteration.control_server import HeldMessage

ANNOUNCE = held_message(1)
MOVE = held_message(
    2,
    json.dumps({"Würfelwurf": {"Spieler": 7, "Wurf": [2, 5]}}).encode() + b"\n",
    "s2c",
    protocol="catan",
)


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (ANNOUNCE, {"dice": "4,2", "token": "token"}),
        (MOVE, {"Spieler": "7", "Wurf": "[2,5]"}),
        (held_message(3, b"PLAYER LOST;a b;MIA", "s2c"), {"names": '["a b"]', "reason": "MIA"}),
        (held_message(4, fields={}), {}),
    ],
)
def test_each_value_can_be_edited(message: HeldMessage, expected: dict[str, str]) -> None:
    assert {slot.field: slot.value for slot in slots(message)} == expected
    # As they are they fit, and nothing is assigned.
    assert misfits(message, expected) == {}
    assert assigned(message, expected) == ""


def test_a_message_of_very_many_values_is_edited_by_its_fields() -> None:
    many = held_message(1, fields={"board": [{"x": number} for number in range(100)], "token": "t"})
    assert [slot.field for slot in slots(many)] == ["board", "token"]
    few = held_message(1, fields={"board": [{"x": number} for number in range(2)], "token": "t"})
    assert [slot.field for slot in slots(few)] == ["board[0].x", "board[1].x", "token"]


@pytest.mark.parametrize(
    ("values", "sentences"),
    [
        ({"dice": "2,1"}, {}),
        ({"dice": "9,9"}, {"dice": "dice=9,9 does not fit"}),
        ({"dice": "", "token": "x"}, {"dice": "does not fit"}),
        ({"token": "a b"}, {"token": "a text with blanks must be quoted"}),
        ({"dice": "2,1 token=x"}, {"dice": "more than one value"}),
        ({"token": '"'}, {"token": "has no closing quote"}),
        ({"dise": "2,1"}, {"dise": "did you mean dice?"}),
    ],
)
def test_a_mismatch_is_reported_at_its_field(values: dict[str, str], sentences: dict[str, str]) -> None:
    found = misfits(ANNOUNCE, values)
    assert found.keys() == sentences.keys()
    for field, words in sentences.items():
        assert words in found[field]


def test_only_what_is_another_is_assigned() -> None:
    assert assigned(ANNOUNCE, {"dice": "2,1", "token": "token"}) == "dice=2,1"
    assert assigned(MOVE, {"Spieler": "8", "Wurf": "[1,1]"}) == "Spieler=8 Wurf=[1,1]"


@pytest.mark.parametrize(
    ("data", "direction", "who", "words"),
    [
        (b"ANNOUNCE;4,2;t", "c2s", "alice", ("alice", "the server", "the server waits 0.25 s")),
        (
            b"YOUR TURN;t",
            "s2c",
            None,
            ("the server", ":40000", "the server waits 0.25 s for the answer"),
        ),
        (b"SCORE;alice:1", "s2c", "alice", ("the server", "alice", "")),
    ],
)
def test_waiting_times_of_messages(
    data: bytes, direction: Direction, who: str | None, words: tuple[str, str, str]
) -> None:
    message = held_message(1, data, direction, who=who)
    assert (sender(message), receiver(message), patience(message)) == words


def test_possible_answers_by_sender() -> None:
    assert "REJECTED" in answers(ANNOUNCE)
    assert "ROLL" not in answers(ANNOUNCE)
    assert "ROLL" in answers(held_message(1, b"YOUR TURN;t", "s2c"))
