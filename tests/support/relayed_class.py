"""A class that plays through a relay: a Mäxchen server on a socket, and players who register with it."""

from __future__ import annotations

import socket

from processes_and_rows import PATIENCE_S, free_port


class Class:
    """A Mäxchen server, and players who register with it through a relay on `port`."""

    def __init__(self) -> None:
        self._server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._server.bind(("127.0.0.1", 0))
        self._server.settimeout(PATIENCE_S)
        self.port = free_port("udp")
        self.mode = f"reverse:udp://127.0.0.1:{self._server.getsockname()[1]}@{self.port}"
        self.server_port = self._server.getsockname()[1]
        self._players: list[socket.socket] = []

    def register(self, name: str, port: int | None = None) -> None:
        """Register a player and answer it."""
        player = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._players.append(player)
        player.settimeout(PATIENCE_S)
        player.sendto(f"REGISTER;{name}".encode(), ("127.0.0.1", port or self.port))
        _, address = self._server.recvfrom(1000)
        self._server.sendto(b"REGISTERED", address)
        assert player.recv(1000) == b"REGISTERED"

    def close(self) -> None:
        """Close all sockets."""
        for each in (self._server, *self._players):
            each.close()
