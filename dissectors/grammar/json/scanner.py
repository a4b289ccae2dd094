"""JSON's structure, byte by byte: the end of a value, its first error, and the location of its parts.

The available parsers need a whole text and report little about a broken one. `Scanner` keeps its position in
a text that still grows, so no byte is examined twice, however long the text and however small its pieces.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

import msgspec

from kiebitz.dissectors.grammar.grammar import Path, Place
from kiebitz.dissectors.grammar.lenient import AS_WRITTEN, Spellings
from kiebitz.dissectors.grammar.tokens import JSON_ESCAPE, JSON_STRING, quoted_text

DEPTH_LIMIT = 64
"""Maximum nesting depth of objects and lists."""

_BLANKS = re.compile(rb"[ \t\r\n]*+")
_TEXT = {
    False: re.compile(quoted_text(r'"\x00-\x1f', JSON_ESCAPE).encode()),
    True: re.compile(quoted_text('"', JSON_ESCAPE).encode()),
}
"""The contents of a string, without and with raw control characters."""
_ESCAPE_BEGUN = re.compile(rb"\\(?>(?:u[0-9a-fA-F]{0,3}+)?)")
_OF_A_NUMBER = re.compile(rb"[-+.0-9eE]*+")
_NUMBER = re.compile(rb"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][-+]?[0-9]++)?")
_FRACTION_BEGUN = re.compile(rb"\.|[eE][-+]?")
_WORDS = {word[0]: word for word in (b"true", b"false", b"null")}
_CLOSING = {ord("{"): ord("}"), ord("["): ord("]")}
_FOUND = re.compile(r"\w{1,20}")
_TOKEN = re.compile(JSON_STRING + rb'|[\[\]{},]|[^ \t\r\n"\[\]{},:]++', re.DOTALL)
_CONTROLS = {ord("\t"): "a tab", ord("\n"): "a line feed", ord("\r"): "a carriage return"}

_State = Literal[
    "value", "value or end", "name", "name or end", "colon", "more", "string", "number", "done", "broken"
]
"""The token that the next byte belongs to; *more* is a comma or the end of the object or list."""

_EXPECTED: dict[_State, str] = {
    "value": "a value",
    "value or end": 'a value or "]"',
    "name": "a name in quotes",
    "name or end": 'a name in quotes or "}"',
    "colon": '":"',
    "string": "the rest of the string and its closing quote",
    "done": "nothing more",
}
_A_DIGIT = "a digit"
_NO_CONTROL = 'an escape such as "\\n" in place of a control character'
_AN_ESCAPE = 'one of "\\/bfnrtu after the backslash'
_A_HEX_DIGIT = "four hexadecimal digits"
_NO_DEEPER = f"no more than {DEPTH_LIMIT} objects and lists inside each other"


class SyntaxProblem(msgspec.Struct, frozen=True):
    """A syntax error: at byte `offset` there is `found`, of `length` bytes, where `expected` is required.

    Both are texts for people. At the end of the data, `length` is 0.
    """

    offset: int
    length: int
    found: str
    expected: str


class Scanner:
    """A scanner of one JSON value in growing data; `at` is the next byte to examine.

    Once the value `is_complete`, `at` is its end; once it `is_broken`, the offset of the error.
    `raw_controls` allows control characters in strings, including line feeds, which JSON does not.
    """

    def __init__(self, at: int = 0, raw_controls: bool = False) -> None:
        self.at = at
        self._text = _TEXT[raw_controls]
        self._state: _State = "value"
        self._open = bytearray()
        """The closing brackets of the open objects and lists."""
        self._is_name = False
        """True if the current string is a member's name."""
        self._number = 0
        """Offset of the current number."""
        self._expected = ""
        """Expected text at `at`, once the object is invalid."""

    @property
    def is_complete(self) -> bool:
        """True if a whole value was read."""
        return self._state == "done"

    @property
    def is_broken(self) -> bool:
        """True if the text so far is not valid."""
        return self._state == "broken"

    def expects_value(self, at: int) -> bool:
        """Return True if everything before `at` is read and a value may follow."""
        return self.at == at and self._state in ("value", "value or end")

    def scan(self, data: bytes | bytearray, end: int) -> None:
        """Continue up to `end`; no byte from there on is examined."""
        state = self._state
        while self.at < end and state not in ("done", "broken"):
            before = self.at
            if state == "string":
                self._take_text(data, end)
            elif state == "number":
                self._take_number(data, end)
            else:
                byte = data[before]
                if byte in b" \t\r\n":
                    self.at = _end(_BLANKS, data, before, end)
                else:
                    self._take(byte, data, end)
            if self.at == before and state == self._state:
                # A word or an escape is incomplete.
                return
            state = self._state

    def expected_at_end(self, data: bytes) -> str | None:
        """Return what is missing if the data ends here; None if the value may be complete."""
        if self._state == "number":
            self._end_number(data, len(data))
        if self._state == "broken":
            return self._expected
        if self._state == "done":
            return None
        if self.at < len(data) and self._state == "string":
            return _A_HEX_DIGIT if self.at + 1 < len(data) else _AN_ESCAPE
        if self.at < len(data):
            return f'"{_WORDS[data[self.at]].decode()}"'
        return self._wanted()

    def _wanted(self) -> str:
        return f'"," or "{chr(self._open[-1])}"' if self._state == "more" else _EXPECTED[self._state]

    def _take(self, byte: int, data: bytes | bytearray, end: int) -> None:
        state = self._state
        if state in ("value", "value or end"):
            if byte != ord("]") or state == "value":
                self._take_value(byte, data, end)
                return
        elif state in ("name", "name or end"):
            if byte == ord('"'):
                self._begin_string(True)
                return
        elif state == "colon":
            if byte == ord(":"):
                self._go_on("value")
                return
        elif byte == ord(","):
            self._go_on("name" if self._open[-1] == ord("}") else "value")
            return
        if state in ("value or end", "name or end", "more") and byte == self._open[-1]:
            self._open.pop()
            self._go_on("more" if self._open else "done")
        else:
            self._break(self.at, self._wanted())

    def _take_value(self, byte: int, data: bytes | bytearray, end: int) -> None:
        if byte == ord('"'):
            self._begin_string(False)
        elif byte in _CLOSING:
            if len(self._open) == DEPTH_LIMIT:
                self._break(self.at, _NO_DEEPER)
                return
            self._open.append(_CLOSING[byte])
            self._go_on("name or end" if byte == ord("{") else "value or end")
        elif byte in b"-0123456789":
            self._number = self.at
            self._state = "number"
        else:
            word = _WORDS.get(byte, b"")
            begun = data[self.at : min(self.at + len(word), end)]
            if not word or not word.startswith(begun):
                self._break(self.at, self._wanted())
            elif len(begun) == len(word):
                self._go_on(self._after_value(), len(word))

    def _begin_string(self, is_name: bool) -> None:
        self._is_name = is_name
        self._go_on("string")

    def _take_text(self, data: bytes | bytearray, end: int) -> None:
        self.at = at = _end(self._text, data, self.at, end)
        if at == end:
            return
        if data[at] == ord('"'):
            self._go_on("colon" if self._is_name else self._after_value())
        elif data[at] == ord("\\"):
            escape = _end(_ESCAPE_BEGUN, data, at, end)
            if escape < end:
                self._break(escape, _A_HEX_DIGIT if escape > at + 1 else _AN_ESCAPE)
        else:
            self._break(at, _NO_CONTROL)

    def _take_number(self, data: bytes | bytearray, end: int) -> None:
        self.at = _end(_OF_A_NUMBER, data, self.at, end)
        if self.at < end:
            self._end_number(data, self.at)

    def _end_number(self, data: bytes | bytearray, end: int) -> None:
        number = _NUMBER.match(data, self._number, end)
        upto = number.end() if number is not None else self._number + 1
        begun = _FRACTION_BEGUN.match(data, upto, end)
        self._state = self._after_value()
        if number is None:
            self._break(upto, _A_DIGIT)
        elif begun is not None:
            self._break(begun.end(), _A_DIGIT)
        elif upto < end:
            self._break(upto, self._wanted())

    def _after_value(self) -> _State:
        return "more" if self._open else "done"

    def _go_on(self, state: _State, length: int = 1) -> None:
        self.at += length
        self._state = state

    def _break(self, at: int, expected: str) -> None:
        self.at = at
        self._expected = expected
        self._state = "broken"


def first_error(data: bytes) -> SyntaxProblem | None:
    """Return the first error; None if the data is one value with only blanks around it."""
    scanner = Scanner()
    scanner.scan(data, len(data))
    expected = scanner.expected_at_end(data)
    at = scanner.at if scanner.is_broken else len(data)
    if expected is None:
        at = _end(_BLANKS, data, scanner.at, len(data))
        if at == len(data):
            return None
        expected = _EXPECTED["done"]
    found, length = _describe_token(data, at)
    return SyntaxProblem(at, length, found, expected)


class Node(msgspec.Struct):
    """A value of a JSON text, with its members; scalars have none.

    If the text is broken within it, it has the members before the error; the last may be a name only.

    Attributes:
        start: Offset of its first byte.
        end: Offset after its last byte.
        inside: Offset of the first token after its bracket.
        after: Offset of the next token but a comma, if there is one.
        members: Members of an object, items of a list.
        is_complete: True if it has an end.
    """

    start: int
    end: int
    inside: int = 0
    after: int = 0
    members: list[Member] = []
    is_complete: bool = True

    @property
    def place(self) -> Place:
        """Offset and length in bytes."""
        return self.start, self.end - self.start

    def add(self, value: Node, data: bytes, key: Place | None) -> None:
        """Add an item, or a member with the name at `key`."""
        step = len(self.members) if key is None else name_at(data, key)
        self.members.append(Member(step, value, key))

    def end_member(self, at: int) -> None:
        """End the last member, if there is one, before a token in this object or list."""
        if self.members:
            self.members[-1].value.after = at
        else:
            self.inside = at

    def place_of(self, path: Path, of_key: bool = False, spellings: Spellings = AS_WRITTEN) -> Place:
        """Return the place of the value at a path, or of its name; if there is none, of the nearest value.

        Of members with the same name the last counts. Names may have other `spellings`.
        """
        node, key = self, None
        for step in path:
            names = spellings.of((step,)) if isinstance(step, str) else (step,)
            found = next((member for member in reversed(node.members) if member.step in names), None)
            if found is None:
                return node.place
            node, key = found.value, found.key
        return key if of_key and key is not None else node.place


class Member(NamedTuple):
    """A member of an object or an item of a list; an item has no `key`, the place of the name."""

    step: str | int
    value: Node
    key: Place | None

    @property
    def start(self) -> int:
        """Offset of its first byte."""
        return self.value.start if self.key is None else self.key[0]


def parse_places(data: bytes, upto: int | None = None) -> Node:
    """Return the values of a JSON text with their places, as far as it is valid, and up to an offset."""
    start = _end(_BLANKS, data, 0, len(data))
    root = Node(start, len(data.rstrip(b" \t\r\n")))
    around: list[Node] = []
    key: Place | None = None
    last = 0
    for at, length in _tokens(data, len(data) if upto is None else upto):
        byte, last = data[at], at + length
        if around and key is None:
            around[-1].end_member(last if byte == ord(",") else at)
        if byte == ord(","):
            continue
        if byte in _CLOSING.values():
            if around:
                node = around.pop()
                node.end = node.after = last
                node.is_complete = True
            if not around:
                break
            continue
        if around and key is None and data[around[-1].start] == ord("{"):
            key = at, length
            continue
        node = Node(at, last, last, last)
        if around:
            around[-1].add(node, data, key)
            key = None
        else:
            root = node
        if byte in _CLOSING:
            node.end, node.is_complete = len(data), False
            around.append(node)
        elif not around:
            break
    if around and key is not None:
        around[-1].add(Node(last, last, is_complete=False), data, key)
    return root


def _tokens(data: bytes, upto: int) -> Iterator[Place]:
    """Yield the locations of strings, brackets, commas, numbers and words in JSON, valid up to an offset."""
    end = 0
    for token in _TOKEN.finditer(data):
        # A quotation mark outside a token begins an unterminated string.
        if token.end() > upto or data.find(b'"', end, token.start()) >= 0:
            return
        end = token.end()
        yield token.start(), end - token.start()


def name_at(data: bytes, place: Place) -> str:
    """Return the text of the string at a location."""
    text = data[place[0] : place[0] + place[1]].decode("utf-8", "replace")
    if "\\" in text:
        try:
            return str(json.loads(text))
        except ValueError:
            # The text is broken elsewhere, too, or this is no string.
            pass
    return text[1:-1]


def as_sent(names: Iterable[str]) -> frozenset[bytes]:
    """Return names as they are sent: in UTF-8, and with the escapes that most programs write."""
    return frozenset(
        json.dumps(name, ensure_ascii=escaped)[1:-1].encode() for name in names for escaped in (False, True)
    )


def _describe_token(data: bytes, at: int) -> tuple[str, int]:
    """Return a description of the word, character or byte at `at`, and its length in bytes."""
    if at >= len(data):
        return "the end", 0
    text = data[at : at + 80].decode("utf-8", "replace")
    if (word := _FOUND.match(text)) is not None:
        return f'"{word[0]}"', len(word[0].encode())
    byte = data[at]
    character = text[0]
    if byte < 0x20 or byte == 0x7F:
        return _CONTROLS.get(byte, f"control character 0x{byte:02x}"), 1
    if character == "\N{REPLACEMENT CHARACTER}" and not data.startswith(character.encode(), at):
        return f"byte 0x{byte:02x}", 1
    return ("a quotation mark" if character == '"' else f'"{character}"'), len(character.encode())


def _end(pattern: re.Pattern[bytes], data: bytes | bytearray, at: int, end: int) -> int:
    """Return the end of a match at `at` of a pattern that also matches the empty string."""
    match = pattern.match(data, at, end)
    assert match is not None
    return match.end()
