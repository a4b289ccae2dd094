"""The game in one lobby of an Okey server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kiebitz.dissectors.protocols.okey.tiles import COLOURS, DECK, HIGHEST, SEATS, counted, is_won, kind
from peers.okey_wire import listed
from peers.program import Link

if TYPE_CHECKING:
    from peers.okey_server import OkeyServer

PACK = [f"{number}:{colour}" for number in range(1, HIGHEST + 1) for colour in COLOURS] * 2
PACK += ["0:BLACK", "0:BLACK"]

WINNING = [*(f"{number}:RED" for number in range(1, 8)), *(f"{number}:BLUE" for number in range(1, 8))]


class Table:
    """Four seats. A player who leaves a game has the server put what it draws, until the game is over."""

    def __init__(self, server: OkeyServer, number: int) -> None:
        self.number = number
        self.is_on = False
        self._server = server
        self._seats: list[Link | None] = []
        self._ready: set[Link] = set()
        self._decks: list[list[str]] = []
        self._stacks: list[list[str]] = []
        self._pile: list[str] = []
        self._turn = 0

    def present(self) -> list[Link]:
        return [link for link in self._seats if link is not None]

    def join(self, link: Link) -> None:
        if None in self._seats:
            self._seats[self._seats.index(None)] = link
        else:
            self._seats.append(link)

    def leave(self, link: Link) -> None:
        self._seats[self._seats.index(link)] = None
        self._ready.discard(link)
        if not self.present():
            self.is_on = False
        if self.is_on:
            self._play_for_who_is_gone()

    def ready(self, link: Link) -> None:
        self._server.say(link, "+REDY")
        if not self.is_on:
            self._ready.add(link)
            if len(self.present()) == SEATS and len(self._ready) == SEATS:
                self._deal()

    # The game.

    def _tell_all(self, name: str, *arguments: str) -> None:
        for link in self.present():
            self._server.say(link, name, *arguments)
        self._server.breathe()

    def _deal(self) -> None:
        chance = self._server.random
        self._pile = chance.sample(PACK, len(PACK))
        self._turn = chance.randrange(SEATS)
        self._stacks = [[] for _ in range(SEATS)]
        self._decks = [
            [self._pile.pop() for _ in range(DECK + (seat == self._turn))] for seat in range(SEATS)
        ]
        self.is_on = True
        for seat, link in enumerate(self._seats):
            if link is not None:
                deck = self._decks[seat]
                if self._server.has("deals-too-little"):
                    deck = deck[1:]
                index = 0 if self._server.has("numbers-all-alike") else seat
                self._server.say(link, "STRT", listed(deck), str(index))
        self._server.breathe()

    def _status(self) -> None:
        tops = [stack[-1] if stack else None for stack in self._stacks]
        turn = (self._turn + 1) % SEATS if self._server.has("tells-the-next-but-one") else self._turn
        self._tell_all("STAT", listed(tops), str(turn))

    def draw(self, link: Link, stack: str) -> None:
        seat = self._seats.index(link)
        is_allowed = seat == self._turn and len(self._decks[seat]) == DECK if self.is_on else False
        if self._server.has("lets-anybody-draw"):
            is_allowed = self.is_on
        if not is_allowed or (stack == "e" and not self._stacks[seat]):
            self._server.say(link, "+DRAW", "")
            return
        if stack not in ("e", "m"):
            return
        if stack == "m" and not self._pile:
            self._server.say(link, "+DRAW", "")
            self._tell_all("EMPT")
            self._end(None)
            return
        tile = self._stacks[seat].pop() if stack == "e" else self._pile.pop()
        self._decks[seat].append(tile)
        self._server.say(link, "+DRAW", tile)
        if self._server.has("shows-what-is-drawn"):
            self._tell_all("+DRAW", tile)
        self._status()

    def put(self, link: Link, tile: str, deck: Sequence[str | None]) -> None:
        seat = self._seats.index(link)
        is_allowed = self.is_on and seat == self._turn and len(self._decks[seat]) == DECK + 1
        left = list(self._decks[seat]) if self.is_on else []
        held = next((other for other in left if kind(other) == kind(tile)), None)
        if held is None and is_allowed and self._server.has("takes-any-tile"):
            held, left = tile, [tile, *(other for other in deck if other is not None)]
        if held is not None:
            left.remove(held)
        is_told_right = counted(left) == counted(deck) or self._server.has("takes-any-deck")
        if not is_allowed or held is None or not is_told_right:
            self._server.say(link, "+PUTT", "f", "f")
            return
        self._decks[seat] = left
        won = is_won(left) or (self._server.has("lets-anybody-win") and len(self._pile) < 40)
        self._pass_on(seat, tile)
        if won:
            self._tell_all("PWIN", self._server.name_of(link))
        self._server.say(link, "+PUTT", "t", "t" if won else "f")
        if won:
            self._end(link)
        else:
            self._status()
            self._play_for_who_is_gone()

    def _pass_on(self, seat: int, tile: str) -> None:
        """The tile lies on the next player's exchange stack, and it is their turn."""
        self._turn = (seat + 1) % SEATS
        self._stacks[self._turn].append(tile)

    def _play_for_who_is_gone(self) -> None:
        while (
            self.is_on and self._seats[self._turn] is None and not self._server.has("waits-for-who-is-gone")
        ):
            deck = self._decks[self._turn]
            if len(deck) == DECK:
                if not self._pile:
                    self._tell_all("EMPT")
                    self._end(None)
                    return
                deck.append(self._pile.pop())
            self._pass_on(self._turn, deck.pop())
            self._status()

    def cheat(self, link: Link) -> None:
        """A winning deck in place of what a player has."""
        if self.is_on:
            seat = self._seats.index(link)
            self._decks[seat] = [*WINNING, "0:BLACK"][: len(self._decks[seat])]
            self._server.say(link, "+WINC", listed(self._decks[seat]))

    def _end(self, winner: Link | None) -> None:
        self.is_on = False
        self._ready.clear()
        self._seats = [link for link in self._seats if link is not None]
        self._server.ended(self, winner)
