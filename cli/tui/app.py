"""The Textual application of `kiebitz watch`: its layout and the actions of the keys."""

from __future__ import annotations

import asyncio
import signal
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING, ClassVar

from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import Screen
from textual.widgets import ContentSwitcher, Static

from kiebitz.cli.status import FAILED
from kiebitz.cli.terminal.screen import RenderableType, Text
from kiebitz.cli.tui.dialogs import Choice, Help
from kiebitz.cli.tui.filter_line import FilterLine
from kiebitz.cli.tui.held_messages import HeldMessages, KeyAction
from kiebitz.cli.tui.keys import bindings, help_lines, key_line
from kiebitz.cli.tui.listing import Listing
from kiebitz.cli.tui.lists import FixedRows, LogRows, LogTail
from kiebitz.cli.tui.navigation import Navigator, Tile
from kiebitz.cli.tui.panes import MessagePane, SequencePane
from kiebitz.cli.tui.picture import Picture, SmallTables
from kiebitz.cli.tui.scheduler import Scheduler
from kiebitz.cli.tui.strip_rendering import has_letters
from kiebitz.cli.tui.timeline_bar import Bar, pane_title, status_line
from kiebitz.services.alteration.control_client import ControlClient
from kiebitz.services.sessions import session_at
from kiebitz.storage.database.schema import StorageError

if TYPE_CHECKING:
    from kiebitz.services.reloading import Dissected

_WIDE, _HIGH = 130, 24
"""Smallest terminal, in columns and rows, that shows the panes to the right of the picture."""

_TABLE_WIDTH, _TABLE_HEIGHT = 80, 23
"""Largest size of a table's picture, in columns and rows; the panes get the rest."""

_LEAST = 3
"""Minimum height of the panes, in rows."""

_BOTH = 30
"""Minimum height of a terminal, in rows, that shows a picture above a message."""

_AROUND = 3
"""Rows of the timeline, the status and the keys."""

PANES = ("events", "messages", "message", "diagnostics", "streams", "sequence", "held", "said")


class _MainScreen(Screen[None], inherit_bindings=False):
    """The only screen. Tab is bound to the panes, not to Textual's focus."""

    AUTO_FOCUS = ""
    BINDINGS: ClassVar[list[BindingType]] = [*bindings()]


class WatchApp(App[int], inherit_bindings=False):
    """The application. Its return value is the exit status."""

    CSS_PATH = "style.tcss"
    ENABLE_COMMAND_PALETTE = False

    def __init__(
        self, viewer: Navigator, said: LogTail | None = None, hands: ControlClient | None = None
    ) -> None:
        super().__init__(ansi_color=True)
        self.viewer = viewer
        self._said = said
        self._letters = has_letters("←→●┃━─")
        self.held_messages = HeldMessages(self, hands, self._letters)
        self.scheduler = Scheduler(self, viewer, said)
        self._has_chosen = False
        self.reloads: SimpleQueue[Dissected | list[str] | tuple[str, ...]] = SimpleQueue()
        """Sessions dissected again by a thread, or the lines of a message why they cannot be."""
        self.pane = PANES[0]
        self.failure: Exception | None = None
        """The unexpected exception that ended the application."""

    def show_new_events(self) -> None:
        """Show new events, at all tables side by side unless the user has chosen one."""
        if self.viewer.follows and not self._has_chosen and self.viewer.has_several_games:
            self.show_several(True)
        if self.shows_several:
            self.several.renew_changed()
            self.show_status()
        else:
            self.show()

    def show_recorder_output(self) -> None:
        """Show new output of the recording process."""
        said = self._list("said")
        said.choose(len(said.rows) - 1)
        if self.viewer.followed.player is not None:
            self.viewer.notice = "new output of the recorder: press a and choose everything to read it"
        self.show_status()

    def show_held(self) -> None:
        """Show a changed list of held messages, and add or remove its pane."""
        self._keep_to_panes()
        self.show_status()

    def tick(self) -> None:
        """Update the waiting times of held messages."""
        self.held_messages.tick()
        dissected, problem = None, ""
        while not self.reloads.empty():
            found = self.reloads.get()
            if isinstance(found, list | tuple):
                problem = "\n".join(found)
            else:
                dissected, problem = found, ""
        if dissected is not None:
            self._show_dissected(dissected)
        if problem:
            self.note(problem)

    def _show_dissected(self, found: Dissected) -> None:
        with self.reporting_errors():
            try:
                timeline = session_at(found.database, found.session_id)
            except StorageError as error:
                self.note(str(error))
                return
            self.viewer.replace(timeline, found.database)
            self.replace_lists()
            if self.viewer.table is None:
                # The list has the events of the closed database.
                self._list("events").take(FixedRows("no table yet"))
                self.query_one("#picture", Picture).renew()
            if self.shows_several:
                self.several.refresh_tables()
        self.viewer.notice = "dissected again with the saved protocol file"
        self.scheduler.play()
        self.show()

    def note(self, sentence: str) -> None:
        """Show a sentence in the status line."""
        self.viewer.notice = sentence
        self.show_status()

    def _keep_to_panes(self) -> None:
        if self.pane not in self.panes:
            self._turn_to(self.panes[0])

    def _handle_exception(self, error: Exception) -> None:
        # Textual would print our source and its values. Tests (headless) do see the exception.
        if self.return_code is not None:
            # Keys typed after the one that quits find no widgets any more.
            return
        if self.is_headless:
            super()._handle_exception(error)
        self.failure = self.failure or error
        self.exit(FAILED)

    def get_default_screen(self) -> Screen[None]:
        return _MainScreen(id="_default")

    # Layout.

    def compose(self) -> ComposeResult:
        with ContentSwitcher(initial="one", id="sight"):
            with Horizontal(id="one"), Horizontal(id="body"):
                with Vertical(id="table"):
                    yield Picture(self._picture, id="picture")
                    yield Bar(id="bar")
                with Vertical(id="panes"):
                    yield Static(id="pane")
                    with ContentSwitcher(initial="events", id="lists"):
                        yield Listing(FixedRows("no table yet"), id="events")
                        yield Listing(self.viewer.messages, id="messages")
                        yield MessagePane(self.viewer.followed, id="message")
                        yield Listing(self.viewer.diagnostics, id="diagnostics")
                        yield Listing(self.viewer.streams, id="streams")
                        yield SequencePane(self.viewer, id="sequence")
                        yield Listing(self.held_messages.rows, id="held")
                        yield Listing(LogRows(self._said), id="said")
            yield SmallTables(self.viewer, id="several")
        yield Static(id="waiting")
        yield Static(id="status")
        yield FilterLine(id="filter")
        yield Static(id="keys")

    @property
    def listing(self) -> Listing:
        """The visible list."""
        return self._list(self.pane)

    def _list(self, pane: str) -> Listing:
        return self.query_one(f"#{pane}", Listing)

    @property
    def several(self) -> SmallTables:
        """The tables side by side."""
        return self.query_one(SmallTables)

    @property
    def shows_several(self) -> bool:
        """True if the tables are shown side by side."""
        return self.query_one("#sight", ContentSwitcher).current == "several"

    @property
    def panes(self) -> tuple[str, ...]:
        """The available panes. A player's view has neither the recorder's output nor held messages."""
        is_available = {
            "held": self.held_messages.is_available,
            "said": self._said is not None and self.viewer.followed.player is None,
        }
        return tuple(pane for pane in PANES if is_available.get(pane, True))

    def on_mount(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:
                asyncio.get_running_loop().add_signal_handler(number, self.exit, 128 + number)
        self.replace_lists()
        if self.viewer.has_several_games:
            self.show_several(True)
            if not self.viewer.follows:
                self.viewer.begin()
        self.run_worker(self.scheduler.follow())
        self.held_messages.start()
        self.scheduler.play()
        self._arrange()

    def on_resize(self) -> None:
        self.call_after_refresh(self._arrange)

    def _arrange(self) -> None:
        """Lay out the parts for the size of the terminal."""
        width, height = self.size
        body, table, panes = (self.query_one(f"#{name}") for name in ("body", "table", "panes"))
        is_wide = width >= _WIDE and height >= _HIGH
        # In a small terminal, a pane other than the events hides the picture.
        alone = not is_wide and height < _BOTH and self.pane != "events"
        self.query_one("#picture").display = not alone
        body.styles.layout = "horizontal" if is_wide else "vertical"
        table.styles.height = "auto" if alone else "1fr"
        panes.styles.width = min(width * 2 // 5, width - _TABLE_WIDTH) if is_wide else "1fr"
        if is_wide or alone:
            panes.styles.height = "1fr"
        else:
            rows = height - _AROUND
            panes.styles.height = max(_LEAST, min(rows - _TABLE_HEIGHT, rows * 2 // 5))
        keys = key_line(width, self._letters, self.pane == "held")
        self.query_one("#keys", Static).update(Text(keys, "dim"))
        self.show()

    # Display.

    def _picture(self) -> RenderableType:
        try:
            picture = self.viewer.picture()
        except sqlite3.Error as error:
            self.show_error(error)
            raise
        return picture if picture is not None else Text("no game yet")

    def replace_lists(self) -> None:
        """Show the navigator's lists after they were replaced."""
        viewer = self.viewer
        if viewer.table is not None:
            self._list("events").take(viewer.events)
        self._list("messages").take(viewer.messages)
        self._list("diagnostics").take(viewer.diagnostics)
        self._list("streams").take(viewer.streams)

    def show(self) -> None:
        """Show the current position."""
        viewer = self.viewer
        course = viewer.course
        with self.reporting_errors():
            if self.shows_several:
                self.several.refresh_tables()
            elif course is not None:
                self.query_one("#picture", Picture).renew()
                self.query_one(Bar).show(course, viewer.marks)
                events = self._list("events")
                if events.rows is not viewer.events:
                    self.replace_lists()
                events.choose(course.place)
            if self.pane == "message":
                self.query_one(MessagePane).open(viewer.message_id())
            if self.pane == "sequence":
                self.query_one(SequencePane).open()
            self.listing.renew()
        self.show_status()

    def show_status(self) -> None:
        """Update the status line and the title of the pane."""
        where = self.several.where() if self.shows_several else None
        self.query_one("#status", Static).update(status_line(self.viewer, where, self.size.width))
        pane = self.query_one("#pane", Static)
        pane.update(pane_title(self.panes, self.pane, self.listing.where(), pane.size.width))

    # Errors.

    @contextmanager
    def reporting_errors(self) -> Iterator[None]:
        """Show an sqlite3.Error of the block in the status line, and continue."""
        try:
            yield
        except sqlite3.Error as error:
            self.show_error(error)

    def show_error(self, error: Exception) -> None:
        """Show why the session cannot be read."""
        self.viewer.followed.fails(error)
        self.show_status()

    # Keys.

    def action_leave(self, code: int) -> None:
        self.exit(code)

    def action_play(self) -> None:
        self.viewer.toggle()
        self.scheduler.play()
        self.show()

    def action_go(self, how: str, *by: int) -> None:
        """Call a method of the navigator that moves."""
        self._move(partial(getattr(self.viewer, how), *by))

    def action_faster(self) -> None:
        self._move(self.viewer.pace.faster)

    def action_slower(self) -> None:
        self._move(self.viewer.pace.slower)

    def action_move(self, by: int) -> None:
        if self.shows_several:
            self._choose_table(by)
        elif self.pane == "events":
            self._move(lambda: self.viewer.step(by))
        else:
            self.listing.move(by)
            self.show_status()

    def action_scroll(self, by: int) -> None:
        self.query_one("#picture", Picture).scroll_lines(by)

    def action_pane(self, by: int) -> None:
        """Switch to another pane."""
        if self.shows_several:
            self._choose_table(by)
        else:
            self._turn_to(self.panes[(self.panes.index(self.pane) + by) % len(self.panes)])

    def _choose_table(self, by: int) -> None:
        with self.reporting_errors():
            self.several.move(by)
        self.show_status()

    def action_open(self) -> None:
        """Open the selected row."""
        if self.shows_several:
            self._enlarge(self.several.tile)
        elif self.pane == "held":
            self.held_messages.do("let-go")
        elif self.viewer.steps:
            self.action_play()
        elif self.listing.place >= 0:
            self._open(self.listing, self.listing.place)

    def action_tables(self) -> None:
        """Toggle between all tables side by side and one table."""
        if self.shows_several:
            self._enlarge(self.several.tile)
        elif len(self.viewer.tiles) > 1:
            self.show_several(True)
            self.show()
        else:
            self.note("there is only one table and game")

    def action_player(self) -> None:
        """Let the user choose the player whose view is shown."""
        with self.reporting_errors():
            players = self.viewer.followed.players()
            now = self.viewer.followed.player
            chosen = players.index(now) + 1 if now in players else 0

            def switch_viewer(place: int | None) -> None:
                if place is None:
                    return
                with self.reporting_errors():
                    self.viewer.switch_viewer(players[place - 1] if place else None)
                self._keep_to_panes()
                self.held_messages.show()
                self._move(lambda: None)

            self.push_screen(
                Choice("Whose view?", ["everything", *(name or '""' for name in players)], chosen),
                switch_viewer,
            )

    def action_filter(self) -> None:
        """Open the filter line."""
        wanted = self.viewer.followed.wanted
        self.query_one(FilterLine).open(wanted.text if wanted is not None else "")

    def action_held(self) -> None:
        """Switch to the held messages."""
        if not self.held_messages.is_available:
            self.note("no relay holds messages here: start one with kiebitz relay --hold")
        else:
            if self.shows_several:
                self._enlarge(self.several.tile)
            self._turn_to("held")

    def action_by_hand(self, deed: KeyAction) -> None:
        """Act on the selected held message."""
        if self.pane == "held" and not self.shows_several:
            self.held_messages.do(deed)
        elif self.held_messages.held:
            self.note("press h to act on held messages")

    def action_copy(self) -> None:
        """Copy the number of the current message or event to the clipboard, if the terminal supports it."""
        event, numbers = self.viewer.event, self.viewer.followed.timeline.numbers
        number = None
        if self.pane in ("message", "messages"):
            chosen = (
                self.viewer.message_of("messages", self.listing.place) if self.pane == "messages" else None
            )
            chosen = chosen if chosen is not None else self.viewer.message_id()
            number = numbers.number_if_any("messages", chosen)
        elif event is not None:
            number = numbers.number("events", event.id)
        if number is not None:
            self.copy_to_clipboard(f"#{number}")
            self.note(f"copied #{number}, if the terminal permits it")

    def action_suspend_process(self) -> None:
        """Suspend until `fg`, unless a recording process runs: the shell would keep waiting for it."""
        if self._said is None:
            super().action_suspend_process()
        else:
            self.note("Ctrl-Z is disabled while recording: the shell would not respond")

    def action_help(self) -> None:
        """Show all keys."""
        self.push_screen(Help(help_lines(self._letters)))

    def _move(self, move: Callable[[], object]) -> None:
        with self.reporting_errors():
            move()
        self.scheduler.play()
        self.show()

    def show_several(self, several: bool) -> None:
        """Show all tables side by side, or one."""
        self.query_one("#sight", ContentSwitcher).current = "several" if several else "one"
        self.viewer.side_by_side = several

    def _enlarge(self, tile: Tile | None) -> None:
        self._has_chosen = True
        self.show_several(False)
        if tile is not None:
            self._move(lambda: self.viewer.switch_to(tile))

    def _turn_to(self, pane: str) -> None:
        self.pane = pane
        self.query_one("#lists", ContentSwitcher).current = pane
        # Its size is known only after the layout.
        self.call_after_refresh(self._arrange)

    def _open(self, listing: Listing, place: int) -> None:
        if listing.id == "held":
            self.held_messages.do("let-go")
            return
        if listing.id == "streams":
            numbers = self.viewer.followed.timeline.numbers
            stream = numbers.number("streams", self.viewer.streams.ids[place])
            self.query_one(FilterLine).open(f"stream == {stream}")
            return
        with self.reporting_errors():
            number = self.viewer.message_of(listing.id, place)
            if number is not None:
                self.viewer.open_message(number)
            elif listing.id == "diagnostics":
                self.viewer.notice = "this diagnostic has no message: its stream has the bytes"
        if listing.id != "said":
            self._turn_to("message")
        self.scheduler.play()
        self.show()

    # Messages of the widgets.

    def on_listing_chosen(self, message: Listing.Chosen) -> None:
        if message.opened:
            self._open(message.listing, message.place)
        elif message.listing.id == "events":
            self._move(lambda: self.viewer.move_to(message.place))
        else:
            self.show_status()

    def on_bar_asked(self, message: Bar.Asked) -> None:
        self._move(lambda: self.viewer.move_to(message.place))

    def on_picture_opened(self, message: Picture.Opened) -> None:
        if self.shows_several:
            self._enlarge(self.several.tile_of(message.picture))

    def on_filter_line_written(self, message: FilterLine.Written) -> None:
        before = self.viewer.followed.wanted
        if (before.text if before else None) != (message.wanted.text if message.wanted else None):
            self._move(lambda: self.viewer.set_filter(message.wanted))

    def on_filter_line_left(self) -> None:
        self.set_focus(None)
        self.show()
