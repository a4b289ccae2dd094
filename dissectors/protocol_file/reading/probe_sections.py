"""The sections `[probe]` and `[expectations]` of a protocol file."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from kiebitz.dissectors.conformance.expectations import ROLES, Expectation, Refusal
from kiebitz.dissectors.game.assembly import is_part_of
from kiebitz.dissectors.protocol_file.reading.document import ExpectationTable, ProbeTable, SpellingTable
from kiebitz.dissectors.protocol_file.reading.notation import near
from kiebitz.dissectors.protocol_file.reading.source import Path, Source
from kiebitz.dissectors.protocol_file.specification import MessageSpec, ProbeSpec, SpellingSpec

_REFUSAL = re.compile(r"(?P<message>.*?)(?:\s+(?P<field>[^\s=]+)=(?P<value>.*))?", re.DOTALL)
_NAMED = re.compile(r"\{(\w+)\}")
_WORDS: Mapping[str, Any] = {"": None, "true": True, "false": False}


def _probe(
    table: ProbeTable, expectations: Sequence[Expectation], spellings: Sequence[SpellingSpec]
) -> ProbeSpec:
    return ProbeSpec(
        expectations=tuple(expectations),
        spellings=tuple(spellings),
        seats=table.seats,
        silence_s=table.silence,
        timeouts=table.timeouts,
        awaited=tuple(_list(table.awaited)),
        spares_others=table.spares_others,
        broken_by=table.broken_by,
        unreachable=table.unreachable,
        bot=table.bot,
        simulated_server=table.simulated_server,
        violations=table.violations,
    )


def _spelling(word: str, table: SpellingTable, clause: str, quotes: Mapping[str, str]) -> SpellingSpec:
    return SpellingSpec(
        word=word,
        sentence=table.say,
        frame=table.frame,
        level=table.level,
        clause=clause or None,
        quote=_quoted(table.quote, quotes),
        messages=table.messages,
    )


def _expectations(
    cases: str, table: ExpectationTable, clause: str, quotes: Mapping[str, str]
) -> Iterator[Expectation]:
    """Yield the expectation for each role."""
    for role in ROLES:
        level = getattr(table, role)
        if level is not None:
            yield Expectation(
                cases,
                role,
                level,
                (table.reaction,) if isinstance(table.reaction, str) else tuple(table.reaction),
                clause or None,
                _quoted(table.quote, quotes),
                tuple(map(_refusal, _list(table.refusals))),
                table.spares_others,
                tuple(_list(table.answer)),
                table.others or None,
            )


def _quoted(text: str, quotes: Mapping[str, str]) -> str | None:
    named = _NAMED.fullmatch(text)
    return (quotes.get(named[1], text) if named is not None else text) or None


def _list(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value


def _refusal(text: str) -> Refusal:
    """Return the refusal `MESSAGE field=value`; without a value, the field is null."""
    found = _REFUSAL.fullmatch(text)
    assert found is not None, "the pattern fits any text"
    value = found["value"]
    if value is not None and re.fullmatch(r"-?\d{1,15}", value):
        value = int(value)
    return Refusal(found["message"].strip(), found["field"], _WORDS.get(value, value))


class ProbeSections:
    """Reads `[probe]` and `[expectations]`; mistakes are added to the source.

    The file of a `package` may name Python.
    """

    def __init__(
        self,
        source: Source,
        messages: Sequence[MessageSpec],
        quotes: Mapping[str, str],
        package: str | None,
    ) -> None:
        self._source = source
        self._messages = messages
        self._known = {message.name for message in messages}
        self._quotes = quotes
        self._package = package

    def probe(self, document: Mapping[str, Any], rules: Collection[str]) -> ProbeSpec:
        """Return the content of the sections."""
        table = self._source.table(("probe",), document.get("probe", {}), ProbeTable) or ProbeTable()
        for section in ("broken_by", "unreachable"):
            for rule in getattr(table, section):
                if rule not in rules:
                    problem = f"no rule {rule}{near(rule, rules)}"
                    self._source.wrong_key(("probe", section, rule), problem)
        for key in ("bot", "simulated_server", "violations"):
            if name := getattr(table, key):
                self._check_part(("probe", key), name)
        self._source.names(("probe", "awaited"), table.awaited, self._known)
        return _probe(table, [*self._expectations(document)], [*self._spellings(document)])

    def _check_part(self, path: Path, name: str) -> None:
        if self._package is None:
            self._source.wrong_key(path, "only the file of an installed package may name Python")
        elif not is_part_of(name, self._package):
            own = self._package.rpartition(".")[2]
            self._source.wrong(path, f"{path[-1]} must be in the package: {own}.MODULE:NAME")

    def _spellings(self, document: Mapping[str, Any]) -> Iterator[SpellingSpec]:
        probe = document.get("probe")
        written = probe.get("spellings") if isinstance(probe, dict) else None
        for word, value in written.items() if isinstance(written, dict) else ():
            path: Path = ("probe", "spellings", word)
            table = self._source.table(path, value, SpellingTable)
            if table is not None:
                self._check_part((*path, "frame"), table.frame)
                yield _spelling(word, table, self._clause(path, table), self._quotes)

    def _expectations(self, document: Mapping[str, Any]) -> Iterator[Expectation]:
        written = document.get("expectations")
        for cases, value in written.items() if isinstance(written, dict) else ():
            for number, entry in enumerate(value if isinstance(value, list) else [value]):
                path: Path = ("expectations", cases)
                path = (*path, number) if isinstance(value, list) else path
                table = self._source.table(path, entry, ExpectationTable)
                if table is not None:
                    found = [*_expectations(cases, table, self._clause(path, table), self._quotes)]
                    if not found:
                        problem = 'an expectation is about servers or clients: server = "must"'
                        self._source.wrong_key(path, problem)
                    for expectation in found:
                        self._check(path, expectation, isinstance(table.refusals, list))
                    for key in ("answer", "others"):
                        self._source.names((*path, key), getattr(table, key), self._known)
                    yield from found

    def _clause(self, path: Path, table: ExpectationTable | SpellingTable) -> str:
        named = _NAMED.fullmatch(table.quote)
        if named is not None and self._quotes and named[1] not in self._quotes:
            problem = f"no quote {named[1]}{near(named[1], self._quotes)}"
            self._source.wrong((*path, "quote"), problem, *named.span(1))
        return self._source.clause((*path, "clause"), table.clause) or ""

    def _check(self, path: Path, expectation: Expectation, is_list: bool) -> None:
        if "refuses" in expectation.right and not expectation.refusals and expectation.level != "open":
            self._source.wrong((*path, "reaction"), 'refuses needs as, such as as = "ERROR"')
        for number, refusal in enumerate(expectation.refusals):
            at = (*path, "as", number) if is_list else (*path, "as")
            away = "s2c" if expectation.role == "server" else "c2s"
            rows = [row for row in self._messages if (row.name, row.direction) == (refusal.message, away)]
            fields = {field.name for row in rows for field in row.fields}
            if not rows:
                sent = {row.name for row in self._messages if row.direction == away}
                problem = f"no message {refusal.message} of a {expectation.role}"
                self._source.wrong(at, problem + near(refusal.message, sent))
            elif refusal.field is not None and refusal.field not in fields:
                problem = f"{refusal.message} has no field {refusal.field}{near(refusal.field, fields)}"
                self._source.wrong(at, problem)
