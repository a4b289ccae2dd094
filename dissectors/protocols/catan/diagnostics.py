"""Diagnostics for frames that are not valid messages: location by JSON path, expectation, suggestion.

The location in bytes is computed only when a diagnostic is reported, as most notes are reported only once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from kiebitz.dissectors.grammar.grammar import Decoded, Violation, nearest_word, sender_of, unreadable
from kiebitz.dissectors.grammar.patching import Path, Place
from kiebitz.dissectors.grammar.quoted_text import JSON_STRING
from kiebitz.dissectors.model import OPPOSITE, Direction, Severity
from kiebitz.dissectors.protocols.catan.grammar import NAMES, Nachricht
from kiebitz.dissectors.protocols.catan.scanner import first_error, key_place_of, place_of
from kiebitz.dissectors.protocols.catan.values import InvalidValue, Remark, quoted
from kiebitz.dissectors.suggestions import with_suggestion

_FRAMING = "4 Hinweise zu JSON"
_GROUNDS = "2 Grundlagen"
_MESSAGE = '{"…":{…}} and a line feed'
_MAX_QUOTED = 40
_ESCAPES = re.compile(rb"\\u[dD][89abAB]..\\u[dD][c-fC-F]..|(\\u[dD][89a-fA-F]..)|\\.")
"""Every escape; the group is a surrogate without its other half."""
_NUMBERS = re.compile(JSON_STRING + rb"|(-?[0-9][-+.0-9eE]*+)")


def location(frame: bytes, path: Path, of_key: bool = False) -> tuple[int, int]:
    """Return offset and length in bytes of the value at a path, or of the key as its last step."""
    return key_place_of(frame, path) if of_key else place_of(frame, path)


def format_path(path: Path) -> str:
    """Return a path as it is written in a sentence: `$.Bauen.Ort[1].x`."""
    return "$" + "".join(map(_step, path))


def _step(step: str | int) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    return f".{step}" if step.isidentifier() and len(step) <= _MAX_QUOTED else f"[{quoted(step)}]"


def undecodable(frame: bytes, ended: bool = False) -> Decoded:
    """Return the diagnostic for bytes that are not JSON, or not complete."""
    if not frame.strip():
        text = "an empty line between two messages is ignored, but some peers close the connection"
        return unreadable(Violation("note", "malformed", "empty-line", text, 0, len(frame), None, _GROUNDS))
    # Characters missing at the end are missing before the line feed.
    body = frame.rstrip(b"\r\n")
    start = len(frame) - len(frame.lstrip())
    violation = (
        _charset_error(frame, body)
        or (_no_message(frame, None) if not frame.startswith(b"{", start) else None)
        or _syntax_error(body, ended)
        or _limit_error(body)
    )
    return unreadable(violation)


def _malformed(code: str, text: str, place: Place, expected: str, clause: str) -> Violation:
    return Violation("error", "malformed", code, text, *place, expected, clause)


def _charset_error(frame: bytes, body: bytes) -> Violation | None:
    if body.startswith(b"\xef\xbb\xbf"):
        text = "a byte order mark precedes the message"
        return _malformed("byte-order-mark", text, (0, 3), "UTF-8 without a byte order mark", _GROUNDS)
    if body.startswith((b"\xff\xfe", b"\xfe\xff")) or 1 < body.count(b"\0") >= len(body) / 3:
        return _malformed("utf-16", "this looks like UTF-16", (0, len(frame)), "UTF-8", _GROUNDS)
    try:
        body.decode()
    except UnicodeDecodeError as error:
        if error.reason == "unexpected end of data":
            # The message ends within a character.
            return None
        wrong = body[error.start : error.end]
        place = error.start, len(wrong)
        return _malformed("charset", f"{wrong.hex(' ')} is not UTF-8", place, "UTF-8", _GROUNDS)
    return None


def _syntax_error(body: bytes, ended: bool) -> Violation | None:
    error = first_error(body)
    if error is None:
        return None
    code, text = "broken-json", f"{error.found} is unexpected here"
    if error.offset == len(body):
        text = "the message ends too early"
        if ended:
            code, text = "truncated", "the stream ends in the middle of a message"
    return _malformed(code, text, (error.offset, error.length), error.expected, _FRAMING)


def _limit_error(body: bytes) -> Violation:
    """Return the diagnostic for well-formed JSON that the decoder rejects."""
    found = next((half for half in _ESCAPES.finditer(body) if half[1]), None)
    if found is not None:
        text, expected = f"{found[1].decode()} is half of a surrogate pair", "the escapes of both halves"
    else:
        text, expected = "a number is too large", "a smaller number"
        found = next((number for number in _NUMBERS.finditer(body) if _is_too_large(number[1])), None)
    place = (found.start(1), len(found[1])) if found is not None else (0, len(body))
    return _malformed("broken-json", text, place, expected, _FRAMING)


def _is_too_large(number: bytes | None) -> bool:
    try:
        msgspec.json.decode(number or b"0")
    except msgspec.ValidationError:
        return True
    return False


def not_an_object(frame: bytes, value: Any) -> Decoded:
    """Return the diagnostic for a JSON value that is not an object."""
    return unreadable(_no_message(frame, quoted(value)))


def _no_message(frame: bytes, value: str | None) -> Violation:
    start = len(frame) - len(frame.lstrip())
    found = value or f'"{frame.strip()[:_MAX_QUOTED].decode(errors="replace")}"'
    text = f"{found} is not the beginning of a message"
    return _malformed("no-object", text, (start, len(frame.strip())), _MESSAGE, _GROUNDS)


def not_one_message(value: Mapping[str, Any], direction: Direction) -> Decoded:
    """Return the diagnostic for an object with no message or with several (clause 2 requires one)."""
    if value:
        # Report the first key that is no message; if all are, the second.
        wrong = next((key for key in value if key not in NAMES[direction]), [*value][1])
        beside = next(key for key in value if key != wrong)
        path: Path = (wrong,)
        text = f'"{wrong[:_MAX_QUOTED]}" is in the same object as "{beside[:_MAX_QUOTED]}"'
    else:
        path, text = (), "this object contains no message"
    violation = Violation(
        "error", "malformed", "not-one-message", text, 0, 0, "one message in an object", _GROUNDS
    )
    return unreadable(_placed(violation, path, of_key=bool(path)))


def unknown_message(key: str, direction: Direction) -> Decoded:
    """Return the diagnostic for an object whose only key is no message of this direction."""
    names = NAMES[direction]
    near = nearest_word(key, names)
    text = f'"{key[:_MAX_QUOTED]}" is not a message that {sender_of(direction)} sends'
    # Clause 3 allows extensions, but not misspelt names.
    severity: Severity = "error"
    if key in NAMES[OPPOSITE[direction]]:
        text += f", but {sender_of(OPPOSITE[direction])}"
    elif near is not None:
        text = with_suggestion(text, f'"{names[near]}"')
    else:
        severity = "warning"
    expected = "one of " + ", ".join(dict.fromkeys(names.values()))
    violation = Violation(severity, "malformed", "unknown-message", text, 0, 0, expected, "3 Kompatibilität")
    return unreadable(_placed(violation, (key,), of_key=True))


def unfit_row(row: Nachricht, error: InvalidValue) -> Decoded:
    """Return the diagnostic for a message with a value that its row does not allow."""
    text = f"{format_path(error.path)}: {error.problem}"
    violation = Violation("error", "malformed", error.code, text, 0, 0, error.expected, row.clause)
    return Decoded(row, {}, "{}", False, (_placed(violation, error.path, error.of_key),))


def habit_notes(row: Nachricht, remarks: Iterable[Remark]) -> tuple[Violation, ...]:
    """Return notes on unusual parts of a valid message."""
    notes: dict[str, Violation] = {}
    for remark in remarks:
        text = f"{format_path(remark.path)}: {remark.text}"
        violation = Violation("note", "malformed", remark.code, text, 0, 0, None, row.clause, habit=True)
        # One of each kind is enough: habits are reported only once.
        notes.setdefault(remark.code, _placed(violation, remark.path, remark.of_key))
    return tuple(notes.values())


def layout_notes(frame: bytes) -> tuple[Violation, ...]:
    """Return notes on unusual blanks and line feeds around and within an object."""
    notes = []
    body = frame.strip()
    start = len(frame) - len(frame.lstrip())
    end = start + len(body)
    if start:
        notes.append(("blanks", "there are blanks before the message", 0, start))
    inside = re.search(rb"[\r\n]", body)
    if inside is not None:
        notes.append(
            ("line-feed-inside", "there is a line feed inside the message", start + inside.start(), 1)
        )
    after = frame[end:]
    if after == b"\r\n":
        notes.append(("crlf", "the line ends in CR LF", end, 2))
    elif not after.endswith(b"\n"):
        notes.append(("no-line-feed", "no line feed follows the message", end, len(after)))
    elif after != b"\n":
        notes.append(("blanks", "there are blanks after the message", end, len(after) - 1))
    expected = "a line feed after each message, and nowhere else"
    return tuple(
        Violation("note", "malformed", code, text, offset, length, expected, _GROUNDS, habit=True)
        for code, text, offset, length in notes
    )


def _placed(violation: Violation, path: Path, of_key: bool) -> Violation:
    """Return the diagnostic with its path; the location in bytes follows from that."""
    return Violation(
        violation.severity,
        violation.group,
        violation.code,
        violation.text,
        violation.offset,
        violation.length,
        violation.expected,
        violation.clause,
        violation.habit,
        lambda frame: location(frame, path, of_key),
    )
