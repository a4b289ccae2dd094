"""The one way to stdout and stderr: lines for people, and values for programs.

A text may come from a peer or from somebody else's database, or be the name of a file. So all text is escaped
here: a line stays one line, and drives no terminal. Styles are given beside the text, never in it. Ruff
refuses the ways past this module (`pyproject.toml`); what rich draws goes through `cli.terminal.screen`.
"""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import click
from click.shell_completion import CompletionItem as Candidate

from kiebitz.dissectors.escaping import cell, json_text, printable
from kiebitz.services.standard_streams import print_error_line

if TYPE_CHECKING:
    pass

__all__ = [
    "Candidate",
    "Line",
    "Part",
    "Styled",
    "candidates",
    "colour_is_forced",
    "confirmed",
    "ellipsis",
    "is_terminal",
    "letters_of_output",
    "plain",
    "show_line",
    "show_lines",
    "terminal_columns",
    "wish_for_colour",
    "wrapped",
    "write_csv",
    "write_json",
    "write_json_array",
    "write_json_lines",
]


_NO_COLOUR = "NO_COLOR"
_FORCING = ("FORCE_COLOR", "CLICOLOR_FORCE")
"""Variables of the environment that ask for colours; the one above asks for none."""


class Styled(NamedTuple):
    """A piece of a line that stands out on a terminal; `colour` is one of click's names."""

    text: str
    colour: str | None = None
    bold: bool = False
    dim: bool = False


Part = str | Styled
Line = Sequence[Part]
"""A line is made of parts."""


def show_line(*parts: Part) -> None:
    """Show one line on stdout."""
    click.echo(_coloured(parts), color=_colour())


def show_lines(lines: Iterable[Line]) -> None:
    """Show lines on stdout, which `flush` sends off: for those that are many."""
    for line in lines:
        if any(isinstance(part, Styled) for part in line):
            show_line(*line)
        else:
            sys.stdout.write(plain(line) + "\n")


def plain(line: Line) -> str:
    """A line where there are no styles."""
    return printable("".join(_words(part) for part in line))


def wrapped(text: str, columns: int, first: str = "", rest: str = "") -> list[str]:
    """A text in lines of at most so many columns, the first of them behind `first`, the others behind `rest`.

    It is escaped before, as an escape is longer than what it stands for.
    """
    return textwrap.wrap(
        printable(text),
        columns,
        initial_indent=first,
        subsequent_indent=rest,
        break_on_hyphens=False,
    )


def candidates(words: Iterable[tuple[str, str | None]]) -> list[Candidate]:
    """Return what a shell offers: words, each with a note.

    Empty words, which zsh would not count, and words that would have to be escaped are left out.
    """
    return [
        Candidate(word, help=None if note is None else printable(note))
        for word, note in words
        if word and printable(word) == word
    ]


def confirmed(question: str) -> bool:
    """Ask on stderr, and read a line of stdin: whether it says yes."""
    print_error_line(f"{question} [y/N]")
    return sys.stdin.readline().strip().lower() in ("y", "yes")


# For programs.


def write_json(value: Any) -> None:
    """Write one JSON value."""
    sys.stdout.write(json_text(value) + "\n")


def write_json_array(values: Iterable[Any]) -> None:
    """Write one JSON array, a value on each line, as they come."""
    sys.stdout.write("[")
    separator = ""
    try:
        for value in values:
            sys.stdout.write(separator + json_text(value))
            separator = ",\n "
    finally:
        # An interrupted listing is sound JSON, too.
        sys.stdout.write("]\n")


def write_json_lines(values: Iterable[Any]) -> None:
    """Write a JSON value on each line, as they come."""
    for value in values:
        sys.stdout.write(json_text(value) + "\n")


def write_csv(rows: Iterable[Sequence[Any]], delimiter: str) -> None:
    """Write rows as they come: texts escaped, and such as no spreadsheet runs; objects and lists as JSON."""
    # It is loaded where it is asked for, as few do.
    import csv

    writer = csv.writer(sys.stdout, delimiter=delimiter, lineterminator="\n")
    writer.writerows([_cell(value) for value in row] for row in rows)


# What stdout and stderr are.


def is_terminal() -> bool:
    """Whether stdout is a terminal."""
    return sys.stdout.isatty()


def colour_is_forced() -> bool:
    """Whether the environment asks for colours where stdout is no terminal, too."""
    wishes = (os.environ.get(name) for name in _FORCING)
    return not os.environ.get(_NO_COLOUR) and any(wish not in (None, "", "0") for wish in wishes)


def wish_for_colour(is_wanted: bool) -> None:
    """Ask for colours or for none where the environment does not, which has the last word.

    The environment is told, since that is where the libraries that draw look, and other processes of ours.
    """
    if not any(os.environ.get(name) for name in (_NO_COLOUR, *_FORCING)):
        os.environ[_FORCING[0] if is_wanted else _NO_COLOUR] = "1"


def terminal_columns() -> int | None:
    """How wide the terminal is; None where stdout is none."""
    return shutil.get_terminal_size().columns if is_terminal() else None


def ellipsis() -> str:
    """What stands for the rest of a text that is too long, in letters that stdout can write."""
    try:
        "…".encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return ".."
    return "…"


def letters_of_output() -> str:
    """The encoding that stdout is written in."""
    return sys.stdout.encoding or "ascii"


# The streams themselves.


def _colour() -> bool | None:
    """Whether click may colour what it writes; None lets it look at the terminal."""
    return False if os.environ.get(_NO_COLOUR) else colour_is_forced() or None


def _coloured(line: Line) -> str:
    return "".join(map(_part, line))


def _part(part: Part) -> str:
    if isinstance(part, str):
        return printable(part)
    if not part.text:
        return ""
    return click.style(printable(part.text), part.colour, bold=part.bold or None, dim=part.dim or None)


def _words(part: Part) -> str:
    return part if isinstance(part, str) else part.text


def _cell(value: Any) -> Any:
    if isinstance(value, str):
        return cell(value)
    return json_text(value) if isinstance(value, dict | list) else value
