"""The listeners of transparent mode: redirected traffic is forwarded to its original destination.

Linux only. TCP may be redirected in two ways: REDIRECT changes the destination, which the kernel remembers
(SO_ORIGINAL_DST); TPROXY keeps it, and it is the accepted socket's own address. UDP needs TPROXY: the
listener receives each datagram's destination (IP_RECVORIGDSTADDR), and answers are sent from that address.
Users install the redirecting rules themselves; `proxy.relay.firewall_rules` generates them.
"""

from __future__ import annotations

import errno
import socket
import sys
from collections.abc import Callable, Hashable
from contextlib import ExitStack, suppress
from struct import Struct
from typing import NamedTuple

from kiebitz.dissectors.model import Transport
from kiebitz.proxy.relay.endpoints import (
    UNSPECIFIED_ADDRESSES,
    Address,
    Notice,
    RelayError,
    bind,
    endpoint_text,
    enlarge_buffers,
    is_local,
)
from kiebitz.proxy.relay.listeners import (
    MAX_DATAGRAM,
    AssociationSockets,
    ClientRejected,
    OwnConnections,
    TcpListener,
    UdpListener,
)
from kiebitz.proxy.relay.modes import Transparent
from kiebitz.proxy.system.sudo import sudo_command

OWN_MARK = 0x4B
"""Firewall mark of everything the relay sends to servers, so that rules can exempt it."""

# From linux/in.h, linux/in6.h and linux/netfilter_ipv4.h; the socket module has no names for them.
_IP_TRANSPARENT = {socket.AF_INET: (socket.SOL_IP, 19), socket.AF_INET6: (socket.IPPROTO_IPV6, 75)}
_RECEIVE_DESTINATION = {socket.AF_INET: (socket.SOL_IP, 20), socket.AF_INET6: (socket.IPPROTO_IPV6, 74)}
_RECEIVE_INTERFACE = {socket.AF_INET: (socket.SOL_IP, 8), socket.AF_INET6: (socket.IPPROTO_IPV6, 49)}
_INTERFACE = {(socket.SOL_IP, 8): Struct("=i8x"), (socket.IPPROTO_IPV6, 50): Struct("=16xi")}
"""Control messages that name the interface at which a datagram arrived: in_pktinfo, in6_pktinfo."""
_ORIGINAL_DESTINATION = {socket.AF_INET: socket.SOL_IP, socket.AF_INET6: socket.IPPROTO_IPV6}
_SO_ORIGINAL_DST = 80
_SOCKADDR_IN = Struct("=2s2s4s8x")
_SOCKADDR_IN6 = Struct("=2s2sI16sI")
_CONTROL_BYTES = 256
_LOOPBACK = {socket.AF_INET: "127.0.0.1", socket.AF_INET6: "::1"}

_ROUTING_HINT = (
    " With --keep-source the server's answers must be routed through this machine, and the rules must exempt "
    "the relay's own traffic."
)


def transparent_listeners(
    mode: Transparent, own: OwnConnections, keep_source: bool, on_notice: Notice
) -> tuple[list[TcpListener], list[UdpListener]]:
    """Return the listeners of a transparent mode for each of its addresses and both transports.

    Without the privilege to be transparent there are only TCP listeners, which then need REDIRECT.

    Args:
        mode: The transparent mode.
        own: The relay's own connections, to reject those that are redirected back.
        keep_source: Let servers see the clients' addresses.
        on_notice: Callback for non-fatal problems.

    Raises:
        RelayError: a listener cannot be opened.
    """
    if sys.platform != "linux":
        raise RelayError(
            f"{mode}: Kiebitz's own transparent mode needs Linux. "
            "Use one of mitmproxy's modes: -m transparent, -m local or -m wireguard."
        )
    settings = _Settings(_may_be_transparent(), keep_source, own, on_notice)
    if keep_source and not settings.privileged:
        raise RelayError(
            f"--keep-source needs the privilege to send from other addresses: run {sudo_command()}."
        )
    if not settings.privileged:
        on_notice(
            "rights",
            f"{mode}: without the privilege for transparent sockets there is no UDP and no TPROXY, only TCP "
            f"with REDIRECT. For the rest run {sudo_command()}.",
        )
    tcp: list[TcpListener] = []
    udp: list[UdpListener] = []
    port = mode.listen_port
    try:
        for family, host in _addresses(mode):
            listener = TransparentTcpListener(family, (host, port), settings)
            tcp.append(listener)
            port = listener.sock.getsockname()[1]
            if settings.privileged:
                udp.append(TransparentUdpListener(family, (host, port), settings))
    except BaseException:
        for opened in (*tcp, *udp):
            opened.sock.close()
        raise
    return tcp, udp


def _addresses(mode: Transparent) -> list[tuple[socket.AddressFamily, str]]:
    if mode.listen_host is None:
        families = [socket.AF_INET]
        if is_local(socket.AF_INET6, (_LOOPBACK[socket.AF_INET6], 0)):
            families.append(socket.AF_INET6)
        return [(family, _LOOPBACK[family]) for family in families]
    family = socket.AF_INET6 if ":" in mode.listen_host else socket.AF_INET
    try:
        socket.inet_pton(family, mode.listen_host.partition("%")[0])
    except OSError as error:
        raise RelayError(
            f"{mode}: an address is required, not a name, as in transparent@0.0.0.0:9001."
        ) from error
    return [(family, mode.listen_host)]


def _may_be_transparent() -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.setsockopt(*_IP_TRANSPARENT[socket.AF_INET], 1)
        except PermissionError:
            return False
    return True


class _Settings(NamedTuple):
    """Settings shared by all listeners of a mode."""

    privileged: bool
    keep_source: bool
    own: OwnConnections
    on_notice: Notice


class _TransparentListener:
    """Base class of the transparent listeners."""

    def __init__(
        self, transport: Transport, family: socket.AddressFamily, address: Address, settings: _Settings
    ) -> None:
        self._transport: Transport = transport
        self._family = family
        self._settings = settings
        options = [_IP_TRANSPARENT[family]] if settings.privileged else []
        self.sock = bind(family, address, transport, options)
        self._bound: Address = self.sock.getsockname()
        self.address = endpoint_text(self._bound)
        self.description = f"{transport} {self.address}, for redirected traffic"

    def _check_destination(self, client: Address, destination: Address) -> Address:
        """Return a client's destination. Raises ClientRejected if either is the relay itself."""
        name = f"{self._transport} {endpoint_text(client)}"
        if self._settings.own.has(self._transport, client, destination):
            raise self._loop_error(destination)
        if destination[1] == self._bound[1] and (
            destination[0] == self._bound[0]
            or (self._bound[0] in UNSPECIFIED_ADDRESSES and is_local(self._family, destination))
        ):
            raise ClientRejected(
                "not-redirected",
                f"{name} was rejected: it came to the relay's own address, {endpoint_text(destination)}, "
                "but only redirected traffic has a server. --print-rules prints rules for that.",
            )
        return destination

    def _loop_error(self, destination: Address) -> ClientRejected:
        return ClientRejected(
            "loop",
            f"The relay's own traffic to {self._transport} {endpoint_text(destination)} was redirected to "
            f"it, and rejected. Exempt it in the rules: by its mark {OWN_MARK:#x}, if the relay may set "
            "one, or else by its user. --print-rules prints such rules.",
        )

    def upstream(self, client: Address, destination: Address) -> socket.socket:
        """Return a socket for sending to `destination`, bound to the client's address if requested."""
        sock = _socket(self._family, self._transport)
        try:
            if self._settings.keep_source:
                self._bind_to_client(sock, client, destination)
        except OSError:
            sock.close()
            raise
        return sock

    def _bind_to_client(self, sock: socket.socket, client: Address, destination: Address) -> None:
        """Bind `sock` to its client's address, if answers to that address reach this machine."""
        if is_local(self._family, client):
            # The client's own port is in use here; the address, which matters, is the same.
            sock.bind((client[0], 0, *client[2:]))
            return
        if is_local(self._family, destination):
            self._settings.on_notice(
                "keep-source",
                f"{self._transport} {endpoint_text(destination)} is on this machine, and would answer "
                f"{endpoint_text(client)} directly: --keep-source has no effect here.",
            )
            return
        sock.setsockopt(*_IP_TRANSPARENT[self._family], 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(client)


class TransparentTcpListener(_TransparentListener):
    """A listener for TCP connections that are redirected to its address."""

    def __init__(self, family: socket.AddressFamily, address: Address, settings: _Settings) -> None:
        super().__init__("tcp", family, address, settings)
        self.advice = _ROUTING_HINT if settings.keep_source else ""

    def destination(self, client: socket.socket, address: Address) -> Address:
        """Return the connection's original destination. Raises ClientRejected."""
        return self._check_destination(address, original_destination(client))


class TransparentUdpListener(_TransparentListener):
    """A listener for datagrams that TPROXY redirects to its address.

    Keys are the client's address, the destination, and whether it arrived at the loopback interface.
    """

    def __init__(self, family: socket.AddressFamily, address: Address, settings: _Settings) -> None:
        super().__init__("udp", family, address, settings)
        for option in (_RECEIVE_DESTINATION[family], _RECEIVE_INTERFACE[family]):
            self.sock.setsockopt(*option, 1)
        self._loopback = socket.if_nametoindex("lo")
        self.receive: Callable[[], tuple[bytes, Hashable]] = self._receive

    def _receive(self) -> tuple[bytes, Hashable]:
        data, control, _, client = self.sock.recvmsg(MAX_DATAGRAM, _CONTROL_BYTES)
        destination: Address = self._bound
        inside = False
        for level, kind, value in control:
            if (level, kind) == _RECEIVE_DESTINATION[self._family]:
                destination = _address(self._family, value)
            elif (level, kind) in _INTERFACE:
                inside = _INTERFACE[level, kind].unpack_from(value)[0] == self._loopback
        return data, (client, destination, inside)

    def open(self, key: Hashable) -> AssociationSockets:
        """Open sockets from and to the client's original destination. Raises ClientRejected and OSError."""
        assert isinstance(key, tuple)
        client, destination, inside = key
        self._check_destination(client, destination)
        if inside and not is_local(self._family, client):
            # Only the relay's own datagrams with a client's address as source can arrive there.
            raise self._loop_error(destination)
        if is_local(self._family, destination):
            raise ClientRejected(
                "local-server",
                f"udp {endpoint_text(destination)} is on this machine, where only the server can send from "
                "its port. Relay it with -m reverse:udp://… instead.",
            )
        with ExitStack() as unless_whole:
            upstream = unless_whole.enter_context(self.upstream(client, destination))
            upstream.setblocking(False)
            enlarge_buffers(upstream)
            upstream.connect(destination)
            downstream = unless_whole.enter_context(_socket(self._family, "udp"))
            downstream.setblocking(False)
            downstream.setsockopt(*_IP_TRANSPARENT[self._family], 1)
            # Each client of one server gets its answers through a socket of its own.
            downstream.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            downstream.bind(destination)
            unless_whole.pop_all()
        return AssociationSockets(client, destination, upstream, downstream)


def original_destination(sock: socket.socket) -> Address:
    """Return the destination of an accepted connection before REDIRECT or TPROXY redirected it."""
    family = sock.family
    size = (_SOCKADDR_IN if family == socket.AF_INET else _SOCKADDR_IN6).size
    try:
        raw = sock.getsockopt(_ORIGINAL_DESTINATION[family], _SO_ORIGINAL_DST, size)
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENOPROTOOPT, errno.EOPNOTSUPP):
            raise
        # Without connection tracking the destination was not changed: this is TPROXY.
        address: Address = sock.getsockname()
        return address
    return _address(family, raw)


def _socket(family: socket.AddressFamily, transport: Transport) -> socket.socket:
    """Return a socket with the relay's own mark, if permitted."""
    sock = socket.socket(family, socket.SOCK_DGRAM if transport == "udp" else socket.SOCK_STREAM)
    with suppress(PermissionError):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_MARK, OWN_MARK)
    return sock


def _address(family: int, raw: bytes) -> Address:
    """Decode a sockaddr_in or sockaddr_in6 into an address of the socket module."""
    if family == socket.AF_INET:
        _, port, host = _SOCKADDR_IN.unpack_from(raw)
        return socket.inet_ntop(socket.AF_INET, host), int.from_bytes(port, "big")
    _, port, flow, host, scope = _SOCKADDR_IN6.unpack_from(raw)
    return socket.inet_ntop(socket.AF_INET6, host), int.from_bytes(port, "big"), flow, scope
