"""Steps of a script, fed to an inspector."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from conversation import Conversation, events_of
from okey_script import Move, Script, Step

from kiebitz.dissectors.model import Findings
from kiebitz.dissectors.protocols.okey.dissector import OKEY


class Talk(Conversation):
    """Clients of an Okey server, by name."""

    def __init__(self) -> None:
        super().__init__(OKEY, 8090)


def heard(steps: Iterable[Step], clients: Callable[[str], bool] = lambda client: True) -> Findings:
    """Inspect the conversations of some clients."""
    talk = Talk()
    talk.play(step for step in steps if clients(step.client))
    return talk.close("end")


def moves_of(found: Findings) -> list[Move]:
    """Return the draws and puts that were found, with their lobbies."""
    lobbies = {game.id: int(game.label.removeprefix("lobby ")) for game in found.games}
    moves = []
    for event in events_of(found, "drew", "put"):
        assert event.game_id is not None
        data: dict[str, Any] = event.data
        moves.append(Move(lobbies[event.game_id], data["seat"], event.kind, data.get("stack"), data["tile"]))
    return moves


def four(script: Script, number: int, *names: str) -> None:
    """Four players log in, meet in a lobby and begin."""
    script.login(*names)
    script.join(number, *names)
    script.ready(*names)
