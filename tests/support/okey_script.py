"""A simulated Okey server and its clients: whole games in both dialects, with the expected events.

Messages are written with the codec's own quoting; recipients and order are what is tested here.
`tests/data/messages/okey.txt` and the recorded captures show the bytes.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any, NamedTuple

from kiebitz.dissectors.model import Direction
from kiebitz.dissectors.protocols.okey.grammar import CODEC, WORDS
from kiebitz.dissectors.protocols.okey.tiles import COLOURS, HIGHEST, SEATS, SLOTS

PACK = [f"{number}:{colour}" for number in range(1, HIGHEST + 1) for colour in COLOURS] * 2
SERVER_STACKS = 4


class Step(NamedTuple):
    """A message of one client's conversation."""

    client: str
    direction: Direction
    name: str
    fields: dict[str, Any]
    data: bytes


class Move(NamedTuple):
    """A draw or put: in which lobby, whose, from where, which tile."""

    lobby: int
    seat: int
    kind: str
    stack: str | None
    tile: str | None


class Table:
    """A lobby: its players, their decks, and the stacks."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.players: list[str | None] = []
        self.ready: set[str] = set()
        self.decks: list[list[str]] = []
        self.main: list[str] = []
        self.stacks: list[list[str]] = []
        self.turn = 0
        self.playing = False


class Script:
    """A server of one dialect; every method adds to `steps`, and moves to `moves`."""

    def __init__(self, seed: int, head: bool = False) -> None:
        self.random = random.Random(seed)
        self.head = head
        self.pad = WORDS.pads[head]
        self.steps: list[Step] = []
        self.moves: list[Move] = []
        self.online: list[str] = []
        self.tables: dict[int, Table] = {}
        self.at: dict[str, Table] = {}

    # Saying things.

    def client(self, who: str, name: str, /, **fields: Any) -> None:
        self._say(who, "c2s", name, fields)

    def server(self, who: str | Iterable[str | None], name: str, /, **fields: Any) -> None:
        for one in (who,) if isinstance(who, str) else who:
            if one is not None:
                self._say(one, "s2c", name, fields)

    def _say(self, who: str, direction: Direction, name: str, fields: dict[str, Any]) -> None:
        data = CODEC.encode_padded(name, direction, fields, self.pad)
        self.steps.append(Step(who, direction, name, fields, data))

    def chance(self, of: float) -> bool:
        return self.random.random() < of

    # Before a game.

    def login(self, *names: str) -> None:
        for name in names:
            self.client(name, "LOGI", nickname=name)
            self.server(name, "PING")
            if self.chance(0.5):
                self.client(name, "+PING")
            self.online.append(name)
            self.server(name, "+LOGI", actualname=name)

    def join(self, number: int, *names: str) -> None:
        for name in names:
            table = self.tables.setdefault(number, Table(number))
            self.client(name, "JLOB", n=number)
            if None in table.players:
                seat = table.players.index(None)
                table.players[seat] = name
            else:
                seat = len(table.players)
                table.players.append(name)
            self.at[name] = table
            if table.playing:
                self._deal_to(table, seat)
                if self.head:
                    self._status(table, [name])
            self.server(name, "+JLOB", joinsuccessful=True, debugmessage=f"Joined Lobby {number}")
            if self.head:
                self.server(table.players, "JOND", name=name)
                self._names(table)

    def _names(self, table: Table) -> None:
        places = table.players + [None] * (SEATS - len(table.players))
        self.server(table.players, "NAMS", playerlist=places)

    def ready(self, *names: str) -> None:
        for name in names:
            table = self.at[name]
            self.client(name, "REDY")
            self.server(name, "+REDY")
            table.ready.add(name)
            if len(table.ready) == SEATS:
                self.deal(table)

    def deal(self, table: Table) -> None:
        pack = [*PACK, "0:RED" if self.head else "0:BLACK", "0:BLACK"]
        self.random.shuffle(pack)
        table.turn = self.random.randrange(SEATS)
        table.decks = [[pack.pop() for _ in range(14 + (seat == table.turn))] for seat in range(SEATS)]
        table.main = pack
        table.stacks = [[] for _ in range(SERVER_STACKS)]
        table.playing = True
        for seat in range(SEATS):
            self._deal_to(table, seat)

    def race(self, table: Table) -> None:
        """Let two threads deal at once; the second deal counts, even if clients receive them reordered."""
        deals = []
        for _ in range(2):
            begin = len(self.steps)
            self.deal(table)
            deals.append(self.steps[begin:])
            del self.steps[begin:]
        told: dict[str, list[Step]] = {name: [] for name in table.players if name is not None}
        for name, steps in told.items():
            for deal in deals if self.chance(0.7) else reversed(deals):
                steps += [step for step in deal if step.client == name]
        while any(told.values()):
            name = self.random.choice([name for name, steps in told.items() if steps])
            self.steps.append(told[name].pop(0))

    def _deal_to(self, table: Table, seat: int) -> None:
        name = table.players[seat]
        assert name is not None
        self.server(name, "STRT", startdeck=self._slots(table.decks[seat], self.head), playeridx=seat)
        self.client(name, "+STRT")

    def _slots(self, deck: list[str], gaps: bool) -> list[str | None]:
        return [*deck, *([None] * (SLOTS - len(deck)))] if gaps else [*deck]

    # In a game.

    def visibility(self, table: Table) -> list[str]:
        """Return the clients that receive a status: the server of the last dialect keeps it in the lobby."""
        if not self.head:
            return self.online
        return [name for name in table.players if name is not None]

    def _status(self, table: Table, names: Iterable[str]) -> None:
        tops = [stack[-1] if stack else None for stack in table.stacks]
        self.server(names, "STAT", exchangestacks=tops, currentplayeridx=table.turn)

    def name_at(self, table: Table) -> str:
        name = table.players[table.turn]
        assert name is not None
        return name

    def draw(self, table: Table) -> None:
        """The player whose turn it is draws, from either stack."""
        seat, name = table.turn, self.name_at(table)
        own = table.stacks[seat]
        # With equal tiles on both stacks, other players cannot see from which one was drawn.
        stack = "e" if own and own[-1:] != own[-2:-1] and self.chance(0.5) else "m"
        self.client(name, "DRAW", drawstack=stack)
        tile = own.pop() if stack == "e" else table.main.pop()
        table.decks[seat].append(tile)
        self.moves.append(Move(table.number, seat, "drew", stack, tile))
        # Each client is written to by a thread of its own.
        others = [one for one in self.visibility(table) if one != name]
        before = others if self.chance(0.3) else []
        self._status(table, before)
        self.server(name, "+DRAW", tile=tile)
        self._status(table, [one for one in self.visibility(table) if one not in before])

    def put(self, table: Table, tile: str | None = None, won: bool = False) -> None:
        seat, name = table.turn, self.name_at(table)
        deck = table.decks[seat]
        tile = tile if tile is not None else self.random.choice(deck)
        deck.remove(tile)
        self.random.shuffle(deck)
        slots = self._slots(deck, True)
        self.random.shuffle(slots)
        self.client(name, "PUTT", tile=tile, deck=slots)
        table.turn = (seat + 1) % SEATS
        table.stacks[table.turn].append(tile)
        self.moves.append(Move(table.number, seat, "put", None, tile))
        others = [one for one in self.visibility(table) if one != name]
        before = others if self.chance(0.5) else []
        if won:
            self.server(self.visibility(table) if self.head else others, "PWIN", nickname=name)
            self.server(name, "+PUTT", valid=True, won=True)
            if not self.head:
                self._status(table, self.visibility(table))
            table.playing = False
            return
        self._status(table, before)
        self.server(name, "+PUTT", valid=True, won=False)
        self._status(table, [one for one in self.visibility(table) if one not in before])

    def play(self, table: Table, turns: int) -> None:
        """Play this many turns; the first player only puts."""
        for _ in range(turns):
            if len(table.decks[table.turn]) == 14:
                self.draw(table)
            self.put(table)

    def win(self, table: Table) -> None:
        """Let the player whose turn it is win by cheating."""
        seat, name = table.turn, self.name_at(table)
        if len(table.decks[seat]) == 14:
            self.draw(table)
        self.client(name, "WINC")
        deck = [
            "0:BLACK",
            *(f"{number}:RED" for number in range(1, 8)),
            *(f"{number}:BLUE" for number in range(4, 10)),
        ]
        table.decks[seat] = [*deck, "0:BLACK"]
        self.server(name, "+WINC", deck=self._slots(table.decks[seat], self.head))
        self.put(table, "0:BLACK", won=True)

    def empty(self, table: Table) -> None:
        """Let a player draw from the empty main stack."""
        name = self.name_at(table)
        self.client(name, "DRAW", drawstack="m")
        self.server(name, "+DRAW", tile=None)
        self.server(table.players if self.head else [name], "EMPT")
        self.client(name, "+EMPT")
        table.playing = False

    def leave(self, name: str) -> None:
        """Leave the lobby, which only the last dialect allows."""
        table = self.at.pop(name)
        self.client(name, "LLOB")
        table.players = [None if other == name else other for other in table.players]
        self.server(table.players, "LEFT", name=name)
        self._names(table)
        self.server(name, "+LLOB", left=True)

    def chat(self, name: str, text: str) -> None:
        self.client(name, "CATC", messagetype="b", msg=text)
        others = [one for one in self.online if one != name]
        self.server(others, "CATS", messagetype="b", msg=text, sender=name)
        self.server(name, "+CATC", messagetype="b", msg=text)

    def logout(self, *names: str) -> None:
        for name in names:
            self.client(name, "LOGO")
            self.server(name, "+LOGO")
            self.online.remove(name)
