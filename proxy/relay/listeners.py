"""Listeners: where clients connect, and to which server each one is forwarded.

Relay modes differ only here. A reverse mode's listener leads to its one server. The listeners of transparent
mode are in `proxy.relay.transparent`.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Hashable
from typing import NamedTuple, Protocol

from kiebitz.dissectors.model import Transport
from kiebitz.proxy.relay.endpoints import Address, Route, bind_reverse, endpoint_text, enlarge_buffers
from kiebitz.proxy.relay.modes import Reverse

MAX_DATAGRAM = 65_535


class ClientRejected(Exception):
    """A client cannot be forwarded; `code` and the text form a notice."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


class OwnConnections:
    """The relay's own connections to servers, used to detect those that are redirected back to the relay."""

    def __init__(self) -> None:
        self._pairs: set[tuple[Transport, Address, Address]] = set()

    def add(self, transport: Transport, local: Address, remote: Address) -> None:
        """Register a socket of the relay at `local` that is connected to `remote`."""
        self._pairs.add((transport, local[:2], remote[:2]))

    def discard(self, transport: Transport, local: Address, remote: Address) -> None:
        """Remove a closed connection."""
        self._pairs.discard((transport, local[:2], remote[:2]))

    def has(self, transport: Transport, local: Address, remote: Address) -> bool:
        """Return True if traffic from `local` to `remote` originates from the relay itself."""
        return (transport, local[:2], remote[:2]) in self._pairs


class ListenerInfo(NamedTuple):
    """Description of a listener for the user: a clause with its address and purpose.

    Attributes:
        description: Address and purpose, as a clause.
        configuration: Client configuration to print verbatim, if clients need one.
        advice: Hints for using this configuration.
    """

    description: str
    configuration: str | None = None
    advice: str | None = None


class Listener(Protocol):
    """Common attributes of TCP and UDP listeners: a bound socket, its `ip:port`, a description."""

    sock: socket.socket
    address: str
    description: str


class TcpListener(Listener, Protocol):
    """A listener that accepts TCP connections."""

    advice: str
    """Hint for servers that do not answer: a sentence with a leading space, or empty."""

    def destination(self, client: socket.socket, address: Address) -> Address:
        """Return the server for an accepted connection from `address`. Raises ClientRejected."""

    def upstream(self, client: Address, destination: Address) -> socket.socket:
        """Return a new socket for connecting to `destination`. Raises OSError."""


class AssociationSockets(NamedTuple):
    """Addresses and sockets of one UDP association.

    `upstream` is connected to the server. Answers go to the client through `downstream`: the listening
    socket, or a socket of this association only.
    """

    client: Address
    server: Address
    upstream: socket.socket
    downstream: socket.socket


class UdpListener(Listener, Protocol):
    """A listener that receives datagrams."""

    receive: Callable[[], tuple[bytes, Hashable]]
    """Return the next datagram and the key of its association. Raises OSError as a socket does."""

    def open(self, key: Hashable) -> AssociationSockets:
        """Open the sockets of a new association. Raises ClientRejected and OSError."""


class _ReverseListener:
    """Base class of the listeners of reverse modes."""

    def __init__(self, mode: Reverse) -> None:
        self.sock, self._family, self._server = bind_reverse(mode)
        self.route = Route(mode.transport, self.sock.getsockname(), self._server)
        self.address = endpoint_text(self.sock.getsockname())
        self.description = f"{mode.transport} {self.address}, forwarding to {endpoint_text(self._server)}"


class ReverseTcpListener(_ReverseListener):
    """A listener for one TCP server. Raises RelayError if it cannot bind or resolve."""

    advice = ""

    def destination(self, client: socket.socket, address: Address) -> Address:
        """Return the mode's server."""
        return self._server

    def upstream(self, client: Address, destination: Address) -> socket.socket:
        """Return a new socket of the server's address family."""
        return socket.socket(self._family, socket.SOCK_STREAM)


class ReverseUdpListener(_ReverseListener):
    """A listener for one UDP server, keyed by the client's address.

    Raises RelayError if it cannot bind or resolve.
    """

    def __init__(self, mode: Reverse) -> None:
        super().__init__(mode)
        sock = self.sock
        self.receive: Callable[[], tuple[bytes, Hashable]] = lambda: sock.recvfrom(MAX_DATAGRAM)

    def open(self, key: Hashable) -> AssociationSockets:
        """Open a socket to the server for a new client. Raises OSError."""
        assert isinstance(key, tuple)
        upstream = socket.socket(self._family, socket.SOCK_DGRAM)
        try:
            upstream.setblocking(False)
            enlarge_buffers(upstream)
            upstream.connect(self._server)
        except OSError:
            upstream.close()
            raise
        return AssociationSockets(key, self._server, upstream, self.sock)
