"""The section `[messages]` of a protocol file: rows in the notation, with the checks of each."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kiebitz.dissectors.grammar.grammar import NAMELESS
from kiebitz.dissectors.grammar.json.forms import Form, SizeRule
from kiebitz.dissectors.model import Direction
from kiebitz.dissectors.protocol_file.reading import notation
from kiebitz.dissectors.protocol_file.reading.document import Document, RowTable
from kiebitz.dissectors.protocol_file.reading.notation import near
from kiebitz.dissectors.protocol_file.reading.row_checks import (
    PacketRows,
    has_text_or_elements,
    problems_of,
    same_separators,
    types_in,
)
from kiebitz.dissectors.protocol_file.reading.source import Path, Source
from kiebitz.dissectors.protocol_file.reading.type_section import TypeSection, size_rule
from kiebitz.dissectors.protocol_file.specification import (
    NAME,
    BinaryType,
    ChoiceType,
    FieldSpec,
    FieldTypeSpec,
    Format,
    Framing,
    MessageSpec,
    ObjectType,
)
from kiebitz.dissectors.protocol_file.text_types import integer_limits

MAX_MESSAGES = 1_000
"""Maximum number of rows."""

MAX_PARTS = 20_000
"""Maximum number of types in all rows."""

MAX_NAME = 100
"""Maximum length of a name."""

_ANSWERED = re.compile(r"'([^']+)'|\"([^\"]+)\"|\S+")


class MessageSection:
    """Reads the messages; mistakes are added to the source."""

    def __init__(
        self,
        source: Source,
        head: Document,
        rows: Mapping[str, Any],
        types: TypeSection,
        framing: Framing,
        format: Format,
        formats: Mapping[Direction, Format],
    ) -> None:
        self._source = source
        self._head = head
        self._rows = rows
        self._types = types
        self._framing = framing
        self._format = format
        self._formats = formats
        self._packets = PacketRows(source, format, framing.kind)
        self._parts = 0
        """Number of types so far."""

    def messages(self) -> tuple[MessageSpec, ...]:
        """Return the messages, whose first fields are those of the header."""
        messages: list[MessageSpec] = []
        count = 0
        for name, value in self._rows.items():
            if self._is_unquoted(name, value):
                continue
            self._check_name(name)
            rows = value if isinstance(value, list) else [value]
            count += len(rows)
            variants: list[MessageSpec] = []
            for number, row in enumerate(rows):
                path: Path = ("messages", name, number)
                message = self._message(path, name, row)
                if message is not None:
                    self._check_variant(path, message, variants)
                    variants.append(message)
            messages += variants
            if count > MAX_MESSAGES or self._parts > MAX_PARTS:
                problem = f"more than {MAX_MESSAGES:,} rows, or {MAX_PARTS:,} fields in them"
                self._source.wrong_key(("messages", name), problem)
                break
        self._check_codes(messages)
        self._check_spelled(messages)
        return tuple(messages)

    def _is_unquoted(self, name: str, value: Any) -> bool:
        """Report a name with a dot that TOML takes for a table in a table."""
        keys = value if isinstance(value, dict) else {}
        if not keys or any(key in RowTable.__struct_encode_fields__ for key in keys):
            return False
        for key in keys:
            problem = f'a name with a dot must be quoted: "{name}.{key}"'
            self._source.wrong_key(("messages", name, key), problem)
        return True

    def _check_name(self, name: str) -> None:
        of = self._format
        problem = None
        if not name.strip() or name != name.strip() or not name.isprintable():
            problem = "the name of a message has visible characters, with no blanks around them"
        elif len(name) > MAX_NAME:
            problem = f"the name of a message has at most {MAX_NAME} characters"
        elif name == NAMELESS and (not of.name or of.kind in ("xml", "lines")):
            problem = f"in {of.kind} with this framing, each message has a name"
        elif of.kind in ("delimited", "pairs") and of.name == "first" and of.delimiter in name:
            problem = f'{name} has the delimiter "{of.delimiter}" in it'
        if problem is not None:
            self._source.wrong_key(("messages", name), problem)

    def _check_variant(self, path: Path, message: MessageSpec, others: Sequence[MessageSpec]) -> None:
        """Report a row that cannot be told apart from others of its name."""
        name = message.name
        if any(_shape(message) == _shape(each) for each in others):
            self._source.wrong(path, f"two rows of {name} are the same")
        elif self._framing.kind == "fields" and name == NAMELESS:
            self._source.wrong(path, "nothing shows where a message without a name ends")
        elif self._framing.kind == "fields" and any(message.direction == each.direction for each in others):
            self._source.wrong(path, f"nothing shows which row of {name} a message has")

    def _message(self, path: Path, name: str, written: Any) -> MessageSpec | None:
        """Return the message of a row."""
        table = RowTable(row=written if isinstance(written, str) else "")
        if isinstance(written, dict):
            table = self._source.table(path, written, RowTable) or table
            if not table.row:
                return None
        elif not isinstance(written, str):
            self._source.wrong(path, 'a row is a text, such as "s*: name=player"')
            return None
        parser = self._types.parser(table.row, table.descriptions)
        read = parser.row()
        self._parts += parser.parts
        self._source.wrong_parts((*path, "is"), parser.mistakes)
        if read is None:
            return None
        of = self._formats.get(read.direction, self._format)
        self._parts += self._check_fields(path, name, table, read, of)
        header = self._framing.fields
        known = {field.name for field in (*header, *read.fields)}
        outer = tuple(field for field in of.outer if field.name not in known)
        known |= {field.name for field in outer}
        self._source.check_braces((*path, "summary"), table.summary, known, "field")
        for field_name in table.descriptions:
            if field_name not in known:
                problem = f"no field {field_name}{near(field_name, known)}"
                self._source.wrong_key((*path, "descriptions", field_name), problem)
        return MessageSpec(
            name=name,
            direction=read.direction,
            fields=(*header, *read.fields, *outer),
            code=self._head.codes.get(name),
            answers=() if read.answers is None else self._answers((*path, "is"), table.row, read.answers),
            broadcast=read.broadcast,
            heartbeat=read.heartbeat,
            description=table.about,
            summary=table.summary or None,
            clause=self._source.clause((*path, "clause"), table.clause) or None,
            dialect=table.dialect or None,
            end=table.end,
            repeats=table.repeats,
            form=self._form(path, table, read.fields, of),
            beside=table.beside,
            sizes=self._sizes((*path, "sizes"), table, read.fields, of),
        )

    def _check_fields(self, path: Path, name: str, table: RowTable, row: notation.Row, of: Format) -> int:
        """Report mistakes in the fields of a row; return the least number of its lines in a packet."""

        def report(field: FieldSpec, problem: str) -> None:
            place = notation.place_of_field(table.row, field.name)
            self._source.wrong((*path, "is"), problem, *place)

        for field, problem in problems_of(row.fields, of, self._framing):
            report(field, problem)
        if of.kind == "xml" and of.is_strict and not has_text_or_elements(name, row.fields):
            self._source.wrong((*path, "is"), "an element has a text or elements in it, not both")
        for field in row.fields:
            if separator := same_separators(field.type, of):
                problem = (
                    f'"{separator}" is between the items and within them: choose another, as in [{{x y,}};]'
                )
                place = notation.place_of_field(table.row, field.name)
                self._source.remark_value((*path, "is"), problem, *place)
            if any(field.name == other.name for other in self._framing.fields):
                report(field, f"the header has a field {field.name}, too")
        return self._packets.check(path, name, row.direction, row.fields, table.end, report)

    def _answers(self, path: Path, row: str, start: int) -> tuple[str, ...]:
        """Return the messages after `<`; a name may have several words, also in quotes."""
        known = self._rows
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

    def _form(self, path: Path, table: RowTable, fields: Sequence[FieldSpec], of: Format) -> Form:
        """Return the form of the value of a key that is the message's name; it is an object by default."""
        known = {field.name: field for field in fields}
        for number, name in enumerate(table.beside):
            if name not in known:
                self._source.wrong((*path, "beside", number), f"no field {name}{near(name, known)}")
        inner = [field for name, field in known.items() if name not in table.beside]
        if of.kind != "json" or of.name != "*":
            for key in ("form", "beside"):
                if getattr(table, key):
                    self._source.wrong_key((*path, key), f'{key} belongs to format = json with name = "*"')
        elif table.form == "value" and len(inner) != 1:
            self._source.wrong((*path, "form"), f"a value is one field, not {len(inner)}")
        elif table.form is None and [*known] == ["value"] and not isinstance(inner[0].type, ObjectType):
            return "value"
        return table.form or "object"

    def _sizes(self, path: Path, table: RowTable, fields: Sequence[FieldSpec], of: Format) -> SizeRule | None:
        if table.sizes is not None and of.kind != "json":
            self._source.wrong_key(path, "sizes belongs to format = json")
        return size_rule(self._source, path, table.sizes, fields)

    def _check_codes(self, messages: Sequence[MessageSpec]) -> None:
        """Report numbers and lengths of names that do not fit what stands for a name on the wire."""
        codes = self._head.codes
        names = {message.name for message in messages}
        kind = self._name_type()
        is_number = kind.kind in notation.INTEGERS
        limits = integer_limits(kind.kind) if is_number else (0, 2**63 - 1)
        first: dict[tuple[Direction, int], str] = {}
        for name, code in codes.items():
            if name not in names and name not in self._rows:
                self._source.wrong_key(("codes", name), f"no message {name}{near(name, names)}")
            elif not limits[0] <= code <= limits[1]:
                self._source.wrong(("codes", name), f"a code is from {limits[0]} to {limits[1]}")
            for direction in dict.fromkeys(message.direction for message in messages if message.name == name):
                other = first.setdefault((direction, code), name)
                if other != name:
                    self._source.wrong(("codes", name), f"{other} has the code {code}, too")
        for name in names:
            if is_number and name not in codes and name != NAMELESS:
                self._source.wrong_key(("messages", name), f"{name} has no number in [codes]")
            sent = str(codes.get(name, name))
            if isinstance(kind.size, int) and len(sent.encode()) > kind.size:
                self._source.wrong_key(("messages", name), f"{sent} has more than {kind.size} bytes")

    def _name_type(self) -> BinaryType:
        """Return the binary type of what stands for a name; a text without a size if there is none."""
        kinds: list[FieldTypeSpec | None] = [
            part.field.type
            for part in self._framing.header
            if part.field is not None and part.field.name == NAME
        ]
        if not kinds and self._format.kind == "struct":
            kinds = [notation.BINARY.get(self._format.name)]
        return next((kind for kind in kinds if isinstance(kind, BinaryType)), BinaryType("text"))

    def _check_spelled(self, messages: Sequence[MessageSpec]) -> None:
        """Report other spellings of words that no field has; in JSON, they may be those of keys."""
        words = {str(word) for message in messages for word in _words_of(message)}
        for word in self._head.spelled if self._format.kind != "json" else ():
            if word not in words:
                self._source.wrong_key(("spelled", word), f"no field has the word {word}{near(word, words)}")


def _shape(row: MessageSpec) -> tuple[Any, ...]:
    """Return what distinguishes a row from others of its name."""
    return row.direction, row.fields, row.form, row.beside


def _words_of(message: MessageSpec) -> Iterator[Any]:
    """Yield the words of choices in the fields of a message."""
    for kind in (kind for field in message.fields for kind in types_in(field.type)):
        if isinstance(kind, ChoiceType):
            yield from kind.words or kind.values
