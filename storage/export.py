"""A session as a file for other programs: pcapng, JSON lines, CSV or Parquet, written row by row."""

from __future__ import annotations

import csv
import heapq
import io
import json
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, BinaryIO

from kiebitz.storage.alterations import OF_MESSAGE
from kiebitz.storage.escaping import cell, json_text, printable_json
from kiebitz.storage.sentences import sentence
from kiebitz.storage.timeline import Timeline, increasing

ROW_GROUP = 20_000
"""Messages that are in memory at once while Parquet is written."""

# Kind of record -> its rows, their time first. `time` is its name in the rest of the row.
_RECORDS = {
    "session": "SELECT started_ns, * FROM sessions WHERE id = ?",
    "stream": "SELECT opened_ns, * FROM streams WHERE session_id = ? ORDER BY opened_ns, id",
    "game": "SELECT started_ns, * FROM games WHERE session_id = ? ORDER BY started_ns, id",
    "message": "SELECT m.ts_ns, m.* FROM messages AS m JOIN streams AS s ON s.id = m.stream_id"
    " WHERE s.session_id = ? ORDER BY m.ts_ns, m.id",
    "alteration": "SELECT a.ts_ns, a.* FROM alterations AS a JOIN streams AS s ON s.id = a.stream_id"
    " WHERE s.session_id = ? ORDER BY a.ts_ns, a.id",
    "event": "SELECT e.ts_ns, e.*, t.protocol FROM events AS e JOIN tables AS t ON t.id = e.table_id"
    " WHERE e.session_id = ? ORDER BY e.ts_ns, e.id",
    "diagnostic": "SELECT d.ts_ns, d.* FROM diagnostics AS d JOIN streams AS s ON s.id = d.stream_id"
    " WHERE s.session_id = ? ORDER BY d.ts_ns, d.id",
}

_JSON_COLUMNS = {"fields", "data", "changes", "result"}

_COLUMNS = (
    "time",
    "stream",
    "client",
    "server",
    "direction",
    "name",
    "fields",
    "event",
    "sentence",
    "game",
    "diagnostics",
    "altered",
)


def write_jsonl(timeline: Timeline, file: BinaryIO) -> None:
    """An object for each record of the session, in order of time; `record` says what it is.

    The other keys are the columns of its table in the database; an event also has its `sentence`. Bytes are
    in hexadecimal.
    """
    streams = [_records(timeline, kind, rank) for rank, kind in enumerate(_RECORDS)]
    for _, _, _, record in heapq.merge(*streams, key=lambda entry: entry[:3]):
        file.write(json_text(record).encode() + b"\n")


def write_csv(timeline: Timeline, file: BinaryIO) -> None:
    """A row for each message, with a header; `time` is in seconds since the session began.

    What a spreadsheet would run stands behind an apostrophe.
    """
    text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
    try:
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(_COLUMNS)
        for row in _messages(timeline):
            writer.writerow([cell(value) if isinstance(value, str) else value for value in row])
    finally:
        # What was given open is left open.
        text.detach()


def write_parquet(timeline: Timeline, file: BinaryIO) -> None:
    """The same rows as CSV, with types."""
    import pyarrow as pa
    from pyarrow import parquet

    whole = {"stream", "game", "diagnostics"}
    types = {"time": pa.float64()} | dict.fromkeys(whole, pa.int64())
    schema = pa.schema([(column, types.get(column, pa.string())) for column in _COLUMNS])
    rows = _messages(timeline)
    with parquet.ParquetWriter(file, schema) as writer:
        while group := list(islice(rows, ROW_GROUP)):
            columns = zip(*group, strict=True)
            arrays = [pa.array(column, type) for column, type in zip(columns, schema.types, strict=True)]
            writer.write_table(pa.table(arrays, schema))


def write_pcapng(timeline: Timeline, file: BinaryIO) -> None:
    """The datagrams, each with comments that say what it means."""
    # Scapy takes its time to load.
    from kiebitz.storage import pcapng

    pcapng.write(timeline, file)


FORMATS: dict[str, Callable[[Timeline, BinaryIO], None]] = {
    "pcapng": write_pcapng,
    "jsonl": write_jsonl,
    "csv": write_csv,
    "parquet": write_parquet,
}
"""Writers of a session into a binary file, by the name of the format."""

BINARY = {"pcapng", "parquet"}
"""Formats that are no text."""


def _records(timeline: Timeline, kind: str, rank: int) -> Iterator[tuple[int, int, int, dict[str, Any]]]:
    """Records of a kind: time, what breaks a tie between kinds and inside the kind, and the record."""
    cursor = timeline.connection.execute(_RECORDS[kind], (timeline.session.id,))
    names = [column[0] for column in cursor.description[1:]]
    for number, (ts_ns, *values) in enumerate(cursor):
        record: dict[str, Any] = {"record": kind}
        for name, value in zip(names, values, strict=True):
            if isinstance(value, bytes):
                value = value.hex()
            record[name] = json.loads(value) if name in _JSON_COLUMNS and value is not None else value
        if kind == "event":
            record["sentence"] = sentence(record.pop("protocol"), record["kind"], record["data"])
        yield ts_ns or 0, rank, number, record


def _messages(timeline: Timeline) -> Iterator[tuple[Any, ...]]:
    """The session's messages as rows of `_COLUMNS`."""
    # The plus keeps SQLite from beginning with the streams and sorting the whole session by id.
    rows = timeline.connection.execute(
        "SELECT m.id, m.ts_ns, m.stream_id, s.client, s.server, m.direction, m.name, m.fields, e.kind,"
        " e.data, s.protocol, m.game_id, (SELECT count(*) FROM diagnostics WHERE message_id = m.id),"
        f" (SELECT a.action FROM alterations AS a WHERE {OF_MESSAGE})"
        " FROM messages AS m JOIN streams AS s ON s.id = m.stream_id"
        " LEFT JOIN events AS e ON e.id = m.event_id WHERE +s.session_id = ? ORDER BY m.id",
        (timeline.session.id,),
    )
    numbers = timeline.numbers
    for row in increasing(rows):
        ts_ns, stream, client, server, direction, name, fields, kind, data, protocol, game, flaws, altered = (
            row[1:]
        )
        yield (
            (ts_ns - timeline.started_ns) / 1e9,
            numbers.number("streams", stream),
            client,
            server,
            direction,
            name,
            printable_json(fields),
            kind,
            None if kind is None else sentence(protocol, kind, json.loads(data)),
            numbers.number_if_any("games", game),
            flaws,
            altered,
        )
