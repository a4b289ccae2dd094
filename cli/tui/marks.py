"""Positions of games and errors on a table's timeline, collected incrementally."""

from __future__ import annotations

import time
from array import array
from bisect import bisect_left, bisect_right, insort

from kiebitz.cli.spectator.followed_session import FollowedSession
from kiebitz.dissectors.model import TableInfo
from kiebitz.storage.read.message_queries import StoredDiagnostic, diagnostics_numbered

_BATCH = 20

_ID_BITS = 40
_ID = (1 << _ID_BITS) - 1
"""An error is one number: its event's number, and in the lower bits its diagnostic's."""


class Marks:
    """Numbers of a table's events at which games begin or that have errors or warnings."""

    def __init__(self, followed: FollowedSession, table: TableInfo) -> None:
        self._watched = followed
        self._table = table
        self._search = followed.rows(followed.player).search_diagnostics(table)
        self._added = 0
        self._latest_game = 0
        self.games = array("q")
        self.warnings = array("q")
        self._errors = array("q")

    def __len__(self) -> int:
        return len(self._errors)

    def go_on(self, seconds: float) -> bool:
        """Collect for about `seconds`; return True if some is left. Raises sqlite3.Error."""
        end = time.monotonic() + seconds
        timeline = self._watched.timeline
        is_more = self._search.go_on(timeline.last_id("diagnostics"), seconds / 3)
        while self._added < len(self._search.found) and time.monotonic() < end:
            piece = self._search.found[self._added : self._added + _BATCH]
            self._added += len(piece)
            for diagnostic in diagnostics_numbered(timeline, piece):
                self._add(diagnostic)
        is_more |= self._added < len(self._search.found)
        while (are_more_games := self._gather_games()) and time.monotonic() < end:
            pass
        return are_more_games or is_more

    def error_after(self, seq: int, latest: int | None) -> tuple[int, int] | None:
        """Return the next error after event `seq`, or after the error `latest` of that event.

        Returns:
            The number of its event and of its diagnostic; None if there is none.
        """
        place = bisect_right(self._errors, _error_key(seq, _ID if latest is None else latest))
        return divmod(self._errors[place], 1 << _ID_BITS) if place < len(self._errors) else None

    def error_before(self, seq: int, latest: int | None) -> tuple[int, int] | None:
        """Return the last error before event `seq`, or before the error `latest` of that event."""
        place = bisect_left(self._errors, _error_key(seq, 0 if latest is None else latest))
        return divmod(self._errors[place - 1], 1 << _ID_BITS) if place else None

    def has_error(self, begin: int, end: int) -> bool:
        """Return True if an event from `begin` up to, but not including, `end` has an error."""
        return any_between(self._errors, _error_key(begin, 0), _error_key(end, 0))

    def _add(self, diagnostic: StoredDiagnostic) -> None:
        if diagnostic.severity == "note" or self._is_elsewhere(diagnostic):
            return
        seq = self._watched.timeline.seq_of_diagnostic(self._table.id, diagnostic.event_id, diagnostic.ts_ns)
        if diagnostic.severity == "error":
            insort(self._errors, _error_key(seq, diagnostic.id))
        else:
            insort(self.warnings, seq)

    def _is_elsewhere(self, diagnostic: StoredDiagnostic) -> bool:
        """Return True if it belongs to another table. Diagnostics of no table are shown at each."""
        stream, table = diagnostic.stream, self._table
        return stream.protocol is not None and (stream.server, stream.protocol) != (
            table.server,
            table.protocol,
        )

    def _gather_games(self) -> bool:
        rows = self._watched.timeline.connection.execute(
            "SELECT g.id, (SELECT e.seq FROM events AS e WHERE e.game_id = g.id ORDER BY e.id LIMIT 1)"
            " FROM games AS g WHERE g.table_id = ? AND g.id > ? ORDER BY g.id LIMIT ?",
            (self._table.id, self._latest_game, _BATCH),
        ).fetchall()
        for game, seq in rows:
            if seq is None:
                # Its first event is not stored yet.
                return False
            self._latest_game = game
            insort(self.games, seq)
        return len(rows) == _BATCH


def any_between(numbers: array[int], begin: int, end: int) -> bool:
    """Return True if one of the ascending numbers is at least `begin` and below `end`."""
    place = bisect_left(numbers, begin)
    return place < len(numbers) and numbers[place] < end


def _error_key(seq: int, number: int) -> int:
    return seq << _ID_BITS | min(number, _ID)
