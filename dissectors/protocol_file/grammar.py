"""The grammar of a protocol file: rows, kinds of events, rules, and kinds of identifiers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from kiebitz.dissectors.filters.parser import parse_expression
from kiebitz.dissectors.filters.syntax import Lookup
from kiebitz.dissectors.grammar.field_type import IdentifierKind
from kiebitz.dissectors.grammar.grammar import (
    EventKind,
    Grammar,
    Rule,
)
from kiebitz.dissectors.protocol_file.expressions import ASKED, WHO, expressions_in, path_of
from kiebitz.dissectors.protocol_file.game.plan import ROOMS, EventPlan, Plan, RowPlan
from kiebitz.dissectors.protocol_file.game.roles import ID, PLAYER, kinds_in
from kiebitz.dissectors.protocol_file.message_grammar import grammar_with
from kiebitz.dissectors.protocol_file.sections import EventSpec, RuleSpec
from kiebitz.dissectors.protocol_file.specification import Specification
from kiebitz.dissectors.protocol_file.templates import word_of
from kiebitz.dissectors.protocol_file.text_types import identifier_kind

_PLAYER = identifier_kind(PLAYER)


def grammar_of(plan: Plan) -> Grammar:
    """Return the grammar of a protocol file with this plan."""
    specification = plan.specification
    kinds = {"actor": _PLAYER, WHO: _PLAYER, **_field_kinds(specification)}
    grid = specification.board.grid if specification.board is not None else None
    words = () if grid is None else (*grid.symbols, *grid.cell.split("."), grid.x, grid.y)
    game = specification.game
    room = None if game is None else _kind(parse_expression(game.id), kinds)
    return grammar_with(
        specification,
        words,
        rows=plan.messages,
        events=_event_kinds(plan),
        rules=specification.table_rules or [_rule(rule, plan) for rule in specification.rules],
        data_identifiers=kinds,
        state_identifiers=dict(_state_kinds(specification, kinds))
        | dict.fromkeys(("players", "private", "turn"), _PLAYER)
        | ({ROOMS: room} if room is not None else {}),
    )


# Events.


def _event_kinds(plan: Plan) -> Iterator[EventKind]:
    if plan.specification.table is not None:
        yield from plan.specification.event_kinds
        return
    yield from (_event_kind(plan, event) for event in plan.events if not event.spec.silent)
    if plan.ties_connections:
        own = [row.name for row in plan.specification.messages if not row.broadcast and not row.heartbeat]
        reported_by = tuple(dict.fromkeys(own))
        yield EventKind(plan.connected, (WHO,), "{who} connects", reported_by=reported_by, identifies=True)


def _event_kind(plan: Plan, event: EventPlan) -> EventKind:
    spec = event.spec
    fields = plan.fields[event.kind]
    sentence = event.say.template if event.say is not None else plain_sentence(event.kind, fields)
    about = [each for each in plan.rows if event in each.events]
    reported_by = dict.fromkeys(
        each.row.name
        for each in about
        if not each.row.broadcast and event.actor is None and _is_own(each, spec)
    )
    return EventKind(
        event.kind,
        tuple(fields),
        sentence,
        secret=spec.secret,
        reported_by=tuple(reported_by),
        identifies=any(each.row.name in reported_by and plan.ties(each) for each in about),
        implied_by="before" if _follows(plan, event) else None,
        joins=spec.joins,
        ends=spec.closes,
        cancels=spec.cancels,
        timeout=spec.timeout,
    )


def plain_sentence(kind: str, fields: Mapping[str, None]) -> str:
    """Return the sentence of a message that is an event by itself."""
    return " ".join([f"{{{WHO}}}: {_escaped(kind)}", *(f"{_escaped(key)} {{{key}}}" for key in fields)])


def _escaped(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def _is_own(plan: RowPlan, spec: EventSpec) -> bool:
    """Return True if the player of the message is that of its connection."""
    role = plan.role
    is_own = role.who is None or role.gives or role.accepts
    return plan.row.direction == "c2s" or is_own or spec.secret


def _follows(plan: Plan, event: EventPlan) -> bool:
    """Return True if another event of the same message to all may come before it."""
    if event.spec.secret or not plan.has_events:
        return False
    places = [(each.row.broadcast, each.events.index(event)) for each in plan.rows if event in each.events]
    return any(place for _, place in places) and all(broadcast for broadcast, place in places if place)


# Rules.


def _rule(rule: RuleSpec, plan: Plan) -> Rule:
    compiled = next(each for each in plan.rules if each.spec is rule)
    rows = (row for row in plan.specification.messages if row.name in rule.on)
    clause = rule.clause or next((row.clause for row in rows if row.clause), f"rules.{rule.key}")
    return Rule(
        rule.key,
        rule.on[0] if len(rule.on) == 1 else None,
        compiled.say.template,
        expected=compiled.expected.template if compiled.expected is not None else None,
        severity=rule.severity,
        clause=_escaped(clause),
    )


# Identifiers.


def _field_kinds(specification: Specification) -> dict[str, IdentifierKind]:
    """Return the kinds of identifiers in the data of events, where players are named, by key."""
    found: dict[str, IdentifierKind] = {}
    if specification.identity is not None and specification.identity.id:
        found[specification.identity.id] = _PLAYER
    for row in specification.messages:
        for field in row.fields:
            for name, kind in kinds_in(field):
                key = word_of(name) if name == field.name else name
                found.setdefault(key, _PLAYER if kind == ID else identifier_kind(kind))
    # Those of the request that a message answers, in sentences.
    asked = {WHO: _PLAYER, **found}
    return {**{word_of(f"{ASKED}.{key}"): kind for key, kind in asked.items()}, **found}


def _state_kinds(
    specification: Specification, kinds: Mapping[str, IdentifierKind]
) -> Iterator[tuple[str, IdentifierKind]]:
    """Yield the keys of the state at which, or below which, events put identifiers."""
    for event in specification.events:
        for path, value in event.put.items():
            steps = path_of(path).steps
            for step, below in pairwise(steps):
                if isinstance(step, str) and (kind := _kind(below, kinds)) is not None:
                    yield step, kind
            for within, text in expressions_in(value):
                kind = _kind(parse_expression(text), kinds)
                keys = [step for step in (*steps, *within) if isinstance(step, str)]
                if kind is not None:
                    yield keys[-1], kind


def _kind(term: Any, kinds: Mapping[str, IdentifierKind]) -> IdentifierKind | None:
    """Return the kind of a field that is an identifier, None for any other term."""
    if isinstance(term, Lookup) and (len(term.steps) == 1 or term.steps[0] == ASKED):
        return kinds.get(str(term.steps[-1]))
    return None
