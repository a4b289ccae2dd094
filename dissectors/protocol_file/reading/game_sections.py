"""The sections of a protocol file about the game: events, rules, the board, and statistics."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from kiebitz.dissectors.filters.syntax import WORDS
from kiebitz.dissectors.grammar.grammar import OWN_CLAUSE, EventKind, NeededValue, Rule
from kiebitz.dissectors.protocol_file.expressions import ASKED, STATE, WHO, Pattern, expressions_in
from kiebitz.dissectors.protocol_file.game.statistics import KIND, is_reader
from kiebitz.dissectors.protocol_file.reading.document import Document, PythonEventTable, PythonRuleTable
from kiebitz.dissectors.protocol_file.reading.notation import near, plain_value
from kiebitz.dissectors.protocol_file.reading.scope import (
    KEPT,
    Names,
    check_expression,
    check_path,
    check_put_path,
    check_sentence,
    is_within,
    state_path,
)
from kiebitz.dissectors.protocol_file.reading.source import Path, Source, filled, listed
from kiebitz.dissectors.protocol_file.sections import (
    STATISTIC_FORMS,
    BoardSpec,
    EventSpec,
    RuleSpec,
    Selection,
    StatisticSpec,
    Table,
)
from kiebitz.dissectors.protocol_file.specification import FieldTypeSpec, IdentifierType, MessageSpec
from kiebitz.dissectors.protocol_file.templates import word_of

_NOT_SILENT = (
    "say",
    "actor",
    "label",
    "result",
    "opens",
    "ends",
    "cancels",
    "joins",
    "timeout",
    "secret",
)
"""Keys that mean nothing for an event that is not listed."""

_EFFECTS = ("say", "put", "opens", "ends", "cancels", "turn", "joins", "timeout")
"""Keys with an effect."""

_PLAIN = re.compile(r"(?:[^{}]|\{\w+\})*")

_ANY = Names(None, (), ())
"""All names: a table in Python may fill sentences with any."""

MAX_STATISTICS = 100

_SHARES = 2
"""Number of different words in shares."""

_FORMS_OF = {
    "amount": ("counts", "shares", "histogram", "course"),
    "begins": ("durations",),
    "chance": ("histogram",),
    "unit": ("course",),
    "by": ("counts", "shares", "histogram"),
    "words": ("counts", "shares", "histogram"),
}
"""The forms of the keys that not all have."""


class GameSections:
    """Checks events, rules, board and statistics; mistakes are added to the source.

    The file of a `package` may name Python.
    """

    def __init__(
        self,
        source: Source,
        head: Document,
        messages: Sequence[MessageSpec],
        known: set[str],
        package: str | None,
    ) -> None:
        self._source = source
        self._package = package
        self._head = head
        self._messages = messages
        self._known = known
        self._in_python = bool(source.instead)
        # Python code may put anything anywhere.
        self._state: Collection[Pattern] = ((None,),) if self._in_python else (*KEPT, *self._put_paths())
        """Paths of the state that may have a value."""

    def _put_paths(self) -> Iterator[Pattern]:
        """Yield the paths of the state that events change."""
        for event in self._head.events.values():
            if event.turn:
                yield ("turn",)
            yield from filter(None, map(state_path, event.put))

    def event_kinds(self) -> Iterator[EventKind]:
        """Yield the kinds of events of a table in Python."""
        events: Iterable[EventSpec | PythonEventTable] = self._head.events.values()
        for table in events:
            if isinstance(table, PythonEventTable):
                path: Path = ("events", table.key)
                data = tuple(" ".join(table.data).split())
                self._check_told((*path, "say"), table.say, data)
                for condition, sentence in table.instead.items():
                    self._check_told((*path, "instead", condition), sentence, data)
                needed = tuple(self._needed(path, each, data) for each in table.instead)
                self._source.check_names((*path, "on"), table.on, self._known)
                for key in ("ends", "cancels", "timeout"):
                    if isinstance(condition := getattr(table, key), str):
                        check_expression(self._source, (*path, key), condition, Names(None, data, ()))
                instead = tuple(zip(needed, table.instead.values(), strict=True))
                more = _attributes(table, "key", "data", "say", "instead", "on")
                yield EventKind(table.key, data, table.say, instead=instead, reported_by=table.on, **more)

    def _check_told(self, path: Path, sentence: str, data: Sequence[str]) -> None:
        """Report mistakes in the sentence of an event with this data."""
        self._check_plain(path, sentence)
        self._source.check_braces(path, sentence, data, "value")

    def _needed(self, path: Path, text: str, data: Sequence[str]) -> tuple[NeededValue, ...]:
        """Return the values that the conditions of a sentence name; report what is no condition."""
        found = []
        for condition in text.split():
            field, equals, value = condition.partition("=")
            name = field.removesuffix("!")
            if name not in data or not equals:
                problem = f"no value {name}{near(name, data)}" if equals else f"{name} needs = and a value"
                self._source.wrong_key((*path, "instead", text), problem)
            found.append((name, name == field, plain_value(value)))
        return tuple(found)

    def table_rules(self) -> Iterator[Rule]:
        """Yield the rules of a table in Python."""
        rules: Iterable[RuleSpec | PythonRuleTable] = self._head.rules.values()
        for table in rules:
            if isinstance(table, PythonRuleTable):
                path: Path = ("rules", table.key)
                for sentence in ("say", "expected"):
                    self._check_plain((*path, sentence), getattr(table, sentence))
                self._source.check_names((*path, "on"), table.on, self._known)
                clauses = {**self._source.clauses, "clause": OWN_CLAUSE}
                self._source.check_braces((*path, "clause"), table.clause, clauses, "clause")
                clause = filled(table.clause, clauses) or None
                message = table.on[0] if len(table.on) == 1 else None
                more = _attributes(table, "key", "on", "say", "clause")
                yield Rule(table.key, message, table.say, clause=clause, **more)

    def _check_plain(self, path: Path, sentence: str) -> None:
        """Report syntax errors in a sentence, in which there are usually only names in braces."""
        if not _PLAIN.fullmatch(sentence):
            check_sentence(self._source, path, sentence, _ANY)

    def events(self) -> tuple[EventSpec, ...]:
        """Return the events."""
        found = tuple(self._head.events.values())
        for event in found:
            self._check_event(("events", event.key), event)
            if event.closes and not any(each.opens for each in found):
                key = "cancels" if event.cancels else "ends"
                problem = "no event opens a game, so none ends: one needs opens = true"
                self._source.remark(("events", event.key, key), problem)
        return found

    def _check_event(self, path: Path, event: EventSpec) -> None:
        names = self._names_of(path, event)
        for key in ("say", "label"):
            check_sentence(self._source, (*path, key), getattr(event, key), names)
        if event.actor:
            check_expression(self._source, (*path, "actor"), event.actor, names)
        for at, text in expressions_in(event.result, (*path, "result")):
            check_expression(self._source, at, text, names)
        if event.opens and event.cancels:
            self._source.wrong((*path, "cancels"), "an event that opens a game cannot cancel it")
        for key, needs, is_met in (("label", "opens", event.opens), ("result", "ends", event.closes)):
            if getattr(event, key) and not is_met:
                self._source.remark((*path, key), f"{key} means nothing without {needs} = true")
        for key in _NOT_SILENT if event.silent else ():
            if getattr(event, key):
                self._source.wrong_key((*path, key), f"a silent event only puts values: remove {key}")
        for key, value in event.put.items():
            check_put_path(self._source, (*path, "put", key), key, names)
            for at, text in expressions_in(value, (*path, "put", key)):
                check_expression(self._source, at, text, names)
        if not any(getattr(event, key) for key in _EFFECTS):
            self._source.remark(path, f"event {event.key} neither says nor puts anything")

    def _asked(self, chosen: Sequence[MessageSpec]) -> Mapping[str, Sequence[FieldTypeSpec]] | None:
        """Return the types of the fields of the requests that messages answer; None if they answer none."""
        answered = [
            request
            for request in self._messages
            if any(
                request.name in message.answers and request.direction != message.direction
                for message in chosen
            )
        ]
        return {WHO: (IdentifierType("player"),), **types_of(answered)} if answered else None

    def _names_of(self, path: Path, table: Selection) -> Names:
        """Return the names that are known with the selected messages; check these, and the condition."""
        self._source.check_names((*path, "on"), table.on, self._known)
        chosen = [message for message in self._messages if table.selects(message.name, message.direction)]
        is_known = {*table.on} <= {message.name for message in chosen}
        if not is_known and {*table.on} <= self._known and table.direction is not None:
            sent = {message.name for message in self._messages if message.direction == table.direction}
            for name in table.on:
                if name not in sent:
                    self._source.wrong((*path, "from"), f"the {table.from_} sends no {name}")
        types = types_of(chosen) if is_known else None
        names = Names(types, (WHO,), self._state, self._asked(chosen))
        for name, text in table.let.items():
            at = (*path, "let", name)
            if not name.isidentifier() or name in WORDS:
                self._source.wrong_key(at, f"{name} is no name: use letters, digits and _")
            elif name in (WHO, ASKED, STATE) or (names.fields is not None and name in names.fields):
                self._source.wrong_key(at, f"{name} has a meaning already: choose another name")
            check_expression(self._source, at, text, names)
            names = msgspec.structs.replace(names, others=(*names.others, name))
        if table.when:
            check_expression(self._source, (*path, "when"), table.when, names)
        return names

    def rules(self) -> tuple[RuleSpec, ...]:
        """Return the rules, with the headings of their clauses."""
        return tuple(self._rule(("rules", rule.key), rule) for rule in self._head.rules.values())

    def _rule(self, path: Path, rule: RuleSpec) -> RuleSpec:
        names = self._names_of(path, rule)
        if rule.unless:
            check_expression(self._source, (*path, "unless"), rule.unless, names)
        elif not rule.when:
            places = self._source.places
            if {places.key((*path, key)) for key in ("when", "unless")} == {places.key(path)}:
                self._source.wrong_key(path, f"rule {rule.key} has neither when nor unless")
        in_sentence = msgspec.structs.replace(names, others=(*names.others, "known"))
        for sentence in ("say", "expected"):
            check_sentence(self._source, (*path, sentence), getattr(rule, sentence), in_sentence)
        return msgspec.structs.replace(rule, clause=self._source.clause((*path, "clause"), rule.clause))

    def check_board(self, board: BoardSpec) -> None:
        """Report mistakes in the board."""
        of_table = Names({}, (), self._state)
        of_player = Names({}, ("player",), self._state)
        check_sentence(self._source, ("board", "title"), board.title, of_table)
        for number, text in enumerate(board.text):
            check_sentence(self._source, ("board", "text", number), text, of_table)
        self._check_paths(("board",), board, of_table, "players", "dice")
        self._check_paths(("board",), board, of_player, "scores", "hand")
        turn = state_path(board.turn) if board.turn else None
        if turn is not None and of_table.problem(turn) is not None:
            self._source.remark(("board", "turn"), f"no event puts anything at {board.turn}")
        else:
            self._check_paths(("board",), board, of_table, "turn")
        for key, names in {"figures": of_player, "piles": of_table}.items():
            for label, value in getattr(board, key).items():
                check_path(self._source, ("board", key, label), value, names)
        of_each: dict[Path, str] = {("scores",): board.scores, ("hand",): board.hand}
        of_each |= {("figures", label): value for label, value in board.figures.items()}
        for at, value in of_each.items():
            if value and "player" not in value.split("players", 1)[-1]:
                problem = f"{value} is the same for all players: it needs {{player}}, as in hands.{{player}}"
                self._source.remark(("board", *at), problem)
        players = state_path(board.players) or ()
        are_known = self._in_python or any(is_within(players, known) for known in self._put_paths())
        if (grid := board.grid) is not None:
            of_each |= {("grid", "cells"): grid.cells, ("grid", "tokens"): grid.tokens}
            self._check_paths(("board", "grid"), grid, of_player, "cells", "tokens")
            self._check_paths(("board", "grid"), grid, of_table, "width", "height")
            if grid.cell and state_path(f"cell.{grid.cell}") is None:
                self._source.wrong(
                    ("board", "grid", "cell"), 'cell must be a path within a cell, such as "type"'
                )
            if grid.edges is not None:
                self._check_paths(("board", "grid", "edges"), grid.edges, of_player, "above", "left")
            if grid.edges is not None and grid.shape != "square":
                problem = "edges are lines between squares, not hexagons"
                self._source.wrong_key(("board", "grid", "edges"), problem)
        for_players = [path for path, value in of_each.items() if "{player}" in value]
        if for_players and not are_known:
            problem = f"no player is known, as no event puts {board.players}"
            example = f'"{board.players}.{{who}}" = {{}}'
            self._source.remark(("board", *for_players[0]), f"{problem}: {example}")

    def _check_paths(self, path: Path, table: Table, names: Names, *keys: str) -> None:
        """Report what is wrong with the paths of the state that are the values of some keys."""
        for key in keys:
            if (value := getattr(table, key)) and isinstance(value, str):
                check_path(self._source, (*path, key), value, names)

    def check_statistics(
        self,
        statistics: Sequence[StatisticSpec],
        events: Iterable[EventSpec],
        data: Mapping[str, Sequence[str]],
    ) -> None:
        """Report mistakes in statistics; events of a table in Python have `data`, by kind."""
        known = {event.key: event for event in events if not event.silent} or {
            row.name: EventSpec(key=row.name, on=(row.name,)) for row in self._messages
        }
        for spec in statistics[:MAX_STATISTICS]:
            self._check_statistic(("statistics", spec.key), spec, known, data)
        for spec in statistics[MAX_STATISTICS : MAX_STATISTICS + 1]:
            self._source.wrong_key(("statistics", spec.key), f"more than {MAX_STATISTICS} statistics")

    def _check_statistic(
        self,
        path: Path,
        spec: StatisticSpec,
        events: Mapping[str, EventSpec],
        data: Mapping[str, Sequence[str]],
    ) -> None:
        forms = [form for form in STATISTIC_FORMS if getattr(spec, form)]
        if len(forms) != 1:
            self._source.wrong_key(path, f"a statistic has one of {listed(STATISTIC_FORMS)}")
        for key, of in _FORMS_OF.items() if len(forms) == 1 else ():
            if getattr(spec, key) != getattr(StatisticSpec(), key) and spec.form not in of:
                self._source.wrong_key((*path, key), f"{key} belongs to {listed(of)}, not to {spec.form}")
        if spec.form == "shares" and len({*(spec.word_of.values() or spec.lines.values())}) != _SHARES:
            self._source.wrong_key(path, 'shares need two words, such as words = ["won", "lost"]')
        if any(map(is_reader, spec.on)) and self._package is not None:
            reader = spec.on[0] if len(spec.on) == 1 else ""
            self._source.check_part((*path, spec.form), reader, self._package, "CLASS")
            return
        if spec.form == "histogram" and not spec.by:
            self._source.wrong_key(path, 'a histogram needs by, such as by = "dice"')
        if spec.form == "durations" and not spec.begins:
            self._source.wrong_key(path, "durations need begins, such as begins = \"kind == 'turn'\"")
        for kind in spec.on:
            if kind not in events:
                self._source.wrong((*path, spec.form), f"no event {kind}{near(kind, events)}")
        of_events = [events[kind] for kind in spec.on if kind in events]
        values = {name for event in of_events for name in data.get(event.key, ())}
        chosen = [
            message
            for message in self._messages
            for event in of_events
            if event.selects(message.name, message.direction)
        ]
        types = None if values else types_of(chosen)
        names = Names(types, (WHO, KIND, *values), self._state, self._asked(chosen))
        for key in ("when", "by", "amount", "begins"):
            if text := getattr(spec, key):
                check_expression(self._source, (*path, key), text, names)
        for number, text in enumerate(spec.lines):
            step = text if isinstance(spec.line, dict) else number
            check_expression(self._source, (*path, "line", step), text, names)


def _attributes(table: Table, *others: str) -> dict[str, Any]:
    """Return the keys of a table but others, which are attributes of its row in a grammar; "" is None."""
    keys = [key for key in table.__struct_fields__ if key not in others]
    return {key: None if (value := getattr(table, key)) == "" else value for key in keys}


def types_of(messages: Iterable[MessageSpec]) -> dict[str, list[FieldTypeSpec]]:
    """Return the types of the fields of messages, by the names that expressions may use."""
    types: dict[str, list[FieldTypeSpec]] = {}
    for field in (field for message in messages for field in message.fields):
        # A name that is no word, such as `to x`, is written with underscores.
        for name in {field.name, word_of(field.name)}:
            types.setdefault(name, []).append(field.type)
    return types
