"""What is wrong in a frame: where it stands, by its JSON path, what belongs there, and what was meant.

Where in the bytes that is, is worked out when it is told: most remarks are told only once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from kiebitz.dissectors.grammar.grammar import Decoded, Flaw, nearest_word, sender_of, unreadable
from kiebitz.dissectors.grammar.patching import Path, Place
from kiebitz.dissectors.model import OPPOSITE, Direction, Severity
from kiebitz.dissectors.protocols.catan.grammar import NAMES, Nachricht
from kiebitz.dissectors.protocols.catan.scanner import first_error, key_place_of, place_of
from kiebitz.dissectors.protocols.catan.values import Remark, Unfit, shown
from kiebitz.dissectors.suggestions import with_suggestion

_FRAMING = "4 Hinweise zu JSON"
_GROUNDS = "2 Grundlagen"
_MESSAGE = '{"…":{…}} and a line feed'
_MAX_QUOTED = 40
_ESCAPES = re.compile(rb"\\u[dD][89abAB]..\\u[dD][c-fC-F]..|(\\u[dD][89a-fA-F]..)|\\.")
"""Each escape; the half of a character that stands alone is the group."""
_NUMBERS = re.compile(rb'"(?:[^"\\]++|\\.)*+"|(-?[0-9][-+.0-9eE]*+)')


def where(frame: bytes, path: Path, of_key: bool = False) -> tuple[int, int]:
    """Offset and length in bytes of the value at a path, or of the key that is the path's last step."""
    return key_place_of(frame, path) if of_key else place_of(frame, path)


def spoken(path: Path) -> str:
    """A path as it is written in a sentence: `$.Bauen.Ort[1].x`."""
    return "$" + "".join(map(_step, path))


def _step(step: str | int) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    return f".{step}" if step.isidentifier() and len(step) <= _MAX_QUOTED else f"[{shown(step)}]"


def broken(frame: bytes, ended: bool = False) -> Decoded:
    """Bytes that are no JSON, or are not all of it."""
    if not frame.strip():
        text = "an empty line between two messages is ignored; some peers close the connection then"
        return unreadable(Flaw("note", "malformed", "empty-line", text, 0, len(frame), None, _GROUNDS))
    # What is missing at the end is missing before the line feed.
    body = frame.rstrip(b"\r\n")
    start = len(frame) - len(frame.lstrip())
    flaw = (
        _of_the_charset(frame, body)
        or (_no_message(frame, None) if not frame.startswith(b"{", start) else None)
        or _of_the_structure(body, ended)
        or _beyond_limits(body)
    )
    return unreadable(flaw)


def _malformed(code: str, text: str, place: Place, expected: str, clause: str) -> Flaw:
    return Flaw("error", "malformed", code, text, *place, expected, clause)


def _of_the_charset(frame: bytes, body: bytes) -> Flaw | None:
    if body.startswith(b"\xef\xbb\xbf"):
        text = "a byte order mark stands before the message"
        return _malformed("byte-order-mark", text, (0, 3), "UTF-8 without a byte order mark", _GROUNDS)
    if body.startswith((b"\xff\xfe", b"\xfe\xff")) or 1 < body.count(b"\0") >= len(body) / 3:
        return _malformed("utf-16", "this looks like UTF-16", (0, len(frame)), "UTF-8", _GROUNDS)
    try:
        body.decode()
    except UnicodeDecodeError as error:
        if error.reason == "unexpected end of data":
            # It breaks off in a character.
            return None
        wrong = body[error.start : error.end]
        place = error.start, len(wrong)
        return _malformed("charset", f"{wrong.hex(' ')} is no UTF-8", place, "UTF-8", _GROUNDS)
    return None


def _of_the_structure(body: bytes, ended: bool) -> Flaw | None:
    error = first_error(body)
    if error is None:
        return None
    code, text = "broken-json", f"{error.found} stands here"
    if error.offset == len(body):
        text = "the message breaks off here"
        if ended:
            code, text = "truncated", "the stream ends in the middle of a message"
    return _malformed(code, text, (error.offset, error.length), error.expected, _FRAMING)


def _beyond_limits(body: bytes) -> Flaw:
    """What is JSON by its structure, and is not taken all the same."""
    found = next((half for half in _ESCAPES.finditer(body) if half[1]), None)
    if found is not None:
        text, expected = f"{found[1].decode()} is half a character", "the escapes of both halves"
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


def no_message(frame: bytes, value: Any) -> Decoded:
    """Something else than an object."""
    return unreadable(_no_message(frame, shown(value)))


def _no_message(frame: bytes, value: str | None) -> Flaw:
    start = len(frame) - len(frame.lstrip())
    found = value or f'"{frame.strip()[:_MAX_QUOTED].decode(errors="replace")}"'
    text = f"{found} stands where a message begins"
    return _malformed("no-object", text, (start, len(frame.strip())), _MESSAGE, _GROUNDS)


def not_one_message(value: Mapping[str, Any], direction: Direction) -> Decoded:
    """An object with no message in it, or with several: clause 2 has one."""
    if value:
        # The first that is no message; of several messages, the second.
        wrong = next((key for key in value if key not in NAMES[direction]), [*value][1])
        beside = next(key for key in value if key != wrong)
        path: Path = (wrong,)
        text = f'"{wrong[:_MAX_QUOTED]}" stands beside "{beside[:_MAX_QUOTED]}"'
    else:
        path, text = (), "there is no message in this object"
    flaw = Flaw("error", "malformed", "not-one-message", text, 0, 0, "one message in an object", _GROUNDS)
    return unreadable(_placed(flaw, path, of_key=bool(path)))


def unknown_message(key: str, direction: Direction) -> Decoded:
    """An object whose one key is no message of this direction."""
    names = NAMES[direction]
    near = nearest_word(key, names)
    text = f'"{key[:_MAX_QUOTED]}" is no message that {sender_of(direction)} sends'
    # Clause 3 allows extensions, but no slips.
    severity: Severity = "error"
    if key in NAMES[OPPOSITE[direction]]:
        text += f", but {sender_of(OPPOSITE[direction])}"
    elif near is not None:
        text = with_suggestion(text, f'"{names[near]}"')
    else:
        severity = "warning"
    expected = "one of " + ", ".join(dict.fromkeys(names.values()))
    flaw = Flaw(severity, "malformed", "unknown-message", text, 0, 0, expected, "3 Kompatibilität")
    return unreadable(_placed(flaw, (key,), of_key=True))


def unfit_row(row: Nachricht, error: Unfit) -> Decoded:
    """A message with something in it that its row does not allow."""
    text = f"{spoken(error.path)}: {error.problem}"
    flaw = Flaw("error", "malformed", error.code, text, 0, 0, error.expected, row.clause)
    return Decoded(row, {}, "{}", False, (_placed(flaw, error.path, error.of_key),))


def harmless(row: Nachricht, remarks: Iterable[Remark]) -> tuple[Flaw, ...]:
    """Notes on what is unusual in a message that is valid."""
    notes: dict[str, Flaw] = {}
    for remark in remarks:
        text = f"{spoken(remark.path)}: {remark.text}"
        flaw = Flaw("note", "malformed", remark.code, text, 0, 0, None, row.clause, habit=True)
        # One of each kind will do: the others are told no more, either.
        notes.setdefault(remark.code, _placed(flaw, remark.path, remark.of_key))
    return tuple(notes.values())


def layout_notes(frame: bytes) -> tuple[Flaw, ...]:
    """What is unusual around and between the parts of an object."""
    notes = []
    body = frame.strip()
    start = len(frame) - len(frame.lstrip())
    end = start + len(body)
    if start:
        notes.append(("blanks", "there are blanks before the message", 0, start))
    inside = re.search(rb"[\r\n]", body)
    if inside is not None:
        notes.append(("line-feed-inside", "a line feed stands inside the message", start + inside.start(), 1))
    after = frame[end:]
    if after == b"\r\n":
        notes.append(("crlf", "the line ends in CR LF", end, 2))
    elif not after.endswith(b"\n"):
        notes.append(("no-line-feed", "no line feed follows the message", end, len(after)))
    elif after != b"\n":
        notes.append(("blanks", "there are blanks after the message", end, len(after) - 1))
    expected = "a line feed after each message, and nowhere else"
    return tuple(
        Flaw("note", "malformed", code, text, offset, length, expected, _GROUNDS, habit=True)
        for code, text, offset, length in notes
    )


def _placed(flaw: Flaw, path: Path, of_key: bool) -> Flaw:
    """The same flaw at a path; its place in the bytes follows from that."""
    return Flaw(
        flaw.severity,
        flaw.group,
        flaw.code,
        flaw.text,
        flaw.offset,
        flaw.length,
        flaw.expected,
        flaw.clause,
        flaw.habit,
        lambda frame: where(frame, path, of_key),
    )
