"""JSON with the place of each value, and the first error of a text that is not JSON.

Decoders report neither. A codec decodes with one of these, and scans only what is reported, shown or changed.
"""

from __future__ import annotations

import json
import re

import msgspec

from kiebitz.dissectors.grammar.patching import Path, Place
from kiebitz.dissectors.grammar.quoted_text import JSON_ESCAPE, quoted_text

DEPTH_LIMIT = 64
"""Maximum nesting depth of objects and lists."""

_BLANKS = re.compile(rb"[ \t\r\n]*+")
_TEXT = re.compile(quoted_text(r'"\x00-\x1f', JSON_ESCAPE).encode())
_ESCAPE = re.compile(rb"\\(?:u[0-9a-fA-F]{0,4})?")
_HALF = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\."
)
"""Every escape; the group is half of a surrogate pair."""

_NUMBER = re.compile(rb"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][-+]?[0-9]++)?")
_FRACTION_BEGUN = re.compile(rb"\.|[eE][-+]?")
_WORDS = (b"true", b"false", b"null")
_FOUND = re.compile(r"\w{1,20}")
_CONTROLS = {ord("\t"): "a tab", ord("\n"): "a line feed", ord("\r"): "a carriage return"}

_VALUE = "a value"
_A_NAME = "a name in quotes"
_STRING_END = "the rest of the string and its closing quote"
_NO_CONTROL = 'an escape such as "\\n" in place of a control character'
_AN_ESCAPE = 'one of "\\/bfnrtu after the backslash'
_A_HEX_DIGIT = "four hexadecimal digits"
_A_DIGIT = "a digit"
_NO_DEEPER = f"no more than {DEPTH_LIMIT} objects and lists inside each other"


class JsonMismatch(Exception):
    """The first error of a text: `length` bytes at `offset` are `found` where `expected` is required.

    `found` and `expected` are texts for people. At the end of the text, `length` is 0.
    """

    def __init__(self, offset: int, length: int, found: str, expected: str) -> None:
        super().__init__(f"{found} is unexpected here")
        self.offset = offset
        self.length = length
        self.found = found
        self.expected = expected


class Member(msgspec.Struct, frozen=True):
    """A member of an object or an item of a list: its step, where it begins, its value, and where it ends.

    It ends after the comma and the blanks that follow.
    """

    step: str | int
    start: int
    value: Node
    end: int

    @property
    def key(self) -> Place:
        """Range of the name of a member of an object, with its quotes, the colon and blanks."""
        return self.start, self.value.start - self.start


class Node(msgspec.Struct, frozen=True):
    """A value's range of bytes and the parts of an object or a list; `is_object` is True for an object."""

    start: int
    end: int
    members: tuple[Member, ...] = ()
    is_object: bool = False

    @property
    def place(self) -> Place:
        """Offset and length in bytes."""
        return self.start, self.end - self.start

    def member(self, step: str | int) -> Member | None:
        """Return the part of this step; of several the last, which counts."""
        return next((each for each in reversed(self.members) if each.step == step), None)

    def nearest(self, path: Path) -> tuple[Node, Member | None, int]:
        """Return the value at a path or the nearest around it, its member, and the number of steps to it."""
        node, found = self, None
        for number, step in enumerate(path):
            following = node.member(step)
            if following is None:
                return node, found, number
            node, found = following.value, following
        return node, found, len(path)


def scan(data: bytes, start: int = 0, end: int | None = None) -> Node:
    """Return the value in a range of bytes, which may have blanks around it. Raises JsonMismatch."""
    scanner = _Scanner(data, len(data) if end is None else end)
    node = scanner.value(scanner.skip(start), 0)
    rest = scanner.skip(node.end)
    if rest < scanner.end:
        raise scanner.error(rest, "nothing more")
    return node


class _Scanner:
    """A recursive parser of a range of bytes."""

    def __init__(self, data: bytes, end: int) -> None:
        self.data = data
        self.end = end

    def skip(self, at: int) -> int:
        """Return the offset after blanks."""
        return _end(_BLANKS, self.data, at, self.end)

    def value(self, at: int, depth: int) -> Node:
        byte = self._byte(at)
        if byte in (ord("{"), ord("[")):
            if depth == DEPTH_LIMIT:
                raise self.error(at, _NO_DEEPER)
            return self._container(at, depth + 1, byte == ord("{"))
        if byte == ord('"'):
            return Node(at, self._string(at))
        if byte == ord("-") or ord("0") <= byte <= ord("9"):
            return Node(at, self._number(at))
        for word in _WORDS:
            if byte == word[0]:
                begun = self.data[at : min(at + len(word), self.end)]
                if begun == word:
                    return Node(at, at + len(word))
                if word.startswith(begun):
                    raise self.error(self.end, f'"{word.decode()}"')
        raise self.error(at, _VALUE)

    def _container(self, start: int, depth: int, is_object: bool) -> Node:
        members: list[Member] = []
        closing = ord("}") if is_object else ord("]")
        at = self.skip(start + 1)
        if self._byte(at) == closing:
            return Node(start, at + 1, (), is_object)
        while True:
            begin = at
            step: str | int = len(members)
            if is_object:
                if self._byte(at) != ord('"'):
                    raise self.error(at, _A_NAME if members else f'{_A_NAME} or "}}"')
                at = self._string(at)
                step = str(json.loads(self.data[begin:at]))
                at = self.skip(at)
                if self._byte(at) != ord(":"):
                    raise self.error(at, '":"')
                at = self.skip(at + 1)
            node = self.value(at, depth)
            at = self.skip(node.end)
            byte = self._byte(at)
            if byte == ord(","):
                at = self.skip(at + 1)
            elif byte != closing:
                raise self.error(at, f'"," or "{chr(closing)}"')
            members.append(Member(step, begin, node, at))
            if byte == closing:
                return Node(start, at + 1, tuple(members), is_object)

    def _string(self, start: int) -> int:
        data = self.data
        at = _end(_TEXT, data, start + 1, self.end)
        if at >= self.end:
            raise self.error(self.end, _STRING_END)
        if data[at] == ord("\\"):
            escape = _end(_ESCAPE, data, at, self.end)
            raise self.error(escape, _A_HEX_DIGIT if escape > at + 1 else _AN_ESCAPE)
        if data[at] != ord('"'):
            raise self.error(at, _NO_CONTROL)
        try:
            data[start:at].decode()
        except UnicodeDecodeError as error:
            raise self.error(start + error.start, "UTF-8 text", error.end - error.start) from None
        for half in _HALF.finditer(data, start, at):
            if half[1]:
                found = f"{half[1].decode()}, half of a surrogate pair,"
                raise JsonMismatch(half.start(), len(half[1]), found, "the escapes of both halves")
        return at + 1

    def _number(self, start: int) -> int:
        number = _NUMBER.match(self.data, start, self.end)
        if number is None:
            raise self.error(start + 1, _A_DIGIT)
        begun = _FRACTION_BEGUN.match(self.data, number.end(), self.end)
        if begun is not None:
            raise self.error(begun.end(), _A_DIGIT)
        try:
            msgspec.json.decode(number[0])
        except msgspec.DecodeError:
            problem = "a number that is too large"
            raise JsonMismatch(start, len(number[0]), problem, "a smaller number") from None
        return number.end()

    def _byte(self, at: int) -> int:
        """Return the byte at an offset, 0 at the end."""
        return self.data[at] if at < self.end else 0

    def error(self, at: int, expected: str, length: int | None = None) -> JsonMismatch:
        """Return the error that the bytes at an offset are not as expected."""
        if length is not None:
            shown = self.data[at : at + length].hex(" ")
            return JsonMismatch(at, length, f"the byte sequence {shown}", expected)
        found, length = _describe(self.data, at, self.end)
        return JsonMismatch(at, length, found, expected)


def _describe(data: bytes, at: int, end: int) -> tuple[str, int]:
    """Return a description of the word, character or byte at `at`, and its length in bytes."""
    if at >= end:
        return "the end", 0
    text = data[at : min(at + 80, end)].decode("utf-8", "replace")
    if (word := _FOUND.match(text)) is not None:
        return f'"{word[0]}"', len(word[0].encode())
    byte, character = data[at], text[0]
    if byte < 0x20 or byte == 0x7F:
        return _CONTROLS.get(byte, f"control character 0x{byte:02x}"), 1
    if character == "\N{REPLACEMENT CHARACTER}" and not data.startswith(character.encode(), at):
        return f"byte 0x{byte:02x}", 1
    return ("a quotation mark" if character == '"' else f'"{character}"'), len(character.encode())


def _end(pattern: re.Pattern[bytes], data: bytes, at: int, end: int) -> int:
    """Return the end of a match at `at` of a pattern that also matches the empty string."""
    match = pattern.match(data, at, end)
    assert match is not None
    return match.end()
