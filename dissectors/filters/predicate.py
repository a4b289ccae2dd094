"""The predicate back end: filters as functions of one live row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter
from typing import Any

from kiebitz.dissectors.filters.fields import AnyField, Column, MessageName, StateField
from kiebitz.dissectors.filters.rows import JSON, Owner, Row, Target, ValueLocation, locations
from kiebitz.dissectors.filters.semantics import AllOf, Condition, Meaning
from kiebitz.dissectors.filters.values import Test, holds, holds_inside, texts_in

Predicate = Callable[[Row], bool]
_Owners = Callable[[Row], Iterable[object]]


def predicate(meaning: Meaning, target: Target) -> Predicate:
    """Return a filter as a predicate of rows of this kind."""
    if isinstance(meaning, Condition):
        passes = _single(meaning, target)
        return passes if meaning.wanted else lambda row: not passes(row)
    terms = [predicate(term, target) for term in meaning.terms]
    if isinstance(meaning, AllOf):
        return lambda row: all(term(row) for term in terms)
    return lambda row: any(term(row) for term in terms)


def _single(single: Condition, target: Target) -> Predicate:
    subject, test = single.subject, single.test
    if isinstance(subject, Column):
        ways = [_in_column(subject, test, where, target) for where in locations(subject.name, target)]
        return ways[0] if len(ways) == 1 else lambda row: any(way(row) for way in ways)
    if isinstance(subject, AnyField):
        where = JSON[target]
        owners, fields = _owners(where.owner, target), attrgetter(where.attribute)
        inside = holds_inside(test, subject.path)
        return lambda row: any(inside(fields(owner)) for owner in owners(row))
    if isinstance(subject, StateField):
        in_state = holds_inside(test, subject.path)
        return lambda row: any(in_state(part) for part in _states(row.state))
    message, protocol = subject.message, subject.protocol
    # A bare message name has no path, and the fields as a whole are always there.
    inside = holds_inside(test, () if isinstance(subject, MessageName) else subject.path)
    return lambda row: any(
        one.name == message and one.stream.protocol == protocol and inside(one.fields) for one in row.messages
    )


def _in_column(column: Column, test: Test, where: ValueLocation, target: Target) -> Predicate:
    owners, value, passes = _owners(where.owner, target), attrgetter(where.attribute), holds(test)
    if column.name == "time":
        return lambda row: any(passes(value(owner) - row.session_started_ns) for owner in owners(row))
    if where.reading == "texts":
        return lambda row: any(passes(text) for owner in owners(row) for text in texts_in(value(owner)))
    return lambda row: any((found := value(owner)) is not None and passes(found) for owner in owners(row))


def _states(state: Mapping[str, Any] | None) -> Iterable[Mapping[str, Any]]:
    """Yield a table's state, and the part of each running game."""
    if state is None:
        return ()
    return state, *(game for game in state.get("games", {}).values() if isinstance(game, dict))


def _owners(owner: Owner, target: Target) -> _Owners:
    """Return the records of one sort that a row has."""
    if owner == "stream":
        if target == "diagnostics":
            return lambda row: [diagnostic.stream for diagnostic in row.diagnostics]
        return lambda row: [message.stream for message in row.messages]
    if owner == "session":
        return lambda row: (row,)
    if owner in ("message", "alteration"):
        return lambda row: row.messages
    if owner == "diagnostic":
        return lambda row: row.diagnostics
    return (lambda row: () if row.event is None else (row.event,)) if owner == "event" else _table


def _table(row: Row) -> Iterable[object]:
    return () if row.table is None else (row.table,)
