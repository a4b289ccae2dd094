"""The tables of a corpus: those of a session's database, with what a database works out when it is asked.

A table is many Parquet files, one for each capture and protocol. `capture` and `protocol` are columns of
each, which its files do not hold: they stand in the names of their folders, as Hive has it.
"""

from __future__ import annotations

from collections.abc import Mapping

from kiebitz.storage.database.schema import TABLES

CAPTURE, PROTOCOL = "capture", "protocol"

_MORE: dict[str, dict[str, type]] = {
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
        **{column: kind for column, kind in TABLES[table].items() if column != PROTOCOL},
        **more,
    }
    for table, more in _MORE.items()
}
"""Table -> column -> type of its values, as its files hold them. The first ones are the database's.

`sessions` alone is not parted by protocol, as a capture may have several. Left out are the bytes themselves
(`chunks`), which are in the capture, and `snapshots`, since each capture begins with an empty state.
"""

BY_CAPTURE = "sessions"
"""The table that is parted by capture alone."""


def file_name(table: str) -> str:
    """What a file of a table is called."""
    return f"{table}.parquet"
