"""The reader of protocol files: from the text to a `Specification`, or to all of its mistakes."""

from __future__ import annotations

import itertools
import pkgutil
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

import msgspec

from kiebitz import dissectors
from kiebitz.dissectors.filters.fields import ALIASES, COLUMNS, STATE, TRANSPORTS
from kiebitz.dissectors.filters.syntax import WORDS
from kiebitz.dissectors.game.assembly import is_part_of
from kiebitz.dissectors.grammar.grammar import NAMELESS, sender_of
from kiebitz.dissectors.grammar.json.forms import Form, SizeRule
from kiebitz.dissectors.model import Direction
from kiebitz.dissectors.protocol_file import MAX_SIZE
from kiebitz.dissectors.protocol_file.expressions import WHO
from kiebitz.dissectors.protocol_file.patterns import one_budget
from kiebitz.dissectors.protocol_file.reading import notation
from kiebitz.dissectors.protocol_file.reading.dead_ends import DeadEnds
from kiebitz.dissectors.protocol_file.reading.document import (
    PROTOCOL_NAME,
    AnswersTable,
    Document,
    IdentityTable,
    PythonTable,
    QueryTable,
    RoomTable,
    RowTable,
)
from kiebitz.dissectors.protocol_file.reading.errors import Mistake, ProtocolFileError
from kiebitz.dissectors.protocol_file.reading.game_sections import GameSections, types_of
from kiebitz.dissectors.protocol_file.reading.head import HeadSection
from kiebitz.dissectors.protocol_file.reading.notation import near
from kiebitz.dissectors.protocol_file.reading.packet_rows import PacketRows
from kiebitz.dissectors.protocol_file.reading.positions import InvalidTomlError, Place, TomlPlaces, parse_toml
from kiebitz.dissectors.protocol_file.reading.row_checks import problems_of, same_separators
from kiebitz.dissectors.protocol_file.reading.scope import Names, check_expression
from kiebitz.dissectors.protocol_file.reading.source import Path, Source, TooManyMistakes
from kiebitz.dissectors.protocol_file.reading.type_section import TypeSection, size_rule
from kiebitz.dissectors.protocol_file.specification import (
    NAME,
    AnyType,
    BagType,
    BinaryType,
    ChoiceType,
    EitherType,
    FieldSpec,
    FieldTypeSpec,
    Format,
    Framing,
    IdentifierType,
    IdentitySpec,
    ListType,
    MapType,
    MessageSpec,
    ObjectType,
    ProbeSpec,
    ReferenceSpec,
    RoomSpec,
    Specification,
    StatisticSpec,
    TextType,
    parts_of,
)
from kiebitz.dissectors.protocol_file.text_types import integer_limits, takes_tokens
from kiebitz.dissectors.queries import Query

MAX_MESSAGES = 1_000
"""Maximum number of rows."""

MAX_PARTS = 20_000
"""Maximum number of types in all rows."""

MAX_NAME = 100
"""Maximum length of a name."""

_RESERVED = {STATE, *WORDS, *TRANSPORTS, *(name.partition(".")[0] for name in (*COLUMNS, *ALIASES))}
"""Names that have another meaning in filters."""


_ANSWERED = re.compile(r"'([^']+)'|\"([^\"]+)\"|\S+")


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
    *,
    is_whole: bool = True,
) -> Reading:
    """Return the content of a protocol file and remarks on it.

    `parts_of` returns what the file of a protocol may name in Python, None for nothing. Statistics and the
    sections for `probe` are missing if it is not read as a whole.

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
        specification = _Reader(source, document, text, parts).specification(is_whole=is_whole)
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
        self._packets = PacketRows(source, Format(), "lines")

    def specification(self, *, is_whole: bool) -> Specification:
        head = self._source.table((), self._document, Document)
        assert head is not None, "a document is a table"
        ports = tuple(head.port) if isinstance(head.port, list) else (head.port,)
        if head.together and len({*ports}) < 2:
            self._source.wrong_key(("together",), "together is for a server with several ports")
        problem = problem_of_name(head.protocol) if head.protocol and self._parts is None else None
        if problem is not None:
            self._source.wrong(("protocol",), problem)
        transport = head.transport or ("udp" if head.framing == "datagrams" else "tcp")
        formats = HeadSection(self._source, self._document, head)
        self._types = TypeSection(
            self._source,
            self._document.get("types", {}),
            head.descriptions,
            formats.kind_of_types(),
            () if self._parts is None else self._parts.types,
        )
        self._types.check()
        framing = formats.framing(self._types.parser)
        self._formats = formats.formats(framing)
        format = self._formats.get("s2c") or self._with_envelope(head, formats.format(framing))
        lenient = formats.lenient(framing)
        self._packets = PacketRows(self._source, format, framing.kind)
        self._source.clauses = head.clauses
        messages = self._messages(head, format, framing)
        self._check_codes(head, _name_type(framing, format), messages)
        size = _name_size(framing)
        for name in {message.name: None for message in messages} if size else ():
            if len(name.encode()) > size:
                self._source.wrong_key(("messages", name), f"{name} has more than {size} bytes")
        references, identity = tuple(self._references(messages)), self._identity(messages, ports)
        python = self._python()
        game = GameSections(self._source, self._document, messages, in_python=bool(python.table))
        events, rules, board = game.events(), game.rules(), game.board()
        statistics: tuple[StatisticSpec, ...] = ()
        probe = ProbeSpec()
        if is_whole:
            # Load what many commands do without.
            from kiebitz.dissectors.protocol_file.reading.probe_sections import ProbeSections
            from kiebitz.dissectors.protocol_file.reading.statistics_section import StatisticsSection

            section = StatisticsSection(self._source, game, messages, self._package)
            statistics = tuple(section.statistics(self._document.get("statistics"), events))
            probing = ProbeSections(self._source, messages, head.quotes, self._package)
            probe = probing.probe(self._document, [rule.key for rule in rules])
        if not python.table and not self._source.mistakes:
            DeadEnds(self._source, messages, events).check(rules, board)
        for name in self._types.named:
            if name not in self._types.used:
                self._source.remark(("types", name), f"no row uses the type {name}")
        known = {field.name for message in messages for field in message.fields} | self._types.fields
        words = {str(word) for message in messages for word in _words_of(message)}
        for word in head.spelled if format.kind != "json" else ():
            if word not in words:
                self._source.wrong_key(("spelled", word), f"no field has the word {word}{near(word, words)}")
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
            formats=self._formats,
            lenient=lenient,
            types=self._types.named,
            messages=messages,
            game=self._rooms(messages),
            clause=head.clause or None,
            codec=python.codec or None,
            table=python.table or None,
            view=python.view or None,
            references=references,
            identity=identity,
            events=events,
            rules=rules,
            board=board,
            statistics=statistics,
            queries=tuple(self._queries()),
            probe=probe,
        )

    # Types and messages.

    def _with_envelope(self, head: Document, format: Format) -> Format:
        """Return the format with the element around messages, and its attributes."""
        key = "root" if head.root else "envelope"
        text = head.root or head.envelope
        if not text:
            return format
        if head.root and head.envelope:
            self._source.wrong_key(("envelope",), "root is around all messages: envelope is not needed")
        parser = self._types.parser(text)
        name, fields = parser.element()
        for field in fields:
            if not (field.is_attribute and field.optional):
                problem = f"messages have it or not: write @{field.name}?="
                self._wrong_field((key,), text, field, problem)
        for mistake in parser.mistakes:
            self._source.wrong((key,), mistake.message, mistake.start, mistake.end)
        return msgspec.structs.replace(format, envelope=name, stays_open=bool(head.root), outer=fields)

    def _messages(self, head: Document, format: Format, framing: Framing) -> tuple[MessageSpec, ...]:
        """Return the messages, whose first fields are those of the header."""
        written = self._document.get("messages")
        if not isinstance(written, dict):
            return ()
        if not written:
            self._source.wrong_key(("messages",), 'a protocol has messages, such as JOIN = "c: name=player"')
        messages: list[MessageSpec] = []
        parts = count = 0
        for name, value in written.items():
            if self._is_unquoted(("messages", name), name, value):
                continue
            self._check_name(name, format)
            rows = value if isinstance(value, list) else [value]
            variants: list[MessageSpec] = []
            for number, row in enumerate(rows):
                path: Path = ("messages", name, number) if isinstance(value, list) else ("messages", name)
                message, size = self._message(path, name, row, head, format, framing)
                parts += size
                count += 1
                if message is None:
                    continue
                if any(_shape(message) == _shape(each) for each in variants):
                    self._source.wrong(path, f"two rows of {name} are the same")
                elif framing.kind == "fields" and name == NAMELESS:
                    self._source.wrong(path, "nothing shows where a message without a name ends")
                elif framing.kind == "fields" and any(
                    message.direction == each.direction for each in variants
                ):
                    self._source.wrong(path, f"nothing shows which row of {name} a message has")
                variants.append(message)
            messages += variants
            if count > MAX_MESSAGES or parts > MAX_PARTS:
                self._source.wrong_key(
                    ("messages", name), f"more than {MAX_MESSAGES:,} rows, or {MAX_PARTS:,} fields in them"
                )
                break
        return tuple(messages)

    def _is_unquoted(self, path: Path, name: str, value: Any) -> bool:
        """Report a name with a dot that TOML takes for a table in a table."""
        if (
            not isinstance(value, dict)
            or not value
            or any(key in RowTable.__struct_encode_fields__ for key in value)
        ):
            return False
        for key in value:
            self._source.wrong_key((*path, key), f'a name with a dot must be quoted: "{name}.{key}"')
        return True

    def _check_name(self, name: str, format: Format) -> None:
        problem = None
        if not name.strip() or name != name.strip() or not name.isprintable():
            problem = "the name of a message has visible characters, with no blanks around them"
        elif len(name) > MAX_NAME:
            problem = f"the name of a message has at most {MAX_NAME} characters"
        elif name == NAMELESS and (not format.name or format.kind in ("xml", "lines")):
            problem = f"in {format.kind} with this framing, each message has a name"
        elif format.kind in ("delimited", "pairs") and format.name == "first" and format.delimiter in name:
            problem = f'{name} has the delimiter "{format.delimiter}" in it'
        if problem is not None:
            self._source.wrong_key(("messages", name), problem)

    def _message(
        self,
        path: Path,
        name: str,
        row: Any,
        head: Document,
        format: Format,
        framing: Framing,
    ) -> tuple[MessageSpec | None, int]:
        """Return the message of a row, and the number of its types."""
        fields = framing.fields
        table = RowTable(row="")
        sizes = row.get("sizes") if isinstance(row, dict) else None
        if isinstance(row, dict):
            table = self._source.table(path, row, RowTable) or table
            path, row = (*path, "is"), table.row
        if not isinstance(row, str):
            self._source.wrong(path, 'a row is a text, such as "s*: name=player"')
            return None, 0
        if not row and table.row == "" and isinstance(path[-1], str) and path[-1] == "is":
            return None, 0
        parser = self._types.parser(row, table.descriptions)
        read = parser.row()
        for mistake in parser.mistakes:
            self._source.wrong(path, mistake.message, mistake.start, mistake.end)
        if read is None:
            return None, parser.parts
        format = self._formats.get(read.direction, format)
        self._check_order(path, name, row, read.fields, format)
        takes_all = [_takes_all(field.type, format) for field in read.fields]
        for field, problem in problems_of(read.fields, format, framing, takes_all):
            self._wrong_field(path, row, field, problem)
        for field in read.fields:
            if separator := same_separators(field.type, format):
                text = (
                    f'"{separator}" is between the items and within them: choose another, as in [{{x y,}};]'
                )
                self._source.remark_value(path, text, *notation.place_of_field(row, field.name))
            if any(field.name == other.name for other in fields):
                self._wrong_field(path, row, field, f"the header has a field {field.name}, too")
        lines = self._packets.check(
            path, name, read.direction, read.fields, table.end, partial(self._wrong_field, path, row)
        )
        described = path[:-1] if isinstance(path[-1], str) and path[-1] == "is" else path
        known = {field.name for field in (*fields, *read.fields)}
        outer = tuple(field for field in format.outer if field.name not in known)
        known |= {field.name for field in outer}
        self._source.check_braces((*described, "summary"), table.summary, known, "field")
        for field_name in table.descriptions:
            if field_name not in known:
                problem = f"no field {field_name}{near(field_name, known)}"
                self._source.wrong_key((*described, "descriptions", field_name), problem)
        answers = () if read.answers is None else self._answers(path, row, read.answers)
        message = MessageSpec(
            name=name,
            direction=read.direction,
            fields=(*fields, *read.fields, *outer),
            code=head.codes.get(name),
            answers=answers,
            broadcast=read.broadcast,
            heartbeat=read.heartbeat,
            description=table.about,
            summary=table.summary or None,
            clause=self._source.clause((*described, "clause"), table.clause),
            dialect=table.dialect or None,
            end=table.end,
            repeats=table.repeats,
            form=self._form(described, table, read.fields, format),
            beside=tuple(table.beside),
            sizes=self._sizes((*described, "sizes"), sizes, read.fields, format),
        )
        return message, parser.parts + lines

    def _form(self, path: Path, table: RowTable, fields: Sequence[FieldSpec], format: Format) -> Form:
        """Return the form of the value of a key that is the message's name; it is an object by default."""
        known = {field.name: field for field in fields}
        for number, name in enumerate(table.beside):
            if name not in known:
                self._source.wrong((*path, "beside", number), f"no field {name}{near(name, known)}")
        inner = [field for name, field in known.items() if name not in table.beside]
        if format.kind != "json" or format.name != "*":
            for key in ("form", "beside"):
                if getattr(table, key):
                    self._source.wrong_key((*path, key), f'{key} belongs to format = json with name = "*"')
        elif table.form == "value" and len(inner) != 1:
            self._source.wrong((*path, "form"), f"a value is one field, not {len(inner)}")
        elif table.form is None and [*known] == ["value"] and not isinstance(inner[0].type, ObjectType):
            return "value"
        return table.form or "object"

    def _sizes(
        self, path: Path, written: Any, fields: Sequence[FieldSpec], format: Format
    ) -> SizeRule | None:
        if written is not None and format.kind != "json":
            self._source.wrong_key(path, "sizes belongs to format = json")
        return size_rule(self._source, path, written, fields)

    def _check_order(
        self, path: Path, name: str, row: str, fields: Sequence[FieldSpec], format: Format
    ) -> None:
        """Report fields that cannot be told apart where only their order says which is which."""
        for field in fields:
            only_json = {BagType: "bag", EitherType: "or", MapType: "an object with any keys"}
            of = next((each for each in _types_in(field.type) if type(each) in only_json), None)
            if of is not None and format.kind != "json":
                self._wrong_field(path, row, field, f"{only_json[type(of)]} belongs to format = json")
        for field in fields if format.kind in ("json", "xml", "struct") else ():
            is_strict_xml = format.kind == "xml" and format.is_strict
            has_counts = format.kind == "json" or is_strict_xml
            words = [
                word for each in _types_in(field.type) if isinstance(each, ChoiceType) for word in each.words
            ]
            if format.kind == "json" and words:
                self._wrong_field(path, row, field, "other words for values belong to text that is no json")
            elif format.kind == "struct" and not all(map(notation.INTEGER.fullmatch, words)):
                self._wrong_field(path, row, field, "words of a binary message have numbers: 0=red|1=blue")
            if any(
                each.nulls or (_has_limits(each, format) and not has_counts) for each in _lists_in(field.type)
            ):
                what = "? for an item" if has_counts else "a number of items, or ?,"
                problem = f"{what} belongs to text that is no {format.kind}"
                self._wrong_field(path, row, field, problem)
            if format.kind == "xml" and not format.is_strict and _has_attributes(field):
                self._wrong_field(path, row, field, "@ belongs to strict = true")
            if is_strict_xml and any(isinstance(each.item, ListType) for each in _lists_in(field.type)):
                self._wrong_field(
                    path, row, field, "elements do not show to which of several lists they belong"
                )
        if format.kind == "xml" and format.is_strict and not _has_text_or_elements(name, fields):
            self._source.wrong(path, "an element has a text or elements in it, not both")
        if format.kind not in ("words", "delimited", "struct"):
            return
        for field, following in itertools.pairwise(fields):
            if _takes_all(field.type, format):
                problem = f"{field.name} takes all that remains: it must be the last field"
            elif format.kind == "struct" and field.optional and not following.optional:
                problem = f"{field.name} may be absent: so must be {following.name} after it"
            else:
                continue
            self._wrong_field(path, row, field, problem)

    def _wrong_field(self, path: Path, row: str, field: FieldSpec, problem: str) -> None:
        self._source.wrong(path, problem, *notation.place_of_field(row, field.name))

    def _check_codes(self, head: Document, name_type: str, messages: Sequence[MessageSpec]) -> None:
        names = {message.name for message in messages}
        limits = integer_limits(name_type) if name_type else (0, 2**63 - 1)
        first: dict[tuple[Direction, int], str] = {}
        for name, code in head.codes.items():
            if name not in names and name not in self._document.get("messages", ()):
                self._source.wrong_key(("codes", name), f"no message {name}{near(name, names)}")
            elif not limits[0] <= code <= limits[1]:
                self._source.wrong(("codes", name), f"a code is from {limits[0]} to {limits[1]}")
            for direction in dict.fromkeys(message.direction for message in messages if message.name == name):
                other = first.setdefault((direction, code), name)
                if other != name:
                    self._source.wrong(("codes", name), f"{other} has the code {code}, too")
        if name_type:
            for name in names - {*head.codes} - {NAMELESS}:
                self._source.wrong_key(("messages", name), f"{name} has no number in [codes]")

    def _answers(self, path: Path, row: str, start: int) -> tuple[str, ...]:
        """Return the messages after `<`; a name may have several words, also in quotes."""
        known = self._document["messages"]
        words = [
            (start + found.start(found.lastindex or 0), start + found.end(found.lastindex or 0))
            for found in _ANSWERED.finditer(row[start:])
        ]
        longest = max((name.count(" ") for name in known), default=0) + 1
        answers: dict[str, None] = {}
        at = 0
        while at < len(words):
            for count in range(min(longest, len(words) - at, MAX_NAME), 0, -1):
                begin, end = words[at][0], words[at + count - 1][1]
                if row[begin:end] in known:
                    answers[row[begin:end]] = None
                    break
            else:
                word = row[begin:end]
                self._source.wrong(path, f"no message {word}{near(word, known)}", begin, end)
            at += count
        return tuple(answers)

    def _rooms(self, messages: Collection[MessageSpec]) -> RoomSpec | None:
        value = self._document.get("game")
        if value is None:
            return None
        path: Path = ("game",)
        if isinstance(value, str):
            table: RoomTable | None = RoomTable(id=value)
        else:
            path, table = ("game", "id"), self._source.table(path, value, RoomTable)
        if table is None or (isinstance(value, dict) and not table.id):
            return None
        names = Names(types_of(messages), (WHO,), ())
        check_expression(self._source, path, table.id, names)
        if table.of:
            check_expression(self._source, ("game", "of"), table.of, names)
        known = {*self._document.get("messages", ())}
        of_server = types_of([message for message in messages if message.direction == "s2c"])
        if not table.joins and table.id in types_of(messages) and table.id not in of_server:
            problem = f"no message of the server has {table.id}: joins names those with which a client enters"
            self._source.remark(path, problem)
        return RoomSpec(
            id=table.id,
            joins=self._source.names(("game", "joins"), table.joins, known),
            leaves=self._source.names(("game", "leaves"), table.leaves, known),
            of=table.of or None,
        )

    def _is_for_packages(self, section: str, problem: str) -> bool:
        """Return True if there is a section; report one that only the file of a package may have."""
        if section in self._document and self._package is None:
            self._source.wrong_key((section,), f"only the file of an installed package may {problem}")
        return section in self._document

    def _queries(self) -> Iterator[Query]:
        if self._is_for_packages("queries", "have queries: SQL of others is not passed on"):
            written = self._document["queries"]
            for name, value in written.items() if isinstance(written, dict) else ():
                table = self._source.table(("queries", name), value, QueryTable)
                if table is not None:
                    yield Query(name, table.title, table.about, table.sql)

    def _python(self) -> PythonTable:
        """Return the parts in Python."""
        has_parts = self._is_for_packages("python", "name Python: nothing in this file is executed")
        table = self._source.table(("python",), self._document["python"], PythonTable) if has_parts else None
        if table is None or self._parts is None:
            return PythonTable()
        package, installed = self._parts.package, self._parts.installed
        for key in ("codec", "table", "view"):
            name = getattr(table, key)
            if name and not is_part_of(name, package):
                own = package.rpartition(".")[2]
                self._source.wrong(("python", key), f"{key} must be in the package: {own}.MODULE:NAME")
            elif installed is not None and name != installed[key]:
                problem = f"{key} must be that of the installed protocol: {installed[key]}"
                self._source.wrong(("python", key), problem)
        return table

    def _references(self, messages: Collection[MessageSpec]) -> Iterator[ReferenceSpec]:
        written = self._document.get("answers", [])
        for number, value in enumerate(written if isinstance(written, list) else [written]):
            path: Path = ("answers", number) if isinstance(written, list) else ("answers",)
            table = self._source.table(path, value, AnswersTable)
            if table is not None:
                yield self._reference(table, path, messages)

    def _reference(self, table: AnswersTable, path: Path, messages: Collection[MessageSpec]) -> ReferenceSpec:
        answered = {name for message in messages for name in message.answers}
        by = (table.by,) if isinstance(table.by, str) else tuple(table.by)
        of = ((table.of,) if isinstance(table.of, str) else tuple(table.of)) or by
        sides = {
            "by": (by, "answer", [message for message in messages if message.answers]),
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
        if not by or len(by) != len(of):
            self._source.wrong((*path, "of" if table.of else "by"), "by and of have as many fields each")
        return ReferenceSpec(by, of)

    def _identity(self, messages: Collection[MessageSpec], ports: Collection[int]) -> IdentitySpec | None:
        if "identity" not in self._document:
            return None
        table = self._source.table(("identity",), self._document["identity"], IdentityTable)
        if table is None:
            return None
        known = {*self._document.get("messages", ())}
        found = {
            key: self._source.names(("identity", key), getattr(table, key), known)
            for key in ("login", "introduces", "given", "named", "left")
        }
        senders: Mapping[str, Direction] = {"login": "c2s", "introduces": "c2s", "given": "s2c"}
        for key, direction in senders.items():
            names = getattr(table, key)
            for number, name in enumerate(found[key]):
                if all(message.direction != direction for message in messages if message.name == name):
                    path: Path = ("identity", key) if isinstance(names, str) else ("identity", key, number)
                    self._source.wrong(path, f"{sender_of(direction)} does not send {name}")
        fields = {field.name for message in messages for field in message.fields}
        for key in ("id", "name"):
            field = getattr(table, key)
            if field and field not in fields:
                self._source.wrong(("identity", key), f"no message has a field {field}{near(field, fields)}")
        if table.ports and len({*table.ports}) != len(ports):
            problem = f"a player for each port of the server is needed: {len(ports)} different names"
            self._source.wrong(("identity", "ports"), problem)
        return IdentitySpec(
            login=(*found["login"], *found["introduces"]),
            given=found["given"],
            named=found["named"],
            left=found["left"],
            id=table.id or None,
            name=table.name or None,
            same_player=table.same_player,
            ports=tuple(table.ports),
        )


def _shape(row: MessageSpec) -> tuple[Any, ...]:
    """Return what distinguishes a row from others of its name."""
    return row.direction, row.fields, row.form, row.beside


def _words_of(message: MessageSpec) -> Iterator[Any]:
    """Yield the words of choices in the fields of a message."""
    for kind in (kind for field in message.fields for kind in _types_in(field.type)):
        if isinstance(kind, ChoiceType):
            yield from kind.words or kind.values


def _types_in(kind: FieldTypeSpec) -> Iterator[FieldTypeSpec]:
    """Yield a type and the types in it."""
    yield kind
    for part in parts_of(kind):
        yield from _types_in(part)


def _name_size(framing: Framing) -> int:
    """Return the number of bytes of names in headers, 0 if they have none, or numbers."""
    kinds = (part.field.type for part in framing.header if part.field and part.field.name == NAME)
    kind = next(kinds, None)
    return kind.size if isinstance(kind, BinaryType) and isinstance(kind.size, int) else 0


def _name_type(framing: Framing, format: Format) -> str:
    """Return the type of the numbers that stand for names; empty if names need none."""
    if not framing.has_name:
        return format.name if format.kind == "struct" and format.name in notation.INTEGERS else ""
    kind = next(part.field.type for part in framing.header if part.field and part.field.name == NAME)
    return kind.kind if isinstance(kind, BinaryType) and kind.kind in notation.INTEGERS else ""


def _lists_in(kind: FieldTypeSpec) -> Iterator[ListType]:
    return (each for each in _types_in(kind) if isinstance(each, ListType))


def _has_attributes(field: FieldSpec) -> bool:
    """Return True if a field, or one inside it, is an attribute."""
    kind = field.type
    while isinstance(kind, ListType):
        kind = kind.item
    return field.is_attribute or any(
        map(_has_attributes, kind.fields if isinstance(kind, ObjectType) else ())
    )


def _has_text_or_elements(name: str, fields: Sequence[FieldSpec]) -> bool:
    """Return True if an element of a name, and each in it, has a text or elements, but not both."""
    inside = [field for field in fields if not field.is_attribute]
    for field in inside:
        kind = field.type.item if isinstance(field.type, ListType) else field.type
        if field.name == name:
            if len(inside) > 1 or isinstance(kind, ObjectType):
                return False
        elif isinstance(kind, ObjectType) and not _has_text_or_elements(field.name, kind.fields):
            return False
    return True


def _has_limits(kind: ListType, format: Format) -> bool:
    """Return True if the number of items is limited, and not the same in all binary messages."""
    return bool(kind.least or kind.most) and not (format.kind == "struct" and kind.least == kind.most)


def _takes_all(kind: FieldTypeSpec, format: Format) -> bool:
    """Return whether a value extends to the end of the message."""
    match kind:
        case TextType(_, rest):
            return rest
        case ListType():
            if format.kind == "struct":
                return not (kind.count or kind.most)
            return kind.most is None and takes_tokens(kind, format)
        case BinaryType(("text" | "bytes"), None):
            return format.kind == "struct"
        case AnyType():
            return format.kind == "struct"
        case IdentifierType(_, of):
            return _takes_all(of, format)
    return False
