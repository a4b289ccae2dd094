"""Base of all servers and players: they process events, and put what they send into an outbox.

They have no socket, thread or clock. The driver passes the time to `run_until`.
"""

from __future__ import annotations

import heapq
import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count

from kiebitz.dissectors.conformance.bots import TargetMessage
from kiebitz.dissectors.model import Transport

LONGEST = 262_144
"""Bytes of a message without an end that are kept; who sends more is no player."""

MOST_CLIENTS = 64

BREATH_S = 0.003
"""Pause in seconds after a broadcast, so that all observers agree on the order."""


@dataclass(frozen=True)
class Setup:
    """The settings of a program.

    `games` is the number of games, 0 for no limit; a server waits for `players`. `points` wins a game of
    Catan; `url` is the game server of CGML. `window` is a Mäxchen server's time limit for an answer in
    seconds. A program stops when a message that matches `aim` is the next to send. Bots named as in `company`
    play at a server without a connection.
    """

    fault: str = ""
    seed: int = 1
    games: int = 0
    name: str = "Anna"
    players: int = 0
    points: int = 10
    url: str = ""
    window: float = 1.0
    aim: TargetMessage | None = None
    company: Sequence[str] = ()


class Died(Exception):
    """A planted fault ends the program; nothing catches it."""


class TooLong(Exception):
    """A message has no end."""


class Lines:
    """Bytes of a stream, cut into lines without their ends: LF or CR LF, and CR alone where `bare_cr`.

    A `slow` one looks at all that it has once more with each byte.
    """

    def __init__(self, bare_cr: bool = False, slow: bool = False) -> None:
        self.rest = b""
        self._bare_cr = bare_cr
        self._slow = slow
        self._after_cr = False

    def feed(self, data: bytes) -> list[bytes]:
        """Return the lines that are whole now. Raises TooLong."""
        if self._bare_cr:
            data = self._without_bare_cr(data)
        lines: list[bytes] = []
        for piece in (data[at : at + 1] for at in range(len(data))) if self._slow else (data,):
            *whole, last = piece.split(b"\n")
            if whole:
                lines += [self.rest + whole[0], *whole[1:]]
                self.rest = last
            else:
                # Bytes that are put together one by one are copied again and again.
                self.rest = self.rest + last
        if len(self.rest) > LONGEST:
            raise TooLong
        return [line.removesuffix(b"\r") for line in lines]

    def _without_bare_cr(self, data: bytes) -> bytes:
        if self._after_cr and data.startswith(b"\n"):
            data = data[1:]
        self._after_cr = data.endswith(b"\r") if data else self._after_cr
        return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")


class Link:
    """A client, as a server sees it: a connection, or over UDP an address; `door` is the port it came to."""

    def __init__(self, number: int, host: str, outbox: Outbox, door: int = 0) -> None:
        self.number = number
        self.host = host
        self.door = door
        self.is_open = True
        self._outbox = outbox

    def send(self, data: bytes) -> None:
        if self.is_open:
            self._outbox.append((self, data))

    def close(self) -> None:
        """Close the connection once all is sent."""
        if self.is_open:
            self.is_open = False
            self._outbox.append((self, None))


Outbox = list[tuple[Link | None, bytes | None]]
"""Bytes to send, in order, by receiver. None as bytes closes the connection; None as link is a pause."""


class Program:
    """Chance, the time, and what is to be done later."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.random = random.Random(f"{setup.seed} {setup.name}")
        self.now = 0.0
        self.games = 0
        """Number of finished games."""
        self.over = False
        """True once it has played enough."""
        self._later: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count()

    def has(self, fault: str) -> bool:
        """Return whether this fault is planted in it."""
        return self.setup.fault == fault

    def text(self, data: bytes) -> str:
        """Decode bytes as UTF-8, with U+FFFD for invalid ones."""
        if self.has("dies-on-bad-utf8"):
            try:
                data.decode()
            except UnicodeDecodeError as problem:
                raise Died from problem
        return data.decode("utf-8", "replace")

    def after(self, seconds: float, act: Callable[[], None]) -> None:
        heapq.heappush(self._later, (self.now + seconds, next(self._numbers), act))

    @property
    def due(self) -> float | None:
        """Time of the next action."""
        return self._later[0][0] if self._later else None

    def run_until(self, now: float) -> None:
        """Do everything that is due at this time."""
        self.now = max(self.now, now)
        while self._later and self._later[0][0] <= self.now:
            heapq.heappop(self._later)[2]()

    def count_game(self) -> None:
        self.games += 1
        self.over |= 0 < self.setup.games <= self.games


class Server(Program, ABC):
    """A server for any number of clients, at this many `doors` (ports); its messages go to `outbox`."""

    transport: Transport = "tcp"
    doors = 1

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.outbox: Outbox = []

    def breathe(self) -> None:
        self.outbox.append((None, None))

    def greet(self, link: Link) -> None:
        """Handle a new connection (over TCP)."""

    @abstractmethod
    def hear(self, link: Link, data: bytes) -> None:
        """Handle data from a client."""

    def end(self, link: Link) -> None:
        """Handle a client that sends nothing more; it may still receive, but cannot play."""

    def lose(self, link: Link) -> None:
        """Handle a lost connection."""


class LineServer(Server):
    """A server over TCP whose clients send lines."""

    bare_cr = False
    """True if CR alone ends a line, too."""

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.links: list[Link] = []
        """Connected clients."""
        self._lines: dict[Link, Lines] = {}
        self._postponed: list[tuple[Link, bytes]] = []

    def greet(self, link: Link) -> None:
        if len(self.links) >= MOST_CLIENTS:
            link.close()
            return
        self.links.append(link)
        self._lines[link] = self.lines()
        self.welcome(link)

    def hear(self, link: Link, data: bytes) -> None:
        if link not in self._lines:
            return
        if self.has("waits-for-the-rest") and any(
            lines.rest and other is not link for other, lines in self._lines.items()
        ):
            self._postponed.append((link, data))
            return
        try:
            lines = self._lines[link].feed(data)
        except TooLong:
            self.give_up(link, "a message without end")
            return
        for line in lines:
            if link.is_open and link in self._lines:
                self.line(link, line)

    def end(self, link: Link) -> None:
        if self.has("ignores-half-close"):
            return
        if link in self._lines and link.is_open and self._lines[link].rest:
            self.unended(link, self._lines[link].rest)
        self.lose(link)
        link.close()

    def lose(self, link: Link) -> None:
        if link in self._lines:
            self.links.remove(link)
            del self._lines[link]
            self.leave(link)
            waiting, self._postponed = self._postponed, []
            for other, data in waiting:
                self.hear(other, data)

    # Overridden by the servers of protocols.

    def lines(self) -> Lines:
        """Return the framer of this protocol."""
        return Lines(self.bare_cr, slow=self.has("is-quadratic"))

    def welcome(self, link: Link) -> None:
        """Handle a new client."""

    @abstractmethod
    def line(self, link: Link, line: bytes) -> None:
        """Process a client's line."""

    def unended(self, link: Link, rest: bytes) -> None:
        """Handle a client that has ended within a line."""

    def leave(self, link: Link) -> None:
        """Handle a client that has left."""

    def farewell(self, link: Link, why: str) -> None:
        """Send the reason before a connection is closed."""

    def give_up(self, link: Link, why: str) -> None:
        """End the connection of a client with which nothing can be played."""
        for each in [*self.links] if self.has("closes-all") else [link]:
            self.farewell(each, why)
            self.lose(each)
            each.close()

    def close_all(self) -> None:
        for link in [*self.links]:
            self.lose(link)
            link.close()


class Player(Program, ABC):
    """A client's side of the game; its messages go to `says`. `calls` asks for a new connection, to `url`."""

    transport: Transport = "tcp"

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.says: list[bytes] = []
        self.calls = False
        self.url = ""

    def connected(self) -> None:
        """Handle a new connection."""
        self.begin()

    def begin(self) -> None:
        """Begin to play on a new connection."""

    @abstractmethod
    def hear(self, data: bytes) -> None:
        """Handle data from the server."""


class LinePlayer(Player):
    """A client whose server sends lines."""

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._lines = self.lines()

    def connected(self) -> None:
        self._lines = self.lines()
        super().connected()

    def hear(self, data: bytes) -> None:
        try:
            lines = self._lines.feed(data)
        except TooLong:
            self.over = True
            return
        for line in lines:
            # Messages that make no sense are ignored.
            with suppress(KeyError, IndexError, TypeError, ValueError, AssertionError, AttributeError):
                self.line(line)

    def lines(self) -> Lines:
        return Lines()

    @abstractmethod
    def line(self, line: bytes) -> None:
        """Process the server's line."""
