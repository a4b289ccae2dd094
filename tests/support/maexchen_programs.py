"""A small Mäxchen server (newest dialect) and players on real sockets, who keep all that they send and get.

Everything is bounded: a game is a number of rounds, every wait has a limit, and all is on loopback or on
machines of the tests' own.
"""

from __future__ import annotations

import random
import socket
import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kiebitz.dissectors.protocols.maexchen.dice import MIA, ROLLS, beats, rank

Address = tuple[str, int]

ANSWER_WINDOW_S = 2.0
"""Time limit in seconds for an answer, also from players who have not joined."""

JOIN_WINDOW_S = 0.1
"""Minimum time in seconds for others to join."""


@dataclass
class Log:
    """An end's messages to and from each address, in order."""

    sent: dict[Address, list[bytes]] = field(default_factory=dict)
    received: dict[Address, list[bytes]] = field(default_factory=dict)


def _socket_at(address: Address) -> socket.socket:
    family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_DGRAM)
    bound.bind(address)
    return bound


class Server(threading.Thread):
    """A server that plays `rounds` rounds once `expected` players have registered.

    Dice and order of players follow from `seed`, but for the rolls, counted from 1, that have `other_dice`.
    With `cancels_first` it cancels a round before the first one, as a server does that waits for players.
    """

    def __init__(
        self,
        expected: int,
        rounds: int,
        other_dice: Mapping[int, str] | None = None,
        address: Address = ("127.0.0.1", 0),
        answer_window_s: float = ANSWER_WINDOW_S,
        seed: int = 7,
        cancels_first: bool = False,
    ) -> None:
        super().__init__(daemon=True)
        self._cancels_first = cancels_first
        self.socket = _socket_at(address)
        self._answer_window_s = answer_window_s
        self.port: int = self.socket.getsockname()[1]
        self.log = Log()
        self._expected = expected
        self._rounds = rounds
        self._players: dict[str, Address] = {}
        self._scores: dict[str, int] = {}
        self._dice = random.Random(seed)
        self._other_dice = other_dice or {}
        self._rolls = 0

    def run(self) -> None:
        deadline = time.monotonic() + 10
        while len(self._players) < self._expected and time.monotonic() < deadline:
            self._receive(deadline)
        if self._cancels_first:
            self._tell_all("ROUND CANCELED;NO_PLAYERS")
        for number in range(1, self._rounds + 1):
            self._round(number)
        # Receive what is still in flight.
        end = time.monotonic() + 0.3
        while self._receive(end) is not None:
            pass
        self.socket.close()

    def _send(self, name: str, text: str) -> None:
        address = self._players[name]
        data = text.encode()
        self.log.sent.setdefault(address, []).append(data)
        self.socket.sendto(data, address)

    def _tell_all(self, text: str) -> None:
        # Copies of one broadcast leave together; the next one waits, so that all captures agree on the order.
        for name in self._players:
            self._send(name, text)
        time.sleep(0.004)

    def _receive(self, deadline: float) -> tuple[list[str], Address] | None:
        """Return the next readable message; registrations are dealt with here. None when the time is up."""
        while (left := deadline - time.monotonic()) > 0:
            self.socket.settimeout(left)
            try:
                data, sender = self.socket.recvfrom(65_535)
            except TimeoutError:
                return None
            address: Address = sender[:2]
            self.log.received.setdefault(address, []).append(data)
            parts = data.decode("utf-8", "replace").split(";")
            if parts[0] == "REGISTER" and len(parts) > 1:
                self._players[parts[1]] = address
                self._scores.setdefault(parts[1], 0)
                self._send(parts[1], "REGISTERED")
            elif parts[0] == "REGISTER_SPECTATOR":
                self.socket.sendto(b"REGISTERED", address)
            return parts, address
        return None

    def _ask(self, name: str, answers: tuple[str, ...], token: str) -> list[str] | None:
        deadline = time.monotonic() + self._answer_window_s
        while (got := self._receive(deadline)) is not None:
            parts, address = got
            sound = parts[0] != "ANNOUNCE" or parts[1] in ROLLS
            if address == self._players[name] and parts[0] in answers and parts[-1] == token and sound:
                return parts
        return None

    def _round(self, number: int) -> None:
        tokens = {name: str(uuid.uuid4()) for name in self._players}
        for name, token in tokens.items():
            self._send(name, f"ROUND STARTING;{token}")
        joined: list[str] = []
        asked = time.monotonic()
        while (got := self._receive(asked + JOIN_WINDOW_S)) is not None or len(joined) < len(tokens):
            got = got or self._receive(asked + self._answer_window_s)
            if got is None:
                break
            joined += [name for name, token in tokens.items() if got[0] == ["JOIN", token]]
        if not joined:
            self._tell_all("ROUND CANCELED;NO_PLAYERS")
            return
        self._dice.shuffle(joined)
        for name in joined:
            self._scores[name] += 1
        self._tell_all(f"ROUND STARTED;{number};{','.join(joined)}")
        losers, reason = self._play(joined)
        for name in losers:
            self._scores[name] -= 1
        self._tell_all(f"PLAYER LOST;{','.join(losers)};{reason}")
        self._tell_all("SCORE;" + ",".join(f"{name}:{points}" for name, points in self._scores.items()))

    def _play(self, players: list[str]) -> tuple[list[str], str]:
        announced: tuple[str, str] | None = None
        actual = ""
        for turn in range(40):
            name = players[turn % len(players)]
            token = str(uuid.uuid4())
            self._send(name, f"YOUR TURN;{token}")
            answer = self._ask(name, ("ROLL", "SEE"), token)
            if answer is None:
                return [name], "DID_NOT_TAKE_TURN"
            if answer[0] == "SEE":
                self._tell_all(f"PLAYER WANTS TO SEE;{name}")
                if announced is None:
                    return [name], "SEE_BEFORE_FIRST_ROLL"
                self._tell_all(f"ACTUAL DICE;{actual}")
                if (rank(actual) or 0) < (rank(announced[1]) or 0):
                    return [announced[0]], "CAUGHT_BLUFFING"
                return [name], "SEE_FAILED"
            self._tell_all(f"PLAYER ROLLS;{name}")
            self._rolls += 1
            lucky = self._dice.choice(ROLLS)
            actual = self._other_dice.get(self._rolls, lucky)
            token = str(uuid.uuid4())
            self._send(name, f"ROLLED;{actual};{token}")
            answer = self._ask(name, ("ANNOUNCE",), token)
            if answer is None:
                return [name], "DID_NOT_ANNOUNCE"
            claim = answer[1]
            self._tell_all(f"ANNOUNCED;{name};{claim}")
            if claim == MIA:
                self._tell_all(f"ACTUAL DICE;{actual}")
                if actual == MIA:
                    return [other for other in players if other != name], "MIA"
                return [name], "LIED_ABOUT_MIA"
            if announced is not None and not beats(claim, announced[1]):
                return [name], "ANNOUNCED_LOSING_DICE"
            announced = (name, claim)
        raise AssertionError("a round of 40 turns has no winner")


class Player(threading.Thread):
    """Plays honestly, but `bluffs` announces more than was rolled, and `babbles` sends rubbish, too."""

    def __init__(
        self,
        name: str,
        server: Address,
        *,
        bluffs: bool = False,
        babbles: bool = False,
        host: str = "127.0.0.1",
    ) -> None:
        super().__init__(daemon=True)
        self.player = name
        self.server = server
        self.log = Log()
        self.socket = _socket_at((host, 0))
        self.address: Address = self.socket.getsockname()[:2]
        self._bluffs = bluffs
        self._babbles = babbles
        self._to_beat: str | None = None
        self._over = threading.Event()

    def stop(self) -> None:
        self._over.set()
        self.join(5)
        self.socket.close()

    def run(self) -> None:
        self._send(f"REGISTER;{self.player}".encode())
        self.socket.settimeout(0.2)
        while True:
            try:
                data, sender = self.socket.recvfrom(65_535)
            except TimeoutError:
                # Receive what has arrived.
                if self._over.is_set():
                    return
                continue
            self.log.received.setdefault(sender[:2], []).append(data)
            self._answer(data.decode().split(";"))

    def _send(self, data: bytes) -> None:
        self.log.sent.setdefault(self.server, []).append(data)
        self.socket.sendto(data, self.server)

    def _answer(self, message: list[str]) -> None:
        match message:
            case ["ROUND STARTING", token]:
                self._to_beat = None
                if self._babbles:
                    for rubbish in (b"", b"\xff\xfe\x00", b"join;" + token.encode(), b"FOO", b"X" * 30_000):
                        self._send(rubbish)
                self._send(f"JOIN;{token}".encode())
            case ["ANNOUNCED", _, dice]:
                self._to_beat = dice
            case ["YOUR TURN", token]:
                high = self._to_beat is not None and (rank(self._to_beat) or 0) > 16
                self._send(f"{'SEE' if high and not self._bluffs else 'ROLL'};{token}".encode())
            case ["ROLLED", dice, token]:
                claim = dice
                if self._bluffs and self._to_beat is not None and not beats(dice, self._to_beat):
                    claim = ROLLS[min((rank(self._to_beat) or 0) + 1, len(ROLLS) - 2)]
                if self._babbles:
                    self._send(f"ANNOUNCE;7,7;{token}".encode())
                self._send(f"ANNOUNCE;{claim};{token}".encode())


def play(server: Server, players: Sequence[Player]) -> None:
    """Play until the server has had enough; what each end got is what the other sent."""
    server.start()
    for player in players:
        player.start()
        time.sleep(0.02)
    server.join(60)
    assert not server.is_alive()
    for player in players:
        player.stop()
        assert player.log.received[player.server] in server.log.sent.values()
        assert player.log.sent[player.server] in server.log.received.values()


NAMES = ("alice", "bob", "carl", "bluff", "kaos")


def players_of(port: int) -> list[Player]:
    """Return all who play, through `port`: one bluffs, and one babbles."""
    return [
        Player(name, ("127.0.0.1", port), bluffs=name == "bluff", babbles=name == "kaos") for name in NAMES
    ]
