"""Writer of a session as the Parquet files of one capture, row by row."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

from kiebitz.dissectors.grammar.grammar import to_json
from kiebitz.storage.corpus.layout import BY_CAPTURE, COLUMNS, PROTOCOL, file_name
from kiebitz.storage.database.schema import SESSION_CONDITIONS, TABLES
from kiebitz.storage.read.message_queries import MAX_SHOWN_BYTES, StoredDiagnostic, diagnostics_by_id, streams
from kiebitz.storage.read.players import named_result
from kiebitz.storage.read.recorded_bytes import RecordedBytes
from kiebitz.storage.session.session import Session

if TYPE_CHECKING:
    from pyarrow import Schema
    from pyarrow.parquet import ParquetWriter

    from kiebitz.storage.read.timeline import Timeline

ROW_GROUP = 20_000
"""Rows held in memory at once."""

_NO_PROTOCOL = "__HIVE_DEFAULT_PARTITION__"
"""Replacement of NULL in a folder's name."""

_Row = tuple[Any, ...]
_Rows = Iterator[tuple[str | None, _Row]]
"""Rows, each with its protocol."""


class DiagnosticLocation(NamedTuple):
    """The location of a diagnostic: bytes, surrounding lines as JSON, and next readable position."""

    marked: bytes | None
    lines: str
    resumed_offset: int | None
    resumed_message: str | None


class CaptureInfo(NamedTuple):
    """Facts of a capture that are not in its session: packet count, size in bytes, and unreadable parts."""

    packets: int
    bytes: int
    lacks: str | None


def write_capture(
    session: Session,
    source: CaptureInfo,
    place_of: Callable[[StoredDiagnostic], DiagnosticLocation],
    folder: str,
) -> None:
    """Write the files of a session into a folder. Raises OSError."""
    timeline = session.timeline
    _, own = next(_stored(timeline, BY_CAPTURE))
    with _PartitionWriter(BY_CAPTURE, folder) as parts:
        parts.add(None, (*own, *source))
    rows: dict[str, _Rows] = {
        "streams": _streams(timeline),
        "tables": _stored(timeline, "tables"),
        "games": _games(timeline),
        "events": _events(session),
        "messages": _messages(timeline),
        "diagnostics": _diagnostics(timeline, place_of),
    }
    for table, of_table in rows.items():
        with _PartitionWriter(table, folder) as parts:
            for protocol, row in of_table:
                parts.add(protocol, row)


class _PartitionWriter:
    """A context manager that writes the files of one table, one for each protocol. Raises OSError."""

    def __init__(self, table: str, folder: str) -> None:
        import pyarrow as pa

        types = {int: pa.int64(), str: pa.string(), bytes: pa.binary()}
        self._table = table
        self._folder = folder
        self._schema: Schema = pa.schema([(name, types[kind]) for name, kind in COLUMNS[table].items()])
        self._waiting: dict[str | None, list[_Row]] = {}
        self._writers: dict[str | None, ParquetWriter] = {}

    def __enter__(self) -> _PartitionWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                for protocol in [*self._waiting]:
                    self._write(protocol)
        finally:
            for writer in self._writers.values():
                writer.close()

    def add(self, protocol: str | None, row: _Row) -> None:
        waiting = self._waiting.setdefault(protocol, [])
        waiting.append(row)
        if len(waiting) == ROW_GROUP:
            self._write(protocol)

    def _write(self, protocol: str | None) -> None:
        import pyarrow as pa

        rows = self._waiting.pop(protocol)
        writer = self._writers.get(protocol) or self._open(protocol)
        columns = zip(*rows, strict=True)
        arrays = [pa.array(column, type) for column, type in zip(columns, self._schema.types, strict=True)]
        writer.write_table(pa.table(arrays, self._schema))

    def _open(self, protocol: str | None) -> ParquetWriter:
        from pyarrow import parquet

        folder = self._folder
        if self._table != BY_CAPTURE:
            name = _NO_PROTOCOL if protocol is None else quote(protocol, safe="")
            folder = os.path.join(folder, f"{PROTOCOL}={name}")
            # Its parents are not made: if they are gone, so are the files written before.
            with suppress(FileExistsError):
                os.mkdir(folder)
        path = os.path.join(folder, file_name(self._table))
        made = self._writers[protocol] = parquet.ParquetWriter(path, self._schema, compression="zstd")
        return made


_PARENTS = {"events": "tables", "messages": "streams", "diagnostics": "streams"}
"""Child table -> parent table that has the protocol of its rows."""


def _stored(timeline: Timeline, table: str) -> _Rows:
    """Yield the stored rows of a table, without the columns that the files lack."""
    parent, protocol = "", "t.protocol" if PROTOCOL in TABLES[table] else "NULL"
    if table in _PARENTS:
        protocol = "p.protocol"
        parent = f" JOIN {_PARENTS[table]} AS p ON p.id = t.{_PARENTS[table].removesuffix('s')}_id"
    columns = ", ".join(f't."{column}"' for column in TABLES[table] if column != PROTOCOL)
    rows = timeline.connection.execute(
        f"SELECT {protocol}, {columns} FROM {table} AS t{parent}"
        f" WHERE +t.{SESSION_CONDITIONS.get(table, 'id = ?')} ORDER BY t.id",
        (timeline.session.id,),
    )
    for of_protocol, *row in rows:
        yield of_protocol, tuple(row)


def _streams(timeline: Timeline) -> _Rows:
    stored = _stored(timeline, "streams")
    for (protocol, row), stream in zip(stored, streams(timeline), strict=True):
        yield protocol, (*row, stream.messages, stream.bytes)


def _games(timeline: Timeline) -> _Rows:
    stored = _stored(timeline, "games")
    for (protocol, row), game in zip(stored, timeline.games(), strict=True):
        result = named_result(timeline, game)
        yield protocol, (*row, None if result is None else to_json(result))


def _events(session: Session) -> _Rows:
    place = [*COLUMNS["events"]].index("sentence")
    stored = _stored(session.timeline, "events")
    for (protocol, row), event in zip(stored, session.events(), strict=True):
        # Use the sentence of the listings, which depends on visibility.
        yield protocol, (*row[:place], event.sentence, *row[place + 1 :])


def _messages(timeline: Timeline) -> _Rows:
    malformed = {
        number
        for (number,) in timeline.connection.execute(
            "SELECT message_id FROM diagnostics WHERE message_id IS NOT NULL AND severity != 'note'"
        )
    }
    recorded = RecordedBytes(timeline.connection)
    for protocol, row in _stored(timeline, "messages"):
        number, stream, direction, _, _, fields, offset, length, *_ = row
        sent = None
        if fields == "{}" and number in malformed:
            stretches = recorded.between(stream, direction, offset, offset + min(length, MAX_SHOWN_BYTES))
            sent = b"".join(stretch.data or b"" for stretch in stretches)
        yield protocol, (*row, sent)


def _diagnostics(timeline: Timeline, place_of: Callable[[StoredDiagnostic], DiagnosticLocation]) -> _Rows:
    stored = _stored(timeline, "diagnostics")
    for (protocol, row), diagnostic in zip(stored, diagnostics_by_id(timeline), strict=True):
        yield protocol, (*row, *place_of(diagnostic))
