"""Kiebitz's own simple players, at the bench of the programs in `peers/`."""

from __future__ import annotations

from collections import Counter

from peers.program import Player as Program
from peers.program import Setup

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.framing import Framer
from kiebitz.dissectors.probing.player import Call, Done, Hang, Player, Say, Wait, Wanted


class Seated(Program):
    """A simple player with a framer and a codec around it; each sound message is counted, in and out."""

    def __init__(
        self, dissector: Dissector, name: str, seed: int, games: int = 0, wanted: Wanted | None = None
    ) -> None:
        assert dissector.player is not None
        self.simple: Player = dissector.player(name, seed, games)
        self.transport = dissector.transport
        self.said: Counter[str] = Counter()
        self.heard: Counter[str] = Counter()
        self._dissector = dissector
        self._wanted = wanted
        self._framer: Framer = dissector.framer("s2c")
        self._came = 0
        super().__init__(Setup(name=name, seed=seed, games=games))

    def begin(self) -> None:
        self._framer, self._came = self._dissector.framer("s2c"), 0
        self.simple.connected(self.now)
        self._go_on()

    def hear(self, data: bytes) -> None:
        frames = [*self._framer.feed(self._came, data), *self._framer.settle()]
        self._came += len(data)
        for frame in frames:
            decoded = self._dissector.decode(frame.data, "s2c")
            if decoded.row is not None and decoded.sound:
                self.heard[decoded.row.name] += 1
                self.simple.hear(decoded.row.name, decoded.fields, self.now)
        self._go_on()

    def _go_on(self) -> None:
        while True:
            match self.simple.next(self.now, self._wanted):
                case Say(name, fields) as step:
                    self.says.append(self._dissector.encode(name, "c2s", fields))
                    self.said[name] += 1
                    self.simple.did(step)
                case Call(url) as step:
                    self.calls, self.url = True, url
                    self.simple.did(step)
                    return
                case Hang() | Done():
                    self.games = self.simple.games
                    self.over = True
                    return
                case Wait(until):
                    self.games = self.simple.games
                    if until is not None:
                        self.after(max(until - self.now, 0), self._go_on)
                    return
