"""The reader of protocol files: from the text to a `Specification`, or to all of its mistakes."""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import msgspec

from kiebitz import dissectors
from kiebitz.dissectors.filters.fields import ALIASES, COLUMNS, STATE, TRANSPORTS
from kiebitz.dissectors.filters.syntax import WORDS
from kiebitz.dissectors.game.table import is_part_of
from kiebitz.dissectors.grammar.grammar import sender_of
from kiebitz.dissectors.model import Direction
from kiebitz.dissectors.protocol_file import MAX_SIZE
from kiebitz.dissectors.protocol_file.expressions import WHO
from kiebitz.dissectors.protocol_file.patterns import one_budget
from kiebitz.dissectors.protocol_file.reading.dead_ends import DeadEnds
from kiebitz.dissectors.protocol_file.reading.document import (
    PROTOCOL_NAME,
    Document,
    PythonEventTable,
    PythonRuleTable,
    PythonTable,
)
from kiebitz.dissectors.protocol_file.reading.game_sections import GameSections, types_of
from kiebitz.dissectors.protocol_file.reading.head import HeadSection
from kiebitz.dissectors.protocol_file.reading.message_section import MAX_NAME, MessageSection
from kiebitz.dissectors.protocol_file.reading.notation import near
from kiebitz.dissectors.protocol_file.reading.positions import (
    InvalidTomlError,
    Mistake,
    Place,
    ProtocolFileError,
    TomlPlaces,
    parse_toml,
)
from kiebitz.dissectors.protocol_file.reading.probe_sections import ProbeSections
from kiebitz.dissectors.protocol_file.reading.scope import Names, check_expression
from kiebitz.dissectors.protocol_file.reading.source import Path, Source, TooManyMistakes
from kiebitz.dissectors.protocol_file.reading.type_section import TypeSection
from kiebitz.dissectors.protocol_file.sections import (
    EventSpec,
    IdentitySpec,
    ProbeSpec,
    ReferenceSpec,
    RoomSpec,
    RuleSpec,
)
from kiebitz.dissectors.protocol_file.specification import MessageSpec, Specification
from kiebitz.dissectors.queries import Query

_RESERVED = {STATE, *WORDS, *TRANSPORTS, *(name.partition(".")[0] for name in (*COLUMNS, *ALIASES))}
"""Names that have another meaning in filters."""

_FOR_PACKAGES = {
    "queries": "have queries: SQL of others is not passed on",
    "python": "name Python: nothing in this file is executed",
}
"""Why other files must not have these sections."""


class Reading(msgspec.Struct, frozen=True):
    """A valid protocol file; `remarks` are probably mistakes."""

    specification: Specification
    remarks: tuple[Mistake, ...]
    source: Source

    @property
    def places(self) -> TomlPlaces:
        """The locations of keys and values."""
        return self.source.places

    def place_of_row(self, index: int) -> Place:
        """Return the place of a row, given its index in the specification's messages."""
        name = self.specification.messages[index].name
        number = sum(message.name == name for message in self.specification.messages[:index])
        return self.places.key(("messages", name, number))


class PythonParts(NamedTuple):
    """The parts in Python that the file of a package may name.

    Attributes:
        package: The package.
        types: Names of its types of fields.
        installed: The only parts that a copy of the package's file may name; None if it is no copy.
    """

    package: str
    types: Collection[str] = ()
    installed: Mapping[str, str] | None = None


def read_specification(text: str, name: str = "protocol file") -> Specification:
    """Return the content of a protocol file. Raises ProtocolFileError."""
    return read(text, name).specification


def read(
    text: str,
    name: str = "protocol file",
    parts_of: Callable[[str], PythonParts | None] = lambda protocol: None,
) -> Reading:
    """Return the content of a protocol file and remarks on it.

    `parts_of` returns what the file of a protocol may name in Python, None for nothing.

    Raises ProtocolFileError with all mistakes.
    """
    if len(text) > MAX_SIZE:
        problem = f"a protocol file has at most {MAX_SIZE // 1024} KB"
        raise ProtocolFileError(name, [Mistake(problem, Place(1, text[:MAX_NAME].partition("\n")[0], 0, 1))])
    normal = text.replace("\r\n", "\n")
    try:
        document = parse_toml(normal)
        source = Source(normal)
        protocol = document.get("protocol")
        parts = parts_of(protocol) if "python" in document and isinstance(protocol, str) else None
        if parts is None:
            _ = source.places  # The text of a stranger may be nested too deeply for them.
    except InvalidTomlError as error:
        place = error.place or Place(1, normal.partition("\n")[0], 0, 1)
        raise ProtocolFileError(name, [Mistake(str(error), place)]) from None
    except RecursionError:
        raise ProtocolFileError(name, [Mistake("nested too deeply", Place(1, "", 0, 1))]) from None
    with suppress(TooManyMistakes), one_budget():
        specification = _Reader(source, document, text, parts).specification()
    if source.mistakes:
        raise ProtocolFileError(name, source.mistakes)
    return Reading(specification, tuple(source.remarks), source)


def problem_of_name(protocol: str) -> str | None:
    """Return why a protocol file's protocol cannot have this name, or None."""
    if not re.fullmatch(PROTOCOL_NAME, protocol):
        return "the name of a protocol is a word of small letters, digits and _"
    if protocol in {module.name for module in pkgutil.iter_modules([f"{dissectors.__path__[0]}/protocols"])}:
        return f"{protocol} is a protocol of Kiebitz itself: choose another name"
    if protocol in _RESERVED:
        return f"{protocol} has another meaning in filters: choose another name"
    return None


class _Reader:
    """Reads a document once; mistakes are added to the source."""

    def __init__(
        self, source: Source, document: Mapping[str, Any], text: str, parts: PythonParts | None
    ) -> None:
        self._source = source
        self._document = document
        self._text = text
        self._parts = parts
        self._package = None if parts is None else parts.package
        written = document.get("messages")
        self._rows: Mapping[str, Any] = written if isinstance(written, dict) else {}
        """The messages as written."""

    def specification(self) -> Specification:
        written = self._document.get("python")
        if self._parts is not None and isinstance(written, dict) and written.get("table"):
            self._source.instead = {EventSpec: PythonEventTable, RuleSpec: PythonRuleTable}
        head = self._source.table((), self._document, Document)
        assert head is not None, "a document is a table"
        ports = head.port
        if head.together and len({*ports}) < 2:
            self._source.wrong_key(("together",), "together is for a server with several ports")
        problem = problem_of_name(head.protocol) if head.protocol and self._parts is None else None
        if problem is not None:
            self._source.wrong(("protocol",), problem)
        transport = head.transport or ("udp" if head.framing == "datagrams" else "tcp")
        formats = HeadSection(self._source, self._document, head)
        types = TypeSection(
            self._source,
            self._document.get("types", {}),
            head.descriptions,
            formats.kind_of_types(),
            () if self._parts is None else self._parts.types,
        )
        types.check()
        framing = formats.framing(types.parser)
        both = formats.formats(framing)
        format = both.get("s2c") or formats.with_envelope(formats.format(framing), types.parser)
        lenient = formats.lenient(framing)
        self._source.clauses = head.clauses
        if self._document.get("messages") == {}:
            self._source.wrong_key(("messages",), 'a protocol has messages, such as JOIN = "c: name=player"')
        section = MessageSection(self._source, head, self._rows, types, framing, format, both)
        messages = section.messages()
        references = tuple(
            self._reference(number, each, messages) for number, each in enumerate(head.answers)
        )
        if head.identity is not None:
            self._check_identity(head.identity, messages, ports)
        for key, why in _FOR_PACKAGES.items() if self._package is None else ():
            if key in self._document:
                self._source.wrong_key((key,), f"only the file of an installed package may {why}")
        python = self._python(head)
        game = GameSections(self._source, head, messages, {*self._rows}, self._package)
        if python.table:
            event_kinds, table_rules = (*game.event_kinds(),), (*game.table_rules(),)
            events = tuple(
                EventSpec(key=each.kind, on=each.reported_by, say=each.sentence) for each in event_kinds
            )
            rules = tuple(RuleSpec(key=each.key, on=(), say="") for each in table_rules)
        else:
            event_kinds, table_rules = (), ()
            events, rules = game.events(), game.rules()
        if head.board is not None:
            game.check_board(head.board)
        statistics = tuple(head.statistics.values())
        game.check_statistics(statistics, events, {each.kind: each.fields for each in event_kinds})
        probing = ProbeSections(self._source, messages, head.quotes, self._package)
        probe = probing.probe(head.probe or ProbeSpec(), [rule.key for rule in rules])
        expectations = tuple(probing.expectations(head.expectations))
        if not python.table and not self._source.mistakes:
            DeadEnds(self._source, messages, events).check(rules, head.board)
        for name in types.named:
            if name not in types.used:
                self._source.remark(("types", name), f"no row uses the type {name}")
        known = {field.name for message in messages for field in message.fields} | types.fields
        for name in head.descriptions:
            if name not in known:
                self._source.remark(("descriptions", name), f"no row has the field {name}{near(name, known)}")
        return Specification(
            text=self._text,
            protocol=head.protocol,
            title=head.title or head.protocol,
            transport=transport,
            ports=ports,
            together=head.together,
            framing=framing,
            format=format,
            formats=both,
            lenient=lenient,
            types=types.named,
            messages=messages,
            game=self._rooms(head, messages),
            clause=head.clause or None,
            codec=python.codec or None,
            table=python.table or None,
            view=python.view or None,
            references=references,
            identity=head.identity,
            events=events,
            event_kinds=event_kinds,
            rules=rules,
            table_rules=table_rules,
            board=head.board,
            statistics=statistics,
            queries=tuple(
                Query(query.key, query.title, query.about, query.sql) for query in head.queries.values()
            ),
            probe=probe,
            expectations=expectations,
        )

    def _rooms(self, head: Document, messages: Collection[MessageSpec]) -> RoomSpec | None:
        path: Path = ("game", "id")
        room = self._document.get("game")
        if isinstance(room, str):
            path, rules = ("game",), RoomSpec(id=room)
        elif room is None or (found := self._source.table(("game",), room, RoomSpec)) is None or not found.id:
            return None
        else:
            rules = found
        names = Names(types_of(messages), (WHO,), ())
        check_expression(self._source, path, rules.id, names)
        if rules.of:
            check_expression(self._source, ("game", "of"), rules.of, names)
        of_server = types_of([message for message in messages if message.direction == "s2c"])
        if not rules.joins and rules.id in types_of(messages) and rules.id not in of_server:
            problem = f"no message of the server has {rules.id}: joins names those with which a client enters"
            self._source.remark(path, problem)
        self._source.check_names(("game", "joins"), rules.joins, self._rows)
        self._source.check_names(("game", "leaves"), rules.leaves, self._rows)
        return rules

    def _python(self, head: Document) -> PythonTable:
        """Return the parts in Python."""
        if head.python is None or self._parts is None:
            return PythonTable()
        package, installed = self._parts.package, self._parts.installed
        for key in ("codec", "table", "view"):
            name = getattr(head.python, key)
            if name and not is_part_of(name, package):
                self._source.check_part(("python", key), name, package)
            elif installed is not None and name != installed[key]:
                problem = f"{key} must be that of the installed protocol: {installed[key]}"
                self._source.wrong(("python", key), problem)
        return head.python

    def _reference(
        self, number: int, table: ReferenceSpec, messages: Collection[MessageSpec]
    ) -> ReferenceSpec:
        """Return the fields by which an answer names its request, which have the same names by default."""
        path: Path = ("answers", number)
        answered = {name for message in messages for name in message.answers}
        of = table.of or table.by
        sides = {
            "by": (table.by, "answer", [message for message in messages if message.answers]),
            "of": (of, "answered message", [message for message in messages if message.name in answered]),
        }
        for key, (fields, kind, rows) in sides.items():
            types = types_of(rows)
            for field in fields:
                at = (*path, key if getattr(table, key) else "by")
                if field not in types and field.partition(".")[0] not in types:
                    self._source.wrong(at, f"no {kind} has a field {field}{near(field, types)}")
                elif field not in types and (problem := Names(types, (), ()).problem((*field.split("."),))):
                    self._source.wrong(at, problem)
        if not table.by or len(table.by) != len(of):
            self._source.wrong((*path, "of" if table.of else "by"), "by and of have as many fields each")
        return ReferenceSpec(by=table.by, of=of)

    def _check_identity(
        self, identity: IdentitySpec, messages: Collection[MessageSpec], ports: Collection[int]
    ) -> None:
        for key in ("login", "introduces", "given", "named", "left"):
            self._source.check_names(("identity", key), getattr(identity, key), self._rows)
        senders: Mapping[str, Direction] = {"login": "c2s", "introduces": "c2s", "given": "s2c"}
        for key, direction in senders.items():
            for number, name in enumerate(getattr(identity, key)):
                if all(message.direction != direction for message in messages if message.name == name):
                    problem = f"{sender_of(direction)} does not send {name}"
                    self._source.wrong(("identity", key, number), problem)
        fields = {field.name for message in messages for field in message.fields}
        for key in ("id", "name"):
            field = getattr(identity, key)
            if field and field not in fields:
                self._source.wrong(("identity", key), f"no message has a field {field}{near(field, fields)}")
        if identity.ports and len({*identity.ports}) != len(ports):
            problem = f"a player for each port of the server is needed: {len(ports)} different names"
            self._source.wrong(("identity", "ports"), problem)
