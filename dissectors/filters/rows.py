"""The three kinds of row that a filter is asked about, and where each of them has a column's value.

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
    """A live row with what belongs to it, as a stored row has it through its keys.

    A message: alone in `messages`, with the `event` it tells of and all `diagnostics` about it.
    An event: in `event`, with its `table`, all `messages` that tell of it and all `diagnostics` about those.
    A diagnostic: alone in `diagnostics`, with the message it is about, if any, alone in `messages`, and with
    the `event` that message tells of.
    `names` is what the clients of streams call themselves, as far as that is known. `state` is that of its
    table by then, None where nobody knows it.
    """

    session_started_ns: int
    messages: Sequence[Message] = ()
    event: Event | None = None
    diagnostics: Sequence[Diagnostic] = ()
    table: TableInfo | None = None
    session_id: int = 0
    names: Mapping[int, str] = msgspec.field(default_factory=dict)
    state: Mapping[str, Any] | None = None


class Place(msgspec.Struct, frozen=True):
    """Where a value is: whose it is, the column in that table, and the attribute of that record.

    It is read as it is; or it is a stream's number, in place of which stands the name of its client; or it is
    an object, of which all texts count, at whatever depth.
    """

    owner: Owner
    column: str
    attribute: str
    reading: Literal["plain", "name", "texts"] = "plain"


ITSELF: dict[Target, Owner] = {"messages": "message", "events": "event", "diagnostics": "diagnostic"}
"""Which record a row is."""

JSON: dict[Target, Place] = {
    "messages": Place("message", "fields", "fields"),
    "events": Place("event", "data", "data"),
    "diagnostics": Place("message", "fields", "fields"),
}
"""Where a row's fields are."""

_FIXED = {
    "msg": Place("message", "name", "name"),
    "kind": Place("event", "kind", "kind"),
    "player": Place("event", "actor", "actor"),
    "client": Place("stream", "client", "client"),
    "server": Place("stream", "server", "server"),
    "transport": Place("stream", "transport", "transport"),
    "session": Place("session", "id", "session_id"),
    # A live message knows it itself.
    "altered": Place("alteration", "action", "altered"),
}

# Where a row was on the wire; an event was where its messages were.
_ON_THE_WIRE = {
    "dir": ("direction", "direction"),
    "offset": ("offset", "offset"),
    "length": ("length", "length"),
    "stream": ("stream_id", "stream.id"),
}

_GROUP_COLUMN = "grp"  # GROUP is a word of SQL


def numbered(column: str, target: Target) -> Numbered | None:
    """The table whose rows a name in `fields.COLUMNS` gives by number, None if it is none of these."""
    if column == "number":
        return "events" if target == "events" else "messages"
    return _NUMBERED.get(column)


_NUMBERED: dict[str, Numbered] = {"stream": "streams", "game": "games", "event": "events"}


def places(column: str, target: Target) -> tuple[Place, ...]:
    """Where a row of this kind has the values of a name in `fields.COLUMNS`: each counts."""
    if column == "who":
        return _FIXED["client"], Place("stream", "id", "id", "name")
    if column == "named":
        return _FIXED["player"], Place("event", "data", "data", "texts")
    return (place(column, target),)


def place(column: str, target: Target) -> Place:
    """Where a row of this kind has the value of a name that has only one."""
    if column in _FIXED:
        return _FIXED[column]
    if column in _ON_THE_WIRE:
        return Place("diagnostic" if target == "diagnostics" else "message", *_ON_THE_WIRE[column])
    if column.startswith("diag."):
        attribute = column.removeprefix("diag.")
        return Place("diagnostic", _GROUP_COLUMN if attribute == "group" else attribute, attribute)
    on_event = target == "events"
    return {
        "number": Place("diagnostic", "message_id", "message_id")
        if target == "diagnostics"
        else Place(ITSELF[target], "id", "id"),
        "time": Place(ITSELF[target], "ts_ns", "ts_ns"),
        "protocol": Place("table" if on_event else "stream", "protocol", "protocol"),
        "game": Place("event" if on_event else "message", "game_id", "game_id"),
        "event": Place("event", "id", "id") if on_event else Place("message", "event_id", "event_id"),
    }[column]
