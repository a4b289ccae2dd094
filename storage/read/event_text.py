"""Sentences for stored events, and conversion of the database's times.

A session may have been recorded with a plug-in that is not installed now. Its events are then shown as
stored.

Conversion of the database's times, in nanoseconds since 1970 UTC, to dates and seconds.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from kiebitz.dissectors.escaping import field_words, printable
from kiebitz.dissectors.model import Event
from kiebitz.dissectors.registry import dissector_of
from kiebitz.storage.database.schema import StorageError


def describe(protocol: str, event: Event) -> str:
    """Describe an event, with values as they were sent: escape it with `printable` for a terminal.

    Raises StorageError if the installed version of the protocol lacks this kind of event.
    """
    dissector = dissector_of(protocol)
    if dissector is None:
        return f"{event.kind} {field_words(event.data)}".rstrip()
    if event.kind not in dissector.grammar.events:
        raise StorageError(
            f"this Kiebitz has no {protocol} event {event.kind}: rebuild the session with kiebitz redissect"
        )
    return dissector.presentation.describe(event)


def sentence(protocol: str, kind: str, data: dict[str, Any]) -> str:
    """Describe an event on one line by its kind and data alone. Raises StorageError as `describe`."""
    return printable(describe(protocol, Event(0, 0, None, 0, 0, kind, None, data, [])))


def game_title(protocol: str) -> str:
    """Return the title of a game; the protocol's name if its grammar is not installed."""
    dissector = dissector_of(protocol)
    return protocol if dissector is None else dissector.grammar.title


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
