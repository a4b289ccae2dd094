"""The checks of rows of the format `lines`: lines of a packet must be told apart by their number."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kiebitz.dissectors.protocol_file.reading.source import Path, Source
from kiebitz.dissectors.protocol_file.specification import (
    FieldSpec,
    FieldTypeSpec,
    Format,
    FramingKind,
    IdentifierType,
    ListType,
    ObjectType,
)
from kiebitz.dissectors.protocol_file.text_types import is_counted, lines_of, takes_tokens

MAX_LINES = 500
"""Maximum number of lines that a packet of lines must have."""


class PacketRows:
    """Checks the rows of a file; mistakes are added to the source."""

    def __init__(self, source: Source, format: Format, framing: FramingKind) -> None:
        self._source = source
        self._format = format
        self._is_packet = format.kind == "lines" and framing == "lines"
        self._ends: dict[str, str] = {}
        """Last lines by name."""
        self._lines: dict[tuple[str, str], int] = {}
        """Numbers of lines of packets without a last line, by direction and name."""

    def check(
        self,
        path: Path,
        name: str,
        direction: str,
        fields: Sequence[FieldSpec],
        end: str | None,
        report: Callable[[FieldSpec, str], None],
    ) -> int:
        """Check a row with a last line of its own, if `end` is not None; return its least number of lines.

        Mistakes of fields are reported with `report`.
        """
        if end is not None and not self._is_packet:
            self._source.wrong_key((*path, "end"), "end belongs to format = lines, with framing = lines")
        if self._format.kind != "lines":
            return 0
        if self._is_packet:
            end = self._format.end if end is None else end
            if self._ends.setdefault(name, end) != end:
                known = f'"{self._ends[name]}"' if self._ends[name] else "no last line"
                self._source.wrong(
                    (*path, "is"), f"all rows of {name} have the same end, and another has {known}"
                )
            if self._format.mark + name == end:
                self._source.wrong_key(("messages", name), f"{end} is the last line of its packets")
        lines = self._check_fields(fields, self._is_packet and not end, report)
        if any(map(is_counted, fields)):
            if self._is_packet and end:
                self._source.wrong(
                    (*path, "is"), "a list has a number of lines, or up to a word, if there is no end"
                )
        elif self._is_packet and not end and self._lines.setdefault((direction, name), lines) != lines:
            self._source.wrong(
                (*path, "is"), f"rows of {name} have different numbers of lines: this needs end"
            )
        return lines

    def _check_fields(
        self, fields: Sequence[FieldSpec], is_ended_by_fields: bool, report: Callable[[FieldSpec, str], None]
    ) -> int:
        """Check the lines of fields, with which a message may end; return their least number."""
        total = 0
        has_open = False
        for field in fields:
            least, most = lines_of(field.type, self._format)
            if is_counted(field):
                least = most = 0
            total += least
            problem = self._problem(field.type)
            if problem is None and has_open:
                problem = "the field before it takes all lines that remain"
            elif problem is None and is_ended_by_fields and (field.optional or least != most):
                problem = f"{field.name} has any number of lines: this needs a last line, end, or a count, *n"
            elif problem is None and total > MAX_LINES:
                problem = f"more than {MAX_LINES} lines"
            if problem is not None:
                report(field, problem)
                return 0
            has_open = most is None
        return total

    def _problem(self, kind: FieldTypeSpec, is_line: bool = False) -> str | None:
        """Return why a type's lines cannot be told apart; a type that `is_line` must be within one line."""
        parts: Sequence[tuple[FieldTypeSpec, bool]] = ()
        match kind:
            case IdentifierType(_, inner):
                parts = [(inner, is_line)]
            case ListType(item):
                has_tokens = takes_tokens(kind, self._format) or bool(kind.count or kind.until)
                has_lines = has_tokens and not (is_line and kind.separator == "")
                if has_lines and is_line:
                    return "lines cannot be within a line"
                least, most = lines_of(item, self._format)
                if has_lines and least != most:
                    return "an item of several lines has a fixed number of them"
                parts = [(item, not has_lines or least == 1)]
            case ObjectType(fields, separator):
                if separator == "\n" and is_line:
                    return "lines cannot be within a line"
                if separator == "\n" and any(each.optional for each in fields):
                    return "a value of several lines has a fixed number of them: ? is not possible"
                last = fields[-1] if fields else None
                parts = [(each.type, separator != "\n" or each is not last) for each in fields]
        problems = (self._problem(part, within) for part, within in parts)
        return next(filter(None, problems), None)
