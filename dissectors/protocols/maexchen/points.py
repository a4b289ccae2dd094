"""The expected points (Ablauf einer Spielrunde), including those of a restarted server.

A restarted server knows no players: it sends only to those who have registered since, and counts from 0.
After a registration, until the server sends to anyone else, it is unclear whether it was restarted. So two
accounts are kept then, and points are wrong only if they are wrong in both.
"""

from __future__ import annotations

from collections.abc import Iterable

Account = dict[str, int]


class Points:
    """The points of a table's players, by name, computed from the captured rounds."""

    def __init__(self) -> None:
        self._due: Account | None = None
        """The expected points; None if unknown."""
        self._if_restarted: Account | None = None
        """The expected points of a restarted server; None unless a restart is possible."""
        self.announced: Account | None = None
        """The latest announced points."""
        self.newcomers: set[int] = set()
        """The streams that have registered since the server may have been restarted."""

    def registered(self, stream: int) -> None:
        """Note a registration: the server may have been restarted just before."""
        if self._if_restarted is None:
            self._if_restarted = {}
            self.newcomers.clear()
        self.newcomers.add(stream)

    def spoken_to(self, stream: int) -> None:
        """Note that the server sent to a client that must be registered."""
        if self._if_restarted is not None and stream not in self.newcomers:
            self._if_restarted = None

    def started(self, players: Iterable[str]) -> None:
        """Add a point for each player of a round."""
        self._add(players, 1)

    def lost(self, names: Iterable[str]) -> None:
        """Subtract a point from each loser of a round."""
        self._add(names, -1)

    def _add(self, names: Iterable[str], points: int) -> None:
        for name in names:
            for account in (self._due, self._if_restarted):
                if account is not None:
                    account[name] = account.get(name, 0) + points

    def forget(self) -> None:
        """Forget the points until the next announcement, as a part of a round was not seen."""
        self._due = self._if_restarted = None

    def restart(self) -> None:
        """Forget the points of a server that was restarted."""
        self.forget()
        self.announced = None

    def announce(self, scores: Account) -> None:
        """Set the points that the server announces."""
        self._due, self._if_restarted = dict(scores), None
        self.announced = dict(scores)

    def is_repeat(self, scores: Account) -> bool:
        """Return True if these are the latest announced points, or those of the present moment."""
        return scores in (self.announced, self._due)

    @property
    def possible_newcomers(self) -> set[int] | None:
        """The only streams that a restarted server knows; None if unknown."""
        return self.newcomers if self._if_restarted is not None else None

    def shows_restart(self, scores: Account) -> bool:
        """Return True if only a restarted server can have these points."""
        return (
            self._if_restarted is not None
            and not _differences(scores, self._if_restarted)
            and bool(self.wrong(scores))
        )

    def wrong(self, scores: Account) -> list[str]:
        """Return the differences from the expected points, a clause for each player."""
        return _differences(scores, self._due) if self._due is not None else []


def _differences(scores: Account, due: Account) -> list[str]:
    return [
        f"{name} has {scores.get(name, 0)} points and should have {due.get(name, 0)}"
        for name in sorted({*scores, *due})
        if scores.get(name, 0) != due.get(name, 0)
    ]
