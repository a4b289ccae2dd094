"""Playback speed: a multiple of the recorded speed, or a fixed interval."""

from __future__ import annotations

import msgspec

MAX_GAP_S = 2.0
"""Default limit, in seconds, to which longer pauses are shortened."""

SLOWEST, FASTEST = 1 / 64, 1024.0


class PlaybackSpeed(msgspec.Struct):
    """Playback speed: `speed` is a factor; with `every_s`, each event is shown that many seconds."""

    speed: float = 1.0
    max_gap_s: float = MAX_GAP_S
    every_s: float | None = None

    def wait_s(self, gap_s: float) -> float:
        """Return the time to show an event that was followed by another after `gap_s`."""
        if self.every_s is not None:
            return self.every_s / self.speed
        return min(max(gap_s, 0.0), self.max_gap_s) / self.speed

    def is_shortened(self, gap_s: float) -> bool:
        """Return True if a pause is shortened."""
        return self.every_s is None and gap_s > self.max_gap_s

    def faster(self) -> None:
        """Double the speed."""
        self.speed = min(self.speed * 2, FASTEST)

    def slower(self) -> None:
        """Halve the speed."""
        self.speed = max(self.speed / 2, SLOWEST)

    def __str__(self) -> str:
        if self.every_s is not None:
            return f"an event every {self.every_s / self.speed:g} s"
        return f"{self.speed:g}x"
