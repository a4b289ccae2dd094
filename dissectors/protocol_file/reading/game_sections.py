"""The sections of a protocol file about the game: events, rules, and the board."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from kiebitz.dissectors.filters.syntax import WORDS
from kiebitz.dissectors.grammar.grammar import OWN_CLAUSE, EventKind, Rule
from kiebitz.dissectors.model import Direction
from kiebitz.dissectors.protocol_file.composed import expressions_in
from kiebitz.dissectors.protocol_file.expressions import ASKED, STATE, WHO
from kiebitz.dissectors.protocol_file.reading.document import (
    BoardTable,
    EdgesTable,
    EventTable,
    GridTable,
    PythonEventTable,
    PythonRuleTable,
    RuleTable,
    Selection,
    Table,
)
from kiebitz.dissectors.protocol_file.reading.scope import (
    KEPT,
    Names,
    Pattern,
    check_expression,
    check_path,
    check_put_path,
    check_sentence,
    is_within,
    state_path,
)
from kiebitz.dissectors.protocol_file.reading.source import Path, Source, filled
from kiebitz.dissectors.protocol_file.specification import (
    BoardSpec,
    EventSpec,
    FieldTypeSpec,
    GridSpec,
    IdentifierType,
    MessageSpec,
    Put,
    RuleSpec,
)
from kiebitz.dissectors.protocol_file.templates import word_of

_DIRECTIONS: Mapping[str | None, Direction | None] = {"server": "s2c", "client": "c2s", None: None}

_PLAIN = re.compile(r"(?:[^{}]|\{\w+\})*")

_ANY = Names(None, (), ())
"""All names: a table in Python may fill sentences with any."""


class GameSections:
    """Reads events, rules and board; mistakes are added to the source."""

    def __init__(
        self,
        source: Source,
        document: Mapping[str, Any],
        messages: Sequence[MessageSpec],
        *,
        in_python: bool = False,
    ) -> None:
        self._in_python = in_python
        self._source = source
        self._document = document
        self._messages = messages
        self._known = {message.name for message in messages} | {*_table(document, "messages")}
        # Python code may put anything anywhere.
        self.state: Collection[Pattern] = ((None,),) if in_python else (*KEPT, *self._put_paths())
        """Paths of the state that may have a value."""

    def _put_paths(self) -> Iterator[Pattern]:
        """Yield the paths of the state that events change."""
        for event in _table(self._document, "events").values():
            if not isinstance(event, dict):
                continue
            if event.get("turn") is True:
                yield ("turn",)
            put = event.get("put")
            if isinstance(put, dict):
                for path in put:
                    if (found := state_path(path)) is not None:
                        yield found

    def _rows(self, section: str) -> Iterator[tuple[str, Path, Any]]:
        for key, value in _table(self._document, section).items():
            yield key, (section, key), value

    def events(self) -> tuple[EventSpec, ...]:
        """Return the events."""
        found = tuple(
            event
            for key, path, value in self._rows("events")
            if (event := self._event(key, path, value)) is not None
        )
        if not any(event.opens for event in found):
            for event in found:
                key = "cancels" if event.cancels else "ends"
                if event.ends and not self._in_python:
                    problem = "no event opens a game, so none ends: one needs opens = true"
                    self._source.remark(("events", event.kind, key), problem)
        return found

    def _event(self, kind: str, path: Path, value: Any) -> EventSpec | None:
        if self._in_python:
            return self._python_event(kind, path, value)
        table = self._source.table(path, value, EventTable)
        if table is None:
            return None
        on, direction, names = self._selection(path, table)
        for key in ("say", "label"):
            check_sentence(self._source, (*path, key), getattr(table, key), names)
        if table.actor:
            check_expression(self._source, (*path, "actor"), table.actor, names)
        for at, text in expressions_in(table.result, (*path, "result")):
            check_expression(self._source, at, text, names)
        ends = table.ends or table.cancels
        if table.opens and table.cancels:
            self._source.wrong((*path, "cancels"), "an event that opens a game cannot cancel it")
        for key, needs, is_met in (("label", "opens", table.opens), ("result", "ends", ends)):
            if getattr(table, key) and not is_met:
                self._source.remark((*path, key), f"{key} means nothing without {needs} = true")
        if table.silent:
            self._check_silent(path, table)
        puts = tuple(self._put((*path, "put", key), key, new, names) for key, new in table.put.items())
        if not (table.say or table.put or table.opens or ends or table.turn or table.joins or table.timeout):
            self._source.remark(path, f"event {kind} neither says nor puts anything")
        return EventSpec(
            kind=kind,
            on=on,
            direction=direction,
            let=table.let,
            when=table.when or None,
            say=table.say,
            actor=table.actor or WHO,
            puts=puts,
            opens=table.opens,
            ends=ends,
            joins=table.joins,
            cancels=table.cancels,
            timeout=table.timeout,
            result=table.result,
            label=table.label or None,
            secret=table.secret,
            turn=table.turn,
            silent=table.silent,
        )

    def _check_silent(self, path: Path, table: EventTable) -> None:
        """Report keys that mean nothing for an event that is not listed."""
        for key in (
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
        ):
            if getattr(table, key):
                self._source.wrong_key((*path, key), f"a silent event only puts values: remove {key}")

    def _python_event(self, kind: str, path: Path, value: Any) -> EventSpec | None:
        table = self._source.table(path, value, PythonEventTable)
        if table is None:
            return None
        data = tuple(table.data.split() if isinstance(table.data, str) else table.data)
        self._check_plain((*path, "say"), table.say)
        self._source.check_braces((*path, "say"), table.say, data, "value")
        on = self._source.names((*path, "on"), table.on, self._known)
        for key in ("ends", "cancels", "timeout"):
            if isinstance(condition := getattr(table, key), str):
                check_expression(self._source, (*path, key), condition, Names(None, data, ()))
        return EventSpec(
            kind=kind,
            on=on,
            say=table.say,
            data=data,
            row=EventKind(kind, data, table.say, reported_by=on, **_keys(table, "data", "say", "on")),
        )

    def _check_plain(self, path: Path, sentence: str) -> None:
        """Report syntax errors in a sentence, in which there are usually only names in braces."""
        if not _PLAIN.fullmatch(sentence):
            check_sentence(self._source, path, sentence, _ANY)

    def _put(self, path: Path, key: str, value: Any, names: Names) -> Put:
        check_put_path(self._source, path, key, names)
        if value == "":
            return Put(key, None)
        for at, text in expressions_in(value, path):
            check_expression(self._source, at, text, names)
        return Put(key, value)

    def asked(self, chosen: Sequence[MessageSpec]) -> Mapping[str, Sequence[FieldTypeSpec]] | None:
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

    def _selection(self, path: Path, table: Selection) -> tuple[tuple[str, ...], Direction | None, Names]:
        """Return the messages, their direction, and the names known with them; check the condition."""
        on = self._source.names((*path, "on"), table.on, self._known)
        direction = _DIRECTIONS[table.from_]
        chosen = [
            message
            for message in self._messages
            if message.name in on and direction in (None, message.direction)
        ]
        is_known = {*on} <= {message.name for message in chosen}
        if not is_known and {*on} <= self._known and direction is not None:
            sent = {message.name for message in self._messages if message.direction == direction}
            for name in on:
                if name not in sent:
                    self._source.wrong((*path, "from"), f"the {table.from_} sends no {name}")
        types = types_of(chosen) if is_known else None
        names = Names(types, (WHO,), self.state, self.asked(chosen))
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
        return on, direction, names

    def rules(self) -> tuple[RuleSpec, ...]:
        """Return the rules."""
        return tuple(
            rule
            for key, path, value in self._rows("rules")
            if (rule := self._rule(key, path, value)) is not None
        )

    def _rule(self, key: str, path: Path, value: Any) -> RuleSpec | None:
        if self._in_python:
            return self._python_rule(key, path, value)
        table = self._source.table(path, value, RuleTable)
        if table is None:
            return None
        on, direction, names = self._selection(path, table)
        if table.unless:
            check_expression(self._source, (*path, "unless"), table.unless, names)
        elif not table.when and isinstance(value, dict) and not {"when", "unless"} & {*value}:
            self._source.wrong_key(path, f"rule {key} has neither when nor unless")
        in_sentence = msgspec.structs.replace(names, others=(*names.others, "known"))
        for sentence in ("say", "expected"):
            check_sentence(self._source, (*path, sentence), getattr(table, sentence), in_sentence)
        return RuleSpec(
            key=key,
            on=on,
            direction=direction,
            let=table.let,
            when=table.when or None,
            unless=table.unless or None,
            say=table.say,
            severity=table.severity,
            clause=self._source.clause((*path, "clause"), table.clause),
            expected=table.expected or None,
        )

    def _python_rule(self, key: str, path: Path, value: Any) -> RuleSpec | None:
        table = self._source.table(path, value, PythonRuleTable)
        if table is None:
            return None
        for sentence in ("say", "expected"):
            self._check_plain((*path, sentence), getattr(table, sentence))
        on = self._source.names((*path, "on"), table.on, self._known)
        clauses = {**self._source.clauses, "clause": OWN_CLAUSE}
        self._source.check_braces((*path, "clause"), table.clause, clauses, "clause")
        return RuleSpec(
            key=key,
            on=on,
            row=Rule(
                key,
                on[0] if len(on) == 1 else None,
                table.say,
                clause=filled(table.clause, clauses) or None,
                **_keys(table, "on", "say", "clause"),
            ),
        )

    def board(self) -> BoardSpec | None:
        """Return the board."""
        path: Path = ("board",)
        if "board" not in self._document:
            return None
        table = self._source.table(path, self._document["board"], BoardTable)
        if table is None:
            return None
        of_table = Names({}, (), self.state)
        of_player = Names({}, ("player",), self.state)
        check_sentence(self._source, (*path, "title"), table.title, of_table)
        texts = [table.text] if isinstance(table.text, str) else table.text
        for number, text in enumerate(texts):
            at = (*path, "text") if isinstance(table.text, str) else (*path, "text", number)
            check_sentence(self._source, at, text, of_table)
        paths = {
            "players": of_table,
            "dice": of_table,
            "scores": of_player,
            "hand": of_player,
        }
        for key, names in paths.items():
            if value := getattr(table, key):
                check_path(self._source, (*path, key), value, names)
        turn = state_path(table.turn) if table.turn else None
        if turn is not None and of_table.problem(turn) is not None:
            self._source.remark((*path, "turn"), f"no event puts anything at {table.turn}")
        elif table.turn:
            check_path(self._source, (*path, "turn"), table.turn, of_table)
        for key, names in {"figures": of_player, "piles": of_table}.items():
            for label, value in getattr(table, key).items():
                check_path(self._source, (*path, key, label), value, names)
        of_each: dict[Path, str] = {("scores",): table.scores, ("hand",): table.hand}
        of_each |= {("figures", label): value for label, value in table.figures.items()}
        for at, value in of_each.items():
            if value and "player" not in value.split("players", 1)[-1]:
                problem = f"{value} is the same for all players: it needs {{player}}, as in hands.{{player}}"
                self._source.remark((*path, *at), problem)
        grid = self._grid((*path, "grid"), self._document["board"], of_table, of_player)
        if grid is not None:
            of_each |= {("grid", key): getattr(grid, key) or "" for key in ("cells", "tokens")}
        players = state_path(table.players) or ()
        are_known = self._in_python or any(is_within(players, known) for known in self._put_paths())
        for at, value in of_each.items() if not are_known else ():
            if "{player}" in value:
                problem = (
                    f'no player is known, as no event puts {table.players}: "{table.players}.{{who}}" = {{}}'
                )
                self._source.remark((*path, *at), problem)
                break
        return BoardSpec(
            title=table.title or None,
            players=table.players,
            turn=table.turn or None,
            scores=table.scores or None,
            unit=table.unit,
            figures=table.figures,
            hand=table.hand or None,
            dice=table.dice or None,
            piles=table.piles,
            grid=grid,
            text=tuple(texts),
        )

    def _grid(self, path: Path, board: Mapping[str, Any], names: Names, of_player: Names) -> GridSpec | None:
        if "grid" not in board:
            return None
        table = self._source.table(path, board["grid"], GridTable)
        if table is None:
            return None
        for key in ("cells", "tokens"):
            if value := getattr(table, key):
                check_path(self._source, (*path, key), value, of_player)
        for key in ("width", "height"):
            if isinstance(size := getattr(table, key), str):
                check_path(self._source, (*path, key), size, names)
        edges = EdgesTable()
        if "edges" in board["grid"]:
            edges = self._source.table((*path, "edges"), board["grid"]["edges"], EdgesTable) or edges
            for key in ("above", "left"):
                if value := getattr(edges, key):
                    check_path(self._source, (*path, "edges", key), value, of_player)
            if table.shape != "square":
                self._source.wrong_key((*path, "edges"), "edges are lines between squares, not hexagons")
        if table.cell and state_path(f"cell.{table.cell}") is None:
            self._source.wrong((*path, "cell"), 'cell must be a path within a cell, such as "type"')
        return GridSpec(
            cells=table.cells or None,
            columns=table.columns,
            runs=table.runs,
            cell=table.cell or None,
            symbols=table.symbols,
            tokens=table.tokens or None,
            x=table.x,
            y=table.y,
            width=table.width,
            height=table.height,
            first=table.first,
            above=edges.above or None,
            left=edges.left or None,
            shape=table.shape,
        )


def _keys(table: Table, *others: str) -> dict[str, Any]:
    """Return the keys of a table that are attributes of its row in a grammar; empty texts are None."""
    found = {key: getattr(table, key) for key in table.__struct_fields__ if key not in others}
    return {
        key: tuple(value) if isinstance(value, list) else None if value == "" else value
        for key, value in found.items()
    }


def types_of(messages: Iterable[MessageSpec]) -> dict[str, list[FieldTypeSpec]]:
    """Return the types of the fields of messages, by the names that expressions may use."""
    types: dict[str, list[FieldTypeSpec]] = {}
    for field in (field for message in messages for field in message.fields):
        # A name that is no word, such as `to x`, is written with underscores.
        for name in {field.name, word_of(field.name)}:
            types.setdefault(name, []).append(field.type)
    return types


def _table(document: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """Return a table of a document, empty if it is none."""
    value = document.get(key)
    return value if isinstance(value, dict) else {}
