"""A protocol file compiled for its tables: what each row of the grammar means, with ready expressions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from kiebitz.dissectors.filters.syntax import Step
from kiebitz.dissectors.grammar.grammar import MessageType, to_json
from kiebitz.dissectors.model import DIRECTIONS, OPPOSITE, Direction
from kiebitz.dissectors.protocol_file.expressions import (
    ASKED,
    WHO,
    Compiled,
    Evaluate,
    Pattern,
    compile_expression,
    compile_path,
    compile_value,
    optional_expression,
)
from kiebitz.dissectors.protocol_file.game.roles import Resolve, Role, conversion_of, roles_of
from kiebitz.dissectors.protocol_file.message_grammar import rows_of
from kiebitz.dissectors.protocol_file.sections import EventSpec, RuleSpec
from kiebitz.dissectors.protocol_file.specification import (
    MessageSpec,
    Specification,
)
from kiebitz.dissectors.protocol_file.templates import (
    RESERVED_IN_RULES,
    Sentence,
    asked_values,
    sentence_of,
    word_of,
)

CONNECTED = "connected"
"""Usual kind of the event that ties a connection to its player."""

GAMES = "games"
"""Key of the parts of the running games in the state."""

ROOMS = "rooms"
"""Key of the parts of rooms without a running game in the state."""

PRIVATE = "private"
"""Key of what only one player knows, by player."""

PLAYERS = "players"
"""Key of the players in the state."""

KEPT = frozenset({PLAYERS, PRIVATE})
"""Keys that are never in the part of a game."""


class PutPlan(msgspec.Struct, frozen=True):
    """A change of the state: steps of the path, and the new value, or its expression.

    `keys` are the steps if none of them is computed. The value `is_computed` if it is one expression.
    """

    steps: tuple[Step | Evaluate, ...]
    value: Any
    expression: Evaluate | None
    keys: tuple[str, ...] | None
    is_computed: bool

    @property
    def path(self) -> Pattern:
        """The steps as keys of the state, None for a computed one."""
        return tuple(None if callable(step) else str(step) for step in self.steps)


class EventPlan(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of event, ready to be emitted."""

    spec: EventSpec
    when: Compiled | None = None
    say: Sentence | None = None
    values: Mapping[str, Compiled]
    """Values in its data by key beside the message's fields: those of the sentence and of statistics."""
    actor: Compiled | None = None
    puts: tuple[PutPlan, ...] = ()
    label: Sentence | None = None
    result: tuple[tuple[str, Any, Evaluate | None], ...] = ()
    let: tuple[tuple[str, Compiled], ...] = ()

    @property
    def kind(self) -> str:
        """Its name."""
        return self.spec.key

    @property
    def changes(self) -> tuple[Pattern, ...]:
        """The paths of the state that it may change."""
        return (*(put.path for put in self.puts), *((("turn",),) if self.spec.turn else ()))


class RulePlan(msgspec.Struct, frozen=True, kw_only=True):
    """A rule, ready to be checked."""

    spec: RuleSpec
    when: Compiled | None
    unless: Compiled | None
    say: Sentence
    expected: Sentence | None
    let: tuple[tuple[str, Compiled], ...]
    of_game: bool
    """True if it depends on the state of a game."""


class RoomPlan(msgspec.Struct, frozen=True):
    """Rules for the game to which a message belongs, ready to be evaluated."""

    id: Compiled
    joins: frozenset[str]
    leaves: frozenset[str]
    of: Compiled | None


class RowPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The meaning of a row: its role, its events and its rules.

    `conversions` replace ids in fields by names. `keys` are fields that have another key in an event's data.
    `absent` are the optional fields. `asks` is True if the request is kept for its answer, and `answers` are
    the kept requests that it answers. It `is_quiet` if nothing depends on its messages.
    """

    row: MessageSpec
    role: Role
    conversions: tuple[tuple[str, Callable[[Any, Resolve], Any]], ...]
    keys: Mapping[str, str]
    absent: Mapping[str, None]
    events: tuple[EventPlan, ...]
    rules: tuple[RulePlan, ...]
    asks: bool
    answers: tuple[str, ...]
    is_quiet: bool


class Plan:
    """The meaning of a protocol file; `rows` are in the order of its messages."""

    def __init__(self, specification: Specification) -> None:
        self.specification = specification
        self.has_events = not all(event.silent for event in specification.events)
        identity = specification.identity
        self.at_ports = dict(zip(specification.ports, identity.ports, strict=False)) if identity else {}
        """Names of the players at the server's ports, if these identify them."""
        counted = _counted(specification)
        names = dict.fromkeys(row.name for row in specification.messages if not row.heartbeat)
        own = [] if self.has_events else [EventSpec(key=name, on=(name,)) for name in names]
        events = (*specification.events, *own)
        self.events = [_event_plan(event, counted.get(event.key, {})) for event in events]
        self.rules = [_rule_plan(rule, self._fields(rule)) for rule in specification.rules]
        game = specification.game
        self.rooms = (
            RoomPlan(
                compile_expression(game.id),
                frozenset(game.joins),
                frozenset(game.leaves),
                optional_expression(game.of),
            )
            if game is not None
            else None
        )
        """Rules for the game to which a message belongs; None if there is one at a time."""
        self._kept_requests = _kept_requests(specification)
        self.keeps_requests = bool(self._kept_requests)
        roles = roles_of(specification)
        self.messages = [*rows_of(specification)]
        """The rows of the grammar."""
        parts = zip(specification.messages, self.messages, roles, strict=True)
        self.rows = [self._row_plan(*each) for each in parts]
        self.by_row = dict(zip(map(id, self.messages), self.rows, strict=True))
        """The plans by the identity of the rows of the grammar."""
        self.fields = {event.kind: self._event_fields(event) for event in self.events}
        """Keys of the data of each kind of event, all unknown."""
        self.hidden = frozenset(name for row in self.rows for name in row.keys) | {
            field.name for row in specification.messages for field in row.fields if field.generated
        }
        """Fields that are not in an event's data, or have another key there; generated ones say nothing."""
        kinds = {event.kind for event in self.events}
        self.connected = CONNECTED if CONNECTED not in kinds else f"{CONNECTED}_2"
        """Kind of the event that ties a connection to its player, if the file has none for that."""
        self.opens_games = any(event.spec.opens for event in self.events)
        self.result_keys = tuple(dict.fromkeys(key for event in self.events for key, _, _ in event.result))
        self.waits = any(
            each.role.gives or (each.role.accepts and not each.row.broadcast) for each in self.rows
        )
        self.has_names = any(each.role.pairs is not None for each in self.rows)
        has_evidence = any(
            any(not event.spec.silent for event in each.events) and self.ties(each) for each in self.rows
        )
        self.ties_connections = specification.identity is not None and self.has_events and not has_evidence
        self.leaving = tuple(
            event
            for each in self.rows
            if each.role.leaves and each.row.direction == "c2s"
            for event in each.events
        )
        """Events that the end of a player's connection means, too."""
        self.changed_by = {direction: self._changed_by(direction) for direction in DIRECTIONS}
        """The paths of the state that messages of a direction may change."""

    def _row_plan(self, row: MessageSpec, of: MessageType, role: Role) -> RowPlan:
        events = [each for each in self.events if each.spec.selects(row.name, row.direction)]
        if row.heartbeat and not self.has_events:
            events = [each for each in events if each.spec.silent]
        rules = [each for each in self.rules if each.spec.selects(row.name, row.direction)]
        asks = (row.name, row.direction) in self._kept_requests
        answers = tuple(
            name for name in row.answers if (name, OPPOSITE[row.direction]) in self._kept_requests
        )
        return RowPlan(
            row=row,
            role=role,
            conversions=tuple(
                (field.name, convert)
                for field, each in zip(row.fields, of.fields, strict=True)
                if (convert := conversion_of(field, each.type, self.specification.identity)) is not None
            ),
            keys={field.name: key for field in row.fields if (key := word_of(field.name)) != field.name},
            absent={field.name: None for field in row.fields if field.optional},
            events=tuple(events),
            rules=tuple(rules),
            asks=asks,
            answers=answers,
            is_quiet=role.is_silent and not (events or rules or asks or answers or self.rooms),
        )

    def _changed_by(self, direction: Direction) -> frozenset[Pattern]:
        found: set[Pattern] = set()
        for plan in self.rows:
            if plan.row.direction == direction:
                if not self.has_events:
                    found.add((PLAYERS, None))
                for event in plan.events:
                    found.update(event.changes)
                if any(event.spec.opens or event.spec.closes for event in plan.events):
                    found.update(
                        path for event in self.events for path in event.changes if path[0] not in KEPT
                    )
        return frozenset(found)

    def _event_fields(self, event: EventPlan) -> dict[str, None]:
        fields = dict.fromkeys(
            word_of(field.name)
            for plan in self.rows
            if event in plan.events
            for field in plan.row.fields
            if not field.generated
        )
        return fields | dict.fromkeys(event.values)

    def _fields(self, rule: RuleSpec) -> frozenset[str]:
        return frozenset(
            word
            for row in self.specification.messages
            if rule.selects(row.name, row.direction)
            for field in row.fields
            for word in (field.name, word_of(field.name))
        )

    def ties(self, plan: RowPlan) -> bool:
        """Return True if a message of a row ties its connection to a player by itself."""
        role = plan.role
        is_evidence = bool(self.at_ports) or role.logs_in or role.gives or role.accepts
        return is_evidence and not plan.row.broadcast


def _counted(specification: Specification) -> dict[str, dict[str, Compiled]]:
    """Return the values of answered requests that statistics need, by kind of event and key."""
    found: dict[str, dict[str, Compiled]] = {}
    for spec in specification.statistics:
        if ASKED in to_json(msgspec.to_builtins(spec)):
            values = {word: compile_expression(text) for word, text in asked_values(spec).items()}
            for kind in spec.on:
                found.setdefault(kind, {}).update(values)
    return found


def _event_plan(event: EventSpec, counted: Mapping[str, Compiled]) -> EventPlan:
    say = sentence_of(event.say) if event.say else None
    return EventPlan(
        spec=event,
        when=optional_expression(event.when),
        say=say,
        values={**counted, **(say.values if say is not None else {})},
        actor=None if event.actor.strip() == WHO else optional_expression(event.actor),
        puts=tuple(_put_plan(path, value) for path, value in event.put.items()),
        label=sentence_of(event.label) if event.label else None,
        result=tuple((key, *_value(value)) for key, value in event.result.items()),
        let=_let(event.let),
    )


def _put_plan(path: str, value: Any) -> PutPlan:
    steps = compile_path(path)
    is_fixed = not any(callable(step) for step in steps)
    return PutPlan(
        steps, *_value(value), tuple(map(str, steps)) if is_fixed else None, isinstance(value, str)
    )


def _rule_plan(rule: RuleSpec, fields: frozenset[str]) -> RulePlan:
    when, unless, let = optional_expression(rule.when), optional_expression(rule.unless), _let(rule.let)
    parts = (when, unless, *(value for _, value in let))
    names = {str(name.steps[0]) for part in parts if part is not None for name in part.lookups}
    return RulePlan(
        spec=rule,
        when=when,
        unless=unless,
        say=sentence_of(rule.say, RESERVED_IN_RULES),
        expected=sentence_of(rule.expected, RESERVED_IN_RULES) if rule.expected else None,
        let=let,
        of_game=not names <= fields | KEPT | {WHO, ASKED, *rule.let},
    )


def _kept_requests(specification: Specification) -> frozenset[tuple[str, Direction]]:
    """Return the requests whose fields events or rules may use, and those that the same messages answer."""
    parts: list[EventSpec | RuleSpec] = [*specification.events, *specification.rules]
    using = {name for part in parts if ASKED in to_json(msgspec.to_builtins(part)) for name in part.on}
    counted = _counted(specification)
    using |= {name for event in specification.events if event.key in counted for name in event.on} | {
        *counted
    }
    if specification.game is not None:
        using.update(specification.game.joins)
    kept: set[tuple[str, Direction]] = set()
    waiting = [row for row in specification.messages if row.name in using]
    while waiting:
        row = waiting.pop()
        more = {(name, OPPOSITE[row.direction]) for name in row.answers} - kept
        kept |= more
        waiting += [
            other
            for other in specification.messages
            for name, direction in more
            if name in other.answers and other.direction != direction
        ]
    return frozenset(kept)


def _let(values: Mapping[str, str]) -> tuple[tuple[str, Compiled], ...]:
    return tuple((name, compile_expression(text)) for name, text in values.items())


def _value(value: Any) -> tuple[Any, Evaluate | None]:
    """Return a value that is itself, or its expressions; an empty text removes, as None does."""
    compiled = compile_value(value)
    return (None if compiled is not None or isinstance(value, str) else value), compiled
