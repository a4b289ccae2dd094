"""The three kinds of row that a filter selects, and the location of each column's value in them.

This one table serves both the SQL condition and the live predicate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from kiebitz.dissectors.model import Diagnostic, Event, Message, TableInfo
from kiebitz.dissectors.session_numbering import Numbered

Target = Literal["messages", "events", "diagnostics"]
Owner = Literal["message", "event", "diagnostic", "stream", "table", "session", "alteration"]


class Row(msgspec.Struct, frozen=True):
    """A live row with its related records, which a stored row has through its keys.

    A message: alone in `messages`, with the `event` it reports and all `diagnostics` about it. An event: in
    `event`, with its `table`, all `messages` that report it and all `diagnostics` about those. A diagnostic:
    alone in `diagnostics`, with the message it is about, if any, alone in `messages`, and with the `event`
    that message reports. `state` is that of its table at that time, or None.
    """

    session_started_ns: int
    messages: Sequence[Message] = ()
    event: Event | None = None
    diagnostics: Sequence[Diagnostic] = ()
    table: TableInfo | None = None
    session_id: int = 0
    state: Mapping[str, Any] | None = None


class ValueLocation(msgspec.Struct, frozen=True):
    """The location of a value: its owner, the column in that table, and the attribute of that record.

    The value is used as it is; or it is an object, of which all nested texts count.
    """

    owner: Owner
    column: str
    attribute: str
    reading: Literal["plain", "texts"] = "plain"


ITSELF: dict[Target, Owner] = {"messages": "message", "events": "event", "diagnostics": "diagnostic"}
"""The owner of a row's own values."""

JSON: dict[Target, ValueLocation] = {
    "messages": ValueLocation("message", "fields", "fields"),
    "events": ValueLocation("event", "data", "data"),
    "diagnostics": ValueLocation("message", "fields", "fields"),
}
"""The location of a row's fields."""

_FIXED = {
    "msg": ValueLocation("message", "name", "name"),
    "kind": ValueLocation("event", "kind", "kind"),
    "player": ValueLocation("event", "actor", "actor"),
    "client": ValueLocation("stream", "client", "client"),
    "server": ValueLocation("stream", "server", "server"),
    "transport": ValueLocation("stream", "transport", "transport"),
    "session": ValueLocation("session", "id", "session_id"),
    # A live message knows it itself.
    "altered": ValueLocation("alteration", "action", "altered"),
}

# Position of a row on the wire; an event was where its messages were.
_ON_THE_WIRE = {
    "dir": ("direction", "direction"),
    "offset": ("offset", "offset"),
    "length": ("length", "length"),
    "stream": ("stream_id", "stream.id"),
}

_GROUP_COLUMN = "grp"  # GROUP is a word of SQL


def numbered(column: str, target: Target) -> Numbered | None:
    """Return the table whose rows a name in `fields.COLUMNS` refers to by number, or None."""
    if column == "number":
        return "events" if target == "events" else "messages"
    return _NUMBERED.get(column)


_NUMBERED: dict[str, Numbered] = {"stream": "streams", "game": "games", "event": "events"}


def locations(column: str, target: Target) -> tuple[ValueLocation, ...]:
    """Return the locations of the values of a name in `fields.COLUMNS`; each counts."""
    if column == "who":
        return _FIXED["client"], ValueLocation("stream", "player", "player")
    if column == "named":
        return _FIXED["player"], ValueLocation("event", "data", "data", "texts")
    return (location(column, target),)


def location(column: str, target: Target) -> ValueLocation:
    """Return the location of the value of a name that has only one."""
    if column in _FIXED:
        return _FIXED[column]
    if column in _ON_THE_WIRE:
        return ValueLocation("diagnostic" if target == "diagnostics" else "message", *_ON_THE_WIRE[column])
    if column.startswith("diag."):
        attribute = column.removeprefix("diag.")
        return ValueLocation("diagnostic", _GROUP_COLUMN if attribute == "group" else attribute, attribute)
    on_event = target == "events"
    return {
        "number": ValueLocation("diagnostic", "message_id", "message_id")
        if target == "diagnostics"
        else ValueLocation(ITSELF[target], "id", "id"),
        "time": ValueLocation(ITSELF[target], "ts_ns", "ts_ns"),
        "protocol": ValueLocation("table" if on_event else "stream", "protocol", "protocol"),
        "game": ValueLocation("event" if on_event else "message", "game_id", "game_id"),
        "event": ValueLocation("event", "id", "id")
        if on_event
        else ValueLocation("message", "event_id", "event_id"),
    }[column]
