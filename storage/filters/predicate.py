"""From the meaning of a filter to a function that is asked about one live row."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import attrgetter

from storage.filters.fields import AnyField, Column, MessageName
from storage.filters.meaning import AllOf, Condition, Meaning
from storage.filters.rows import JSON, Owner, Row, Target, place
from storage.filters.values import holds, holds_inside

Predicate = Callable[[Row], bool]
_Owners = Callable[[Row], Iterable[object]]


def predicate(meaning: Meaning, target: Target) -> Predicate:
    """Whether a row of this kind passes."""
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
        where = place(subject.name, target)
        owners, value, passes = _owners(where.owner, target), attrgetter(where.attribute), holds(test)
        if subject.name == "time":
            return lambda row: any(passes(value(owner) - row.session_started_ns) for owner in owners(row))
        return lambda row: any((found := value(owner)) is not None and passes(found) for owner in owners(row))
    if isinstance(subject, AnyField):
        where = JSON[target]
        owners, fields = _owners(where.owner, target), attrgetter(where.attribute)
        inside = holds_inside(test, subject.path)
        return lambda row: any(inside(fields(owner)) for owner in owners(row))
    message, protocol = subject.message, subject.protocol
    # A bare message name has no path, and the fields as a whole are always there.
    inside = holds_inside(test, () if isinstance(subject, MessageName) else subject.path)
    return lambda row: any(
        one.name == message and one.stream.protocol == protocol and inside(one.fields) for one in row.messages
    )


def _owners(owner: Owner, target: Target) -> _Owners:
    """The records of one sort that a row has."""
    if owner == "stream":
        if target == "diagnostics":
            return lambda row: [diagnostic.stream for diagnostic in row.diagnostics]
        return lambda row: [message.stream for message in row.messages]
    if owner == "message":
        return lambda row: row.messages
    if owner == "diagnostic":
        return lambda row: row.diagnostics
    return (lambda row: () if row.event is None else (row.event,)) if owner == "event" else _table


def _table(row: Row) -> Iterable[object]:
    return () if row.table is None else (row.table,)
