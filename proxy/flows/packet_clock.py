"""The time that has passed in a capture, whatever its clock did."""

from __future__ import annotations

LONGEST_STEP_NS = 900_000_000_000
"""Longest time that counts between two packets; a clock that jumps ahead by more was set, or all slept."""

DISORDER_NS = 10_000_000_000
"""Merged captures and several interfaces go back by less; a clock that goes back by more was set."""


class PacketClock:
    """Turns the times of packets into a time that never jumps."""

    __slots__ = ("_now_ns", "_other_shift_ns", "_shift_ns")

    def __init__(self) -> None:
        self._now_ns = 0
        # What is added to a packet's time, and what was added before the last jump.
        self._shift_ns = self._other_shift_ns = 0

    def read(self, ts_ns: int) -> int:
        """Return the current time in ns, where a packet has the time `ts_ns`."""
        now_ns = ts_ns + self._shift_ns
        if not -DISORDER_NS <= now_ns - self._now_ns <= LONGEST_STEP_NS and self._now_ns:
            now_ns = self._after_jump(ts_ns)
        self._now_ns = now_ns
        return now_ns

    def _after_jump(self, ts_ns: int) -> int:
        now_ns = self._now_ns
        is_ahead = ts_ns + self._shift_ns > now_ns
        # Captures of two clocks in one file: their times alternate.
        self._shift_ns, self._other_shift_ns = self._other_shift_ns, self._shift_ns
        returned_ns = ts_ns + self._shift_ns
        if -DISORDER_NS <= returned_ns - now_ns <= DISORDER_NS:
            return returned_ns
        if is_ahead:
            now_ns += LONGEST_STEP_NS
        self._shift_ns = now_ns - ts_ns
        return now_ns
