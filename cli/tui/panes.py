"""The panes with one message in detail, and with a sequence diagram of the messages up to the position."""

from __future__ import annotations

from itertools import chain

from kiebitz.cli.render.text.sequence import SequenceText
from kiebitz.cli.spectator.followed_session import FollowedSession
from kiebitz.cli.terminal.console import Line, Styled
from kiebitz.cli.terminal.message_block import message_lines
from kiebitz.cli.terminal.screen import Text
from kiebitz.cli.tui.listing import Listing
from kiebitz.cli.tui.lists import FixedRows
from kiebitz.cli.tui.navigation import Navigator
from kiebitz.cli.tui.strip_rendering import ENCODING
from kiebitz.storage.database.schema import StorageError
from kiebitz.storage.sequence.reader import Window, read_window

_NO_MESSAGE = "no message reports this event"

_MIN_WIDTH = 30
"""Minimum width of a message or a diagram, in columns."""


class MessagePane(Listing):
    """The pane of a message, without what the viewer may not see."""

    def __init__(self, followed: FollowedSession, *, id: str) -> None:
        super().__init__(FixedRows(_NO_MESSAGE), id=id)
        self._watched = followed
        self._opened: object = None

    def open(self, number: int | None) -> None:
        """Show the message of this number (None: no message). Raises sqlite3.Error."""
        width = max(self.size.width, _MIN_WIDTH)
        wanted = number, width, self._watched.player
        if wanted == self._opened:
            return
        lines: list[Text] = []
        if number is not None:
            shown = self._watched.in_full.message(number, self._watched.player)
            lines = message_lines(shown, width) if shown is not None else []
        self._opened = wanted
        self.place = -1
        self.take(FixedRows(_NO_MESSAGE, lines))
        marks = ("error[", "warning[")
        heads = [place for place, line in enumerate(lines) if line.plain.lstrip().startswith(marks)]
        errors = [place for place in heads if lines[place].plain.lstrip().startswith(marks[0])]
        if heads:
            self.reveal((errors or heads)[0])


_NOTHING = "no messages up to here"

_MESSAGES_PER_ROW = 3
"""Messages read for each row: copies of a broadcast share one."""


class SequencePane(Listing):
    """The pane of the diagram: lifelines in its first row, below them the last steps that fit."""

    def __init__(self, viewer: Navigator, *, id: str) -> None:
        super().__init__(FixedRows(_NOTHING), id=id)
        self._viewer = viewer
        self._shown: object = None

    def open(self) -> None:
        """Show the diagram up to the current position. Raises sqlite3.Error."""
        width, height = max(self.size.width, _MIN_WIDTH), max(self.size.height, 2)
        followed = self._viewer.followed
        window = self._window(_MESSAGES_PER_ROW * height)
        wanted = window, width, height, followed.player
        if wanted == self._shown:
            return
        self._shown = wanted
        try:
            lines = self._lines_of(window, width, height) if window is not None else []
            nothing = _NOTHING
        except StorageError as error:
            lines, nothing = [], str(error)
        self.place = -1
        self.take(FixedRows(nothing, lines))

    def where(self) -> str:
        return ""

    def _window(self, count: int) -> Window | None:
        """Return the last `count` messages up to the current event, and their events; None without one."""
        timeline, event = self._viewer.followed.timeline, self._viewer.event
        if event is None:
            return None
        execute = timeline.connection.execute
        last = execute(
            "SELECT id FROM messages WHERE event_id <= ? ORDER BY event_id DESC, id DESC LIMIT 1", (event.id,)
        ).fetchone()
        if last is None:
            return None
        first = max(last[0] - count + 1, timeline.numbers.row_id("messages", 1))
        (begun,) = execute(
            "SELECT coalesce(min(event_id), ?) FROM messages WHERE id BETWEEN ? AND ?",
            (event.id, first, last[0]),
        ).fetchone()
        return Window((first, last[0]), (begun, event.id))

    def _lines_of(self, window: Window, width: int, height: int) -> list[Text]:
        followed = self._viewer.followed
        diagram = read_window(followed.timeline, window, followed.player, followed.visibility)
        if not diagram.lifelines:
            return []
        picture = SequenceText(diagram.lifelines, width, ENCODING)
        steps = list(picture.lines(diagram.steps))
        return [_text(line) for line in chain([picture.header()], steps[-(height - 1) :])]


def _text(line: Line) -> Text:
    parts = (part if isinstance(part, Styled) else Styled(part) for part in line)
    return Text.assemble(*((part.text, _style(part)) for part in parts), no_wrap=True)


def _style(part: Styled) -> str:
    words = ["bold" if part.bold else "", "dim" if part.dim else "", part.colour or ""]
    return " ".join(filter(None, words))
