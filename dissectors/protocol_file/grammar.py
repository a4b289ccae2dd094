"""The grammar of a protocol file: rows, kinds of events, rules, and kinds of identifiers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any, cast

from kiebitz.dissectors.filters.parser import parse_expression
from kiebitz.dissectors.filters.syntax import Lookup
from kiebitz.dissectors.grammar.field_type import IdentifierKind
from kiebitz.dissectors.grammar.grammar import (
    EventKind,
    Grammar,
    Rule,
)
from kiebitz.dissectors.protocol_file.composed import expressions_in
from kiebitz.dissectors.protocol_file.expressions import ASKED, WHO
from kiebitz.dissectors.protocol_file.game.plan import ROOMS, EventPlan, Plan, RowPlan
from kiebitz.dissectors.protocol_file.game.roles import ID, PLAYER, kinds_in
from kiebitz.dissectors.protocol_file.message_grammar import grammar_with
from kiebitz.dissectors.protocol_file.specification import (
    EventSpec,
    RuleSpec,
    Specification,
)
from kiebitz.dissectors.protocol_file.templates import word_of
from kiebitz.dissectors.protocol_file.text_types import identifier_kind

_PLAYER = identifier_kind(PLAYER)


def grammar_of(plan: Plan) -> Grammar:
    """Return the grammar of a protocol file with this plan."""
    specification = plan.specification
    kinds = {"actor": _PLAYER, WHO: _PLAYER, **_field_kinds(specification)}
    grid = specification.board.grid if specification.board is not None else None
    words = () if grid is None else (*grid.symbols, *(grid.cell or "").split("."), grid.x, grid.y)
    return grammar_with(
        specification,
        words,
        events=_event_kinds(plan),
        rules=[rule.row or _rule(rule, plan) for rule in specification.rules],
        data_identifiers=kinds,
        state_identifiers=dict(_state_kinds(specification, kinds))
        | dict.fromkeys(("players", "private", "turn"), _PLAYER)
        | ({ROOMS: room} if (room := _room_kind(specification, kinds)) is not None else {}),
    )


# Events.


def _event_kinds(plan: Plan) -> Iterator[EventKind]:
    if plan.specification.table is not None:
        yield from (event.row for event in plan.specification.events if event.row is not None)
        return
    specs = {spec.kind: spec for spec in plan.specification.events if not spec.silent}
    for event in plan.events:
        if event.silent:
            continue
        yield _event_kind(plan, event, specs.get(event.kind))
    if plan.ties_connections:
        own = tuple(
            dict.fromkeys(
                row.name for row in plan.specification.messages if not row.broadcast and not row.heartbeat
            )
        )
        yield EventKind(plan.connected, (WHO,), "{who} connects", reported_by=own, identifies=True)


def _event_kind(plan: Plan, event: EventPlan, spec: EventSpec | None) -> EventKind:
    about = [
        (row, each)
        for row, each in zip(plan.specification.messages, plan.rows, strict=True)
        if event in each.events
    ]
    fields = plan.fields[event.kind]
    sentence = event.say.template if event.say is not None else plain_sentence(event.kind, fields)
    reported_by = dict.fromkeys(
        row.name for row, each in about if not row.broadcast and event.actor is None and _is_own(each, spec)
    )
    tying = [
        row.name for row, each in about if row.name in reported_by and plan.ties(each.role, row.broadcast)
    ]
    return EventKind(
        event.kind,
        tuple(fields),
        sentence,
        secret=spec is not None and spec.secret,
        reported_by=tuple(reported_by),
        identifies=bool(tying),
        implied_by="before" if _follows(plan, event, spec) else None,
        joins=spec is not None and spec.joins,
        ends=spec is not None and spec.ends,
        cancels=spec is not None and spec.cancels,
        timeout=spec is not None and spec.timeout,
    )


def plain_sentence(kind: str, fields: Mapping[str, None]) -> str:
    """Return the sentence of a message that is an event by itself."""
    return " ".join([f"{{{WHO}}}: {_escaped(kind)}", *(f"{_escaped(key)} {{{key}}}" for key in fields)])


def _escaped(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def _is_own(row: RowPlan, spec: EventSpec | None) -> bool:
    """Return True if the player of the message is that of its connection."""
    if row.direction == "c2s":
        return True
    role = row.role
    return role.who is None or role.gives or role.accepts or (spec is not None and spec.secret)


def _follows(plan: Plan, event: EventPlan, spec: EventSpec | None) -> bool:
    """Return True if another event of the same message to all may come before it."""
    if spec is None or spec.secret:
        return False
    places = [(row.broadcast, row.events.index(event)) for row in plan.rows if event in row.events]
    return any(place for _, place in places) and all(broadcast for broadcast, place in places if place)


# Rules.


def _rule(rule: RuleSpec, plan: Plan) -> Rule:
    compiled = next(each for each in plan.rules if each.key == rule.key)
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
    if specification.identity is not None and specification.identity.id is not None:
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
        for put in event.puts:
            steps = cast(Lookup, parse_expression(put.path)).steps
            for step, below in pairwise(steps):
                if isinstance(step, str) and (kind := _kind(below, kinds)) is not None:
                    yield step, kind
            for within, text in expressions_in(put.value):
                kind = _kind(parse_expression(text), kinds)
                keys = [step for step in (*steps, *within) if isinstance(step, str)]
                if kind is not None:
                    yield keys[-1], kind


def _room_kind(specification: Specification, kinds: Mapping[str, IdentifierKind]) -> IdentifierKind | None:
    """Return the kind of identifier of a game, None if there is one at a time, or if its id is plain."""
    return None if specification.game is None else _kind(parse_expression(specification.game.id), kinds)


def _kind(term: Any, kinds: Mapping[str, IdentifierKind]) -> IdentifierKind | None:
    """Return the kind of a field that is an identifier, None for any other term."""
    if isinstance(term, Lookup) and (len(term.steps) == 1 or term.steps[0] == ASKED):
        return kinds.get(str(term.steps[-1]))
    return None
