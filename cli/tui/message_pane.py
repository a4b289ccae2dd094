"""The pane with one message in full: its bytes beside what the grammar takes them for."""

from __future__ import annotations

from kiebitz.cli.spectator.followed_session import Watched
from kiebitz.cli.terminal.message_block import message_lines
from kiebitz.cli.terminal.screen import Text
from kiebitz.cli.tui.listing import Listing
from kiebitz.cli.tui.lists import BlockRows
from kiebitz.storage.session.message_detail import MessageDetails

_NOTHING = "no message tells of this event"

_NARROWEST = 30
"""The least that a message takes."""


class MessagePane(Listing):
    """Shows a message, as far as it may be seen."""

    def __init__(self, watched: Watched, *, id: str) -> None:
        super().__init__(BlockRows(_NOTHING), id=id)
        self._watched = watched
        self._opened: object = None
        self._in_full: MessageDetails | None = None

    def open(self, number: int | None) -> None:
        """Show the message of this number; None is for none. Raises sqlite3.Error."""
        width = max(self.size.width, _NARROWEST)
        wanted = number, width, self._watched.player
        if wanted == self._opened:
            return
        lines: list[Text] = []
        if number is not None:
            # What it has learned of the players holds until the session has grown.
            if self._in_full is None or self._in_full.timeline is not self._watched.timeline:
                self._in_full = MessageDetails(self._watched.timeline)
            shown = self._in_full.message(number, self._watched.player)
            lines = message_lines(shown, width) if shown is not None else []
        self._opened = wanted
        self.place = -1
        self.take(BlockRows(_NOTHING, lines))
