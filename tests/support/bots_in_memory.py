"""Kiebitz's own simple players and hosts, at the bench of the programs in `peers/`."""

from __future__ import annotations

from collections import Counter

from peers.program import Link, Server, Setup
from peers.program import Player as Program

from kiebitz.dissectors.conformance.bots import (
    Bot,
    Disconnect,
    Done,
    Reconnect,
    SendMessage,
    SimulatedServer,
    TargetMessage,
    Wait,
)
from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.probing.message_reader import MessageReader
from kiebitz.dissectors.probing.simulated_table import SimulatedTable
from kiebitz.dissectors.probing.spelling_style import SpellingStyle


class Seated(Program):
    """A simple player with a framer and a codec around it. With an `aim` it stops when it gets there."""

    def __init__(
        self, dissector: Dissector, name: str, seed: int, games: int = 0, aim: TargetMessage | None = None
    ) -> None:
        assert dissector.conformance.bot is not None
        self.simple: Bot = dissector.conformance.bot(name, seed, games)
        self.transport = dissector.transport
        self.said: Counter[str] = Counter()
        self.place: SendMessage | None = None
        self._alarm = -1.0
        self._dissector = dissector
        self._style = SpellingStyle(dissector)
        self._aim = aim
        self._ear = MessageReader(dissector, "s2c")
        super().__init__(Setup(name=name, seed=seed, games=games))

    def begin(self) -> None:
        self._ear = MessageReader(self._dissector, "s2c")
        self.simple.connected(self.now)
        self._go_on()

    def hear(self, data: bytes) -> None:
        for message in self._ear.read(data):
            self._style.learn(message)
            self.simple.receive(message.row.name, message.fields, self.now)
        self._go_on()

    def _go_on(self) -> None:
        while self.place is None:
            step = self.simple.next(self.now, self._aim)
            match step:
                case SendMessage(name, fields):
                    if self._aim is not None and self._aim.matches(step):
                        self.place = step
                        return
                    self.says.append(self._style.encode(name, "c2s", fields))
                    self.said[name] += 1
                    self.simple.confirm(step)
                case Reconnect(url):
                    self.calls, self.url = True, url
                    self.simple.confirm(step)
                    return
                case Disconnect() | Done():
                    self.games = self.simple.games
                    self.over = True
                    return
                case Wait(until):
                    self.games = self.simple.games
                    if until is not None and until != self._alarm:
                        self._alarm = until
                        self.after(max(until - self.now, 0), self._go_on)
                    return


class Hosting(Server):
    """A simple host with framers and a codec around it. With an `aim` it stops when it gets there."""

    def __init__(
        self,
        dissector: Dissector,
        host: SimulatedServer | SimulatedTable,
        doors: int = 1,
        aim: TargetMessage | None = None,
    ) -> None:
        self.host = host
        self.transport = dissector.transport
        self.doors = doors
        self.said: Counter[str] = Counter()
        self._dissector = dissector
        self._style = SpellingStyle(dissector)
        self.place: SendMessage | None = None
        self._aim = aim
        self._ears: dict[Link, MessageReader] = {}
        self._link_of: dict[int, Link] = {}
        self._alarm = -1.0
        super().__init__(Setup())

    def greet(self, link: Link) -> None:
        self._ears[link] = MessageReader(self._dissector, "c2s")
        self._link_of[link.number] = link
        self.host.client_connected(link.number, self.now, link.door)
        self._go_on()

    def hear(self, link: Link, data: bytes) -> None:
        if link not in self._ears:
            if self.transport == "tcp":
                return
            self.greet(link)
        for message in self._ears[link].read(data):
            self._style.learn(message)
            self.host.receive(link.number, message.row.name, message.fields, self.now)
        self._go_on()

    def end(self, link: Link) -> None:
        self.lose(link)
        link.close()

    def lose(self, link: Link) -> None:
        if self._ears.pop(link, None) is not None:
            self.host.client_disconnected(link.number, self.now)
            self._go_on()

    def _go_on(self) -> None:
        last = 0
        while self.place is None:
            step = self.host.next(self.now, self._aim)
            match step:
                case SendMessage(name, fields, to):
                    if self._aim is not None and self._aim.matches(step):
                        self.place = step
                        return
                    if to != last:
                        # Messages on several connections are received in this order.
                        self.breathe()
                        last = to
                    self.said[name] += 1
                    self.host.confirm(step)
                    if to in self._link_of:
                        self._link_of[to].send(self._style.encode(name, "s2c", fields))
                case Disconnect(to):
                    self.host.confirm(step)
                    if to in self._link_of:
                        link = self._link_of[to]
                        if self._ears.pop(link, None) is not None:
                            self.host.client_disconnected(to, self.now)
                        link.close()
                case Wait(until):
                    if until is not None and until != self._alarm:
                        self._alarm = until
                        self.after(max(until - self.now, 0), self._go_on)
                    return
                case _:
                    return
