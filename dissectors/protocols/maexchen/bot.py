"""A Mäxchen bot: joins every round, rolls or sees, and bluffs if it must."""

from __future__ import annotations

from typing import Any

from kiebitz.dissectors.conformance.bots import Bot, SendMessage, TargetMessage
from kiebitz.dissectors.grammar.field_type import Fields
from kiebitz.dissectors.protocols.maexchen.dice import MIA, ROLLS, beats, rank

_HARD_TO_BEAT = 14
"""Rank among the 21 rolls from which on the bot doubts an announcement."""


class MaexchenBot(Bot):
    """A Mäxchen bot; each round counts as a game."""

    _to_beat: str | None = None

    def _begin(self) -> None:
        self._queue(*(SendMessage(name, {"name": self.name}) for name in ("REGISTER", "REGISTER_SPECTATOR")))

    def _receive(self, name: str, fields: Fields) -> None:
        match name:
            case "ROUND STARTING":
                self._to_beat = None
                if not self.is_finished:
                    self._send("JOIN", token=fields["token"])
            case "ANNOUNCED":
                self._to_beat = fields["dice"]
            case "YOUR TURN":
                self._turn(fields["token"])
            case "ROLLED":
                self._announce(fields["dice"], fields["token"])
            case "SCORE":
                self.games += 1

    def _turn(self, token: Any) -> None:
        roll, see = (SendMessage(name, {"token": token}) for name in ("ROLL", "SEE"))
        if self._to_beat is None:
            # Before the first announcement there is nothing to see.
            self._queue(roll)
        elif (rank(self._to_beat) or 0) >= _HARD_TO_BEAT or self.random.random() < 0.1:
            self._queue(see, roll)
        else:
            self._queue(roll, see)

    def _announce(self, dice: str, token: Any) -> None:
        claim = dice
        if self._to_beat is not None and not beats(dice, self._to_beat):
            # Only the Mäxchen beats the second highest announcement.
            higher = [roll for roll in ROLLS if beats(roll, self._to_beat) and roll != MIA]
            claim = self.random.choice(higher) if higher else MIA
        self._send("ANNOUNCE", dice=claim, token=token)

    def _leads_to(self, target_message: TargetMessage, choice: SendMessage) -> bool:
        return target_message.name == "ANNOUNCE" and choice.name == "ROLL"
