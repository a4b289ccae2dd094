"""Export of a session, or a part of it, to pcapng, JSON lines, CSV or Parquet, row by row.

JSON lines, CSV and Parquet contain the part's rows as in the session. pcapng contains its bytes after those
of the preamble: a conversation of its own, from which everything else is derived again.
"""

from __future__ import annotations

import csv
import heapq
import io
import json
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any, BinaryIO, Protocol

from kiebitz.dissectors.escaping import cell, json_text, printable_json
from kiebitz.dissectors.extras import require_extra
from kiebitz.storage.derived.selection import Selection
from kiebitz.storage.export.rows import MessageRow, message_rows
from kiebitz.storage.read.alterations import altered_message_ids
from kiebitz.storage.read.event_text import iso_time, sentence
from kiebitz.storage.read.timeline import Timeline


class Writer(Protocol):
    """A function that writes a session, or a part of it, into a binary file."""

    def __call__(self, timeline: Timeline, file: BinaryIO, selection: Selection | None = None) -> None: ...


# Kind of record -> its rows, which begin with their time under another name than `time`.
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


def write_jsonl(timeline: Timeline, file: BinaryIO, selection: Selection | None = None) -> None:
    """Write an object for each record of the session, in order of time, with its kind as `record`.

    The other keys are the columns of its table in the database; an event also has its `sentence`. Bytes are
    hexadecimal.
    """
    streams = [_records(timeline, kind, rank) for rank, kind in enumerate(_RECORDS)]
    altered = altered_message_ids(timeline)
    for _, _, _, record in heapq.merge(*streams, key=lambda entry: entry[:3]):
        if selection is None or _is_in(selection, record, altered):
            file.write(json_text(record).encode() + b"\n")


def write_csv(timeline: Timeline, file: BinaryIO, selection: Selection | None = None) -> None:
    """Write a row for each message, with a header; `time` is in seconds since the start of the session.

    A text that a spreadsheet would evaluate is prefixed with an apostrophe.
    """
    text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
    try:
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow("time_utc" if name == "ts_ns" else name for name in MessageRow._fields)
        for row in message_rows(timeline, selection):
            writer.writerow(_cells(row))
    finally:
        # The caller closes the file.
        text.detach()


def _cells(row: MessageRow) -> Iterator[str | int | float | None]:
    for name, value in zip(row._fields, row, strict=True):
        if name == "ts_ns":
            yield iso_time(row.ts_ns)
        elif isinstance(value, str):
            yield cell(printable_json(value) if name in _JSON_COLUMNS else value)
        else:
            yield value


def write_parquet(timeline: Timeline, file: BinaryIO, selection: Selection | None = None) -> None:
    """Write the same rows as CSV, with types; see `storage.export.parquet`."""
    # pyarrow loads slowly.
    require_extra("parquet", "an export as Parquet")
    from kiebitz.storage.export import parquet

    parquet.write(timeline, file, selection)


def write_pcapng(timeline: Timeline, file: BinaryIO, selection: Selection | None = None) -> None:
    """Write the datagrams, each with comments that describe its contents."""
    # Scapy loads slowly.
    from kiebitz.storage.export import pcapng

    if selection is None:
        pcapng.write(timeline, file)
        return
    from kiebitz.storage.derived.derived_session import extract_part

    part = extract_part(timeline, selection)
    with closing(part.connection):
        pcapng.write(part, file)


FORMATS: dict[str, Writer] = {
    "pcapng": write_pcapng,
    "jsonl": write_jsonl,
    "csv": write_csv,
    "parquet": write_parquet,
}
"""Name of a format -> its writer."""

BINARY = {"pcapng", "parquet"}
"""Formats that are not text."""


def _records(timeline: Timeline, kind: str, rank: int) -> Iterator[tuple[int, int, int, dict[str, Any]]]:
    """Yield the records of a kind: time, tie-breakers between kinds and within the kind, and the record."""
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


def _is_in(selection: Selection, record: dict[str, Any], altered: Mapping[int, int]) -> bool:
    """Return True if a record belongs to a part; `altered` maps alterations to their messages."""
    number = record["id"]
    match record["record"]:
        case "session":
            return True
        case "stream":
            return number in selection.streams
        case "game":
            return number in selection.games
        case "message":
            return number in selection.messages
        case "event":
            return number in selection.events
        case "alteration":
            about = altered.get(number)
        case _:
            about = record["message_id"]
    if about is not None:
        return about in selection.messages
    return selection.includes_time(record["stream_id"], record["ts_ns"])
