"""Silent events of protocol files: their changes are in snapshots, and bounded."""

from __future__ import annotations

import msgspec
import pytest
from conversation import state_of
from conversation_files import file_dissector
from file_conversations import Conversation
from snapshots import DATA

from kiebitz.dissectors.game.context import SNAPSHOT_EVERY
from kiebitz.dissectors.game.state import State, apply

DOTS = file_dissector(DATA / "conversations" / "files_events.txt", "dots")


def test_snapshots_have_the_changes_of_silent_events() -> None:
    lines = ["a< START 3", *("a< LINE ann 4" for _ in range(SNAPSHOT_EVERY))]
    found = Conversation(DOTS).send(*lines).found()
    (snapshot,) = found.snapshots
    state: State = {}
    for event in found.events[:SNAPSHOT_EVERY]:
        apply(state, event.changes)
    assert msgspec.json.decode(snapshot.state_json) == state
    assert state["games"]["1"]["lines"] == SNAPSHOT_EVERY - 1


@pytest.mark.parametrize("has_game", [True, False])
def test_many_changes_without_an_event_are_bounded(has_game: bool) -> None:
    lines = [f"a< POS p{number % 7} {number} 1" for number in range(1500)]
    found = Conversation(DOTS).send(*["a< START 3"][:has_game], *lines, "a< SHIFT 1 1").found()
    changes = found.events[-1].changes
    assert len(changes) < 1010
    state = state_of(found)
    part = state["games"]["1"] if has_game else state
    assert part["pawns"]["p2"] == {"x": 1498 - (1498 - 2) % 7, "y": 1}
    assert sum(map(len, part["at"].values())) == 1500
