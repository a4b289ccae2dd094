"""Playback position and navigation: the part of `kiebitz watch` that knows no terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kiebitz.cli.spectator.followed_session import EventCursor, FollowedSession
from kiebitz.cli.spectator.view import RECENT
from kiebitz.cli.terminal.screen import RenderableType
from kiebitz.cli.tui.lists import DiagnosticRows, EventRows, MessageRows, StreamRows
from kiebitz.cli.tui.marks import Marks
from kiebitz.cli.tui.playback_speed import PlaybackSpeed
from kiebitz.dissectors.game.state import State
from kiebitz.dissectors.model import Event, TableInfo
from kiebitz.storage.read.message_queries import diagnostics_numbered, messages

if TYPE_CHECKING:
    from kiebitz.dissectors.filters import Filter
    from kiebitz.storage.read.timeline import Timeline

_BEFORE_FIRST = -1


class Tile(NamedTuple):
    """A table, or one of its games by row id, if there are several at once."""

    table: TableInfo
    game: int | None = None


_SEARCH_S = 0.008
"""Time in seconds to search before keys are handled."""


class Navigator:
    """The current table of a session, the position in its events, and the lists of the panes.

    If it `follows`, the position stays at the last event; if it `plays`, it advances with time. `notice` is a
    sentence about the last action. All methods raise sqlite3.Error if the database cannot be read.
    """

    def __init__(self, followed: FollowedSession, pace: PlaybackSpeed, has_letters: bool = True) -> None:
        self.followed = followed
        self.pace = pace
        self.follows = followed.is_live
        self.plays = False
        self.steps = False
        """True if the play key advances by one event."""
        self.notice = ""
        self.side_by_side = False
        """True if all tables are shown; then steps go through the events of all of them."""
        self.table: TableInfo | None = None
        self._has_letters = has_letters
        self._error: tuple[int, int] | None = None
        """The error last moved to: the number of its event and of its diagnostic."""
        self._courses: dict[int, EventCursor] = {}
        self._marks: dict[int, Marks] = {}
        self._message: int | None = None
        self._game: int | None = None
        """Row id of the game chosen of several at once; None for that of the latest event."""
        self._moment: int | None = None
        """Id of the last event shown, of any table; None if it is the latest."""
        self._opening = _BEFORE_FIRST
        """Number of the event at which the session was opened."""
        self.tables = followed.tables(followed.player)
        self._choose(self._first_table())
        if self.table is not None and not self.follows:
            # A recorded session opens where there is something to see.
            self._opening = followed.timeline.opening_seq(self.table.id)
            self._go_to(self._opening)

    def _first_table(self) -> TableInfo | None:
        """Return the table of the requested game, or the one with the most events."""
        timeline = self.followed.timeline
        game = timeline.game(self.followed.game_id) if self.followed.game_id is not None else None
        if game is not None:
            return timeline.table(game.table_id)
        return max(self.tables, key=lambda table: timeline.last_seq(table.id), default=None)

    # Display.

    @property
    def has_several_games(self) -> bool:
        """True if games are played at several tables."""
        if self.followed.game_id is not None or len(self.tables) < 2:
            return False
        (count,) = self.followed.timeline.connection.execute(
            "SELECT count(*) FROM tables AS t WHERE t.session_id = ?"
            " AND EXISTS (SELECT 1 FROM games AS g WHERE g.table_id = t.id)",
            (self.followed.timeline.session.id,),
        ).fetchone()
        return bool(count > 1)

    @property
    def course(self) -> EventCursor | None:
        """The event cursor of the current table; None without a table."""
        return self._course(self.table) if self.table is not None else None

    @property
    def marks(self) -> Marks:
        """The marks of the current table."""
        assert self.table is not None
        return self._marks[self.table.id]

    @property
    def event(self) -> Event | None:
        """The current event."""
        return self.course.event(self.course.place) if self.course is not None else None

    @property
    def tiles(self) -> list[Tile]:
        """The tables at the current time, of several games at once each game."""
        return [tile for table in self.tables for tile in self._tiles_of(table)]

    def _tiles_of(self, table: TableInfo) -> list[Tile]:
        course = self._synced(table)
        games = () if self.followed.game_id is not None else self._games(course)
        number_of = self.followed.timeline.numbers.row_id_if_any
        return [Tile(table, number_of("games", int(game))) for game in games] or [Tile(table)]

    def _games(self, course: EventCursor) -> dict[str, str]:
        """Return the labels of several games at once by number."""
        return self.followed.spectator_view.games(course.table_id, course.seq, course.state())

    def picture(self, tile: Tile | None = None) -> RenderableType | None:
        """Return the picture of the current table, or of another tile at the same time."""
        if self.table is None:
            return None
        course = self._synced(tile.table if tile is not None else self.table)
        game = tile.game if tile is not None else self._game_now()
        return self.followed.spectator_view.picture(course.table_id, *self._scene(course, game))

    def svg(self) -> bytes:
        """Return the picture of the current table as SVG."""
        assert self.course is not None
        course = self.course
        return self.followed.spectator_view.svg(course.table_id, *self._scene(course, self._game_now()))

    def _game_now(self) -> int | None:
        """Return the chosen game, None if it is not one of several at once now."""
        assert self.table is not None
        is_on = self._game is not None and Tile(self.table, self._game) in self._tiles_of(self.table)
        return self._game if is_on else None

    def _scene(self, course: EventCursor, game: int | None) -> tuple[State, list[Event], int | None]:
        """Return the state of a table or of one of its games, the latest events, and the game's row id."""
        state = course.state()
        if game is None:
            return state, course.recent(RECENT), self.followed.game_id
        return *self.followed.spectator_view.moment(course.table_id, course.seq, state, game), game

    def line(self) -> str:
        """Return the current event on one line."""
        return self.followed.spectator_view.line(self.event) if self.event is not None else ""

    def latest(self, tile: Tile) -> str:
        """Return the last event of a tile at the current time, as a sentence."""
        course, spectator_view = self._course(tile.table), self.followed.spectator_view
        if tile.game is not None:
            return spectator_view.latest(self._scene(course, tile.game)[1])
        event = course.event(course.place)
        return spectator_view.sentence(event) if event is not None else "nothing has happened yet"

    def message_id(self) -> int | None:
        """Return the opened message, or the first message that reports the current event."""
        if self._message is not None:
            return self._message
        event = self.event
        if event is None:
            return None
        rows = messages(self.followed.timeline, "m.event_id = ?", [event.id])
        return next((row.id for row in rows if self.followed.may_see_message(row)), None)

    def message_of(self, pane: str | None, place: int) -> int | None:
        """Return the message of a row of a pane."""
        if pane == "messages" and place >= 0:
            return self.messages.search.found[place]
        if pane == "diagnostics":
            diagnostics = diagnostics_numbered(self.followed.timeline, [self.diagnostics.search.found[place]])
            return next((diagnostic.message_id for diagnostic in diagnostics), None)
        return None

    # Navigation.

    def step(self, by: int) -> None:
        """Move by a number of events, and pause."""
        course = self.course
        if course is not None and self.side_by_side:
            for _ in range(abs(by)):
                self._step_anywhere(by > 0)
        elif course is not None:
            self.move_to(max(min(course.place + by, len(course) - 1), min(0, len(course) - 1)))

    def move_to(self, place: int) -> None:
        """Move to a position of the current table, and pause."""
        course = self.course
        if course is None:
            return
        course.place = max(min(place, len(course) - 1), -1)
        event = course.event(course.place)
        self._moment = event.id if event is not None else 0
        self.plays = self.follows = False
        self.notice = ""
        self._message = self._error = None

    def begin(self) -> None:
        """Move to the first event; of all tables if they are side by side."""
        self.move_to(0)
        if self.side_by_side:
            first = [event.id for course in self._all() if (event := course.event(0)) is not None]
            self._moment = min(first, default=0)

    def end(self) -> None:
        """Move to the last event, and follow a live session."""
        course = self.course
        if course is not None:
            self.move_to(len(course) - 1)
            if self.side_by_side or self.followed.is_live:
                self._moment = None
            self.follows = self.followed.is_live
            self.notice = "" if self.follows or not self.followed.ending else self.followed.ending

    def game(self, by: int) -> None:
        """Move to the beginning of the next game or, with -1, of this or the previous one."""
        course = self.course
        if course is None:
            return
        starts = self.marks.games
        seq = course.seq
        behind = [start for start in starts if start > seq] if by > 0 else None
        before = [start for start in starts if start < seq] if by < 0 else None
        if behind:
            self._go_to(behind[0])
        elif before:
            self._go_to(before[-1])
        else:
            self.notice = "that was the last game" if by > 0 else "that was the first game"

    def error(self, by: int) -> int | None:
        """Move to the next error or, with -1, to the previous one; return the number of its diagnostic."""
        course = self.course
        if course is None:
            return None
        seq, latest = self._error if self._error is not None else (course.seq, None)
        if latest is None and by > 0 and (course.place <= 0 or seq == self._opening):
            # From where the session opens, the errors before it are found, too.
            seq = _BEFORE_FIRST
        find = self.marks.error_after if by > 0 else self.marks.error_before
        found = find(seq, latest)
        if found is None:
            where = "after" if by > 0 else "before"
            this = "event" if latest is None else "one"
            self.notice = f"no error {where} this {this}" if len(self.marks) else "there are no errors"
            return None
        at, number = found
        self._go_to(at)
        self._error = found
        diagnostics = diagnostics_numbered(self.followed.timeline, [number])
        for diagnostic in diagnostics:
            self._message = diagnostic.message_id
            self.notice = f"{diagnostic.severity}[{diagnostic.code}]: {diagnostic.text}"
        return number

    def open_message(self, number: int) -> None:
        """Open a message, and move to the event that it reports."""
        rows = self.followed.timeline.connection.execute(
            "SELECT e.table_id, e.seq FROM messages AS m JOIN events AS e ON e.id = m.event_id"
            " WHERE m.id = ?",
            (number,),
        )
        for table_id, seq in rows:
            self._choose(self.followed.timeline.table(table_id))
            self._go_to(seq)
        self._message = number

    def toggle(self) -> None:
        """Play or pause."""
        course = self.course
        if course is None:
            return
        if self.steps:
            self.step(1)
            return
        if self.plays or self.follows:
            self.plays = self.follows = False
        elif course.is_at_end and self.followed.is_live:
            self.follows = True
        else:
            if course.is_at_end:
                self.move_to(0)
            self.plays = True
        self.notice = ""

    def due_s(self) -> float | None:
        """Return the time in seconds until the next event is shown; None if nothing plays."""
        course = self.course
        if not self.plays or course is None:
            return None
        this, following = self.event, self._next_event()
        if following is None:
            if not self.is_searching:
                self.plays = False
                self.follows = self.followed.is_live
            return _SEARCH_S if self.is_searching else None
        if this is None:
            return 0.0
        gap = (following.ts_ns - this.ts_ns) / 1e9
        self.notice = f"{gap:.0f} s pause, shortened" if self.pace.is_shortened(gap) else ""
        return self.pace.wait_s(gap)

    def play_next(self) -> None:
        """Advance by one event during playback."""
        course = self.course
        if self.plays and course is not None:
            self.step(1)
            self.plays = True

    def _next_event(self) -> Event | None:
        """Return the next event of the current table, or of all tables if they are side by side."""
        courses = self._all() if self.side_by_side else filter(None, [self.course])
        coming = [event for course in courses if (event := course.event(course.place + 1)) is not None]
        return min(coming, key=lambda event: event.id, default=None)

    def _step_anywhere(self, forwards: bool) -> None:
        """Move by one event of any table."""
        courses = self._all()
        if forwards:
            found = self._next_event()
        else:
            shown = [event for course in courses if (event := course.event(course.place)) is not None]
            shown.sort(key=lambda event: event.id)
            found = shown[-1] if len(shown) > 1 or (shown and len(courses) == 1) else None
        if found is None:
            return
        course = self._course(self.followed.timeline.table(found.table_id))
        course.place += 1 if forwards else -1
        left = [event.id for each in courses if (event := each.event(each.place)) is not None]
        self._moment = max(left, default=0)
        self.plays = self.follows = False
        self.notice = ""

    def _all(self) -> list[EventCursor]:
        """Return the event cursors of all tables, moved to the current time."""
        return [self._synced(table) for table in self.tables]

    # Selection.

    def switch_to(self, tile: Tile) -> None:
        """Switch to another table, or to one of its games, at the same time."""
        self._synced(tile.table)
        self._choose(tile.table)
        self._game = tile.game

    def switch_viewer(self, player: str | None) -> None:
        """Switch to another player's view at the same time."""
        self.followed.look_over(player)
        # The notice may name something that this player does not know.
        self.notice = ""
        self.tables = self.followed.tables(player)
        self._reset()

    def set_filter(self, wanted: Filter | None) -> None:
        """Apply another filter."""
        self.followed.wanted = wanted
        self._reset()

    def tick(self) -> bool:
        """Read new events; return True if there are any."""
        has_come = self.followed.look()
        if has_come:
            while not self.followed.is_live and self.followed.go_on():
                self.notice = f"the recording continues in {self.followed.path}"
                self.tables = self.followed.tables(self.followed.player)
                self._reset()
            self.tables = self.followed.tables(self.followed.player)
            if self.table is None and self.tables:
                self._choose(self.tables[0])
            for course in self._courses.values():
                course.grow()
            self.streams.grow()
            self.search(_SEARCH_S)
        return has_come

    def replace(self, timeline: Timeline, path: str) -> None:
        """Show another dissection of the session, in the database at `path`, at the same position."""
        server = self.table.server if self.table is not None else None
        place = self.course.place if self.course is not None else 0
        # The numbers of tables, games and events are new.
        self.followed.game_id = None
        self.followed.close()
        self.followed.replace(timeline, path)
        self.tables = self.followed.tables(self.followed.player)
        self.table = None
        self._moment = None
        self._reset()
        same = [table for table in self.tables if table.server == server]
        if same:
            self._choose(same[0])
        self.move_to(place)

    def search(self, seconds: float) -> None:
        """Continue the searches of the lists for about `seconds`."""
        seconds /= len(self.tables) + 3
        self.is_searching = False
        for table in self.tables:
            course = self._course(table)
            self.is_searching |= course.go_on(seconds)
            if self.follows and not course.is_at_end:
                course.place = len(course) - 1
                self._message = None
        if self.table is not None:
            self.is_searching |= self.marks.go_on(seconds)
        timeline = self.followed.timeline
        self.is_searching |= self.messages.search.go_on(timeline.last_id("messages"), seconds)
        self.is_searching |= self.diagnostics.search.go_on(timeline.last_id("diagnostics"), seconds)

    # Private helpers.

    def _choose(self, table: TableInfo | None) -> None:
        if table == self.table and self._courses:
            return
        self.table = table
        self._message = self._error = self._game = None
        of = table if len(self.tables) > 1 else None
        shown = self.followed.shown
        self.messages = MessageRows(self.followed, shown.search_messages(of), self._has_letters)
        self.diagnostics = DiagnosticRows(self.followed, shown.search_diagnostics(of))
        self.streams = StreamRows(self.followed)
        self.is_searching = True
        """True if the lists are still being searched."""
        if table is not None:
            self.events = EventRows(self.followed, self._course(table))

    def _course(self, table: TableInfo) -> EventCursor:
        course = self._courses.get(table.id)
        if course is None:
            course = self._courses[table.id] = self.followed.course(table)
            self._marks[table.id] = Marks(self.followed, table)
            course.go_on(_SEARCH_S)
            course.place = len(course) - 1 if self.follows else min(0, len(course) - 1)
            if self._moment is None and not self.follows and table == self.table:
                event = course.event(course.place)
                self._moment = event.id if event is not None else 0
        return course

    def place_of(self, table: TableInfo) -> int:
        """Return the position among a table's events at the current time."""
        return self._synced(table).place

    def _synced(self, table: TableInfo) -> EventCursor:
        """Return the event cursor of a table, moved to the current time."""
        course = self._course(table)
        if self.table is not None and course is self._courses.get(self.table.id) and not self.side_by_side:
            return course
        if self._moment is None:
            course.place = len(course) - 1
        else:
            course.go_upto(self.followed.timeline.seq_upto(course.table_id, self._moment))
        return course

    def _reset(self) -> None:
        """Search again after the viewer or the filter has changed, and keep the position."""
        course = self.course
        seq = course.seq if course is not None else None
        table = self.table
        self._courses.clear()
        self._marks.clear()
        self.table = None
        self._choose(table if table in self.tables else self._first_table())
        if seq is not None and self.course is not None and self.table == table and not self.follows:
            self.course.go_to(seq)

    def _go_to(self, seq: int) -> None:
        course = self.course
        assert course is not None
        course.go_to(seq)
        self.move_to(course.place)
