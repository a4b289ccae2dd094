"""Where clients come in, and where each of them is passed on: the one part in which relay modes differ.

A reverse mode's gate leads to its one server. That of a transparent mode is in `proxy.relay.transparent`.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Hashable
from typing import NamedTuple, Protocol

from kiebitz.dissectors.model import Transport
from kiebitz.proxy.relay.endpoints import Address, Route, endpoint_text, enlarge_buffers, meet
from kiebitz.proxy.relay.modes import Reverse

MAX_DATAGRAM = 65_535


class Refused(Exception):
    """A client cannot be passed on; `code` and the text are for a notice."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


class OwnConnections:
    """The relay's own connections to servers, so that one that is led back to the relay is known again."""

    def __init__(self) -> None:
        self._pairs: set[tuple[Transport, Address, Address]] = set()

    def add(self, transport: Transport, local: Address, remote: Address) -> None:
        """A socket of ours at `local` speaks to `remote`."""
        self._pairs.add((transport, local[:2], remote[:2]))

    def discard(self, transport: Transport, local: Address, remote: Address) -> None:
        """It does so no more."""
        self._pairs.discard((transport, local[:2], remote[:2]))

    def has(self, transport: Transport, local: Address, remote: Address) -> bool:
        """Whether what comes from `local` and was meant for `remote` comes from the relay itself."""
        return (transport, local[:2], remote[:2]) in self._pairs


class Listening(NamedTuple):
    """Where clients come in and what for, as a `clause` for people.

    A client may have to take over a `configuration`, as it stands; `advice` is what is to be known about it.
    """

    clause: str
    configuration: str | None = None
    advice: str | None = None


class Gate(Protocol):
    """What both transports' gates have: a bound socket, its `ip:port`, and a clause for people."""

    listener: socket.socket
    address: str
    says: str


class TcpGate(Gate, Protocol):
    """Lets TCP connections in."""

    advice: str
    """What is to be looked at where servers do not answer; a sentence, or nothing."""

    def destination(self, client: socket.socket, address: Address) -> Address:
        """Where an accepted connection from `address` is to be passed on. Raises Refused."""

    def upstream(self, client: Address, destination: Address) -> socket.socket:
        """A new socket from which to connect there. Raises OSError."""


class Way(NamedTuple):
    """How the datagrams of one association go: from `client` to `server` by `upstream`, which is connected,
    and back to the client by `answering`, which is the listener or this association's own."""

    client: Address
    server: Address
    upstream: socket.socket
    answering: socket.socket


class UdpGate(Gate, Protocol):
    """Lets datagrams in."""

    receive: Callable[[], tuple[bytes, Hashable]]
    """The next datagram, and a key that tells its association. Raises OSError as a socket does."""

    def open(self, key: Hashable) -> Way:
        """The way for an association that is new. Raises Refused and OSError."""


class _Reverse:
    """What both transports' gates to one server share."""

    def __init__(self, mode: Reverse) -> None:
        self.listener, self._family, self._server = meet(mode)
        self.route = Route(mode.transport, self.listener.getsockname(), self._server)
        self.address = endpoint_text(self.listener.getsockname())
        self.says = f"{mode.transport} {self.address}, passing on to {endpoint_text(self._server)}"


class ReverseTcp(_Reverse):
    """A gate to one TCP server. Raises RelayError if it cannot listen or does not find the server."""

    advice = ""

    def destination(self, client: socket.socket, address: Address) -> Address:
        return self._server

    def upstream(self, client: Address, destination: Address) -> socket.socket:
        return socket.socket(self._family, socket.SOCK_STREAM)


class ReverseUdp(_Reverse):
    """A gate to one UDP server, keyed by the client's address. Raises RelayError as `ReverseTcp` does."""

    def __init__(self, mode: Reverse) -> None:
        super().__init__(mode)
        listener = self.listener
        self.receive: Callable[[], tuple[bytes, Hashable]] = lambda: listener.recvfrom(MAX_DATAGRAM)

    def open(self, key: Hashable) -> Way:
        assert isinstance(key, tuple)
        upstream = socket.socket(self._family, socket.SOCK_DGRAM)
        try:
            upstream.setblocking(False)
            enlarge_buffers(upstream)
            upstream.connect(self._server)
        except OSError:
            upstream.close()
            raise
        return Way(key, self._server, upstream, self.listener)
