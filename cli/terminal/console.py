"""Output to stdout and stderr: lines for people, and JSON and CSV for programs.

Texts may come from a peer, another person's database or a file name. All text is escaped here, so that a line
stays one line and controls no terminal. Styles are passed separately from the text. Ruff bans other ways of
writing (`pyproject.toml`); what Rich draws goes through `cli.terminal.screen`.
"""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import click
from click.shell_completion import CompletionItem

from kiebitz.dissectors.escaping import cell, json_text, printable
from kiebitz.services.standard_streams import print_error_line

if TYPE_CHECKING:
    from kiebitz.dissectors.model import Severity

Candidate = CompletionItem

_NO_COLOUR = "NO_COLOR"
_FORCING = ("FORCE_COLOR", "CLICOLOR_FORCE")
"""Environment variables that force colours; the one above disables them."""


class Styled(NamedTuple):
    """A styled part of a line; `colour` is one of click's names."""

    text: str
    colour: str | None = None
    bold: bool = False
    dim: bool = False


Part = str | Styled
Line = Sequence[Part]


def show_line(*parts: Part) -> None:
    """Print one line to stdout."""
    click.echo(
        "".join(map(_part, parts)), color=False if os.environ.get(_NO_COLOUR) else colour_is_forced() or None
    )


def show_lines(lines: Iterable[Line]) -> None:
    """Print many lines to stdout, without flushing."""
    for line in lines:
        if any(isinstance(part, Styled) for part in line):
            show_line(*line)
        else:
            sys.stdout.write(plain(line) + "\n")


def plain(line: Line) -> str:
    """Return a line without styles."""
    return printable("".join(part if isinstance(part, str) else part.text for part in line))


def wrapped(text: str, columns: int, first: str = "", rest: str = "") -> list[str]:
    """Wrap a text to a width, with the prefix `first` on the first line and `rest` on the others.

    The text is escaped before, as escapes are longer than the characters they replace.
    """
    return textwrap.wrap(
        printable(text),
        columns,
        initial_indent=first,
        subsequent_indent=rest,
        break_on_hyphens=False,
    )


def with_prefix(text: str, words: Iterable[tuple[str, str | None]]) -> list[Candidate]:
    """Return completion candidates: the words that begin with a text, each with a note.

    Empty words, which zsh ignores, and words that need escaping are left out.
    """
    return [
        Candidate(word, help=None if note is None else printable(note))
        for word, note in words
        if word and word.startswith(text) and printable(word) == word
    ]


def confirmed(question: str) -> bool:
    """Ask a yes/no question on stderr; return True if the line read from stdin is y or yes."""
    print_error_line(f"{question} [y/N]")
    return sys.stdin.readline().strip().lower() in ("y", "yes")


# For programs.


def write_json(value: Any) -> None:
    """Write one JSON value."""
    sys.stdout.write(json_text(value) + "\n")


def write_json_array(values: Iterable[Any]) -> None:
    """Write one JSON array, a value on each line, without waiting for the last one."""
    sys.stdout.write("[")
    separator = ""
    try:
        for value in values:
            sys.stdout.write(separator + json_text(value))
            separator = ",\n "
    finally:
        # An interrupted listing is valid JSON, too.
        sys.stdout.write("]\n")


def write_json_lines(values: Iterable[Any]) -> None:
    """Write a JSON value on each line, without waiting for the last one."""
    for value in values:
        sys.stdout.write(json_text(value) + "\n")


def write_csv(rows: Iterable[Sequence[Any]], delimiter: str) -> None:
    """Write rows without waiting for the last one; text is escaped, also against spreadsheet formulas."""
    import csv

    writer = csv.writer(sys.stdout, delimiter=delimiter, lineterminator="\n")
    writer.writerows([_cell(value) for value in row] for row in rows)


# What stdout and stderr are.


def is_terminal() -> bool:
    """Return whether stdout is a terminal."""
    return sys.stdout.isatty()


def colour_is_forced() -> bool:
    """Return whether the environment forces colours even if stdout is not a terminal."""
    wishes = (os.environ.get(name) for name in _FORCING)
    return not os.environ.get(_NO_COLOUR) and any(wish not in (None, "", "0") for wish in wishes)


def set_colour_preference(is_wanted: bool) -> None:
    """Enable or disable colours, unless the environment does.

    Sets an environment variable, which libraries and child processes also read.
    """
    if not any(os.environ.get(name) for name in (_NO_COLOUR, *_FORCING)):
        os.environ[_FORCING[0] if is_wanted else _NO_COLOUR] = "1"


def terminal_columns() -> int | None:
    """Return the width of the terminal; None if stdout is not a terminal."""
    return shutil.get_terminal_size().columns if is_terminal() else None


def ellipsis() -> str:
    """Return the mark for truncated text that stdout's encoding can represent."""
    return "…" if can_write("…", letters_of_output()) else ".."


def can_write(letters: str, encoding: str) -> bool:
    """Return True if an encoding has all of some characters."""
    try:
        letters.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def encodable(text: str, encoding: str) -> str:
    """Return a text in the characters of an encoding, with escapes for others."""
    return text.encode(encoding, "backslashreplace").decode(encoding)


def letters_of_output() -> str:
    """Return the encoding of stdout."""
    return sys.stdout.encoding or "ascii"


# The streams themselves.


def _part(part: Part) -> str:
    if isinstance(part, str):
        return printable(part)
    if not part.text:
        return ""
    return click.style(printable(part.text), part.colour, bold=part.bold or None, dim=part.dim or None)


def _cell(value: Any) -> Any:
    if isinstance(value, str):
        return cell(value)
    return json_text(value) if isinstance(value, dict | list) else value


COLOURS: dict[Severity, str] = {"error": "red", "warning": "yellow", "note": "cyan"}
"""Severity -> colour, the most severe first."""


def has_keyboard() -> bool:
    """Return whether stdin is a terminal and this process is in its foreground."""
    if sys.stdin is None or not sys.stdin.isatty():
        return False
    try:
        return os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
    except OSError:
        # Not a controlling terminal, so there is no job control.
        return True
