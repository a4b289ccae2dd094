"""Permissions of requests."""

from __future__ import annotations

import msgspec

from kiebitz.dissectors.model import PUBLIC


class Grant(msgspec.Struct, frozen=True):
    """The permission of a request: everything, the public view (`PUBLIC`) or one player's view.

    A player's link belongs to a connection: it shows the player on that `stream` of that `session` (numbers),
    even if the player's name changes. `player` is the name when the link was printed, `opened_ns` when
    its connection was opened, as another session may have this number when the server is started again. With
    `is_late`, live sessions are shown with a delay.
    """

    player: str | None = None
    session: int = 0
    stream: int = 0
    is_late: bool = False
    opened_ns: int = 0

    @property
    def owner(self) -> str | None:
        """The player whose link it is; None for the full view and the public one."""
        return self.player if self.session else None


SPECTATOR = Grant(PUBLIC, is_late=True)
"""The permission of spectators' links."""
