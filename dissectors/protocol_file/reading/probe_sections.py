"""The sections `[probe]` and `[expectations]` of a protocol file."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence

import msgspec

from kiebitz.dissectors.conformance.expectations import ROLES, Expectation, Refusal
from kiebitz.dissectors.protocol_file.reading.document import ExpectationTable
from kiebitz.dissectors.protocol_file.reading.notation import near, plain_value
from kiebitz.dissectors.protocol_file.reading.source import Path, Source
from kiebitz.dissectors.protocol_file.sections import ProbeSpec, SpellingSpec
from kiebitz.dissectors.protocol_file.specification import MessageSpec

_REFUSAL = re.compile(r"(?P<message>.*?)(?:\s+(?P<field>[^\s=]+)=(?P<value>.*))?", re.DOTALL)
_NAMED = re.compile(r"\{(\w+)\}")


def _refusal(text: str) -> Refusal:
    """Return the refusal `MESSAGE field=value`; without a value, the field is null."""
    found = _REFUSAL.fullmatch(text)
    assert found is not None, "the pattern fits any text"
    value = found["value"]
    return Refusal(found["message"].strip(), found["field"], None if value is None else plain_value(value))


class ProbeSections:
    """Checks `[probe]` and `[expectations]`; mistakes are added to the source.

    The file of a `package` may name Python.
    """

    def __init__(
        self, source: Source, messages: Sequence[MessageSpec], quotes: Mapping[str, str], package: str | None
    ) -> None:
        self._source = source
        self._messages = messages
        self._known = {message.name for message in messages}
        self._quotes = quotes
        self._package = package

    def probe(self, probe: ProbeSpec, rules: Collection[str]) -> ProbeSpec:
        """Return the facts, with the quotes and clauses that they name."""
        for section in ("broken_by", "unreachable"):
            for rule in getattr(probe, section):
                if rule not in rules:
                    problem = f"no rule {rule}{near(rule, rules)}"
                    self._source.wrong_key(("probe", section, rule), problem)
        for key in ("bot", "simulated_server", "violations"):
            if name := getattr(probe, key):
                self._check_part(("probe", key), name)
        self._source.check_names(("probe", "awaited"), probe.awaited, self._known)
        spellings = {}
        for word, spelling in probe.spellings.items():
            path: Path = ("probe", "spellings", word)
            self._check_part((*path, "frame"), spelling.frame)
            clause, quote = self._sources(path, spelling)
            spellings[word] = msgspec.structs.replace(spelling, clause=clause, quote=quote)
        return msgspec.structs.replace(probe, spellings=spellings)

    def _check_part(self, path: Path, name: str) -> None:
        if self._package is None:
            self._source.wrong_key(path, "only the file of an installed package may name Python")
        else:
            self._source.check_part(path, name, self._package)

    def expectations(self, written: Mapping[str, Sequence[ExpectationTable]]) -> Iterator[Expectation]:
        """Yield the expectations of each role."""
        for cases, tables in written.items():
            for number, table in enumerate(tables):
                path: Path = ("expectations", cases, number)
                clause, quote = self._sources(path, table)
                levels = {role: getattr(table, role) for role in ROLES}
                if not any(levels.values()):
                    problem = 'an expectation is about servers or clients: server = "must"'
                    self._source.wrong_key(path, problem)
                self._source.check_names((*path, "answer"), table.answer, self._known)
                self._source.check_names((*path, "others"), table.others and [table.others], self._known)
                for role, level in levels.items():
                    if level is not None:
                        expectation = Expectation(
                            cases,
                            role,
                            level,
                            table.reaction,
                            clause or None,
                            quote or None,
                            tuple(map(_refusal, table.refusals)),
                            table.spares_others,
                            table.answer,
                            table.others or None,
                        )
                        self._check(path, expectation)
                        yield expectation

    def _sources(self, path: Path, table: ExpectationTable | SpellingSpec) -> tuple[str, str]:
        """Return the clause and the quote of a table; unknown ones are reported."""
        quote = table.quote
        named = _NAMED.fullmatch(quote)
        if named is not None and named[1] in self._quotes:
            quote = self._quotes[named[1]]
        elif named is not None and self._quotes:
            problem = f"no quote {named[1]}{near(named[1], self._quotes)}"
            self._source.wrong((*path, "quote"), problem, *named.span(1))
        return self._source.clause((*path, "clause"), table.clause), quote

    def _check(self, path: Path, expectation: Expectation) -> None:
        if "refuses" in expectation.right and not expectation.refusals and expectation.level != "open":
            self._source.wrong((*path, "reaction"), 'refuses needs as, such as as = "ERROR"')
        for number, refusal in enumerate(expectation.refusals):
            at = (*path, "as", number)
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
