"""The time that has passed in a capture, regardless of jumps of its clock."""

from __future__ import annotations

MAX_STEP_NS = 900_000_000_000
"""Longest time that counts between two packets; after a longer one the clock was set, or the machine slept.
"""

DISORDER_NS = 10_000_000_000
"""Largest backward step of merged captures and several interfaces; with a larger one the clock was set."""


class PacketClock:
    """A converter from packet times to a time that never jumps."""

    __slots__ = ("_now_ns", "_other_shift_ns", "_shift_ns")

    def __init__(self) -> None:
        self._now_ns = 0
        # The shift that is added to a packet's time, and the one used before the last jump.
        self._shift_ns = self._other_shift_ns = 0

    def read(self, ts_ns: int) -> int:
        """Return the current time in ns, given a packet with the time `ts_ns`."""
        now_ns = ts_ns + self._shift_ns
        if not -DISORDER_NS <= now_ns - self._now_ns <= MAX_STEP_NS and self._now_ns:
            now_ns = self._after_jump(ts_ns)
        self._now_ns = now_ns
        return now_ns

    def _after_jump(self, ts_ns: int) -> int:
        now_ns = self._now_ns
        is_ahead = ts_ns + self._shift_ns > now_ns
        # In a file with captures of two clocks, their times alternate.
        self._shift_ns, self._other_shift_ns = self._other_shift_ns, self._shift_ns
        returned_ns = ts_ns + self._shift_ns
        if -DISORDER_NS <= returned_ns - now_ns <= DISORDER_NS:
            return returned_ns
        if is_ahead:
            now_ns += MAX_STEP_NS
        self._shift_ns = now_ns - ts_ns
        return now_ns
