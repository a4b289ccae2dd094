"""Rows of the panes: events, messages, diagnostics, streams, and the recording process's output.

Only visible rows are read, so a list may be as long as its session.

The output of the recording process, while the table occupies its terminal.

The process writes into an unnamed file, so neither process waits for the other.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Sequence

from kiebitz.cli.listings import content_of
from kiebitz.cli.spectator.followed_session import EventCursor, FollowedSession
from kiebitz.cli.terminal.console import COLOURS
from kiebitz.cli.terminal.screen import Text
from kiebitz.cli.terminal.table import short_address
from kiebitz.dissectors.model import PUBLIC, Direction, Message, Stream
from kiebitz.services.wording import gravest_of
from kiebitz.storage.read.alterations import AlteredMessages
from kiebitz.storage.read.message_queries import (
    CountedStream,
    diagnostics_numbered,
    diagnostics_of_messages,
    messages_numbered,
    streams_numbered,
    visible_groups,
)
from kiebitz.storage.read.search import Search
from kiebitz.storage.read.seen_rows import ALL_PLAYERS
from kiebitz.storage.session.session import message_record

_MAX_LINES = 10_000
"""Maximum number of lines kept; the oldest are dropped."""

_READ_BYTES = 1 << 16


class LogTail:
    """The lines of the file open as `descriptor`."""

    def __init__(self, descriptor: int) -> None:
        self.lines: list[str] = []
        self._descriptor = descriptor
        self._at = 0
        self._rest = b""
        self._parent = os.getppid()

    @property
    def is_orphaned(self) -> bool:
        """True if the recording process is gone."""
        return os.getppid() != self._parent

    def read(self) -> bool:
        """Read more of the file; return True if there are new lines."""
        data = os.pread(self._descriptor, _READ_BYTES, self._at)
        self._at += len(data)
        *whole, self._rest = (self._rest + data).split(b"\n")
        self.lines += (line.decode(errors="replace") for line in whole)
        del self.lines[:-_MAX_LINES]
        return bool(whole)


ARROWS: dict[bool, dict[Direction, str]] = {
    True: {"c2s": "→", "s2c": "←"},
    False: {"c2s": ">", "s2c": "<"},
}
"""Arrows from and to the client, by whether the terminal can show them."""


class Rows(ABC):
    """Rows that are read when they become visible; `nothing` is the text of an empty list."""

    nothing = "nothing yet"

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of rows."""

    @abstractmethod
    def lines(self, begin: int, end: int) -> Sequence[Text]:
        """Return the rows from `begin` up to, but not including, `end`. Raises sqlite3.Error."""


class EventRows(Rows):
    """The events of a table."""

    nothing = "no events yet, or none that match the filter"

    def __init__(self, followed: FollowedSession, course: EventCursor) -> None:
        self._watched = followed
        self.course = course

    def __len__(self) -> int:
        return len(self.course)

    def lines(self, begin: int, end: int) -> Sequence[Text]:
        spectator_view, numbers = self._watched.spectator_view, self._watched.timeline.numbers
        return [
            Text.assemble(
                (f"{spectator_view.seconds(event):9.3f} #{numbers.number('events', event.id)}", "dim"),
                f" {spectator_view.sentence(event)}",
            )
            for event in self.course.events(begin, end)
        ]


def _client(stream: Stream) -> str:
    return stream.player or short_address(stream.client)


class FoundRows(Rows):
    """Rows that a search finds."""

    def __init__(self, followed: FollowedSession, search: Search) -> None:
        self._watched = followed
        self.search = search

    def __len__(self) -> int:
        return len(self.search.found)


class MessageRows(FoundRows):
    """The messages of a table or session."""

    nothing = "no messages, or none that match the filter"

    def __init__(self, followed: FollowedSession, search: Search, has_letters: bool) -> None:
        super().__init__(followed, search)
        self._arrows = ARROWS[has_letters]

    def lines(self, begin: int, end: int) -> Sequence[Text]:
        timeline = self._watched.timeline
        numbers = self.search.found[begin:end]
        rows = {row.id: row for row in messages_numbered(timeline, numbers)}
        diagnostics = diagnostics_of_messages(timeline, list(numbers), visible_groups(self._watched.player))
        # A player sees the received bytes, not that the relay altered them.
        altered = AlteredMessages(timeline) if self._watched.player is None else None
        return [
            self._line(
                rows[number],
                [diagnostic.severity for diagnostic in diagnostics.get(number, ())],
                altered,
            )
            if number in rows
            else Text(
                f"#{timeline.numbers.number('messages', number)} is not in the database any more", "dim"
            )
            for number in numbers
        ]

    def _line(self, message: Message, severities: Sequence[str], altered: AlteredMessages | None) -> Text:
        gravest = gravest_of(severities)
        client = ALL_PLAYERS if self._watched.player == PUBLIC else _client(message.stream)
        mark = "" if gravest in (None, "note") else "! " if gravest == "error" else "? "
        record = message_record(self._watched.timeline, message, altered)
        return Text.assemble(
            (f"{record.time:9.3f}", "dim"),
            f" {self._arrows[message.direction]} {client}  ",
            (f"{mark}{message.name}", "bold" if not mark else f"bold {COLOURS[gravest]}" if gravest else ""),
            f"  {content_of(record)}",
        )


class DiagnosticRows(FoundRows):
    """The diagnostics of a table or session."""

    nothing = "no diagnostics, or none that match the filter"

    def lines(self, begin: int, end: int) -> Sequence[Text]:
        timeline = self._watched.timeline
        rows = diagnostics_numbered(timeline, self.search.found[begin:end])
        return [
            Text.assemble(
                (f"{timeline.seconds(row.ts_ns):9.3f}", "dim"),
                " ",
                (f"{row.severity}[{row.code}]", COLOURS[row.severity]),
                f" {'server' if row.direction == 's2c' else _client(row.stream)}: ",
                row.text,
            )
            for row in rows
        ]


class StreamRows(Rows):
    """The streams of a session."""

    nothing = "no streams yet"

    def __init__(self, followed: FollowedSession) -> None:
        self._watched = followed
        self.ids: Sequence[int] = ()
        self.grow()

    def grow(self) -> None:
        """Read which streams there are. Raises sqlite3.Error."""
        timeline = self._watched.timeline
        seen = self._watched.streams()
        rows = timeline.connection.execute(
            "SELECT id FROM streams WHERE session_id = ? ORDER BY id", (timeline.session.id,)
        )
        self.ids = [number for (number,) in rows if seen is None or number in seen]

    def __len__(self) -> int:
        return len(self.ids)

    def lines(self, begin: int, end: int) -> Sequence[Text]:
        return [self._line(row) for row in streams_numbered(self._watched.timeline, self.ids[begin:end])]

    def _line(self, row: CountedStream) -> Text:
        state = "open" if row.closed_ns is None else row.close_reason or "closed"
        name = _client(row)
        number = self._watched.timeline.numbers.number("streams", row.id)
        return Text.assemble(
            (f"{number:5} ", "dim"),
            f"{name}  {row.transport} {short_address(row.client)} to {short_address(row.server)}  ",
            f"{row.protocol or 'unknown protocol'}, {row.bytes} bytes, {state}",
        )


class LogRows(Rows):
    """The output of the recording process."""

    nothing = "no output yet"

    def __init__(self, said: LogTail | None) -> None:
        self._said = said

    def __len__(self) -> int:
        return len(self._said.lines) if self._said is not None else 0

    def lines(self, begin: int, end: int) -> Sequence[Text]:
        return [Text(line) for line in self._said.lines[begin:end]] if self._said is not None else []


class FixedRows(Rows):
    """A fixed list of lines."""

    def __init__(self, nothing: str, lines: Sequence[Text] = ()) -> None:
        self.nothing = nothing
        self._lines = lines

    def __len__(self) -> int:
        return len(self._lines)

    def lines(self, begin: int, end: int) -> Sequence[Text]:
        return self._lines[begin:end]
