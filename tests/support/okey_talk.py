"""Steps of a script, fed to an inspector."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from okey_script import Move, Script, Step

from kiebitz.dissectors.inspection.inspector import Inspector
from kiebitz.dissectors.model import Chunk, Direction, End, Event, Findings, Gap, Ids, Stream
from kiebitz.dissectors.protocols.okey.dissector import OKEY

SERVER = "10.0.0.9:8090"


class Talk:
    """An inspector and the connections of clients by name, at one server."""

    def __init__(self) -> None:
        self.inspector = Inspector([OKEY], Ids(), {("tcp", 8090): OKEY})
        self.streams: dict[str, Stream] = {}
        self.offsets: Counter[tuple[str, Direction]] = Counter()
        self.now_ns = 0

    def stream(self, client: str) -> Stream:
        if client not in self.streams:
            number = len(self.streams) + 1
            self.streams[client] = Stream(number, "tcp", f"10.0.0.{number}:5", SERVER, self.now_ns)
        return self.streams[client]

    def say(self, client: str, direction: Direction, data: bytes) -> None:
        self.now_ns += 1_000_000
        stream = self.stream(client)
        self.inspector.feed(Chunk(stream, direction, self.now_ns, self.offsets[client, direction], data))
        self.offsets[client, direction] += len(data)

    def lose(self, client: str, direction: Direction, length: int) -> None:
        self.now_ns += 1_000_000
        stream = self.stream(client)
        self.inspector.feed(Gap(stream, direction, self.now_ns, self.offsets[client, direction], length))
        self.offsets[client, direction] += length

    def wait(self, seconds: float) -> None:
        self.now_ns += int(seconds * 1e9)

    def close(self, reason: str = "end") -> Findings:
        for stream in self.streams.values():
            if stream.closed_ns is None:
                self.inspector.feed(End(stream, self.now_ns, reason))
        self.inspector.finish()
        return self.inspector.drain()


def heard(steps: Iterable[Step], clients: Callable[[str], bool] = lambda client: True) -> Findings:
    """Inspect the conversations of some clients."""
    talk = Talk()
    for step in steps:
        if clients(step.client):
            talk.say(step.client, step.direction, step.data)
    return talk.close()


def events_of(found: Findings, *kinds: str) -> list[Event]:
    return [event for event in found.events if event.kind in kinds]


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
