"""A Mäxchen server: rounds with all who are registered, in the specification's own dialect."""

from __future__ import annotations

import re
import uuid
from collections.abc import Generator
from functools import partial

from kiebitz.dissectors.model import Transport
from kiebitz.dissectors.protocols.maexchen.dice import MIA, beats, rank, written
from peers.program import MOST_CLIENTS, Died, Link, Server, Setup

PAUSE_S = 0.05
IDLE_S = 1.0
"""Pause in seconds between rounds, and between rounds without players."""

LONGEST_NAME = 20
MOST_TURNS = 40
"""Maximum number of turns in a round: each announcement beats the one before, and there are 21."""

Answer = tuple[str, list[str]] | None
"""A player, and what they answered; None is silence."""

Moves = Generator[None, Answer, tuple[list[str], str]]


class MaexchenServer(Server):
    """A server that begins once `players` are registered (one by default)."""

    transport: Transport = "udp"

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._addresses: dict[str, Link] = {}
        self._spectators: dict[str, Link] = {}
        self._scores: dict[str, int] = {}
        self._asked: dict[str, tuple[str, tuple[str, ...]]] = {}
        """The asked player and the valid answers, by token."""
        self._questions = 0
        self._round: Generator[None, Answer, None] | None = None

    def hear(self, link: Link, data: bytes) -> None:
        text = self.text(data)
        if self.has("dies-on-an-unknown-word") and not data.startswith((b"R", b"J", b"S", b"A")):
            raise Died(text)
        name, *fields = text.split(";")
        match name:
            case "REGISTER" | "REGISTER_SPECTATOR" if fields:
                self._register(link, fields[0], spectates=name != "REGISTER")
            case "JOIN" | "ROLL" | "SEE" | "ANNOUNCE":
                self._answered(link, name, fields)

    # Who is there.

    def _register(self, link: Link, name: str, spectates: bool) -> None:
        known = self._addresses.get(name) or self._spectators.get(name)
        is_taken = known is not None and known.host != link.host and not self.has("gives-away-names")
        is_odd = not 0 < len(name) <= LONGEST_NAME or any(letter in " ,;:\ufffd" for letter in name)
        is_full = known is None and len(self._addresses) + len(self._spectators) >= MOST_CLIENTS
        if is_taken or is_odd or is_full:
            self._send(link, "REJECTED")
            return
        if known is None or not self.has("forgets-the-new-port"):
            (self._spectators if spectates else self._addresses)[name] = link
        if not spectates:
            self._scores.setdefault(name, 0)
        first = next(iter((self._addresses | self._spectators).values()))
        self._send(first if self.has("answers-the-first-client") else link, "REGISTERED")
        if self.has("confirms-twice"):
            self._send(link, "REGISTERED")
        if self._round is None and len(self._addresses) >= max(self.setup.players, 1):
            self._begin()

    # Messages.

    def _send(self, link: Link, text: str) -> None:
        if self.has("ends-lines") and ";" not in text:
            text += "\n"
        link.send(text.encode())

    def _tell_all(self, text: str) -> None:
        for link in [*self._addresses.values(), *self._spectators.values()]:
            self._send(link, text)
        self.breathe()

    def _token(self, name: str, *answers: str) -> str:
        token = str(uuid.UUID(int=self.random.getrandbits(128), version=4))
        self._asked[token] = name, answers
        return token

    def _wait(self) -> None:
        self._questions += 1
        if not self.has("waits-for-ever"):
            self.after(self.setup.window, partial(self._too_late, self._questions))

    def _too_late(self, question: int) -> None:
        if question == self._questions:
            self._go_on(None)

    def _answered(self, link: Link, name: str, fields: list[str]) -> None:
        if self.has("dies-on-a-missing-token") and not fields:
            raise Died("no token")
        if len(fields) < 1 + (name == "ANNOUNCE"):
            return
        # Surplus fields are left alone.
        token = fields[1] if name == "ANNOUNCE" else fields[0]
        if self.has("takes-any-token"):
            token = next((t for t, (who, _) in self._asked.items() if self._addresses[who] is link), token)
        player, answers = self._asked.get(token, ("", ()))
        if name not in answers or (self._addresses[player] is not link and not self.has("takes-any-address")):
            return
        if name == "ANNOUNCE":
            if self.has("dies-on-odd-dice") and _dice(fields[0]) is None:
                raise Died(fields[0])
            if _dice(fields[0]) is None and not self.has("takes-any-dice"):
                return
            fields = [_dice(fields[0]) or fields[0], token]
        if not self.has("takes-used-tokens") or name != "JOIN":
            del self._asked[token]
        self._go_on((player, [name, *fields]))

    # The rounds.

    def _begin(self) -> None:
        self._asked.clear()
        self._round = self._one_round(self.games + 1)
        self._go_on(None)

    def _go_on(self, answer: Answer) -> None:
        if self._round is None:
            return
        try:
            self._round.send(answer)
        except StopIteration:
            self._questions += 1

    def _again(self, pause_s: float) -> None:
        self.count_game()
        if not self.over:
            self.after(pause_s, self._begin)

    def _one_round(self, number: int) -> Generator[None, Answer, None]:
        players = list(self._addresses)
        for name in players:
            self._send(self._addresses[name], f"ROUND STARTING;{number};{self._token(name, 'JOIN')}")
        self.breathe()
        self._wait()
        joined: list[str] = []
        while len(joined) < len(players) and (answer := (yield)) is not None:
            joined.append(answer[0])
        self._asked.clear()
        if not joined:
            self._tell_all("ROUND CANCELED;no players")
            self._again(IDLE_S)
            return
        self.random.shuffle(joined)
        for name in dict.fromkeys(joined):
            self._scores[name] += 1
        self._tell_all(f"ROUND STARTED;{','.join(joined)}")
        if len(joined) == 1:
            self._tell_all("ROUND CANCELED;only one player")
        else:
            losers, reason = yield from self._turns(joined)
            for name in losers:
                self._scores[name] -= 2 if self.has("counts-a-loss-twice") else 1
            self._tell_all(f"PLAYER LOST;{','.join(losers)};{reason}")
        self._tell_all("SCORE;" + ",".join(f"{name}:{points}" for name, points in self._scores.items()))
        self._again(PAUSE_S)

    def _turns(self, players: list[str]) -> Moves:
        announced: tuple[str, str] | None = None
        actual = ""
        for turn in range(MOST_TURNS):
            name = players[turn % len(players)]
            self._send(self._addresses[name], f"YOUR TURN;{self._token(name, 'ROLL', 'SEE')}")
            self._wait()
            answer = yield
            if answer is None:
                return [name], "DID_NOT_TAKE_TURN"
            if answer[1][0] == "SEE":
                return self._see(name, actual, announced)
            self._tell_all(f"PLAYER ROLLS;{name}")
            actual = written(self.random.randint(1, 6), self.random.randint(1, 6))
            told = f"ROLLED;{actual};{self._token(name, 'ANNOUNCE')}"
            for link in self._addresses.values():
                if link is self._addresses[name] or self.has("shows-rolls"):
                    self._send(link, told)
            self._wait()
            answer = yield
            if answer is None:
                return [name], "DID_NOT_ANNOUNCE"
            claim = answer[1][1]
            self._tell_all(f"ANNOUNCED;{name};{claim}")
            if claim == MIA:
                self._tell_all(f"ACTUAL DICE;{actual}")
                if actual == MIA:
                    return [other for other in players if other != name], "MIA"
                return [name], "LIED_ABOUT_MIA"
            is_higher = announced is None or beats(claim, announced[1])
            if not is_higher and not self.has("lets-low-dice-pass"):
                return [name], "ANNOUNCED_LOSING_DICE"
            announced = name, claim
        return [players[0]], "INVALID_TURN"

    def _see(self, name: str, actual: str, announced: tuple[str, str] | None) -> tuple[list[str], str]:
        self._tell_all(f"PLAYER WANTS TO SEE;{name}")
        if announced is None:
            return [name], "SEE_BEFORE_FIRST_ROLL"
        self._tell_all(f"ACTUAL DICE;{actual}")
        bluffed = (rank(actual) or 0) < (rank(announced[1]) or 0)
        if bluffed != self.has("blames-who-saw"):
            return [announced[0]], "CAUGHT_BLUFFING"
        return [name], "SEE_FAILED"


def _dice(text: str) -> str | None:
    found = re.fullmatch(r"\s*([1-6])\s*,\s*([1-6])\s*", text)
    return written(int(found[1]), int(found[2])) if found is not None else None
