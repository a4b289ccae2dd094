"""Assignments to a message's fields: their possible interpretations, and the reasons if they are rejected.

The interpretations of a value are tried in turn; the first one that the grammar accepts is used.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from itertools import islice, product
from typing import Any

import msgspec

from kiebitz.dissectors.editing.assignment_parser import Assignment, AssignmentError
from kiebitz.dissectors.escaping import json_text
from kiebitz.dissectors.filters.fields import known_name, written
from kiebitz.dissectors.filters.syntax import Step
from kiebitz.dissectors.grammar.field_type import UNWRITABLE, FieldType, Mismatch
from kiebitz.dissectors.grammar.grammar import MessageType, Path, nearest_word, shortened, to_json, value_at
from kiebitz.dissectors.suggestions import did_you_mean

_MAX_INTERPRETATIONS = 4096
"""Maximum number of interpretations of one message's assignments."""

_MAX_QUOTED = 60
"""Maximum number of characters of a value that are quoted."""

_ESCAPE = re.compile(r"\\.")
_NOT_IN_FILTERS = {r"\b": r"\u0008", r"\f": r"\u000c"}
_UNQUOTED = re.compile(r"[^\s\"'\[{]\S*")


class Target(msgspec.Struct, frozen=True):
    """The message to edit: its protocol, its name, all rows of that name, and its present values."""

    protocol: str
    name: str
    rows: Sequence[MessageType]
    values: Mapping[str, Any]

    def readings(self, assignments: Sequence[Assignment]) -> Iterator[dict[str, Any]]:
        """Yield the values after the assignments, for each interpretation. Raises AssignmentError."""
        paths = [self._path(assignment) for assignment in assignments]
        for number, path in enumerate(paths):
            if any(other[: len(path)] == path for other in (*paths[:number], *paths[number + 1 :])):
                raise AssignmentError(f"{_name(path)} is given more than one value")
        choices = map(self._choices, paths, assignments)
        for values in islice(product(*choices), _MAX_INTERPRETATIONS):
            made = deepcopy(dict(self.values))
            for path, value in zip(paths, values, strict=True):
                value_at(made, path[:-1])[path[-1]] = value
            yield made

    def present(self, assignments: Sequence[Assignment]) -> list[Any]:
        """Return the present values of assigned fields, UNSET for a missing one. Raises AssignmentError."""
        found: list[Any] = []
        for assignment in assignments:
            try:
                found.append(value_at(self.values, self._path(assignment)))
            except LookupError:
                found.append(msgspec.UNSET)
        return found

    def refusal(self, assignments: Sequence[Assignment]) -> str:
        """Return a sentence why the grammar accepts none of the interpretations."""
        for assignment in assignments:
            path = self._path(assignment)
            wrong = self._misfit(path, assignment)
            if wrong is None:
                continue
            why = wrong.problem or self._new_attribute(path)
            problem = f": {why}" if why else ""
            expected = " Expected" if problem[-1:] in ("?", ".") else "; expected"
            now = f"; it is {_short(self.notation(path))} now" if path[0] in self.values else ""
            return f"{_short(assignment.text)} does not fit{problem}{expected} {wrong.expected}{now}"
        given = {*self.values, *(self._path(assignment)[0] for assignment in assignments)}
        lacking = min(
            (
                [field.name for field in row.fields if not field.optional and field.name not in given]
                for row in self.rows
            ),
            key=len,
        )
        if lacking:
            return f"{self.name} needs a value for {', '.join(map(written, lacking))}, too"
        return f"{self.name} cannot have these values together"

    def objection(self, assignments: Sequence[Assignment]) -> str | None:
        """Return why no message of this name can have these values, by its grammar alone, or None.

        The contents of a structured value are known only for a received message.
        """
        simple: list[Assignment] = []
        for assignment in assignments:
            try:
                name, rest = self._field(assignment)
            except AssignmentError as error:
                return str(error)
            if not rest:
                simple.append(assignment)
            elif name in {self._field(other)[0] for other in simple}:
                return f"{name} is given more than one value"
        for assignment in simple:
            if self._misfit(self._path(assignment), assignment) is not None:
                return self.refusal([assignment])
        return None

    def notation(self, path: Path) -> str:
        """Return the assignment of the present value at a path, or around it if there is none."""
        return "=".join(self.slot(path))

    def slot(self, path: Path) -> tuple[str, str]:
        """Return the two sides of `notation`: the path as written, and the present value."""
        try:
            value = value_at(self.values, path)
        except LookupError:
            return self.slot(path[:-1])
        if not isinstance(value, str):
            text = json_text(value)
        else:
            text = value if _UNQUOTED.fullmatch(value) and value.isprintable() else _quoted(value)
        return _name(path), text

    def _path(self, assignment: Assignment) -> Path:
        """Return the assigned path. Raises AssignmentError, with the known names."""
        first, rest = self._field(assignment)
        if rest and first not in self.values:
            raise AssignmentError(f"{self.name} has no {first} yet: give all of it")
        path: Path = (first,)
        for number, step in enumerate(rest, 1):
            inside = _step(path, value_at(self.values, path), step, is_last=number == len(rest))
            path = (*path, inside)
        return path

    def _field(self, assignment: Assignment) -> tuple[str, tuple[Step, ...]]:
        """Return the assigned field, and the steps inside it. Raises AssignmentError."""
        steps = assignment.steps
        if steps[0] == self.protocol and len(steps) > 1:
            # As in a filter: PROTOCOL.FIELD, or PROTOCOL.MESSAGE.FIELD.
            steps = steps[1:]
            if len(steps) > 1 and known_name(steps[0], (self.name,)) is not None:
                steps = steps[1:]
        names = [field.name for row in self.rows for field in row.fields]
        first = known_name(steps[0], names)
        if first is None:
            near = nearest_word(str(steps[0]), names)
            shown = near if near in self.values else next(iter(self.values), None)
            example = f" Now it has {_short(self.notation((shown,)))}" if shown is not None else ""
            raise AssignmentError(_no_such(self.name, "field", steps[0], names) + example)
        return first, steps[1:]

    def _new_attribute(self, path: Path) -> str:
        """Return a note if an object has had no such attribute, as it may be a typo."""
        around = value_at(self.values, path[:-1])
        if len(path) == 1 or not isinstance(around, dict) or path[-1] in around:
            return ""
        return _no_such(_name(path[:-1]), "attribute", path[-1], around)

    def _types(self, path: Path) -> list[FieldType]:
        return [field.type for row in self.rows for field in row.fields if field.name == path[0]]

    def _choices(self, path: Path, assignment: Assignment) -> list[Any]:
        choices = [*assignment.values]
        if assignment.own is not None and len(path) == 1:
            for kind in self._types(path):
                with suppress(Mismatch):
                    choices.append(kind.decode(assignment.own))
        return choices

    def _misfit(self, path: Path, assignment: Assignment) -> Mismatch | None:
        """Return what is wrong with a single value; None if some interpretation is valid."""
        found: list[Mismatch] = []
        for made in self.readings([assignment]):
            for kind in self._types(path):
                wrong = _misfit(kind, made[str(path[0])])
                if wrong is None:
                    return None
                found.append(wrong)
        return next((wrong for wrong in found if wrong.problem), found[0])


def _step(path: Path, value: Any, step: Step, is_last: bool) -> Step:
    """Resolve a step into a value. Raises AssignmentError if there is none such."""
    if isinstance(step, int):
        if not isinstance(value, list):
            raise AssignmentError(f"{_name(path)} is not a list, but {_short(json_text(value))}")
        if step >= len(value):
            raise AssignmentError(f"{_name(path)} has no [{step}]: it has {len(value)} values, from [0] on")
        return step
    if isinstance(value, list):
        raise AssignmentError(f"{_name(path)} is a list: say which of its values, as in {_name(path)}[0]")
    if not isinstance(value, dict):
        raise AssignmentError(f"{_name(path)} has nothing inside, it is {_short(json_text(value))}")
    known = known_name(step, value)
    if known is None and not is_last:
        raise AssignmentError(_no_such(_name(path), "attribute", step, value))
    # What may be left out can be put in: whether it belongs there, the grammar knows.
    return known or step


def _no_such(owner: str, what: str, step: Step, names: Collection[str]) -> str:
    near = nearest_word(str(step), names)
    if near is not None:
        hint = did_you_mean(written(near))
    else:
        hint = f"it has {', '.join(map(written, dict.fromkeys(names))) or 'none'}."
    return f"{owner} has no {what} {_short(str(step))}; {hint}"


def _misfit(kind: FieldType, value: Any) -> Mismatch | None:
    """Return what is wrong with a value of a type, or None."""
    wrong = Mismatch(0, 0, "", kind.title)
    try:
        if to_json(kind.decode(kind.encode(value))) == to_json(value):
            return None
    except Mismatch as error:
        wrong = error
    except UNWRITABLE:
        # A value of another type than its own.
        pass
    if isinstance(value, list):
        # The type of a repeatable field is that of each element.
        parts = [_misfit(kind, part) for part in value]
        if None in parts:
            return next((part for part in parts if part is not None), None)
    return wrong


def _quoted(value: str) -> str:
    """Quote a text as filters do: these reserve two of JSON's escapes for `matches`."""
    return _ESCAPE.sub(lambda escape: _NOT_IN_FILTERS.get(escape[0], escape[0]), json_text(value))


def _name(path: Path) -> str:
    """Return a path as it is written."""
    steps = [f"[{step}]" if isinstance(step, int) else f".{written(step)}" for step in path]
    return "".join(steps).removeprefix(".")


def _short(text: str) -> str:
    return shortened(text, _MAX_QUOTED)
