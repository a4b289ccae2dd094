"""Verification of a draft: its own dissector decodes all messages, and rows that do not fit are relaxed."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence

from kiebitz.dissectors.drafting.fields import Column, Row
from kiebitz.dissectors.drafting.traffic import Message
from kiebitz.dissectors.drafting.writer import Contents, key_of, text_of
from kiebitz.dissectors.protocol_file.dissector import FileDissector, dissector_from
from kiebitz.dissectors.protocol_file.reading.errors import ProtocolFileError
from kiebitz.dissectors.protocol_file.reading.reader import read_specification
from kiebitz.dissectors.protocol_file.specification import Format

_ROUNDS = 4
_TOLERATED = 0.005
"""Share of a row's messages that may be malformed."""

_MAX_CHECKED = 20_000
"""Number of messages of a row that are checked."""


def verify(contents: Contents) -> tuple[float, float]:
    """Relax rows until the dissector of the draft accepts the messages by which it was made.

    Returns:
        The number of messages that it accepts, and of bytes in them.

    Raises:
        ProtocolFileError: The draft cannot be read.
    """
    for attempt in range(_ROUNDS):
        dissector = _readable(contents)
        messages = size = 0.0
        problems: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
        for name, rows in contents.rows.items():
            for row in rows:
                sample = _sample(row.messages)
                for message in sample:
                    decoded = dissector.codec.decode(message.data, message.direction)
                    if decoded.valid and decoded.row is not None:
                        messages += len(row.messages) / len(sample)
                        size += len(message.data) * len(row.messages) / len(sample)
                        continue
                    said = decoded.violations[0].text if decoded.violations else ""
                    problems[row.direction, name][_field_in(said, name)] += 1
        if attempt == _ROUNDS - 1 or not _relax(contents, problems):
            break
    return messages, size


def _readable(contents: Contents) -> FileDissector:
    """Return the dissector of the draft, without messages that the notation cannot express.

    Raises ProtocolFileError.
    """
    while True:
        text = text_of(contents)
        try:
            return dissector_from(read_specification(text, f"{contents.protocol}.toml"))
        except ProtocolFileError as error:
            name = _message_at(text, error.line, contents)
            if name is None:
                raise
            del contents.rows[name]
            contents.codes.pop(name, None)
            _forget(name, contents)


def _forget(name: str, contents: Contents) -> None:
    """Remove what refers to a message that is left out."""
    for rows in contents.rows.values():
        for row in rows:
            row.answers = [asked for asked in row.answers if asked != name]
    for key, (names, why) in list(contents.identity.items()):
        left = [each for each in names if each != name]
        if left:
            contents.identity[key] = left, why
        else:
            del contents.identity[key]


def _message_at(text: str, line: int, contents: Contents) -> str | None:
    """Return the message whose row is in this line of the text, None if it is none."""
    lines = text.split("\n")
    for above in range(line - 1, -1, -1):
        for name in contents.rows:
            if lines[above].startswith(f"{key_of(name)} = "):
                return name
    return None


def _sample(messages: Sequence[Message]) -> Sequence[Message]:
    return messages[:: -(-len(messages) // _MAX_CHECKED)]


def _field_in(text: str, name: str) -> str:
    """Return the field that a violation is about, or an empty text."""
    found = re.match(rf"{re.escape(name)}: '?([^:']{{1,60}})'?: ", text)
    return found[1] if found is not None else ""


def _relax(contents: Contents, problems: dict[tuple[str, str], Counter[str]]) -> bool:
    """Widen the types of fields that have problems; return True if any was."""
    changed = False
    for (direction, name), counts in problems.items():
        rows = [row for row in contents.rows[name] if row.direction == direction]
        total = sum(len(row.messages) for row in rows)
        for field, number in counts.most_common():
            if number <= max(1, _TOLERATED * total) and number < 0.1 * total:
                continue
            columns = [column for row in rows for column in row.columns if column.name == field]
            if columns and any(
                column.type != _widest(contents.formats[rows[0].direction], column) for column in columns
            ):
                for column in columns:
                    column.type = _widest(contents.formats[rows[0].direction], column)
                changed = True
            elif not columns or field == "":
                changed |= _widen_rows(contents, rows)
    return changed


def _widest(form: Format, column: Column) -> str:
    """Return the widest type for a field of this format."""
    if form.kind in ("json", "xml"):
        return "any"
    if form.kind == "struct":
        return column.type
    return "rest" if column.type.startswith("[") or column.type == "rest" else "text"


def _widen_rows(contents: Contents, rows: Sequence[Row]) -> bool:
    """Let rows accept any fields that their messages have; return False if they do already."""
    changed = False
    kind = contents.formats[rows[0].direction].kind
    for row in rows:
        if kind in ("json", "xml", "pairs"):
            for column in row.columns:
                widest = _widest(contents.formats[rows[0].direction], column)
                changed |= column.type != widest or not column.optional
                column.type, column.optional = widest, True
        else:
            widest = "bytes" if kind == "struct" else "rest"
            alone = [Column("data" if widest == "bytes" else "text", widest, optional=widest == "rest")]
            changed |= row.columns != alone
            row.columns = alone
    # Variants that are the same now are one.
    name, direction = rows[0].name, rows[0].direction
    if len(rows) > 1 and all(row.columns == rows[0].columns for row in rows):
        first = rows[0]
        first.messages = [message for row in rows for message in row.messages]
        others = [row for row in contents.rows[name] if row.direction != direction]
        contents.rows[name] = [first, *others]
    return changed
