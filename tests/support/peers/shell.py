"""Kiebitz's simulated servers and bots as programs: framing and codec around them, and room for faults.

They play by the rules that `check` applies, and so cannot show that these are right. The captures of real
programs with their logs (`captures/*.truth.json`) show it; for `probe`, also the server and player of
`maexchen_programs.py`, which share no code with Kiebitz.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from kiebitz.dissectors.conformance.bots import (
    Bot,
    Disconnect,
    Done,
    Reconnect,
    SendMessage,
    SimulatedServer,
    Wait,
)
from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.grammar.field_type import Fields
from kiebitz.dissectors.grammar.grammar import Decoded
from kiebitz.dissectors.probing.server_route import SimulatedTable
from kiebitz.dissectors.registry import dissector_of
from peers.frames import Frames
from peers.program import Died, LinePlayer, LineServer, Link, Program, Setup


class Shell(Program):
    """Base of servers and players: the protocol, and the way from lines to messages."""

    protocol = ""
    frames: type[Frames] = Frames

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        found = dissector_of(self.protocol)
        assert found is not None
        self.dissector: Dissector = found
        self.said: Counter[str] = Counter()
        """Number of times that each message was sent."""
        self.place: SendMessage | None = None
        """The message that the setup's `aim` names, once it is the next to send."""
        self._alarm: float | None = None

    @property
    def chance(self) -> int:
        """The seed of the bot or simulated server."""
        return zlib.crc32(f"{self.setup.seed} {self.setup.name}".encode())

    def wait(self, until: float | None) -> None:
        """Go on at this time, if there is one."""
        if until is not None and until != self._alarm:
            self._alarm = until
            self.after(max(until - self.now, 0), self.go_on)

    def go_on(self) -> None:
        """Do what is due."""

    def dies(self, fault: str, read: Decoded, *codes: str) -> None:
        """End the program if this fault is planted and a message has one of these codes, or is unreadable."""
        found = {violation.code for violation in read.violations}
        is_unreadable = read.row is None and not any(
            code.startswith(("unknown-", "missing-")) for code in found
        )
        if self.has(fault) and (found & {*codes} if codes else is_unreadable):
            raise Died(f"{read.row.name if read.row else 'unreadable'}: {read.violations[0].text}")


class BotPlayer(Shell, LinePlayer):
    """A bot as a player."""

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        assert self.dissector.conformance.bot is not None
        self.transport = self.dissector.transport
        self.bot: Bot = self.dissector.conformance.bot(setup.name, self.chance, setup.games)
        self.latest: dict[str, Fields] = {}
        """The fields of the last message of each name."""
        self.done = SendMessage("", {})
        """The message that the bot is told it has sent."""
        self._frames = self.frames()

    # Overridden by the players of protocols.

    def told(self, name: str, fields: Fields) -> None:
        """Look at a message of the server."""

    def misread(self, read: Decoded) -> None:
        """Look at a message that is none."""

    def altered(self, said: SendMessage, data: bytes) -> list[bytes]:
        """Return what is sent in place of a message."""
        return [data]

    # Messages.

    def begin(self) -> None:
        self._frames = self.frames()
        self.bot.connected(self.now)
        self.go_on()

    def hear(self, data: bytes) -> None:
        if self.transport == "udp":
            self.text(data)
            self._message(data)
        else:
            super().hear(data)
        self.go_on()

    def line(self, line: bytes) -> None:
        self.text(line)
        frame = self._frames.line(line)
        if frame is not None:
            self._message(frame)

    def _message(self, frame: bytes) -> None:
        read = self.dissector.codec.decode(frame, "s2c")
        if read.row is None or not read.valid:
            self.misread(read)
            return
        self.latest[read.row.name] = read.fields
        self.told(read.row.name, read.fields)
        self.bot.receive(read.row.name, read.fields, self.now)

    def go_on(self) -> None:
        while self.place is None:
            step = self.bot.next(self.now, self.setup.aim)
            match step:
                case SendMessage(name, fields):
                    if self.setup.aim is not None and self.setup.aim.matches(step):
                        self.place = step
                        return
                    self.done = step
                    self.says += self.altered(step, self.encoded(name, fields))
                    self.said[name] += 1
                    self.bot.confirm(self.done)
                case Reconnect(url):
                    self.calls, self.url = True, url
                    self.bot.confirm(step)
                    return
                case Disconnect() | Done():
                    self.games, self.over = self.bot.games, True
                    return
                case Wait(until):
                    self.games = self.bot.games
                    self.wait(until)
                    return

    def encoded(self, name: str, fields: dict[str, Any]) -> bytes:
        return self.dissector.codec.encode(name, "c2s", fields)


class Host(Shell, LineServer):
    """A simulated server, and the bots that are its company."""

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        offered = self.dissector.conformance
        assert offered.simulated_server is not None
        assert offered.bot is not None
        self.simulated: SimulatedServer = offered.simulated_server(
            max(setup.players, 1), self.chance, setup.games
        )
        bots = [offered.bot(name, self.chance + len(name), 0) for name in setup.company]
        self._table = SimulatedTable(self.simulated, bots)
        self._at: dict[int, Link] = {}
        self._frames: dict[Link, Frames] = {}

    # Overridden by the servers of protocols.

    def misread(self, link: Link, read: Decoded, frame: bytes) -> None:
        """Process a message that is none."""

    def request(self, link: Link, name: str, fields: dict[str, Any]) -> None:
        """Process a client's message."""
        self._table.receive(link.number, name, fields, self.now)

    def altered(self, said: SendMessage, batch: Sequence[SendMessage]) -> Iterable[SendMessage]:
        """Yield what is sent in place of a message, one of several that are sent together."""
        yield said

    def written(self, said: SendMessage, data: bytes) -> bytes:
        """Return the bytes of a message."""
        return data

    # Connections.

    def welcome(self, link: Link) -> None:
        self._at[link.number], self._frames[link] = link, self.frames()
        self._table.client_connected(link.number, self.now, link.door)
        self.go_on()

    def leave(self, link: Link) -> None:
        self._table.client_disconnected(link.number, self.now)
        self.go_on()

    def line(self, link: Link, line: bytes) -> None:
        self.text(line)
        frame = self._frames[link].line(line)
        if frame is not None:
            self.message(link, frame)

    def message(self, link: Link, frame: bytes) -> None:
        read = self.dissector.codec.decode(frame, "c2s")
        if read.row is None or not read.valid:
            self.misread(link, read, frame)
        else:
            self.request(link, read.row.name, read.fields)
        self.go_on()

    # What it sends.

    def go_on(self) -> None:
        batch: list[SendMessage] = []
        while self.place is None:
            step = self._table.next(self.now, self.setup.aim)
            if isinstance(step, SendMessage) and self.setup.aim is not None and self.setup.aim.matches(step):
                self.place = step
            elif isinstance(step, SendMessage):
                self._table.confirm(step)
                batch.append(step)
            elif isinstance(step, Disconnect):
                self._table.confirm(step)
                self._send(batch)
                batch = []
                if step.to in self._at:
                    self.lose(self._at[step.to])
                    self._at[step.to].close()
            else:
                self.wait(step.until if isinstance(step, Wait) else None)
                break
        self._send(batch)
        self.games = self.simulated.games
        self.over |= self.simulated.is_finished

    def _send(self, batch: Sequence[SendMessage]) -> None:
        last = 0
        for said in (each for one in batch for each in self.altered(one, batch)):
            if said.to < last:
                # All observers agree on the order of messages to several clients.
                self.breathe()
            last = said.to
            self.said[said.name] += 1
            if said.to in self._at:
                self.send(self._at[said.to], said)
        if batch:
            self.breathe()

    def send(self, link: Link, said: SendMessage) -> None:
        link.send(self.written(said, self.dissector.codec.encode(said.name, "s2c", said.fields)))
