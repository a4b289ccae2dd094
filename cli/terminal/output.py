"""How listings come out: a table for people, or JSON, CSV or TSV for programs, row by row.

A listing is columns and batches of rows. Nothing waits for the last row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from itertools import chain
from typing import Any, Literal

import click

from kiebitz.cli.terminal.console import write_csv, write_json_array, write_json_lines
from kiebitz.cli.terminal.table import Column, Row, show_table
from kiebitz.services.standard_streams import flush, warn

Form = Literal["json", "nl", "csv", "tsv"]
Command = Callable[..., Any]

_FORMS: dict[Form, str] = {
    "json": "One JSON array.",
    "nl": "A JSON object on each line.",
    "csv": "Comma-separated values with a header.",
    "tsv": "Tab-separated values with a header.",
}


def output_options(command: Command) -> Command:
    """Give a command the flags of every listing; it gets `form`, None for a table."""
    options = [click.option(f"--{form}", "form", flag_value=form, help=text) for form, text in _FORMS.items()]
    return reduce(lambda made, option: option(made), reversed(options), command)


def show(columns: Sequence[Column], rows: Iterable[Sequence[Row]], form: Form | None, nothing: str) -> None:
    """Write batches of rows to stdout as they come; the sentence `nothing` to stderr if there are none."""
    seen = 0

    def counted() -> Iterator[Sequence[Row]]:
        nonlocal seen
        for batch in rows:
            seen += len(batch)
            yield batch
            flush()

    if form is None:
        show_table(columns, counted())
    else:
        write = {"json": _json, "nl": _lines, "csv": _csv, "tsv": _tsv}[form]
        places = [place for place, column in enumerate(columns) if column.key]
        of_programs = ([[row[place] for place in places] for row in batch] for batch in counted())
        write([columns[place].key for place in places], of_programs)
    if not seen:
        warn(nothing)


def _objects(keys: Sequence[str], rows: Iterable[Sequence[Row]]) -> Iterator[dict[str, Any]]:
    return (dict(zip(keys, row, strict=True)) for batch in rows for row in batch)


def _json(keys: Sequence[str], rows: Iterable[Sequence[Row]]) -> None:
    write_json_array(_objects(keys, rows))


def _lines(keys: Sequence[str], rows: Iterable[Sequence[Row]]) -> None:
    write_json_lines(_objects(keys, rows))


def _csv(keys: Sequence[str], rows: Iterable[Sequence[Row]], delimiter: str = ",") -> None:
    write_csv(chain([keys], chain.from_iterable(rows)), delimiter)


def _tsv(keys: Sequence[str], rows: Iterable[Sequence[Row]]) -> None:
    _csv(keys, rows, "\t")
