"""A Mäxchen player who rolls, sees what is hard to beat, and bluffs now and then."""

from __future__ import annotations

from kiebitz.dissectors.model import Transport
from kiebitz.dissectors.protocols.maexchen.dice import MIA, ROLLS, beats, rank
from peers.program import Died, Player

HARD_TO_BEAT = 14
"""The place among the 21 rolls from which on an announcement is doubted."""


class MaexchenPlayer(Player):
    transport: Transport = "udp"

    _to_beat = ""
    _used = ""

    def begin(self) -> None:
        self._say(f"REGISTER;{self.setup.name}")

    def hear(self, data: bytes) -> None:
        match self.text(data).split(";"):
            case ["ROUND STARTING", _, token]:
                self._to_beat = ""
                self._say(f"JOIN;{token}")
            case ["ANNOUNCED", _, dice]:
                self._to_beat = dice
            case ["YOUR TURN", token]:
                self._turn(token)
            case ["ROLLED", dice, token]:
                self._announce(dice, token)
            case ["SCORE", *_]:
                self.count_game()
            case [word, *_] if self.has("dies-on-an-unknown-word") and not word.startswith(("R", "P", "A")):
                raise Died(word)

    def _say(self, text: str) -> None:
        if self.has("ends-lines"):
            text += "\r\n"
        self.says.append(text.encode())

    def _turn(self, token: str) -> None:
        doubts = (rank(self._to_beat) or 0) >= HARD_TO_BEAT
        word = "SEE" if doubts or (self._to_beat and self.random.random() < 0.1) else "ROLL"
        if self.has("keeps-its-token"):
            self._used = token = self._used or token
        if self.has("forgets-the-token"):
            self._say(word)
            return
        self._say(f"{word};{token}")

    def _announce(self, dice: str, token: str) -> None:
        if self.has("is-silent-after-the-roll"):
            return
        claim = dice
        if self._to_beat and not beats(dice, self._to_beat):
            # No announcement but the Mäxchen is higher than the last but one.
            higher = [roll for roll in ROLLS if beats(roll, self._to_beat) and roll != MIA]
            claim = self.random.choice(higher) if higher else MIA
        if self.has("announces-no-dice"):
            claim = "7,7"
        self._say(f"ANNOUNCE;{claim};{token}")
        if self.has("answers-twice"):
            self._say(f"ANNOUNCE;{claim};{token}")
