"""A diagnostic as compilers show it: text, location, bytes with carets, and what was expected."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from kiebitz.cli.terminal.console import Line as Shown
from kiebitz.cli.terminal.console import Styled, wrapped
from kiebitz.dissectors.grammar.grammar import UNREADABLE
from kiebitz.dissectors.model import Diagnostic
from kiebitz.services.evidence.excerpt import Line
from kiebitz.storage.read.message_queries import StoredDiagnostic

ALTERED_BY_KIEBITZ = "altered by Kiebitz"
"""Blame of a diagnostic caused by an alteration."""

GUTTER = 2
"""Minimum width of the gutter (digits)."""


def place_of(offset: int, message: str | None, message_offset: int | None) -> str:
    """Return the location of a diagnostic in its message, if any, and in its direction."""
    if message is None or message_offset is None:
        return f"byte {offset} of that direction"
    name = "the message" if message == UNREADABLE else message
    return f"byte {offset - message_offset} of {name} ({offset} of that direction)"


def reasons(diagnostic: Diagnostic | StoredDiagnostic) -> Iterator[tuple[str, str]]:
    """Yield the titles and texts below the bytes of a diagnostic."""
    if diagnostic.expected is not None:
        yield "expected", diagnostic.expected
    if diagnostic.clause is not None:
        yield "clause", diagnostic.clause
    # A note, such as a dialect or something unusual, blames no side.
    if diagnostic.blame == "kiebitz":
        yield "from", ALTERED_BY_KIEBITZ
    else:
        yield (
            ("from", diagnostic.blame)
            if diagnostic.severity == "note"
            else ("blame", f"{diagnostic.blame} ({diagnostic.group})")
        )


def diagnostic_block(
    head: Shown,
    place: str,
    lines: Sequence[Line],
    numbered: bool,
    told: Iterable[tuple[str, str]],
    columns: int | None = None,
) -> Iterator[Shown]:
    """Yield the lines of a diagnostic, its bytes with offsets if `numbered`, wrapped to `columns`."""
    numbers = [str(line.offset) if numbered and line.offset is not None else "" for line in lines]
    gutter = max([GUTTER, *map(len, numbers)])
    yield head
    yield from _wrapped(f"{'':{gutter}}--> ", place, gutter + len("--> "), columns)
    for number, line in zip(numbers, lines, strict=True):
        gap = " " if line.text or line.line_end else ""
        yield f"{number:>{gutter}} |{gap}{line.text}", Styled(line.line_end, dim=True)
    for name, text in told:
        yield from _wrapped(f"{'':{gutter}} = ", f"{name}: {text}", gutter + len(" = ") + 2, columns)


def _wrapped(first: str, text: str, indent: int, columns: int | None) -> Iterator[Shown]:
    lines = [first + text] if columns is None else wrapped(text, columns, first, " " * indent)
    return ((line,) for line in lines)
