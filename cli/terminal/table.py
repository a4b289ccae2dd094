"""Listings: tables for the terminal whose columns shrink from the right, JSON, CSV and TSV.

Numbers, times, streams, directions and ports are never cut. On a narrow terminal, values are first written
shorter; then columns are cut, the last first; then the last columns are left out.

Output of listings as table, JSON, CSV or TSV, batch by batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from itertools import chain, islice
from operator import attrgetter
from typing import Any, Literal, TypeVar

import click
import msgspec

from kiebitz.cli.configuration.file import name_of, named
from kiebitz.cli.terminal.console import (
    Line,
    Part,
    Styled,
    ellipsis,
    show_line,
    show_lines,
    terminal_columns,
    write_csv,
    write_json_array,
    write_json_lines,
)
from kiebitz.dissectors.escaping import printable
from kiebitz.services.evidence.cells import cell_len, set_cell_size
from kiebitz.services.standard_streams import flush, warn

Row = Sequence[Any]

Record = TypeVar("Record")

BATCH = 500
"""Number of rows per batch."""

_GAP = "  "

_COMFORT = 40
"""Width (cells) of the last column below which values are written shorter."""

_LOOPBACK = "127.0.0.1:"


def words(value: Any) -> str:
    """Format a value; None is empty."""
    return "" if value is None else str(value)


def seconds(value: Any) -> str:
    """Format seconds to the microsecond."""
    return "" if value is None else f"{value:.6f}"


def milliseconds(value: Any) -> str:
    """Format seconds to the millisecond."""
    return "" if value is None else f"{value:.3f}"


def _address(value: Any) -> str:
    return named(words(value))


def _ends_with_port(value: Any) -> bool:
    """Return whether an address is shown with its port, not by a name that includes it."""
    return _address(value).endswith(words(value).rpartition(":")[2])


def short_address(value: Any) -> str:
    """Format an address; of one on this machine only the port, as in `:9000`."""
    text = words(value)
    if (name := name_of(text)) is not None:
        return name
    return text[len(_LOOPBACK) - 1 :] if text.startswith(_LOOPBACK) else text


class Column(msgspec.Struct, frozen=True):
    """A column of a listing.

    Attributes:
        key: Name in JSON and CSV; empty for a column only of tables.
        title: Heading in tables; empty for a column only of JSON and CSV.
        right: Align to the right.
        width: Minimum width (cells).
        text: Formats a value.
        short: Formats a value if space is short.
        least: Minimum width (cells) if the column is cut; None if it must not be cut.
        end_matters: Returns True for values to cut at the start.
        stays: Never leave out the column.
        colour: Returns one of click's colours for a value.
        of_tables: Show only if the session has several game tables.
        of: Attribute of the record, or function of it; default `key`, or the record without a key.
    """

    key: str
    title: str = ""
    right: bool = False
    width: int = 0
    text: Callable[[Any], str] = words
    short: Callable[[Any], str] | None = None
    least: int | None = None
    end_matters: Callable[[Any], bool] = lambda value: False
    stays: bool = False
    colour: Callable[[Any], str | None] | None = None
    of_tables: bool = False
    of: str | Callable[[Any], Any] = ""

    @property
    def value(self) -> Callable[[Any], Any]:
        """Function that returns the column's value of a record."""
        if callable(self.of):
            return self.of
        name = self.of or self.key
        return attrgetter(name) if name else lambda record: record


def number(
    key: str = "number", title: str = "#", width: int = 0, of: str | Callable[[Any], Any] = ""
) -> Column:
    """Return a column of numbers that identify rows."""
    return Column(key, title, right=True, width=width, stays=True, of=of)


def moment(key: str, title: str, width: int = 0, of: str | Callable[[Any], Any] = "") -> Column:
    """Return a column of times in seconds."""
    return Column(key, title, right=True, width=width, text=seconds, short=milliseconds, stays=True, of=of)


def address(key: str, title: str, width: int = 0, of_tables: bool = False) -> Column:
    """Return a column of addresses, which are cut without losing the port."""
    return Column(
        key,
        title,
        width=width,
        text=_address,
        short=short_address,
        least=9,
        end_matters=_ends_with_port,
        stays=True,
        of_tables=of_tables,
    )


def who(width: int = 0) -> Column:
    """Return a column, only of tables, with the player's name or the client's address."""
    return Column(
        "",
        "who",
        width=width,
        text=lambda one: one.player or _address(one.client),
        short=lambda one: one.player or short_address(one.client),
        least=9,
        end_matters=lambda one: one.player is None,
        stays=True,
    )


def behind(front: Sequence[Column], columns: Sequence[Column]) -> list[Column]:
    """Return columns of pairs: those of `front` show the first of a pair, the others the second."""
    return [
        msgspec.structs.replace(column, of=_of_part(column.value, place))
        for place, part in enumerate((front, columns))
        for column in part
    ]


def _of_part(value: Callable[[Any], Any], place: int) -> Callable[[Any], Any]:
    return lambda pair: value(pair[place])


def of_several(columns: Sequence[Column], are_several: bool) -> list[Column]:
    """Return the columns, without those `of_tables` unless there are several game tables."""
    return hiding(columns, lambda column: column.of_tables and not are_several)


def hiding(columns: Sequence[Column], is_hidden: Callable[[Column], bool]) -> list[Column]:
    """Return the columns, some of them hidden in tables."""
    return [msgspec.structs.replace(one, title="") if is_hidden(one) else one for one in columns]


def batches(records: Iterable[Record]) -> Iterator[list[Record]]:
    """Yield records in batches."""
    remaining = iter(records)
    while batch := list(islice(remaining, BATCH)):
        yield batch


def show_table(columns: Sequence[Column], rows: Iterable[Sequence[Row]]) -> None:
    """Print batches of rows below their headings."""
    table = _Table(columns, terminal_columns())
    remaining = iter(rows)
    first = next(remaining, ())
    table.begin(first)
    table.show(first)
    for batch in remaining:
        table.show(batch)


class _Table:
    """A table on a terminal of `room` cells, or uncut if None."""

    def __init__(self, columns: Sequence[Column], room: int | None) -> None:
        self._columns = columns
        self._room = room
        self._is_short = False
        self._widths = [max(column.width, cell_len(column.title)) for column in columns]
        """Width of each column in cells, as required by all rows so far."""

    def begin(self, rows: Sequence[Row]) -> None:
        """Show the titles, fitted to `rows`, the first rows below them."""
        if self._room is not None:
            needed = self._needed(self._texts(rows))
            if sum(needed[:-1]) + min(needed[-1], _COMFORT) + len(_GAP) * (len(needed) - 1) > self._room:
                self._is_short = True
                self._widths = [cell_len(column.title) for column in self._columns]
        self._widths = self._needed(self._texts(rows))
        fitted = self._fitted()
        left_out = ", ".join(
            column.title for column, width in zip(self._columns, fitted, strict=True) if width is None
        )
        if left_out:
            warn(f"{self._room} columns are too narrow to show {left_out}")
        titles = self._cells([column.title for column in self._columns], fitted)
        show_line(Styled(_GAP.join(cell for _, cell in titles).rstrip(), bold=True))

    def show(self, rows: Sequence[Row]) -> None:
        """Show rows."""
        texts = self._texts(rows)
        # Columns never shrink, so that the layout changes only if necessary.
        self._widths = self._needed(texts)
        fitted = self._fitted()
        show_lines(self._line(row, of_row, fitted) for row, of_row in zip(rows, texts, strict=True))

    def _texts(self, rows: Sequence[Row]) -> list[list[str]]:
        """Return the values as escaped texts, whose width is then measured."""
        written = [
            column.short if self._is_short and column.short else column.text for column in self._columns
        ]
        return [[printable(write(value)) for write, value in zip(written, row, strict=True)] for row in rows]

    def _needed(self, texts: list[list[str]]) -> list[int]:
        return [
            max(width, *(cell_len(row[place]) for row in texts), 0)
            for place, width in enumerate(self._widths)
        ]

    def _fitted(self) -> list[int | None]:
        """Return the width of each column; None for columns that are left out."""
        widths: list[int | None] = [*self._widths]
        if self._room is None:
            return widths
        droppable = [place for place, column in enumerate(self._columns) if not column.stays]
        while True:
            fitted = self._narrowed(widths)
            shown = [width for width in fitted if width is not None]
            if sum(shown) + len(_GAP) * (len(shown) - 1) <= self._room or not droppable:
                return fitted
            widths[droppable.pop()] = None

    def _narrowed(self, widths: list[int | None]) -> list[int | None]:
        """Return the widths after cutting columns that may be cut, the last first, as far as needed."""
        assert self._room is not None
        fitted = [*widths]
        shown = [width for width in widths if width is not None]
        excess = sum(shown) + len(_GAP) * (len(shown) - 1) - self._room
        for place in reversed(range(len(fitted))):
            width, least = fitted[place], self._columns[place].least
            if excess > 0 and width is not None and least is not None:
                fitted[place] = max(min(width, least), width - excess)
                excess -= width - (fitted[place] or 0)
        return fitted

    def _line(self, row: Row, texts: Sequence[str], fitted: Sequence[int | None]) -> Line:
        cells = self._cells(texts, fitted, row)
        while cells and not cells[-1][1].strip():
            del cells[-1]
        line: list[Part] = []
        for place, cell in cells:
            colour = self._columns[place].colour
            told = colour(row[place]) if colour is not None else None
            line += [Styled(cell, told) if told is not None else cell, _GAP]
        if line:
            del line[-1]
            last = line[-1]
            line[-1] = last.rstrip() if isinstance(last, str) else last._replace(text=last.text.rstrip())
        return line

    def _cells(
        self, texts: Sequence[str], fitted: Sequence[int | None], row: Row | None = None
    ) -> list[tuple[int, str]]:
        """Return the shown cells of a line, cut and padded, each with the index of its column."""
        cells = []
        for place, (column, text, width) in enumerate(zip(self._columns, texts, fitted, strict=True)):
            if width is None:
                continue
            size = cell_len(text)
            if size > width and column.least is not None:
                text = _cut(text, width, row is not None and column.end_matters(row[place]))
                size = cell_len(text)
            blanks = " " * (width - size)
            cells.append((place, blanks + text if column.right else text + blanks))
        return cells


def _cut(text: str, width: int, end_matters: bool) -> str:
    dots = ellipsis()
    room = max(width - cell_len(dots), 0)
    if not end_matters:
        return set_cell_size(text, room).rstrip() + dots
    end = text[len(text) - room :]
    while cell_len(end) > room:
        end = end[1:]
    return dots + end


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

    keys, single = [column.key for column in shown], chain.from_iterable(rows())
    if form is None:
        show_table(shown, rows())
    elif form in ("csv", "tsv"):
        write_csv(chain([keys], single), "," if form == "csv" else "\t")
    else:
        write = write_json_array if form == "json" else write_json_lines
        write(dict(zip(keys, row, strict=True)) for row in single)
    if not seen:
        warn(nothing)
