"""Conversion of the database's times, in nanoseconds since 1970 UTC, to dates and seconds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def utc(ts_ns: int) -> datetime:
    """Return a time in UTC to the microsecond, which a float could not represent exactly."""
    return _EPOCH + timedelta(microseconds=ts_ns // 1000)


def iso_time(ts_ns: int) -> str:
    """Format a time as ISO 8601, as in `2026-11-21T00:57:10.430145Z`."""
    return utc(ts_ns).isoformat(timespec="microseconds").replace("+00:00", "Z")


def seconds_between(started_ns: int | None, ended_ns: int | None) -> float | None:
    """Return the seconds between two times; None if there is no end, or a capture's clock was set back."""
    if started_ns is None or ended_ns is None or ended_ns < started_ns:
        return None
    return (ended_ns - started_ns) / 1e9
