"""The tables of a corpus: those of a session database, with values that a database computes on demand.

A table is many Parquet files, one for each capture and protocol. `capture` and `protocol` are columns that
the files do not contain: the names of their folders hold them, following Hive's partitioning.
"""

from __future__ import annotations

from collections.abc import Mapping

from kiebitz.storage.database.schema import TABLES

CAPTURE, PROTOCOL = "capture", "protocol"

_ADDED_COLUMNS: dict[str, dict[str, type]] = {
    "sessions": {"packets": int, "bytes": int, "lacks": str},
    "streams": {"messages": int, "bytes": int},
    "tables": {},
    "games": {"named_result": str},
    "events": {},
    "messages": {"sent": bytes},
    "diagnostics": {"marked": bytes, "lines": str, "resumed_offset": int, "resumed_message": str},
}

COLUMNS: Mapping[str, Mapping[str, type]] = {
    table: {
        **{name: column.type for name, column in TABLES[table].items() if name != PROTOCOL},
        **more,
    }
    for table, more in _ADDED_COLUMNS.items()
}
"""Table -> column -> type of its values, as in the files. The first columns are the database's.

Only `sessions` is not partitioned by protocol, as a capture may have several. Left out are the bytes
themselves (`chunks`), which are in the capture, and `snapshots`, since each capture begins with an empty
state.
"""

BY_CAPTURE = "sessions"
"""The table that is partitioned by capture alone."""


def file_name(table: str) -> str:
    """Return the name of a table's files."""
    return f"{table}.parquet"
