"""Interception rules: the relay's options, parsed and checked before anything runs.

A rule is checked against all installed grammars, as a server's protocol is only known from its traffic.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, TypeVar

import msgspec

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.editing.assignment_parser import (
    Assignment,
    AssignmentError,
    parse_assignments,
    split_name,
)
from kiebitz.dissectors.editing.message_encoding import direction_of, encode_new, target_of
from kiebitz.dissectors.filters import Filter, compile_filter
from kiebitz.dissectors.filters.fields import COLUMNS, AnyField, Column, MessageField, MessageName
from kiebitz.dissectors.filters.semantics import AllOf, Condition, Meaning
from kiebitz.dissectors.filters.values import holds
from kiebitz.dissectors.grammar.grammar import UNREADABLE, nearest_word
from kiebitz.dissectors.model import DIRECTIONS, OPPOSITE, Action, Direction
from kiebitz.dissectors.registry import installed
from kiebitz.dissectors.suggestions import did_you_mean
from kiebitz.services.alteration.rule_values import (
    ALL,
    Duration,
    Impairment,
    RuleError,
    Selector,
    parse_duration,
    split_selector,
)
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

    wanted: ClassVar[None] = None
    text: str
    impairment: Impairment


class Script(msgspec.Struct, frozen=True, kw_only=True):
    """Lets the hook in the file `path` decide about each message."""

    wanted: ClassVar[None] = None
    text: str
    path: str


SelectingRule = Drop | Change | Double | Delay | Insert | Hold
Rule = SelectingRule | Impair | Script


def option_text(option: str, *values: str) -> str:
    """Return an option as written on a command line."""
    return " ".join((option, *map(shlex.quote, values)))


@contextmanager
def naming(option: str) -> Iterator[None]:
    """Name the option in errors about its values. Raises RuleError."""
    try:
        yield
    except (RuleError, AssignmentError) as error:
        raise RuleError(f"{option}: {error}") from error


def drop(text: str) -> Drop:
    """Parse `--drop FILTER`. Raises RuleError, as all of these do, and FilterError."""
    return _parse(Drop, "--drop", text)


def double(text: str) -> Double:
    """Parse `--duplicate FILTER`."""
    return _parse(Double, "--duplicate", text)


def hold(text: str) -> Hold:
    """Parse `--hold FILTER`."""
    return _parse(Hold, "--hold", text)


def delay(text: str, time: str) -> Delay:
    """Parse `--delay FILTER TIME`, with `, reorder` after the time if later messages may overtake."""
    duration, _, order = time.partition(",")
    with naming("--delay"):
        if order and order.strip() != _REORDER:
            raise RuleError(f"{order.strip()!r} is unknown here: write 500ms, or '500ms, {_REORDER}'")
        read = parse_duration(duration)
    return _parse(Delay, "--delay", text, time, duration=read, may_pass=bool(order))


def change(text: str, values: str, *, is_forced: bool) -> Change:
    """Parse `--change FILTER FIELD=VALUE…`."""
    with naming("--change"):
        assignments = tuple(parse_assignments(values))
        if not assignments:
            raise RuleError("give at least one FIELD=VALUE, such as dice=2,1")

    def objection(kind: _Kind) -> tuple[bool, str] | None:
        found = target_of(kind.dissector, kind.name, kind.direction, {}).objection(assignments)
        has_fields = all(assignment.steps[0] in kind.fields for assignment in assignments)
        return None if found is None else (has_fields, found)

    rule = _parse(Change, "--change", text, values, assignments=assignments, is_forced=is_forced)
    if not is_forced:
        _check("--change", rule.wanted, objection)
    return rule


def insert(text: str, message: str, *, is_forced: bool) -> Insert:
    """Parse `--insert FILTER 'NAME FIELD=VALUE…'`."""
    name, rest = split_name(message)
    with naming("--insert"):
        if not name:
            raise RuleError("write the message's name first: 'NAME FIELD=VALUE …'")
        assignments = tuple(parse_assignments(rest))

    def objection(kind: _Kind) -> tuple[bool, str] | None:
        directions = (kind.direction, OPPOSITE[kind.direction])
        try:
            if is_forced:
                direction_of(kind.dissector, name, directions)
            else:
                encode_new(kind.dissector, name, directions, assignments)
        except AssignmentError as error:
            return any(kind.dissector.grammar.rows_named(one, name) for one in directions), str(error)
        return None

    rule = _parse(Insert, "--insert", text, message, name=name, assignments=assignments, is_forced=is_forced)
    _check("--insert", rule.wanted, objection)
    return rule


_Selecting = TypeVar("_Selecting", bound=_SelectingRule)


def _parse(kind: type[_Selecting], option: str, text: str, *values: str, **own: Any) -> _Selecting:
    """Return a rule with the messages that the filter `text` selects, and with what is its `own`."""
    with naming(option):
        wanted, pick = _parse_selection(text)
    return kind(text=option_text(option, text, *values), wanted=wanted, pick=pick, **own)


def _parse_selection(text: str) -> tuple[Filter | None, Selector]:
    asked, pick = split_selector(text)
    if not asked:
        if pick == ALL:
            raise RuleError("give a filter; udp or tcp selects all messages")
        return None, pick
    catalog = msgspec.structs.replace(field_catalog(), has_state=True)
    wanted = compile_filter(asked, catalog)
    unknown = next(filter(wanted.asks, _UNAVAILABLE), None)
    if unknown is not None:
        raise RuleError(
            f"{unknown} is not known while a message is forwarded; use msg, dir, stream, who, client, "
            "server, time, a field, or state.FIELD"
        )
    if UNREADABLE not in wanted.compared_with("msg") and next(_matching_kinds(wanted), None) is None:
        raise RuleError(f"no message of any protocol can match {asked}{_suggestion(wanted)}")
    return wanted, pick


def _suggestion(wanted: Filter) -> str:
    """Return a suggestion for an unknown message name in a filter."""
    known = {kind.name for kind in _matching_kinds(None)}
    for name in wanted.compared_with("msg"):
        near = nearest_word(str(name), known) if name not in known else None
        if near is not None:
            return f"; {did_you_mean(near)}"
    return ""


def _check(option: str, wanted: Filter | None, objection: Callable[[_Kind], tuple[bool, str] | None]) -> None:
    """Raise RuleError if there is an objection for each message that may match; the first true one counts."""
    objections: dict[bool, str] = {}
    for kind in _matching_kinds(wanted):
        found = objection(kind)
        if found is None:
            return
        objections.setdefault(*found)
    if objections:
        raise RuleError(f"{option}: {objections.get(True) or objections[False]}")


# The static check: which messages a filter can match, from the grammars alone. It finds misspelt names and
# impossible values before anything runs.


class _Kind(msgspec.Struct, frozen=True):
    """The messages of one name and direction in a protocol; `fields` are those of all dialects."""

    dissector: Dissector
    name: str
    direction: Direction
    fields: frozenset[str]


def _matching_kinds(wanted: Filter | None) -> Iterator[_Kind]:
    """Yield the kinds of messages that may match a filter, in the order of the grammars."""
    for dissector in installed().dissectors.values():
        for direction in DIRECTIONS:
            for name in dissector.grammar.names(direction):
                rows = dissector.grammar.rows_named(direction, name)
                fields = frozenset(field.name for row in rows for field in row.fields)
                kind = _Kind(dissector, name, direction, fields)
                if wanted is None or _may_match(wanted.meaning, kind) is not False:
                    yield kind


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
