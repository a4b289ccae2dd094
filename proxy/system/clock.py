"""The clock of all that this process forwards: the time of day, but one that nobody sets.

It is the time of day when the process began, and what has passed since. A computer's clock may be set while
a game goes on, by hand or by its time service. Times of one session would then contradict their order, copies
of a broadcast would not be known as such, and players would be accused of being late.
"""

from __future__ import annotations

import time

# Where there is a clock that goes on while the machine sleeps, as the time of day does: Linux.
_STEADY = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_origin_ns = time.time_ns() - time.clock_gettime_ns(_STEADY)


def now_ns() -> int:
    """Return nanoseconds since 1970 UTC."""
    return _origin_ns + time.clock_gettime_ns(_STEADY)


def origin_ns() -> int:
    """Return the time of day (ns since 1970 UTC) at which the steady clock began, by this process's clock."""
    return _origin_ns


def adopt(origin: int) -> None:
    """Go by the clock of another process of this machine, however the time of day was set meanwhile."""
    global _origin_ns
    _origin_ns = origin
