"""How listings come out: a table for people, or JSON, CSV or TSV for programs, row by row.

A listing is columns and batches of rows. The first batch decides how wide a table's columns are, so that
nothing has to wait for the last row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from itertools import chain, islice
from typing import Any, Literal

import click
import msgspec

from cli.console import (
    flush,
    is_terminal,
    show_lines,
    warn,
    write_csv,
    write_json_array,
    write_json_lines,
)
from storage.escaping import printable

Form = Literal["json", "nl", "csv", "tsv"]
Row = Sequence[Any]
Command = Callable[..., Any]

BATCH = 500
"""Rows that are looked at together."""

_NARROWEST = 8
"""Cells that the last column of a table on a terminal keeps, however narrow that is."""

_FORMS: dict[Form, str] = {
    "json": "One JSON array.",
    "nl": "A JSON object on each line.",
    "csv": "Comma-separated values with a header.",
    "tsv": "Tab-separated values with a header.",
}


def words(value: Any) -> str:
    """A value as a table shows it."""
    return "" if value is None else str(value)


def seconds(value: Any) -> str:
    """A number of seconds as a table shows it, to the microsecond."""
    return "" if value is None else f"{value:.6f}"


class Column(msgspec.Struct, frozen=True):
    """A column: its `key` for programs, its `title` for people, and how a table writes its values.

    Without a title it is for programs only. `right` aligns it to the right, `width` is the least number of
    cells it takes. One that is an `aside` stands for people behind the value of the column before it.
    """

    key: str
    title: str = ""
    right: bool = False
    width: int = 0
    text: Callable[[Any], str] = words
    aside: bool = False


def output_options(command: Command) -> Command:
    """Give a command the flags of every listing; it gets `form`, None for a table."""
    options = [click.option(f"--{form}", "form", flag_value=form, help=text) for form, text in _FORMS.items()]
    return reduce(lambda made, option: option(made), reversed(options), command)


def batches(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """Rows that are all there already, in batches for `show`."""
    remaining = iter(rows)
    while batch := list(islice(remaining, BATCH)):
        yield batch


def show(columns: Sequence[Column], rows: Iterable[list[Row]], form: Form | None, nothing: str) -> None:
    """Write batches of rows to stdout as they come; the sentence `nothing` to stderr if there are none."""
    seen = 0

    def counted() -> Iterator[list[Row]]:
        nonlocal seen
        for batch in rows:
            seen += len(batch)
            yield batch
            flush()

    if form is not None:
        {"json": _json, "nl": _lines, "csv": _csv, "tsv": _tsv}[form](columns, counted())
    else:
        table = _rich if is_terminal() else _plain
        table(*_for_people(columns, counted()))
    if not seen:
        warn(nothing)


def _for_people(
    columns: Sequence[Column], rows: Iterable[list[Row]]
) -> tuple[list[Column], Iterator[list[Row]]]:
    """What of a listing stands in a table."""
    titled = [column for column in columns if column.title]
    places = [number for number, column in enumerate(columns) if column.title]
    asides = {number - 1: number for number, column in enumerate(columns) if column.aside}

    def shown(row: Row, place: int) -> Any:
        aside = row[asides[place]] if place in asides else None
        return row[place] if aside is None else f"{row[place]} · {aside}"

    return titled, ([[shown(row, place) for place in places] for row in batch] for batch in rows)


def _objects(columns: Sequence[Column], rows: Iterable[list[Row]]) -> Iterator[dict[str, Any]]:
    keys = [column.key for column in columns]
    return (dict(zip(keys, row, strict=True)) for batch in rows for row in batch)


def _json(columns: Sequence[Column], rows: Iterable[list[Row]]) -> None:
    write_json_array(_objects(columns, rows))


def _lines(columns: Sequence[Column], rows: Iterable[list[Row]]) -> None:
    write_json_lines(_objects(columns, rows))


def _csv(columns: Sequence[Column], rows: Iterable[list[Row]], delimiter: str = ",") -> None:
    write_csv(chain([[column.key for column in columns]], chain.from_iterable(rows)), delimiter)


def _tsv(columns: Sequence[Column], rows: Iterable[list[Row]]) -> None:
    _csv(columns, rows, "\t")


def _widths(columns: Sequence[Column], texts: list[list[str]]) -> list[int]:
    from cli.cells import cell_len

    return [
        max(column.width, cell_len(column.title), *(cell_len(row[place]) for row in texts), 0)
        for place, column in enumerate(columns)
    ]


def _texts(
    columns: Sequence[Column], rows: Iterable[list[Row]]
) -> tuple[list[int], Iterator[list[list[str]]]]:
    """The widths that the first batch asks for, and all batches as texts, the first included.

    They are escaped here, where it is measured how wide they are.
    """
    written = (
        [[printable(column.text(value)) for column, value in zip(columns, row, strict=True)] for row in batch]
        for batch in rows
    )
    first = next(written, [])
    return _widths(columns, first), chain([first], written)


def _plain(columns: Sequence[Column], rows: Iterable[list[Row]]) -> None:
    from cli.cells import cell_len

    widths, written = _texts(columns, rows)

    def line(texts: Sequence[str]) -> str:
        padded = [
            " " * (width - cell_len(text)) + text if column.right else text + " " * (width - cell_len(text))
            for column, width, text in zip(columns, widths, texts, strict=True)
        ]
        return "  ".join(padded).rstrip()

    show_lines([line([column.title for column in columns])])
    for batch in written:
        show_lines(map(line, batch))


def _rich(columns: Sequence[Column], rows: Iterable[list[Row]]) -> None:
    from cli.screen import Console, Table, Text

    widths, written = _texts(columns, rows)
    console = Console()
    # The last column takes what the others leave; what is too long for it ends in an ellipsis.
    widths[-1] = max(console.width - sum(widths[:-1]) - 2 * (len(widths) - 1), columns[-1].width, _NARROWEST)
    for number, batch in enumerate(written):
        table = Table(box=None, show_header=number == 0, padding=(0, 2, 0, 0), pad_edge=False)
        for column, width in zip(columns, widths, strict=True):
            justify: Literal["left", "right"] = "right" if column.right else "left"
            table.add_column(column.title, justify=justify, width=width, no_wrap=True, overflow="ellipsis")
        for row in batch:
            table.add_row(*map(Text, row))
        console.print(table)
