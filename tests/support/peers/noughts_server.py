"""A server of noughts and crosses, the plug-in of the tests: one table, at which games follow one another."""

from __future__ import annotations

from collections.abc import Collection

from peers.program import Died, LineServer, Link, Setup

SEATS = 2
PAUSE_S = 0.05
"""Between two games."""

THREES = ((0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6))


class NoughtsServer(LineServer):
    """Begins once two are there; the one who came first begins the first game, and then each in turn."""

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._players: dict[Link, str] = {}
        self._squares: list[Link | None] = [None] * 9
        self._turn: Link | None = None
        """The player whose turn it is; None between games."""
        self._begun = 0

    def line(self, link: Link, line: bytes) -> None:
        words = self.text(line).split(" ")
        match words:
            case ["HELLO", name] if name and link not in self._players:
                self._hello(link, name)
            case ["PUT", square] if link in self._players and square in [*"123456789"]:
                self._put(link, int(square) - 1)
            case ["BYE"]:
                self.lose(link)
                link.close()
            case [name, *_] if self.has("dies-on-an-unknown-word") and name not in ("HELLO", "PUT", "BYE"):
                raise Died(name)
            case [_] if self.has("dies-on-a-missing-field"):
                raise Died(words[0])
            case _:
                self.give_up(link, "not understood")

    def unended(self, link: Link, rest: bytes) -> None:
        if self.has("dies-on-half-a-line"):
            raise Died(repr(rest))

    def leave(self, link: Link) -> None:
        if self._players.pop(link, None) is not None:
            # A game of one is none.
            self._turn = None

    def _hello(self, link: Link, name: str) -> None:
        if len(self._players) >= SEATS or name in self._players.values():
            self._refuse(link, "full")
            return
        self._players[link] = name
        self._say(link, "WELCOME")
        self._begin()

    def _begin(self) -> None:
        if len(self._players) < SEATS or self._turn is not None or self.over:
            return
        first, second = self._players
        if self._begun % 2:
            first, second = second, first
        self._begun += 1
        self._turn, self._squares = first, [None] * 9
        x, o = self._players[first], self._players[second]
        self._tell_all(f"START {x} {o}")

    def _put(self, link: Link, square: int) -> None:
        if self._turn is not link and not self.has("lets-all-go-first"):
            self._refuse(link, "turn")
        elif self._squares[square] is not None and not self.has("takes-taken-squares"):
            self._refuse(link, "taken")
        else:
            self._squares[square] = link
            marked = (
                self._players[link]
                if self.has("forgets-the-square")
                else f"{self._players[link]} {square + 1}"
            )
            self._tell_all(f"MARK {marked}")
            self._turn = next(other for other in self._players if other is not link)
            self._look(link, self._turn)

    def _look(self, link: Link, other: Link) -> None:
        """See whether the game is over."""
        if is_won([square for square, holder in enumerate(self._squares) if holder is link]):
            winner = other if self.has("lets-the-loser-win") else link
            self._tell_all(f"WON {self._players[winner]}")
        elif None not in self._squares:
            self._tell_all("DRAW")
        else:
            return
        self._turn = None
        self.count_game()
        self.after(PAUSE_S, self._begin)

    def _refuse(self, link: Link, why: str) -> None:
        self._say(link, f"REFUSED {'busy' if self.has('makes-up-reasons') else why}")

    def _tell_all(self, text: str) -> None:
        for link in self._players:
            self._say(link, text)
        self.breathe()

    def _say(self, link: Link, text: str) -> None:
        link.send(f"{text}\r\n".encode())


def is_won(squares: Collection[int]) -> bool:
    """Return whether three of these squares, counted from 0, are in a row."""
    return any(all(square in squares for square in three) for three in THREES)
