"""A simple Mäxchen server: round after round, with all who are registered."""

from __future__ import annotations

import uuid
from collections.abc import Generator
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from kiebitz.dissectors.conformance.bots import Fields, Host, Say
from kiebitz.dissectors.protocols.maexchen.dice import MIA, beats, rank, written

_WINDOW_S = 1.0
"""So long an answer is waited for: longer than real servers do, as programs under test may be slow."""

_PAUSE_S = 0.05
_MAX_TURNS = 40
"""A round ends by then: each announcement beats the one before, and there are 21."""


class _Answer(NamedTuple):
    player: str
    name: str
    fields: Fields


_Asking = Generator[None, _Answer | None, _Answer | None]
"""Waits for an answer; None is silence."""

_Loss = tuple[list[str], str]
"""Who has lost, and the reason's code."""


class MaexchenHost(Host):
    """Begins once enough are registered; a game is a round."""

    def __init__(self, players: int, seed: int = 1, games: int = 0) -> None:
        super().__init__(players, seed, games)
        self._at: dict[str, int] = {}
        """By name the connection of each player."""
        self._spectators: dict[str, int] = {}
        self._scores: dict[str, int] = {}
        self._asked: dict[str, tuple[str, tuple[str, ...]]] = {}
        """By token who was asked, and what may be answered."""
        self._questions = 0
        self._round: Generator[None, _Answer | None, None] | None = None

    def _came(self, connection: int, door: int) -> None:
        """Over UDP nobody is known before they register."""

    def _hear(self, connection: int, name: str, fields: Fields) -> None:
        match name:
            case "REGISTER" | "REGISTER_SPECTATOR":
                self._register(connection, fields["name"], name == "REGISTER")
            case "JOIN" | "ROLL" | "SEE" | "ANNOUNCE":
                player, answers = self._asked[fields["token"]]
                if name in answers and self._at[player] == connection:
                    del self._asked[fields["token"]]
                    self._go_on(_Answer(player, name, fields))

    def _gone(self, connection: int) -> None:
        self._at = {name: at for name, at in self._at.items() if at != connection}
        self._spectators = {name: at for name, at in self._spectators.items() if at != connection}

    def _register(self, connection: int, name: str, plays: bool) -> None:
        if self._at.get(name, connection) != connection:
            self._tell(connection, "REJECTED")
            return
        (self._at if plays else self._spectators)[name] = connection
        if plays:
            self._scores.setdefault(name, 0)
        # A server may refuse any name.
        self._may(Say("REGISTERED", {}, connection), Say("REJECTED", {}, connection))
        if self._round is None and len(self._at) >= self.players:
            self._round = self._rounds()
            self._plan(_PAUSE_S, partial(self._go_on, None))

    def _said(self, said: Say) -> None:
        if said.name == "REJECTED":
            self._gone(said.to)

    # What is said.

    def _all(self, name: str, /, **fields: object) -> None:
        for connection in dict.fromkeys((*self._at.values(), *self._spectators.values())):
            self._may(Say(name, fields, connection))

    def _token(self, player: str, *answers: str) -> str:
        token = str(uuid.UUID(int=self.random.getrandbits(128), version=4))
        self._asked[token] = player, answers
        return token

    def _wait(self) -> _Asking:
        self._questions += 1
        self._plan(_WINDOW_S, partial(self._too_late, self._questions))
        return (yield)

    def _too_late(self, question: int) -> None:
        if question == self._questions:
            self._go_on(None)

    def _go_on(self, answer: _Answer | None) -> None:
        if self._round is not None:
            # After the last round nothing more is done.
            with suppress(StopIteration):
                self._round.send(answer)

    # The rounds.

    def _rounds(self) -> Generator[None, _Answer | None, None]:
        number = 0
        while not self.had_enough:
            number += 1
            yield from self._one_round(number)
            self._asked.clear()
            self._questions += 1
            self._plan(_PAUSE_S, partial(self._go_on, None))
            yield

    def _one_round(self, number: int) -> Generator[None, _Answer | None, None]:
        players = [*self._at]
        for name in players:
            token = self._token(name, "JOIN")
            self._may(Say("ROUND STARTING", {"round": number, "token": token}, self._at[name]))
        joined: list[str] = []
        while len(joined) < len(players) and (answer := (yield from self._wait())) is not None:
            joined.append(answer.player)
        self._asked.clear()
        if not joined:
            self._all("ROUND CANCELED", reason="no players")
            return
        self.random.shuffle(joined)
        for name in joined:
            self._scores[name] += 1
        self._all("ROUND STARTED", players=joined)
        if len(joined) == 1:
            self._all("ROUND CANCELED", reason="only one player")
        else:
            losers, reason = yield from self._turns_of(joined)
            for name in losers:
                self._scores[name] -= 1
            self._all("PLAYER LOST", names=losers, reason=reason)
        self.games += 1
        self._all("SCORE", scores=dict(self._scores))

    def _ask(self, player: str, name: str, token: str, /, **fields: object) -> _Asking:
        if player in self._at:
            self._may(Say(name, {**fields, "token": token}, self._at[player]))
        return (yield from self._wait())

    def _turns_of(self, players: list[str]) -> Generator[None, _Answer | None, _Loss]:
        announced: tuple[str, str] | None = None
        actual = ""
        for turn in range(_MAX_TURNS):
            name = players[turn % len(players)]
            answer = yield from self._ask(name, "YOUR TURN", self._token(name, "ROLL", "SEE"))
            if answer is None:
                return [name], "DID_NOT_TAKE_TURN"
            if answer.name == "SEE":
                return self._see(name, actual, announced)
            self._all("PLAYER ROLLS", name=name)
            actual = written(self.random.randint(1, 6), self.random.randint(1, 6))
            answer = yield from self._ask(name, "ROLLED", self._token(name, "ANNOUNCE"), dice=actual)
            if answer is None:
                return [name], "DID_NOT_ANNOUNCE"
            claim = answer.fields["dice"]
            self._all("ANNOUNCED", name=name, dice=claim)
            if claim == MIA:
                self._all("ACTUAL DICE", dice=actual)
                if actual == MIA:
                    return [other for other in players if other != name], "MIA"
                return [name], "LIED_ABOUT_MIA"
            if announced is not None and not beats(claim, announced[1]):
                return [name], "ANNOUNCED_LOSING_DICE"
            announced = name, claim
        return [players[0]], "INVALID_TURN"

    def _see(self, name: str, actual: str, announced: tuple[str, str] | None) -> _Loss:
        self._all("PLAYER WANTS TO SEE", name=name)
        if announced is None:
            return [name], "SEE_BEFORE_FIRST_ROLL"
        self._all("ACTUAL DICE", dice=actual)
        if (rank(actual) or 0) < (rank(announced[1]) or 0):
            return [announced[0]], "CAUGHT_BLUFFING"
        return [name], "SEE_FAILED"
