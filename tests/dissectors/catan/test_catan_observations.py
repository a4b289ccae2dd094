"""What is remembered of the versions of Catan's messages."""

from __future__ import annotations

from typing import Any

from kiebitz.dissectors.grammar.grammar import to_json
from kiebitz.dissectors.model import Message, Stream
from kiebitz.dissectors.protocols.catan import broadcast_copies as hearing
from kiebitz.dissectors.protocols.catan.broadcast_copies import PartialViews

STREAM = Stream(1, "tcp", "10.0.0.1:1", "10.0.0.2:3000", 0)


def told(name: str, fields: dict[str, Any]) -> Message:
    return Message(1, STREAM, "s2c", 0, name, fields, to_json(fields), 0, 0)


def test_the_same_words_of_two_messages_are_two_versions() -> None:
    versions = PartialViews()
    fields = {"Spieler": 1, "Rohstoffe": {"Holz": 1}}
    gain, cost = (versions.of(told(name, fields)) for name in ("Ertrag", "Kosten"))
    assert gain != cost
    assert versions.of(told("Ertrag", dict(fields))) is gain


def test_so_many_are_remembered_and_none_that_is_long() -> None:
    versions = PartialViews()
    for number in range(3 * hearing._MAX_VERSIONS):
        versions.of(told("Ertrag", {"Spieler": number, "Rohstoffe": 1}))
        assert len(versions._lately) <= hearing._MAX_VERSIONS
    chat = told("Chatnachricht", {"Absender": 1, "Nachricht": "x" * 600})
    before = len(versions._lately)
    assert versions.of(chat) == versions.of(chat)
    assert len(versions._lately) == before
