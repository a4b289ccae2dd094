"""The names of the filter language: its own, and those of the protocols' messages and events.

`FieldCatalog` is built from the dissectors' grammars; `look_up` resolves a name, `complete` completes a
prefix.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Literal

import msgspec

from kiebitz.dissectors.filters.syntax import WORDS, Step

COLUMNS: dict[str, Literal["text", "number"]] = {
    "number": "number",
    "msg": "text",
    "altered": "text",
    "kind": "text",
    "player": "text",
    "named": "text",
    "dir": "text",
    "offset": "number",
    "length": "number",
    "stream": "number",
    "session": "number",
    "who": "text",
    "client": "text",
    "server": "text",
    "transport": "text",
    "protocol": "text",
    "game": "number",
    "event": "number",
    "time": "number",
    "diag.severity": "text",
    "diag.group": "text",
    "diag.code": "text",
    "diag.text": "text",
    "diag.blame": "text",
    "diag.expected": "text",
    "diag.clause": "text",
    "diag.offset": "number",
    "diag.length": "number",
}
"""The language's own names and the type of their values."""

ALIASES = {
    "name": "msg",
    "#": "number",
    "actor": "player",
    "frame.number": "number",
    "frame.time_relative": "time",
}
"""Other words for them: what listings head their columns with, and what Wireshark calls it."""

TRANSPORTS = ("tcp", "udp")
"""Bare names, as in Wireshark: what carries it."""

_OWN = {"diag", *TRANSPORTS, *(name.partition(".")[0] for name in (*COLUMNS, *ALIASES))}
"""First steps of the language's own names."""


class Column(msgspec.Struct, frozen=True):
    """One of the language's own names, a key of `COLUMNS`."""

    name: str


class DiagnosticAsWhole(msgspec.Struct, frozen=True):
    """The bare name `diag`."""


class Carrier(msgspec.Struct, frozen=True):
    """The bare name of a transport."""

    name: str


class Protocol(msgspec.Struct, frozen=True):
    """The bare name of a protocol."""

    name: str


class MessageName(msgspec.Struct, frozen=True):
    """`PROTOCOL.Message`."""

    protocol: str
    message: str


class MessageField(msgspec.Struct, frozen=True):
    """`PROTOCOL.Message.field`, and what is inside it."""

    protocol: str
    message: str
    path: tuple[Step, ...]


class AnyField(msgspec.Struct, frozen=True):
    """`PROTOCOL.field`, or `field` alone for whatever protocol: of a message, or of an event's data."""

    protocol: str | None
    path: tuple[Step, ...]


class StateField(msgspec.Struct, frozen=True):
    """`state.PATH`: of the table's state, or of a game that is on at it."""

    path: tuple[Step, ...]


STATE = "state"
"""First step of the names of a state; no grammar lists its contents."""

Subject = Column | DiagnosticAsWhole | Carrier | Protocol | MessageName | MessageField | AnyField | StateField


class UnknownName(Exception):
    """An unknown name; `nearest` are similar known names, the most similar first."""

    def __init__(self, name: str, nearest: list[str]) -> None:
        super().__init__(name)
        self.name = name
        self.nearest = nearest


class FieldCatalog(msgspec.Struct, frozen=True):
    """The names of the protocols.

    `messages`: protocol → message name → field name → description. `events`: protocol → event kind → names of
    its data. A name that is no identifier is written with underscores, or in quotes after a dot. Where
    `has_state`, rows come with the state of their table.
    """

    messages: Mapping[str, Mapping[str, Mapping[str, str]]]
    events: Mapping[str, Mapping[str, Collection[str]]] = {}
    has_state: bool = False

    def protocols(self) -> list[str]:
        """Return the names of all protocols, sorted."""
        return sorted({*self.messages, *self.events})

    def fields(self, protocol: str) -> list[str]:
        """Return the names of all fields of a protocol's messages and of its events' data."""
        messages = self.messages.get(protocol, {}).values()
        events = self.events.get(protocol, {}).values()
        return sorted({name for names in (*messages, *events) for name in names})

    def all_fields(self) -> list[str]:
        """Return the names of all fields of all protocols, sorted."""
        return sorted({name for protocol in self.protocols() for name in self.fields(protocol)})

    def names(self) -> Iterator[str]:
        """Yield every name that a filter may use, as it is written."""
        yield from (*COLUMNS, *ALIASES, *TRANSPORTS, "diag")
        # Only names after a dot can be quoted; and the language's own names hide fields of the same name.
        yield from (name for name in map(written, self.all_fields()) if name[0] != '"' and not _is_own(name))
        for protocol in self.protocols():
            yield protocol
            yield from (f"{protocol}.{written(name)}" for name in self.fields(protocol))
            for message, fields in self.messages.get(protocol, {}).items():
                yield f"{protocol}.{written(message)}"
                yield from (f"{protocol}.{written(message)}.{written(name)}" for name in fields)


def look_up(steps: tuple[Step, ...], catalog: FieldCatalog, bare: bool) -> Subject:
    """Return the subject of a path. Raises UnknownName.

    `bare` is True if it is not compared, but tested for presence.
    """
    first, *rest = steps
    subject: Subject | None
    if catalog.has_state and first == STATE and rest:
        subject = StateField(tuple(rest))
    elif _is_own(str(first)):
        subject = _own(".".join(map(str, steps)))
    elif first in catalog.protocols():
        subject = _of_protocol(str(first), tuple(rest), catalog, bare)
    else:
        subject = _field(None, steps, catalog.all_fields())
    if subject is None:
        name = ".".join(written(step) for step in steps if isinstance(step, str))
        raise UnknownName(name, _nearest(name, sorted(set(catalog.names()))))
    return subject


def complete(prefix: str, catalog: FieldCatalog) -> list[str]:
    """Return the names that begin with `prefix`, sorted, for the shell."""
    return sorted({name for name in catalog.names() if name.startswith(prefix)})


def written(name: str) -> str:
    """Return a protocol's name as a step of a path: with underscores, or else in quotes."""
    underscored = re.sub(r"\W", "_", name)
    if not underscored.isidentifier() or underscored in WORDS:
        escaped = name.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    return underscored


def known_name(step: Step, names: Collection[str]) -> str | None:
    """Return the name that a step matches: spelled the same, or with underscores for blanks and the like."""
    if step in names:
        return str(step)
    return next((name for name in names if written(name) == step), None)


def _is_own(first: str) -> bool:
    return first in _OWN


def _own(name: str) -> Subject | None:
    if name == "diag":
        return DiagnosticAsWhole()
    if name in TRANSPORTS:
        return Carrier(name)
    name = ALIASES.get(name, name)
    return Column(name) if name in COLUMNS else None


def _of_protocol(protocol: str, rest: tuple[Step, ...], catalog: FieldCatalog, bare: bool) -> Subject | None:
    if not rest:
        return Protocol(protocol)
    messages = catalog.messages.get(protocol, {})
    message = known_name(rest[0], messages)
    # A field may be called as a message is; then it is the field whose value is asked for.
    by_field = _field(protocol, rest, catalog.fields(protocol))
    if message is None:
        return by_field
    if len(rest) == 1:
        return MessageName(protocol, message) if bare or by_field is None else by_field
    field_name = known_name(rest[1], messages[message])
    return by_field if field_name is None else MessageField(protocol, message, (field_name, *rest[2:]))


def _field(protocol: str | None, path: tuple[Step, ...], known: Collection[str]) -> Subject | None:
    name = known_name(path[0], known)
    return None if name is None else AnyField(protocol, (name, *path[1:]))


def _nearest(name: str, names: list[str]) -> list[str]:
    """Return up to three similar names: with the same parent, then any, then by their last step alone."""
    parent, _, last = name.rpartition(".")
    beside = {other.rpartition(".")[2]: other for other in names if other.rpartition(".")[0] == parent}
    anywhere = {other: other for other in names}
    by_last = {other.rpartition(".")[2]: other for other in names}
    for typed, candidates in ((last, beside), (name, anywhere), (last, by_last)):
        if close := difflib.get_close_matches(typed, candidates):
            nearly_best = _likeness(typed, close[0]) - 0.1
            return [candidates[other] for other in close if _likeness(typed, other) > nearly_best]
    return []


def _likeness(one: str, other: str) -> float:
    return difflib.SequenceMatcher(None, one, other).ratio()
