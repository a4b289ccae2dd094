"""What is to be done to which messages: the options of the relay, read and checked before anything runs.

A rule is checked against all grammars that are installed: which protocol a server speaks is only known once
it has spoken.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import ClassVar

import msgspec

from kiebitz.dissectors.editing.assignment_parser import (
    Assignment,
    AssignmentError,
    parse_assignments,
    split_name,
)
from kiebitz.dissectors.editing.message_encoding import direction_of, encode_new, target_of
from kiebitz.dissectors.errors import KiebitzError
from kiebitz.dissectors.filters import Filter, compile_filter
from kiebitz.dissectors.filters.fields import COLUMNS
from kiebitz.dissectors.grammar.grammar import UNREADABLE, nearest_word
from kiebitz.dissectors.model import OPPOSITE, Action
from kiebitz.dissectors.registry import installed
from kiebitz.dissectors.suggestions import did_you_mean
from kiebitz.services.alteration.durations import Duration, DurationError, read_duration
from kiebitz.services.alteration.impairment import Impairment
from kiebitz.services.alteration.selectors import ALL, Pick, PickError, split_pick
from kiebitz.services.alteration.static_check import Kind, kinds, kinds_met
from kiebitz.storage.read.conditions import field_catalog

_NOT_YET = (
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
"""Names of the filter language that have a value only once a message is recorded."""

_REORDER = "reorder"
"""Behind a delay: those that come later may pass."""


class RuleError(KiebitzError):
    """A rule that cannot be followed; says which option, why, and what to write."""

    is_usage = True


class _Chosen(msgspec.Struct, frozen=True, kw_only=True):
    """A rule about some messages. `text` is how it was written, for marks and errors."""

    text: str
    wanted: Filter | None
    """None: whatever comes."""
    pick: Pick = ALL


class Drop(_Chosen, frozen=True):
    """They are not passed on."""

    action: ClassVar[Action] = "drop"


class Change(_Chosen, frozen=True):
    """They are given other values; with `is_forced` also such as the grammar does not allow."""

    action: ClassVar[Action] = "change"
    assignments: tuple[Assignment, ...]
    is_forced: bool


class Double(_Chosen, frozen=True):
    """They are passed on twice."""

    action: ClassVar[Action] = "double"


class Delay(_Chosen, frozen=True):
    """They wait, and those behind them with them, unless these `may_pass`."""

    action: ClassVar[Action] = "delay"
    duration: Duration
    may_pass: bool


class Insert(_Chosen, frozen=True):
    """Each is followed by another message, on the same stream."""

    action: ClassVar[Action] = "insert"
    name: str
    assignments: tuple[Assignment, ...]
    is_forced: bool


class Hold(_Chosen, frozen=True):
    """They wait until somebody says what is to become of them."""

    action: ClassVar[Action] = "hold"


class Impair(msgspec.Struct, frozen=True, kw_only=True):
    """Everything passes as through a bad network."""

    text: str
    impairment: Impairment


class Script(msgspec.Struct, frozen=True, kw_only=True):
    """A hook says what becomes of each message; `path` is its file."""

    text: str
    path: str


Chosen = Drop | Change | Double | Delay | Insert | Hold
Rule = Chosen | Impair | Script


def written(option: str, *values: str) -> str:
    """An option as it is written on a command line."""
    return " ".join((option, *map(shlex.quote, values)))


def drop(text: str) -> Drop:
    """`--drop FILTER`. Raises RuleError, as all of these do, and FilterError."""
    wanted, pick = _chosen("--drop", text)
    return Drop(text=written("--drop", text), wanted=wanted, pick=pick)


def double(text: str) -> Double:
    """`--duplicate FILTER`."""
    wanted, pick = _chosen("--duplicate", text)
    return Double(text=written("--duplicate", text), wanted=wanted, pick=pick)


def hold(text: str) -> Hold:
    """`--hold FILTER`."""
    wanted, pick = _chosen("--hold", text)
    return Hold(text=written("--hold", text), wanted=wanted, pick=pick)


def delay(text: str, time: str) -> Delay:
    """`--delay FILTER TIME`, with `, reorder` behind the time if those that come later may pass."""
    wanted, pick = _chosen("--delay", text)
    duration, _, order = time.partition(",")
    if order and order.strip() != _REORDER:
        raise RuleError(f"--delay: {order.strip()!r} says nothing here: write 500ms, or '500ms, {_REORDER}'")
    try:
        read = read_duration(duration)
    except DurationError as error:
        raise RuleError(f"--delay: {error}") from error
    return Delay(
        text=written("--delay", text, time), wanted=wanted, pick=pick, duration=read, may_pass=bool(order)
    )


def change(text: str, values: str, *, is_forced: bool) -> Change:
    """`--change FILTER FIELD=VALUE…`."""
    wanted, pick = _chosen("--change", text)
    assignments = _assignments("--change", values)
    if not assignments:
        raise RuleError("--change: give a field another value: FIELD=VALUE, such as dice=2,1")
    if not is_forced:
        _check_change(wanted, assignments)
    return Change(
        text=written("--change", text, values),
        wanted=wanted,
        pick=pick,
        assignments=assignments,
        is_forced=is_forced,
    )


def insert(text: str, message: str, *, is_forced: bool) -> Insert:
    """`--insert FILTER 'NAME FIELD=VALUE…'`."""
    wanted, pick = _chosen("--insert", text)
    name, rest = split_name(message)
    if not name:
        raise RuleError("--insert: write the message's name first: 'NAME FIELD=VALUE …'")
    assignments = _assignments("--insert", rest)
    _check_insert(wanted, name, assignments, is_forced)
    return Insert(
        text=written("--insert", text, message),
        wanted=wanted,
        pick=pick,
        name=name,
        assignments=assignments,
        is_forced=is_forced,
    )


def _chosen(option: str, text: str) -> tuple[Filter | None, Pick]:
    try:
        asked, pick = split_pick(text)
    except PickError as error:
        raise RuleError(f"{option}: {error}") from error
    if not asked:
        if pick == ALL:
            raise RuleError(f"{option}: say which messages; udp, or tcp, means all of them")
        return None, pick
    catalog = msgspec.structs.replace(field_catalog(), has_state=True)
    wanted = compile_filter(asked, catalog)
    unknown = next(filter(wanted.asks, _NOT_YET), None)
    if unknown is not None:
        raise RuleError(
            f"{option}: {unknown} is not known yet while a message passes; ask for msg, dir, stream, who, "
            "client, server, time, a field, or state.FIELD"
        )
    every = [*kinds(installed().dissectors.values())]
    if UNREADABLE not in wanted.compared_with("msg") and next(kinds_met(wanted.meaning, every), None) is None:
        raise RuleError(f"{option}: no message of any protocol can meet {asked}{_meant(wanted, every)}")
    return wanted, pick


def _meant(wanted: Filter, every: Sequence[Kind]) -> str:
    """Which name of a message was probably meant by a filter that meets none."""
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
    """See that some message that meets the filter can be given these values."""
    objections: dict[bool, str] = {}
    for kind in kinds_met(wanted.meaning if wanted else None, kinds(installed().dissectors.values())):
        target = target_of(kind.dissector, kind.name, kind.direction, {})
        objection = target.objection(assignments)
        if objection is None:
            return
        # That of a message that has these fields says more.
        has_fields = all(assignment.steps[0] in kind.fields for assignment in assignments)
        objections.setdefault(has_fields, objection)
    if objections:
        raise RuleError(f"--change: {objections.get(True) or objections[False]}")


def _check_insert(
    wanted: Filter | None, name: str, assignments: Sequence[Assignment], is_forced: bool
) -> None:
    """See that some protocol whose messages meet the filter has this one, with these values."""
    objections: dict[bool, str] = {}
    for kind in kinds_met(wanted.meaning if wanted else None, kinds(installed().dissectors.values())):
        directions = (kind.direction, OPPOSITE[kind.direction])
        try:
            if is_forced:
                direction_of(kind.dissector, name, directions)
            else:
                encode_new(kind.dissector, name, directions, assignments)
        except AssignmentError as error:
            is_known = any(kind.dissector.grammar.rows_named(way, name) for way in directions)
            objections.setdefault(is_known, str(error))
        else:
            return
    if objections:
        raise RuleError(f"--insert: {objections.get(True) or objections[False]}")
