"""Field paths that a filter may have meant by an unknown name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec

from kiebitz.dissectors.grammar.grammar import to_json
from kiebitz.storage.read.timeline import Timeline

_MAX_ROWS = 200
"""Number of messages, and of events, with such a name to search."""

_MAX_HINTS = 2


def session_protocols(timeline: Timeline) -> list[str]:
    """Return the protocols of a session."""
    rows = timeline.connection.execute(
        "SELECT DISTINCT protocol FROM streams WHERE session_id = ? AND protocol IS NOT NULL",
        (timeline.session.id,),
    )
    return sorted(protocol for (protocol,) in rows)


def find_paths(timeline: Timeline, name: str) -> list[str]:
    """Return paths below fields that end in a name, as filters write them, as in `resources.Holz`.

    Paths in events come first, then those in messages; of each the most frequent ones.
    """
    from kiebitz.dissectors.filters.fields import written

    number = timeline.session.id
    streams = "stream_id IN (SELECT id FROM streams WHERE session_id = ?)"
    found: list[str] = []
    for query in (
        f"SELECT data FROM events WHERE session_id = ? AND instr(data, ?) LIMIT {_MAX_ROWS}",
        f"SELECT fields FROM messages WHERE {streams} AND instr(fields, ?) LIMIT {_MAX_ROWS}",
    ):
        count: Counter[str] = Counter()
        for (text,) in timeline.connection.execute(query, (number, to_json(name) + ":")):
            paths = _paths(msgspec.json.decode(text), name)
            count.update(".".join(map(written, path)) for path in paths if len(path) > 1)
        found += [path for path, _ in count.most_common(_MAX_HINTS) if path not in found]
    return found


def _paths(whole: Any, name: str) -> Iterator[tuple[str, ...]]:
    """Yield the paths that end in a name; lists add nothing to a path."""
    waiting: list[tuple[tuple[str, ...], Any]] = [((), whole)]
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, dict):
            if name in value:
                yield (*path, name)
            waiting += [((*path, key), inner) for key, inner in value.items()]
        elif isinstance(value, list):
            waiting += [(path, inner) for inner in value]
