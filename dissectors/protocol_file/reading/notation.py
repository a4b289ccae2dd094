"""The notation of rows and of types: `s*: name=player pips=1..6 < JOIN`."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any, NamedTuple, cast

import msgspec

from kiebitz.dissectors.grammar.fields import INTEGER
from kiebitz.dissectors.model import Direction
from kiebitz.dissectors.protocol_file.patterns import matcher
from kiebitz.dissectors.protocol_file.specification import (
    AnyType,
    BagType,
    BinaryType,
    BooleanType,
    ChoiceType,
    ChoiceValue,
    EitherType,
    FieldSpec,
    FieldTypeSpec,
    HeaderPart,
    IdentifierType,
    IntegerKind,
    ListType,
    MapType,
    NumberType,
    ObjectType,
    TextType,
)
from kiebitz.dissectors.suggestions import did_you_mean

MAX_NESTING = 10
"""Maximum depth of lists and objects in one another."""

MAX_PARTS = 1_000
"""Maximum number of types in a row, those inside of named types included."""

MAX_MISTAKES = 20
"""Maximum number of mistakes that are reported of a row."""

INTEGERS = ("u8", "u16", "u32", "u64", "i8", "i16", "i32", "i64", "varint")
"""Binary whole numbers."""

BINARY: dict[str, FieldTypeSpec] = {
    **{kind: BinaryType(cast(IntegerKind, kind)) for kind in INTEGERS},
    "f32": BinaryType("f32"),
    "f64": BinaryType("f64"),
    "bool8": BinaryType("bool8"),
    "bytes": BinaryType("bytes"),
    **{f"text{size}": BinaryType("text", cast(IntegerKind, f"u{size}")) for size in (8, 16, 32)},
    **{f"bytes{size}": BinaryType("bytes", cast(IntegerKind, f"u{size}")) for size in (8, 16, 32)},
}
"""The types of the format `struct`; `text:4` and `bytes:4` have a number."""

BUILT_IN: dict[str, FieldTypeSpec] = {
    "text": TextType(),
    "rest": TextType(rest=True),
    "number": NumberType(whole=False),
    "integer": NumberType(),
    "bool": BooleanType(),
    "player": IdentifierType("player"),
    "id": IdentifierType("id"),
    "list": ListType(AnyType()),
    "object": ObjectType(()),
    "any": AnyType(),
    **BINARY,
}
"""The types that every protocol file has."""

_BLANKS = re.compile(r"\s*")
_DIRECTION = re.compile(r"\s*([^\s:*~]*)([*~]*)\s*:")
_FIELD_END = re.compile(r"\S*")
_FIELD_NAME = re.compile(r"'([^']*)'|([^\s=?!<>{}\[\]|'\"]+)")
_LIMIT = r"-?\d{1,15}(?:\.\d{1,15})?"
_RANGE = re.compile(rf"({_LIMIT})?\.\.({_LIMIT})?(?![\w.])")
_UNTIL = re.compile(r"\.\.'([^'\s]+)'")
_FIXED = re.compile(r'"([^"]*)"')
_AS = re.compile(r"\s+as\s+(?=[\[{])")
_COUNT = re.compile(r"(\d{1,4})?(\.\.)?(\d{1,4})?(?![\w.])")
_COUNTED = re.compile(r"\*(\w+)")
_PATTERN = re.compile(r"/((?:\\.|[^\\/])*)/")
_ELEMENT = re.compile(r"[^\W\d][\w.-]*(?=\s|$)")
_WORD = re.compile(r"'([^']*)'|([^\s\[\]{}|=<>'\"!?/:,;\\]+)")
_CONSTANT = re.compile(r"'([^']*)'(?![?=])")
_CONSTANTS = {"null": None, "true": True, "false": False}
_BASE = re.compile(
    r"\s+(?!\S+=)(?:(text|rest|number|integer|[uif](?:8|16|32|64)|varint|text8|text16|text32|bytes8|bytes16|bytes32|(?:text|bytes):\d+)(?![^\s\]}!])"
    rf"|(?=(?:{_LIMIT})?\.\.))"
)
_OR = re.compile(r"\s+or\s+")
_BAG = re.compile(r"bag\s+(?!\S+=|or\s)(?=[^\s\[\]{}<>!?])")
_BOOLEAN_WORDS = re.compile(r"[ \t]+(?=(?:'[^']*'|[^\s|'=]+)\|)")
_NUMBERS_BY_NAME = re.compile(r"[ \t]+(?=-?\d+=[^\s|=]+\|)")
_OBJECT_END = re.compile(r"[^\w\s'}]{0,3}\s*\}")
_MAP = re.compile(r"\s*(?=(?:/(?:\\.|[^\\/])*/|[^\s={}\[\]]+):\s+[^\s}])")
_SIZE = re.compile(r":(\d{1,6})(?!\w)")
_KIND = re.compile(r":([^\W\d]\w*)")


class Mistake(Exception):
    """A mistake in a row or a type; characters `start` to `end` are wrong."""

    def __init__(self, message: str, start: int, end: int) -> None:
        super().__init__(message)
        self.message = message
        self.start = start
        self.end = max(end, start + 1)


class Row(msgspec.Struct):
    """The parts of a row; `answers` has the position of its words after `<`, None without them."""

    direction: Direction
    broadcast: bool
    heartbeat: bool
    fields: tuple[FieldSpec, ...]
    answers: int | None


class ParsedType(NamedTuple):
    """A type, the depth of lists and objects in it, and the number of its parts."""

    type: FieldTypeSpec
    depth: int
    parts: int


class NamedTypes(NamedTuple):
    """The names of `[types]`, and a function for their types, which are parsed on first use.

    That function raises Mistake for a type that contains itself.
    """

    names: Collection[str] = ()
    parse: Callable[[str], ParsedType] | None = None


def json_kinds(kind: FieldTypeSpec) -> Collection[str]:
    """Return the kinds of JSON values of a type, in words."""
    match kind:
        case TextType() | BinaryType("text" | "bytes"):
            return ("a text",)
        case ChoiceType(values):
            return {"a text" if isinstance(value, str) else "a number": None for value in values}
        case IdentifierType(name, of):
            return json_kinds(of) if name == "player" or of != TextType() else ("a number", "a text")
        case BooleanType() | BinaryType("bool8"):
            return ("true or false",)
        case ListType():
            return ("a list",)
        case ObjectType() | MapType():
            return ("an object",)
        case BagType():
            return ("an object", "a number") if kind.hidden else ("an object",)
        case EitherType(options):
            return [each for option in options for each in json_kinds(option)]
        case AnyType():
            return ("a text", "a number", "true or false", "a list", "an object", "null")
        case _:
            return ("a number",)


_WORDS: Mapping[str, Any] = {"": None, "true": True, "false": False}


def plain_value(text: str) -> Any:
    """Return the value of a text: a whole number, true, false, null if it is empty, or a word."""
    if re.fullmatch(r"-?\d{1,15}", text):
        return int(text)
    return _WORDS.get(text, text)


def near(word: str, known: Collection[str]) -> str:
    """Return a suggestion for a word that resembles a known one, or an empty text."""
    close = (
        get_close_matches(word, [name for name in known if len(name) <= 100], n=1) if len(word) <= 100 else []
    )
    return f": {did_you_mean(*close)}" if close else ""


def place_of_field(text: str, name: str) -> tuple[int, int]:
    """Return the range of characters of a field's name."""
    found = re.search(rf"(?<![^\s@]){re.escape(name)}\??=", text)
    start = found.start() if found is not None else 0
    return start, start + len(name)


class Parser(msgspec.Struct, eq=False):
    """Parser of a row or type. `mistakes` has those after which it went on.

    In JSON, a choice of unquoted integers is one of numbers. In XML, a field may be an attribute.
    `descriptions` are those of fields.
    """

    _text: str
    _types: NamedTypes
    _has_numbers: bool = True
    _has_attributes: bool = False
    _descriptions: Mapping[str, str] = MappingProxyType({})
    _at: int = 0
    _deepest: int = 0
    parts: int = 0
    """Number of types, those inside of types included."""
    mistakes: list[Mistake] = []
    names: set[str] = set()
    """Names of fields, those inside of types included."""

    # Rows.

    def row(self) -> Row | None:
        """Parse a row; None if its direction is wrong."""
        found = self._taken(_DIRECTION)
        if found is None or found[1] not in ("s", "c"):
            start, end = found.span(1) if found is not None else (0, len(self._text))
            text = 'a row begins with "s:" (from the server) or "c:" (from a client)'
            self.mistakes.append(Mistake(text, start, end))
            return None
        direction: Direction = "s2c" if found[1] == "s" else "c2s"
        flags = found[2]
        for flag in "*~":
            if flags.count(flag) > 1:
                self.mistakes.append(Mistake(f'"{flag}" is written once', found.start(2), found.end(2)))
        if direction == "c2s" and "*" in flags:
            at = found.start(2) + flags.index("*")
            text = '"*" marks copies that the server sends to each client: "s*:"'
            self.mistakes.append(Mistake(text, at, at + 1))
        fields = self.fields()
        answers = self._at if self._has("<") else None
        return Row(direction, "*" in flags, "~" in flags, fields, answers)

    def element(self) -> tuple[str, tuple[FieldSpec, ...]]:
        """Parse the name of an element, and fields."""
        found = self._taken(_ELEMENT)
        if found is None:
            self.mistakes.append(Mistake('it begins with the name of an element, such as "game"', 0, 1))
            return "", ()
        return found[0], self.fields()

    def fields(self, end: str = "<") -> tuple[FieldSpec, ...]:
        """Parse fields up to the end of the text or one of the characters `end`."""
        return tuple(part.field for part in self._parts(end) if part.field is not None)

    def header(self) -> tuple[HeaderPart, ...]:
        """Parse the parts of a header: fields, and constants such as `'0x4d58'`."""
        return tuple(self._parts("", has_constants=True))

    def _parts(self, end: str, has_constants: bool = False) -> list[HeaderPart]:
        parts: list[HeaderPart] = []
        names: set[str] = set()
        while True:
            self._skip_blanks()
            if self._at == len(self._text) or self._text[self._at] in end:
                return parts
            start = self._at
            try:
                if has_constants and (found := self._taken(_CONSTANT)) is not None:
                    parts.append(HeaderPart(constant=_constant(found)))
                else:
                    field = self._field(0)
                    if field.name in names:
                        raise Mistake(f"a second field {field.name}", start, start + len(field.name))
                    names.add(field.name)
                    parts.append(HeaderPart(field))
                if self._text[self._at : self._at + 1].strip(f"{end} \t\n"):
                    raise self._unexpected()
            except Mistake as mistake:
                self.mistakes.append(mistake)
                found = _FIELD_NAME.match(self._text, start)
                if found is not None and (name := found[1] or found[2]) not in names and not has_constants:
                    # The rest of the file may name the field.
                    names.add(name)
                    parts.append(HeaderPart(FieldSpec(name, AnyType(), "any")))
                if len(self.mistakes) >= MAX_MISTAKES:
                    self._at = len(self._text)
                self._at = max(self._at, mistake.end)
                self._taken(_FIELD_END)

    def _field(self, depth: int) -> FieldSpec:
        found = self._taken(_FIELD_NAME)
        if found is None:
            raise self._unexpected("a field, such as name=text")
        name = found[1] if found[1] is not None else found[2]
        is_attribute = self._has_attributes and found[1] is None and name.startswith("@")
        name = name[is_attribute:]
        if not name:
            raise Mistake("a field without a name", found.start(), found.end())
        self.names.add(name)
        if name in self._types.names and self._text[self._at : self._at + 1].strip(" \t\n}") == "":
            # The type's name is that of the field, too.
            self._at = found.start()
            return FieldSpec(name, self.type(depth), name, description=self._descriptions.get(name, ""))
        optional = self._has("?=")
        if not optional and not self._has("="):
            if self._has("?"):
                raise Mistake('an optional field is written "name?=type"', found.start(), self._at)
            text = f"field {name} has no type: {did_you_mean(f'{name}=text')}"
            raise Mistake(text, found.start(), self._at)
        start = self._at
        before = self._fixed()
        kind = self.type(depth)
        after = self._fixed()
        title = self._text[start : self._at].strip()
        generated = self._has("!")
        description = self._descriptions.get(name, "")
        return FieldSpec(name, kind, title, optional, generated, is_attribute, description, before, after)

    def _fixed(self) -> str:
        """Parse a fixed text, if there is any."""
        found = self._taken(_FIXED)
        return "" if found is None else found[1].replace("\\n", "\n")

    # Types.

    def whole_type(self) -> ParsedType:
        """Parse a text that is one type. Raises Mistake."""
        self._skip_blanks()
        kind = self.type()
        self._skip_blanks()
        if self._at < len(self._text):
            raise self._unexpected("the end of the type")
        return ParsedType(kind, self._deepest, self.parts)

    def type(self, depth: int = 0) -> FieldTypeSpec:
        """Parse a type at the current position, or several with `or` between them. Raises Mistake."""
        start = self._at
        options = [self._alternative(depth)]
        while self._taken(_OR):
            options.append(self._alternative(depth))
        if len(options) == 1:
            return options[0]
        kinds = [kind for option in options for kind in json_kinds(option)]
        if twice := [kind for kind in kinds if kinds.count(kind) > 1]:
            raise Mistake(f"two of these may be {twice[0]}: they cannot be told apart", start, self._at)
        return EitherType(tuple(options))

    def _alternative(self, depth: int) -> FieldTypeSpec:
        self._count(depth, 1, self._at, self._at + 1)
        match self._text[self._at : self._at + 1]:
            case "[":
                return self._list(depth)
            case "{":
                return self._object(depth)
            case "/":
                return self._pattern(depth)
        found = _RANGE.match(self._text, self._at)
        if found is not None and (found[1] or found[2]):
            return self._range(found)
        return self._word(depth)

    def _count(self, depth: int, parts: int, start: int, end: int) -> None:
        """Count a type and its parts; raise Mistake if there are too many."""
        self._deepest = max(self._deepest, depth)
        self.parts += parts
        if depth > MAX_NESTING:
            raise Mistake(f"more than {MAX_NESTING} lists and objects in one another", start, end)
        if self.parts > MAX_PARTS:
            raise Mistake(f"more than {MAX_PARTS} types in one row", start, end)

    def _list(self, depth: int) -> FieldTypeSpec:
        start = self._at
        self._at += 1
        self._skip_blanks()
        item = self.type(depth + 1)
        nulls = self._has("?")
        separator = self._separator("]", start)
        if (found := self._taken(_COUNTED)) is not None:
            return ListType(item, separator, nulls=nulls, count=found[1])
        if (found := self._taken(_UNTIL)) is not None:
            return ListType(item, separator, nulls=nulls, until=found[1])
        return ListType(item, separator, *self._count_of_items(), nulls=nulls)

    def _count_of_items(self) -> tuple[int, int | None]:
        """Parse the number of a list's items: `4`, `1..32`, `..24`, or nothing."""
        found = _COUNT.match(self._text, self._at)
        if found is None or not (found[1] or found[3]):
            return 0, None
        self._at = found.end()
        least = int(found[1] or 0)
        most = int(found[3]) if found[3] else None if found[2] else least
        if most is not None and (most < least or not most):
            problem = f"{least} is greater than {most}" if most else "a list has at least one item"
            raise Mistake(problem, found.start(), found.end())
        return least, most

    def _object(self, depth: int) -> FieldTypeSpec:
        start = self._at
        self._at += 1
        if self._taken(_MAP):
            return self._map(depth)
        fields: dict[str, FieldSpec] = {}
        while True:
            before = self._at
            self._skip_blanks()
            at = self._at
            if at == len(self._text) or _OBJECT_END.match(self._text, at):
                separator = self._separator("}", start).strip()
                if not separator and "\n" in self._text[before:at]:
                    separator = "\n"
                elif not separator and fields and before < at and not self._text[start + 1].isspace():
                    # A blank on both sides only makes it easier to read.
                    separator = " "
                return ObjectType(tuple(fields.values()), separator)
            field = self._field(depth + 1)
            if field.name in fields:
                raise Mistake(f"a second field {field.name}", at, at + len(field.name))
            fields[field.name] = field

    def _map(self, depth: int) -> FieldTypeSpec:
        """Parse the types of the keys and values of an object, such as `player: integer}`."""
        start = self._at
        key = self._alternative(depth + 1)
        if not isinstance(key, TextType | NumberType | ChoiceType | IdentifierType):
            raise Mistake("keys are texts: text, player, id, words or a pattern", start, self._at)
        if not self._has(":"):
            raise self._unexpected('":"')
        self._skip_blanks()
        value = self.type(depth + 1)
        self._skip_blanks()
        if not self._has("}"):
            raise self._unexpected('"}"')
        return MapType(key, value)

    def _separator(self, bracket: str, start: int) -> str:
        """Return the text before a closing bracket."""
        end = self._text.find(bracket, self._at)
        separator = self._text[self._at : end].replace("\\n", "\n")
        if end < 0:
            opening = self._text[start]
            raise Mistake(f'"{opening}" has no "{bracket}"', start, start + 1)
        if len(separator) > 3 or re.search(r"\w", separator):
            raise self._unexpected(f'"{bracket}"')
        self._at = end + 1
        return separator

    def _pattern(self, depth: int) -> FieldTypeSpec:
        found = _PATTERN.match(self._text, self._at)
        if found is None:
            raise Mistake('a regular expression ends with "/"', self._at, len(self._text))
        pattern = found[1].replace("\\/", "/")
        try:
            matcher(pattern)
        except (ValueError, RecursionError) as error:
            raise Mistake(str(error) or "nested too deeply", found.start(), found.end()) from None
        self._at = found.end()
        if not self._taken(_AS):
            return TextType(pattern)
        start = self._at
        kind = self._list(depth) if self._text[start] == "[" else self._object(depth)
        if not isinstance(kind, ListType | ObjectType):
            raise Mistake("an object in a text has names, such as {x=0..9 y=0..9}", start, self._at)
        return cut(kind, pattern)

    def _range(self, found: re.Match[str]) -> NumberType:
        low, high = (
            None if limit is None else float(limit) if "." in limit else int(limit)
            for limit in (found[1], found[2])
        )
        if low is not None and high is not None and low > high:
            raise Mistake(f"{found[1]} is greater than {found[2]}", found.start(), found.end())
        self._at = found.end()
        return NumberType(low, high, whole="." not in f"{found[1]}{found[2]}")

    def _word(self, depth: int) -> FieldTypeSpec:
        start = self._at
        if self._taken(_BAG):
            return self._bag(self._at)
        words = [self._choice_word()]
        values = [self._value_of(words[0])]
        quoted = self._text[start] == "'"
        while _WORD.match(self._text, self._at + 1) and self._has("|"):
            words.append(self._choice_word())
            values.append(self._value_of(words[-1]))
        if len(values) > 1 or quoted or values != words:
            for each in (words, values):
                kinds = [(type(value), value) for value in each]
                if len({*kinds}) < len(each):
                    twice = next(value for kind, value in kinds if kinds.count((kind, value)) > 1)
                    raise Mistake(f"{twice} occurs twice", start, self._at)
            return ChoiceType(tuple(values), () if values == words else tuple(map(str, words)))
        word = str(words[0])
        end = self._at
        if word in ("text", "bytes") and (size := self._taken(_SIZE)):
            return BinaryType(cast("IntegerKind", word), int(size[1]))
        if word in INTEGERS and self._taken(_NUMBERS_BY_NAME):
            names = self._word(depth)
            assert isinstance(names, ChoiceType)
            return msgspec.structs.replace(names, of=word)
        if word == "bool" and self._taken(_BOOLEAN_WORDS):
            return self._boolean()
        if self._types.parse is not None and word in self._types.names:
            try:
                named = self._types.parse(word)
            except Mistake as mistake:
                raise Mistake(mistake.message, start, end) from None
            self._count(depth + named.depth, named.parts - 1, start, end)
            return named.type
        kind = BUILT_IN.get(word)
        if kind is None:
            hint = near(word, [*BUILT_IN, *self._types.names]) or f": write '{word}' for a fixed word"
            raise Mistake(f"no type {word}{hint}", start, end)
        return self._identifier(kind) if isinstance(kind, IdentifierType) else kind

    def _bag(self, start: int) -> FieldTypeSpec:
        """Parse the names of a bag's kinds, or the name of a type that is a choice of them."""
        names = self._alternative(0)
        if isinstance(names, ChoiceType):
            return BagType(tuple(map(str, names.values)))
        raise Mistake("a bag has the names of its kinds, such as bag wood|clay", start, self._at)

    def _boolean(self) -> ChoiceType:
        """Parse the words for true and false, as in `bool t|f`."""
        start = self._at
        yes = str(self._choice_word())
        self._at += 1
        no = str(self._choice_word())
        if yes == no:
            raise Mistake(f"{yes} occurs twice", start, self._at)
        return ChoiceType((True, False), (yes, no))

    def _value_of(self, word: str | int) -> ChoiceValue:
        """Parse the value that a word of a choice stands for, as in `§=null`; by default, it is the word."""
        after = self._text[self._at + 1 :].lstrip()[:1]
        if after in ("]", "}") or not self._has("="):
            return word
        start = self._at
        value = self._choice_word()
        shown = self._text[start : self._at]
        if shown in _CONSTANTS:
            return _CONSTANTS[shown]
        return int(shown) if INTEGER.fullmatch(shown) else value

    def _choice_word(self) -> str | int:
        found = self._taken(_WORD)
        if found is None:
            raise self._unexpected("a type; a fixed word alone is one, as in word='Hello'")
        if found[1] is not None:
            return found[1]
        word = found[2]
        if (
            self._text[self._at : self._at + 1] in ("]", "}")
            and len(word) > 1
            and not (word[-1].isalnum() or word[-1] == "_")
        ):
            # In `[card-]` or `{a=card-}`, it is the separator.
            word = word[:-1]
            self._at -= 1
        return int(word) if self._has_numbers and INTEGER.fullmatch(word) else word

    def _identifier(self, kind: IdentifierType) -> IdentifierType:
        name = kind.kind
        if name == "id" and (found := self._taken(_KIND)):
            name = found[1]
        if found := self._taken(_BASE):
            if found[1] is None:
                limits = _RANGE.match(self._text, self._at)
                if limits is None:
                    raise self._unexpected("limits, such as 0..")
                return IdentifierType(name, self._range(limits))
            word, _, size = found[1].partition(":")
            base = BinaryType(cast("IntegerKind", word), int(size)) if size else BUILT_IN[word]
            return IdentifierType(name, cast("TextType | NumberType | BinaryType", base))
        return IdentifierType(name)

    def _skip_blanks(self) -> None:
        self._taken(_BLANKS)

    def _taken(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Return the match at the current position, which moves behind it; None if there is none."""
        found = pattern.match(self._text, self._at)
        self._at = self._at if found is None else found.end()
        return found

    def _has(self, text: str) -> bool:
        """Return True if a text is at the current position, which moves behind it."""
        is_there = self._text.startswith(text, self._at)
        self._at += len(text) * is_there
        return is_there

    def _unexpected(self, expected: str = "a blank") -> Mistake:
        early = "it ends too early: " if self._at >= len(self._text) else ""
        return Mistake(f"{early}expected {expected}", self._at, self._at + 1)


def cut(kind: FieldTypeSpec, pattern: str = "") -> FieldTypeSpec:
    """Return a list or an object without anything between its parts, as these are, without separators."""
    match kind:
        case ListType(item, separator, pattern=""):
            kind = msgspec.structs.replace(kind, item=cut(item))
        case ObjectType(fields, separator, pattern=""):
            parts = (msgspec.structs.replace(field, type=cut(field.type)) for field in fields)
            kind = msgspec.structs.replace(kind, fields=(*parts,))
        case _:
            return kind
    return msgspec.structs.replace(kind, is_cut=not separator, pattern=pattern)


def _constant(found: re.Match[str]) -> bytes:
    """Return the bytes of a constant. Raises Mistake."""
    written = found[1]
    try:
        data = bytes.fromhex(written[2:]) if written.startswith("0x") else written.encode()
    except ValueError:
        data = b""
    if not data or "0x" in written[2:]:
        problem = "a constant is a text, or pairs of hexadecimal digits such as '0x4d58'"
        raise Mistake(problem, found.start(), found.end())
    return data
