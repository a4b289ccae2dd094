"""The head of a protocol file: framing and format."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from typing import Any

import msgspec

from kiebitz.dissectors.grammar.lenient import Lenient
from kiebitz.dissectors.model import Direction
from kiebitz.dissectors.protocol_file.header import is_text_part, with_next
from kiebitz.dissectors.protocol_file.reading import notation
from kiebitz.dissectors.protocol_file.reading.document import (
    Document,
)
from kiebitz.dissectors.protocol_file.reading.notation import Parser, place_of_field
from kiebitz.dissectors.protocol_file.reading.source import Path, Source, listed
from kiebitz.dissectors.protocol_file.specification import (
    LENGTH,
    NAME,
    BeforePart,
    BinaryType,
    BooleanType,
    FieldSpec,
    FieldTypeSpec,
    Format,
    FormatKind,
    Framing,
    FramingKind,
    HeaderPart,
    IdentifierType,
    NumberType,
    TextType,
    value_type,
)

_MAX_MISPRINTS = 20
_EMPTY_LINE = "\r\n\r\n"
_LENIENT_IN = {
    "surplus": ("words", "delimited", "lines"),
    "control": ("words", "delimited", "lines"),
    "blanks": ("words",),
    "misprints": ("xml",),
}
"""The formats of the keys of `[lenient]` that not all have."""

_GROUP = re.compile(r"\[([^\w\s\[\]]*)([^\W\d]\w*=[\w.:|]*\w)([^\w\s\[\]]*)\]\s*")
"""A field before the name, with the characters around it."""

_WITH_HEADER = ("length", "size", "fields", "send", "datagrams", "lines", "delimiter", "block", "websocket")
_DEFAULTS = Document(protocol="", messages={})
_SAME_IN_FORMAT = ("fields", "assign", "quote", "order", "encoding", "spelled", "letters", "mark", "end")

_FORMAT_KEYS: Mapping[str, Collection[str]] = {
    "quote": ("words", "delimited", "pairs"),
    "pad": ("words",),
    "lenient": ("words", "delimited", "lines", "xml"),
    "envelope": ("xml",),
    "strict": ("words", "delimited", "lines", "json", "xml"),
    "mark": ("lines",),
    "delimiter": ("delimited", "pairs"),
    "assign": ("pairs",),
    "name": ("pairs", "json", "xml", "struct"),
    "fields": ("json",),
    "spelled": ("words", "delimited", "lines", "pairs", "json", "xml"),
    "letters": ("json",),
}
"""The formats of the keys that not all have."""


class HeadSection:
    """Reads framing and format; mistakes are added to the source."""

    def __init__(self, source: Source, document: Mapping[str, Any], head: Document) -> None:
        self._source = source
        self._document = document
        self._head = head

    def kind(self) -> FormatKind:
        """Return the format; JSON and XML need not be named twice, and WebSocket usually carries JSON."""
        head = self._head
        if head.format is not None:
            return head.format
        if head.framing == "websocket":
            return "json"
        return head.framing if head.framing in ("json", "xml") else "words"

    def kind_of_types(self) -> FormatKind:
        """Return the format in which types are read: with JSON in one direction, choices may be numbers."""
        formats = self._head.formats
        return "json" if formats is not None and "json" in (formats.c, formats.s) else self.kind()

    def framing(self, parser_of: Callable[[str], Parser]) -> Framing:
        """Return the framing; `parser_of` returns the parser of its header."""
        head = self._head
        is_udp = head.transport == "udp" or head.framing == "datagrams"
        kind = head.framing or ("datagrams" if is_udp else "lines")
        if kind == "datagrams" and head.transport == "tcp":
            self._source.wrong(("framing",), "there are no datagrams over TCP")
        if kind != "datagrams" and head.transport == "udp":
            self._source.wrong(("framing",), "over UDP, each datagram is a message: remove this")
        if kind in ("lines", "block", "json", "xml") and self.kind() == "struct":
            key = "framing" if head.framing is not None else "format"
            self._source.remark((key,), 'binary messages may contain line ends: use framing = "length"')
        ends = ("delimiter", "block", "json", "xml")
        self._only_with(
            "framing",
            kind,
            {
                "end": (*ends, "lines") if self.kind() == "lines" else ends,
                "header": _WITH_HEADER,
                "size": ("size",),
                "prefix": ("length",),
                "inclusive": ("length",),
                "root": ("xml",),
            },
        )
        if kind == "xml" and head.end not in ("", _EMPTY_LINE):
            self._source.wrong(("end",), 'in XML, end is an empty line: end = "\\r\\n\\r\\n"')
        if kind == "json" and head.end not in ("", "\n"):
            self._source.wrong(("end",), 'in JSON, end is a line feed: end = "\\n"')
        if kind == "size" and not head.size:
            self._source.wrong_key(("framing",), "size needs size, the number of bytes of each message")
        for key in ("header", "before") if kind == "lines" == self.kind() else ():
            if getattr(head, key):
                self._source.wrong_key((key,), "what precedes the name of a packet of lines is its mark")
        if kind == "fields" and self.kind() != "struct":
            self._source.wrong(("framing",), 'only binary messages end with their fields: format = "struct"')
        if kind == "delimiter" and not head.end:
            self._source.wrong_key(("framing",), 'a delimiter needs end, such as end = "\\u0000"')
        end = head.end if kind in ends else "\n"
        return Framing(
            kind=kind,
            end=end,
            prefix=head.prefix,
            header=self._header(kind, parser_of(head.header)) if head.header else (),
            size=head.size,
            before=self._before(parser_of) if head.before else (),
            order=head.order,
            inclusive="length" if head.inclusive is True else head.inclusive or "",
        )

    def _before(self, parser_of: Callable[[str], Parser]) -> tuple[BeforePart, ...]:
        """Return the fields in text before the name."""
        text = self._head.before
        parts: dict[str, BeforePart] = {}
        at = 0
        for found in _GROUP.finditer(text):
            at = found.end() if found.start() == at else at
            parser = parser_of(found[2])
            fields = parser.fields()
            problems = parser.mistakes
            if len(fields) == 1 and not problems:
                field = msgspec.structs.replace(fields[0], optional=True)
                if field.name in parts:
                    problems = [notation.Mistake(f"a second field {field.name}", 0, len(field.name))]
                parts[field.name] = BeforePart(field, found[1], found[3])
            self._source.wrong_parts(("before",), problems, found.start(2))
        if at < len(text):
            problem = "each field before the name is in brackets, such as [id=integer][@ref=integer]"
            self._source.wrong(("before",), problem, at, len(text))
        if self._head.header:
            self._source.wrong_key(("before",), "header is before the name: remove this")
        return tuple(parts.values())

    def _header(self, kind: FramingKind, parser: Parser) -> tuple[HeaderPart, ...]:
        """Return the parts of the header."""
        text = self._head.header
        if "prefix" in self._document:
            self._source.wrong_key(("prefix",), "the header has the length: remove this")
        parts = parser.header()
        self._source.wrong_parts(("header",), parser.mistakes)
        fields = [part.field for part in parts if part.field is not None]
        for part, following in with_next(parts):
            field = part.field
            problem = None if field is None else _problem_of_part(field, following.constant)
            if field is not None and problem is not None:
                start, end = place_of_field(text, field.name)
                self._source.wrong(("header",), problem, start, end)
        has_length = any(field.name == LENGTH for field in fields)
        if not parser.mistakes and kind == "length" and not has_length:
            self._source.wrong(("header",), "the header of a length needs it, such as length=u32")
        elif has_length and kind != "length":
            problem = f'a length belongs to framing = "length", not to {kind}'
            self._source.wrong(("header",), problem, *place_of_field(text, LENGTH))
        elif kind == "size" and not all(
            _is_sized(field.type) and field.title != "varint" for field in fields
        ):
            self._source.wrong(("header",), "with a size, all parts of a header have a fixed size")
        return parts

    def format(self, framing: Framing) -> Format:
        """Return the format."""
        head = self._head
        kind = self.kind()
        if framing.has_name:
            if head.name:
                self._source.wrong_key(("name",), "the header has the name: remove this")
            elif kind == "xml":
                self._source.wrong(("header",), "the name of an XML element is in the message")
        self._only_with(
            "format",
            kind,
            _FORMAT_KEYS,
        )
        if kind == "json" and not head.name and not framing.has_name:
            key = "format" if head.format is not None else "framing"
            self._source.wrong_key((key,), 'json needs name, the key of the name, such as name = "type"')
        if kind == "delimited" and not head.delimiter:
            self._source.wrong_key(("format",), 'delimited needs delimiter, such as delimiter = ";"')
        if kind == "struct" and head.name and head.name not in notation.INTEGERS:
            self._source.wrong(("name",), f"in struct, name must be {listed(notation.INTEGERS)}")
        if kind == "xml" and not re.fullmatch(r"|tag|([^\s/@]+/)?@[^\s/@]+", head.name):
            problem = 'in XML, name must be "tag", "@attribute" or "element/@attribute"'
            self._source.wrong(("name",), problem)
        if kind == "xml" and head.strict and head.name not in ("", "tag"):
            self._source.wrong(("name",), "with strict = true, the name is the tag")
        is_text = kind in ("words", "delimited", "lines")
        if is_text and head.strict and framing.kind != "datagrams":
            self._source.wrong(("strict",), "strict = true belongs to datagrams, if messages are text")
        if len(head.quote) > 1:
            self._source.wrong(("quote",), "quote must be one character")
        if any(len(pad) != 1 for pad in head.pad):
            self._source.wrong(("pad",), "a padding is one character")
        if head.pad and not head.quote:
            self._source.wrong_key(("pad",), 'pad needs quote, such as quote = "\\""')
        for key in ("assign", "delimiter"):
            if self._document.get(key) == "":
                self._source.wrong((key,), f"{key} is empty")
        if kind == "pairs" and head.assign == (head.delimiter or " "):
            self._source.wrong_key(
                ("delimiter" if "delimiter" in self._document else "assign",),
                "assign and delimiter are the same",
            )
        self._check_encoding()
        is_text = head.framing in (None, "lines", "block", "json", "xml") and head.transport != "udp"
        return Format(
            kind=kind,
            name="" if framing.has_name else head.name or {"struct": "u8", "xml": "tag"}.get(kind, "first"),
            delimiter=head.delimiter or ("\n" if kind == "lines" else " "),
            pads=tuple(head.pad),
            line_end=head.line_end if is_text or "line_end" in self._document else "",
            is_strict=head.strict,
            **{key: getattr(head, key) for key in _SAME_IN_FORMAT},
        )

    def with_envelope(self, format: Format, parser_of: Callable[[str], Parser]) -> Format:
        """Return the format with the element around messages, and its attributes."""
        head = self._head
        key = "root" if head.root else "envelope"
        text = head.root or head.envelope
        if not text:
            return format
        if head.root and head.envelope:
            self._source.wrong_key(("envelope",), "root is around all messages: envelope is not needed")
        parser = parser_of(text)
        name, fields = parser.element()
        for field in fields:
            if not (field.is_attribute and field.optional):
                problem = f"messages have it or not: write @{field.name}?="
                self._source.wrong((key,), problem, *place_of_field(text, field.name))
        self._source.wrong_parts((key,), parser.mistakes)
        return msgspec.structs.replace(format, envelope=name, stays_open=bool(head.root), outer=fields)

    def formats(self, framing: Framing) -> dict[Direction, Format]:
        """Return the formats of both directions, if each has its own; else nothing."""
        table = self._head.formats
        if table is None or not (table.c and table.s):
            return {}
        if self._head.format is not None:
            self._source.wrong_key(("format",), "formats has the format of each direction: remove this")
        if framing.kind in ("json", "xml"):
            self._source.wrong(("framing",), "messages of two formats need another framing, such as lines")
        kinds: dict[Direction, FormatKind] = {"c2s": table.c, "s2c": table.s}
        found: dict[Direction, Format] = {}
        for direction, kind in kinds.items():
            others = {
                key
                for key, of in _FORMAT_KEYS.items()
                if kind not in of and any(other in of for other in kinds.values())
            }
            document = {key: value for key, value in self._document.items() if key not in others}
            defaults = {key: getattr(_DEFAULTS, key) for key in others & {*Document.__struct_fields__}}
            head = msgspec.structs.replace(self._head, format=kind, **defaults)
            found[direction] = HeadSection(self._source, document, head).format(framing)
        return found

    def lenient(self, framing: Framing) -> Lenient:
        """Return the deviations that readers accept."""
        table = self._head.lenient
        if table is None:
            return Lenient()
        if table.line_ends and (framing.kind != "lines" or self.kind() == "lines"):
            self._source.wrong(("lenient", "line_ends"), "line_ends belongs to framing = lines")
        if table.charset and self._head.encoding != "utf-8":
            self._source.wrong(("lenient", "charset"), "charset belongs to encoding = utf-8")
        for key, formats in _LENIENT_IN.items():
            if key in self._document["lenient"] and self.kind() not in formats:
                self._source.wrong(("lenient", key), f"{key} belongs to format = {listed(formats)}")
        for number, misprint in enumerate(table.misprints[: _MAX_MISPRINTS + 1]):
            path: Path = ("lenient", "misprints", number)
            if number == _MAX_MISPRINTS:
                self._source.wrong(path, f"more than {_MAX_MISPRINTS} misprints")
            # A table with mistakes lacks some of these.
            elif "" not in (misprint.name, misprint.sent, misprint.meant) and not misprint.is_repairable:
                self._source.wrong((*path, "meant"), "meant has as many bytes and words as sent in brackets")
        return table

    def _only_with(self, what: str, kind: str, kinds: Mapping[str, Collection[str]]) -> None:
        """Report keys that mean nothing with the chosen framing or format."""
        for key, of in kinds.items():
            if key in self._document and kind not in of:
                self._source.wrong_key((key,), f"{key} belongs to {what} = {listed(of)}, not to {kind}")

    def _check_encoding(self) -> None:
        """Report texts that the encoding lacks."""
        for key in ("end", "line_end", "quote", "delimiter", "assign", "mark"):
            try:
                getattr(self._head, key).encode(self._head.encoding)
            except UnicodeEncodeError:
                self._source.wrong((key,), f"{key} has a character that {self._head.encoding} lacks")


def _problem_of_part(field: FieldSpec, following: bytes) -> str | None:
    """Return why a field with a constant after it cannot be a part of a header, or None."""
    kind = value_type(field.type)
    is_number = isinstance(kind, BinaryType) and kind.kind in notation.INTEGERS
    is_text = isinstance(kind, TextType) or (is_text_part(field) and _is_sized(kind))
    if isinstance(kind, TextType) and not following:
        return (
            f"{field.name} needs a size, such as text:4, or a constant after it, as in {field.name}=text '|'"
        )
    if field.name == LENGTH and (not (is_number or is_text) or field.title.startswith("i")):
        return "the length is a number such as u8, u32 or varint, or the digits of a text such as text:4"
    if field.name == NAME and not (is_number or is_text or _is_sized(kind)):
        return "what stands for the name is a number such as u8, or a text such as text:4"
    if field.optional:
        return f"{field.name} is in every header: write {field.name}="
    if not (is_number or is_text or _is_sized(kind)):
        return f"{field.name} needs a type of a fixed size, such as u8 or text:4, or varint"
    return None


def _is_sized(kind: FieldTypeSpec) -> bool:
    """Return True if all values of a type have as many bytes."""
    match kind:
        case IdentifierType(_, of):
            return _is_sized(of)
        case NumberType() | BooleanType():
            return True
        case BinaryType(("text" | "bytes"), size):
            return isinstance(size, int)
        case BinaryType():
            return True
    return False
