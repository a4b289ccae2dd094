"""Requests and their answers in protocol files: open requests are bounded."""

from __future__ import annotations

from conversation import sentences
from conversation_files import file_dissector
from file_conversations import Conversation, texts
from snapshots import DATA

from kiebitz.dissectors.protocol_file.game.requests import MAX_BYTES, MAX_OPEN

GUESSES = file_dissector(DATA / "conversations" / "files_requests.txt", "guesses")
JOINED = ("a> JOIN ann", "a< JOINED ann", "b> JOIN bob", "*< JOINED bob")


def test_open_requests_are_bounded() -> None:
    lines = [f"a> GUESS x{number} {number}" for number in range(MAX_OPEN + 1)]
    found = Conversation(GUESSES).send(*JOINED, *lines, "a< MISS 9", "a< MISS 9").found()
    # The first ones are forgotten, so that nothing is certain.
    assert sentences(GUESSES, found)[-1] == f"ann: no x{MAX_OPEN}"
    assert texts(found) == []


def test_the_fields_of_open_requests_are_bounded() -> None:
    letter = "x" * 200_000
    count = MAX_BYTES // len(letter)
    lines = [f"a> GUESS {letter} {number}" for number in range(count + 1)]
    answers = [f"a< MISS {number + 1}" for number in range(count + 1)]
    found = Conversation(GUESSES).send(*JOINED, *lines, *answers).found()
    assert len(texts(found)) == count
