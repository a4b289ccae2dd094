"""The reader of protocol files: from the text to a `Specification`, or to all of its mistakes."""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import msgspec

from kiebitz.dissectors import protocols
from kiebitz.dissectors.filters.fields import ALIASES, COLUMNS, STATE, TRANSPORTS
from kiebitz.dissectors.filters.syntax import WORDS
from kiebitz.dissectors.model import Direction
from kiebitz.dissectors.protocol_file import notation
from kiebitz.dissectors.protocol_file.document import Document, IdentityTable, RowTable
from kiebitz.dissectors.protocol_file.errors import Mistake, ProtocolFileError
from kiebitz.dissectors.protocol_file.game_sections import GameSections
from kiebitz.dissectors.protocol_file.notation import NamedTypes, Parser, near
from kiebitz.dissectors.protocol_file.source import Path, Source, listed
from kiebitz.dissectors.protocol_file.specification import (
    AnyType,
    FieldSpec,
    FieldTypeSpec,
    Format,
    Framing,
    IdentitySpec,
    MessageSpec,
    Specification,
)
from kiebitz.dissectors.protocol_file.positions import InvalidTomlError, Place, parse_toml

MAX_SIZE = 256 * 1024
"""Maximum length of a file in characters."""

MAX_MESSAGES = 1_000
"""Maximum number of rows."""

MAX_NAME = 100
"""Maximum length of a name."""

_RESERVED = {STATE, *WORDS, *TRANSPORTS, *(name.partition(".")[0] for name in (*COLUMNS, *ALIASES))}
"""Names that have another meaning in filters."""


class Reading(msgspec.Struct, frozen=True):
    """A valid protocol file; `remarks` are probably mistakes."""

    specification: Specification
    remarks: tuple[Mistake, ...]


def read_specification(text: str, name: str = "protocol file") -> Specification:
    """Return the content of a protocol file. Raises ProtocolFileError."""
    return read(text, name).specification


def read(text: str, name: str = "protocol file") -> Reading:
    """Return the content of a protocol file and remarks on it. Raises ProtocolFileError with all mistakes."""
    if len(text) > MAX_SIZE:
        problem = f"a protocol file has at most {MAX_SIZE // 1024} KB"
        raise ProtocolFileError(name, [Mistake(problem, Place(1, text[:MAX_NAME].partition("\n")[0], 0, 1))])
    normal = text.replace("\r\n", "\n")
    try:
        document = parse_toml(normal)
        source = Source(normal)
    except InvalidTomlError as error:
        place = error.place or Place(1, normal.partition("\n")[0], 0, 1)
        raise ProtocolFileError(name, [Mistake(str(error), place)]) from None
    except RecursionError:
        raise ProtocolFileError(name, [Mistake("nested too deeply", Place(1, "", 0, 1))]) from None
    specification = _Reader(source, document, text).specification()
    if source.mistakes:
        raise ProtocolFileError(name, source.mistakes)
    return Reading(specification, tuple(source.remarks))


def parse_type(text: str) -> FieldTypeSpec:
    """Return the type of this notation. Raises ValueError."""
    try:
        return Parser(text, NamedTypes()).whole_type()
    except notation.Mistake as mistake:
        raise ValueError(f"{text}: {mistake.message}") from None


def parse_fields(text: str) -> tuple[FieldSpec, ...]:
    """Return the fields of this notation. Raises ValueError."""
    parser = Parser(text, NamedTypes())
    fields = parser.fields("")
    if parser.mistakes:
        raise ValueError(f"{text}: {parser.mistakes[0].message}")
    return fields


class _Reader:
    """Reads a document once; mistakes are added to the source."""

    def __init__(self, source: Source, document: Mapping[str, Any], text: str) -> None:
        self._source = source
        self._document = document
        self._text = text
        self._has_numbers = False
        self._resolved: dict[str, FieldTypeSpec | None] = {}
        self._names: Collection[str] = ()

    def specification(self) -> Specification:
        head = self._source.table((), self._document, Document)
        assert head is not None, "a document is a table"
        if head.protocol:
            self._check_protocol(head.protocol)
        transport = head.transport or ("udp" if head.framing == "datagrams" else "tcp")
        self._has_numbers = head.format == "json"
        self._check_types(head.types)
        messages = self._messages(head)
        identity = self._identity(messages)
        game = GameSections(self._source, self._document, messages)
        return Specification(
            text=self._text,
            protocol=head.protocol,
            title=head.title or head.protocol,
            transport=transport,
            ports=tuple(head.port) if isinstance(head.port, list) else (head.port,),
            framing=self._framing(head),
            format=self._format(head),
            messages=messages,
            identity=identity,
            events=game.events(),
            rules=game.rules(),
            board=game.board(),
            extension=head.python or None,
        )

    def _check_protocol(self, protocol: str) -> None:
        if protocol in {module.name for module in pkgutil.iter_modules(protocols.__path__)}:
            self._source.wrong(
                ("protocol",), f"{protocol} is a protocol of Kiebitz itself: choose another name"
            )
        elif protocol in _RESERVED:
            self._source.wrong(
                ("protocol",), f"{protocol} has another meaning in filters: choose another name"
            )

    # Framing and format.

    def _framing(self, head: Document) -> Framing:
        is_udp = head.transport == "udp" or head.framing == "datagrams"
        kind = head.framing or ("datagrams" if is_udp else "lines")
        if kind == "datagrams" and head.transport == "tcp":
            self._source.wrong(("framing",), "there are no datagrams over TCP")
        if kind != "datagrams" and head.transport == "udp":
            self._source.wrong(("framing",), "over UDP, each datagram is a message: remove this")
        self._only_with(
            "framing", kind, {"end": ("delimiter", "block"), "prefix": ("length",), "inclusive": ("length",)}
        )
        if kind == "delimiter" and not head.end:
            self._source.wrong_key(("framing",), 'a delimiter needs end, such as end = "\\u0000"')
        end = head.end if kind in ("delimiter", "block") else "\n"
        return Framing(kind=kind, end=end, prefix=head.prefix, order=head.order, inclusive=head.inclusive)

    def _format(self, head: Document) -> Format:
        kind = head.format or "words"
        self._only_with(
            "format",
            kind,
            {
                "quote": ("words", "delimited"),
                "delimiter": ("delimited", "pairs"),
                "assign": ("pairs",),
                "name": ("pairs", "json", "xml", "struct"),
                "fields": ("json",),
            },
        )
        if kind == "json" and not head.name:
            self._source.wrong_key(("format",), 'json needs name, the key of the name, such as name = "type"')
        if kind == "delimited" and not head.delimiter:
            self._source.wrong_key(("format",), 'delimited needs delimiter, such as delimiter = ";"')
        if kind == "struct" and head.name and head.name not in notation.INTEGERS:
            self._source.wrong(("name",), f"in struct, name must be {listed(notation.INTEGERS)}")
        if kind == "xml" and head.name not in ("", "tag") and not head.name.startswith("@"):
            self._source.wrong(("name",), 'in XML, name must be "tag" or "@attribute"')
        is_text = head.framing not in ("datagrams", "delimiter", "length") and head.transport != "udp"
        return Format(
            kind=kind,
            name=head.name or {"struct": "u8", "xml": "tag"}.get(kind, "first"),
            fields=head.fields,
            delimiter=head.delimiter or " ",
            assign=head.assign,
            quote=head.quote,
            line_end=head.line_end if is_text or "line_end" in self._document else "",
            order=head.order,
            encoding=head.encoding,
        )

    def _only_with(self, what: str, kind: str, kinds: Mapping[str, Collection[str]]) -> None:
        """Report keys that mean nothing with the chosen framing or format."""
        for key, of in kinds.items():
            if key in self._document and kind not in of:
                self._source.wrong_key((key,), f"{key} belongs to {what} = {listed(of)}, not to {kind}")

    # Types and messages.

    def _check_types(self, types: Mapping[str, str]) -> None:
        self._names = types
        for name in types:
            if name in notation.BUILT_IN:
                self._source.wrong_key(("types", name), f"{name} is a type already: choose another name")
            elif not re.fullmatch(r"[^\W\d]\w*", name):
                self._source.wrong_key(
                    ("types", name), f"{name} is no name of a type: use letters, digits and _"
                )
            self._type(name)

    def _type(self, name: str) -> FieldTypeSpec | None:
        """Return a named type, which is read on first use. None while it is being read."""
        if name not in self._resolved:
            self._resolved[name] = None
            text = self._document["types"][name]
            parser = Parser(text, NamedTypes(self._names, self._type), self._has_numbers)
            try:
                self._resolved[name] = parser.whole_type()
            except notation.Mistake as mistake:
                self._source.wrong(("types", name), mistake.message, mistake.start, mistake.end)
                self._resolved[name] = AnyType()
        return self._resolved[name]

    def _messages(self, head: Document) -> tuple[MessageSpec, ...]:
        messages: list[MessageSpec] = []
        written = self._document.get("messages")
        if not isinstance(written, dict):
            return ()
        for name, value in written.items():
            rows = value if isinstance(value, list) else [value]
            for number, row in enumerate(rows):
                path: Path = ("messages", name, number) if isinstance(value, list) else ("messages", name)
                message = self._message(path, name, row, head)
                if message is not None:
                    messages.append(message)
        return tuple(messages)

    def _message(self, path: Path, name: str, row: Any, head: Document) -> MessageSpec | None:
        table = RowTable(row="")
        if isinstance(row, dict):
            table = self._source.table(path, row, RowTable) or table
            path, row = (*path, "is"), table.row
        if not isinstance(row, str):
            self._source.wrong(path, 'a row is a text, such as "s*: name=player"')
            return None
        parser = Parser(row, NamedTypes(self._names, self._type), self._has_numbers)
        read = parser.row()
        for mistake in parser.mistakes:
            self._source.wrong(path, mistake.message, mistake.start, mistake.end)
        if read is None:
            return None
        answers = () if read.answers is None else tuple(self._answers(path, row, read.answers))
        return MessageSpec(
            name=name,
            direction=read.direction,
            fields=read.fields,
            code=head.codes.get(name),
            answers=answers,
            broadcast=read.broadcast,
            heartbeat=read.heartbeat,
            description=table.about,
            clause=table.clause or None,
        )

    def _answers(self, path: Path, row: str, start: int) -> Iterable[str]:
        """Yield the messages after `<`; a name may have several words."""
        known = self._document["messages"]
        words = [(found.start(), found.end()) for found in re.finditer(r"\S+", row[start:])]
        longest = max((name.count(" ") for name in known), default=0) + 1
        while words:
            for count in range(min(longest, len(words)), 0, -1):
                begin, end = start + words[0][0], start + words[count - 1][1]
                if row[begin:end] in known:
                    yield row[begin:end]
                    break
            else:
                word = row[begin:end]
                self._source.wrong(path, f"no message {word}{near(word, known)}", begin, end)
            del words[:count]

    def _identity(self, messages: Collection[MessageSpec]) -> IdentitySpec | None:
        if "identity" not in self._document:
            return None
        table = self._source.table(("identity",), self._document["identity"], IdentityTable)
        if table is None:
            return None
        known = {message.name for message in messages}
        found = {
            key: self._source.names(("identity", key), getattr(table, key), known)
            for key in ("login", "introduces", "given", "named", "left")
        }
        fields = {field.name for message in messages for field in message.fields}
        for key in ("id", "name"):
            field = getattr(table, key)
            if field and field not in fields:
                self._source.wrong(("identity", key), f"no message has a field {field}{near(field, fields)}")
        return IdentitySpec(
            login=(*found["login"], *found["introduces"]),
            given=found["given"],
            named=found["named"],
            left=found["left"],
            id=table.id or None,
            name=table.name or None,
        )
