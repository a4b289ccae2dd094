"""Parsing of TOML with the locations of keys and values, which tomllib does not report; mistakes."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from kiebitz.dissectors.caret_line import with_carets
from kiebitz.dissectors.errors import KiebitzError

Step = str | int

_KEY = re.compile(r"""[ \t]*("(?:[^"\\\n]|\\.)*"|'[^'\n]*'|[A-Za-z0-9_-]+)[ \t]*""")
_STRING = re.compile(
    r'"""(?:[^"\\]|\\.|"{1,2}(?!"))*"{3,5}'
    r"|'''(?:[^']|'{1,2}(?!'))*'{3,5}"
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|'[^'\n]*'",
    re.DOTALL,
)
_OTHER_VALUE = re.compile(r"[^,\]}#\n]*[^,\]}#\n\s]")
_VOID = re.compile(r"(?:[ \t\n]|#[^\n]*)*")
_ESCAPE = re.compile(r"\\(?:x..|u.{4}|U.{8}|[ \t]*\n[ \t\n]*|.)", re.DOTALL)

_LONG_KEY = re.compile(r"""\.(?:[ \t]*(?:[A-Za-z0-9_-]+|"(?:[^"\\\n]|\\.)*"|'[^'\n]*')[ \t]*\.){30}""")
"""A key of so many parts that tomllib, which takes the square of their number, would not end."""

_EXISTS = re.compile(r"Cannot (?:overwrite a value|declare .* twice)$")
"""tomllib's messages for a key or a table that the text has twice."""

_WRITTEN_KEY = re.compile(r"[^\s\[=](?:[^=\]]*[^\s=\]])?")

_AT = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")
"""Location at the end of tomllib's messages; its errors have attributes since Python 3.14."""


class Place(NamedTuple):
    """A range in a line: line `number` from 1, `position` from 0 and `length` in characters."""

    number: int
    line: str
    position: int
    length: int


class InvalidTomlError(ValueError):
    """A text that is not TOML; `place` is None if only the text as a whole is wrong."""

    def __init__(self, problem: str, place: Place | None) -> None:
        super().__init__(problem)
        self.place = place


def parse_toml(text: str) -> dict[str, Any]:
    """Parse a text with LF as line end. Raises InvalidTomlError."""
    if found := _LONG_KEY.search(text):
        raise InvalidTomlError("a key has more than 30 parts", place_in(text, *found.span()))
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise InvalidTomlError("nested too deeply", None) from None
    except ValueError as error:
        problem = str(error)
        place = None
        if found := _AT.search(problem):
            problem = problem[: found.start()]
            lines = text.split("\n") if found[1] else text.rstrip("\n").split("\n")
            number = int(found[1] or len(lines))
            line = lines[number - 1]
            place = Place(number, line, int(found[2]) - 1 if found[2] else len(line), 1)
            if _EXISTS.match(problem) and (key := _WRITTEN_KEY.search(line[: place.position])):
                problem = f"{key[0]} exists already"
                place = Place(number, line, key.start(), len(key[0]))
        raise InvalidTomlError(f"invalid TOML: {problem[:1].lower()}{problem[1:]}", place) from None


def place_in(text: str, start: int, end: int) -> Place:
    """Return the location of a range of a text; of several lines, that in the first one."""
    number = text.count("\n", 0, start) + 1
    begin = text.rfind("\n", 0, start) + 1
    line = text[begin:].partition("\n")[0]
    length = min(end - start, len(line) - (start - begin))
    return Place(number, line, start - begin, max(length, 1))


class _Node:
    """A key and its value as ranges of the text, and the nodes inside the value."""

    __slots__ = ("children", "key", "value")

    def __init__(self, key: tuple[int, int], value: tuple[int, int]) -> None:
        self.key = key
        self.value = value
        self.children: dict[Step, _Node] = {}

    def child(self, step: Step, span: tuple[int, int]) -> _Node:
        """Return a child, which is created if it is absent."""
        return self.children.setdefault(step, _Node(span, span))


class TomlPlaces:
    """The locations of keys and values in valid TOML with LF as line end.

    A path consists of keys, and of indices in arrays; the first item of no array is the value itself. A path
    that does not exist has the location of the closest table around it.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._root = _Node((0, 0), (0, 0))
        self._document()

    def key(self, path: Sequence[Step]) -> Place:
        """Return the location of the last key of a path; of an item of an array, that of its value."""
        return place_in(self._text, *self._node(path).key)

    def value(self, path: Sequence[Step], start: int = 0, end: int | None = None) -> Place:
        """Return the location of a value, or of its first line; of a text, that of characters of it."""
        node = self._node(path)
        begin, stop = node.value
        if end is not None and self._text.startswith(('"', "'"), begin):
            end = max(end, start + 1)
            offsets = _offsets(self._text[begin:stop], end)
            begin, stop = begin + offsets[min(start, len(offsets) - 1)], begin + offsets[-1]
        return place_in(self._text, begin, stop)

    def _node(self, path: Sequence[Step]) -> _Node:
        node = self._root
        for step in path:
            if step in node.children:
                node = node.children[step]
            elif step != 0:
                break
        return node

    # The parser: tomllib has accepted the text, so that it need not check anything.

    def _document(self) -> None:
        table = self._root
        while True:
            self._skip(_VOID)
            if self._at >= len(self._text):
                return
            if self._text.startswith("[", self._at):
                table = self._header()
            else:
                self._pair(table)

    def _header(self) -> _Node:
        is_array = self._text.startswith("[[", self._at)
        self._at += 1 + is_array
        node = self._keys(self._root)
        self._at += 1 + is_array
        if is_array:
            node = node.child(len(node.children), node.key)
        return node

    def _keys(self, node: _Node) -> _Node:
        """Parse a dotted key below a node, and return the node of its last part."""
        while found := _KEY.match(self._text, self._at):
            written = found[1]
            name = tomllib.loads(f"k={written}")["k"] if written[0] in "\"'" else written
            while node.children and isinstance(last := next(reversed(node.children)), int):
                # A header below one of an array of tables means its last table.
                node = node.children[last]
            node = node.child(name, found.span(1))
            self._at = found.end()
            if not self._has("."):
                break
        return node

    def _pair(self, table: _Node) -> None:
        node = self._keys(table)
        self._at += 1
        self._skip(_VOID)
        self._value(node)

    def _value(self, node: _Node) -> None:
        start = self._at
        match self._text[start : start + 1]:
            case "[":
                self._array(node)
            case "{":
                self._inline_table(node)
            case '"' | "'":
                self._skip(_STRING)
            case _:
                self._skip(_OTHER_VALUE)
        node.value = start, self._at

    def _array(self, node: _Node) -> None:
        self._at += 1
        while not self._closes("]"):
            item = node.child(len(node.children), (self._at, self._at))
            self._value(item)
            item.key = item.value

    def _inline_table(self, node: _Node) -> None:
        self._at += 1
        while not self._closes("}"):
            self._pair(node)

    def _closes(self, bracket: str) -> bool:
        """Skip the comma after an item; return True if the bracket follows, which is skipped, too."""
        self._skip(_VOID)
        if self._has(","):
            self._skip(_VOID)
        return self._has(bracket)

    def _has(self, text: str) -> bool:
        """Return True if this character is at the current position, which moves behind it."""
        is_there = self._text.startswith(text, self._at)
        self._at += is_there
        return is_there

    def _skip(self, pattern: re.Pattern[str]) -> None:
        found = pattern.match(self._text, self._at)
        if found is not None:
            self._at = found.end()


def _offsets(token: str, count: int) -> list[int]:
    """Return the positions in a string's token of its first characters, and of what follows them."""
    quotes = 3 if token.startswith(('"""', "'''")) and len(token) >= 6 else 1
    at, end = quotes, len(token) - quotes
    if quotes == 3 and token.startswith("\n", at):
        at += 1
    offsets: list[int] = []
    while at < end and len(offsets) < count:
        escape = _ESCAPE.match(token, at, end) if token[0] == '"' else None
        if escape is None or not escape[0][1:].isspace():
            offsets.append(at)
        at = at + 1 if escape is None else escape.end()
    return [*offsets, at]


class Mistake(msgspec.Struct, frozen=True):
    """A mistake in a file, or something that is probably one."""

    message: str
    place: Place

    def text(self, name: str) -> str:
        """Return `NAME:LINE:COLUMN: message`."""
        return f"{name}:{self.place.number}:{self.place.position + 1}: {self.message}"

    def excerpt(self) -> list[str]:
        """Return the line with carets under the mistake."""
        return with_carets(self.place.line, self.place.position, self.place.length)


class ProtocolFileError(KiebitzError):
    """A protocol file is invalid; the attributes describe its first mistake.

    Attributes:
        message: A sentence without the location.
        name: The file.
        line: Number of the line, from 1.
        column: Number of the column in characters, from 1.
        length: Number of wrong characters.
        all: All mistakes of the file.
    """

    is_usage = True

    def __init__(self, name: str, mistakes: Sequence[Mistake]) -> None:
        first = mistakes[0]
        self.message = first.message
        self.name = name
        self.line = first.place.number
        self.column = first.place.position + 1
        self.length = first.place.length
        self.all = tuple(mistakes)
        super().__init__(first.text(name))

    def excerpt(self) -> list[str]:
        """Return the first line with carets, and the number of further mistakes."""
        more = len(self.all) - 1
        further = [f"{more} more mistake{'s' if more > 1 else ''}: kiebitz protocols --check {self.name}"]
        return [*self.all[0].excerpt(), *(further if more else [])]
