"""A flaw as a good compiler shows it: what is wrong, where, the bytes with carets, and what was expected."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from kiebitz.cli.terminal.console import Line as Shown
from kiebitz.cli.terminal.console import Styled, wrapped
from kiebitz.dissectors.grammar.grammar import UNREADABLE
from kiebitz.dissectors.model import Diagnostic
from kiebitz.services.evidence.excerpt import Line
from kiebitz.storage.read.message_queries import StoredDiagnostic

OWN_DOING = "Kiebitz did this"
"""What is said of a flaw in a message that Kiebitz has written."""

GUTTER = 2
"""Digits for which there is room in the gutter at the least."""


def place_of(offset: int, message: str | None, message_offset: int | None) -> str:
    """Where a flaw is in its direction, and in its message if it has one."""
    if message is None or message_offset is None:
        return f"byte {offset} of that direction"
    name = "the message" if message == UNREADABLE else message
    return f"byte {offset - message_offset} of {name} ({offset} of that direction)"


def reasons(flaw: Diagnostic | StoredDiagnostic) -> Iterator[tuple[str, str]]:
    """What is said of a flaw below its bytes."""
    if flaw.expected is not None:
        yield "expected", flaw.expected
    if flaw.clause is not None:
        yield "clause", flaw.clause
    # A note blames nobody: a dialect, or something unusual, is no fault.
    if flaw.blame == "kiebitz":
        yield "from", OWN_DOING
    else:
        yield ("from", flaw.blame) if flaw.severity == "note" else ("blame", f"{flaw.blame} ({flaw.group})")


def flaw_block(
    head: Shown,
    place: str,
    lines: Sequence[Line],
    numbered: bool,
    told: Iterable[tuple[str, str]],
    columns: int | None = None,
) -> Iterator[Shown]:
    """The lines of a flaw; those of its bytes have their offsets beside them if they are `numbered`.

    What is too long for so many columns is wrapped; for None, nothing is.
    """
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
    """A text that is too long for the terminal on several lines; in a file or a pipe it stays one."""
    lines = [first + text] if columns is None else wrapped(text, columns, first, " " * indent)
    return ((line,) for line in lines)
