"""The dissector of a protocol that is described by a file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from importlib import resources
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.filters.parser import parse_expression
from kiebitz.dissectors.filters.syntax import Lookup
from kiebitz.dissectors.game.state import State
from kiebitz.dissectors.game.table import MakeTable, SimpleTable, python_part
from kiebitz.dissectors.game.view import Scene, View
from kiebitz.dissectors.grammar.field_type import IdentifierKind
from kiebitz.dissectors.grammar.grammar import (
    EventKind,
    Grammar,
    Rule,
    shortened,
)
from kiebitz.dissectors.identity import Identity
from kiebitz.dissectors.model import Event
from kiebitz.dissectors.presentation import Presentation
from kiebitz.dissectors.protocol_file.codecs import codec_of, framer_of
from kiebitz.dissectors.protocol_file.expressions import ASKED, WHO, expressions_in, path_of
from kiebitz.dissectors.protocol_file.game.board import Board, states_of
from kiebitz.dissectors.protocol_file.game.plan import ROOMS, EventPlan, Plan, RowPlan
from kiebitz.dissectors.protocol_file.game.roles import ID, PLAYER, kinds_in
from kiebitz.dissectors.protocol_file.game.statistics import compiled_statistic
from kiebitz.dissectors.protocol_file.game.table import FileTable
from kiebitz.dissectors.protocol_file.line_fields import LineFieldsFramer, line_extents
from kiebitz.dissectors.protocol_file.message_grammar import grammar_with
from kiebitz.dissectors.protocol_file.packaged import packaged_file
from kiebitz.dissectors.protocol_file.patterns import one_budget
from kiebitz.dissectors.protocol_file.reading.reader import PythonParts, read
from kiebitz.dissectors.protocol_file.sections import EventSpec, RuleSpec
from kiebitz.dissectors.protocol_file.specification import Specification
from kiebitz.dissectors.protocol_file.templates import value_words, word_of
from kiebitz.dissectors.protocol_file.text_types import identifier_kind
from kiebitz.dissectors.queries import Query
from kiebitz.dissectors.statistics import Counts, Sample, Statistic, of_each
from kiebitz.dissectors.websocket.encapsulation import WebSocketEncapsulation

if TYPE_CHECKING:
    from kiebitz.dissectors.conformance.expectations import Conformance


class FileDissector(Dissector):
    """A protocol as a file describes it; `specification` is the file's content.

    The file of a `package` may name a table in Python.
    """

    def __init__(self, specification: Specification, package: str = "") -> None:
        self.specification = specification
        plan = Plan(specification)
        grammar = grammar_of(plan)
        identity = specification.identity
        make_table: MakeTable = partial(FileTable, plan, grammar)
        if specification.table is not None:
            make_table = python_part(specification.table, package)
            if isinstance(make_table, type) and issubclass(make_table, SimpleTable) and not make_table.rules:
                make_table.rules = grammar.rules
        self.file_presentation = FilePresentation(specification, plan, grammar, package)
        codec = codec_of(specification, grammar, package)
        framer = framer_of(specification.framing, specification.transport, specification, codec)
        if extents := line_extents(specification, codec, grammar):
            framer = partial(LineFieldsFramer, extents=extents)
        super().__init__(
            grammar=grammar,
            transport=specification.transport,
            codec=codec,
            framer=framer,
            table=make_table,
            default_ports=specification.ports,
            together=specification.together,
            presentation=self.file_presentation,
            encapsulation=WebSocketEncapsulation() if specification.framing.kind == "websocket" else None,
            identity=Identity(
                grammar,
                login_messages=identity.logins if identity is not None else (),
                same_player=identity.same_player if identity is not None else "connection",
                sees_own_dissection=True,
            ),
            conformance=self._conformance,
            package=package,
        )

    def _conformance(self) -> Conformance:
        # Most commands do without.
        from kiebitz.dissectors.protocol_file.conformance import conformance_of

        names = dict.fromkeys(message.name for message in self.specification.messages)
        return conformance_of(self.specification, names, self.package)


def dissector_from(specification: Specification) -> FileDissector:
    """Return the dissector for a protocol file."""
    with one_budget():
        return FileDissector(specification)


def packaged_protocol(package: str, file: str) -> FileDissector:
    """Return the dissector for a protocol file in a package; the file may name a table in Python there.

    Raises:
        ProtocolFileError: The file is invalid.
    """
    text = resources.files(package).joinpath(file).read_text("utf-8")
    with one_budget():
        return FileDissector(read(text, file, lambda protocol: PythonParts(package)).specification, package)


def parts_of(dissector: Dissector | None) -> PythonParts | None:
    """Return the parts in Python that a copy of a package's file may name, None for nothing."""
    if dissector is None or not dissector.package:
        return None
    if isinstance(dissector, FileDissector):
        found = dissector.specification
    else:
        found = packaged_file(dissector.package).specification
    named = {"codec": found.codec or "", "table": found.table or "", "view": found.view or ""}
    return PythonParts(dissector.package, dissector.grammar.python_types, named)


_MAX_PLAIN_VALUE = 60
"""Maximum length of a field's value in the sentence of a message, in characters."""


class FilePresentation(Presentation):
    """Words and figures of a protocol that is described by a file."""

    def __init__(self, specification: Specification, plan: Plan, grammar: Grammar, package: str = "") -> None:
        super().__init__(grammar, package)
        self._own_statistics = tuple(
            compiled_statistic(spec, grammar.events, self.display_name, package)
            for spec in specification.statistics
        )
        self._plan = plan
        self._board = Board(specification.board)
        self._plain_kinds = frozenset(event.kind for event in plan.events if event.say is None)
        self._received = _received(plan)
        self.counts = self._board.unit
        turns = [event.kind for event in plan.events if event.spec.turn]
        self.turn = turns[0] if turns else ""

    @property
    def statistics(self) -> tuple[Statistic, ...]:
        """Those of the file, and the number of events of each kind, by player."""
        kinds = [event.kind for event in self._plan.events if not event.spec.silent]
        reads = of_each(*kinds, give=_actions)
        all_kinds = Counts(key="events", title="Events", reads=reads, columns=tuple(kinds))
        return (*self._own_statistics, *((all_kinds,) if kinds else ()))

    @property
    def queries(self) -> tuple[Query, ...]:
        return self._plan.specification.queries

    def scores(self, state: State) -> dict[str, int]:
        return self._board.scores(state, states_of(state))

    def empty_grid(self, states: Sequence[State]) -> str | None:
        """Return why the grid is empty in all of these states although there are values for it, or None."""
        return self._board.empty_grid(states)

    def view(self, scene: Scene) -> View | None:
        view = self._plan.specification.view
        return self._board.view(scene) if view is None else python_part(view, self._package)(scene)

    def words(self, value: Any) -> str:
        return value_words(value)

    def describe(self, event: Event) -> str:
        return super().describe(event) if event.kind not in self._plain_kinds else self._plain(event)

    def _plain(self, event: Event) -> str:
        """Return the sentence of an event that has none in the file."""
        parts = [event.kind]
        for key, value in event.data.items():
            if value is not None and value != event.actor:
                parts.append(f"{key} {shortened(value_words(value), _MAX_PLAIN_VALUE)}")
        sentence = " ".join(parts)
        if event.actor is None:
            return sentence
        return (
            f"to {event.actor}: {sentence}" if event.kind in self._received else f"{event.actor}: {sentence}"
        )


def _received(plan: Plan) -> frozenset[str]:
    """Return the kinds of events that a server only reports to the player that they are about."""
    ways: dict[str, list[bool]] = {}
    for row in plan.rows:
        for event in row.events:
            is_told = row.row.direction == "s2c" and not row.row.broadcast and row.role.who is None
            ways.setdefault(event.kind, []).append(is_told)
    return frozenset(kind for kind, told in ways.items() if all(told))


def _actions(event: Event) -> Iterable[Sample]:
    if event.actor is not None:
        yield Sample(event.actor, event.kind)


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
