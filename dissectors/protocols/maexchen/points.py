"""What the points must be (Ablauf einer Spielrunde), also of a server that may have been started anew.

A server that is started anew knows nobody: it speaks only to those who have registered with it since, and
counts from nothing. From a registration on, as long as the server speaks to nobody else, both can be: so
there are two accounts then, and points are only wrong if they are wrong in both.
"""

from __future__ import annotations

from collections.abc import Iterable

Account = dict[str, int]


class Points:
    """The points of a table's players, by name, as they follow from the rounds that were seen."""

    def __init__(self) -> None:
        self._due: Account | None = None
        """What must be told next; None while that cannot be known."""
        self._anew: Account | None = None
        """What must be told next if the server was started anew; None if it was not, or was seen to be."""
        self.told: Account | None = None
        """What was told last."""
        self.newcomers: set[int] = set()
        """The streams that have registered since the server may have been started anew."""

    def registered(self, stream: int) -> None:
        """A client is taken in: the server may have been started anew just before."""
        if self._anew is None:
            self._anew = {}
            self.newcomers.clear()
        self.newcomers.add(stream)

    def spoken_to(self, stream: int) -> None:
        """The server speaks to a client that must be registered."""
        if self._anew is not None and stream not in self.newcomers:
            self._anew = None

    def started(self, players: Iterable[str]) -> None:
        """A round starts: a point for each of its players."""
        self._add(players, 1)

    def lost(self, names: Iterable[str]) -> None:
        """A round is lost."""
        self._add(names, -1)

    def _add(self, names: Iterable[str], points: int) -> None:
        for name in names:
            for account in (self._due, self._anew):
                if account is not None:
                    account[name] = account.get(name, 0) + points

    def forget(self) -> None:
        """A round, or a part of one, was not seen: until the server tells the points they are not known."""
        self._due = self._anew = None

    def begin_anew(self) -> None:
        """The server was started anew."""
        self.forget()
        self.told = None

    def tell(self, scores: Account) -> None:
        """The server tells the points: from here on they are known."""
        self._due, self._anew = dict(scores), None
        self.told = dict(scores)

    def repeat(self, scores: Account) -> bool:
        """Whether this tells nothing new: the points as they were told last, or stand in mid-round."""
        return scores in (self.told, self._due)

    @property
    def possible_newcomers(self) -> set[int] | None:
        """The only streams that a server knows that was started anew; None if that is not known."""
        return self.newcomers if self._anew is not None else None

    def show_new_start(self, scores: Account) -> bool:
        """Whether these are the points of a server that was started anew, and of no other."""
        return self._anew is not None and not _differences(scores, self._anew) and bool(self.wrong(scores))

    def wrong(self, scores: Account) -> list[str]:
        """How these points differ from what they must be, a part of a sentence for each player."""
        return _differences(scores, self._due) if self._due is not None else []


def _differences(scores: Account, due: Account) -> list[str]:
    return [
        f"{name} has {scores.get(name, 0)} points and should have {due.get(name, 0)}"
        for name in sorted({*scores, *due})
        if scores.get(name, 0) != due.get(name, 0)
    ]
