"""A server and its clients in memory: messages arrive a millisecond later and are kept.

The same programs with the same seeds play the same game.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.inspection.inspector import Inspector
from kiebitz.dissectors.model import Chunk, Direction, End, Findings, Ids, Item, Stream
from peers.program import BREATH_S, Link, Player, Server

STEP_S = 0.001

FIRST_PORT = 7001

MOST_MESSAGES = 200_000
"""A game that does not end by then never does."""

Spoils = Callable[["Seat", bytes], list[bytes]]
"""Function that replaces a client's message."""


class Seat:
    """A client's connection: its messages in both directions, and whether the server closed it."""

    def __init__(
        self, bench: Bench, number: int, host: str, player: Player | None, spoils: Spoils | None, door: int
    ) -> None:
        self.name = f"{host}:{40_000 + number}"
        self.bench = bench
        self.door = door
        self.who = player.setup.name if player is not None else ""
        self.player = player
        self.spoils = spoils
        self.said: list[bytes] = []
        self.heard: list[bytes] = []
        self.is_closed = False

    @property
    def text(self) -> str:
        """All received text."""
        return b"".join(self.heard).decode("utf-8", "replace")


class Bench:
    """Carries bytes between a server and clients until all are silent."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.now = 0.0
        self.seats: list[Seat] = []
        self._links: dict[Seat, Link] = {}
        self._seat_of: dict[Link, Seat] = {}
        self._is_settling = False
        self._record: list[tuple[float, Seat, Direction, bytes | None]] = []

    # Who is there.

    def connect(
        self,
        player: Player | None = None,
        host: str = "127.0.0.1",
        spoils: Spoils | None = None,
        door: int = 0,
    ) -> Seat:
        """Add a client; without a player it only sends what a test demands."""
        seat = Seat(self, len(self.seats), host, player, spoils, door)
        self.seats.append(seat)
        link = Link(len(self.seats), host, self.server.outbox, door)
        self._links[seat] = link
        self._seat_of[link] = seat
        self._pass()
        if self.server.transport == "tcp":
            self.server.greet(link)
        if player is not None:
            player.connected()
        self.settle()
        return seat

    def say(self, seat: Seat, *pieces: bytes) -> list[bytes]:
        """Send a client's message, and return the answers."""
        before = len(seat.heard)
        for data in pieces:
            self._to_server(seat, data)
            self.settle()
        return seat.heard[before:]

    def whisper(self, seat: Seat, data: bytes) -> None:
        """Send a client's message while others communicate, without delivering anything yet."""
        self._to_server(seat, data)

    def half_close(self, seat: Seat) -> None:
        """A client will say nothing more."""
        self._record.append((self.now, seat, "c2s", None))
        self.server.end(self._links[seat])
        self.settle()

    def reset(self, seat: Seat) -> None:
        """A client's connection is gone."""
        self._record.append((self.now, seat, "c2s", None))
        seat.is_closed = True
        link = self._links[seat]
        link.is_open = False
        self.server.lose(link)
        self.settle()

    # What happens.

    def settle(self) -> None:
        """Deliver bytes until all sides are idle; timers are not awaited."""
        if self._is_settling:
            # A client connects, or sends, while others communicate.
            return
        self._is_settling = True
        try:
            while self._carry():
                pass
        finally:
            self._is_settling = False

    def _carry(self) -> bool:
        moved = False
        while self.server.outbox:
            link, data = self.server.outbox.pop(0)
            moved = True
            if link is None:
                self._pass(BREATH_S)
                continue
            seat = self._seat_of[link]
            self._to_client(seat, data)
        for seat in [*self.seats]:
            player = seat.player
            if player is None or seat.is_closed:
                continue
            while player.says and not seat.is_closed:
                moved = True
                data = player.says.pop(0)
                for piece in seat.spoils(seat, data) if seat.spoils is not None else [data]:
                    self._to_server(seat, piece)
            if player.over and not seat.is_closed:
                moved = True
                seat.player = None
                self.reset(seat)
                continue
            if player.calls:
                moved = True
                player.calls = False
                seat.player = None
                self.half_close(seat)
                self.connect(player, seat.name.rpartition(":")[0], seat.spoils, door=1)
        return moved

    def run(self, seconds: float, until: Callable[[], bool] = lambda: False) -> None:
        """Let this much time pass, or until a condition holds."""
        end = self.now + seconds
        programs = [self.server, *(seat.player for seat in self.seats if seat.player is not None)]
        self.settle()
        while not until() and not self.server.over:
            due = min((program.due for program in programs if program.due is not None), default=end)
            if due >= end:
                self.now = end
                break
            self._pass(max(due - self.now, 0))
            for program in programs:
                program.run_until(self.now)
            self.settle()

    def _pass(self, seconds: float = STEP_S) -> None:
        self.now += seconds

    def _to_server(self, seat: Seat, data: bytes) -> None:
        if seat.is_closed:
            return
        assert len(self._record) < MOST_MESSAGES, "they play on for ever"
        self._pass()
        self._record.append((self.now, seat, "c2s", data))
        seat.said.append(data)
        self.server.now = self.now
        self.server.hear(self._links[seat], data)

    def _to_client(self, seat: Seat, data: bytes | None) -> None:
        self._pass(STEP_S / 100)
        self._record.append((self.now, seat, "s2c", data))
        if data is None:
            seat.is_closed = True
            if seat.player is not None:
                seat.player.over = True
            return
        seat.heard.append(data)
        if seat.player is not None:
            seat.player.now = self.now
            seat.player.hear(data)

    # What Kiebitz makes of it.

    def items(self) -> Iterator[Item]:
        """Yield the conversation as a relay records it."""
        ports = range(FIRST_PORT, FIRST_PORT + self.server.doors)
        streams = {
            seat: Stream(number, self.server.transport, seat.name, f"127.0.0.1:{ports[seat.door]}", 0)
            for number, seat in enumerate(self.seats, 1)
        }
        offsets: dict[tuple[Seat, Direction], int] = {}
        ended: set[Seat] = set()
        for now, seat, direction, data in self._record:
            now_ns = int(now * 1e9)
            if data is None:
                if seat not in ended:
                    ended.add(seat)
                    yield End(streams[seat], now_ns, "closed")
                continue
            if seat in ended:
                continue
            at = offsets.get((seat, direction), 0)
            offsets[seat, direction] = at + len(data)
            yield Chunk(streams[seat], direction, now_ns, at, data)
        for seat, stream in streams.items():
            if seat not in ended:
                yield End(stream, int(self.now * 1e9), "end")

    def decode_as(self, dissector: Dissector) -> dict[tuple[str, int], Dissector]:
        """Return the protocol of the server's ports."""
        ports = range(FIRST_PORT, FIRST_PORT + self.server.doors)
        return {(self.server.transport, port): dissector for port in ports}

    def findings(self, dissector: Dissector) -> Findings:
        """Inspect the conversation."""
        inspector = Inspector([dissector], Ids(), self.decode_as(dissector))
        for item in self.items():
            inspector.feed(item)
        inspector.finish()
        return inspector.drain()
