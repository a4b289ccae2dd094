"""Violations of the grammar in a Paket: the line, the EBNF's expectation, and a suggestion.

Only the first violation of a Paket is reported, in the order of its bytes: further ones are often only its
consequences.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from kiebitz.dissectors.grammar.fields import unknown_word
from kiebitz.dissectors.grammar.grammar import (
    Decoded,
    MessageType,
    Violation,
    count_of_fields,
    nearest_word,
    sender_of,
    to_json,
    unreadable,
)
from kiebitz.dissectors.model import DIRECTIONS, Direction, Severity
from kiebitz.dissectors.protocols.schafkopf.grammar import (
    END,
    GRAMMAR,
    MODEL_FLAG,
    MODEL_LINES,
    Word,
    line_count,
    notation,
    production,
    terminals,
)
from kiebitz.dissectors.protocols.schafkopf.paket import WrongLines, first_wrong, place_of, valid_fields
from kiebitz.dissectors.suggestions import with_suggestion

_MAX_QUOTED = 40

_FLAGS = {direction: tuple(f"!{name}" for name in GRAMMAR.names(direction)) for direction in DIRECTIONS}


# Between two Pakete.


def unknown_lines(frame: bytes, lines: Sequence[str], direction: Direction) -> Decoded:
    """Decode lines without a known flag, with a suggestion."""
    line = lines[0]
    if line == END and len(lines) == 1:
        return _ignored(frame, "stray-end", f"{END} without a message before it is ignored")
    if line == "" and len(lines) == 1:
        return _ignored(frame, "empty-line", "an empty line between two messages is ignored")
    expected = any_flag(direction)
    _, length = place_of(frame, 0)
    severity: Severity = "error"
    code = "unknown-flag"
    flags = _FLAGS[direction]
    first = re.match(r"!?\w*", line)
    near = nearest_word(line, flags) or nearest_word(f"!{line}", flags)
    if near is None and first is not None and first[0] in flags:
        near = first[0]
    merged = next((flag for flag in flags if line.endswith(flag)), None)
    if line.startswith("\ufeff"):
        code, problem, length = "byte-order-mark", "a byte order mark is no part of a flag", 3
    elif line.count("\0") > 1 and 3 * line.count("\0") >= len(line):
        code, problem = "utf-16", "there are NULs between the letters: is this UTF-16?"
    elif line in MODEL_FLAG.words:
        problem = f'"{line}" is the flag of a MODEL, but there is no !MODEL before it'
    elif near is not None:
        problem = with_suggestion(f'"{line[:_MAX_QUOTED]}" is not a flag', near)
    elif merged is not None:
        problem = f'in "{line[-_MAX_QUOTED:]}" {merged} begins without a line of its own'
    elif line.startswith("!"):
        # Real peers ignore unknown flags, and a later release may have more of them.
        severity = "note"
        sender = sender_of(direction)
        problem = f'"{line[:_MAX_QUOTED]}" is not a flag that {sender} sends; it is ignored up to its {END}'
    else:
        code = "stray-lines"
        problem = f'"{line[:_MAX_QUOTED]}" is where a message should begin, but is no flag'
    return unreadable(Violation(severity, "malformed", code, problem, 0, length, expected, "Paket"))


def _ignored(frame: bytes, code: str, problem: str) -> Decoded:
    return unreadable(Violation("note", "malformed", code, problem, 0, place_of(frame, 0)[1]))


# In a Paket.


def invalid_paket(frame: bytes, row: MessageType, body: list[str], ended: bool) -> Decoded:
    """Decode an invalid Paket of this row; `ended` is True if it has its end."""
    fields = valid_fields(row, body)
    violation = _first_violation(frame, row, body, ended)
    return Decoded(row, fields, to_json(fields), False, (violation,))


def _first_violation(frame: bytes, row: MessageType, body: list[str], ended: bool) -> Violation:
    count = line_count(row)
    wrong = first_wrong(row, body)
    if wrong is not None:
        code, problem, expected = _of_wrong_line(row, body, wrong)
        offset, length = place_of(frame, wrong.first + 1, wrong.last + 1)
    elif len(body) < count:
        code, expected = "missing-field", terminals(row)[len(body)].title
        problem = f"{row.name} ends after {_count_words(row, body)}"
        offset, length = place_of(frame, len(body) + 1)
    elif row.name == "MODEL":
        code, expected = "stray-lines", "the next message"
        problem = f"MODEL continues after its {MODEL_LINES} lines of cards"
        offset, length = place_of(frame, count + 1, len(body))
    elif ended:
        return surplus(frame, row, body)
    else:
        return missing_end(frame, row, body)
    return Violation("error", "malformed", code, problem, offset, length, expected, row.clause)


def _of_wrong_line(row: MessageType, body: list[str], wrong: WrongLines) -> tuple[str, str, str]:
    """Return code, problem and expectation of a wrong line."""
    mismatch = wrong.mismatch
    # The words of all rows with this flag may have been meant.
    others = [
        terminals(other)[wrong.first]
        for other in GRAMMAR.rows_named(row.direction, row.name)
        if line_count(other) > wrong.first
    ]
    if len(others) > 1 and all(isinstance(other, Word) for other in others):
        words = tuple(word for other in others if isinstance(other, Word) for word in other.words)
        mismatch = unknown_word(body[wrong.first], words, mismatch.expected)
    problem = f"{row.name}: {mismatch}"
    if row.name == "MODEL" and len(body) != MODEL_LINES + 1:
        problem += f"; it has {len(body) - 1} lines of cards, not {MODEL_LINES}"
    return mismatch.code, problem, mismatch.expected


def _count_words(row: MessageType, body: Sequence[str]) -> str:
    if row.name != "MODEL":
        return f"{len(body)} of its {count_of_fields(line_count(row))}"
    return f"{len(body) - 1} of its {MODEL_LINES} lines of cards" if body else "its flag"


def surplus(frame: bytes, row: MessageType, body: Sequence[str]) -> Violation:
    """Return the note on lines after the last field, which real peers ignore."""
    count = line_count(row)
    if body[count].endswith(_FLAGS[row.direction]):
        # The next message has begun, and its !END ends both.
        return missing_end(frame, row, body)
    offset, length = place_of(frame, count + 1, len(body))
    problem = f"{row.name} has {count_of_fields(count)}; what follows is ignored"
    return Violation(
        "note", "malformed", "surplus-fields", problem, offset, length, notation(row), row.clause
    )


def missing_end(frame: bytes, row: MessageType, body: Sequence[str]) -> Violation:
    """Return the violation of a Paket with all its fields, but without its end."""
    count = line_count(row)
    slip = misspelled_end(row, body)
    if slip is not None:
        offset, length = place_of(frame, slip + 1)
        problem = with_suggestion(f'{row.name}: "{body[slip][-_MAX_QUOTED:]}" does not end it', END)
    elif len(body) > count:
        offset, length = place_of(frame, count + 1)
        problem = f'{row.name} has no end: here is "{body[count][:_MAX_QUOTED]}"'
    else:
        offset, length = len(frame), 0
        problem = f"{row.name} has no end: here the next message begins"
    return Violation("error", "malformed", "missing-end", problem, offset, length, f'"{END}"', row.clause)


def misspelled_end(row: MessageType, body: Sequence[str]) -> int | None:
    """Return the line that was probably meant to be the end of a Paket with all its fields."""
    count = line_count(row)
    for number in (count, len(body) - 1):
        if count <= number < len(body) and nearest_word(body[number], (END,)) is not None:
            return number
    # A line end may be missing before it.
    return len(body) - 1 if len(body) >= count and body and body[-1].endswith(END) else None


# At the end of the stream.


def cut_short(frame: bytes, row: MessageType | None, expected: str, harmless: bool) -> Decoded:
    """Decode a Paket that is valid, but incomplete."""
    violation = Violation(
        "note" if harmless else "error",
        "malformed",
        "truncated",
        f"the stream ends in the middle of {row.name if row is not None else 'a message'}",
        len(frame),
        0,
        expected,
        row.clause if row is not None else "Paket",
    )
    return Decoded(row, {}, "{}", False, (violation,))


def any_flag(direction: Direction) -> str:
    """Return the expectation at the beginning of a Paket."""
    return production("Paket", _FLAGS[direction]) + " …"
