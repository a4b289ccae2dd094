"""Diagnostics of messages in JSON: place by JSON path, expectation, suggestion.

The place in bytes is found only when a diagnostic is reported, as most notes are reported only once.

Parsers handle duplicate names within an object in different ways (RFC 8259, section 4). Here the last member
counts, as in `msgspec.json.decode`, which does not report duplicates.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Any

import msgspec

from kiebitz.dissectors.grammar.fields import MAX_QUOTED
from kiebitz.dissectors.grammar.grammar import (
    BLANKS,
    Decoded,
    Path,
    Place,
    Violation,
    error_at,
    nearest_word,
    sender_of,
    shortened,
    to_json,
    trimmed,
    unreadable,
)
from kiebitz.dissectors.grammar.json.layouts import JsonRow, Layout
from kiebitz.dissectors.grammar.json.scanner import Member, first_error, parse_places
from kiebitz.dissectors.grammar.json.types import Misfit, Remark, quoted
from kiebitz.dissectors.grammar.tokens import JSON_STRING
from kiebitz.dissectors.model import OPPOSITE, Direction, Severity
from kiebitz.dissectors.suggestions import with_suggestion

_ESCAPES = re.compile(rb"\\u[dD][89abAB]..\\u[dD][c-fC-F]..|(\\u[dD][89a-fA-F]..)|\\.")
"""Every escape; the group is a surrogate without its other half."""
_NUMBERS = re.compile(JSON_STRING + rb"|(-?[0-9][-+.0-9eE]*+)")

ESCAPED_COLON = rb"\u003"
"""The beginning of an escape that may be a colon."""


COMMON_CODES: Mapping[str, str] = MappingProxyType(
    {
        "charset": "not-utf-8",
        "empty-line": "empty-message",
        "missing-attribute": "missing-field",
        "not-one-message": "unknown-message",
        "surplus-attribute": "unknown-field",
        "utf-16": "not-utf-8",
    }
)
"""The codes that all formats of protocol files share, by those of JSON."""


class Conventions(msgspec.Struct, frozen=True, kw_only=True):
    """The rules of a protocol for its messages as a whole.

    Attributes:
        message: Description of a message.
        codes: Public codes of diagnostics, if they differ.
        allows_extensions: True if unknown messages are allowed unless their names look misspelt.
        json_clause: Clause of the specification about JSON.
        message_clause: Clause about what a message is.
        names_clause: Clause about the names of messages.
    """

    message: str = "a JSON object"
    codes: Mapping[str, str] = COMMON_CODES
    allows_extensions: bool = False
    json_clause: str | None = "RFC 8259"
    message_clause: str | None = None
    names_clause: str | None = None


def format_path(path: Path) -> str:
    """Return a path as it is written in a sentence: `$.Bauen.Ort[1].x`."""
    return "$" + "".join(map(_step, path))


def _step(step: str | int) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    return f".{step}" if step.isidentifier() and len(step) <= MAX_QUOTED else f"[{quoted(step)}]"


def _located(
    severity: Severity,
    code: str,
    text: str,
    expected: str | None,
    clause: str | None,
    path: Path,
    of_key: bool,
    habit: bool = False,
) -> Violation:
    """Return a diagnostic whose place in the bytes follows from a path."""

    def place_of(frame: bytes) -> Place:
        return parse_places(frame).place_of(path, of_key)

    return Violation(severity, "malformed", code, text, 0, 0, expected, clause, habit, place_of)


class Diagnostics:
    """The diagnostics of messages with this layout."""

    def __init__(self, conventions: Conventions, layout: Layout) -> None:
        self._conventions = conventions
        self._names, self._name_is_key = layout.names, layout.name_is_key

    def undecodable(self, frame: bytes, ended: bool = False) -> Decoded:
        """Return the diagnostic for bytes that are not JSON, or not complete."""
        clause = self._conventions.message_clause
        if not frame.strip(BLANKS):
            text = "an empty line between two messages is ignored, but some peers close the connection"
            return unreadable(Violation("note", "malformed", "empty-line", text, 0, len(frame), None, clause))
        # Characters missing at the end are missing before the line feed.
        body = frame.rstrip(b"\r\n")
        violation = (
            self._charset_error(frame, body)
            or (self._no_object(frame, None) if not frame.lstrip(BLANKS).startswith(b"{") else None)
            or self.syntax_error(body, ended)
            or self._limit_error(body)
        )
        return unreadable(violation)

    def _charset_error(self, frame: bytes, body: bytes) -> Violation | None:
        clause = self._conventions.message_clause
        if body.startswith(b"\xef\xbb\xbf"):
            text = "a byte order mark precedes the message"
            return error_at("byte-order-mark", text, (0, 3), "UTF-8 without a byte order mark", clause)
        if body.startswith((b"\xff\xfe", b"\xfe\xff")) or 1 < body.count(b"\0") >= len(body) / 3:
            return error_at("utf-16", "this looks like UTF-16", (0, len(frame)), "UTF-8", clause)
        try:
            body.decode()
        except UnicodeDecodeError as error:
            if error.reason == "unexpected end of data":
                # The message ends within a character.
                return None
            wrong = body[error.start : error.end]
            place = error.start, len(wrong)
            return error_at("charset", f"{wrong.hex(' ')} is not UTF-8", place, "UTF-8", clause)
        return None

    def syntax_error(self, body: bytes, ended: bool = False) -> Violation | None:
        """Return the first error of a text that is not JSON, None if there is none."""
        error = first_error(body)
        if error is None:
            return None
        code, text = "broken-json", f"{error.found} is unexpected here"
        if error.offset == len(body):
            text = "the message ends too early"
            if ended:
                code, text = "truncated", "the stream ends in the middle of a message"
        place = error.offset, error.length
        return error_at(code, text, place, error.expected, self._conventions.json_clause)

    def _limit_error(self, body: bytes) -> Violation:
        """Return the diagnostic for well-formed JSON that the decoder rejects."""
        found = next((half for half in _ESCAPES.finditer(body) if half[1]), None)
        if found is not None:
            text, expected = f"{found[1].decode()} is half of a surrogate pair", "the escapes of both halves"
        else:
            text, expected = "a number is too large", "a smaller number"
            found = next((number for number in _NUMBERS.finditer(body) if _is_too_large(number[1])), None)
        place = (found.start(1), len(found[1])) if found is not None else (0, len(body))
        return error_at("broken-json", text, place, expected, self._conventions.json_clause)

    def not_an_object(self, frame: bytes, value: Any) -> Decoded:
        """Return the diagnostic for a JSON value that is not an object."""
        return unreadable(self._no_object(frame, quoted(value)))

    def _no_object(self, frame: bytes, value: str | None) -> Violation:
        conventions = self._conventions
        found = value or f'"{frame.strip(BLANKS)[:MAX_QUOTED].decode(errors="replace")}"'
        text = f"{found} is not the beginning of a message"
        place = trimmed(frame, 0, len(frame))
        return error_at("no-object", text, place, conventions.message, conventions.message_clause)

    def misfit(self, row: JsonRow, error: Misfit, fields: dict[str, Any]) -> Decoded:
        """Return a message with a value that its row does not allow, and with its valid fields."""
        text = f"{self._place(row, error.path)}: {error.problem}"
        violation = _located("error", error.code, text, error.expected, row.clause, error.path, error.of_key)
        return Decoded(row, fields, to_json(fields), False, (violation,))

    def remarks_on(self, row: JsonRow, remarks: Iterable[Remark]) -> tuple[Violation, ...]:
        """Return notes on unusual parts of a valid message, one of each kind."""
        notes: dict[str, Violation] = {}
        for code, text, path, of_key in remarks:
            if code not in notes:
                text = f"{self._place(row, path)}: {text}"
                notes[code] = _located("note", code, text, None, row.clause, path, of_key, habit=True)
        return tuple(notes.values())

    def _place(self, row: JsonRow, path: Path) -> str:
        return format_path(path) if self._name_is_key else f"{row.name}: {format_path(path)}"

    def not_one_message(self, value: Mapping[str, Any], direction: Direction) -> Decoded:
        """Return the diagnostic for an object with no message or with several."""
        if value:
            # Report the first key that is no message; if all are, the second.
            wrong = next((key for key in value if key not in self._names[direction]), [*value][1])
            beside = next(key for key in value if key != wrong)
            path: Path = (wrong,)
            text = f'"{wrong[:MAX_QUOTED]}" is in the same object as "{beside[:MAX_QUOTED]}"'
        else:
            path, text = (), "this object contains no message"
        expected, clause = "one message in an object", self._conventions.message_clause
        return unreadable(
            _located("error", "not-one-message", text, expected, clause, path, of_key=bool(path))
        )

    def no_name(self, path: Path) -> Decoded:
        """Return the diagnostic for an object without a name at its path."""
        text = f"there is no message name at {'.'.join(map(str, path))}"
        clause = self._conventions.names_clause
        return unreadable(_located("error", "unknown-message", text, "a message name", clause, path, False))

    def unknown_message(self, sent: Any, direction: Direction, path: Path, of_key: bool) -> Decoded:
        """Return the diagnostic for an object with a name that is no message of this direction."""
        names = self._names[direction]
        near = (
            nearest_word(sent, [name for name in names if type(name) is str]) if type(sent) is str else None
        )
        shown = f'"{sent[:MAX_QUOTED]}"' if type(sent) is str else quoted(sent)
        text = f"{shown} is not a message that {sender_of(direction)} sends"
        severity: Severity = "error"
        if type(sent) in (str, int) and sent in self._names[OPPOSITE[direction]]:
            text += f", but {sender_of(OPPOSITE[direction])}"
        elif near is not None:
            text = with_suggestion(text, f'"{names[near]}"')
        elif self._conventions.allows_extensions:
            severity = "warning"
        expected = f"one of {', '.join(dict.fromkeys(names.values()))}" if names else None
        clause = self._conventions.names_clause
        return unreadable(_located(severity, "unknown-message", text, expected, clause, path, of_key))

    def layout_notes(self, frame: bytes) -> tuple[Violation, ...]:
        """Return notes on unusual blanks and line feeds around and within an object."""
        notes = []
        start, length = trimmed(frame, 0, len(frame))
        end = start + length
        if start:
            notes.append(("blanks", "there are blanks before the message", 0, start))
        inside = re.compile(rb"[\r\n]").search(frame, start, end)
        if inside is not None:
            text = "there is a line feed inside the message"
            notes.append(("line-feed-inside", text, inside.start(), 1))
        after = frame[end:]
        if after == b"\r\n":
            notes.append(("crlf", "the line ends in CR LF", end, 2))
        elif not after.endswith(b"\n"):
            notes.append(("no-line-feed", "no line feed follows the message", end, len(after)))
        elif after != b"\n":
            notes.append(("blanks", "there are blanks after the message", end, len(after) - 1))
        expected = "a line feed after each message, and nowhere else"
        clause = self._conventions.message_clause
        return tuple(
            Violation("note", "malformed", code, text, offset, length, expected, clause, habit=True)
            for code, text, offset, length in notes
        )


def _is_too_large(number: bytes | None) -> bool:
    try:
        msgspec.json.decode(number or b"0")
    except msgspec.ValidationError:
        return True
    return False


def duplicate_key(text: bytes, value: Any) -> Violation | None:
    """Return the diagnostic for the first name that an object repeats; None if all names are unique.

    Args:
        text: A valid JSON text, optionally with surrounding whitespace.
        value: The decoded value, which has only the last of several members with the same name.
    """
    # Each member has a colon, so a duplicate member that is missing from the value lowers its count.
    # Colons in strings count in both texts, unless escaped. Equal counts are thus sufficient, and cheap.
    with suppress(RecursionError):
        if ESCAPED_COLON not in text and to_json(value).count(":") == text.count(b":"):
            return None
    around: list[tuple[Iterator[Member], set[str | int]]] = [(iter(parse_places(text).members), set())]
    while around:
        members, names = around[-1]
        member = next(members, None)
        if member is None:
            around.pop()
            continue
        if member.key is not None and member.step in names:
            name = shortened(str(member.step), MAX_QUOTED)
            problem = f'"{name}" occurs twice in this object; the last value counts'
            return Violation(
                "warning",
                "malformed",
                "duplicate-key",
                f"{problem}, but some programs reject the message",
                *member.key,
                "each name once in an object",
                "RFC 8259, 4",
            )
        names.add(member.step)
        around.append((iter(member.value.members), set()))
    return None
