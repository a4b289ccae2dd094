"""Traffic that goes on for as long as it is asked to: an endless game, and clients who come and go."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing
from ipaddress import IPv4Address

from processes_and_rows import PATIENCE_S

Turn = tuple[list[bytes], bytes]
"""What a server tells a player, all at once, and what he answers."""


def maexchen_rounds() -> Iterator[Turn]:
    """Mäxchen as alice hears it, round after round, each with tokens and dice of its own."""
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
        """Play until so many messages more were sent, or a few beyond; how many there are then."""
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
    """A player who registers and is heard no more; how many messages that were."""
    with closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as player:
        player.settimeout(PATIENCE_S)
        # An address of his own: a port that comes again would be a conversation that goes on.
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
    """Somebody who logs in at an Okey server and out again; how many messages that were."""
    name = b"player-%d" % number
    spoken = ((b"LOGI %b" % name, b"+LOGI %b" % name), (b"PING", b"+PING"), (b"LOGO", b"+LOGO"))
    with ExitStack() as ending:
        near = ending.enter_context(socket.create_connection(("127.0.0.1", port), PATIENCE_S))
        far, _ = listener.accept()
        ending.enter_context(far)
        far.settimeout(PATIENCE_S)
        for request, answer in spoken:
            _say(near, far, request + b"\r\n")
            _say(far, near, answer + b"\r\n")
        far.close()
        assert near.recv(1) == b""
    return 2 * len(spoken)


def _say(sender: socket.socket, receiver: socket.socket, line: bytes) -> None:
    sender.sendall(line)
    came = b""
    while len(came) < len(line):
        piece = receiver.recv(len(line) - len(came))
        assert piece, "the connection was closed too early"
        came += piece
    assert came == line
