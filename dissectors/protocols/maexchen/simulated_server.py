"""A simulated Mäxchen server: round after round, with all registered players."""

from __future__ import annotations

import uuid
from collections.abc import Generator
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from kiebitz.dissectors.conformance.bots import SendMessage, SimulatedServer
from kiebitz.dissectors.grammar.field_type import Fields
from kiebitz.dissectors.protocols.maexchen.dice import MIA, beats, rank, written

_PAUSE_S = 0.05
_MAX_TURNS = 40
"""Maximum number of turns in a round: each announcement beats the one before, and there are 21."""


class _Answer(NamedTuple):
    player: str
    name: str
    fields: Fields


_Question = Generator[None, _Answer | None, _Answer | None]
"""Waits for an answer; receives None on timeout."""

_Loss = tuple[list[str], str]
"""The losers and the code of the reason."""


class MaexchenServer(SimulatedServer):
    """A simulated Mäxchen server that begins once enough players are registered.

    Each round counts as a game.
    """

    answer_timeout_s = 1.0
    """Timeout for an answer in seconds; longer than real servers', as programs under test may be slow."""

    def __init__(self, players: int, seed: int = 1, games: int = 0) -> None:
        super().__init__(players, seed, games)
        self._at: dict[str, int] = {}
        """The connection of each player, by name."""
        self._spectators: dict[str, int] = {}
        self._scores: dict[str, int] = {}
        self._asked: dict[str, tuple[str, tuple[str, ...]]] = {}
        """The player asked and the allowed answers, by token."""
        self._questions = 0
        self._round: Generator[None, _Answer | None, None] | None = None

    def _client_connected(self, connection: int, address_index: int) -> None:
        """Ignore the connection: over UDP no client is known before it registers."""

    def _receive(self, connection: int, name: str, fields: Fields) -> None:
        match name:
            case "REGISTER" | "REGISTER_SPECTATOR":
                self._register(connection, fields["name"], name == "REGISTER")
            case "JOIN" | "ROLL" | "SEE" | "ANNOUNCE":
                player, answers = self._asked[fields["token"]]
                if name in answers and self._at[player] == connection:
                    del self._asked[fields["token"]]
                    self._resume(_Answer(player, name, fields))

    def _client_disconnected(self, connection: int) -> None:
        self._at = {name: at for name, at in self._at.items() if at != connection}
        self._spectators = {name: at for name, at in self._spectators.items() if at != connection}

    def _register(self, connection: int, name: str, plays: bool) -> None:
        if self._at.get(name, connection) != connection:
            self._send_to(connection, "REJECTED")
            return
        (self._at if plays else self._spectators)[name] = connection
        if plays:
            self._scores.setdefault(name, 0)
        # A server may reject any name.
        self._queue(SendMessage("REGISTERED", {}, connection), SendMessage("REJECTED", {}, connection))
        if self._round is None and len(self._at) >= self.players:
            self._round = self._rounds()
            self._schedule(_PAUSE_S, partial(self._resume, None))

    def _on_sent(self, said: SendMessage) -> None:
        if said.name == "REJECTED":
            self._client_disconnected(said.to)

    # Sending.

    def _all(self, name: str, /, **fields: object) -> None:
        for connection in dict.fromkeys((*self._at.values(), *self._spectators.values())):
            self._queue(SendMessage(name, fields, connection))

    def _token(self, player: str, *answers: str) -> str:
        token = str(uuid.UUID(int=self.random.getrandbits(128), version=4))
        self._asked[token] = player, answers
        return token

    def _wait(self) -> _Question:
        self._questions += 1
        self._schedule(self.answer_timeout_s, partial(self._too_late, self._questions))
        return (yield)

    def _too_late(self, question: int) -> None:
        if question == self._questions:
            self._resume(None)

    def _resume(self, answer: _Answer | None) -> None:
        if self._round is not None:
            # The generator ends after the last round.
            with suppress(StopIteration):
                self._round.send(answer)

    # Rounds.

    def _rounds(self) -> Generator[None, _Answer | None, None]:
        number = 0
        while not self.is_finished:
            number += 1
            yield from self._one_round(number)
            self._asked.clear()
            self._questions += 1
            self._schedule(_PAUSE_S, partial(self._resume, None))
            yield

    def _one_round(self, number: int) -> Generator[None, _Answer | None, None]:
        players = [*self._at]
        for name in players:
            token = self._token(name, "JOIN")
            self._queue(SendMessage("ROUND STARTING", {"round": number, "token": token}, self._at[name]))
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

    def _ask(self, player: str, name: str, token: str, /, **fields: object) -> _Question:
        if player in self._at:
            self._queue(SendMessage(name, {**fields, "token": token}, self._at[player]))
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
