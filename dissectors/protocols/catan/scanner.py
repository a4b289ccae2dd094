"""JSON's structure, byte by byte: where a value ends, where it is broken, and where a part of it stands.

The parsers at hand take a whole text and say little about a broken one. A stream has no whole texts, so
`Scanner` keeps its place in one that still grows: no byte of it is looked at again, however long it is and in
however small pieces it comes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

import msgspec

from kiebitz.dissectors.grammar.patching import Path, Place

DEPTH_LIMIT = 64
"""How many objects and lists may stand inside each other."""

_BLANKS = re.compile(rb"[ \t\r\n]*+")
_TEXT = {
    False: re.compile(rb'(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+'),
    True: re.compile(rb'(?:[^"\\]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+'),
}
"""What may stand in a string, without and with raw control characters."""
_ESCAPE_BEGUN = re.compile(rb"\\(?:u[0-9a-fA-F]{0,3}+)?+")
_OF_A_NUMBER = re.compile(rb"[-+.0-9eE]*+")
_NUMBER = re.compile(rb"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][-+]?[0-9]++)?")
_FRACTION_BEGUN = re.compile(rb"\.|[eE][-+]?")
_WORDS = {word[0]: word for word in (b"true", b"false", b"null")}
_CLOSING = {ord("{"): ord("}"), ord("["): ord("]")}
_FOUND = re.compile(r"\w{1,20}")
_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[\[\]{},]|[^ \t\r\n"\[\]{},:]++', re.DOTALL)
_CONTROLS = {ord("\t"): "a tab", ord("\n"): "a line feed", ord("\r"): "a carriage return"}

_State = Literal[
    "value", "value or end", "name", "name or end", "colon", "more", "string", "number", "done", "broken"
]
"""What the next byte is part of; *more* is a comma or the end of the object or list."""

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


class Broken(msgspec.Struct, frozen=True):
    """No JSON: at byte `offset` stands `found`, of `length` bytes, and `expected` should stand there.

    Both are words for a person to read. At the end of the data nothing stands, and `length` is 0.
    """

    offset: int
    length: int
    found: str
    expected: str


class Scanner:
    """Reads one JSON value in bytes that grow; `at` is the next byte to look at.

    Once the value `is_complete`, `at` is its end, and once it `is_broken`, the place of what is wrong.
    `raw_controls` lets control characters into strings, a line feed too, which JSON does not allow.
    """

    def __init__(self, at: int = 0, raw_controls: bool = False) -> None:
        self.at = at
        self._text = _TEXT[raw_controls]
        self._state: _State = "value"
        self._open = bytearray()
        """What will close the objects and lists that have begun."""
        self._is_name = False
        """Whether the string that has begun is the name of a member."""
        self._number = 0
        """Where the number begins that has begun."""
        self._expected = ""
        """What should stand at `at`, once it is broken."""

    @property
    def is_complete(self) -> bool:
        return self._state == "done"

    @property
    def is_broken(self) -> bool:
        return self._state == "broken"

    def expects_value(self, at: int) -> bool:
        """Whether all before `at` is read, and a value may stand there."""
        return self.at == at and self._state in ("value", "value or end")

    def scan(self, data: bytes | bytearray, end: int) -> None:
        """Read on, up to `end`: no byte from there on is looked at."""
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
                # A word or an escape is cut here.
                return
            state = self._state

    def expected_at_end(self, data: bytes) -> str | None:
        """What should still come if this is all; None if the value can be complete."""
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
        """What may stand where the next token begins."""
        return f'"," or "{chr(self._open[-1])}"' if self._state == "more" else _EXPECTED[self._state]

    def _take(self, byte: int, data: bytes | bytearray, end: int) -> None:
        """Take the token that begins with `byte`."""
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
        """See whether what stands up to `end` is a number."""
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


def first_error(data: bytes) -> Broken | None:
    """What is wrong first; None if this is one value with nothing but blanks around it."""
    scanner = Scanner()
    scanner.scan(data, len(data))
    expected = scanner.expected_at_end(data)
    at = scanner.at if scanner.is_broken else len(data)
    if expected is None:
        at = _end(_BLANKS, data, scanner.at, len(data))
        if at == len(data):
            return None
        expected = _EXPECTED["done"]
    found, length = _what_stands(data, at)
    return Broken(at, length, found, expected)


def place_of(data: bytes, path: Sequence[str | int]) -> Place:
    """Where in a valid object the value at a path stands: names of members, and numbers of list items from 0.

    Of members with the same name the last counts. If there is none, the value nearest to it that encloses it.
    """
    return _nearest(data, path)[1]


def key_place_of(data: bytes, path: Sequence[str | int]) -> Place:
    """Where the name of the member at a path stands, its quotes too.

    What is not there, or has no name, is in the place that `place_of` gives.
    """
    name, value = _nearest(data, path)
    return name or value


def places_of(data: bytes, paths: Iterable[Path]) -> dict[Path, Place]:
    """Where in a valid object the values at these paths stand, and those around them, if they are there.

    However many there are, the data is read as often as a path has steps, and not more often.
    """
    return {path: value for path, (_, value) in _find(data, [*paths]).items()}


def _nearest(data: bytes, path: Sequence[str | int]) -> tuple[Place | None, Place]:
    """The name, if it has one, and the value at a path, or of what encloses it the value only."""
    whole = tuple(path)
    found = _find(data, [whole])
    longest = max(found, key=len)
    name, value = found[longest]
    return name if longest == whole else None, value


def _find(data: bytes, paths: Sequence[Path]) -> dict[Path, tuple[Place | None, Place]]:
    """The names, if they have one, and the values at these paths and around them, if they are there."""
    start = _end(_BLANKS, data, 0, len(data))
    found: dict[Path, tuple[Place | None, Place]] = {
        (): (None, (start, len(data.rstrip(b" \t\r\n")) - start))
    }
    for steps in range(1, max(map(len, paths), default=0) + 1):
        wanted = {path[:steps] for path in paths if len(path) >= steps}
        for around in {path[:-1] for path in wanted} & found.keys():
            begin = found[around][1][0]
            is_object = data.startswith(b"{", begin)
            if not is_object and not data.startswith(b"[", begin):
                continue
            for number, member in enumerate(_members(data, begin)):
                path = (*around, name_at(data, member[0]) if is_object else number)
                if path in wanted:
                    found[path] = (member[0] if is_object else None, member[-1])
    return found


def _members(data: bytes, start: int) -> Iterator[Sequence[Place]]:
    """Of the object or list that begins at `start`: each member's name and value, or each item's value."""
    depth = begun = 0
    places: list[Place] = []
    for token in _TOKEN.finditer(data, start):
        at, end = token.span()
        byte = data[at]
        if byte in b"{[":
            if depth == 1:
                begun = at
            depth += 1
        elif byte in b"}]":
            depth -= 1
            if depth == 0:
                break
            if depth == 1:
                places.append((begun, end - begun))
        elif depth == 1:
            if byte == ord(","):
                yield places
                places = []
            else:
                places.append((at, end - at))
    if places:
        yield places


def tokens(data: bytes, upto: int) -> Iterator[Place]:
    """Where the strings, brackets, commas, numbers and words of JSON stand that is valid up to an offset."""
    end = 0
    for token in _TOKEN.finditer(data):
        # A quotation mark that is no part of a token begins a string without an end.
        if token.end() > upto or data.find(b'"', end, token.start()) >= 0:
            return
        end = token.end()
        yield token.start(), end - token.start()


def name_at(data: bytes, place: Place) -> str:
    """What the string says that stands there."""
    text = data[place[0] : place[0] + place[1]].decode("utf-8", "replace")
    return str(json.loads(text)) if "\\" in text else text[1:-1]


def _what_stands(data: bytes, at: int) -> tuple[str, int]:
    """The word, character or byte at `at` as it can be told, and its length in bytes."""
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
    """Where a pattern that matches anywhere ends, if it begins at `at`."""
    match = pattern.match(data, at, end)
    assert match is not None
    return match.end()
