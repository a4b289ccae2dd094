"""Driver that passes scripted datagrams to a table, without sockets, files or clocks."""

from __future__ import annotations

from kiebitz.dissectors.game.state import State, apply
from kiebitz.dissectors.inspection.inspector import Inspector
from kiebitz.dissectors.model import Chunk, Diagnostic, Direction, End, Event, Findings, Game, Ids, Stream
from kiebitz.dissectors.protocols.maexchen.dissector import MAEXCHEN

MS = 1_000_000


class Play:
    """A server at port 9000 and its clients, by name. Each datagram comes 1 ms after the one before."""

    def __init__(self) -> None:
        self.inspector = Inspector([MAEXCHEN], Ids(), {("udp", 9000): MAEXCHEN})
        self.now_ns = 0
        self._streams: dict[str, Stream] = {}
        self._offsets: dict[tuple[str, Direction], int] = {}
        self.found = Findings()

    def stream(self, client: str) -> Stream:
        if client not in self._streams:
            number = len(self._streams) + 1
            address = f"127.0.0.1:{40_000 + number}"
            self._streams[client] = Stream(number, "udp", address, "127.0.0.1:9000", self.now_ns)
        return self._streams[client]

    def client(self, name: str, text: str, after_ms: float = 1) -> None:
        """A client sends."""
        self._send(name, "c2s", text, after_ms)

    def server(self, names: str, text: str, after_ms: float = 1) -> None:
        """Send a copy of a message to each of the clients, whose names are separated by blanks."""
        for name in names.split():
            self._send(name, "s2c", text, after_ms)
            after_ms = 0.1

    def close(self, name: str) -> None:
        self.inspector.feed(End(self.stream(name), self.now_ns, "idle"))

    def register(self, *names: str) -> None:
        for name in names:
            self.client(name, f"REGISTER;{name}")
            self.server(name, "REGISTERED")

    def start(self, number: int, *players: str) -> None:
        """A round of the newest dialect starts; tokens are the player's name and `-join`."""
        for name in players:
            self.server(name, f"ROUND STARTING;{name}-join-{number}")
            self.client(name, f"JOIN;{name}-join-{number}")
        self.server(" ".join(players), f"ROUND STARTED;{number};{','.join(players)}", after_ms=250)

    def turn(self, everybody: str, name: str, rolled: str, announced: str, token: str) -> None:
        """Play one whole turn: question, roll, announcement."""
        self.server(name, f"YOUR TURN;{token}-turn")
        self.client(name, f"ROLL;{token}-turn")
        self.server(everybody, f"PLAYER ROLLS;{name}")
        self.server(name, f"ROLLED;{rolled};{token}-roll")
        self.client(name, f"ANNOUNCE;{announced};{token}-roll")
        self.server(everybody, f"ANNOUNCED;{name};{announced}")

    def _send(self, name: str, direction: Direction, text: str, after_ms: float) -> None:
        self.now_ns += round(after_ms * MS)
        data = text.encode()
        offset = self._offsets.get((name, direction), 0)
        self._offsets[name, direction] = offset + len(data)
        self.inspector.feed(Chunk(self.stream(name), direction, self.now_ns, offset, data))

    def _drain(self) -> Findings:
        new = self.inspector.drain()
        for name in Findings.__struct_fields__:
            getattr(self.found, name).extend(getattr(new, name))
        return self.found

    @property
    def events(self) -> list[Event]:
        return self._drain().events

    @property
    def told(self) -> list[str]:
        """Return the events as sentences."""
        return [MAEXCHEN.presentation.describe(event) for event in self.events]

    @property
    def diagnostics(self) -> list[Diagnostic]:
        """Return all diagnostics but notes, with the last verdicts."""
        self.inspector.finish()
        return [diagnostic for diagnostic in self._drain().diagnostics if diagnostic.severity != "note"]

    @property
    def notes(self) -> list[Diagnostic]:
        return [diagnostic for diagnostic in self._drain().diagnostics if diagnostic.severity == "note"]

    @property
    def games(self) -> list[Game]:
        """Each game's last reported state."""
        return list({game.id: game for game in self._drain().games}.values())

    @property
    def state(self) -> State:
        state: State = {}
        for event in self.events:
            apply(state, event.changes)
        return state
