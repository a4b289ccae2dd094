"""Output of listings as table, JSON, CSV or TSV, batch by batch."""

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
    "json": "Print one JSON array.",
    "nl": "Print one JSON object per line.",
    "csv": "Print comma-separated values with a header.",
    "tsv": "Print tab-separated values with a header.",
}


def output_options(command: Command) -> Command:
    """Add the options for the format of a listing: `form`, None for a table."""
    options = [click.option(f"--{form}", "form", flag_value=form, help=text) for form, text in _FORMS.items()]
    return reduce(lambda made, option: option(made), reversed(options), command)


def show(
    columns: Sequence[Column], records: Iterable[Sequence[Any]], form: Form | None, nothing: str
) -> None:
    """Write batches of records to stdout, or the text `nothing` to stderr if there are none."""
    seen = 0
    shown = [column for column in columns if (column.key if form else column.title)]
    values = [column.value for column in shown]

    def rows() -> Iterator[Sequence[Row]]:
        nonlocal seen
        for batch in records:
            seen += len(batch)
            yield [[value(record) for value in values] for record in batch]
            flush()

    if form is None:
        show_table(shown, rows())
    else:
        write = {"json": _json, "nl": _lines, "csv": _csv, "tsv": _tsv}[form]
        write([column.key for column in shown], rows())
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
