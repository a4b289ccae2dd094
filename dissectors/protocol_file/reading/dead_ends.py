"""Parts of a protocol file that are valid but can never work: conditions, sums, cells and tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from kiebitz.dissectors.filters.parser import parse_expression
from kiebitz.dissectors.filters.syntax import And, Call, Constant, Joined, Lookup, Not, Or, Relation, Sum
from kiebitz.dissectors.protocol_file.expressions import (
    ASKED,
    STATE,
    WHO,
    Pattern,
    parts_of,
    path_of,
    pattern_of,
)
from kiebitz.dissectors.protocol_file.reading.notation import near
from kiebitz.dissectors.protocol_file.reading.scope import KEPT, is_within, state_path
from kiebitz.dissectors.protocol_file.reading.source import Path, Source
from kiebitz.dissectors.protocol_file.sections import BoardSpec, EdgesSpec, EventSpec, GridSpec, RuleSpec
from kiebitz.dissectors.protocol_file.specification import (
    BooleanType,
    ChoiceType,
    FieldSpec,
    FieldTypeSpec,
    IdentifierType,
    ListType,
    MessageSpec,
    NumberType,
    TextType,
)
from kiebitz.dissectors.protocol_file.templates import word_of
from kiebitz.dissectors.protocol_file.values import COUNT, equal


class _Put(msgspec.Struct, frozen=True):
    """A change of the state: the place of its key, its path, the terms of that, and its value."""

    place: Path
    path: Pattern
    steps: Sequence[Any]
    value: Any
    event: EventSpec


class DeadEnds:
    """Adds remarks on parts that can never have an effect to the source."""

    def __init__(self, source: Source, messages: Sequence[MessageSpec], events: Sequence[EventSpec]) -> None:
        self._source = source
        self._messages = messages
        self._events = events
        self._puts = [*self._all_puts()]

    def _all_puts(self) -> Iterator[_Put]:
        for event in self._events:
            for written, value in event.put.items():
                path = state_path(written)
                if path is not None:
                    place = ("events", event.key, "put", written)
                    yield _Put(place, path, path_of(written).steps, value, event)

    def check(self, rules: Sequence[RuleSpec], board: BoardSpec | None) -> None:
        """Add all remarks."""
        for put in self._puts:
            self._check_sum(put)
        selections: list[tuple[str, str, EventSpec | RuleSpec]] = [
            *(("events", event.key, event) for event in self._events),
            *(("rules", rule.key, rule) for rule in rules),
        ]
        for section, key, part in selections:
            conditions = {"when": part.when, "unless": part.unless if isinstance(part, RuleSpec) else ""}
            for name, text in conditions.items():
                if text:
                    self._check_condition((section, key, name), text, part)
        self._check_values_of_state(rules)
        if board is not None and board.grid is not None:
            self._check_cells(board.grid)
            self._check_tokens(board.grid)
            self._check_symbols(board.grid)

    def _fields(self, part: EventSpec | RuleSpec) -> dict[str, list[FieldSpec]]:
        found: dict[str, list[FieldSpec]] = {}
        for message in self._messages_of(part):
            for field in message.fields:
                found.setdefault(word_of(field.name), []).append(field)
        return found

    def _messages_of(self, part: EventSpec | RuleSpec) -> list[MessageSpec]:
        return [each for each in self._messages if part.selects(each.name, each.direction)]

    # Values that are never known.

    def _check_sum(self, put: _Put) -> None:
        """Report a sum with the value of its own path, to which no event gives a first value."""
        if not self._adds_to_itself(put):
            return
        if any(
            other is not put and is_within(put.path, other.path) and not self._adds_to_itself(other)
            for other in self._puts
        ):
            return
        written = put.place[-1]
        self._source.remark(put.place, f"no event puts a first value at {written}, so the sum is never known")

    def _adds_to_itself(self, put: _Put) -> bool:
        if not isinstance(put.value, str) or not put.value.strip():
            return False
        term = parse_expression(put.value)
        fields = self._fields(put.event)
        return isinstance(term, Sum) and any(
            isinstance(part, Lookup) and part.steps[0] not in fields and _path_of(part) == put.path
            for part in (term.first, *(other for _, other in term.others))
        )

    # Conditions.

    def _check_values_of_state(self, rules: Sequence[RuleSpec]) -> None:
        """Report events and rules that need a value of the state that only they could put."""
        available: list[Pattern] = [*KEPT, *((("turn",),) if any(each.turn for each in self._events) else ())]
        waiting = [*self._events]
        while happening := [each for each in waiting if self._missing(each, each.when, available) is None]:
            waiting = [each for each in waiting if each not in happening]
            available += [put.path for put in self._puts if put.event in happening and put.value != ""]
        for event in waiting:
            self._report_missing(("events", event.key, "when"), event, event.when, available)
        for rule in rules:
            for key in ("when", "unless"):
                self._report_missing(("rules", rule.key, key), rule, getattr(rule, key), available)

    def _report_missing(
        self, path: Path, part: EventSpec | RuleSpec, text: str, available: Sequence[Pattern]
    ) -> None:
        name = self._missing(part, text, available)
        if name is None:
            return
        start, end = name.position, name.position + name.length
        if self._source.places.value(path, start, end) in [each.place for each in self._source.remarks]:
            return
        written = ".".join("{…}" if step is None else str(step) for step in _path_of(name))
        problem = f"this never holds: no event that can happen before puts anything at {written}"
        self._source.remark_value(path, problem, start, end)

    def _missing(self, part: EventSpec | RuleSpec, text: str, available: Sequence[Pattern]) -> Lookup | None:
        """Return the first value of the state without which a condition never holds, or None."""
        names = {*self._fields(part), *part.let, WHO, ASKED}

        def is_missing(name: Lookup) -> bool:
            steps = _path_of(name)
            path = steps[:-1] if steps[-1] == COUNT and len(steps) > 1 else steps
            is_of_state = name.steps[0] == STATE or name.steps[0] not in names
            return is_of_state and not any(is_within(path, known) for known in available)

        return None if not text else _first_missing(parse_expression(text), is_missing)

    def _check_condition(self, path: Path, text: str, of: EventSpec | RuleSpec) -> None:
        fields = self._fields(of)
        for part in parts_of(parse_expression(text)):
            if isinstance(part, Relation) and part.operator in ("==", "!=", "in"):
                sides = (part.left, *part.right)
                names = [side for side in sides if isinstance(side, Lookup) and len(side.steps) == 1]
                constants = [side for side in sides if isinstance(side, Constant)]
                if len(names) == 1 and len(constants) == len(sides) - 1 and (part.is_set or len(sides) == 2):
                    self._check_constants(path, str(names[0].steps[0]), constants, fields)
            elif isinstance(part, Not) and isinstance(part.term, Lookup) and isinstance(of, EventSpec):
                self._check_negation(path, part.term, fields)
            elif (
                isinstance(part, Call) and part.function == "known" and isinstance(part.arguments[0], Lookup)
            ):
                self._check_known(path, part.arguments[0], of)

    def _check_constants(
        self, path: Path, name: str, constants: Sequence[Constant], fields: dict[str, list[FieldSpec]]
    ) -> None:
        kinds = fields.get(name, ())
        for constant in constants if kinds else ():
            if not any(_can_be(field, constant.value) for field in kinds):
                titles = " or ".join(dict.fromkeys(field.title for field in kinds))
                start, end = constant.position, constant.position + constant.length
                written = self._source.places.value(path, start, end)
                shown = written.line[written.position :][: written.length]
                self._source.remark_value(path, f"{name} is never {shown}: it is {titles}", start, end)

    def _check_known(self, path: Path, name: Lookup, of: EventSpec | RuleSpec) -> None:
        first = str(name.steps[0])
        if (
            len(name.steps) == 1
            and self._is_put_whole((first,))
            and all(
                any(word_of(field.name) == first and not field.optional for field in message.fields)
                for message in self._messages_of(of)
            )
        ):
            problem = f"{first} is a field of the message: write known(state.{first}) for what was put"
            self._source.remark_value(path, problem, name.position, name.position + name.length)

    def _check_negation(self, path: Path, name: Lookup, fields: dict[str, list[FieldSpec]]) -> None:
        steps = _path_of(name)
        if name.steps[0] in fields or (len(name.steps) > 1 and None in steps):
            return
        values = [put.value for put in self._puts if is_within(steps, put.path)]
        if values and all(value is True for value in values):
            written = ".".join(map(str, steps))
            problem = f"not {written} never holds, as only true is put there: use not known({written})"
            self._source.remark_value(path, problem, name.position, name.position + name.length)

    # The board.

    def _below(self, path: Pattern) -> Iterator[_Put]:
        """Yield the changes below a path."""
        size = len(path)
        yield from (put for put in self._puts if len(put.path) > size and put.path[:size] == path)

    def _is_put_whole(self, path: Pattern) -> bool:
        """Return True if an event puts more than an empty object at a path, or above it."""
        return any(put.path == path[: len(put.path)] and put.value not in ({}, "") for put in self._puts)

    def _check_cells(self, grid: GridSpec) -> None:
        edges = grid.edges or EdgesSpec()
        for key, text in (("cells", grid.cells), ("above", edges.above), ("left", edges.left)):
            path = state_path(text) if text else None
            if path is None or self._is_put_whole(path):
                continue
            place: Path = ("board", "grid", *(("edges", key) if key != "cells" else (key,)))
            for put in self._below(path):
                more = put.path[len(path) :]
                step = put.steps[len(path)]
                if len(more) > 1 and more[1] is None:
                    problem = f"keys of {text} are x,y: put {text}.{{x}},{{y}}, not {put.place[-1]}"
                elif self._is_no_cell(step, put.event, key == "cells" and grid.width is not None):
                    problem = (
                        f"keys of {text} are x,y: put {text}.{{x}},{{y}}, as {put.place[-1]} has no comma"
                    )
                else:
                    continue
                self._source.remark(place, problem)
                return

    def _is_no_cell(self, step: Any, event: EventSpec, are_numbered: bool) -> bool:
        """Return True if a step of a path is certainly no key of a cell: `x,y`, or its number."""
        if isinstance(step, str | int):
            return "," not in str(step) and not (are_numbered and str(step).isdecimal())
        if isinstance(step, Joined):
            return not any("," in part for part in step.parts if isinstance(part, str))
        if isinstance(step, Lookup) and len(step.steps) == 1 and not are_numbered:
            kinds = self._fields(event).get(str(step.steps[0]), ())
            return bool(kinds) and all(isinstance(field.type, NumberType) for field in kinds)
        return False

    def _check_tokens(self, grid: GridSpec) -> None:
        path = state_path(grid.tokens) if grid.tokens else None
        if path is None or self._is_put_whole(path):
            return
        keys: dict[str, None] = {}
        for put in self._below(path):
            more = put.path[len(path) :]
            if len(more) > 1 and more[1] is not None:
                keys[more[1]] = None
            elif len(more) == 1 and isinstance(put.value, dict):
                keys.update(dict.fromkeys(put.value))
            elif put.value != "":
                return
        missing = [name for name in (grid.x, grid.y) if name not in keys]
        if keys and missing:
            problem = f"a token needs {grid.x} and {grid.y}, and events put {', '.join(keys)}"
            self._source.remark(("board", "grid", "tokens"), problem)

    def _check_symbols(self, grid: GridSpec) -> None:
        """Report signs that leave every cell empty, or that are for words which no cell has."""
        path = state_path(grid.cells) if grid.cells and not grid.cell else None
        words: set[str] = set()
        puts = [] if path is None else [put for put in self._puts if is_within(put.path, path)]
        for put in puts:
            found = self._words_of(put)
            if found is None:
                return
            words |= found
        if not words or not grid.symbols:
            return
        place: Path = ("board", "grid", "symbols")
        if not any(grid.symbols.get(word, word) for word in words):
            self._source.remark(place, f"all cells are empty: {' and '.join(sorted(words))} have no sign")
        for word in grid.symbols:
            if word not in words and not grid.runs:
                self._source.remark((*place, word), f"no cell is {word}{near(word, words)}")

    def _words_of(self, put: _Put) -> set[str] | None:
        """Return the words that an event puts; None if others are possible."""
        values: Sequence[Any] = [put.value]
        if isinstance(put.value, str) and put.value:
            term = parse_expression(put.value)
            if isinstance(term, Constant):
                values = [term.value]
            elif isinstance(term, Lookup) and len(term.steps) == 1:
                fields = self._fields(put.event).get(str(term.steps[0]), ())
                kinds = [_item_of(field.type) for field in fields]
                if not all(isinstance(kind, ChoiceType) for kind in kinds):
                    return None
                values = [value for kind in kinds if isinstance(kind, ChoiceType) for value in kind.values]
            else:
                return None
        is_known = values and all(each in ("", {}, []) or isinstance(each, str | None) for each in values)
        return {each for each in values if isinstance(each, str) and each} if is_known else None


def _item_of(kind: FieldTypeSpec) -> FieldTypeSpec:
    """Return the type of the items of a list of any depth."""
    return _item_of(kind.item) if isinstance(kind, ListType) else kind


def _first_missing(term: Any, is_missing: Callable[[Lookup], bool]) -> Lookup | None:
    """Return the first missing path without whose value a condition is unknown, or None."""
    parts: Sequence[Any] = ()
    match term:
        case Lookup():
            return term if is_missing(term) else None
        case And(terms):
            parts = terms
        case Or(terms):
            found = [_first_missing(each, is_missing) for each in terms]
            return found[0] if None not in found else None
        case Not(inner):
            parts = (inner,)
        case Relation(is_set=True):
            parts = (term.left,)
        case Relation() if term.operator not in ("in", "contains"):
            parts = (term.left, *term.right)
        case Sum(first, others):
            parts = (first, *(other for _, other in others))
    return next(filter(None, (_first_missing(part, is_missing) for part in parts)), None)


def _path_of(name: Lookup) -> Pattern:
    steps = pattern_of(name)
    return steps[1:] if steps[0] == STATE and len(steps) > 1 else steps


def _can_be(field: FieldSpec, value: Any) -> bool:
    """Return False if a field is certainly never equal to a value."""
    match field.type:
        case ChoiceType(values):
            return any(equal(each, value) for each in values)
        case NumberType(minimum, maximum, _):
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            return (
                is_number and (minimum is None or value >= minimum) and (maximum is None or value <= maximum)
            )
        case BooleanType():
            return isinstance(value, bool)
        case TextType() | IdentifierType("player" | "id"):
            # A player's number is a name, or a text.
            return isinstance(value, str)
    return True
