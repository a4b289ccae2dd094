"""The parser of assignments, `FIELD=VALUE`, to a message's fields.

FIELD is written as in filters. VALUE is quoted text, as in filters; or JSON, if it begins with [ or {; or it
extends to the next blank, or to a comma before the next FIELD=. In the last case it is a number, true, false
or null, or a text, or the field as the protocol writes it: the first of these that the grammar accepts.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec

from kiebitz.dissectors.errors import KiebitzError

if TYPE_CHECKING:
    from kiebitz.dissectors.filters.syntax import Step

_STRING = r'"(?:\\.|[^"\\])*"' + r"|'(?:\\.|[^'\\])*'"
_FIELD = re.compile(rf"(?:[^\s=\"'\[\]]|{_STRING}|\[[^\s\]]*\])+(?==)", re.DOTALL)
_QUOTED = re.compile(_STRING, re.DOTALL)
_NEXT = r"[^\W\d]\w*(?:[.\[][^\s=,]*)?="
"""The beginning of another assignment, after a comma."""
_UNQUOTED = re.compile(rf"(?:(?!,\s*{_NEXT})\S)*")
_BETWEEN = re.compile(rf"\s+|,\s*(?={_NEXT})|$")

_MAX_QUOTED = 60
"""Maximum number of characters of a value that are quoted."""


class AssignmentError(KiebitzError):
    """An invalid assignment, or one that this message does not allow; the text has the alternatives."""


class Assignment(msgspec.Struct, frozen=True):
    """An assignment as written, the path to the field, and the possible values, the most likely first.

    `own` is the value in the protocol's notation, None if it is JSON.
    """

    text: str
    steps: tuple[Step, ...]
    values: tuple[Any, ...]
    own: str | None


def split_name(text: str) -> tuple[str, str]:
    """Split a text into a message's name, which may have blanks, and the assignments after it."""
    for blank in re.finditer(r"\s+|^", text):
        if _FIELD.match(text, blank.end()):
            return text[: blank.start()].strip(), text[blank.end() :]
    return text.strip(), ""


def parse_assignments(text: str) -> list[Assignment]:
    """Read assignments with blanks or commas between them. Raises AssignmentError."""
    # They take their time to load.
    from kiebitz.dissectors.filters import FilterError
    from kiebitz.dissectors.filters.parser import parse
    from kiebitz.dissectors.filters.syntax import Comparison, Has

    found: list[Assignment] = []
    rest = text.strip()
    while rest:
        field = _FIELD.match(rest)
        if field is None:
            word = rest.split()[0][:_MAX_QUOTED]
            hint = "; a text with blanks must be quoted" if found else ""
            raise AssignmentError(f"{word} is not of the form FIELD=VALUE, such as dice=5,4{hint}")
        given, values, own = _value(rest[field.end() + 1 :])
        # The filter language reads both: so a field is called as it is there, and so is a text in quotes.
        quoted = _QUOTED.fullmatch(given) is not None
        try:
            read = parse(f"{field[0]} == {given}" if quoted else field[0])
        except FilterError as error:
            raise AssignmentError(str(error)) from error
        if isinstance(read, Comparison) and quoted:
            own = str(read.constants[0].value)
            values = (own,)
        elif not isinstance(read, Has):
            raise AssignmentError(f"{field[0][:_MAX_QUOTED]} is not a field name, such as dice or Wurf[0]")
        end = field.end() + 1 + len(given)
        found.append(Assignment(rest[:end], read.name.steps, values, own))
        between = _BETWEEN.match(rest, end)
        if between is None:
            raise AssignmentError(f"a blank is missing behind {rest[:end][-_MAX_QUOTED:]}")
        rest = rest[between.end() :]
    return found


def _value(text: str) -> tuple[str, tuple[Any, ...], str | None]:
    """Return the VALUE at the beginning of a text: as written, the possible values, and the unquoted text."""
    if text[:1] in ("[", "{"):
        try:
            _, end = json.JSONDecoder().raw_decode(text)
            # Stricter with numbers that JSON does not have.
            return text[:end], (msgspec.json.decode(text[:end]),), None
        except (ValueError, RecursionError, msgspec.DecodeError) as error:
            raise AssignmentError(
                f"{text[:_MAX_QUOTED]} is not valid JSON ({error}); a text that begins so must be quoted"
            ) from error
    if text[:1] in ('"', "'"):
        quoted = _QUOTED.match(text)
        if quoted is None:
            raise AssignmentError(f"{text[:_MAX_QUOTED]} has no closing quote")
        return quoted[0], (), None
    given = _UNQUOTED.match(text)
    assert given is not None
    values: tuple[Any, ...] = (given[0],)
    with suppress(msgspec.DecodeError):
        values = (msgspec.json.decode(given[0]), *values)
    return given[0], values, given[0]
