"""A player of noughts and crosses, the plug-in of the tests: alike players play the same games each time."""

from __future__ import annotations

from peers.noughts_server import is_won
from peers.program import Died, LinePlayer, Setup

GAMES = ("519372846", "153287469")
"""The squares in the order in which both take them: one that is won, and one that is drawn, in turn."""

BOLD = 2
"""Number of the opponent's squares after which it asks for an occupied one."""


class NoughtsPlayer(LinePlayer):
    """A player that takes the first free square.

    The first player asks for two squares at once, which is refused; later each asks for a taken square. Both
    are
    allowed: refusing them is the server's task.
    """

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._taken: list[str] = []
        self._others: list[str] = []

    def begin(self) -> None:
        self._say(f"HELLO {self.setup.name}")

    def line(self, line: bytes) -> None:
        words = self.text(line).split(" ")
        match words:
            case ["WELCOME"]:
                pass
            case ["START", x, _]:
                self._taken, self._others = [], []
                if x == self.setup.name:
                    self._put(self._free(0))
                    self._put(self._free(1))
            case ["MARK", name, square]:
                self._taken.append(square)
                if name != self.setup.name:
                    self._others.append(square)
                    self._go_on()
            case ["REFUSED", "taken"]:
                self._put(self._free(0))
            case ["REFUSED", "full"]:
                self.over = True
            case ["WON", _] | ["DRAW"]:
                self.count_game()
                if self.over:
                    self._say("BYE")
            case [name, *_] if self.has("dies-on-an-unknown-word") and name not in (
                "START",
                "MARK",
                "REFUSED",
            ):
                raise Died(name)
            case ["MARK", _] if self.has("dies-on-a-missing-field"):
                raise Died(words[1])

    def _go_on(self) -> None:
        is_over = is_won([int(square) - 1 for square in self._others]) or len(self._taken) == len(GAMES[0])
        if is_over or self.has("is-silent-when-it-is-its-turn"):
            return
        self._put(self._taken[0] if len(self._others) == BOLD else self._free(0))

    def _free(self, number: int) -> str:
        wanted = [square for square in GAMES[self.games % 2] if square not in self._taken]
        return wanted[number]

    def _put(self, square: str) -> None:
        self._say(f"PUT {10 if self.has('puts-where-no-square-is') else square}")

    def _say(self, text: str) -> None:
        self.says.append(f"{text}\r\n".encode())
