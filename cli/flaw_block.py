"""A flaw as a good compiler shows it: what is wrong, where, the bytes with carets, and what was expected."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence

import click

from cli.excerpt import Line
from dissectors.grammar import UNREADABLE
from dissectors.records import Diagnostic
from storage.escaping import printable
from storage.traffic import DiagnosticRow

GUTTER = 2
"""Digits for which there is room in the gutter at the least."""


def place_of(offset: int, message: str | None, message_offset: int | None) -> str:
    """Where a flaw is in its direction, and in its message if it has one."""
    if message is None or message_offset is None:
        return f"byte {offset} of that direction"
    name = "the message" if message == UNREADABLE else printable(message)
    return f"byte {offset - message_offset} of {name} ({offset} of that direction)"


def reasons(flaw: Diagnostic | DiagnosticRow) -> Iterator[tuple[str, str]]:
    """What is said of a flaw below its bytes."""
    if flaw.expected is not None:
        yield "expected", flaw.expected
    if flaw.clause is not None:
        yield "clause", flaw.clause
    yield "blame", f"{flaw.blame} ({flaw.group})"


def flaw_block(
    head: str,
    place: str,
    lines: Sequence[Line],
    numbered: bool,
    told: Iterable[tuple[str, str]],
    columns: int | None = None,
) -> Iterator[str]:
    """The lines of a flaw; those of its bytes have their offsets beside them if they are `numbered`.

    What is too long for so many columns is wrapped; for None, nothing is.
    """
    numbers = [str(line.offset) if numbered and line.offset is not None else "" for line in lines]
    gutter = max([GUTTER, *map(len, numbers)])
    yield head
    yield _wrapped(f"{'':{gutter}}--> {place}", gutter + len("--> "), columns)
    for number, line in zip(numbers, lines, strict=True):
        line_end = click.style(line.line_end, dim=True) if line.line_end else ""
        yield f"{number:>{gutter}} |" + (f" {line.text}{line_end}" if line.text or line_end else "")
    for name, text in told:
        yield _wrapped(f"{'':{gutter}} = {name}: {printable(text)}", gutter + len(" = ") + 2, columns)


def _wrapped(text: str, indent: int, columns: int | None) -> str:
    """A text that is too long for the terminal on several lines; in a file or a pipe it stays one."""
    if columns is None:
        return text
    return "\n".join(textwrap.wrap(text, columns, subsequent_indent=" " * indent, break_on_hyphens=False))
