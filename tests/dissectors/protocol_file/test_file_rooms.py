"""Several games at once in protocol files: their number is bounded."""

from __future__ import annotations

from conversation import state_of
from conversation_files import file_dissector
from file_conversations import Conversation
from snapshots import DATA

from kiebitz.dissectors.model import Findings
from kiebitz.dissectors.protocol_file.game.players import MAX_ROOMS


def talk(*lines: str) -> Findings:
    dissector = file_dissector(DATA / "conversations" / "files_rooms.txt", "rooms")
    return Conversation(dissector).send("a> LOGIN ann", "a< WELCOME ann", *lines).found()


def test_rooms_are_bounded() -> None:
    lines = [f"a< JOINED {number}" for number in range(MAX_ROOMS + 20)]
    state = state_of(talk(lines[0], "a< START ann", *lines[1:]))
    assert len(state["rooms"]) == MAX_ROOMS - 1
    assert "1" in state["games"]


def test_games_are_bounded() -> None:
    starts = [line for number in range(MAX_ROOMS + 1) for line in (f"a< JOINED {number}", "a< START ann")]
    found = talk(*starts)
    assert len(state_of(found)["games"]) == MAX_ROOMS
    assert sum(game.ended_ns is not None for game in found.games) == 2
