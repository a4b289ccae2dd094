"""A clock for all forwarded traffic: the time of day, but unaffected by clock adjustments.

It is the time of day when the process started, plus the time that has passed since. A user or a time service
may set the system clock during a game. Times of one session would then contradict their order: copies of a
broadcast would not be recognised, and players would be accused of being late.
"""

from __future__ import annotations

import time

# On Linux, a clock that continues while the machine sleeps, as the time of day does.
_STEADY = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_origin_ns = time.time_ns() - time.clock_gettime_ns(_STEADY)


def now_ns() -> int:
    """Return nanoseconds since 1970 UTC."""
    return _origin_ns + time.clock_gettime_ns(_STEADY)


def origin_ns() -> int:
    """Return the time of day (ns since 1970 UTC) at which the steady clock began, by this process's clock."""
    return _origin_ns


def adopt(origin: int) -> None:
    """Use the clock of another process of this machine, even if the time of day was set meanwhile."""
    global _origin_ns
    _origin_ns = origin
