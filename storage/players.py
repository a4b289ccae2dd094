"""What the clients of a session call themselves, stream by stream, as far as they have said it."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from kiebitz.dissectors.registry import dissector_of
from kiebitz.storage.timeline import Timeline, increasing


def names_of_streams(timeline: Timeline, after: int = 0) -> dict[int, str]:
    """Stream to what its client calls itself, in its messages numbered above `after`; the latest name counts.

    Clients who have not said it are not in it.
    """
    names: dict[int, str] = {}
    protocols = dict(
        timeline.connection.execute(
            "SELECT id, protocol FROM streams WHERE session_id = ? AND protocol IS NOT NULL",
            (timeline.session.id,),
        ).fetchall()
    )
    dissectors = {
        protocol: dissector for protocol in {*protocols.values()} if (dissector := dissector_of(protocol))
    }
    introductions = sorted({name for dissector in dissectors.values() for name in dissector.introductions})
    # The plus keeps SQLite from reading all from there on.
    marks = ", ".join("?" * len(introductions))
    rows = timeline.connection.execute(
        "SELECT id, stream_id, name, fields FROM messages"
        f" WHERE name IN ({marks}) AND direction = 'c2s' AND +id > ? ORDER BY id",
        [*introductions, after],
    )
    for _, stream, name, fields in increasing(rows):
        dissector = dissectors.get(protocols.get(stream, ""))
        if dissector is not None:
            called = dissector.introduced(name, "c2s", msgspec.json.decode(fields))
            if called is not None:
                names[stream] = called
    return names


def name_of_stream(timeline: Timeline) -> Callable[[int], str | None]:
    """The same as a function, which reads nothing before it is asked."""
    names: dict[int, str] | None = None

    def name(stream: int) -> str | None:
        nonlocal names
        if names is None:
            names = names_of_streams(timeline)
        return names.get(stream)

    return name
