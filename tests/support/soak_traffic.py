"""Endless traffic: a game without end, and clients that come and go."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing
from ipaddress import IPv4Address

from processes_and_rows import PATIENCE_S, receive

Turn = tuple[list[bytes], bytes]
"""A server's messages to a player, sent at once, and the player's answer."""


def maexchen_rounds() -> Iterator[Turn]:
    """Yield rounds of Mäxchen from alice's perspective, each with its own tokens and dice."""
    scores = {"alice": 0, "bob": 0}
    over: list[bytes] = []
    number = 0
    while True:
        number += 1
        token = f"{number:032x}"
        truth, claim = f"{3 + number % 4},2", f"{3 + number // 4 % 4},2"
        yield [*over, f"ROUND STARTING;{token}".encode()], f"JOIN;{token}".encode()
        started = [f"ROUND STARTED;{number};alice,bob", f"YOUR TURN;{token}1"]
        yield [line.encode() for line in started], f"ROLL;{token}1".encode()
        rolled = ["PLAYER ROLLS;alice", f"ROLLED;3,1;{token}2"]
        yield [line.encode() for line in rolled], f"ANNOUNCE;3,1;{token}2".encode()
        bob = ["ANNOUNCED;alice;3,1", "PLAYER ROLLS;bob", f"ANNOUNCED;bob;{claim}", f"YOUR TURN;{token}3"]
        yield [line.encode() for line in bob], f"SEE;{token}3".encode()
        loser, reason = ("alice", "SEE_FAILED") if truth >= claim else ("bob", "CAUGHT_BLUFFING")
        for name in scores:
            scores[name] += 1
        scores[loser] -= 1
        told = ",".join(f"{name}:{points}" for name, points in scores.items())
        seen = ["PLAYER WANTS TO SEE;alice", f"ACTUAL DICE;{truth}", f"PLAYER LOST;{loser};{reason}"]
        over = [line.encode() for line in (*seen, f"SCORE;{told}")]


class MaexchenTalk:
    """Alice, a server that plays with her by `maexchen_rounds`, and the relay between them at `port`."""

    def __init__(self, server: socket.socket, port: int) -> None:
        self._server = server
        self._player = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._player.settimeout(PATIENCE_S)
        self._player.connect(("127.0.0.1", port))
        self._player.send(b"REGISTER;alice")
        data, self._address = server.recvfrom(1000)
        assert data == b"REGISTER;alice"
        server.sendto(b"REGISTERED", self._address)
        assert self._player.recv(1000) == b"REGISTERED"
        self.messages = 2
        self._turns = maexchen_rounds()

    def go_on(self, messages: int) -> int:
        """Play until at least this many more messages were sent; return their total number."""
        end = self.messages + messages
        player, server = self._player, self._server
        while self.messages < end:
            told, answer = next(self._turns)
            for data in told:
                server.sendto(data, self._address)
            for data in told:
                assert player.recv(1000) == data
            player.send(answer)
            assert server.recv(1000) == answer
            self.messages += len(told) + 1
        return self.messages

    def close(self) -> None:
        self._player.close()


def udp_client(server: socket.socket, port: int, number: int) -> int:
    """Register a player that then falls silent; return the number of messages."""
    with closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as player:
        player.settimeout(PATIENCE_S)
        # A new port each time: a reused one would continue a conversation.
        player.bind((str(IPv4Address("127.1.0.0") + number), 0))
        player.connect(("127.0.0.1", port))
        request = b"REGISTER;player-%d" % number
        player.send(request)
        data, address = server.recvfrom(1000)
        assert data == request
        server.sendto(b"REGISTERED", address)
        assert player.recv(1000) == b"REGISTERED"
    return 2


def tcp_client(listener: socket.socket, port: int, number: int) -> int:
    """Log in to and out of an Okey server; return the number of messages."""
    name = b"player-%d" % number
    spoken = ((b"LOGI %b" % name, b"+LOGI %b" % name), (b"PING", b"+PING"), (b"LOGO", b"+LOGO"))
    with ExitStack() as ending:
        near = ending.enter_context(socket.create_connection(("127.0.0.1", port), PATIENCE_S))
        far, _ = listener.accept()
        ending.enter_context(far)
        far.settimeout(PATIENCE_S)
        for request, answer in spoken:
            for sender, receiver, line in ((near, far, request), (far, near, answer)):
                sender.sendall(line + b"\r\n")
                assert receive(receiver, len(line) + 2) == line + b"\r\n"
        far.close()
        assert near.recv(1) == b""
    return 2 * len(spoken)
