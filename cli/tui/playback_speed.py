"""How fast a recorded game is shown: as it was, some times as fast, or one event in so many seconds."""

from __future__ import annotations

import msgspec

MAX_GAP_S = 2.0
"""A silence that is longer is shown this long, unless somebody asks for another length."""

SLOWEST, FASTEST = 1 / 64, 1024.0


class Pace(msgspec.Struct):
    """`speed` is how many times as fast as it was; `every_s` shows each event so long, whatever it was."""

    speed: float = 1.0
    max_gap_s: float = MAX_GAP_S
    every_s: float | None = None

    def wait_s(self, gap_s: float) -> float:
        """How long an event is shown whose successor came so much later."""
        if self.every_s is not None:
            return self.every_s / self.speed
        return min(max(gap_s, 0.0), self.max_gap_s) / self.speed

    def is_shortened(self, gap_s: float) -> bool:
        """Whether such a silence is longer than what is shown of it."""
        return self.every_s is None and gap_s > self.max_gap_s

    def faster(self) -> None:
        """Twice as fast."""
        self.speed = min(self.speed * 2, FASTEST)

    def slower(self) -> None:
        """Half as fast."""
        self.speed = max(self.speed / 2, SLOWEST)

    def __str__(self) -> str:
        if self.every_s is not None:
            return f"an event every {self.every_s / self.speed:g} s"
        return f"{self.speed:g}x"
