"""The timeline of a stored session: its events, and the state of a table at any position.

The state is the latest snapshot at or before the position, plus the changes since.
"""

from __future__ import annotations

import sqlite3
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from itertools import islice
from typing import Any, Literal, NamedTuple

import msgspec

from kiebitz.dissectors.game.state import State, apply
from kiebitz.dissectors.model import Event, Game, Stream, TableInfo
from kiebitz.dissectors.session_numbering import Numbers
from kiebitz.storage.database.protocol_files import stored_losses
from kiebitz.storage.database.schema import GREATEST_ID, SessionRow, StorageError, scalar

_PARTIAL = "the import is in progress, or was broken off: then delete the session, and import it again"

STREAM_COLUMNS = (
    "s.id, s.transport, s.client, s.server, s.opened_ns, s.protocol, s.closed_ns, s.close_reason, s.player"
)
"""SQL for the fields of a `Stream`, from `streams` (alias s)."""

_GAME_COLUMNS = "id, table_id, protocol, label, started_ns, ended_ns, result"
_EVENT_COLUMNS = "e.id, e.table_id, e.game_id, e.seq, e.ts_ns, e.kind, e.actor, e.data, e.changes"


_MAX_STEPS = 100
"""Events up to which `passing_state` continues a state rather than read it anew."""


class CountedSession(SessionRow, frozen=True, kw_only=True):
    """A session with the numbers of its streams, messages, games and errors."""

    streams: int
    messages: int
    games: int
    errors: int


class StoredEvent(NamedTuple):
    """A stored event without its changes; `data` is JSON text."""

    id: int
    table_id: int
    game_id: int | None
    kind: str
    actor: str | None
    data: str


class Timeline:
    """One session of an open database."""

    def __init__(self, connection: sqlite3.Connection, session: SessionRow) -> None:
        self.connection = connection
        self.session = session
        self.version = 0
        """Number of times that the session was reread."""
        self._tables: dict[int, TableInfo] = {}
        self._streams: dict[int, Stream] = {}
        self._passing: dict[int, tuple[int, State]] = {}
        """Each table's latest state after an event; see `passing_state`."""
        self._latest: Event | None = None

    @cached_property
    def numbers(self) -> Numbers:
        """The translation between row ids and displayed numbers."""
        return Numbers(self.session.before)

    def reread(self) -> None:
        """Reread the session's row, and forget rows that may have changed. Raises StorageError."""
        number = self.session.id
        found = sessions(self.connection, number)
        if not found:
            raise StorageError(f"there is no session {number} in this database any more")
        (self.session,) = found
        self.version += 1
        self._streams.clear()

    @property
    def started_ns(self) -> int:
        """The session's time zero; 0 if nothing was recorded."""
        return self.session.started_ns or 0

    def seconds(self, ts_ns: int) -> float:
        """Convert a time to seconds since the start of the session."""
        return (ts_ns - self.started_ns) / 1e9

    def last_id(self, table: Literal["messages", "diagnostics"]) -> int:
        """Return the id of the last row of a table, whatever its session; 0 if there is none."""
        return int(self.scalar(f"SELECT coalesce(max(id), 0) FROM {table}"))

    def scalar(self, query: str, *parameters: Any) -> Any:
        """Return the first value that a query finds, None if it finds no row."""
        return scalar(self.connection, query, *parameters)

    def tables(self) -> list[TableInfo]:
        """Return the session's game tables, oldest first."""
        rows = self.connection.execute(
            "SELECT id, protocol, server FROM tables WHERE session_id = ? ORDER BY id", (self.session.id,)
        )
        return [TableInfo(*row) for row in check_ascending(rows)]

    def table(self, row_id: int) -> TableInfo:
        """Return a table by id; rereads all tables for an unknown id, as the session may grow."""
        if row_id not in self._tables:
            self._tables |= {table.id: table for table in self.tables()}
        return self._tables[row_id]

    def stream(self, row_id: int) -> Stream:
        """Return a stream; each is read once, see `streams_now`."""
        found = self._streams.get(row_id)
        if found is None:
            query = f"SELECT {STREAM_COLUMNS} FROM streams AS s WHERE id = ?"
            found = self._streams[row_id] = Stream(*self.connection.execute(query, (row_id,)).fetchone())
        return found

    def streams_now(self) -> Callable[[int], Stream]:
        """Return the function `stream`; of a live session, it reads each stream again."""
        if self.session.ended_ns is None:
            self._streams.clear()
        return self.stream

    @contextmanager
    def as_of_now(self) -> Iterator[None]:
        """Run a block's queries on one snapshot of the database, even if recording continues.

        Use it only for short blocks, as the write-ahead log grows until the end.
        """
        if self.connection.in_transaction:
            yield
            return
        self.connection.execute("BEGIN")
        try:
            yield
        finally:
            self.connection.rollback()

    def games(self) -> list[Game]:
        """Return the session's games, oldest first."""
        return [*map(_game, check_ascending(self._games("ORDER BY id")))]

    def last_game(self, table_id: int | None = None, *, with_result: bool = False) -> Game | None:
        """Return the latest game of the session, or of one of its tables; None if there is none."""
        of_table, parameters = ("AND table_id = ? ", [table_id]) if table_id is not None else ("", [])
        ended = "AND result IS NOT NULL " if with_result else ""
        return next(map(_game, self._games(f"{of_table}{ended}ORDER BY id DESC LIMIT 1", *parameters)), None)

    def games_since(self, table_id: int, ts_ns: int, most: int) -> list[Game]:
        """Return the latest games of a table that were on at a time or later, oldest first."""
        latest = "AND table_id = ? AND (ended_ns IS NULL OR ended_ns >= ?) ORDER BY id DESC LIMIT ?"
        return [*map(_game, self._games(latest, table_id, ts_ns, most))][::-1]

    def count(self, table: Literal["games", "events"]) -> int:
        """Return the number of the session's games or events."""
        return int(self.scalar(f"SELECT count(*) FROM {table} WHERE session_id = ?", self.session.id))

    def game(self, number: int) -> Game | None:
        """Return one game of the session, None if it has no such game."""
        return next(map(_game, self._games("AND id = ?", number)), None)

    def _games(self, condition: str, *parameters: Any) -> sqlite3.Cursor:
        """Return the rows of the session's games that meet a condition, in its order."""
        query = f"SELECT {_GAME_COLUMNS} FROM games WHERE session_id = ? {condition}"
        return self.connection.execute(query, (self.session.id, *parameters))

    def actors(self) -> set[str]:
        """Return the names of all players that act in the session."""
        rows = self.connection.execute(
            "SELECT DISTINCT actor FROM events WHERE session_id = ? AND actor IS NOT NULL", (self.session.id,)
        )
        return {name for (name,) in rows}

    def events(self, condition: str = "1", parameters: Sequence[Any] = ()) -> Iterator[Event]:
        """Yield the session's events that meet an SQL condition on the table `events` (alias e), in order."""
        # The plus keeps SQLite from using the index by time and sorting the whole session by id.
        rows = self.connection.execute(
            f"SELECT {_EVENT_COLUMNS} FROM events e WHERE +e.session_id = ? AND ({condition}) ORDER BY e.id",
            [self.session.id, *parameters],
        )
        return map(_event, check_ascending(rows))

    def event(self, row_id: int) -> Event | None:
        """Return an event by id, None if there is none; the latest one is kept."""
        if self._latest is None or self._latest.id != row_id:
            self._latest = next(self.events("e.id = ?", [row_id]), None)
        return self._latest

    def stored_events(self, condition: str = "1", parameters: Sequence[Any] = ()) -> Iterator[StoredEvent]:
        """Yield the same events as stored, which is cheaper."""
        rows = self.connection.execute(
            "SELECT e.id, e.table_id, e.game_id, e.kind, e.actor, e.data FROM events e"
            f" WHERE +e.session_id = ? AND ({condition}) ORDER BY e.id",
            [self.session.id, *parameters],
        )
        return map(StoredEvent._make, check_ascending(rows))

    def recent(self, table_id: int, seq: int, count: int, game_id: int | None = None) -> list[Event]:
        """Return the last `count` events of a table, or of its game, up to number `seq`, oldest first."""
        if game_id is None:
            return list(self.events_between(table_id, seq - count, seq))
        latest = self.events_between(table_id, None, seq, "+e.game_id = ?", [game_id])
        return [*islice(latest, count)][::-1]

    def events_between(
        self,
        table_id: int,
        after: int | None,
        upto: int | None,
        condition: str = "1",
        parameters: Sequence[Any] = (),
        by: str = "",
    ) -> Iterator[Event]:
        """Yield the events of a table that meet an SQL condition, numbered above `after` and up to `upto`.

        Without `after` the latest come first. `by` is another order in SQL.
        """
        rows = self.connection.execute(
            f"SELECT {_EVENT_COLUMNS} FROM events e WHERE e.table_id = ? AND e.seq > ? AND e.seq <= ?"
            f" AND ({condition}) ORDER BY {by or ('e.seq DESC' if after is None else 'e.seq')}",
            [table_id, -1 if after is None else after, GREATEST_ID if upto is None else upto, *parameters],
        )
        return map(_event, rows)

    def seqs(
        self, table_id: int, after: int, upto: int, condition: str = "1", parameters: Sequence[Any] = ()
    ) -> list[int]:
        """Return only the numbers of such events."""
        rows = self.connection.execute(
            "SELECT e.seq FROM events e WHERE e.table_id = ? AND e.seq > ? AND e.seq <= ?"
            f" AND ({condition}) ORDER BY e.seq",
            [table_id, after, upto, *parameters],
        )
        return [number for (number,) in rows]

    def last_seq(self, table_id: int) -> int:
        """Return the number of a table's last event; `first_seq` if it has none here."""
        last: int | None = self.scalar("SELECT max(seq) FROM events WHERE table_id = ?", table_id)
        return last if last is not None else self.first_seq(table_id)

    def near(self, event: Event, side: Literal["before", "after"]) -> Iterator[Event]:
        """Yield a table's events before one of them, latest first, or after it; they are read one by one."""
        if side == "before":
            return self.events_between(event.table_id, None, event.seq - 1)
        return self.events_between(event.table_id, event.seq, None)

    def state_at(self, table_id: int, seq: int) -> State:
        """Return a table's state after its event number `seq`; `first_seq` is before the first."""
        row = self.connection.execute(
            "SELECT seq, state FROM snapshots WHERE table_id = ? AND seq <= ? ORDER BY seq DESC LIMIT 1",
            (table_id, seq),
        ).fetchone()
        start, state = (row[0], msgspec.json.decode(row[1])) if row is not None else (0, {})
        changes = self.connection.execute(
            "SELECT changes FROM events WHERE table_id = ? AND seq > ? AND seq <= ? ORDER BY seq",
            (table_id, start, seq),
        )
        for (step,) in changes:
            apply(state, msgspec.json.decode(step))
        return state

    def passing_state(self, table_id: int, seq: int) -> State:
        """Return such a state, valid until the next call for its table: cheap for going through it."""
        reached, state = self._passing.get(table_id, (seq + 1, {}))
        if reached <= seq <= reached + _MAX_STEPS:
            for step in self.events_between(table_id, reached, seq):
                apply(state, step.changes)
        else:
            state = self.state_at(table_id, seq)
        self._passing[table_id] = seq, state
        return state

    def last_event(self) -> int:
        """Return the id of the session's last event; 0 if there is none."""
        # Per table, the answer is at the end of an index; for the whole session it would take a search.
        query = (
            "SELECT max((SELECT id FROM events WHERE table_id = t.id ORDER BY seq DESC LIMIT 1))"
            " FROM tables t WHERE t.session_id = ?"
        )
        return self.scalar(query, self.session.id) or 0

    def has_event(self, event_id: int) -> bool:
        """Return True if an event belongs to this session."""
        query = "SELECT 1 FROM events WHERE id = ? AND session_id = ?"
        return self.scalar(query, event_id, self.session.id) is not None

    def is_reported(self, event_id: int) -> bool:
        """Return True if a message reports an event."""
        return self.scalar("SELECT 1 FROM messages WHERE event_id = ? LIMIT 1", event_id) is not None

    def event_at(self, ts_ns: int) -> int:
        """Return the id of the session's last event at or before a time; 0 if there is none."""
        found = self.scalar(
            "SELECT id FROM events WHERE session_id = ? AND ts_ns <= ? ORDER BY ts_ns DESC, id DESC LIMIT 1",
            self.session.id,
            ts_ns,
        )
        return found or 0

    def seq_upto(self, table_id: int, event_id: int) -> int:
        """Return the number of a table's last event not after the event `event_id`, at least `first_seq`."""
        found: int | None = self.scalar(
            "SELECT seq FROM events WHERE id = ? AND table_id = ?", event_id, table_id
        )
        if found is not None:
            return found
        first = self.first_seq(table_id)
        last = self.scalar("SELECT max(seq) FROM events WHERE table_id = ?", table_id) or 0
        event_with = partial(self.scalar, "SELECT id FROM events WHERE table_id = ? AND seq = ?", table_id)
        # Both numbers grow together, so a table that has long been idle costs no more than a busy one.
        return first + bisect_right(range(first + 1, last + 1), event_id, key=event_with)

    def seq_of_diagnostic(self, table_id: int, event_id: int | None, ts_ns: int) -> int:
        """Return the number of a diagnostic's event, or of the table's last event up to its time."""
        return self.seq_upto(table_id, event_id if event_id is not None else self.event_at(ts_ns))

    def first_seq(self, table_id: int) -> int:
        """Return the number of a table's last event before this database; 0 if the table began here."""
        first: int | None = self.scalar("SELECT min(seq) FROM events WHERE table_id = ?", table_id)
        if first is not None:
            return first - 1
        # There are no events here yet, but the earlier state may be stored.
        return self.scalar("SELECT max(seq) FROM snapshots WHERE table_id = ?", table_id) or 0

    def opening_seq(self, table_id: int) -> int:
        """Return the number of the first event of a table's first game; without a game, `first_seq`."""
        seq: int | None = self.scalar(
            "SELECT e.seq FROM games g JOIN events e ON e.game_id = g.id"
            " WHERE g.session_id = ? AND g.table_id = ? ORDER BY g.id, e.id LIMIT 1",
            self.session.id,
            table_id,
        )
        return seq if seq is not None else self.first_seq(table_id)

    def span(self, game_id: int) -> tuple[Event, Event] | None:
        """Return the first and the last event of a game, None if it has none."""
        first, last = self.connection.execute(
            "SELECT min(id), max(id) FROM events WHERE game_id = ?", (game_id,)
        ).fetchone()
        if first is None:
            return None
        ends = list(self.events("e.id IN (?, ?)", [first, last]))
        return ends[0], ends[-1]

    def seq_of_removal(self, game_id: int, table_id: int, first_seq: int, last_seq: int) -> int | None:
        """Return the number of the event in a range that removed a game from the table's state, or None."""
        # The column contains compact JSON, and quotes inside a string are escaped.
        seq: int | None = self.scalar(
            "SELECT max(seq) FROM events WHERE table_id = ? AND seq BETWEEN ? AND ? AND instr(changes, ?)",
            *(table_id, first_seq, last_seq, f'[["games","{game_id}"],null]'),
        )
        return seq

    def last_game_event(self, table_id: int, seq: int) -> tuple[int, int] | None:
        """Return the game of a table's last event in a game up to number `seq`, and that event's number."""
        # A table without a game, such as a lobby, may have many events.
        if next(self._games("AND table_id = ? LIMIT 1", table_id), None) is None:
            return None
        row: tuple[int, int] | None = self.connection.execute(
            "SELECT game_id, seq FROM events WHERE table_id = ? AND seq <= ? AND game_id IS NOT NULL"
            " ORDER BY seq DESC LIMIT 1",
            (table_id, seq),
        ).fetchone()
        return row


def sessions(connection: sqlite3.Connection, number: int | None = None) -> list[SessionRow]:
    """Return all sessions of a database, oldest first, or only the one with this number, if there is one."""
    condition, parameters = ("1", ()) if number is None else ("id = ?", (number,))
    rows = connection.execute(f"SELECT * FROM sessions WHERE {condition} ORDER BY id", parameters)
    names = [name for name, *_ in rows.description]
    losses = stored_losses(connection)
    found = []
    for row in check_ascending(rows):
        values = dict(zip(names, row, strict=True))
        is_partial = values["kind"] == "import" and values["ended_ns"] is None
        values["lacks"] = _PARTIAL if is_partial else losses.get(values["id"])
        found.append(SessionRow.from_columns(values))
    return found


_COUNTS = (
    "SELECT x.id, (SELECT count(*) FROM streams WHERE session_id = x.id),"
    " coalesce(told.messages, 0),"
    " (SELECT count(*) FROM games WHERE session_id = x.id),"
    " (SELECT count(*) FROM diagnostics AS d JOIN streams AS s ON s.id = d.stream_id"
    "  WHERE s.session_id = x.id AND d.severity = 'error')"
    " FROM sessions AS x LEFT JOIN"
    " (SELECT s.session_id, count(*) AS messages FROM messages AS m"
    "  JOIN streams AS s ON s.id = m.stream_id GROUP BY s.session_id) AS told"
    " ON told.session_id = x.id"
)


def counted_sessions(connection: sqlite3.Connection) -> list[CountedSession]:
    """Return all sessions of a database with their counts, oldest first."""
    names = ("streams", "messages", "games", "errors")
    counts = {
        number: dict(zip(names, several, strict=True)) for number, *several in connection.execute(_COUNTS)
    }
    return [CountedSession(**msgspec.structs.asdict(row), **counts[row.id]) for row in sessions(connection)]


def check_ascending(rows: Iterable[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    """Yield rows as long as their ids, the first column, increase.

    In a damaged file, pages that refer to one another may repeat rows almost endlessly: raises StorageError
    at the first such row.
    """
    last: int | None = None
    for row in rows:
        if last is not None and row[0] <= last:
            raise StorageError(f"this database is damaged: its row {row[0]} comes after row {last}")
        last = row[0]
        yield row


def _game(row: tuple[Any, ...]) -> Game:
    *rest, result = row
    return Game(*[*rest, msgspec.json.decode(result) if result else None])


def _event(row: tuple[Any, ...]) -> Event:
    number, table, game, seq, ts_ns, kind, actor, data, changes = row
    return Event(
        number, table, game, seq, ts_ns, kind, actor, msgspec.json.decode(data), msgspec.json.decode(changes)
    )
