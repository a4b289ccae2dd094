"""Times as a database has them, in nanoseconds since 1970 UTC, as moments of the calendar and as seconds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def utc(ts_ns: int) -> datetime:
    """A time to the microsecond, in UTC; a float would not hold it exactly."""
    return _EPOCH + timedelta(microseconds=ts_ns // 1000)


def iso_time(ts_ns: int) -> str:
    """The same as ISO 8601 has it, such as `2026-11-21T00:57:10.430145Z`."""
    return utc(ts_ns).isoformat(timespec="microseconds").replace("+00:00", "Z")


def between(started_ns: int | None, ended_ns: int | None) -> float | None:
    """Seconds; None where it is not over, or the clock of a capture was set back meanwhile."""
    if started_ns is None or ended_ns is None or ended_ns < started_ns:
        return None
    return (ended_ns - started_ns) / 1e9
