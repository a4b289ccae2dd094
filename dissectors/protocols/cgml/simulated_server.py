"""A simulated CGML server: three clients log in at its first address, and play at its second."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from kiebitz.dissectors.conformance.bots import Disconnect, SendMessage, SimulatedServer
from kiebitz.dissectors.grammar.field_type import Fields
from kiebitz.dissectors.protocols.cgml.cards import (
    HAND,
    LADDER,
    PACK,
    SEATS,
    TALON,
    WITH_TWO_SEVENS,
    Rules,
    has_trumps,
)

_GAME = "licitovany_marias"
_GROUP = 4
_HIGHEST_FLEK = 16
_STAKE = 10
_COUNTING = ("10", "0A")
_TO_WIN = 50
_PAUSE_S = 0.05

_Question = Generator[None, Fields, Fields]
"""A generator that waits for the answer to a question."""


class _RuleBroken(Exception):
    """A player, given by seat, has broken a rule of the game."""

    def __init__(self, seat: int, why: str) -> None:
        super().__init__(why)
        self.seat = seat


class CgmlServer(SimulatedServer):
    """A simulated CGML server that begins once three players are logged in; each hand counts as a game.

    Players log in at its first address (0). They are then redirected to `url`, which must be its second.
    """

    address_count = 2
    url = "127.0.0.1:7002"

    def __init__(self, players: int = SEATS, seed: int = 1, games: int = 0) -> None:
        super().__init__(SEATS, seed, games)
        self._logged_in: dict[int, dict[str, Any]] = {}
        self._members: dict[int, dict[str, Any]] = {}
        """The players of the group by number, as they have introduced themselves."""
        self._at: dict[int, int] = {}
        """The connection of each joined player, by number."""
        self._order: list[int] = []
        self._ready: set[int] = set()
        self._hand: Generator[None, Fields, str | None] | None = None
        self._wanted: tuple[int, str, str] | None = None
        self._hands: list[list[str]] = []
        self._talon: list[str] = []
        self._tricks: list[tuple[int, list[str]]] = []

    def _client_connected(self, connection: int, address_index: int) -> None:
        """Wait: the client sends the first message."""

    def _receive(self, connection: int, name: str, fields: Fields) -> None:
        match name, fields.get("status") or fields.get("type"):
            case "connect", ("active" | "passive"):
                self._log_in(connection, fields["player"])
            case "newgroup", "accept" if fields["player"]["id"] in self._members:
                self._join(connection, fields["player"]["id"])
            case ("newgroup", "reject") | ("newgame", "reject"):
                self._dissolve("somebody has had enough")
            case "newgame", "accept" if connection in self._at.values():
                self._accept(connection)
            case "disconnect", _:
                self._queue(Disconnect(connection))
                self._leave(connection)
            case "pause", ("start" | "finish"):
                for other in self._at.values():
                    if other != connection:
                        self._queue(SendMessage("pause", {**fields}, other))
            case what if self._wanted == (connection, *what):
                self._wanted = None
                self._resume(fields)

    def _client_disconnected(self, connection: int) -> None:
        self._logged_in.pop(connection, None)
        self._leave(connection)

    def _leave(self, connection: int) -> None:
        """Remove a player; without one of them there is no group."""
        gone = next((number for number, at in self._at.items() if at == connection), None)
        if gone is None:
            return
        del self._at[gone]
        if self._hand is not None:
            self._all("abort", player=self._members[gone], message="connection lost")
        self._dissolve("end of group")

    def _dissolve(self, why: str) -> None:
        self._hand = self._wanted = None
        at, self._at = self._at, {}
        for connection in at.values():
            self._send_to(connection, "disconnect", disconnect=why)
            self._queue(Disconnect(connection))
        self._members, self._order = {}, []

    def _log_in(self, connection: int, player: dict[str, Any]) -> None:
        self._logged_in[connection] = player
        if len(self._logged_in) < SEATS:
            return
        chosen, self._logged_in = self._logged_in, {}
        self._members = {player["id"]: player for player in chosen.values()}
        for connection, player in chosen.items():
            others = [other for other in chosen.values() if other is not player]
            about = {"id": _GROUP, "game": _GAME, "player": others, "url": self.url}
            self._queue(SendMessage("connect", {"status": "complete", **about}, connection))

    def _join(self, connection: int, number: int) -> None:
        self._at[number] = connection
        self._order.append(number)
        if len(self._at) == SEATS:
            self._ask_for_hand()

    def _ask_for_hand(self) -> None:
        if len(self._at) == SEATS:
            self._ready.clear()
            self._all("newgame", status="ask", player=[self._members[number] for number in self._order])

    def _accept(self, connection: int) -> None:
        self._ready |= {number for number, at in self._at.items() if at == connection}
        if self._hand is None and len(self._ready) == SEATS:
            self._hand = self._one_hand()
            self._step(None)

    def _all(self, name: str, /, **fields: Any) -> None:
        for connection in self._at.values():
            self._queue(SendMessage(name, fields, connection))

    def _to(self, seat: int, name: str, fields: dict[str, Any]) -> None:
        self._queue(SendMessage(name, fields, self._at[self._order[seat]]))

    def _others(self, seat: int, name: str, fields: dict[str, Any]) -> None:
        for other in range(SEATS):
            if other != seat:
                self._to(other, name, {**fields, "playerid": self._order[seat]})

    def _ask(self, seat: int, name: str, /, **fields: Any) -> _Question:
        self._to(seat, name, {"type": "ask", **fields})
        return (yield from self._wait(seat, name, "cards" if name == "playcard" else "answer"))

    def _wait(self, seat: int, name: str, kind: str) -> _Question:
        self._wanted = self._at[self._order[seat]], name, kind
        return (yield)

    def _resume(self, answer: Fields) -> None:
        if self._hand is not None:
            self._step(answer)

    def _step(self, answer: Fields | None) -> None:
        assert self._hand is not None
        try:
            # A generator's first step takes no value.
            next(self._hand) if answer is None else self._hand.send(answer)
            return
        except StopIteration as end:
            why = end.value
        except _RuleBroken as broken:
            player = self._members[self._order[broken.seat]]
            self._all("renonc", player=player, message=str(broken))
            why = "renonc"
        if why is not None:
            self._all("cancelgame", cancelgame=why)
        self._hand = self._wanted = None
        self._order.append(self._order.pop(0))
        self.games += 1
        if self.is_finished:
            self._dissolve("end of group")
        else:
            self._schedule(_PAUSE_S, self._ask_for_hand)

    def _one_hand(self) -> Generator[None, Fields, str | None]:
        """Play a hand; return the reason why there was no game, None if there was one."""
        self._deal()
        declarer, game = yield from self._bid()
        if game == LADDER[0]:
            return "pass"
        number = self._order[declarer]
        self._all("licite", type="result", licite=game, playerid=number)
        yield from self._take_talon(declarer)
        game, trumf = yield from self._name_trumps(declarer, game)
        named: dict[str, Any] = {"licite": game, **({"trumf": trumf} if trumf else {})}
        self._all("gametype", type="info", playerid=number, **named)
        level = yield from self._double(declarer)
        self._all("gametype", type="info", playerid=number, **named, flek=str(level))
        rules = Rules(game, trumf[:1].upper() or None)
        self._tricks = []
        leader = declarer
        for _ in range(HAND):
            leader = yield from self._trick(rules, leader)
        self._result(declarer, named, level)
        return None

    def _deal(self) -> None:
        pack = self.random.sample(PACK, len(PACK))
        self._hands = [pack[HAND * seat : HAND * seat + HAND] for seat in range(SEATS)]
        self._talon = pack[-TALON:]
        way = {"to": "hand", "from": "desk"}
        for seat in range(SEATS):
            for other in range(SEATS):
                if other == seat:
                    self._to(seat, "dial", {"type": "cards", **way, "card": [*self._hands[seat]]})
                else:
                    hidden = {**way, "playerid": self._order[other], "card": [None] * HAND}
                    self._to(seat, "dial", {"type": "info", **hidden})
            talon = {"to": "talon", "from": "desk", "card": [None] * TALON}
            self._to(seat, "dial", {"type": "cards", **talon})

    def _bid(self) -> Generator[None, Fields, tuple[int, str]]:
        holder, standing = 0, LADDER[0]
        for challenger in range(1, SEATS):
            while standing != LADDER[-1]:
                bid = (yield from self._ask(challenger, "licite"))["licite"]
                is_higher = bid in LADDER and LADDER.index(bid) > LADDER.index(standing)
                if bid != "PASS" and not is_higher:
                    raise _RuleBroken(challenger, f"you must bid more than {standing}, or PASS")
                self._all("licite", type="info", licite=bid, playerid=self._order[challenger])
                if bid == "PASS":
                    break
                answer = (yield from self._ask(holder, "licite", licite=bid))["licite"]
                if answer not in ("YES", "NO"):
                    raise _RuleBroken(holder, "you must say YES or NO")
                told = bid if answer == "YES" else "PASS"
                self._all("licite", type="info", licite=told, playerid=self._order[holder])
                standing = bid
                if answer == "NO":
                    holder = challenger
                    break
        return holder, standing

    def _take_talon(self, declarer: int) -> Generator[None, Fields, None]:
        way = {"to": "hand", "from": "talon"}
        self._to(declarer, "dial", {"type": "cards", **way, "card": [*self._talon]})
        self._others(declarer, "dial", {"type": "info", **way, "card": [None] * TALON})
        hand = self._hands[declarer] + self._talon
        given = (yield from self._wait(declarer, "playcard", "cards"))["card"]
        if len({*given}) != TALON or len(given) != TALON or not {*given} <= {*hand}:
            raise _RuleBroken(declarer, "you must discard two of your cards")
        self._hands[declarer] = [card for card in hand if card not in given]
        back = {"type": "info", "from": "hand", "to": "talon", "card": [None] * TALON}
        self._others(declarer, "playcard", back)

    def _name_trumps(self, declarer: int, game: str) -> Generator[None, Fields, tuple[str, str]]:
        answer = yield from self._ask(declarer, "gametype", licite=game)
        named, trumf = answer["licite"], answer.get("trumf") or ""
        if LADDER.index(named) < LADDER.index(game):
            raise _RuleBroken(declarer, "the game may only be raised")
        needed = (1 + (named in WITH_TWO_SEVENS)) if has_trumps(named) else 0
        if len(trumf.split(":") if trumf else []) != needed:
            raise _RuleBroken(declarer, "these are not the trumps of this game")
        return named, trumf

    def _double(self, declarer: int) -> Generator[None, Fields, int]:
        """Return the final level: the others may double, then the declarer, and so on."""
        level = 1
        others = [(declarer + step) % SEATS for step in range(1, SEATS)]
        for turn in range(2 * _HIGHEST_FLEK):
            before = level
            for seat in others if turn % 2 == 0 else [declarer]:
                answer = (yield from self._ask(seat, "flek", flek=str(level)))["flek"]
                if answer not in (str(level), str(min(2 * level, _HIGHEST_FLEK))):
                    raise _RuleBroken(seat, f"you must say {level}, or double it")
                level = int(answer)
                self._all("flek", type="info", flek=answer, playerid=self._order[seat])
            if level == before:
                break
        return level

    def _trick(self, rules: Rules, leader: int) -> Generator[None, Fields, int]:
        table: list[str] = []
        for step in range(SEATS):
            seat = (leader + step) % SEATS
            played = (yield from self._ask(seat, "playcard"))["card"]
            allowed = rules.allowed(table, self._hands[seat])
            if len(played) != 1 or played[0] not in allowed:
                raise _RuleBroken(seat, f"you must play {' or '.join(allowed)}!")
            self._hands[seat].remove(played[0])
            table.append(played[0])
            laid = {"type": "info", "from": "hand", "to": "desk", "card": [*played]}
            self._others(seat, "playcard", laid)
        winner = (leader + rules.winner(table)) % SEATS
        self._tricks.append((winner, table))
        self._all("round", **self._trick_fields(len(self._tricks)))
        return winner

    def _trick_fields(self, number: int) -> dict[str, Any]:
        winner, table = self._tricks[number - 1]
        return {"number": number, "playerid": self._order[winner], "card": [*table]}

    def _result(self, declarer: int, named: dict[str, Any], level: int) -> None:
        own = [table for winner, table in self._tricks if winner == declarer]
        counted = sum(_STAKE for table in own for card in table if card[1:] in _COUNTING)
        counted += _STAKE * (self._tricks[-1][0] == declarer)
        by_tricks = {"SMALL": not own, "BIG": len(own) == HAND}
        won = by_tricks.get(named["licite"], counted >= _TO_WIN)
        sides: dict[str, list[dict[str, Any]]] = {"winer": [], "loser": []}
        for seat, number in enumerate(self._order):
            money = _STAKE * level * (2 if seat == declarer else 1)
            gets = (seat == declarer) == won
            paid = {"type": "get" if gets else "lost", "money": money}
            sides["winer" if gets else "loser"].append({"playerid": number, "money": paid})
        rounds = [self._trick_fields(number) for number in range(1, HAND + 1)]
        self._all("result", game=_GAME, **named, flek=str(level), round=rounds, **sides)
