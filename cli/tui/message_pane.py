"""The pane with one message in detail: its bytes and their meaning in the grammar."""

from __future__ import annotations

from kiebitz.cli.spectator.followed_session import FollowedSession
from kiebitz.cli.terminal.message_block import message_lines
from kiebitz.cli.terminal.screen import Text
from kiebitz.cli.tui.listing import Listing
from kiebitz.cli.tui.lists import FixedRows

_NOTHING = "no message reports this event"

_MIN_WIDTH = 30
"""Minimum width of a message, in columns."""


class MessagePane(Listing):
    """The pane of a message, without what the viewer may not see."""

    def __init__(self, followed: FollowedSession, *, id: str) -> None:
        super().__init__(FixedRows(_NOTHING), id=id)
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
        self.take(FixedRows(_NOTHING, lines))
        marks = ("error[", "warning[")
        heads = [place for place, line in enumerate(lines) if line.plain.lstrip().startswith(marks)]
        errors = [place for place in heads if lines[place].plain.lstrip().startswith(marks[0])]
        if heads:
            self.reveal((errors or heads)[0])
