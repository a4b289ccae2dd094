"""Interception rules: the relay's options, parsed and checked before anything runs.

A rule is checked against all installed grammars, as a server's protocol is only known from its traffic.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar

import msgspec

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.editing.assignment_parser import (
    Assignment,
    AssignmentError,
    parse_assignments,
    split_name,
)
from kiebitz.dissectors.editing.message_encoding import direction_of, encode_new, target_of
from kiebitz.dissectors.errors import KiebitzError
from kiebitz.dissectors.filters import Filter, compile_filter
from kiebitz.dissectors.filters.fields import COLUMNS, AnyField, Column, MessageField, MessageName
from kiebitz.dissectors.filters.semantics import AllOf, Condition, Meaning
from kiebitz.dissectors.filters.values import holds
from kiebitz.dissectors.grammar.grammar import UNREADABLE, nearest_word
from kiebitz.dissectors.model import DIRECTIONS, OPPOSITE, Action, Direction
from kiebitz.dissectors.registry import installed
from kiebitz.dissectors.suggestions import did_you_mean
from kiebitz.services.alteration.impairment import Duration, DurationError, Impairment, parse_duration
from kiebitz.services.alteration.selectors import ALL, Selector, SelectorError, split_selector
from kiebitz.storage.read.conditions import field_catalog

_UNAVAILABLE = (
    "number",
    "kind",
    "player",
    "named",
    "game",
    "event",
    "session",
    "altered",
    *(name for name in COLUMNS if name.startswith("diag.")),
)
"""Filter names that have a value only once a message is recorded."""

_REORDER = "reorder"
"""Suffix of a delay: later messages may overtake."""


class RuleError(KiebitzError):
    """An invalid rule; the text names the option, the reason and the valid form."""

    is_usage = True


class _SelectingRule(msgspec.Struct, frozen=True, kw_only=True):
    """A rule for selected messages. `text` is the option as written, for marks and errors."""

    text: str
    wanted: Filter | None
    """None selects all messages."""
    pick: Selector = ALL


class Drop(_SelectingRule, frozen=True):
    """Drops messages."""

    action: ClassVar[Action] = "drop"


class Change(_SelectingRule, frozen=True):
    """Changes field values; with `is_forced` also to values that the grammar does not allow."""

    action: ClassVar[Action] = "change"
    assignments: tuple[Assignment, ...]
    is_forced: bool


class Double(_SelectingRule, frozen=True):
    """Duplicates messages."""

    action: ClassVar[Action] = "double"


class Delay(_SelectingRule, frozen=True):
    """Delays messages, and later ones with them unless they `may_pass`."""

    action: ClassVar[Action] = "delay"
    duration: Duration
    may_pass: bool


class Insert(_SelectingRule, frozen=True):
    """Inserts a message after each, on the same stream."""

    action: ClassVar[Action] = "insert"
    name: str
    assignments: tuple[Assignment, ...]
    is_forced: bool


class Hold(_SelectingRule, frozen=True):
    """Holds messages for manual decisions."""

    action: ClassVar[Action] = "hold"


class Impair(msgspec.Struct, frozen=True, kw_only=True):
    """Simulates a poor network for all traffic."""

    text: str
    impairment: Impairment


class Script(msgspec.Struct, frozen=True, kw_only=True):
    """Lets the hook in the file `path` decide about each message."""

    text: str
    path: str


SelectingRule = Drop | Change | Double | Delay | Insert | Hold
Rule = SelectingRule | Impair | Script


def option_text(option: str, *values: str) -> str:
    """Return an option as written on a command line."""
    return " ".join((option, *map(shlex.quote, values)))


def drop(text: str) -> Drop:
    """Parse `--drop FILTER`. Raises RuleError, as all of these do, and FilterError."""
    wanted, pick = _parse_selection("--drop", text)
    return Drop(text=option_text("--drop", text), wanted=wanted, pick=pick)


def double(text: str) -> Double:
    """Parse `--duplicate FILTER`."""
    wanted, pick = _parse_selection("--duplicate", text)
    return Double(text=option_text("--duplicate", text), wanted=wanted, pick=pick)


def hold(text: str) -> Hold:
    """Parse `--hold FILTER`."""
    wanted, pick = _parse_selection("--hold", text)
    return Hold(text=option_text("--hold", text), wanted=wanted, pick=pick)


def delay(text: str, time: str) -> Delay:
    """Parse `--delay FILTER TIME`, with `, reorder` after the time if later messages may overtake."""
    wanted, pick = _parse_selection("--delay", text)
    duration, _, order = time.partition(",")
    if order and order.strip() != _REORDER:
        raise RuleError(f"--delay: {order.strip()!r} is unknown here: write 500ms, or '500ms, {_REORDER}'")
    try:
        read = parse_duration(duration)
    except DurationError as error:
        raise RuleError(f"--delay: {error}") from error
    return Delay(
        text=option_text("--delay", text, time), wanted=wanted, pick=pick, duration=read, may_pass=bool(order)
    )


def change(text: str, values: str, *, is_forced: bool) -> Change:
    """Parse `--change FILTER FIELD=VALUE…`."""
    wanted, pick = _parse_selection("--change", text)
    assignments = _assignments("--change", values)
    if not assignments:
        raise RuleError("--change: give at least one FIELD=VALUE, such as dice=2,1")
    if not is_forced:
        _check_change(wanted, assignments)
    return Change(
        text=option_text("--change", text, values),
        wanted=wanted,
        pick=pick,
        assignments=assignments,
        is_forced=is_forced,
    )


def insert(text: str, message: str, *, is_forced: bool) -> Insert:
    """Parse `--insert FILTER 'NAME FIELD=VALUE…'`."""
    wanted, pick = _parse_selection("--insert", text)
    name, rest = split_name(message)
    if not name:
        raise RuleError("--insert: write the message's name first: 'NAME FIELD=VALUE …'")
    assignments = _assignments("--insert", rest)
    _check_insert(wanted, name, assignments, is_forced)
    return Insert(
        text=option_text("--insert", text, message),
        wanted=wanted,
        pick=pick,
        name=name,
        assignments=assignments,
        is_forced=is_forced,
    )


def _parse_selection(option: str, text: str) -> tuple[Filter | None, Selector]:
    try:
        asked, pick = split_selector(text)
    except SelectorError as error:
        raise RuleError(f"{option}: {error}") from error
    if not asked:
        if pick == ALL:
            raise RuleError(f"{option}: give a filter; udp or tcp selects all messages")
        return None, pick
    catalog = msgspec.structs.replace(field_catalog(), has_state=True)
    wanted = compile_filter(asked, catalog)
    unknown = next(filter(wanted.asks, _UNAVAILABLE), None)
    if unknown is not None:
        raise RuleError(
            f"{option}: {unknown} is not known while a message is forwarded; use msg, dir, stream, who, "
            "client, server, time, a field, or state.FIELD"
        )
    every = [*_kinds(installed().dissectors.values())]
    if (
        UNREADABLE not in wanted.compared_with("msg")
        and next(_matching_kinds(wanted.meaning, every), None) is None
    ):
        raise RuleError(f"{option}: no message of any protocol can match {asked}{_suggestion(wanted, every)}")
    return wanted, pick


def _suggestion(wanted: Filter, every: Sequence[_Kind]) -> str:
    """Return a suggestion for an unknown message name in a filter."""
    known = {kind.name for kind in every}
    for name in wanted.compared_with("msg"):
        near = nearest_word(str(name), known) if name not in known else None
        if near is not None:
            return f"; {did_you_mean(near)}"
    return ""


def _assignments(option: str, text: str) -> tuple[Assignment, ...]:
    try:
        return tuple(parse_assignments(text))
    except AssignmentError as error:
        raise RuleError(f"{option}: {error}") from error


def _check_change(wanted: Filter | None, assignments: Sequence[Assignment]) -> None:
    """Raise RuleError if no message that may match can have these values."""
    objections: dict[bool, str] = {}
    for kind in _matching_kinds(wanted.meaning if wanted else None, _kinds(installed().dissectors.values())):
        target = target_of(kind.dissector, kind.name, kind.direction, {})
        objection = target.objection(assignments)
        if objection is None:
            return
        # The objection of a message that has these fields is more helpful.
        has_fields = all(assignment.steps[0] in kind.fields for assignment in assignments)
        objections.setdefault(has_fields, objection)
    if objections:
        raise RuleError(f"--change: {objections.get(True) or objections[False]}")


def _check_insert(
    wanted: Filter | None, name: str, assignments: Sequence[Assignment], is_forced: bool
) -> None:
    """Raise RuleError if no protocol with a matching message has this one, with these values."""
    objections: dict[bool, str] = {}
    for kind in _matching_kinds(wanted.meaning if wanted else None, _kinds(installed().dissectors.values())):
        directions = (kind.direction, OPPOSITE[kind.direction])
        try:
            if is_forced:
                direction_of(kind.dissector, name, directions)
            else:
                encode_new(kind.dissector, name, directions, assignments)
        except AssignmentError as error:
            is_known = any(kind.dissector.grammar.rows_named(one, name) for one in directions)
            objections.setdefault(is_known, str(error))
        else:
            return
    if objections:
        raise RuleError(f"--insert: {objections.get(True) or objections[False]}")


# The static check: which messages a filter can match, from the grammars alone. It finds misspelt names and
# impossible values before anything runs.


class _Kind(msgspec.Struct, frozen=True):
    """The messages of one name and direction in a protocol; `fields` are those of all dialects."""

    dissector: Dissector
    name: str
    direction: Direction
    fields: frozenset[str]


def _kinds(dissectors: Iterable[Dissector]) -> Iterator[_Kind]:
    """Yield all kinds of messages in the order of the grammars."""
    for dissector in dissectors:
        for direction in DIRECTIONS:
            for name in dissector.grammar.names(direction):
                rows = dissector.grammar.rows_named(direction, name)
                fields = frozenset(field.name for row in rows for field in row.fields)
                yield _Kind(dissector, name, direction, fields)


def _matching_kinds(meaning: Meaning | None, among: Iterable[_Kind]) -> Iterator[_Kind]:
    """Return the kinds that may match a filter; all without one."""
    return (kind for kind in among if meaning is None or _may_match(meaning, kind) is not False)


def _may_match(meaning: Meaning, kind: _Kind) -> bool | None:
    """Return True if all messages match, False if none does, None if it depends on the message."""
    if isinstance(meaning, Condition):
        known = _known(meaning, kind)
        return known if known is None or meaning.wanted else not known
    answers = [_may_match(term, kind) for term in meaning.terms]
    decisive = not isinstance(meaning, AllOf)
    if decisive in answers:
        return decisive
    return None if None in answers else not decisive


def _known(condition: Condition, kind: _Kind) -> bool | None:
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
