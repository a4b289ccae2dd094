"""Static check which messages a filter can match, from the grammars alone.

It finds misspelt names and impossible values before anything runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.filters.fields import AnyField, Column, MessageField, MessageName
from kiebitz.dissectors.filters.semantics import AllOf, Condition, Meaning
from kiebitz.dissectors.filters.values import holds
from kiebitz.dissectors.model import DIRECTIONS, Direction


class Kind(msgspec.Struct, frozen=True):
    """The messages of one name and direction in a protocol; `fields` are those of all dialects."""

    dissector: Dissector
    name: str
    direction: Direction
    fields: frozenset[str]


def kinds(dissectors: Iterable[Dissector]) -> Iterator[Kind]:
    """Yield all kinds of messages in the order of the grammars."""
    for dissector in dissectors:
        for direction in DIRECTIONS:
            for name in dissector.grammar.names(direction):
                rows = dissector.grammar.rows_named(direction, name)
                fields = frozenset(field.name for row in rows for field in row.fields)
                yield Kind(dissector, name, direction, fields)


def matching_kinds(meaning: Meaning | None, among: Iterable[Kind]) -> Iterator[Kind]:
    """Return the kinds that may match a filter; all without one."""
    return (kind for kind in among if meaning is None or _may_match(meaning, kind) is not False)


def _may_match(meaning: Meaning, kind: Kind) -> bool | None:
    """Return True if all messages match, False if none does, None if it depends on the message."""
    if isinstance(meaning, Condition):
        known = _known(meaning, kind)
        return known if known is None or meaning.wanted else not known
    answers = [_may_match(term, kind) for term in meaning.terms]
    decisive = not isinstance(meaning, AllOf)
    if decisive in answers:
        return decisive
    return None if None in answers else not decisive


def _known(condition: Condition, kind: Kind) -> bool | None:
    subject = condition.subject
    if isinstance(subject, Column):
        value = {
            "msg": kind.name,
            "dir": kind.direction,
            "protocol": kind.dissector.protocol,
            "transport": kind.dissector.transport,
        }.get(subject.name)
        return None if value is None else holds(condition.test)(value)
    if isinstance(subject, AnyField):
        return None if subject.path[0] in kind.fields else False
    if isinstance(subject, MessageName | MessageField):
        is_it = (subject.protocol, subject.message) == (kind.dissector.protocol, kind.name)
        return is_it if isinstance(subject, MessageName) else (None if is_it else False)
    return None
