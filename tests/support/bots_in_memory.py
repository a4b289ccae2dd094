"""Kiebitz's own simple players and hosts, at the bench of the programs in `peers/`."""

from __future__ import annotations

from collections import Counter

from peers.program import Link, Server, Setup
from peers.program import Player as Program

from kiebitz.dissectors.conformance.bots import Aim, Call, Done, Hang, Host, Player, Say, Wait
from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.probing.message_reader import Ear
from kiebitz.dissectors.probing.simulated_table import Company
from kiebitz.dissectors.probing.spelling_style import Manner


class Seated(Program):
    """A simple player with a framer and a codec around it. With an `aim` it stops when it gets there."""

    def __init__(
        self, dissector: Dissector, name: str, seed: int, games: int = 0, aim: Aim | None = None
    ) -> None:
        assert dissector.conformance.player is not None
        self.simple: Player = dissector.conformance.player(name, seed, games)
        self.transport = dissector.transport
        self.said: Counter[str] = Counter()
        self.place: Say | None = None
        self._alarm = -1.0
        self._dissector = dissector
        self._manner = Manner(dissector)
        self._aim = aim
        self._ear = Ear(dissector, "s2c")
        super().__init__(Setup(name=name, seed=seed, games=games))

    def begin(self) -> None:
        self._ear = Ear(self._dissector, "s2c")
        self.simple.connected(self.now)
        self._go_on()

    def hear(self, data: bytes) -> None:
        for message in self._ear.hear(data):
            self._manner.heard(message)
            self.simple.hear(message.row.name, message.fields, self.now)
        self._go_on()

    def _go_on(self) -> None:
        while self.place is None:
            step = self.simple.next(self.now, self._aim)
            match step:
                case Say(name, fields):
                    if self._aim is not None and self._aim.is_met(step):
                        self.place = step
                        return
                    self.says.append(self._manner.written(name, "c2s", fields))
                    self.said[name] += 1
                    self.simple.did(step)
                case Call(url):
                    self.calls, self.url = True, url
                    self.simple.did(step)
                    return
                case Hang() | Done():
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
        self, dissector: Dissector, host: Host | Company, doors: int = 1, aim: Aim | None = None
    ) -> None:
        self.host = host
        self.transport = dissector.transport
        self.doors = doors
        self.said: Counter[str] = Counter()
        self._dissector = dissector
        self._manner = Manner(dissector)
        self.place: Say | None = None
        self._aim = aim
        self._ears: dict[Link, Ear] = {}
        self._link_of: dict[int, Link] = {}
        self._alarm = -1.0
        super().__init__(Setup())

    def greet(self, link: Link) -> None:
        self._ears[link] = Ear(self._dissector, "c2s")
        self._link_of[link.number] = link
        self.host.came(link.number, self.now, link.door)
        self._go_on()

    def hear(self, link: Link, data: bytes) -> None:
        if link not in self._ears:
            if self.transport == "tcp":
                return
            self.greet(link)
        for message in self._ears[link].hear(data):
            self._manner.heard(message)
            self.host.hear(link.number, message.row.name, message.fields, self.now)
        self._go_on()

    def end(self, link: Link) -> None:
        self.lose(link)
        link.close()

    def lose(self, link: Link) -> None:
        if self._ears.pop(link, None) is not None:
            self.host.gone(link.number, self.now)
            self._go_on()

    def _go_on(self) -> None:
        last = 0
        while self.place is None:
            step = self.host.next(self.now, self._aim)
            match step:
                case Say(name, fields, to):
                    if self._aim is not None and self._aim.is_met(step):
                        self.place = step
                        return
                    if to != last:
                        # What is said on several connections is heard in this order.
                        self.breathe()
                        last = to
                    self.said[name] += 1
                    self.host.did(step)
                    if to in self._link_of:
                        self._link_of[to].send(self._manner.written(name, "s2c", fields))
                case Hang(to):
                    self.host.did(step)
                    if to in self._link_of:
                        link = self._link_of[to]
                        if self._ears.pop(link, None) is not None:
                            self.host.gone(to, self.now)
                        link.close()
                case Wait(until):
                    if until is not None and until != self._alarm:
                        self._alarm = until
                        self.after(max(until - self.now, 0), self._go_on)
                    return
                case _:
                    return
